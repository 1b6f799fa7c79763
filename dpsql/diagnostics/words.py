"""Words of messages."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

TOO_LOW, TOO_HIGH = "too low by an unknown amount", "too high by an unknown amount"
"""Of a number whose interval has one end: limits have cut what lies beyond."""


def with_article(name: object) -> str:
    """A type's name with its article: an INTEGER, a VARCHAR, a UBIGINT."""
    text = str(name)
    return f"{'an' if text[:1].upper() in ('A', 'E', 'I', 'O') else 'a'} {text}"


def in_digits(value: object) -> str:
    """A number as `str` has it; in words where it has more digits than Python prints (4,300 of a whole number)."""
    try:
        return str(value)
    except ValueError:
        return "a number of thousands of digits"


def small(text: str) -> int | None:
    """A natural number of at most nine digits; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text.lstrip("0")) <= 9 else None


def about(x: float | Fraction) -> str:
    """A number that nobody copies, to four digits: 12.35, 17,970, 1.8 million."""
    value = float(x)
    size = abs(value)
    for name, of in (("trillion", 1e12), ("billion", 1e9), ("million", 1e6)):
        if of <= size < 1e15:
            return f"{value / of:.3g} {name}" if size < 999.5 * of else f"{value / of:,.0f} {name}"
    return f"{value:,.0f}" if 1000 <= size < 1e6 else f"{value:.4g}"


def number(x: Fraction | int) -> str:
    """An exact number, as a decimal where it has a short one: 1/5 is 0.2, 1/1000000000 is 1e-9, 1/3 is 1/3."""
    if x.denominator == 1:
        return in_digits(x.numerator)
    rest, twos, fives = x.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1 or places > 30:
        return in_digits(x)
    digits = x.numerator * 10**places // x.denominator
    value = Decimal(digits).scaleb(-places) if abs(digits) < 10**28 else None
    if value is None:
        return in_digits(x)
    text = format(value.normalize(), "f")
    sign, short = ("-" if digits < 0 else ""), str(abs(digits)).rstrip("0")
    if len(short) == 1 and places >= 4 and -1 < x < 1:
        return f"{sign}{short}e-{places - (len(str(abs(digits))) - 1)}"
    return text
