"""Whether files are still those that were read before: by name, place, size and time, for nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass

DIGITS = 16


@dataclass(frozen=True, slots=True)
class LookedAt:
    """Files of one database. opened: how those looked that are opened once. read: those that each query opens anew."""

    opened: tuple[str, ...]
    read: tuple[str, ...]

    @classmethod
    def of(cls, opened: Iterable[str], read: Iterable[str]) -> LookedAt:
        """Before they are opened."""
        return cls(tuple(map(_look, opened)), tuple(dict.fromkeys(read)))

    @property
    def identity(self) -> str:
        """Equal for equal looks."""
        looks = (*self.opened, *map(_look, self.read))
        return hashlib.sha256("\n".join(looks).encode()).hexdigest()[:DIGITS]


def _look(path: str) -> str:
    """Where a file is, and what its folder says of it: another text once it was written or replaced."""
    try:
        found = os.stat(path)
    except OSError:
        return repr((path, "none"))
    return repr((path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
