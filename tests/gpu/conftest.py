"""Tests that need a GPU: `make test-gpu`.  Others do not collect them, so that none is skipped in silence."""

import os

collect_ignore_glob = [] if os.environ.get("AGGBANDIT_GPU") else ["test_*.py"]
