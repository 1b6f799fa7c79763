"""What stands at a path: one plain file, as everything that keeps something needs it, or a link, a pipe, a folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
"""For os.open: a link that came since `oddity` looked is not followed (systems that have no such flag follow it)."""


def located(path: str | os.PathLike[str]) -> Path:
    """The absolute path, the links of its folders followed once; its last name stays. Raises ValueError: no file name.

    Whoever keeps this path stays in the folder, wherever a link leads later.
    """
    absolute = Path(path).absolute()
    return Path(os.path.realpath(absolute.parent)) / absolute.name


def oddity(path: str | os.PathLike[str]) -> str | None:
    """What keeps a path from being one plain file of one name, in words; None if it is one, or nothing is there."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    if stat.S_ISLNK(status.st_mode):
        return f"this is a symbolic link, to {os.path.realpath(path)}"
    if not stat.S_ISREG(status.st_mode):
        return "this is a directory, a pipe or a device, not a file"
    if status.st_nlink > 1:
        return "this file has a second name (a hard link), under which it could be written at the same time"
    return None
