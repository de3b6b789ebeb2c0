"""`aggbandit`: parses, hands over to a command, and turns what went wrong into one clear line."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from aggbandit._version import __version__
from aggbandit.cli import bench, claims, compare, episode, plan, report, run, show, status
from aggbandit.cli import list as list_command
from aggbandit.errors import AggbanditError

COMMANDS = (run, list_command, show, report, status, compare, episode, claims, plan, bench)
WRONG_INPUT = 2
STOPPED = 130  # what a shell reports for Ctrl-C
READER_GONE = 141  # and for a closed pipe


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 0, 2 for wrong input, 130 after Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show ± or η gets another sign, no traceback
            stream.reconfigure(errors="replace")
    try:
        arguments = parser().parse_args(argv)
    except SystemExit as stop:  # --help, --version, or a usage error that argparse has explained
        return int(stop.code or 0)
    try:
        code: int = arguments.execute(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("\naggbandit: stopped.", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:  # `aggbandit list | head`: nothing may be written at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except AggbanditError as error:
        print(f"aggbandit: {error}", file=sys.stderr)
        return WRONG_INPUT
    except OSError as error:
        where = f" {os.fspath(error.filename)!r}" if error.filename else ""
        print(f"aggbandit: cannot write or read{where}: {error.strerror or error}.", file=sys.stderr)
        return WRONG_INPUT


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(
        prog="aggbandit",
        description="Learning to act when the only score is one total at the end of each episode: "
        "online Markov decision processes with aggregate bandit feedback.",
        epilog="Begin with `aggbandit run`. `aggbandit COMMAND --help` explains a command.",
    )
    top.add_argument("--version", action="version", version=f"aggbandit {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return top


if __name__ == "__main__":
    sys.exit(main())
