"""The argument of a SUM as an integer in grid units, clipped inside the engine; NULL for NULL, NaN and ±∞.

The printed expression lands in [lo, hi] whatever the row holds: that alone is what the sensitivity relies on
(semantics.md §6). It fits INTEGER, which DuckDB adds fastest.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from dpsql.diagnostics.errors import Rejected, reject
from dpsql.functions.value import Value
from dpsql.plan.components import Component
from dpsql.plan.expr import Call, Expr
from dpsql.sql.emit import Names, constant, spell
from dpsql.types import DOUBLE, HUGEINT, Kind, decimal

LARGEST_POWER = Fraction(2**1000)
"""A power of two that fits a DOUBLE; columns with tiny bounds are scaled up by more, in steps."""


def quantized(c: Component, names: Names) -> str:
    """SQL of what a row adds: an integer between the component's ends, or NULL.

    Of a square at most 2³⁰: y is an INTEGER of at most 2³⁰ units, so that y² + step/2 fits BIGINT.
    """
    if not c.squared:
        return _units(c, names)
    y = f"CAST({_units(c, names)} AS BIGINT)"
    square = f"{y} * {y}" if c.step == 1 else f"({y} * {y} + {c.step // 2}) // CAST({c.step} AS BIGINT)"
    return f"CAST({square} - {c.shift} AS INTEGER)"


def _units(c: Component, names: Names) -> str:
    """The argument in grid units, an integer in [c.lo, c.hi], or NULL."""
    assert c.arg is not None
    sql, value = spell(_unclipped(c.arg), names)
    match value.type.kind:
        case Kind.INTEGER:
            return _from_integer(sql, c)
        case Kind.DECIMAL:
            return _from_decimal(sql, value, c)
        case Kind.DOUBLE:
            # A FLOAT's arithmetic has 24 bits, too few for the ends: its differences may land outside.
            return _from_double(sql if value.type == DOUBLE else f"CAST({sql} AS DOUBLE)", c)
        case _:
            raise reject("DP203", f"a sum needs a number, not {value.type}", span=c.arg.span)


def valid(arg: Expr, names: Names) -> str:
    """SQL that is not NULL exactly where the argument counts: not NULL, and for DOUBLE finite."""
    sql, value = spell(_unclipped(arg), names)
    if isinstance(arg, Call) and arg.function == "clip" and value.type.kind is Kind.DOUBLE:
        return f"CASE WHEN isfinite({sql}) THEN 1 END"
    return sql


def _unclipped(arg: Expr) -> Expr:
    """Without an outermost CLIP: the grid's own clip is at the same bounds, and treats NULL and NaN alike."""
    return arg.args[0] if isinstance(arg, Call) and arg.function == "clip" else arg


def _from_double(sql: str, c: Component) -> str:
    # Multiplying by a power of two is exact, and both ends are representable, so a value between them lands in
    # [lo, hi] however the subtraction rounds. The common case comes first: CASE looks no further. TRY_CAST, because
    # no expression may rely on its guard being looked at first.
    low, high = (constant(float(Fraction(end + c.center) * c.grid), DOUBLE) for end in (c.lo, c.hi))
    scaled = _scaled(sql, 1 / c.grid)
    if c.center:
        scaled = f"{scaled} - {c.center}"
    return (
        f"CASE WHEN {sql} BETWEEN {low} AND {high} THEN TRY_CAST({scaled} AS INTEGER) "
        f"WHEN NOT isfinite({sql}) THEN NULL WHEN {sql} < {low} THEN {c.lo} WHEN {sql} > {high} THEN {c.hi} END"
    )


def _scaled(sql: str, scale: Fraction) -> str:
    """The product with a power of two, in steps that a DOUBLE can hold."""
    while scale > LARGEST_POWER:
        sql, scale = f"{sql} * {constant(float(LARGEST_POWER), DOUBLE)}", scale / LARGEST_POWER
    return sql if scale == 1 else f"{sql} * {constant(float(scale), DOUBLE)}"


def _from_integer(sql: str, c: Component) -> str:
    low, high = (Fraction(end + c.center) * c.grid for end in (c.lo, c.hi))
    if c.grid > 1:
        if max(abs(low), abs(high)) + c.grid >= 2**127:  # the ends, or the half added for rounding, would not fit
            raise _too_wide("HUGEINT", c)
        clipped = _within(f"CAST({sql} AS HUGEINT)", *(f"CAST({int(x)} AS HUGEINT)" for x in (low, high)))
        units = _rounded(clipped, int(c.grid))
        return f"({units} - {c.center})" if c.center else units
    # Both ends are whole numbers here: on a grid of ½ they are even. The cast is of a value within them, always.
    ends = int(low), int(high)
    units = f"CAST({_within(sql, *map(str, ends))} AS INTEGER)"
    if c.grid < 1:
        units = f"({units} * {int(1 / c.grid)})"
    return f"({units} - {c.center})" if c.center else units


def _from_decimal(sql: str, value: Value, c: Component) -> str:
    scale = value.type.scale
    low, high = (Fraction(end + c.center) * c.grid for end in (c.lo, c.hi))
    top = max(abs(low), abs(high)) * 10 ** (2 * scale)
    if top >= 10**37:
        raise _too_wide(str(value.type), c)
    wide = decimal(38, scale)
    ends = [constant(_exact(x, scale), wide) for x in (low, high)]
    clipped = _within(f"CAST({sql} AS {wide})", *ends)
    whole = f"CAST({clipped} * CAST({10**scale} AS DECIMAL(38,0)) AS HUGEINT)"
    step = int(c.grid * 10**scale)
    units = f"CAST({whole} AS INTEGER)" if step == 1 else _rounded(whole, step)
    return f"({units} - {c.center})" if c.center else units


def _within(sql: str, low: str, high: str) -> str:
    """The value clipped to [low, high]; the common case first. NULL stays NULL."""
    inside = f"WHEN {sql} BETWEEN {low} AND {high} THEN {sql}"
    return f"CASE {inside} WHEN {sql} < {low} THEN {low} WHEN {sql} > {high} THEN {high} END"


def _rounded(sql: str, step: int) -> str:
    """Division by `step`, half away from zero, in integer arithmetic (`//` truncates)."""
    half = step // 2
    away = f"({sql}) + CASE WHEN ({sql}) < 0 THEN -{half} ELSE {half} END"
    return f"CAST(({away}) // CAST({step} AS {HUGEINT}) AS INTEGER)"


def _too_wide(type_: str, c: Component) -> Rejected:
    return reject(
        "DP410", f"the bounds are too wide for {type_}", span=None if c.arg is None else c.arg.span,
        help=["use narrower bounds, or CAST(… AS DOUBLE)"],
    )  # fmt: skip


def _exact(x: Fraction, scale: int) -> Decimal:
    return Decimal(int(x * 10**scale)).scaleb(-scale)
