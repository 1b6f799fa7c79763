"""How large the noise of a release's columns will be, before it is chosen: to compare forms of one release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import assert_never

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, Count, End, Ratio, Recipe, Sum, Variance, coefficients
from dpsql.core.ir.nodes import Release
from dpsql.core.noise.calibration import prepare_one, proportional

_LARGEST = Fraction(10**150)


def total_error(node: Release, below: Facts) -> float:
    """Σ over the columns of ln(variance), with Laplace noise at the shares of one ε for equal weights; a constant less.

    below: facts of the release's input. An average counts as if its group were large and its true mean anywhere in its
    bounds alike; a variance as its sum of squares.
    """
    found = prepare_one(node, below, {})
    (shares,) = proportional([found], Fraction(1))
    each = zip(node.components, found.worst, shares, strict=True)
    spread = [_squared(s.l1 * c.worth / c.weight / share) if s.l1 else 0.0 for c, s, share in each]
    return sum(math.log(max(_variance(o.recipe, node.components, spread), 1e-300)) for o in node.outputs)


def _squared(x: Fraction) -> float:
    """x², at most 1e300, which a float can hold: of two forms with such errors neither is of use."""
    return float(min(abs(x), _LARGEST)) ** 2


def _variance(recipe: Recipe, components: Sequence[Component], spread: Sequence[float]) -> float:
    match recipe:
        case Count() | Sum():
            unit = {i: components[i].worth / components[i].weight for i, _ in coefficients(recipe, components)}
            return sum(_squared(worth / unit[i]) * spread[i] for i, worth in coefficients(recipe, components))
        case Ratio(sum=s, count=n, lo=lo, hi=hi):
            return spread[s] + _squared((hi - lo) / 2) / 3 * spread[n]  # E θ² of a centred mean, alike on its range
        case Variance(squares=q):
            return spread[q]
        case End(of=inner):
            return _variance(inner, components, spread)
        case _:
            assert_never(recipe)
