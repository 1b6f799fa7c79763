"""The disk: what may be written, and waiting until it is; what is flushed survives a power cut."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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
