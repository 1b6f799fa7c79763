"""Interval arithmetic, a whole column at a time: where a function's value lies if its arguments lie in their intervals.

Ends are rounded outwards; NaN stands for an interval that is not known. Conditions are numbers, too: [1, 1] is true,
[0, 0] is not, [0, 1] may be either. Whatever has no rule here takes the one that bounds are derived with, row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsql.core.noise.integer_columns import Floats
from dpsql.core.numbers.interval import Exact, Interval
from dpsql.core.values.value import Value, type_range
from dpsql.functions.registry import REGISTRY

Flags = NDArray[np.bool_]
Codes = NDArray[np.int8]

FINE, ZERO, MANY, UNSETTLED, OPEN, LOST, ELSEWHERE = range(7)
WHY = {
    ZERO: "denominator may be 0",
    MANY: "it is made of too many noisy numbers",
    UNSETTLED: "noise decides whether it is NULL",
    OPEN: "the noisy numbers allow values without a bound",
    LOST: "its rows could not be followed",
}
"""Why a single number has no interval. ELSEWHERE: the column's other part says it."""
_EXACT = float(1 << 53)
_TIES = 2.0**-45


@dataclass(frozen=True, slots=True)
class Bounds:
    """Row by row. missing: it is NULL, without noise. why: one of the codes, where the ends are NaN."""

    low: Floats
    high: Floats
    missing: Flags
    why: Codes

    @classmethod
    def of(cls, low: Floats, high: Floats, missing: Flags, why: Codes | None = None) -> Bounds:
        """What is not finite is not known."""
        code = np.zeros(len(low), dtype=np.int8) if why is None else why
        bad = ~(np.isfinite(low) & np.isfinite(high)) & ~missing
        code = np.where(bad & (code == FINE), OPEN, np.where(bad, code, FINE)).astype(np.int8)
        return cls(np.where(bad | missing, np.nan, low), np.where(bad | missing, np.nan, high), missing, code)

    def __len__(self) -> int:
        return len(self.low)

    def replaced(self, rows: NDArray[np.intp], by: Bounds) -> Bounds:
        """With those of some rows replaced."""
        found = Bounds(self.low.copy(), self.high.copy(), self.missing.copy(), self.why.copy())
        found.low[rows], found.high[rows] = by.low, by.high
        found.missing[rows], found.why[rows] = by.missing, by.why
        return found


def enclosed(function: str, values: Sequence[Value], args: Sequence[Bounds], nonnegative: Sequence[bool]) -> Bounds:
    """A function's value. values: what else is known of the arguments. nonnegative: which of them, without noise."""
    if function in ("case", "if"):
        return _chosen(args)
    if function in _CONDITIONS:
        return _CONDITIONS[function](args)
    if function in ("greatest", "least"):
        return _extreme(args, function == "greatest")
    missing = np.any([a.missing for a in args], axis=0)
    why = _first_reason(args)
    with np.errstate(all="ignore"):
        match function:
            case "div" | "intdiv":
                a, b = args
                zero = (b.low <= 0) if nonnegative[1] else (b.low <= 0) & (b.high >= 0)
                why = np.where((why == FINE) & zero, ZERO, why)
                low, high = _hull([a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high])
                low, high = np.where(zero, np.nan, low), np.where(zero, np.nan, high)
                if function == "intdiv":
                    low, high = np.trunc(low - np.abs(low) * _TIES), np.trunc(high + np.abs(high) * _TIES)
            case "mul":
                a, b = args
                low, high = _hull([a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high])
            case "add":
                low, high = _out(args[0].low + args[1].low, args[0].high + args[1].high)
            case "sub":
                low, high = _out(args[0].low - args[1].high, args[0].high - args[1].low)
            case "neg":
                low, high = -args[0].high, -args[0].low
            case "nullif":
                low, high, missing = args[0].low, args[0].high, args[0].missing
            case "abs":
                a = args[0]
                high = np.maximum(-a.low, a.high)
                low = np.where((a.low <= 0) & (a.high >= 0), 0.0, np.minimum(np.abs(a.low), np.abs(a.high)))
            case "round":
                places = values[1].constant if len(values) > 1 else 0
                return rounded(args[0], places if isinstance(places, int) else 0)
            case "floor" | "ceil" | "trunc":
                a, step = args[0], {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}[function]
                low, high = step(a.low - np.abs(a.low) * _TIES), step(a.high + np.abs(a.high) * _TIES)
            case "sqrt" | "cbrt" | "ln" | "log10" | "log2" | "exp":
                a, rises = args[0], _RISING[function]
                inside = np.maximum(a.low, 0.0) if function in ("sqrt", "ln", "log10", "log2") else a.low
                low, high = rises(inside), rises(a.high)
                low, high = low - np.abs(low) * _TIES, high + np.abs(high) * _TIES
            case _:
                low, high, why = _by_rule(function, values, args, missing, why)
    return Bounds.of(low, high, missing, why)


