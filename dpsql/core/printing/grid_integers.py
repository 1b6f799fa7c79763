"""The argument of a SUM as an integer in grid units; NULL for NULL, NaN and ±∞.

An integer near the argument is a column of the waist: clipped as a number of its own type, then cast. What the price
relies on is the clip of that column alone, which stands above (forms/clip.py): of an INTEGER it reads the argument.
Of a prepared copy it is the stored integer as it is: the engine has looked that all of them are there when it opened
it. It fits 32 bits, or without declared bounds ±2⁶², of which 2⁴⁰ add up in 128; of cells of a quantile ±2⁶⁰.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from dpsql.core.ir.components import Comoment, Factor, OnGrid, ProductSum, QuantileChoice, ValueSum
from dpsql.core.ir.expressions import Call, Expr
from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, INTEGER, Kind, SqlType, decimal
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import Names
from dpsql.core.printing.forms.clip import clipped, within
from dpsql.core.printing.forms.every_row import filled
from dpsql.core.printing.waist import Level, apart, text
from dpsql.core.values.meaning import call, evaluate
from dpsql.core.values.value import Value, type_range
from dpsql.diagnostics.errors import Rejected, reject

LARGEST_POWER = Fraction(2**1000)
"""A power of two that fits a DOUBLE; columns with tiny bounds are scaled up by more, in steps."""

MOST_PLACES = 18
"""Decimal places that are kept of a DECIMAL without bounds: with the 19 digits of 2⁶² they fit DECIMAL(38)."""

MOST_DIGITS = 16
"""Digits of a DECIMAL that is multiplied by a power of ten in 64 bits: with the 2 digits of a 10, DuckDB holds 18."""


def quantized(c: OnGrid, names: Names) -> str:
    """SQL of what a row adds: an integer between the component's ends, or NULL; of every row that counts an integer.

    Of a square or a product at most 2³⁰: y and z are INTEGERs of at most 2³⁰ units, so that y·z and what is added to it
    fit BIGINT. Division truncates: what can be negative is raised by whole steps before, and lowered by them after.
    """
    if not isinstance(c, ProductSum):
        return _clipped(c, names)
    d = names.dialect
    y = d.cast(clipped_column(c, names), BIGINT)
    z = y if c.times is None else d.cast(clipped_column(_factor(c.times, every_row=c.counts_every_row), names), BIGINT)
    product, raised = f"{y} * {z}", 0
    if c.step != 1:
        raised = max(0, -(c.products[0] // c.step))
        halves = c.step // 2 + raised * c.step
        product = d.divide(f"({product} + {halves})", d.cast(str(c.step), BIGINT), BIGINT)
    found = d.cast(f"{product} - {c.shift + raised}", INTEGER)
    # Where y may be another value at each of two places, its square is any product.
    return found if d.computes_apart else clipped(d, c, found, *map(str, c.ends), cast=INTEGER)


def addend(c: ValueSum | ProductSum, names: Names) -> tuple[str, list[str]]:
    """What a SUM adds, and which rows it leaves out: SQL of a number, and conditions."""
    y = None if isinstance(c, ProductSum) else clipped_below(c, names)
    if y is None:
        return quantized(c, names), []
    return y, [within(y, *_ends(names.dialect, c, 0, held_in(c)))]


def clipped_below(c: ValueSum | QuantileChoice, names: Names) -> str | None:
    """`quantized` as a column of the projection below, but for what makes sure that it lies between the ends.

    Of a DOUBLE: what lies beyond them was made one of them before it was rounded. None if it has to be clipped here.
    """
    if c.units is not None or c.counts_every_row or not names.dialect.computes_apart:
        return None
    sql, value = _argument(c, names)
    return _near(c, sql, value, names)[0] if value.type.kind is Kind.DOUBLE else None


def clipped_column(c: OnGrid, names: Names) -> str:
    """`quantized` as a column, where it is read several times."""
    return apart(names, Level.CLIPPED, _clipped(c, names))


def comoment(c: Comoment, names: Names) -> str:
    """SQL of n·Σy·z - Σy·Σz over n rows, in steps; of any other number of rows 0.

    y and z are of at most 2³⁰ units, and n is below 2³², so that all of it fits 128 bits.
    """
    d = names.dialect
    y, z = (d.cast(clipped_column(_factor(f, every_row=True), names), BIGINT) for f in (c, c.times))
    product, first, second = (d.wide(f"COALESCE({d.total(sql, BIGINT)}, 0)") for sql in (f"{y} * {z}", y, z))
    moment = f"{d.wide(str(c.rows))} * {product} - {first} * {second}"
    least = -(c.rows**2 // 4) * (c.hi - c.lo) * (c.times.hi - c.times.lo)
    raised = -(least // c.step)
    steps = d.divide(f"({moment} + {d.wide(str(raised * c.step))})", d.wide(str(c.step)), HUGEINT)
    return f"CASE WHEN COUNT(*) = {c.rows} THEN {steps} - {d.wide(str(raised))} ELSE {d.wide('0')} END"


def _factor(of: Factor | Comoment, *, every_row: bool) -> ValueSum:
    """A factor of a product as what would be added up alone."""
    return ValueSum(of.arg, grid=of.grid, center=of.center, lo=of.lo, hi=of.hi, every_row=every_row)


def uncentered(c: ValueSum) -> ValueSum:
    """A sum of integers, decimals or stored integers whose center is left to be subtracted from the total.

    *Claim.* Σ (y - center) = Σ y - center · n, where n counts the rows with a y. *Why.* Such a y is an integer before
    its center is subtracted; a DOUBLE's is subtracted before it is rounded, halves to even, and stays. *When it would
    be false.* Another n: of rows that the FILTER leaves out, or whose y is NULL. *Tested by*
    tests/core/printing/test_shifted_totals.py, tests/deep/core/printing/test_every_shape.py.
    """
    if c.units is None and c.arg.type.kind is Kind.DOUBLE:
        return c
    return replace(c, lo=c.lo + c.center, hi=c.hi + c.center, center=0)


def counted_rows(c: ValueSum, names: Names) -> str:
    """SQL of what COUNT counts where it counts the rows of a sum: `*`, or what is NULL exactly where `quantized` is."""
    if c.counts_every_row:
        return "*"
    if c.units is not None:
        return text(c.units, names)[0]
    if names.apart is not None and (near := names.apart.near.get(_key(c))) is not None:
        return near
    sql, value = _argument(c, names)
    return sql if value.type.kind is Kind.INTEGER else _near(c, sql, value, names)[0]


def _key(c: OnGrid) -> tuple[object, ...]:
    """What tells columns of integers apart; an argument is held by what is printed."""
    return id(c.arg), c.grid, c.center, c.lo, c.hi


def held_in(c: OnGrid) -> SqlType:
    """The type of `quantized`: what adds up is written in 128 bits where 32 do not hold it."""
    if max(abs(c.lo + c.center), abs(c.hi + c.center), c.magnitude) < 2**31:
        return INTEGER
    return BIGINT if isinstance(c, QuantileChoice) else HUGEINT


def _clipped(c: OnGrid, names: Names) -> str:
    """The clip of a column of integers."""
    if c.units is not None:
        # A copy has computed it already: NULL or between the ends, at which opening it has looked (engines/open.py).
        held = filled(c, text(c.units, names)[0], str(c.lo + c.center))
        return f"({held} - {c.center})" if c.center else held
    return _clip(c, *_argument(c, names), names)


def _clip(c: OnGrid, sql: str, value: Value, names: Names) -> str:
    if value.type.kind is Kind.INTEGER:
        return _from_integer(names.dialect, sql, value, c)
    y, left, type_ = _near(c, sql, value, names)
    cast = type_ if value.type.kind is Kind.DOUBLE else None
    found = clipped(names.dialect, c, y, *_ends(names.dialect, c, left, type_), cast=cast)
    return f"({found} - {left})" if left else found


def _near(c: OnGrid, sql: str, value: Value, names: Names) -> tuple[str, int, SqlType]:
    """A column of integers near the argument, in grid units: what is left to be subtracted of it, and its type."""
    d = names.dialect
    match value.type.kind:
        case Kind.DECIMAL:
            left, units = c.center, _from_decimal(d, sql, value, c)
            type_ = BIGINT if _digits(c, value) <= MOST_DIGITS else held_in(c)
        case Kind.DOUBLE:
            if value.type != DOUBLE:
                # A FLOAT's arithmetic has 24 bits, too few for the ends: its differences may land outside.
                sql = apart(names, Level.TEXTS, d.cast(sql, DOUBLE))
            left, units, type_ = 0, _from_double(d, sql, c), held_in(c)
        case _:
            raise reject("DP203", f"a sum needs a number, not {value.type}", span=c.arg.span)
    near = apart(names, Level.INTEGERS, units)
    if names.apart is not None:
        names.apart.near[_key(c)] = near
    return near, left, type_


def _argument(c: OnGrid, names: Names) -> tuple[str, Value]:
    """What is clipped to the grid's ends, and what is known of it."""
    sql, value = text(_unclipped(c.arg), names)
    if isinstance(c.arg, Call) and c.arg.function == "clip":
        _, low, high = c.arg.args
        of_clip = call("clip", (value, evaluate(low, names.env), evaluate(high, names.env)), c.arg.span).type
        # The grid is that of the clip's type: a CLIP of integers to (0.5, 2.5) makes decimals of them.
        if (of_clip.kind, of_clip.scale) != (value.type.kind, value.type.scale):
            return text(c.arg, names)
    return sql, value


