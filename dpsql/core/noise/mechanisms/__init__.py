"""Noise mechanisms. Each object both draws its noise and states what that noise costs."""

from fractions import Fraction

from dpsql.core.noise.mechanisms.gaussian import DiscreteGaussian
from dpsql.core.noise.mechanisms.laplace import DiscreteLaplace
from dpsql.core.noise.mechanisms.mechanism import AdditiveNoise, Mechanism
from dpsql.core.noise.mechanisms.no_noise import NoNoise
from dpsql.core.noise.partition_selection import KeyThreshold, delta_of

FAMILIES: dict[str, type[AdditiveNoise]] = {family.name: family for family in (DiscreteLaplace, DiscreteGaussian)}
"""All noise that is calibrated, by its name; of two that serve a query alike the earlier one is taken."""


def made_by(name: str, parameter: Fraction) -> AdditiveNoise:
    """The mechanism of stored noise. Raises ValueError for one that this version does not know."""
    if name not in FAMILIES:
        raise ValueError(f"no noise is called {name!r}")
    return FAMILIES[name].of_parameter(parameter)


__all__ = [
    "FAMILIES",
    "AdditiveNoise",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "KeyThreshold",
    "Mechanism",
    "NoNoise",
    "delta_of",
    "made_by",
]
