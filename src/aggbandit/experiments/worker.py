"""A worker process of `aggbandit run SPEC --workers N`: plays cells, one thread, until its input ends.

Speaks lines of JSON: a cell comes in on standard input; its shares played and its outcome go out on what was standard
output.  Whatever else prints (a learner of one's own) goes to standard error.  It stops, saving the state of the
cell under way, when told to and also when its input ends: then the driver is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

TELL_SECONDS = 0.5


def main() -> int:
    """Play what comes in."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal's and a job scheduler's reach all; the driver decides
        signal.signal(number, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    tasks: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    stop = threading.Event()
    threading.Thread(target=_listen, args=(sys.stdin, tasks, stop), daemon=True).start()

    def say(**message: Any) -> None:
        try:
            out.write(json.dumps(message) + "\n")
            out.flush()
        except BrokenPipeError:
            stop.set()

    from aggbandit.experiments.cells import Cell
    from aggbandit.experiments.task import blas_held, carry_out, keep

    said = 0.0

    def tell(cell: str, share: float) -> None:
        nonlocal said
        if time.monotonic() - said >= TELL_SECONDS:
            said = time.monotonic()
            say(cell=cell, share=share)

    with blas_held():
        say(ready=os.getpid())
        while (task := tasks.get()) is not None:
            folder = Path(task["folder"])
            said = time.monotonic()
            outcome = carry_out(
                Cell(*task["cell"]), folder, save_seconds=task["save_seconds"], stop=stop.is_set, tell=tell
            )
            outcome = keep(outcome, folder)
            say(cell=outcome.cell, kind=outcome.kind, message=outcome.message, seconds=outcome.seconds)
    return 0


def _listen(lines: TextIO, tasks: queue.SimpleQueue[dict[str, Any] | None], stop: threading.Event) -> None:
    with contextlib.suppress(ValueError):  # a line that is cut short: the driver was killed while it wrote
        for line in lines:
            tasks.put(json.loads(line))
    stop.set()
    tasks.put(None)


if __name__ == "__main__":
    sys.exit(main())
