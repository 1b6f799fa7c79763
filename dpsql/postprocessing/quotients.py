"""Averages and variances of a release: what the formulas of `arithmetic.py` are given for a recipe."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.ir.components import Ratio, Variance
from dpsql.core.noise.integer_columns import Floats, Integers
from dpsql.core.noise.measurement import Measurement
from dpsql.postprocessing.arithmetic import averages, variances


def averages_of(recipe: Ratio, measurements: Sequence[Measurement], columns: Sequence[Integers]) -> Floats:
    """The released number of each row. measurements and columns: of all components of the release."""
    total, count = measurements[recipe.sum], measurements[recipe.count]
    center = total.component.center * total.component.grid
    units = total.unit, count.unit
    return averages(columns[recipe.sum], columns[recipe.count], units, center, (recipe.lo, recipe.hi))


def variances_of(recipe: Variance, measurements: Sequence[Measurement], columns: Sequence[Integers]) -> Floats:
    """The same for variances and their roots."""
    s, q, n = recipe.sum, recipe.squares, recipe.count
    total, squares, count = (measurements[i] for i in (s, q, n))
    middle = squares.component.shift * squares.component.worth
    units = total.unit, squares.unit, count.unit
    return variances(columns[s], columns[q], columns[n], units, recipe, middle)
