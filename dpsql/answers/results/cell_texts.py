"""Released values as a person reads them: a number with its ±, a date, a text that cannot write to the terminal."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from dpsql.diagnostics.layout import one_line

MOST_DECIMALS = 9


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a table as text. numeric: to be aligned to the right. null: it stands for NULL. remark: its end."""

    text: str
    numeric: bool = False
    null: bool = False
    remark: str = ""


Reach = tuple[float | None, float | None]
"""How far an interval reaches below and above its number; None: nothing is known to that side."""
_UNEQUAL = 1.1
"""Sides that differ by more are shown both."""


def reach_of(value: Any, low: float | None, high: float | None) -> Reach:
    """Of the ends of an interval around a number."""
    below = None if low is None else float(value) - low
    above = None if high is None else high - float(value)
    if below is None or above is None:
        return below, above
    half = (below + above) / 2
    return (below, above) if max(below, above) > half * (1 + 1e-9) else (half, half)  # less is a float's own error


def cell(value: Any, reach: Reach | None = None, remark: str = "") -> Cell:
    """A value, followed by `± half-width` or `−below / +above` if it has an interval, or by a remark; the only end of
    its interval, if it has one.

    With a ±, both are shown to the ±'s third significant digit: what lies behind it is noise. What was measured has its
    thousands separated; whole numbers without an interval may be ids and years, and have not.
    """
    remark = f" ({remark})" if remark else ""
    match value:
        case None:
            return Cell(f"NULL{remark}", null=True, remark=remark)
        case bool():
            return Cell("true" if value else "false")
        case int() | float() | Decimal():
            return Cell(_number(value, reach) + remark, numeric=True, remark=remark)
        case dt.datetime():
            return Cell(str(value))
        case _:
            return Cell(one_line(plain(value)))


def plain(value: Any) -> str:
    """A value as exact text: ISO dates, `true`/`false`, `[1, 2]`, an empty text for NULL. Used by csv and for keys."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f")
        case float():
            return repr(value) if math.isfinite(value) else special(value)
        case str() | int():
            return str(value)
        case _ if hasattr(value, "isoformat"):
            return str(value.isoformat())
        case list():
            return f"[{', '.join('NULL' if v is None else plain(v) for v in value)}]"
        case _:
            return str(value)


def special(value: float) -> str:
    """NaN and the infinities by the names that JSON readers agree on."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _number(value: int | float | Decimal, reach: Reach | None) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return special(value)
    below, above = (None, None) if reach is None else (None if r is None or not math.isfinite(r) else r for r in reach)
    if below is None and above is None:
        if not isinstance(value, float):
            return plain(value)
        return _fixed(value, 0) if abs(value) >= 1e6 else f"{value:,.6g}"
    if below is None or above is None:
        return _one_end(value, below, above)
    wide = max(below, above)
    places = _places_beside(value, wide)
    shown = f"{value:,}" if isinstance(value, int) else _fixed(value, places)
    if wide > _UNEQUAL * min(below, above):
        lower, upper = (_fixed(_up(r, places), places) for r in (below, above))
        return f"{shown} −{lower} / +{upper}"
    return f"{shown} ± {_fixed(_up(wide, places), places)}"


def _one_end(value: int | float | Decimal, below: float | None, above: float | None) -> str:
    """`≥ 5100`: the end that is known, rounded outwards."""
    width = below if below is not None else above
    assert width is not None
    places = _places_beside(value, width)
    step, at, most = Decimal(1).scaleb(-places), Decimal(value), below is None
    end = (at + Decimal(width)) if most else (at - Decimal(width))
    if abs(end) < 10**15:
        end = end.quantize(step, ROUND_CEILING if most else ROUND_FLOOR)
    return f"{'≤' if most else '≥'} {_fixed(end, places)}"


def _places_beside(value: int | float | Decimal, width: float) -> int:
    return 0 if isinstance(value, int) and width >= 1 else _places(width)


def _places(half_width: float) -> int:
    """Decimals that show three significant digits of the ±."""
    if half_width <= 0:
        return 0
    return min(MOST_DECIMALS, max(0, 2 - math.floor(math.log10(half_width))))


def _up(half_width: float, places: int) -> Decimal:
    """The ± rounded up to this many decimals: never narrower than it is."""
    step = Decimal(1).scaleb(-places)
    exact = Decimal(half_width)
    shown = exact.quantize(step) if abs(exact) < 10**15 else exact
    # A float's own error is no reason to show 10.001 for 10.
    return shown if shown >= exact or exact - shown < step / 1000 else shown + step


def _fixed(value: int | float | Decimal, places: int) -> str:
    if isinstance(value, float) and abs(value) >= 1e15:
        return f"{value:.6g}"
    text = f"{value:,.{places}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text
