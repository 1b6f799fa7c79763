"""Which of DuckDB's optimizers work in a database of ours: those of a list, and nothing beside.

*Claim.* A value, a clip or a failure that a statement has in one row does not come from another row, nor from what
DuckDB's statistics say of the data. *Why.* On the list is only what moves operators: no optimizer there rewrites a
scalar, and none reads how large values are. All others that this DuckDB names are off, those of a later version too. It
is set before anything is attached, and read back. *When it would be false.* One of the list comes to rewrite scalars in
a later version (`versions.py` lets only those in that were tested, or that pass a battery), or DuckDB folds by
statistics elsewhere. *Tested by* tests/engines/test_optimizers.py, tests/engines/test_clips_stay.py,
tests/engines/test_in_lists.py, tests/deep/engines/test_in_lists.py.

What others did. `expression_rewriter` gathers the constants of integer chains, which overflow then, and moves a cast
that can fail to the other side of a comparison: two exclusive conditions are both true. `statistics_propagation` takes
an outer join with an empty side for no rows at all; a sum over it is "at most 0", and is added up in 64 bits without
looking for an overflow, or its clip vanishes. `common_subexpressions` pulls what may fail out of a TRY.
`in_clause` makes a join of a long list, which has to stay for its speed, and computes nothing but constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import duckdb

from dpsql.core.engine import cannot_open

ALLOWED: Final = frozenset({
    "filter_pushdown", "join_order", "unused_columns", "column_lifetime", "build_side_probe_side", "cte_inlining",
    "materialized_cte", "in_clause",
})  # fmt: skip

_NAMES: Final = "SELECT name FROM duckdb_optimizers() ORDER BY name"
_DISABLED: Final = "SELECT current_setting('disabled_optimizers')"


def unwanted(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """The optimizers of this DuckDB that are not on the list. Raises duckdb.Error."""
    return frozenset(str(name) for (name,) in connection.execute(_NAMES).fetchall()) - ALLOWED


def disabled(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """Those that are off in its database. Raises duckdb.Error."""
    ((found,),) = connection.execute(_DISABLED).fetchall()
    return frozenset(name for name in str(found).split(",") if name)


def disable(connection: duckdb.DuckDBPyConnection, names: frozenset[str]) -> None:
    """Turn these off, and all others on, in the whole database: DuckDB knows no smaller scope. Raises duckdb.Error."""
    connection.execute(f"SET disabled_optimizers = '{','.join(sorted(names))}'")


def holds(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether no optimizer works that is not on the list. Raises duckdb.Error."""
    found = unwanted(connection)
    return bool(found) and found <= disabled(connection)


def restricted(config: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """An empty database in memory, started with this: the one place of dpsql where one is.

    Raises CannotOpen (DP006), duckdb.Error.
    """
    connection = duckdb.connect(":memory:", config=dict(config))
    try:
        restrict(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def restrict(connection: duckdb.DuckDBPyConnection) -> None:
    """Turn off what is not on the list, before the database holds anything. Raises CannotOpen (DP006), duckdb.Error."""
    disable(connection, unwanted(connection))
    if not holds(connection):
        raise cannot_open(
            f"DuckDB {duckdb.__version__} does not turn its optimizers off",
            "install a version that dpsql was tested with",
        )
