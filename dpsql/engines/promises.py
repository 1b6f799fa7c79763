"""How far the data keeps what the policy promises, measured by the engine: for the custodian alone.

Every answer is one exact number about private rows, without noise; none is a value of a row. Values are compared by the
join's own `=` (a NULL equals nothing), as the facts of the analysis are meant. How often a key
repeats, and the number of rows, are `frequency` and `row_count` of `public_facts.py`.
Every function may raise EngineError (DP901), and CannotOpen for a table that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.engine import Engine
from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.types import DOUBLE, SqlType

Literal = tuple[LiteralValue, SqlType]
"""A value and its type."""

Step = tuple[Sequence[str], str, Sequence[str]]
"""One foreign key: columns of the table at hand, the table that they refer to, and its key."""


def nulls(engine: Engine, table: str, column: str) -> int:
    """Rows where the column is NULL."""
    return _count(engine, f"{engine.table_sql(table)} AS t0 WHERE {_column(engine, 0, column)} IS NULL")


def longer_lists(engine: Engine, table: str, column: str, most: int) -> int:
    """Rows whose list has more than `most` elements."""
    length = engine.dialect.list_length(_column(engine, 0, column))
    return _count(engine, f"{engine.table_sql(table)} AS t0 WHERE {length} > {int(most)}")


def dangling(engine: Engine, table: str, step: Step) -> int:
    """Rows whose columns are all present but occur nowhere in the referenced key."""
    source, joined = _walk(engine, (step,))
    present = " AND ".join(f"{_column(engine, 0, column)} IS NOT NULL" for column in step[0])
    return _count(
        engine,
        f"{engine.table_sql(table)} AS t0 WHERE {present} AND NOT EXISTS (SELECT 1 FROM {source} WHERE {joined})",
    )


def without_id(engine: Engine, table: str, path: Sequence[Step], id_column: str) -> int:
    """Rows that belong to no unit: their id is NULL, or the path from them leads to no row with an id."""
    if not path:
        return nulls(engine, table, id_column)
    source, joined = _walk(engine, path)
    reached = f"SELECT 1 FROM {source} WHERE {joined} AND {_column(engine, len(path), id_column)} IS NOT NULL"
    return _count(engine, f"{engine.table_sql(table)} AS t0 WHERE NOT EXISTS ({reached})")


def rows_per_id(engine: Engine, table: str, path: Sequence[Step], id_column: str) -> int:
    """Most rows of one id, found in `id_column` at the end of the path; 0 if no row has an id."""
    return _over_ids(engine, "MAX(n)", table, path, id_column)


def ids(engine: Engine, table: str, path: Sequence[Step], id_column: str, above: int = 0) -> int:
    """Ids that have more than so many rows."""
    return _over_ids(engine, f"COUNT(*) FILTER (WHERE n > {int(above)})", table, path, id_column)


def owned_rows(engine: Engine, table: str, path: Sequence[Step], id_column: str, above: int = 0) -> int:
    """Rows that have an id, the first so many of each id left out."""
    return _over_ids(engine, f"SUM({engine.dialect.greatest(f'n - {int(above)}', '0')})", table, path, id_column)


def ids_in_more_groups(
    engine: Engine, table: str, path: Sequence[Step], id_column: str, column: str, above: int
) -> int:
    """Ids whose rows have more than so many values of a column of the table; NULL is one."""
    groups = _groups(engine, table, path, id_column, column)
    per_id = f"SELECT COUNT(*) AS k FROM ({groups}) AS g GROUP BY owner"
    return _number(engine, f"SELECT COUNT(*) FROM ({per_id}) AS h WHERE k > {int(above)}")


def shared_values(engine: Engine, table: str, path: Sequence[Step], id_column: str, column: str) -> int:
    """Values of a column of the table, NULL left out, that rows of several ids have."""
    groups = _groups(engine, table, path, id_column, column)
    shared = f"SELECT v0 FROM ({groups}) AS g WHERE v0 IS NOT NULL GROUP BY v0 HAVING COUNT(*) > 1"
    return _number(engine, f"SELECT COUNT(*) FROM ({shared}) AS h")


def rows_above_in_groups(
    engine: Engine, table: str, path: Sequence[Step], id_column: str, column: str, above: int
) -> int:
    """Rows that have an id, the first so many of each id and value of a column left out."""
    over = engine.dialect.greatest(f"n - {int(above)}", "0")
    return _number(
        engine, f"SELECT COALESCE(SUM({over}), 0) FROM ({_groups(engine, table, path, id_column, column)}) AS g"
    )


def outside_bounds(engine: Engine, table: str, column: str, ends: Sequence[Literal | None], double: bool) -> int:
    """Rows whose value lies outside of two ends; None: an open end.

    double: the ends are DOUBLEs, and so is the value to be; NaN lies nowhere.
    """
    d, held = engine.dialect, _column(engine, 0, column)
    held = d.cast(held, DOUBLE) if double else held
    outside = [f"{held} {by} {d.constant(*end)}" for by, end in zip("<>", ends, strict=True) if end is not None]
    real = f" AND NOT {d.is_nan(held)}" if double else ""
    return _count(engine, f"{engine.table_sql(table)} AS t0 WHERE ({' OR '.join(outside)}){real}")


def present(engine: Engine, table: str, column: str) -> int:
    """Rows where the column is not NULL."""
    return _count(engine, f"{engine.table_sql(table)} AS t0 WHERE {_column(engine, 0, column)} IS NOT NULL")


def _over_ids(engine: Engine, aggregate: str, table: str, path: Sequence[Step], id_column: str) -> int:
    """An aggregate of n, the rows of each id; 0 if no row has one."""
    groups = _groups(engine, table, path, id_column)
    return _number(engine, f"SELECT COALESCE({aggregate}, 0) FROM ({groups}) AS g")


def _groups(engine: Engine, table: str, path: Sequence[Step], id_column: str, *columns: str) -> str:
    """The rows of each id (owner), or of each id and each value of columns of the table (v0, …): their number is n."""
    owner = _column(engine, len(path), id_column)
    tables, conditions = [f"{engine.table_sql(table)} AS t0"], [f"{owner} IS NOT NULL"]
    if path:
        source, joined = _walk(engine, path)
        tables, conditions = [*tables, source], [joined, *conditions]
    values = [_column(engine, 0, column) for column in columns]
    shown = "".join(f", {value} AS v{at}" for at, value in enumerate(values))
    rows = f"{', '.join(tables)} WHERE {' AND '.join(conditions)}"
    return f"SELECT {owner} AS owner{shown}, COUNT(*) AS n FROM {rows} GROUP BY {', '.join((owner, *values))}"


def outside_list(engine: Engine, table: str, column: str, literals: Sequence[Literal], null: bool) -> int:
    """Rows whose value is none of the list. null: NULL is in the list, too."""
    value = _column(engine, 0, column)
    d = engine.dialect
    member = d.member(value, [d.constant(*literal) for literal in literals]) if literals else "FALSE"
    return _outside(engine, table, value, member, null)


def outside_column(engine: Engine, table: str, column: str, other: tuple[str, str], null: bool) -> int:
    """Rows whose value stands nowhere in a column of another table. other: (table, column). null: NULL is allowed."""
    value = _column(engine, 0, column)
    match = f"SELECT 1 FROM {engine.table_sql(other[0])} AS t1 WHERE {_column(engine, 1, other[1])} = {value}"
    return _outside(engine, table, value, f"EXISTS ({match})", null)


def _outside(engine: Engine, table: str, value: str, member: str, null: bool) -> int:
    kept = f"({member} OR {value} IS NULL)" if null else f"({member})"
    return _count(engine, f"{engine.table_sql(table)} AS t0 WHERE NOT {kept}")


def _walk(engine: Engine, path: Sequence[Step]) -> tuple[str, str]:
    """The tables t1, t2, … of a path that starts at t0, and the equalities of all its steps."""
    tables, equal = [], []
    for i, (columns, table, references) in enumerate(path):
        tables.append(f"{engine.table_sql(table)} AS t{i + 1}")
        equal += [
            f"{_column(engine, i, mine)} = {_column(engine, i + 1, theirs)}"
            for mine, theirs in zip(columns, references, strict=True)
        ]
    return ", ".join(tables), " AND ".join(equal)


def _column(engine: Engine, place: int, name: str) -> str:
    return f"t{place}.{engine.dialect.identifier(name)}"


def _count(engine: Engine, rows: str) -> int:
    return _number(engine, f"SELECT COUNT(*) FROM {rows}")


def _number(engine: Engine, sql: str) -> int:
    return int(engine.fetch(sql).columns[0][0])
