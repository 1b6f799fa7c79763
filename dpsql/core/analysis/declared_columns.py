"""Facts and hints of a table's columns, from the policy."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.facts import ColumnFact, Hint
from dpsql.core.ir.expressions import Column, Expr, columns_of
from dpsql.core.ir.nodes import Scan
from dpsql.core.ir.public_facts import KeysOf
from dpsql.core.ir.short_text import identifier, qualified
from dpsql.core.ir.types import Kind
from dpsql.core.numbers.interval import Exact, Interval, everything, exact
from dpsql.core.policy.tables import Bound, Table, TableDomain, ValuesDomain
from dpsql.core.policy.tables import Column as Declared
from dpsql.core.values.constants import position
from dpsql.core.values.domains import DateRange, TimestampRange
from dpsql.core.values.key_lists import ListedKeys
from dpsql.core.values.meaning import evaluate
from dpsql.core.values.value import Domain, Value, type_range
from dpsql.diagnostics.diagnostic import Reason
from dpsql.diagnostics.words import number


def column_fact(column: Column, table: Table, scan: Scan, ctx: Context) -> ColumnFact:
    """What is known of a raw column: its type, nullability and keys. Its interval is open; bounds are only a hint."""
    known: dict[object, tuple[Value, Interval | None]] = ctx.policy.worked_out
    named = table.name, column.name, column.type.name
    found = known.get(named)
    if found is None:
        declared = table.column(column.name)
        assert declared is not None
        found = _declared_value(column, table, declared, ctx)
        if not _measured(declared, table):
            known[named] = found
    value, bounds = found
    return ColumnFact(value, Hint(table.name, column.name, table.public, scan.columns[0].uid, bounds))


def _measured(declared: Declared, table: Table) -> bool:
    """Whether keys of a column are those of a table: they are measured, and are others next time."""
    return any(isinstance(c.domain, TableDomain) for c in (declared, *_read_by(declared, table)))


def reads_measured_keys(table: Table) -> bool:
    """Whether keys of any column are."""
    return any(_measured(declared, table) for declared in table.all_columns)


def _declared_value(column: Column, table: Table, declared: Declared, ctx: Context) -> tuple[Value, Interval | None]:
    """What a declaration says of a column's values, and its bounds."""
    bounds = declared_bounds(declared, column)
    if declared.computed is not None and declared.computed.expr is not None:
        return _computed_value(declared.computed.expr, column, table, declared, bounds, ctx), bounds
    value = Value(
        column.type,
        # Only numbers are clipped to declared bounds: what is made of a text or a date has to be clipped in the query.
        everything(_unbounded(column, table, declared)) if column.type.numeric else everything(),
        type_range(column.type),
        declared.is_nullable,
        column.type.kind is not Kind.DOUBLE,
        _domain(declared, column, bounds, ctx),
    )
    return value, bounds


def _computed_value(
    expr: Expr, column: Column, table: Table, declared: Declared, bounds: Interval | None, ctx: Context
) -> Value:
    """What holds for an expression over the table's columns, and what the policy says besides."""
    found = evaluate(expr, values_read(expr, table, ctx))
    interval = found.interval
    if column.type.numeric and not interval.bounded:
        interval = everything(_unbounded(column, table, declared))
    said = declared.domain is not None or bounds is not None
    domain = _domain(declared, column, bounds, ctx) if said else found.domain
    if domain is not None and not said:
        domain = replace(domain, null=domain.null and declared.is_nullable)
    nullable = found.nullable and declared.is_nullable
    return Value(column.type, interval, found.range, nullable, found.finite, domain)


def values_read(expr: Expr, table: Table, ctx: Context) -> dict[int, Value]:
    """What is known of the columns that a computed one reads, by their places in the table."""
    columns, found = tuple(table.columns.values()), {}
    for place in columns_of(expr):
        own = columns[place]
        assert own.sql_type is not None
        found[place] = _declared_value(Column(place, own.name, own.sql_type), table, own, ctx)[0]
    return found


def _read_by(declared: Declared, table: Table) -> tuple[Declared, ...]:
    """The columns that a computed one reads."""
    expr = None if declared.computed is None else declared.computed.expr
    columns = tuple(table.columns.values())
    return () if expr is None else tuple(columns[place] for place in columns_of(expr))


def declared_bounds(declared: Declared, column: Column) -> Interval | None:
    """The bounds that the policy says, as numbers of the column's type; None without any."""
    if declared.bounds is None:
        return None
    low, high = declared.bounds

    def place(end: object) -> Exact | None:
        if end is None:
            return None
        if isinstance(end, Fraction):
            return exact(end)
        if column.type.kind is Kind.TIMESTAMP and isinstance(end, dt.date) and not isinstance(end, dt.datetime):
            end = dt.datetime(end.year, end.month, end.day)
        return position(end, column.type)  # type: ignore[arg-type]

    return Interval(place(low), place(high))


def _unbounded(column: Column, table: Table, declared: Declared) -> Reason:
    where = f"tables.{qualified(table.name)}.columns.{identifier(column.name)}"
    low, high = _example(declared)
    missing = "`bounds` open at one end" if declared.bounds is not None else "no `bounds`"
    return Reason(
        "DP201",
        f"{column.name} has no bounds",
        None,
        f"column with {missing} in the policy: {where}",
        (
            f"custodian: add to {where}:  bounds: [{low}, {high}]",
            f"or, in this query:  CLIP({identifier(column.name)}, {low}, {high})",
        ),
    )


def _example(declared: Declared) -> tuple[object, object]:
    """Bounds to propose: the ends of a listed domain, which is public, and an end that is declared.

    Where nothing is known a word stands: a number would be pasted, and clip every value to a constant that is paid for.
    """
    listed = declared.domain.values if isinstance(declared.domain, ValuesDomain) else ()
    numbers = [v for v in listed if isinstance(v, (int, float, Decimal)) and not isinstance(v, bool)]
    if numbers and len(numbers) == len(listed):
        return min(numbers), max(numbers)
    low, high = declared.bounds or (None, None)
    return _end(low, "lower"), _end(high, "upper")


def _end(end: Bound | None, unknown: str) -> str:
    return unknown if end is None else number(end) if isinstance(end, Fraction) else str(end)


def _domain(declared: Declared, column: Column, bounds: Interval | None, ctx: Context) -> Domain | None:
    """The public keys a column offers: listed, from a public table, booleans, or everything between its bounds."""
    null = declared.is_nullable
    match declared.domain:
        case ValuesDomain(values=values, null=with_null):
            return Domain(values, with_null)
        case TableDomain(table=source, column=name, null=with_null):
            found = ctx.public.key_list(KeysOf(source, (name,), ctx.max_keys))
            if found is None:
                return None
            return Domain(ListedKeys.of(found), with_null)
    if column.type.kind is Kind.BOOLEAN:
        return Domain((False, True), null)
    if bounds is None or bounds.lo is None or bounds.hi is None:
        return None
    match column.type.kind:
        case Kind.INTEGER:
            return Domain(range(-((-bounds.lo) // 1), bounds.hi // 1 + 1), null)
        case Kind.DATE:
            return Domain(DateRange(_day(bounds.lo), _day(bounds.hi)), null)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:  # as the clock of UTC shows it
            return Domain(TimestampRange(_instant(bounds.lo), _instant(bounds.hi)), null)
        case _:
            return None


def _day(at: Exact) -> dt.date:
    return dt.date(1970, 1, 1) + dt.timedelta(days=int(at))


def _instant(at: Exact) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=int(at))
