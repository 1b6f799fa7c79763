"""Plan → engine SQL. Printed from our nodes alone; every table fully qualified, every expression total.

`spell` prints an expression and derives its value facts in the same walk, because the spelling (execution types and
guards) depends on them. What engines spell differently is asked of a `Dialect` (dialect.py). Relations
without grouping flatten into one SELECT; anything else becomes a derived table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from dpsql.core.gate.grammar import admitted
from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal
from dpsql.core.ir.short_text import symbol
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import Kind
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Interval, iv_meet
from dpsql.core.printing.conversions import typed_constant
from dpsql.core.printing.dialect import CannotSpell, Dialect
from dpsql.core.value_classes import value
from dpsql.core.values.constants import literal
from dpsql.core.values.meaning import call, meaning
from dpsql.core.values.value import Value, type_range
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject, too_large

if TYPE_CHECKING:
    from dpsql.core.printing.repeated_parts import RepeatedParts
    from dpsql.core.printing.waist import WaistColumns


MOST_TEXT = 50_000
"""Longest printed expression: guards repeat their argument, so nesting multiplies."""

ANYTHING = iv.everything()
EXACTLY: Mapping[str, Callable[[Sequence[Interval]], Interval]] = {
    "add": lambda held: iv.add(*held),
    "sub": lambda held: iv.sub(*held),
    "mul": lambda held: iv.mul(*held),
    "neg": lambda held: iv.neg(*held),
}
"""Operators of which an integer result lies in what they make of the intervals of their arguments."""

TableNames = Callable[[str], str]


@value(frozen=True, slots=True)
class Names:
    """How columns are printed, what is known of their values, and in which dialect they are computed with.

    apart: gets what is to be a column of a projection, where there is one above the columns (waist.py).
    parts: gets what is printed of the columns, where what is read twice is computed once (repeated_parts.py).
    """

    sql: Mapping[int, str]
    env: Mapping[int, Value]
    dialect: Dialect
    apart: WaistColumns | None = None
    parts: RepeatedParts | None = None


@dataclass(slots=True)
class Aliases:
    """Short names for tables, unique in one statement."""

    tables: Iterator[int] = field(default_factory=lambda: count(1))

    def table(self) -> str:
        """The next table alias."""
        return f"t{next(self.tables)}"


def spell(expr: Expr, names: Names) -> tuple[str, Value]:
    """An expression as SQL, with what is known of its value."""
    if type(expr) is Column:
        return names.sql[expr.uid], names.env[expr.uid]
    return _part(expr, names)[:2]


def _part(expr: Expr, names: Names) -> tuple[str, Value, Interval]:
    """And between which ends it lies, as of `Dialect.attempt`."""
    match expr:
        case Column(uid=uid):
            known = names.env[uid]
            return names.sql[uid], known, _of_type(known)
        case Literal(value=value, type=type_):
            known = literal(value, type_)
            sql = names.dialect.constant(value, type_)
            return admitted(sql, (), names.dialect.name, expr.span), known, known.interval
        case Cast(arg=arg, type=target):
            inner, known = spell(arg, names)
            try:
                sql, known = names.dialect.convert(inner, known, target), meaning().cast(known, target)
            except CannotSpell as refusal:
                raise cannot_compute("cast", names.dialect, expr.span, str(refusal)) from None
            sql = admitted(sql, (inner,), names.dialect.name, expr.span)
            return _as_part(sql, known, names), known, _of_type(known)
        case Call(function=name, args=args):
            spelled = [_part(a, names) for a in args]
            values, held = tuple(v for _, v, _ in spelled), [h for _, _, h in spelled]
            result = call(name, values, expr.span)
            if result.is_constant:
                printed = typed_constant(names.dialect, result.constant, result.type)  # type: ignore[arg-type]
                take(1 + len(printed) // 16, expr.span)
                return admitted(printed, (), names.dialect.name, expr.span), result, result.interval
            name = meaning().first_name(name)
            try:
                parts = [s for s, _, _ in spelled]
                printed = names.dialect.call(name, parts, values, result)
            except CannotSpell as refusal:
                raise cannot_compute(name, names.dialect, expr.span, str(refusal)) from None
            take(1 + len(args) + len(printed) // 16, expr.span)
            if (len(printed) if names.parts is None else names.parts.length(printed)) > MOST_TEXT:
                raise too_large(
                    "the expression is too large to be run", expr.span, "use the columns it is made of fewer times"
                )
            tried = names.dialect.attempt(f"({printed})", name, parts, values, held, result)
            sql = admitted(tried, tuple(parts), names.dialect.name, expr.span)
            return _as_part(sql, result, names), result, _held(name, held, result)


def _as_part(sql: str, known: Value, names: Names) -> str:
    return sql if names.parts is None or known.is_constant else names.parts.mark(sql)


def _of_type(known: Value) -> Interval:
    return type_range(known.type) if known.type.kind is Kind.INTEGER else ANYTHING


def _held(name: str, held: Sequence[Interval], result: Value) -> Interval:
    """What exact arithmetic gives of these, where the result is an integer; else what its type holds."""
    exactly = EXACTLY.get(name)
    if exactly is None or result.type.kind is not Kind.INTEGER:
        return _of_type(result)
    return iv_meet(exactly(held), type_range(result.type))


def cannot_compute(function: str, dialect: Dialect, span: Span | None, why: str = "") -> Rejected:
    """Build (not raise) the refusal of a function of which the dialect has no exact spelling."""
    what = f"{symbol(function)} cannot be computed exactly on {dialect.title}"
    help = ["leave it out; or, custodian: add a column that holds it to the table"]
    return reject("DP105", f"{what}: {why}" if why else what, span=span, help=help)


def condition(expr: Expr, names: Names) -> str:
    """A predicate."""
    return spell(expr, names)[0]


@value(frozen=True, slots=True)
class Block:
    """`FROM source WHERE where`, and how its columns are printed.

    simple: the source needs no parentheses in a join. lateral: it reads itself (UNNEST), so it cannot be joined as is.
    """

    source: str
    where: tuple[str, ...]
    names: Names
    simple: bool = True
    lateral: bool = False

    def clause(self) -> str:
        """FROM … WHERE …"""
        where = f"\nWHERE {' AND '.join(self.where)}" if self.where else ""
        return f"FROM {self.source}{where}"

    def filtered(self, *conditions: str) -> Block:
        """The same rows under further conditions."""
        return Block(self.source, (*self.where, *conditions), self.names, self.simple, self.lateral)
