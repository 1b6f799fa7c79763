"""Budgets are fixed by the first charge under them: a later policy may say less, and more only by an entry.

*Claim.* No edit of a policy makes a budget larger that somebody has spent of: of policy and ledger the smaller number
holds, part by part, and the ledger's grows by entries that say why. *Why.* The entry that is first charged under a
limit says which it was (`Receipt.fixed`), in the transaction that charges and in the hash; later ones are checked
against both. Ledgers of older versions fix what the policy says at their next charge. *When it would be false.* For
limits of one query, which add up to nothing; for units that are new in the policy, or gone by `former_units`; for a new
ledger. *Tested by* tests/core/ledger/test_budgets.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from dpsql.core.ledger.ledger import Cap, Caps
from dpsql.core.privacy_loss import PrivacyLoss

Fixed = Mapping[Cap, PrivacyLoss]
"""Budget → its number, as the ledger has it."""


def in_force(caps: Caps, analyst: str, fixed: Fixed) -> Caps:
    """The limits that hold for an account: of the policy's and the ledger's the smaller ones."""
    return replace(
        caps,
        total=_smaller(caps.total, {unit: cap for (unit, who), cap in fixed.items() if who is None}),
        analyst=_smaller(caps.analyst, {unit: cap for (unit, who), cap in fixed.items() if who == analyst}),
    )


def _smaller(said: Mapping[str, PrivacyLoss], fixed: Mapping[str, PrivacyLoss]) -> dict[str, PrivacyLoss]:
    return {**fixed, **said, **{unit: least(said[unit], fixed[unit]) for unit in said.keys() & fixed.keys()}}


def least(one: PrivacyLoss, other: PrivacyLoss) -> PrivacyLoss:
    """The smaller ε, δ and ρ, each by itself."""
    return PrivacyLoss(min(one.epsilon, other.epsilon), min(one.delta, other.delta), min(one.rho, other.rho))


def not_fixed(caps: Caps, analyst: str, fixed: Fixed) -> dict[Cap, PrivacyLoss]:
    """What the first charge of an account under these limits fixes."""
    said: dict[Cap, PrivacyLoss] = {(unit, None): cap for unit, cap in caps.total.items()}
    said |= {(unit, analyst): cap for unit, cap in caps.analyst.items()}
    return {cap: loss for cap, loss in said.items() if cap not in fixed}


def changed(cap: PrivacyLoss, epsilon: Fraction, delta: Fraction, rho: Fraction) -> PrivacyLoss:
    """A budget with something added, or taken away. Raises ValueError: it would be below nothing."""
    return PrivacyLoss(cap.epsilon + epsilon, cap.delta + delta, cap.rho + rho)