def valid(arg: Expr, names: Names) -> str:
    """SQL that is not NULL exactly where the argument counts: not NULL, and for DOUBLE finite."""
    sql, value = text(_unclipped(arg), names)
    if isinstance(arg, Call) and arg.function == "clip" and value.type.kind is Kind.DOUBLE:
        return f"CASE WHEN {names.dialect.is_finite(sql)} THEN 1 END"
    return sql


def _unclipped(arg: Expr) -> Expr:
    """Without an outermost CLIP: the grid's own clip is at the same bounds, and treats NULL and NaN alike."""
    return arg.args[0] if isinstance(arg, Call) and arg.function == "clip" else arg


def _from_double(d: Dialect, sql: str, c: OnGrid) -> str:
    # Multiplying by a power of two is exact, and both ends are representable, so a value between them lands in
    # [lo, hi] however the subtraction rounds; as does one beyond them by 2⁻²³ units, which is rounded to the end.
    # The common case comes first: CASE looks no further.
    try:
        ends = float(Fraction(c.lo + c.center) * c.grid), float(Fraction(c.hi + c.center) * c.grid)
    except OverflowError:
        raise _too_wide("DOUBLE", c) from None
    low, high = d.constant(ends[0], DOUBLE), d.constant(ends[1], DOUBLE)
    held = held_in(c)
    rounded = d.units_within(sql, _factors(1 / c.grid), c.center, INTEGER if held == INTEGER else BIGINT)
    inside = d.near(sql, *ends) if held == INTEGER else f"{sql} BETWEEN {low} AND {high}"
    units = (
        f"CASE WHEN {inside} THEN {rounded} WHEN NOT {d.is_finite(sql)} THEN NULL "
        f"WHEN {sql} < {low} THEN {c.lo} WHEN {sql} > {high} THEN {c.hi} END"
    )
    return d.wide(units) if held == HUGEINT else units


