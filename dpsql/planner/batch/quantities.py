"""What is measured of rows: how many there are, how many have a value, and sums, each of which is a table of its own.

And what each number that a member asks is made of these, with the weights that the design gives to their errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from fractions import Fraction

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Call, Column, Expr, columns_of, transform, walk
from dpsql.core.ir.nodes import AggregateCall
from dpsql.core.ir.types import Kind, SqlType
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.aggregates.arguments import bound, bounded
from dpsql.frontend.text.lexer import tokens

_ALONE = "run this query by itself, or leave it out (skip_refused)"


@dataclass(frozen=True, slots=True)
class Quantity:
    """What each row adds: 1; 1 where an argument is not NULL; or the argument less `center`.

    arg: None for every row. text: how a query over the same relation writes it, each column clipped to its bounds.
    most: the largest that a row can add, up or down. summed: whether the argument is added up. clips: what is clipped
    to what, for the reader.
    """

    arg: Expr | None = None
    summed: bool = False
    center: Fraction = Fraction(0)
    text: str = field(default="", compare=False)
    most: Fraction = field(default=Fraction(1), compare=False)
    clips: tuple[str, ...] = field(default=(), compare=False)

    @property
    def sql(self) -> str:
        """The aggregate that measures it."""
        if not self.summed:
            return f"COUNT({self.text or '*'})"
        return f"SUM({self.text})" if not self.center else f"SUM(({self.text}) - ({_number(self.center)}))"


ROWS = Quantity()


@dataclass(frozen=True, slots=True)
class LinearNumber:
    """A number that is a sum of quantities over the rows that count, each times a factor.

    unit: in which its error counts in the design: the largest that a row can add to it. nonnegative: no row takes
    anything away from it.
    """

    terms: tuple[tuple[Quantity, Fraction], ...]
    unit: Fraction = Fraction(1)
    nonnegative: bool = True

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """What it is made of."""
        return tuple(q for q, _ in self.terms)


@dataclass(frozen=True, slots=True)
class Mean:
    """center + total/max(1, count), within [lo, hi]. total: of the argument less the center."""

    total: Quantity
    count: Quantity
    lo: Fraction
    hi: Fraction

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """What it is made of."""
        return self.total, self.count

    @property
    def reach(self) -> Fraction:
        """How far a mean may be from the center."""
        return max(self.hi - self.total.center, self.total.center - self.lo)


Form = LinearNumber | Mean


@dataclass(frozen=True, slots=True)
class AskedNumber:
    """One number of a member, as it may be formed. forms: the ways to measure it, the plain one first."""

    forms: tuple[Form, ...]


def weights_of(form: Form) -> dict[Quantity, float]:
    """What the variance of each quantity counts for in the design, in units of its own largest row.

    A mean's error is (error of the total - θ·error of the count)/rows with θ its distance from the center, of which
    nothing is known but that it is within reach: the mean of θ² is a third of the reach's square.
    """
    if isinstance(form, Mean):
        return {form.total: 1.0, form.count: 1 / 3}
    return {q: float(factor * q.most / form.unit) ** 2 for q, factor in form.terms}


def asked_of(call: AggregateCall, source: Source, facts: Facts) -> AskedNumber:
    """What a call of a member asks. Raises Rejected DP101, DP201, DP202, DP302."""
    try:
        return _asked(call, source, facts)
    except Rejected as refusal:
        refusal.diagnostics = tuple(d.at(source) for d in refusal.diagnostics)
        raise


def _asked(call: AggregateCall, source: Source, facts: Facts) -> AskedNumber:
    if call.distinct:
        _require_key(call, source, facts)
    if call.arg is None:
        return AskedNumber((LinearNumber(((ROWS, Fraction(1)),)),))
    arg, text, clips = _clipped(call, source, facts)
    known = facts.value(call.arg)
    values = Quantity(call.arg, text=text) if known.nullable or not known.finite else ROWS
    if call.function == "count":
        return AskedNumber((LinearNumber(((values, Fraction(1)),)),))
    if not columns_of(call.arg):
        raise _refused(f"{call.function.upper()} of a constant", call, "write COUNT(*) and multiply what it answers")
    ends = bounded(replace(call, arg=arg), facts, arg).interval
    assert ends.lo is not None and ends.hi is not None
    lo, hi = Fraction(ends.lo), Fraction(ends.hi)
    center = _middle(lo, hi, call.arg.type)
    plain = Quantity(call.arg, True, Fraction(0), text, max(abs(lo), abs(hi)), clips)
    centred = Quantity(call.arg, True, center, text, max(hi - center, center - lo), clips)
    if not plain.most:
        raise _refused("every value is clipped to 0", call, _ALONE)
    if call.function == "avg":
        return AskedNumber((Mean(centred, values, lo, hi),))
    direct = LinearNumber(((plain, Fraction(1)),), plain.most, lo >= 0)
    both = LinearNumber(((centred, Fraction(1)), (values, center)), plain.most, lo >= 0)
    return AskedNumber((direct, both) if center else (direct,))


def chosen(
    asked: Mapping[Expr | None, tuple[AskedNumber, ...]], objective: Callable[[Mapping[Expr, int]], float]
) -> dict[Expr, int]:
    """Argument → which form its sums take: the second where the objective falls by it. One argument after another."""
    found: dict[Expr, int] = {}
    least = objective(found)
    for arg, each in asked.items():
        if arg is None or all(len(a.forms) < 2 for a in each):
            continue
        tried = objective({**found, arg: 1})
        if tried < least:
            found[arg], least = 1, tried
    return found


def _require_key(call: AggregateCall, source: Source, facts: Facts) -> None:
    """COUNT(DISTINCT x) is COUNT(x) where no two rows have one x."""
    if isinstance(call.arg, Column) and facts.is_key(frozenset({call.arg.uid})):
        return
    name = _argument(call, source)
    raise _refused(
        f"COUNT(DISTINCT {name}) does not add up: rows of two groups may have the same {name}", call,
        f"custodian: if {name} tells every row of this table from all others, declare  primary_key: [{name}]",
        _ALONE,
    )  # fmt: skip


def _middle(lo: Fraction, hi: Fraction, type_: SqlType) -> Fraction:
    """The middle, where an average of no rows lies; of a DECIMAL on its scale."""
    middle = (lo + hi) / 2
    match type_.kind:
        case Kind.INTEGER:
            return middle
        case Kind.DECIMAL:
            return Fraction(math.floor(middle * 10**type_.scale), 10**type_.scale)
    return Fraction(float(middle))


def _argument(call: AggregateCall, source: Source) -> str:
    """What stands between the brackets of a call."""
    start, end = _inside(call, source)
    return source.text[start:end].strip()


def _inside(call: AggregateCall, source: Source) -> tuple[int, int]:
    assert call.span is not None
    depth, start = 0, None
    for token in tokens(source.text[call.span.start :]):
        if start is None and depth == 1 and token.upper != "DISTINCT":
            start = token.start
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if start is not None and depth == 0:
            return call.span.start + start, call.span.start + token.start
    raise AssertionError("a call without brackets")


def _clipped(call: AggregateCall, source: Source, facts: Facts) -> tuple[Expr, str, tuple[str, ...]]:
    """The argument with its columns clipped to their bounds: as an expression, as text, and in words."""
    assert call.arg is not None
    start, end = _inside(call, source)
    text = source.text[start:end]
    if any(token.text in ("?", "$") for token in tokens(text)):
        raise _refused("a parameter in an argument is not kept", call, "write the number itself", _ALONE)

    def ends(column: Column) -> tuple[Expr, Expr] | None:
        hint = facts.columns[column.uid].hint
        if not column.type.numeric or hint is None or hint.bounds is None or not hint.bounds.bounded:
            return None
        assert hint.bounds.lo is not None and hint.bounds.hi is not None
        return bound(hint.bounds.lo, column.type, False), bound(hint.bounds.hi, column.type, True)

    def change(e: Expr) -> Expr:
        own = ends(e) if isinstance(e, Column) else None
        return e if own is None else Call("clip", (e, *own), e.type, e.span)

    columns = {(e.span.start, e.span.end): e for e in walk(call.arg) if isinstance(e, Column) and e.span is not None}
    clips: dict[str, None] = {}
    for (first, last), column in sorted(columns.items(), reverse=True, key=lambda item: item[0]):
        own = ends(column)
        if own is not None:
            low, high = (_number(e.value) for e in own)  # type: ignore[union-attr,arg-type]
            clips[f"{column.name} is clipped to [{low}, {high}]"] = None
            inner = f"CLIP({source.text[first:last]}, {low}, {high})"
            text = text[: first - start] + inner + text[last - start :]
    return transform(call.arg, change), text.strip(), tuple(clips)


def _number(value: int | float | Decimal | Fraction) -> str:
    """A number as a literal of a query."""
    if isinstance(value, Fraction):
        exact = Context(prec=100).divide(Decimal(value.numerator), Decimal(value.denominator))
        return f"{exact:f}" if Fraction(exact) == value else repr(float(value))
    return f"{value:f}" if isinstance(value, Decimal) else repr(value)


def _refused(what: str, call: AggregateCall, *help: str) -> Rejected:
    return reject("DP101", f"a batch measures sums over rows: {what}", span=call.span, help=list(help))
