"""Privacy parameters as users write them → exact ones, or a coded refusal."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpsql.compiler import Settings
from dpsql.diagnostics.errors import reject
from dpsql.loss import exact_delta, exact_epsilon

Amount = int | float | str | Fraction
"""0.1 means exactly one tenth: floats are read by their shortest decimal text."""


def with_privacy(base: Settings, epsilon: Amount | None, delta: Amount | None) -> Settings:
    """`base` with the given ε and δ. Raises Rejected DP406 for values that are no privacy parameters."""
    try:
        if epsilon is not None:
            base = replace(base, epsilon=exact_epsilon(epsilon))
        if delta is not None:
            base = replace(base, delta=exact_delta(delta))
    except ValueError as error:
        raise reject("DP406", str(error), help=["epsilon is a number above 0, e.g. 0.5; delta one in [0, 1)"]) from None
    return base
