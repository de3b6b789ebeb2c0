"""What the tests of sweeps share: small specs, and running `aggbandit` as a process of its own."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from aggbandit.experiments.spec import Spec
from aggbandit.experiments.store import Store, StoredCell

SPEC = """
name = "small"
episodes = 300
replicas = 3
seed = [0, 1]
checkpoints = 12
instance = "random:states=3,actions=2,horizon=2"
adversary = "switching:blocks=3"
learner = ["uniform", "po-known", "po-unknown"]
"""

TESTS = Path(__file__).parent


def spec(text: str = SPEC, **changed: str) -> Spec:
    """`SPEC` with some lines replaced: `episodes="10"`; a key that it lacks is put first."""
    lines = text.strip().splitlines()
    for key, value in changed.items():
        kept = [line for line in lines if not line.startswith(f"{key} =")]
        lines = [f"{key} = {value}", *kept]
    return Spec.parse("\n".join(lines), name="small")


def environment() -> dict[str, str]:
    """For processes that import this package and the module slow_learners."""
    import aggbandit

    own = str(Path(aggbandit.__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([own, str(TESTS)]), "PYTHONUNBUFFERED": "1"}


def start(*arguments: str, **keywords: object) -> subprocess.Popen[str]:
    """`aggbandit ARGUMENTS` in a process group of its own."""
    command = [sys.executable, "-m", "aggbandit.cli", *arguments]
    return subprocess.Popen(
        command, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, **keywords,
    )  # fmt: skip


def finish(process: subprocess.Popen[str], timeout: float = 120) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def wait_until(true: object, timeout: float = 60.0) -> None:
    """Ask until it is."""
    until = time.monotonic() + timeout
    while not true():  # type: ignore[operator]
        if time.monotonic() > until:
            raise TimeoutError("it never came true")
        time.sleep(0.02)


def kill_group(process: subprocess.Popen[str]) -> None:
    """kill -9 for a process and its children, whatever is left of them."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def curves(folder: Path) -> dict[str, StoredCell]:
    """Every cell of the store."""
    return {one.cell.id: one for one in Store.open(folder).read_all()}


def assert_same_curves(found: Path, wanted: Path) -> None:
    """Bit for bit, nothing lost, nothing more."""
    mine, theirs = curves(found), curves(wanted)
    assert sorted(mine) == sorted(theirs)
    for cell, one in theirs.items():
        other = mine[cell]
        assert one.cell == other.cell
        for name in ("episodes", "regret", "pseudo_regret", "cost", "comparator"):
            a, b = getattr(one, name), getattr(other, name)
            if a is None:
                assert b is None
            else:
                assert a.dtype == b.dtype
                assert np.array_equal(a.view(np.uint64), b.view(np.uint64)), (one.cell.name, name)


def in_session(process: subprocess.Popen[str]) -> list[int]:
    """Processes that `process` started and that are still there, also after its own end."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == process.pid and state != "Z":
            found.append(int(path.parent.name))
    return found