def _factors(scale: Fraction) -> list[float]:
    """A power of two as a product of those that a DOUBLE can hold."""
    found = []
    while scale > LARGEST_POWER:
        found.append(float(LARGEST_POWER))
        scale /= LARGEST_POWER
    return found if scale == 1 else [*found, float(scale)]


def _from_integer(d: Dialect, sql: str, value: Value, c: OnGrid) -> str:
    low, high = (Fraction(end + c.center) * c.grid for end in (c.lo, c.hi))
    ends = _exactly(low, c), _exactly(high, c)
    if c.grid > 1:
        step = _exactly(c.grid, c)
        reach = max(map(abs, ends)) + step
        if reach > d.largest:  # the ends, or the half added for rounding, would not fit
            raise _too_wide("HUGEINT", c)
        type_ = BIGINT if reach < 2**63 and type_range(value.type).within(type_range(BIGINT)) else HUGEINT
        found = clipped(d, c, _as(d, sql, type_), *(_as(d, x, type_) for x in ends))
        units = d.cast(_rounded(d, found, step, ends, type_), held_in(c))
        return f"({units} - {c.center})" if c.center else units
    if held_in(c) == HUGEINT:
        return clipped(d, c, d.wide(sql), *(d.wide(str(end)) for end in ends))
    # Both ends are whole numbers here: on a grid of ½ they are even. The cast is of a value within them, always.
    units = d.cast(clipped(d, c, sql, *map(str, ends)), held_in(c))
    if c.grid < 1:
        units = f"({units} * {_exactly(1 / c.grid, c)})"
    return f"({units} - {c.center})" if c.center else units


def _as(d: Dialect, value: str | int, type_: SqlType) -> str:
    """A whole number as a BIGINT, or in 128 bits."""
    return d.wide(str(value)) if type_ == HUGEINT else d.cast(str(value), type_)


def _ends(d: Dialect, c: OnGrid, left: int, type_: SqlType) -> tuple[str, str]:
    """The ends of a column, before so much is subtracted of it."""
    low, high = str(c.lo + left), str(c.hi + left)
    return (d.wide(low), d.wide(high)) if type_ == HUGEINT else (low, high)


def _decimal_ends(c: OnGrid, scale: int) -> tuple[int, tuple[int, int]]:
    """Units of the type in a grid unit, and the ends in them."""
    step = _exactly(c.grid * 10**scale, c)
    return step, ((c.lo + c.center) * step, (c.hi + c.center) * step)


