"""How large the noise of a release's columns will be, before it is chosen: to compare forms of one release."""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.aggregates.formula import formula
from dpsql.aggregates.weighted_sum import squared
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import Release
from dpsql.core.noise.calibration import prepare_one, proportional


def total_error(node: Release, below: Facts) -> float:
    """Σ over the columns of ln(variance), with Laplace noise at the shares of one ε for equal weights; a constant less.

    below: facts of the release's input. An average counts as if its group were large and its true mean anywhere in its
    bounds alike; a variance as its sum of squares.
    """
    found = prepare_one(node, below, {})
    (shares,) = proportional([found], Fraction(1))
    each = zip(node.components, found.worst, shares, strict=True)
    spread = [squared(s.l1 * c.worth / c.weight / share) if s.l1 else 0.0 for c, s, share in each]
    return sum(math.log(max(formula(o).variance(node.components, spread), 1e-300)) for o in node.outputs)
