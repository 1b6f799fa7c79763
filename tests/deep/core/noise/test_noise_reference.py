"""Our draws beside OpenDP's, an independent implementation of the same distributions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dpsql.core.noise.backends import EXACT, Backend, OpenDPBackend
from tests.support import goodness_of_fit as goodness
from tests.support.goodness_of_fit import ALPHA, Sample, homogeneity, verdict

pytest.importorskip("opendp")

N = 200_000
SCALES = [Fraction(1), Fraction(7, 2), Fraction(1024)]  # exact in a double, which is what OpenDP takes


def laplace(backend: Backend, scale: Fraction, n: int = N) -> Sample:
    return np.array(backend.laplace(scale, n), np.int64)


def gaussian(backend: Backend, scale: Fraction, n: int = N) -> Sample:
    return np.array(backend.gaussian(scale**2, n), np.int64)


LAWS: dict[Callable[..., Sample], Callable[[Fraction], goodness.Law]] = {
    laplace: goodness.Laplace,
    gaussian: lambda scale: goodness.Gaussian(scale**2),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("draw", [laplace, gaussian])
def test_same_distribution_as_opendp(draw: Callable[..., Sample], scale: Fraction) -> None:
    theirs = draw(OpenDPBackend(), scale)
    assert verdict(theirs, LAWS[draw](scale)) == {}, "the goodness tests themselves would be wrong"
    assert homogeneity(draw(EXACT, scale), theirs) > ALPHA
    assert homogeneity(draw(EXACT, scale * Fraction(11, 10)), theirs) < ALPHA, "no power against 10 % more noise"
    assert homogeneity(draw(EXACT, scale) + (1 if scale < 100 else 100), theirs) < ALPHA, "no power against a shift"
    wrong_sign = draw(EXACT, scale)
    wrong_sign[::5] = -np.abs(wrong_sign[::5])
    assert homogeneity(wrong_sign, theirs) < ALPHA, "no power against an unfair sign"
