"""QUANTILE: a public cell of values, chosen with a probability that falls with the distance of its rank.

The score of a cell v is s(v) = max(0, b·lt - a·N, a·N - b·le), for p = a/b: lt, le: the weight of the rows below v, and
below or in v; N: of all. A cell in which the quantile lies has the score 0.

Claim: one row more, of weight w, moves every score by at most c·w, c = max(a, b - a). Where rows of weight w go and as
    heavy ones come, they move every score of one group by at most b·w, or those of two groups by c·w each.
Why: let the weight be z above v, e in v, d below v. b·lt - a·N moves by (b - a)·d - a·(e + z), and a·N - b·le by
    a·z - (b - a)·(d + e): both within ± c·w, and the largest of several moves by no more than they do. What goes
    below v and comes above it moves both by (b - a) + a = b.
    So the scores of all cells of a group move by no more than a COUNT of the group would, times c, and l1 and l2 over
    groups are those of that COUNT: cells are no groups.
When it would be false: cells that depend on the data; a score of another form (with |(b - a)·lt - a·gt| ties are wrong,
    too); weights of fewer rows than those that divide them; several quantiles that share one price.
Not proved: scores
Tested by: tests/deep/core/noise/test_quantile_neighbours.py, tests/core/noise/test_sensitivity.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dpsql.core.ir.components import Component, KeySource, LargestChoice, ModeChoice, Pick, QuantileChoice
from dpsql.core.measures.measure_rule import Norms, RowRule
from dpsql.core.numbers.cells import Cells


class QuantileRule(RowRule[QuantileChoice]):
    """Each row moves the ranks."""

    __slots__ = ()

    name = "QUANTILE({argument})"
    chosen = True

    def replaced(self, c: QuantileChoice, fixed: bool) -> Norms:
        """By b in one group, or by c in two."""
        steep = c.steepness
        return Norms(2 * steep, (2 * steep) ** 2, c.p.denominator)

    def known(self, c: QuantileChoice, size: int) -> int:
        """Of no row at all: no cell."""
        return 0

    def options(self, c: QuantileChoice) -> int:
        """Its cells."""
        return len(cells_of(c))


def cells_of(c: QuantileChoice) -> Cells:
    """The cells that a quantile is chosen from."""
    return Cells.of(c.lo, c.hi, c.cells, c.logarithmic)


def of_any_slice(c: Component) -> Component | None:
    """What those have in common that one histogram counts by slices: all but condition and p. None: of no others."""
    match c:
        case QuantileChoice():
            return replace(c, p=Fraction(1, 2), filter=None)
        case ModeChoice():
            return replace(c, filter=None)
        case _:
            return None


def histograms(components: Sequence[Component]) -> list[tuple[int, ...]]:
    """Numbers of the components that are chosen by histograms.

    Quantiles of the same values have one together, and so have the picks from one list.
    """
    found: dict[Component, list[int]] = {}
    for i, c in enumerate(components):
        match c:
            case QuantileChoice():
                found.setdefault(replace(c, p=Fraction(1, 2)), []).append(i)
            case LargestChoice():
                found.setdefault(replace(c, pick=Pick(0, 1)), []).append(i)
            case ModeChoice(choices=KeySource()):
                found.setdefault(c, []).append(i)
    return [tuple(numbers) for numbers in found.values()]
