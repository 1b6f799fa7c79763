"""Noise mechanisms. Each object both draws its noise and states what that noise costs."""

from dpsql.measure.mechanisms.base import Mechanism
from dpsql.measure.mechanisms.exact import Exact
from dpsql.measure.mechanisms.gaussian import DiscreteGaussian
from dpsql.measure.mechanisms.laplace import DiscreteLaplace
from dpsql.measure.mechanisms.threshold import KeyThreshold, delta_of

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Exact", "KeyThreshold", "Mechanism", "delta_of"]
