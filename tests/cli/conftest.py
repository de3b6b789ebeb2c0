"""The command line called as a function, in a folder of its own."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from aggbandit.cli.main import main


class Said(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def aggbandit(capsys, monkeypatch, tmp_path) -> Callable[..., Said]:
    """`aggbandit("run", "--out", ...)` in an empty folder; output is no terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: object) -> Said:
        capsys.readouterr()
        code = main([str(one) for one in arguments])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return call
