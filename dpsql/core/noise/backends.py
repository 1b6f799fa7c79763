"""Who draws the noise: our own exact sampler, or OpenDP's where the policy says `noise: opendp`.

A mechanism prices and calibrates, a backend draws. No backend may draw less noise than was priced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, Protocol, assert_never

from dpsql.core.noise.scale import check_scale, check_variance
from dpsql.diagnostics.errors import reject

BackendName = Literal["exact", "opendp"]


class Backend(Protocol):
    """A source of integer noise. Draws are independent and fresh, and cannot be seeded."""

    @property
    def name(self) -> str:
        """As the policy's `noise:` calls it."""
        ...

    def laplace(self, scale: Fraction, n: int) -> Sequence[int]:
        """n draws of discrete Laplace noise of this scale, 0 < scale ≤ 2^55; ValueError for another or n < 0."""
        ...

    def gaussian(self, variance: Fraction, n: int) -> Sequence[int]:
        """n draws of discrete Gaussian noise of this σ², 0 < σ² ≤ 2^110; ValueError for another or n < 0."""
        ...


@dataclass(frozen=True, slots=True)
class ExactBackend:
    """dpsql.core.noise.sampler: exactly the distributions priced, at any rational scale."""

    @property
    def name(self) -> str:
        """`exact`"""
        return "exact"

    # Imported where they draw, so that planning and `dpsql check`, which only price, do not load numpy.

    def laplace(self, scale: Fraction, n: int) -> Sequence[int]:
        """As Backend.laplace."""
        from dpsql.core.noise.sampler import discrete_laplace

        return discrete_laplace(scale, n)

    def gaussian(self, variance: Fraction, n: int) -> Sequence[int]:
        """As Backend.gaussian."""
        from dpsql.core.noise.sampler import discrete_gaussian

        return discrete_gaussian(variance, n)


@dataclass(frozen=True, slots=True)
class OpenDPBackend:
    """The samplers of OpenDP. Some ten to a hundred times slower, and written and proven by others.

    OpenDP takes scales as doubles; they are rounded up to the next one, so that the noise is never less than was priced
    (and more by at most one part in 2^50). It draws in 64 bits and stays at their ends where noise would leave them:
    at the largest scale accepted here that has a probability below 2^-368 for Laplace and below 2^-47000 for Gaussian
    noise, and no δ is charged for it.
    """

    @property
    def name(self) -> str:
        """`opendp`"""
        return "opendp"

    def laplace(self, scale: Fraction, n: int) -> Sequence[int]:
        """As Backend.laplace."""
        check_scale(scale)
        dp = _opendp()
        return _drawn(dp.m.make_laplace(*_space(dp, dp.l1_distance(T="i64")), at_least(scale)), n)

    def gaussian(self, variance: Fraction, n: int) -> Sequence[int]:
        """As Backend.gaussian."""
        check_variance(variance)
        dp = _opendp()
        return _drawn(dp.m.make_gaussian(*_space(dp, dp.l2_distance(T="f64")), root_at_least(variance)), n)


EXACT: Backend = ExactBackend()
"""The default."""


def backend(name: BackendName) -> Backend:
    """The backend that a policy names. Raises Rejected DP905 where OpenDP is asked for and not installed."""
    match name:
        case "exact":
            return EXACT
        case "opendp":
            _opendp()
            return OpenDPBackend()
        case _:
            assert_never(name)


@lru_cache(maxsize=1)
def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise reject(
            "DP905", "the policy has its noise drawn by OpenDP, which is not installed",
            help=["pip install 'dpsql[opendp]'", "or, custodian: set  noise: exact  in the policy"],
        ) from None  # fmt: skip
    dp.enable_features("contrib")
    return dp


def _space(dp: Any, metric: Any) -> tuple[Any, Any]:
    return dp.vector_domain(dp.atom_domain(T="i64")), metric


def _drawn(measurement: Any, n: int) -> list[int]:
    if n < 0:
        raise ValueError("n must be ≥ 0")
    # Added to zeros, so that OpenDP never sees a private number: values may be wider than its 64 bits.
    noise: list[int] = measurement([0] * n)
    return noise


def at_least(x: Fraction) -> float:
    """The least double that is not below x > 0."""
    found = float(x)
    return found if Fraction(found) >= x else math.nextafter(found, math.inf)


def root_at_least(x: Fraction) -> float:
    """The least double whose square is not below x > 0, or the next one; a larger one for x below the doubles."""
    found = math.sqrt(at_least(x))
    while Fraction(found) ** 2 < x:
        found = math.nextafter(found, math.inf)
    return found
