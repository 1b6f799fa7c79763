"""Optimizers on a connection of the user's, who agrees that others than ours are off in his database for a while.

*Claim.* While a statement of ours is planned or runs on such a connection, no optimizer works that `optimizers.py` does
not allow; when none of ours runs, the setting is what it was. *Why.* DuckDB knows one setting for the whole database,
and tells nobody whether two connections have the same. So all agreed connections of the process are one group: before
each transaction of ours the setting is looked at, and set if it is weaker; the old values come back when the last of
the group has ended. What the user sets meanwhile stays, and is looked at before the next one. *When it would be false.*
Another thread of the user's sets it while a transaction of ours runs. *Tested by* tests/engines/test_agreed.py.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import NamedTuple

import duckdb

from dpsql.engines.duckdb.locked.optimizers import disable, disabled, holds, unwanted


class _Changed(NamedTuple):
    """A database's setting before and after we changed it; a cursor to put it back with, which nobody interrupts."""

    keeper: duckdb.DuckDBPyConnection
    before: frozenset[str]
    after: frozenset[str]


_LOCK = threading.Lock()
_RUNNING: weakref.WeakSet[object] = weakref.WeakSet()
_CHANGED: list[_Changed] = []


def begin(who: object, connection: duckdb.DuckDBPyConnection) -> None:
    """Before something of `who` is planned on this connection. Raises duckdb.Error: then nothing may be run."""
    with _LOCK:
        _RUNNING.add(who)
        try:
            if not holds(connection):
                keeper, before = connection.cursor(), disabled(connection)
                _CHANGED.append(_Changed(keeper, before, before | unwanted(connection)))
                disable(keeper, _CHANGED[-1].after)
            if not holds(connection):
                raise duckdb.InvalidInputException
        except BaseException:
            _leave(who)
            raise


def end(who: object) -> None:
    """After it. Harmless where nothing was begun."""
    with _LOCK:
        _leave(who)


def _leave(who: object) -> None:
    _RUNNING.discard(who)
    while _CHANGED and not _RUNNING:
        keeper, before, after = _CHANGED.pop()
        with contextlib.suppress(duckdb.Error), keeper:  # where the user has locked it, or closed all
            if disabled(keeper) == after:
                disable(keeper, before)
