"""How sure an interval is."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

LEVEL: Final = Fraction(95, 100)
"""The confidence of an interval, of a ± and of `max_error` where no other is asked for."""
