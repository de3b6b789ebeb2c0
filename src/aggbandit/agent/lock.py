"""One agent a file: a lock that the operating system lets go when its holder ends, however it ends."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from aggbandit.agent.errors import InUseError, NotDurableError


class FileLock:
    """Holds `<path>.lock` from construction to `release`."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".lock")
        try:
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise NotDurableError(
                f"{path} cannot be made or opened: {error.strerror}. Name a file in a folder that is there and may be "
                "written to."
            ) from error
        try:
            _lock(self._handle)
        except OSError as error:
            holder = self._holder()
            os.close(self._handle)
            raise InUseError(
                f"{path} is in use by {holder}. One agent at a time may hold a file: close the other one, share it "
                "among threads of one process, or put it behind a service."
            ) from error
        with suppress(OSError):  # on a full disk the holder stays unnamed
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0) if hasattr(os, "pwrite") else None

    def _holder(self) -> str:
        try:
            pid = int(os.read(self._handle, 32))
        except (OSError, ValueError):
            return "another process"
        return "another agent in this process" if pid == os.getpid() else f"another process (pid {pid})"

    def release(self) -> None:
        """Let others have the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


if os.name == "nt":  # pragma: no cover
    import msvcrt

    def _lock(handle: int) -> None:
        os.lseek(handle, 1 << 30, os.SEEK_SET)  # a byte far beyond the pid, which others may then still read
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]

else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
