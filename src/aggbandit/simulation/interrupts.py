"""Ctrl-C, kept out of what must be done whole or not at all."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Within, a Ctrl-C waits; it is raised on leaving.  Outside the main thread there is nothing to hold."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if before is None:  # a handler set outside Python can be neither called nor put back
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        signal.raise_signal(signal.SIGINT)  # now by the handler that was there
