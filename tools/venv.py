"""Make .venv in the repository root and install aggbandit into it, editable, with the extras asked for.

    python3 tools/venv.py [EXTRA ...]

Needs nothing but the standard library.  Does nothing when that was done before for the same pyproject.toml and
the same Python.  An environment that no longer works (its Python is gone or too old, the folder was moved) is
built again.  pip's own settings apply (PIP_* variables, pip.conf).
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
SAYS_WHERE = "import sys; print('%d.%d' % sys.version_info[:2], sys.prefix)"


def stamp(root: Path, python: str, extras: Sequence[str]) -> str:
    """What an installation depends on, as one digest: the project's metadata, its version, the Python, the extras."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "src/aggbandit/_version.py"):
        digest.update((root / name).read_bytes())
    digest.update(f"{python} {root} {' '.join(sorted(extras))}".encode())
    return digest.hexdigest()


def python_of(venv: Path) -> Path:
    """The interpreter inside a virtual environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def state(venv: Path) -> str:
    """The environment's Python version, or "" where there is none that works, at this place, recent enough."""
    scripts = python_of(venv).parent
    # a moved environment's Python works, but its scripts still call the Python of the old place
    if (scripts / "pip").exists() and str(venv.resolve()).encode() not in (scripts / "pip").read_bytes():
        return ""
    try:
        answer = subprocess.run(
            [python_of(venv), "-c", SAYS_WHERE], capture_output=True, text=True, check=True, timeout=60
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    version, _, prefix = answer.strip().partition(" ")
    major, minor = (int(part) for part in version.split("."))
    return version if (major, minor) >= OLDEST and Path(prefix).resolve() == venv.resolve() else ""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder, so that two makes at once build the environment one after the other."""
    try:
        import fcntl
    except ImportError:  # no such lock on this system
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def create(venv: Path) -> None:
    """A fresh environment with pip in it."""
    if venv.exists():
        print(f"{venv.name} does not work here any more (no Python, too old, or moved): building it again.", flush=True)
        shutil.rmtree(venv)
    made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True)
    if made.returncode != 0:
        shutil.rmtree(venv, ignore_errors=True)
        raise SystemExit(
            f"{made.stdout}{made.stderr}\n{sys.executable} cannot make a virtual environment. "
            "On Debian and Ubuntu: apt-get install python3-venv."
        )


def install(root: Path, extras: Sequence[str]) -> None:
    """Bring root/.venv to where the project's metadata wants it."""
    venv = root / ".venv"
    version = state(venv)
    if not version:
        create(venv)
        version = state(venv)
    mark = venv / f"aggbandit-{'-'.join(sorted(extras)) or 'base'}.stamp"
    wanted = stamp(root, version, extras)
    if mark.exists() and mark.read_text() == wanted:
        return
    target = f"{root}[{','.join(extras)}]" if extras else str(root)
    print(f"Installing aggbandit and what it needs into {venv.name} (once; a few minutes at most) ...", flush=True)
    done = subprocess.run([python_of(venv), "-m", "pip", "install", "--quiet", "--editable", target])
    if done.returncode != 0:
        raise SystemExit("pip could not install the project; its message is above.")
    mark.write_text(wanted)


def main() -> None:
    if sys.version_info < OLDEST:
        raise SystemExit(
            f"aggbandit needs Python {OLDEST[0]}.{OLDEST[1]} or later, but {sys.executable} is "
            f"{sys.version.split()[0]}. Give another one: make PYTHON=/path/to/python3 ..."
        )
    with alone(ROOT):
        install(ROOT, sys.argv[1:])


if __name__ == "__main__":
    main()
