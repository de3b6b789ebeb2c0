"""Where agents' files lie in tests."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def fast_folder(tmp_path):
    """A folder in memory where there is one: what a kill leaves behind does not depend on the disk, the time does."""
    memory = Path("/dev/shm")
    if not (memory.is_dir() and os.access(memory, os.W_OK)):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="aggbandit-", dir=memory))
    yield folder
    shutil.rmtree(folder)
