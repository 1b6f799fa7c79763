"""What the audit knows of modes, against their definition."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpsql.core.ir.components import KeySource, ModeChoice
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.types import BIGINT
from dpsql.core.release.histograms import Entries
from dpsql.faces.audit.choices import best, chosen, furthest, likelier

VALUES = (30, 10, 20)
MODE = ModeChoice(Column(1, "x", BIGINT), choices=KeySource((0,), tuple((v,) for v in VALUES), "list"), weight=1)
WEIGHTS = list(product((0, 1, 3), repeat=3))


def entries(weights: tuple[int, ...]) -> Entries:
    return tuple((at, w) for at, w in enumerate(weights) if w)


@pytest.mark.parametrize("one", WEIGHTS, ids=str)
def test_probabilities_are_those_of_the_mechanism(one: tuple[int, ...]) -> None:
    """P(value) ∝ e^(2η·rows that have it)."""
    eta = Fraction(1, 3)
    for other in WEIGHTS:
        grown = [np.exp(2 * float(eta) * np.array(w, dtype=float)) for w in (one, other)]
        a, b = (g / g.sum() for g in grown)
        assert np.allclose(likelier(MODE, eta, entries(one), entries(other)), np.log(a) - np.log(b))
        told, _ = chosen(MODE, eta, entries(one), entries(other)).logs()
        assert math.isclose(float(np.exp(told).sum()), 1)
        moved = [x - y for x, y in zip(one, other, strict=True)]
        assert furthest(MODE, entries(one), entries(other)) == max(moved) - min(moved)


def test_the_best_is_the_most_frequent() -> None:
    assert [best(MODE, entries(w)) for w in ((0, 0, 0), (1, 3, 0), (0, 0, 1))] == [0, 1, 2]
