"""Tests that need a GPU: `make test-gpu`.  Others do not collect them, so that none is skipped in silence."""

import os

import pytest

from aggbandit.errors import AggbanditError
from aggbandit.simulation.engines.cuda.device import open_devices

collect_ignore_glob = [] if os.environ.get("AGGBANDIT_GPU") else ["test_*.py"]


def pytest_collection_finish(session):
    """Where there is no GPU, say so once instead of failing every test."""
    if not collect_ignore_glob and session.items:
        try:
            open_devices([0])
        except AggbanditError as error:
            pytest.exit(f"the tests of a GPU cannot be played here: {error}", returncode=2)
