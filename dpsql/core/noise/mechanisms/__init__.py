"""Noise mechanisms. Each object both draws its noise and states what that noise costs."""

from fractions import Fraction

from dpsql.core.noise.mechanisms.exponential import BoundedRange, Exponential, PureExponential
from dpsql.core.noise.mechanisms.gaussian import DiscreteGaussian
from dpsql.core.noise.mechanisms.laplace import DiscreteLaplace
from dpsql.core.noise.mechanisms.mechanism import Additive, AdditiveNoise, Calibrated, Mechanism
from dpsql.core.noise.mechanisms.no_noise import NoNoise
from dpsql.core.noise.partition_selection import KeyThreshold, delta_of

FAMILIES: dict[str, type[AdditiveNoise]] = {family.name: family for family in (DiscreteLaplace, DiscreteGaussian)}
"""All noise that is calibrated, by its name; of two that serve a query alike the earlier one is taken."""


CHOICES: dict[str, type[Exponential]] = {choice.name: choice for choice in (PureExponential, BoundedRange)}
"""What chooses among cells, by its name: one for each way of pricing."""


def choice_priced(pure: bool) -> type[Exponential]:
    """The one whose price is an ε, or a ρ."""
    return PureExponential if pure else BoundedRange


def made_by(name: str, parameter: Fraction) -> Calibrated:
    """The mechanism of a stored answer. Raises ValueError for one that this version does not know."""
    found = FAMILIES.get(name) or CHOICES.get(name)
    if found is None:
        raise ValueError(f"no mechanism is called {name!r}")
    return found.of_parameter(parameter)


__all__ = [
    "CHOICES",
    "FAMILIES",
    "Additive",
    "AdditiveNoise",
    "BoundedRange",
    "Calibrated",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "KeyThreshold",
    "Mechanism",
    "NoNoise",
    "PureExponential",
    "choice_priced",
    "delta_of",
    "made_by",
]
