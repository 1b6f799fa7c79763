"""What was typed, kept for the next time: statements with the literals in them, never answers.

The file is the user's own, mode 0600, in a folder of mode 0700; one JSON string a line. An input that begins with a
space is not kept, nor is anything from files, pipes or `-c`. Several shells may have it at once: whoever
appends, drops the oldest or clears it holds its lock.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO, Final

from dpsql.diagnostics.errors import reject

if sys.platform != "win32":
    import fcntl

MOST: Final = 5_000
"""Inputs that are kept; older ones are dropped when a shell starts."""
_LONGEST: Final = 100_000
_CAREFUL: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""No link is followed, and a pipe that nobody reads is an error instead of a wait."""


class History:
    """Inputs, oldest first, in a file (or in memory only, if there is no path or the file cannot be used)."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._entries: list[str] = []
        self._keeping = True
        if path is not None:
            try:
                self._entries = _read(path)
            except (OSError, ValueError):
                self._path = None

    @property
    def durable(self) -> bool:
        """Whether inputs are written to a file."""
        return self._path is not None

    def entries(self) -> list[str]:
        """All inputs, oldest first."""
        return list(self._entries)

    def add(self, text: str) -> None:
        """Keep an input, unless it begins with a space, is empty, or repeats the last one."""
        text = text.rstrip()
        if not self._keeping or not text or text[0].isspace() or self._entries[-1:] == [text] or len(text) > _LONGEST:
            return
        self._entries.append(text)
        if self._path is not None:
            with contextlib.suppress(OSError), _opened(self._path, os.O_APPEND) as file:
                _lock(file)
                file.write(_lines([text]))

    def stop(self) -> None:
        """Keep nothing from now on."""
        self._keeping = False

    def clear(self) -> None:
        """Forget everything, in the file, too. Raises Rejected DP903 if it cannot be written."""
        self._entries.clear()
        if self._path is not None:
            try:
                with _opened(self._path) as file:
                    _lock(file)
                    file.truncate(0)
                    return
            except OSError as error:
                reason = (error.strerror or "unknown reason").lower()
            raise reject("DP903", f"the history cannot be cleared: {reason}", help=[f"remove the file  {self._path}"])


def _read(path: Path) -> list[str]:
    """What a file holds; it is made if it is not there, and closed to everybody else.

    Raises OSError; ValueError: it is no history, so it must not be written to.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    found: list[str] = []
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):
            raise OSError("not a regular file")
        with path.open("rb") as known:
            found = _texts(known)
            if not found and os.fstat(known.fileno()).st_size:
                _lock(known)  # another shell may have been writing the first input
                known.seek(0)
                found = _texts(known)
                if not found and os.fstat(known.fileno()).st_size:
                    raise ValueError("a file of something else")
    with _opened(path) as file:
        if len(found) > MOST:
            with contextlib.suppress(BlockingIOError):  # somebody writes to it; the next shell drops them
                _lock(file, wait=False)
                found = _shortened(file)
    return found[-MOST:]


def _shortened(file: BinaryIO) -> list[str]:
    """Drop the oldest inputs of a file whose lock is held; what is left.

    They are written over, and then the end is cut off: whatever stops this, nothing is lost that was to be kept.
    """
    kept = _texts(file)[-MOST:]
    lines = _lines(kept)
    file.seek(0)
    file.write(lines)
    file.truncate(len(lines))
    return kept


def _texts(file: BinaryIO) -> list[str]:
    """The inputs of a file, from where it is read to its end. Lines that are none are left out."""
    found: list[str] = []
    for line in file:
        with contextlib.suppress(ValueError):
            text = json.loads(line.decode(errors="replace"))
            if isinstance(text, str):
                found.append(text)
    return found


def _lines(texts: list[str]) -> bytes:
    return "".join(json.dumps(text) + "\n" for text in texts).encode()


def _lock(file: BinaryIO, *, wait: bool = True) -> None:
    """Hold the lock until the file is closed, which writes what is left to write.

    Raises BlockingIOError: somebody else holds it.

    Where there are no locks (on Windows, on some network file systems) nobody is kept out.
    """
    if sys.platform != "win32":
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise
        except OSError:
            return


def _opened(path: Path, flags: int = 0) -> BinaryIO:
    """The file, to read and to write; mode 0600 from the moment it is there. Raises OSError: not a file of our own."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | _CAREFUL | flags, 0o600)
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("not a regular file")
        if found.st_mode & 0o077 and hasattr(os, "fchmod"):
            os.fchmod(number, 0o600)
        return os.fdopen(number, "r+b")
    except BaseException:
        os.close(number)
        raise


def default_path() -> Path:
    """`dpsql/history` in the user's state directory (XDG)."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return base / "dpsql" / "history"
