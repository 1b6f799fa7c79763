"""GROUP BY that is no release: plain SQL over public rows, exact and order-free over private ones.

Keys of private rows are those of forms/one_row.py, aggregates those of forms/inner_sums.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor

from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Aggregate, AggregateCall
from dpsql.core.ir.types import BIGINT, Kind
from dpsql.core.printing.dialect import CannotSpell
from dpsql.core.printing.expressions import Block, Names, cannot_compute, spell
from dpsql.core.printing.forms.inner_sums import exact_call, filter_of
from dpsql.core.printing.forms.one_row import key_of_group, one_zero
from dpsql.core.printing.waist import waist
from dpsql.core.printing.windows import require_known
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.words import number


def grouped(node: Aggregate, block: Block, columns: Sequence[Column] | None, private: bool) -> str:
    """A complete SELECT whose columns are named c<number>. Public groups come in the order of their keys."""
    spelled = exact_call if private else _plain_call
    made = [*(k.column.uid for k in node.keys), *(c.column.uid for c in node.calls)]

    def all_of(names: Names) -> list[str]:
        terms = [key_of_group(k.expr, k.column, names, private) for k in node.keys]
        return [*terms, *(spelled(c, names) for c in node.calls)]

    items, block = waist(block, all_of)
    keys, printed = items[: len(node.keys)], dict(zip(made, items, strict=True))
    chosen = list(printed) if columns is None else [c.uid for c in columns]
    listed = [f"{printed[uid]} AS c{uid}" for uid in chosen]
    if not keys:
        return f"SELECT {', '.join(listed) or 'COUNT(*) AS nothing'}\n{block.clause()}"
    terms = ", ".join(keys)
    # In full: what a bare ORDER BY means is a setting of whoever owns the connection.
    ordered = [block.names.dialect.sorted(sql, descending=False, nulls_first=False) for sql in keys]
    order = "" if private else f"\nORDER BY {', '.join(ordered)}"
    return f"SELECT {', '.join(listed) or 'NULL'}\n{block.clause()}\nGROUP BY {terms}{order}"


def _plain_call(c: AggregateCall, names: Names) -> str:
    if c.p is not None:
        return _plain_quantile(c, c.p, names)
    if c.function == "mode":
        return _plain_mode(c, names)
    require_known(c.function, c.span)
    arg, type_ = ("*", BIGINT) if c.arg is None else (spell(c.arg, names)[0], c.arg.type)
    try:
        called = names.dialect.aggregate(c.function, arg, type_, filter_of(c, names), c.distinct)
    except CannotSpell as refusal:
        raise cannot_compute(c.function, names.dialect, c.span, str(refusal)) from None
    return names.dialect.cast(called, c.column.type)


def _plain_mode(c: AggregateCall, names: Names) -> str:
    """Of equally frequent values the first in order: the least, or the greatest where DESC was written."""
    assert c.arg is not None
    if c.arg.type.kind in (Kind.LIST, Kind.INTERVAL, Kind.BLOB):
        raise reject(
            "DP101", f"MODE of {c.arg.type} is not supported", span=c.span,
            help=["compute a number, a date or a text from it first"],
        )  # fmt: skip
    arg = one_zero(spell(c.arg, names)[0], c.arg.type, names)
    term = names.dialect.sorted(arg, descending=c.descending, nulls_first=False)
    return names.dialect.cast(f"MODE() WITHIN GROUP (ORDER BY {term}){filter_of(c, names)}", c.column.type)


_DIGITS = 17


def _plain_quantile(c: AggregateCall, p: Fraction, names: Names) -> str:
    """As written: at or above the share 1 - p where that was asked for, which is another value if p·N is an integer.

    A p that no decimal is, is rounded down: the engine takes the least value with at least the share p below it, and
    for fewer than 10^11 rows that of a p less than 10^-17 lower is the same (p's denominator is at most 10^6).
    """
    assert c.arg is not None
    if c.function == "quantile_cont" and c.column.type.kind is Kind.DATE:
        name, arg = c.written or c.function.upper(), c.arg.name if isinstance(c.arg, Column) else "…"
        raise reject(
            "DP101", f"{name} of dates over released or public rows is not supported", span=c.span,
            label="may lie between two days", help=[f"a day that is there:  QUANTILE_DISC({arg}, {number(p)})"],
        )  # fmt: skip
    share = floor((1 - p if c.descending else p) * 10**_DIGITS)
    term = names.dialect.sorted(spell(c.arg, names)[0], descending=c.descending, nulls_first=False)
    ordered = f"PERCENTILE_{c.function[-4:].upper()}(0.{share:0{_DIGITS}}) WITHIN GROUP (ORDER BY {term})"
    return names.dialect.cast(f"{ordered}{filter_of(c, names)}", c.column.type)
