"""Fractions as floating-point numbers, rounded to the side that keeps a statement true."""

from __future__ import annotations

import math
from fractions import Fraction


def below(x: Fraction) -> float:
    """The greatest float ≤ x."""
    near = float(x)
    return near if near <= x else math.nextafter(near, -math.inf)


def above(x: Fraction) -> float:
    """The least float ≥ x."""
    near = float(x)
    return near if near >= x else math.nextafter(near, math.inf)
