"""The disk: what may be written, and waiting until it is; what is flushed survives a power cut."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

if sys.platform != "win32":
    import fcntl


def flush(descriptor: int) -> None:
    """Wait until a file's content and length are on the disk.

    On macOS only F_FULLFSYNC empties the disk's own cache. On Linux fdatasync leaves out the time of the last change,
    which nobody needs and which takes as long as the rest.
    """
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    elif sys.platform == "win32":
        os.fsync(descriptor)
    else:
        os.fdatasync(descriptor)


def flush_file(path: Path) -> None:
    """Wait until what any process has written to a file is on the disk. Raises OSError."""
    # fsync concerns the file, not the descriptor; Windows wants one that may write.
    descriptor = os.open(path, os.O_RDWR)
    try:
        flush(descriptor)
    finally:
        os.close(descriptor)


def flush_directory(path: Path) -> None:
    """Wait until a directory's names are on the disk, where a directory can be opened at all (not on Windows)."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def writable_or_missing(path: Path) -> bool:
    """Whether a file can be written, if there is one. True if it is made or removed by somebody else meanwhile."""
    return not os.path.exists(path) or os.access(path, os.W_OK) or not os.path.exists(path)


class Meanwhile:
    """A wait for the disk, in a thread, while whoever began it goes on; at once, where no thread can be had.

    One thread of the process does all of them, in order: to start one takes as long as a flush may.
    """

    def __init__(self, wait: Callable[[], None]) -> None:
        self._wait = wait
        self._ended = threading.Event()
        self._failure: Exception | None = None
        _waits.begin(self)

    def run(self) -> None:
        """Wait here."""
        try:
            self._wait()
        except Exception as failure:
            self._failure = failure
        self._ended.set()

    def finish(self) -> None:
        """Wait for its end; raises what it has raised."""
        self._ended.wait()
        if self._failure is not None:
            raise self._failure


class _Waits:
    """What the thread does, and the thread."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[Meanwhile] = SimpleQueue()
        self._starting = threading.Lock()
        self._started = False

    def begin(self, wait: Meanwhile) -> None:
        with self._starting:
            if not self._started:
                try:
                    threading.Thread(target=self._work, name="dpsql: flushing", daemon=True).start()
                    self._started = True
                except RuntimeError:  # too many, or Python is ending
                    pass
        if self._started:
            self._asked.put(wait)
        else:
            wait.run()

    def _work(self) -> None:
        while True:
            self._asked.get().run()


_waits = _Waits()


def _start_over() -> None:
    global _waits
    _waits = _Waits()  # threads do not live in a forked child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)
