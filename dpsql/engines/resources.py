"""How much of the machine the database may take: processor threads, and memory before it spills to disk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.words import in_digits

MOST_THREADS: Final = 4096
LEAST_MEMORY: Final = 16_000_000
"""Bytes. With less, DuckDB starts and then fails on the first query, which would be paid for."""
_MOST_MEMORY: Final = 2**60
_MEMORY: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([KMGT])(i?)B", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class EngineResources:
    """What is given to DuckDB; None leaves it its own choice: all processors, and four fifths of the memory.

    threads: 1 to 4096. memory: from 16 MB, written like `8GB` (powers of 1000) or `512MiB` (of 1024).
    """

    threads: int | None = None
    memory: str | None = None

    def __post_init__(self) -> None:
        """Raises Rejected DP903."""
        # Whatever a caller of the Python functions gives may be of any type.
        threads: object = self.threads
        memory: object = self.memory
        if threads is not None and not (type(threads) is int and 1 <= threads <= MOST_THREADS):
            said = repr(threads) if isinstance(threads, str) else in_digits(threads)
            raise _refused(f"{said} is no number of threads", f"give a whole number from 1 to {MOST_THREADS}")
        if memory is not None and not (isinstance(memory, str) and LEAST_MEMORY <= _bytes(memory) <= _MOST_MEMORY):
            raise _refused(
                f"{memory!r} is no amount of memory that a query can run in",
                "write it like  8GB  or  512MiB,  from 16MB",
            )

    @property
    def config(self) -> dict[str, str]:
        """The settings of DuckDB that say so."""
        given = {"threads": self.threads, "memory_limit": self.memory}
        return {name: str(value).strip() for name, value in given.items() if value is not None}


def _bytes(text: str) -> Fraction:
    """How much a text says; 0 if it says nothing."""
    found = _MEMORY.fullmatch(text.strip())
    if found is None:
        return Fraction(0)
    number, unit, binary = found.groups()
    power = "KMGT".index(unit.upper()) + 1
    return Fraction(number) * int((1024 if binary else 1000) ** power)


def _refused(what: str, repair: str) -> Rejected:
    return reject("DP903", what, help=[repair])
