"""DESCRIBE, SHOW TABLES and SUMMARIZE → rows of constants: what the policy says, and nothing of any row.

So they are planned, answered and shown like `VALUES (…)`, and cost as little.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dpsql.core.ir.expressions import Column as Output
from dpsql.core.ir.nodes import Values
from dpsql.core.ir.types import VARCHAR, Kind
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, Table
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.note import Note
from dpsql.frontend.bind.from_clause.policy_tables import named
from dpsql.frontend.bind.parameters import Numbering
from dpsql.frontend.bound import BoundQuery
from dpsql.frontend.describing import Describing
from dpsql.frontend.text.quoted_names import quoted
from dpsql.policy.tools.show import declared_of, promises, whose_rows

Row = tuple[str | None, ...]

_COLUMNS: Final = ("column_name", "column_type", "null", "key", "default", "extra")
"""Those of DuckDB, for programs that read them."""
_TABLES: Final = ("database", "schema", "name", "column_names", "column_types", "rows")
_SUMMARY: Final = ("column_name", "column_type", "null", "declared", "statistics")
_NUMBERS: Final = (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE)


def described(asked: Describing, policy: Policy, source: Source) -> BoundQuery:
    """The answer about tables. Raises Rejected DP102."""
    match asked.about:
        case "tables":
            tables = [(t.name, whose_rows(t)) for t in policy.tables.values()]
            return _answer(("name", "rows"), tables, asked, source)
        case "all tables":
            return _answer(_TABLES, [_table(t, policy) for t in policy.tables.values()], asked, source)
    table = named(asked.table, policy, asked.at)
    columns, notes = table.columns.values(), [f"{table.name}: {whose_rows(table)}", *promises(table)]
    if not columns:
        notes.append("columns: those of the data" if table.public else "no columns: only COUNT(*) can be asked")
    rows: list[Row]
    if asked.about == "columns":
        rows = [(c.name, _type(c), _null(c), _key(c, table), None, ", ".join(_extra(c)) or None) for c in columns]
        return _answer(_COLUMNS, rows, asked, source, notes)
    notes.append(
        "this is what the policy says; statistics of a public table are queries that cost nothing" if table.public else
        "this is what the policy says; statistics of private rows are queries that cost: the last column has them"
    )  # fmt: skip
    rows = [(c.name, _type(c), _null(c), ", ".join(_extra(c)) or None, _statistics(c, table)) for c in columns]
    return _answer(_SUMMARY, rows, asked, source, notes)


def columns_of(query: BoundQuery, asked: Describing) -> BoundQuery:
    """The names and types that the rows of a query would have; its tables are not read."""
    rows = [(c.name, c.type.name, "YES", None, None, None) for c in query.columns]
    return _answer(_COLUMNS, rows, asked, query.source)


def _answer(
    names: Sequence[str], rows: Iterable[Row], asked: Describing, source: Source, notes: Iterable[str] = ()
) -> BoundQuery:
    numbering = Numbering()
    columns: tuple[Output, ...] = tuple(numbering.column(name, VARCHAR) for name in names)
    return BoundQuery(Values(columns, tuple(rows), asked.at), columns, source, tuple(map(Note, notes)))


def _table(table: Table, policy: Policy) -> Row:
    columns = table.columns.values()
    names, types = ", ".join(c.name for c in columns), ", ".join(_type(c) or "?" for c in columns)
    return policy.name, "main", table.name, f"[{names}]", f"[{types}]", whose_rows(table)


def _type(column: Column) -> str | None:
    """None: the policy leaves it to the data, and the data are not open."""
    return None if column.sql_type is None else column.sql_type.name


def _null(column: Column) -> str:
    return "YES" if column.is_nullable else "NO"


def _key(column: Column, table: Table) -> str | None:
    if table.primary_key is not None and column.name in table.primary_key.columns:
        return "PRI"
    return "UNI" if any(key.columns == (column.name,) for key in table.unique) else None


def _extra(column: Column) -> list[str]:
    return [*([f"from {column.made_of}"] if column.made_of else []), *declared_of(column)]


def _statistics(column: Column, table: Table) -> str:
    """The query that tells most of a column."""
    x, kind = quoted(column.name), None if column.sql_type is None else column.sql_type.kind
    bounded = column.search_bounds or (column.bounds is not None and None not in column.bounds)
    if column.domain is not None or kind is Kind.BOOLEAN:
        return f"SELECT {x}, COUNT(*) FROM {quoted(table.name)} GROUP BY {x}"
    found = [f"COUNT({x})"]
    if table.public and kind in (*_NUMBERS, Kind.DATE, Kind.TIMESTAMP):
        found += [f"MIN({x})", f"MAX({x})"]
    if kind in _NUMBERS and (bounded or table.public):
        found.append(f"AVG({x})")
    if kind in (*_NUMBERS, Kind.DATE, Kind.TIMESTAMP) and (bounded or table.public):
        found.append(f"MEDIAN({x})")
    return f"SELECT {', '.join(found)} FROM {quoted(table.name)}"
