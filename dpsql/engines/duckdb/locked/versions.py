"""Which DuckDB may hold data: 2.0.1 and later patches of 2.0.

*Claim.* No data is opened in a DuckDB that nobody tested, unless it passes the battery, and that is said. *Why.* What a
version does to expressions is not in its release notes. In 1.5 `TRY(COALESCE(y + 1, 0))` ends the process where y
overflows, and casts are inverted in many more places; 2.0.0 leaves out clips. *When it would be false.* A patch that
the battery does not see through. *Tested by* tests/engines/test_versions.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

import duckdb

from dpsql.core.engine import cannot_open
from dpsql.diagnostics.note import Note, Rank
from dpsql.engines.duckdb.locked.battery import broken
from dpsql.engines.duckdb.locked.optimizers import restricted

TESTED: Final = ("2.0.1",)
"""The versions that all tests have run with."""
_SUPPORTED: Final = re.compile(r"2\.0\.[1-9]\d*")
_WANTED: Final = "duckdb>=2.0.1,<2.1"


def require_version() -> None:
    """Refuse a DuckDB that is not known to compute what a query says. Raises CannotOpen (DP006)."""
    version = str(duckdb.__version__)
    if _SUPPORTED.fullmatch(version) is None:
        raise cannot_open(
            f"DuckDB {version} is installed, and dpsql needs {_WANTED}: others change what some queries compute",
            f"pip install '{_WANTED}'",
            "where something else needs that version, give dpsql an environment of its own, or ask a server of it",
        )
    if version not in TESTED:
        _passes(version)


@cache
def _passes(version: str) -> None:
    """Run the battery, once in a process. Raises CannotOpen (DP006)."""
    connection, found = restricted({}), True
    try:
        found = bool(broken(connection))
    except duckdb.Error:
        pass
    finally:
        connection.close()
    if found:
        raise cannot_open(
            f"DuckDB {version} computes something else than queries say, as a look at it on opening shows",
            f"pip install 'duckdb=={TESTED[-1]}'",
        )


def untested() -> Iterator[Note]:
    """What is to be said of a version that is let in and that nobody tested."""
    version = str(duckdb.__version__)
    if version not in TESTED:
        passed = f"{version} passed the look at it on opening alone"
        yield Note(f"dpsql was tested with DuckDB {', '.join(TESTED)}; {passed}", Rank.SOURCE)
