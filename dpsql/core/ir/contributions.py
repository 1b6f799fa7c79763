"""How what one id adds to a component is bounded, beside the clips of single rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Literal

Norm = Literal["l1", "l2"]

SATURATED = 2**62
"""Totals of one id, and values without declared bounds, are clipped to ± this many grid units before they are added."""


@dataclass(frozen=True, slots=True)
class UnitTotal:
    """How much one id may add to a component, with its totals per group taken together; more is scaled down.

    most: τ, in whole integer units of the component before its weight F (rows of a COUNT, different (group, value) of
        a COUNT(DISTINCT …), grid units of a SUM).
    norm: `l1`: Σ |total of the id in the group| over all groups is at most τ; `l2`: √Σ total² is.
    label: of the search that finds τ; for messages, and for the addresses of answers. No integer depends on it.

    A total is that of the rows which the component counts, after its own FILTER, saturated to ±2⁶². A plan that counts
    ids by the octaves of such sums stands in tests/core/analysis/test_octaves_of_ids.py.
    """

    most: int
    norm: Norm = "l1"
    label: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class PerGroup:
    """The total of an id in each group is clipped to these ends, in the argument's unit (a COUNT's rows: from 0)."""

    ends: tuple[Fraction, Fraction]


class Weighing(Enum):
    """How what an id adds is bounded under the limits of the release."""

    ALONE = "alone"  # its total, or its different values, are cut by themselves
    BY_ROW = "by row"  # scaled like a count of the same rows: the same in all groups together, however they are grouped
    PAIRED = "paired"  # a sum that belongs to a count with the same weights (AVG); of different values: to as many

    __hash__ = object.__hash__  # each is one object; Enum's own hash is that of the name, in Python


Contributing = Weighing | PerGroup | UnitTotal
"""How what an id adds to a component is bounded: by the limits of the release, by those and its own, or by its own."""
