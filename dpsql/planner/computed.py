"""The computed columns of a policy, understood as its own data can compute them, and its data read with them."""

from __future__ import annotations

from dpsql.core.engine import Engine
from dpsql.core.policy.policy import Policy
from dpsql.core.printing.computed import computed_columns
from dpsql.engines.open import dialect_of
from dpsql.frontend.bind.expressions.computed import AnyPolicy, with_computed


def understood(policy: AnyPolicy) -> AnyPolicy:
    """The policy with every `from:` understood whose table's types are known, without data.

    Raises CannotOpen: DP003 for what is no expression of a row, DP105 for what its data cannot compute.
    """
    return with_computed(policy, dialect_of(policy))


def compute(policy: Policy, engine: Engine) -> None:
    """Have the data read with the computed columns of a policy that is understood and knows which tables are copies."""
    engine.computed.update(computed_columns(policy, engine.dialect))
