"""Upper bounds that are exact or have a reason: `Cap = Finite | Unbounded`.

A cap bounds a count (rows, groups) or a sensitivity from above. It is never a float: rounding could only go the
wrong way. An unbounded cap says why, so that a refusal can print the cause and the repair.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.core.value_classes import value
from dpsql.diagnostics.diagnostic import Reason


@value(frozen=True, slots=True)
class Finite:
    """A bound: the quantity is at most `value` (≥ 0) in every neighbouring pair."""

    value: Fraction

    def __post_init__(self) -> None:
        if self.value.numerator < 0:
            raise ValueError("a cap is never negative")

    def __str__(self) -> str:
        return str(self.value)


@value(frozen=True, slots=True)
class Unbounded:
    """No bound is known. `reasons` tell which rule lost it and where; there is always at least one."""

    reasons: tuple[Reason, ...]

    def __post_init__(self) -> None:
        if not self.reasons:
            raise ValueError("an unbounded cap needs a reason")

    def __str__(self) -> str:
        return "unbounded"


Cap = Finite | Unbounded


def finite(value: int | Fraction) -> Finite:
    """Shorthand: `finite(3)`."""
    return Finite(Fraction(value))


ZERO, ONE = finite(0), finite(1)


def _reasons(*caps: Cap) -> tuple[Reason, ...]:
    found = [reason for cap in caps if isinstance(cap, Unbounded) for reason in cap.reasons]
    return tuple(dict.fromkeys(found))


def add(a: Cap, b: Cap) -> Cap:
    """a + b; unbounded if either is."""
    if isinstance(a, Finite) and isinstance(b, Finite):
        return Finite(a.value + b.value)
    return Unbounded(_reasons(a, b))


def times(a: Cap, b: Cap) -> Cap:
    """a · b; 0 · unbounded is 0, because nothing that never changes can be multiplied into a change."""
    if a is ONE or b is ONE:
        return b if a is ONE else a
    if isinstance(a, Finite) and isinstance(b, Finite):
        return Finite(a.value * b.value)
    if ZERO in (a, b):
        return ZERO
    return Unbounded(_reasons(a, b))


def larger(a: Cap, b: Cap) -> Cap:
    """max(a, b): the worst of two quantities that may both occur."""
    if isinstance(a, Finite) and isinstance(b, Finite):
        return a if a.value >= b.value else b
    return Unbounded(_reasons(a, b))


def smaller(a: Cap, b: Cap) -> Cap:
    """The better of two *valid* bounds on the same quantity."""
    if isinstance(a, Finite) and isinstance(b, Finite):
        return a if a.value <= b.value else b
    if isinstance(a, Finite):
        return a
    if isinstance(b, Finite):
        return b
    return Unbounded(_reasons(a, b))