_RISING: dict[str, Callable[[Floats], Floats]] = {
    "sqrt": np.sqrt,
    "cbrt": np.cbrt,
    "ln": np.log,
    "log10": np.log10,
    "log2": np.log2,
    "exp": np.exp,
}
"""Functions that never fall, and are right but for the last digits; NULL below 0 where that is no argument."""


def rounded(arg: Bounds, places: int | None) -> Bounds:
    """Rounded to decimal places, whichever way ties go; None: as it is."""
    if places is None:
        return arg
    by = 10.0**places
    with np.errstate(all="ignore"):
        low, high = arg.low * by, arg.high * by
        low = _half_away(low - np.maximum(np.abs(low), 1.0) * _TIES) / by
        high = _half_away(high + np.maximum(np.abs(high), 1.0) * _TIES) / by
    return Bounds.of(low, high, arg.missing, arg.why)


# --- numbers ---------------------------------------------------------------------------------------------------------


def _half_away(x: Floats) -> Floats:
    found: Floats = np.copysign(np.floor(np.abs(x) + 0.5), x)
    return found


def _out(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Outwards by a rounding, but for whole numbers, whose sums and products are exact."""

    def moved(x: Floats, to: float) -> Floats:
        return np.where((x == np.rint(x)) & (np.abs(x) < _EXACT), x, np.nextafter(x, to))

    return moved(low, -np.inf), moved(high, np.inf)


def _hull(ends: Sequence[Floats]) -> tuple[Floats, Floats]:
    whole = np.stack(ends)
    return _out(whole.min(axis=0), whole.max(axis=0))


def _first_reason(args: Sequence[Bounds]) -> Codes:
    why = np.zeros(len(args[0]), dtype=np.int8)
    for a in args:
        why = np.where(why == FINE, a.why, why)
    return why.astype(np.int8)


def _extreme(args: Sequence[Bounds], largest: bool) -> Bounds:
    """NULL is left out."""
    choose, nothing = (np.maximum, -np.inf) if largest else (np.minimum, np.inf)
    low, high = (np.full(len(args[0]), nothing) for _ in range(2))
    for a in args:
        low = choose(low, np.where(a.missing, nothing, a.low))
        high = choose(high, np.where(a.missing, nothing, a.high))
    return Bounds.of(low, high, np.all([a.missing for a in args], axis=0), _first_reason(args))


def _by_rule(
    function: str, values: Sequence[Value], args: Sequence[Bounds], missing: Flags, why: Codes
) -> tuple[Floats, Floats, Codes]:
    rule = REGISTRY[function].interval
    low, high = np.full(len(missing), np.nan), np.full(len(missing), np.nan)
    known = ~missing & np.all([np.isfinite(a.low) | v.is_constant for a, v in zip(args, values, strict=True)], axis=0)
    for row in np.flatnonzero(known).tolist():
        given = [
            v if v.is_constant else _value(v, float(a.low[row]), float(a.high[row]))
            for a, v in zip(args, values, strict=True)
        ]
        found = rule(given)
        if found.lo is not None and found.hi is not None:
            low[row], high[row] = _below(found.lo), _above(found.hi)
    return low, high, why


def _value(known: Value, low: float, high: float) -> Value:
    return Value(known.type, Interval(Fraction(low), Fraction(high)), type_range(known.type), False, True)


def _below(x: Exact) -> float:
    near = float(x)
    return near if near <= x else math.nextafter(near, -math.inf)


def _above(x: Exact) -> float:
    return -_below(-x)


# --- conditions ------------------------------------------------------------------------------------------------------


def _chosen(args: Sequence[Bounds]) -> Bounds:
    """CASE: the hull of all branches that the conditions allow."""
    height = len(args[0])
    low, high = np.full(height, np.inf), np.full(height, -np.inf)
    why, reached, lost = (
        np.zeros(height, dtype=np.int8),
        np.ones(height, dtype=np.bool_),
        np.zeros(height, dtype=np.bool_),
    )
    conditions: list[Bounds | None] = [*args[:-1:2], None]
    for condition, value in zip(conditions, [*args[1:-1:2], args[-1]], strict=True):
        possible = reached if condition is None else reached & ~(condition.high == 0) & ~condition.missing
        taken = possible & ~value.missing
        unknown = taken & np.isnan(value.low)
        why = np.where((why == FINE) & unknown, np.where(value.why == FINE, OPEN, value.why), why)
        lost |= unknown
        low = np.where(taken & ~unknown, np.minimum(low, value.low), low)
        high = np.where(taken & ~unknown, np.maximum(high, value.high), high)
        if condition is not None:
            reached = reached & ~(condition.low == 1)
    missing = np.isposinf(low) & ~lost
    return Bounds.of(np.where(lost, np.nan, low), np.where(lost, np.nan, high), missing, why.astype(np.int8))


def _condition(true: Flags, false: Flags) -> Bounds:
    nothing = np.zeros(len(true), dtype=np.bool_)
    return Bounds(true.astype(np.float64), (~false).astype(np.float64), nothing, nothing.astype(np.int8))


def _less(args: Sequence[Bounds]) -> Bounds:
    return _condition(args[0].high < args[1].low, args[0].low >= args[1].high)


def _at_most(args: Sequence[Bounds]) -> Bounds:
    return _condition(args[0].high <= args[1].low, args[0].low > args[1].high)


def _equal(args: Sequence[Bounds]) -> Bounds:
    a, b = args
    true = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
    return _condition(true, (a.high < b.low) | (a.low > b.high))


def _opposite(rule: Callable[[Sequence[Bounds]], Bounds]) -> Callable[[Sequence[Bounds]], Bounds]:
    def found(args: Sequence[Bounds]) -> Bounds:
        known = rule(args)
        return _condition(known.high == 0, known.low == 1)

    return found


def _and(args: Sequence[Bounds]) -> Bounds:
    return _condition(np.all([a.low == 1 for a in args], axis=0), np.any([a.high == 0 for a in args], axis=0))


def _or(args: Sequence[Bounds]) -> Bounds:
    return _condition(np.any([a.low == 1 for a in args], axis=0), np.all([a.high == 0 for a in args], axis=0))


def _is_in(args: Sequence[Bounds]) -> Bounds:
    return _or([_equal([args[0], a]) for a in args[1:]])


def _not(args: Sequence[Bounds]) -> Bounds:
    (a,) = args
    return _condition(a.high == 0, a.low == 1)


def _same(args: Sequence[Bounds]) -> Bounds:
    (a,) = args
    return _condition(a.low == 1, a.high == 0)


def _either_way(args: Sequence[Bounds]) -> Bounds:
    nothing = np.zeros(len(args[0]), dtype=np.bool_)
    return _condition(nothing, nothing)


_CONDITIONS: dict[str, Callable[[Sequence[Bounds]], Bounds]] = {
    "lt": _less,
    "le": _at_most,
    "gt": lambda args: _less(args[::-1]),
    "ge": lambda args: _at_most(args[::-1]),
    "eq": _equal,
    "ne": _opposite(_equal),
    "and": _and,
    "or": _or,
    "not": _not,
    "in": _is_in,
    "is_true": _same,
    "is_not_false": _either_way,
    "is_false": _either_way,
    "is_not_true": _not,
    **dict.fromkeys(
        ("is_null", "is_not_null", "is_distinct_from", "is_not_distinct_from", "isnan", "isinf", "isfinite"),
        _either_way,
    ),
}
