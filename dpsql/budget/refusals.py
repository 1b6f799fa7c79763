"""The words of the budget's refusals: DP403, DP404, DP405 (a charge does not fit) and DP407 (no usable ledger)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen
from dpsql.loss import NO_LOSS, PrivacyLoss, remaining, show_left, show_spent

NOTHING_RAN = "nothing was run and nothing was spent"


@dataclass(frozen=True, slots=True)
class Limit:
    """One cap that one charge meets: the code it is refused with, its name, its place in the policy, what is spent."""

    code: str
    name: str
    setting: str
    asked: PrivacyLoss
    cap: PrivacyLoss
    spent: PrivacyLoss = NO_LOSS

    @property
    def left(self) -> PrivacyLoss:
        """What is left of the cap, exact."""
        return remaining(self.cap, self.spent)


def over_budget(limits: Sequence[Limit]) -> BudgetExceeded | None:
    """The refusal for every limit that its charge does not fit into, or None if all fit."""
    broken = [limit for limit in limits if not limit.asked.within(limit.left)]
    if not broken:
        return None
    repairs = _repairs(broken)
    return BudgetExceeded([_diagnostic(limit, repairs) for limit in broken])


def _diagnostic(limit: Limit, repairs: tuple[str, ...]) -> Diagnostic:
    left = limit.left
    parts = [
        f"{symbol} {show_spent(asked)} asked, {show_left(fits)} {'allowed' if limit.code == 'DP405' else 'left'}"
        for symbol, asked, fits in (
            ("ε", limit.asked.epsilon, left.epsilon),
            ("ρ", limit.asked.rho, left.rho),
            ("δ", limit.asked.delta, left.delta),
        )
        if asked > fits
    ]
    custodian = f"custodian: raise {limit.setting} in the policy; what is spent stays spent"
    return Diagnostic(limit.code, f"{limit.name}: {'; '.join(parts)}", help=(*repairs, custodian), notes=(NOTHING_RAN,))


def _repairs(broken: Sequence[Limit]) -> tuple[str, ...]:
    """The largest settings that fit every broken limit, rounded down."""
    epsilons = [limit.left.epsilon for limit in broken if limit.asked.epsilon > limit.left.epsilon]
    deltas = [limit.left.delta for limit in broken if limit.asked.delta > limit.left.delta]
    shrink = [limit.left.rho / limit.asked.rho for limit in broken if limit.asked.rho > limit.left.rho]
    repairs: list[str] = []
    if epsilons:
        repairs.append(_largest("epsilon", min(epsilons)))
    if shrink:
        # ρ grows with the square of ε whatever the split, so ε shrinks by the square root.
        factor = _floor_sqrt(min(shrink))
        repairs.append(
            f"use a smaller epsilon: multiply it by {show_left(factor)} or less"
            if factor
            else "nothing is left: no epsilon fits"
        )
    if deltas:
        repairs.append(_largest("delta", min(deltas)))
        repairs.append("or group by public keys (a declared `domain:`), which need no delta")
    return tuple(repairs)


def _largest(setting: str, left: Fraction) -> str:
    return f"use {setting} = {show_left(left)} or less" if left else f"nothing is left: no {setting} above 0 fits"


def _floor_sqrt(x: Fraction) -> Fraction:
    scale = 10**30
    return Fraction(math.isqrt(math.floor(x * scale * scale)), scale)


def unusable(path: object, what: str, *help: str, nothing_ran: bool = True) -> CannotOpen:
    """The DP407 refusal: this ledger cannot be used, why, and what to do."""
    return CannotOpen(
        [Diagnostic("DP407", f"ledger {path}: {what}", help=tuple(help), notes=(NOTHING_RAN,) if nothing_ran else ())]
    )
