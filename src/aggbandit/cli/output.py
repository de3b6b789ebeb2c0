"""What several commands print: progress while playing, and the table with the files after it.

Progress goes to standard error: live bars on a terminal, quiet lines elsewhere.  Results go to standard output.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from aggbandit.reporting import numbers
from aggbandit.reporting.curves import Curves, by_what_they_see, settings_of, with_distinct_labels

if TYPE_CHECKING:
    from aggbandit.experiments.first_look import Plan
    from aggbandit.simulation.run import Progress

PIPED_WIDTH = 120  # columns of a table that is piped or written to a file
QUIET_SECONDS = 10.0  # between two lines where there is no terminal
COMPILING = "compiling for this machine (up to a minute; kept on disk, the next start has it ready)"


class Watch:
    """Tells how far a play is."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, markup=False)
        self._bars: Any = None
        self._task: Any = None
        self._next = 0.0
        self._compilation = Compilation(lambda: self.say(COMPILING))

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn

            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.percentage:>3.0f} %"),
                TextColumn("{task.fields[told]}", style="dim"),
                console=self._console,
                transient=True,
            )
            self._bars.start()
        self._compilation.listen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._compilation.leave()
        if self._bars is not None:
            self._bars.stop()

    def say(self, text: str) -> None:
        """One line, above the bars if there are any."""
        self._console.print(numbers.simple(text), soft_wrap=True)

    def progress(self, progress: Progress) -> None:
        """Called between blocks of episodes."""
        told = ""
        if 0.01 * progress.episodes < progress.done < progress.episodes:
            told = f"{numbers.duration(math.ceil(progress.seconds_left))} left"
        if self._bars is not None:
            if self._task is None:
                self._task = self._bars.add_task(progress.learner, total=progress.episodes, told="")
            self._bars.update(self._task, completed=progress.done, told=numbers.simple(told))
            return
        now = time.monotonic()
        if not progress.done:
            self._next = now + QUIET_SECONDS
        elif told and now >= self._next:
            self._next = now + QUIET_SECONDS
            self.say(f"{progress.learner}: {100 * progress.done // progress.episodes} %, {told}")

    def finished(self, one: Curves) -> None:
        """A learner is through."""
        if self._bars is not None and self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None
        rate = f"{numbers.rate(one.episodes_per_second)} episodes/s"
        self.say(f"{one.label}: played in {numbers.duration(one.seconds)}, {rate}")


class Compilation:
    """Calls `told` once, when numba compiles something rather than loading it from its cache."""

    def __init__(self, told: Any) -> None:
        self._told = told
        self._listener: Any = None

    def listen(self) -> None:
        """From now on."""
        from numba.core import event

        outer = self
        events: Any = event

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                outer.leave()
                outer._told()

            def on_end(self, event: Any) -> None:
                pass

        self._listener = Listener()
        events.register("numba:compile", self._listener)

    def leave(self) -> None:
        """No longer."""
        from numba.core import event

        events: Any = event
        if self._listener is not None:
            events.unregister("numba:compile", self._listener)
            self._listener = None


def times(plan: Plan) -> str:
    """`100 000 episodes × 16 replicas`."""
    return f"{numbers.grouped(plan.episodes)} episodes × {plan.replicas} replica{'s' if plan.replicas != 1 else ''}"


def present(
    plan: Plan | None,
    curves: Sequence[Curves],
    out: Path,
    warnings: Sequence[str],
    *,
    title: str = "",
    specs: Sequence[str] = (),
) -> None:
    """The table on standard output, `report.html` and `regret.pdf` in `out`; `specs` are those that asked for it."""
    from aggbandit._version import __version__
    from aggbandit.reporting import figures, page, tables

    curves = with_distinct_labels(by_what_they_see(curves))
    about = {"aggbandit": __version__}
    if plan is not None:
        about = {
            "episodes": numbers.grouped(plan.episodes),
            "replicas": str(plan.replicas),
            "seed": str(plan.seed),
            **about,
        }
    if specs:
        about = {"spec" if len(specs) == 1 else "specs": ", ".join(specs), **about}
    html = page.report_page(curves, title=title or "Regret report", about=about, warnings=warnings)
    page.write_page(out / "report.html", html)
    figures.write_pdf(out / "regret.pdf", curves)
    for setting, group in settings_of(curves).items():
        print()
        if setting:
            print(numbers.simple(f"{setting}" + (f", {times(plan)}" if plan is not None else "")))
        print_table(tables.terminal_table(group, time=plan is None))
        for note in tables.notes(group):
            print(numbers.simple(note))
    for warning in warnings:
        print(warning)
    print(f"\n{out / 'report.html'}  opens in any browser, offline\n{out / 'regret.pdf'}  for a paper")


def print_table(table: Any) -> None:
    """A rich table on standard output, as wide as the terminal, without blanks at the ends of lines."""
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(file=sys.stdout, highlight=False, markup=False, width=PIPED_WIDTH)
    with console.capture() as capture:
        console.print(table)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    print("\n".join(lines).strip("\n"))  # blank lines within part races


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the examples of an epilog as they are, wraps the description, and breaks no id at its hyphen."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=24, width=min(shutil.get_terminal_size((100, 24)).columns, 100) - 2)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(text, width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else textwrap.fill(text, width, break_on_hyphens=False)


def table(*headings: str, header: bool = True) -> Any:
    """An empty table; its last column wraps, the others do not."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD if header else None, show_header=header, pad_edge=False, padding=(0, 2, 0, 0))
    for position, heading in enumerate(headings, start=1):
        made.add_column(heading, no_wrap=position < len(headings), overflow="fold")
    return made


def add_row(made: Any, *cells: str) -> None:
    """A row of plain text: what is in brackets is no markup."""
    from rich.text import Text

    made.add_row(*(Text(cell) for cell in cells))


def paragraph(text: str) -> None:
    """Each line of the text, wrapped at the width of the terminal, 100 columns at most."""
    width = min(shutil.get_terminal_size((100, 24)).columns, 100)
    for line in text.splitlines():
        print(textwrap.fill(line, width, break_on_hyphens=False))
