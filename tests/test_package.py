"""What `import aggbandit` gives, and what it leaves alone."""

import json
import subprocess
import sys

import pytest

import aggbandit as ab

AFTER_IMPORT = """
import json, os, signal, sys, threading, warnings

def environment():
    return {
        "variables": dict(os.environ),
        "filters": len(warnings.filters),
        "threads": threading.active_count(),
        "interrupt": str(signal.getsignal(signal.SIGINT)),
        "recursion": sys.getrecursionlimit(),
    }

before = environment()
import aggbandit
same = environment() == before
lazily = sorted(name for name in sys.modules if "." not in name)

import numpy as np
errors, state = np.geterr(), np.random.get_state()[1].tolist()
for name in aggbandit.__all__:
    getattr(aggbandit, name)
quiet = errors == np.geterr() and state == np.random.get_state()[1].tolist()
everything = sorted(name for name in sys.modules if "." not in name)
print(json.dumps([same, quiet, lazily, everything]))
"""

HEAVY = {"numba", "llvmlite", "scipy", "matplotlib", "altair", "vl_convert", "pyarrow", "pandas", "rich", "msgspec"}


@pytest.fixture(scope="module")
def fresh_import() -> tuple[bool, bool, list[str], list[str]]:
    done = subprocess.run([sys.executable, "-c", AFTER_IMPORT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    same, quiet, lazily, everything = json.loads(done.stdout)
    return same, quiet, lazily, everything


def test_importing_loads_no_heavy_package(fresh_import):
    _, _, lazily, _ = fresh_import
    assert "aggbandit" in lazily
    assert not (HEAVY | {"numpy"}).intersection(lazily)


def test_naming_everything_still_loads_no_heavy_package(fresh_import):
    _, _, _, everything = fresh_import
    assert "numpy" in everything
    assert not HEAVY.intersection(everything)


def test_importing_sets_no_global_state(fresh_import):
    same, quiet, _, _ = fresh_import
    assert same
    assert quiet


def test_every_public_name_is_there_and_listed():
    assert dir(ab) == sorted(ab.__all__)
    assert all(getattr(ab, name) is not None for name in ab.__all__)
    assert set(ab._WHERE) | {"__version__"} == set(ab.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'aggbandit' has no attribute 'Agnet'"):
        ab.Agnet  # noqa: B018


def test_the_version_is_the_installed_one():
    from importlib.metadata import version

    assert version("aggbandit") == ab.__version__
