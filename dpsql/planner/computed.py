"""The computed columns of a policy, understood as its own data can compute them."""

from __future__ import annotations

from dpsql.core.engine import Engine
from dpsql.core.printing.computed import computed_columns
from dpsql.engines.open import dialect_of
from dpsql.frontend.bind.computed import AnyPolicy, with_computed


def understood(policy: AnyPolicy) -> AnyPolicy:
    """The policy with every `from:` understood whose table's types are known, without data.

    Raises CannotOpen: DP003 for what is no expression of a row, DP105 for what its data cannot compute.
    """
    return with_computed(policy, dialect_of(policy))


def computing(policy: AnyPolicy, engine: Engine) -> AnyPolicy:
    """The same, of a policy with all types known; its data is read with the computed columns from then on."""
    found = with_computed(policy, engine.dialect)
    engine.computed.update(computed_columns(found, engine.dialect))
    return found
