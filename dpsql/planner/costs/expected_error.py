"""How large the noise of a release's columns is: for any it may get, to compare its forms; and for what it got."""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.accuracy.rank_error import rank_error
from dpsql.accuracy.widths import linear_width
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import Release
from dpsql.core.ir.recipes import Recipe
from dpsql.core.measures.all_measures import rule
from dpsql.core.noise.calibration import prepare_one, proportional
from dpsql.core.noise.measurement import MeasuredRelease, Measurement
from dpsql.core.noise.mechanisms import Exponential
from dpsql.core.numbers.confidence import LEVEL
from dpsql.diagnostics.words import about
from dpsql.frontend.aggregates.formula import formula
from dpsql.frontend.aggregates.weighted_sum import squared


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


def output_error(measured: MeasuredRelease, recipe: Recipe) -> float | None:
    """Half the width of the 95 % interval of a count or a sum, in the released number's unit."""
    width = linear_width(recipe, measured.measurements, LEVEL)
    return None if width is None else float(width)


def scale(m: Measurement) -> float:
    """Of the noise, in the released number's unit; of a choice 1/η, in rows."""
    if isinstance(m.mechanism, Exponential):
        return float(m.unit / m.mechanism.eta)
    return float(m.noise.scale * m.unit)


def expected_error(
    measured: MeasuredRelease, place: int, level: Fraction = LEVEL, any_bounds: bool = False
) -> float | None:
    """Of a component half the width of its interval at this confidence, in the released number's unit; of what is
    chosen in rows, and None of no rows, which is NULL.

    any_bounds: of a quantile the most, whatever the bounds of the values are.
    """
    m = measured.measurements[place]
    if not rule(m.component).chosen:
        return float(m.noise.half_width(level) * m.unit)
    return None if m.known is not None else float(rank_error(measured.measurements, place, level, any_bounds))


def amount_of(error: float) -> str:
    """As it is shown."""
    return about(error)
