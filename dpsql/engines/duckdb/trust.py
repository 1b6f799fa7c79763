"""When the optimizer `statistics_propagation` may work: for plain statements over prepared copies, and nothing beside.

*Claim.* No statement that joins otherwise than INNER, reads a subquery or anything but a copy, is planned while it is
on. *Why.* DuckDB knows one setting for the whole database, so that whoever runs another statement turns it off before,
and it stays off until the last of these has ended; a plain one turns it on only while none of them runs. What is plain
is told by the text alone, word by word: a word too much, also in a literal, and it is not. *When it would be false.* A
copy that is a view of the user's (they are tables that dpsql wrote), or another way to write an outer join. *Tested by*
tests/engines/test_trust.py, tests/engines/test_clips_stay.py.

Sums over joins of prepared tables take three times as long without it.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Collection, Iterator
from typing import Final

import duckdb

from dpsql.engines.duckdb.lockdown import NOT_TRUSTED

_NOT_PLAIN: Final = re.compile(
    r"\b(LEFT|RIGHT|FULL|OUTER|SEMI|ANTI|ASOF|POSITIONAL|NATURAL|LATERAL|CROSS|EXISTS|ANY|ALL|WITH|UNION|INTERSECT|EXCEPT"
    r"|UNNEST|PIVOT|UNPIVOT|VALUES|TABLE|OVER)\b",
    re.IGNORECASE,
)
_READ: Final = re.compile(r'\b(?:FROM|JOIN)\s+((?:"(?:[^"]|"")*"\.?)+) AS t\d+(?=\n|$| ON )', re.IGNORECASE)
_READS: Final = re.compile(r"\b(?:FROM|JOIN)\b", re.IGNORECASE)


def is_plain(sql: str, copies: Collection[str]) -> bool:
    """Whether a statement is one SELECT over INNER joins of copies. copies: how they are written."""
    if _NOT_PLAIN.search(sql) or len(re.findall(r"\bSELECT\b", sql, re.IGNORECASE)) != 1:
        return False
    read = _READ.findall(sql)
    return bool(read) and len(read) == len(_READS.findall(sql)) and all(table in copies for table in read)


class Trust:
    """Turns the optimizer of one database on and off. Of all connections to it, for any threads."""

    def __init__(self, copies: Collection[str]) -> None:
        """copies: how prepared tables are written in statements; none: it is off for good."""
        self._copies = frozenset(copies)
        self._lock = threading.Lock()
        self._others, self._on = 0, False

    def allow(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Before the connection is locked: let this one setting be changed after that. DuckDB 1 cannot."""
        if self._copies:
            with contextlib.suppress(duckdb.Error):
                connection.execute("SET allowed_configs = ['disabled_optimizers']")

    @contextlib.contextmanager
    def planned(self, connection: duckdb.DuckDBPyConnection, sql: str) -> Iterator[None]:
        """While a statement is planned and run. Raises duckdb.Error where it cannot be turned off: nothing is run."""
        if not self._copies:
            yield
            return
        if is_plain(sql, self._copies):
            with self._lock:
                if not self._others and not self._on:
                    with contextlib.suppress(duckdb.Error):  # a version that keeps it locked
                        connection.execute("SET disabled_optimizers = ''")
                        self._on = True
            yield
            return
        with self._lock:
            if self._on:
                connection.execute(f"SET disabled_optimizers = '{NOT_TRUSTED}'")
                self._on = False
            self._others += 1
        try:
            yield
        finally:
            with self._lock:
                self._others -= 1
