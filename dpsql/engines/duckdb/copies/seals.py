"""What the file of prepared tables was when it was written: a hash beside it, compared by whoever opens it.

*Claim.* What is opened is what was written, byte for byte: rows of a unit, units and rows are those that were counted
then. *Why.* The hash is of the whole file, and changes that DuckDB has not yet written into it lie in a file beside it
that a finished copy does not have. *When it would be false.* If somebody who may write to the folder writes the hash,
too: `dpsql policy verify` counts. *Tested by* tests/service/test_prepared.py.

While a file takes the place of another the hashes of both are there, so that no moment has a file without one.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path


def seal_of(path: Path) -> Path:
    """Where a file's hash stands."""
    return path.with_name(path.name + ".sha256")


def log_of(path: Path) -> Path:
    """Where DuckDB writes what is not in the file yet."""
    return path.with_name(path.name + ".wal")


def broken(path: Path) -> bool:
    """Whether a file is another one than was written. Raises nothing."""
    try:
        return log_of(path).exists() or digest(path) not in _lines(path)
    except OSError:
        return True


def digest(path: Path) -> str:
    """The hash of a file; of one that has not changed since, it is remembered."""
    found = os.stat(path)
    return _digest(path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@functools.lru_cache(maxsize=64)
def _digest(path: Path, *look: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seal(path: Path, new: Path) -> None:
    """Let the file that is there, and one that is about to take its place, be opened."""
    _write(path, [*_lines(path)[-2:], digest(new)])


def seal_alone(path: Path) -> None:
    """Let the file that is there be opened, and no other."""
    _write(path, [digest(path)])


def _lines(path: Path) -> list[str]:
    try:
        return seal_of(path).read_text(encoding="ascii").split()
    except (FileNotFoundError, UnicodeDecodeError):
        return []


def _write(path: Path, lines: list[str]) -> None:
    place = seal_of(path)
    new = place.with_name(place.name + ".new")
    with open(new, "w", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, place)
