"""What was typed, kept for the next time: statements with the literals in them, never answers.

The file is the user's own, mode 0600, in a folder of mode 0700; one JSON string a line. An input that begins with a
space is not kept, nor is anything from files, pipes or `-c`.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import Final, TextIO

from dpsql.diagnostics.errors import reject

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
                file.write(json.dumps(text) + "\n")

    def stop(self) -> None:
        """Keep nothing from now on."""
        self._keeping = False

    def clear(self) -> None:
        """Forget everything, in the file, too. Raises Rejected DP903 if it cannot be written."""
        self._entries.clear()
        if self._path is not None:
            try:
                with _opened(self._path, os.O_TRUNC):
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
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise OSError("not a regular file")
    if path.exists():
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                with contextlib.suppress(ValueError):
                    text = json.loads(line)
                    if isinstance(text, str):
                        found.append(text)
        if not found and path.stat().st_size:
            raise ValueError("a file of something else")
    with _opened(path, os.O_APPEND):
        pass
    if len(found) > MOST:
        found = found[-MOST:]
        with _opened(path, os.O_TRUNC) as file:
            file.writelines(json.dumps(text) + "\n" for text in found)
    return found


def _opened(path: Path, flags: int) -> TextIO:
    """The file, for writing; mode 0600 from the moment it is there. Raises OSError: not a file of our own."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | _CAREFUL | flags, 0o600)
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("not a regular file")
        if found.st_mode & 0o077 and hasattr(os, "fchmod"):
            os.fchmod(number, 0o600)
        return os.fdopen(number, "w", encoding="utf-8")
    except BaseException:
        os.close(number)
        raise


def default_path() -> Path:
    """`dpsql/history` in the user's state directory (XDG)."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return base / "dpsql" / "history"