def _digits(c: OnGrid, value: Value) -> int:
    """How many digits the ends have, as numbers of the type."""
    if c.lo == c.hi:
        return 1
    scale = value.type.scale
    if held_in(c) == HUGEINT and c.grid == Fraction(1, 10**MOST_PLACES):
        scale = min(scale, MOST_PLACES)
    _, ends = _decimal_ends(c, scale)
    top = max(map(abs, ends))
    if top * 10**scale >= 10**37:
        raise _too_wide(str(value.type), c)
    return max(len(str(top)), scale, 1)


def _from_decimal(d: Dialect, sql: str, value: Value, c: OnGrid) -> str:
    """In 64 bits wherever the digits allow it: in 128 a row costs eight times as much (benchmarks/README.md)."""
    if c.lo == c.hi:  # 10³⁸, by which 38 places would be multiplied, is no DECIMAL
        return f"CASE WHEN {sql} IS NOT NULL THEN {d.cast(str(c.lo + c.center), BIGINT)} END"
    scale, digits = value.type.scale, _digits(c, value)
    if held_in(c) == HUGEINT and c.grid == Fraction(1, 10**MOST_PLACES) and scale > MOST_PLACES:
        scale = MOST_PLACES
        sql = d.cast(sql, decimal(38, scale))  # at most 19 digits stand before the point: it fits, rounded
    step, ends = _decimal_ends(c, scale)
    if digits > MOST_DIGITS:
        return _from_wide_decimal(d, sql, scale, step, ends, c)
    width = value.type.precision
    if width <= MOST_DIGITS and d.holds_digits:  # whatever it holds fits, and is clipped above
        return _rounded(d, _whole(d, sql, width, scale), step, ends, BIGINT)
    held = decimal(max(width, digits), scale)
    low, high = (d.constant(Decimal(f"{end}E-{scale}"), held) for end in ends)
    few = sql
    if width > MOST_DIGITS:
        few, width = d.try_cast(sql, Value(value.type), decimal(digits, scale)), digits
    units = _rounded(d, _whole(d, few, width, scale), step, ends, BIGINT)
    least, most = (end + c.center for end in (c.lo, c.hi))
    return (
        f"CASE WHEN {sql} BETWEEN {low} AND {high} THEN {units} "
        f"WHEN {sql} < {low} THEN {least} WHEN {sql} > {high} THEN {most} END"
    )


def _whole(d: Dialect, sql: str, width: int, scale: int) -> str:
    """A DECIMAL(width, scale) of at most 16 digits times 10^scale, as a BIGINT: exact, and total for all its values.

    Each product has at most 18 digits by its type, so that it cannot overflow; each cast drops only zeros.
    """
    if not scale:
        return d.cast(sql, BIGINT)
    while scale:
        digits = min(scale, MOST_DIGITS + 1 - width)
        scale -= digits
        product = f"{sql} * {d.cast(str(10**digits), decimal(digits + 1, 0))}"
        sql = d.cast(product, decimal(width, scale) if scale else BIGINT)
    return sql


def _from_wide_decimal(d: Dialect, sql: str, scale: int, step: int, ends: tuple[int, int], c: OnGrid) -> str:
    wide = decimal(38, scale)
    low, high = (d.constant(Decimal(f"{end}E-{scale}"), wide) for end in ends)
    found = clipped(d, c, d.cast(sql, wide), low, high)
    whole = d.wide(f"{found} * {d.cast(str(10**scale), decimal(38, 0))}")
    return d.cast(_rounded(d, whole, step, ends, HUGEINT), held_in(c))


def _rounded(d: Dialect, sql: str, step: int, ends: tuple[int, int], type_: SqlType) -> str:
    """Division by `step`, half away from zero, in integer arithmetic, which truncates; of a value beyond [ends], beyond
    them or at them."""
    if step == 1:
        return sql
    half = step // 2
    if ends[0] >= 0 or ends[1] <= 0:  # one sign: the value is written, and so computed, once
        away = f"{sql} {'+' if ends[0] >= 0 else '-'} {half}"
    else:
        away = f"{sql} + CASE WHEN {sql} < 0 THEN -{half} ELSE {half} END"
    return d.divide(f"({away})", _as(d, step, type_), type_)


def _exactly(x: Fraction, c: OnGrid) -> int:
    """The number, which is a whole one if the grid belongs to the type: else sums would leave what is claimed."""
    if x.denominator != 1:
        raise reject("DP904", "the grid of a sum is not that of its type", span=c.arg.span, help=["report the query"])
    return int(x)


def _too_wide(type_: str, c: OnGrid) -> Rejected:
    return reject(
        "DP410", f"the bounds are too wide for {type_}", span=c.arg.span,
        help=["use narrower bounds, or CAST(… AS DOUBLE)"],
    )  # fmt: skip
