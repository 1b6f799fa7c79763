"""Averages over a public number of rows: the sum's interval divided by it covers at least as often, and is exact."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.core.ir.components import RowCount, ValueSum
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.types import BIGINT
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import DiscreteLaplace, NoNoise
from dpsql.core.noise.sensitivity import Sensitivity
from dpsql.frontend.aggregates.avg import Ratio, _over_known

LEVEL = Fraction(95, 100)
RATIO = Ratio(0, 1, Fraction(100), Fraction(300))
TOTAL = Measurement(
    ValueSum(Literal(1, BIGINT), grid=Fraction(1, 2), center=400, lo=-200, hi=200),
    Sensitivity(1, 400, Fraction(400**2), 400),
    DiscreteLaplace(Fraction(40)),
)


def known(rows: int) -> Measurement:
    return Measurement(RowCount(), Sensitivity(0, 0, Fraction(0), 0), NoNoise(), {}, rows)


@pytest.mark.parametrize("rows", [1, 3, 50])
@pytest.mark.parametrize("share", [Fraction(-1), Fraction(-1, 3), Fraction(0), Fraction(9, 10), Fraction(1)])
def test_noise_within_the_quantile_is_covered(rows: int, share: Fraction) -> None:
    """Whatever the true sum: each noise up to the quantile gives an interval with the true mean, within the bounds."""
    true = int(200 * rows * share)
    mean = 200 + Fraction(true, 2 * rows)
    width = TOTAL.mechanism.half_width(LEVEL)
    noise = range(-width - 3, width + 4)
    found = _over_known(TOTAL, known(rows), RATIO, LEVEL, [true + z for z in noise])
    for z, (low, high) in zip(noise, found, strict=True):
        assert 100 <= low <= high <= 300
        if abs(z) <= width:
            assert low <= mean <= high
        elif low > 100 and high < 300:
            assert not low <= mean <= high  # not wider than it needs to be


def test_noise_that_fits_no_average_says_the_bounds() -> None:
    assert _over_known(TOTAL, known(2), RATIO, LEVEL, [10**6, -(10**6)]) == [(100, 300), (100, 300)]


def test_no_rows_show_the_middle() -> None:
    ((low, high),) = _over_known(TOTAL, known(0), RATIO, LEVEL, [0])
    assert low < 200 < high
