"""Noise mechanisms. Each object both draws its noise and states what that noise costs."""

from dpsql.core.noise.mechanisms.exact import Exact
from dpsql.core.noise.mechanisms.gaussian import DiscreteGaussian
from dpsql.core.noise.mechanisms.laplace import DiscreteLaplace
from dpsql.core.noise.mechanisms.mechanism import Mechanism
from dpsql.core.noise.partition_selection import KeyThreshold, delta_of

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Exact", "KeyThreshold", "Mechanism", "delta_of"]
