"""Our draws beside OpenDP's, an independent implementation of the same distribution."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsql.measure.random import discrete_laplace
from tests.statistical.goodness import ALPHA, Sample, homogeneity, verdict

pytestmark = pytest.mark.statistical

N = 200_000
SCALES = [Fraction(1), Fraction(7, 2), Fraction(1024)]  # exact in a double, which is what OpenDP takes


def opendp_draws(scale: Fraction) -> Sample:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return np.array(dp.m.make_laplace(*space, float(scale))([0] * N), np.int64)


def ours(scale: Fraction) -> Sample:
    return np.array(discrete_laplace(scale, N), np.int64)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_same_distribution_as_opendp(scale: Fraction) -> None:
    theirs = opendp_draws(scale)
    assert verdict(theirs, scale) == {}, "the goodness tests themselves would be wrong"
    assert homogeneity(ours(scale), theirs) > ALPHA
    assert homogeneity(ours(scale * Fraction(11, 10)), theirs) < ALPHA, "no power against 10 % more noise"
