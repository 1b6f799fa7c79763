"""Released values as a person reads them: a number with its ±, a date, a text that cannot write to the terminal."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
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


def cell(value: Any, half_width: float | None = None, remark: str = "") -> Cell:
    """A value, followed by `± half_width` if there is one, or by a remark.

    With a ±, both are shown to the ±'s third significant digit: what lies behind it is noise.
    """
    remark = f" ({remark})" if remark else ""
    match value:
        case None:
            return Cell(f"NULL{remark}", null=True, remark=remark)
        case bool():
            return Cell("true" if value else "false")
        case int() | float() | Decimal():
            return Cell(_number(value, half_width) + remark, numeric=True, remark=remark)
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


def _number(value: int | float | Decimal, half_width: float | None) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return special(value)
    if half_width is None or not math.isfinite(half_width):
        return f"{value:.6g}" if isinstance(value, float) else plain(value)
    places = _places(half_width)
    if isinstance(value, int):
        places = 0 if half_width >= 1 else places
        return f"{value} ± {_fixed(_up(half_width, places), places)}"
    return f"{_fixed(value, places)} ± {_fixed(_up(half_width, places), places)}"


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
    text = f"{value:.{places}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text
