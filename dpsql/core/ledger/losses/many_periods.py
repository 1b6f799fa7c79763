"""What one id loses that is in several periods, where the unit is an id in one period.

*Claim.* Whoever has rows in d periods, each of which loses at most `loss`, loses at most what `over` says. *Why.* His
rows go period by period: d neighbours in a chain. ε adds up, and δ grows by e^ε at each step; a release that reads all
of his periods moves by d times as much, so ρ grows as its square. *When it would be false.* If a step of the chain lost
more than a period has been charged; if d·δ were told beside ρ: d rows of one key pass a threshold with Gaussian noise
far more often than d times as often as one, and nothing here bounds that. *Tested by*
tests/core/ledger/test_many_periods.py.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Final

from dpsql.core.privacy_loss import PrivacyLoss

PERIODS: Final = {"day": (7, 28, 365), "week": (4, 12, 52), "month": (3, 6, 12)}
"""Of how many periods tables tell."""
_UP = Context(prec=20, rounding=ROUND_CEILING)
_LARGEST = Fraction(50)


def over(loss: PrivacyLoss, periods: int) -> PrivacyLoss | None:
    """An upper bound of the loss over so many periods of one id; None: nothing is promised, for δ would be 1.

    Beside ρ no δ is bounded: it is of what is drawn without one.
    """
    epsilon, rho = periods * loss.epsilon, periods**2 * loss.rho
    if not loss.delta or loss.rho:
        return PrivacyLoss(epsilon, Fraction(0), rho)
    steps = (periods - 1) * loss.epsilon
    if steps > _LARGEST:
        return None
    power = _UP.next_plus(_UP.exp(_UP.divide(Decimal(steps.numerator), Decimal(steps.denominator))))
    delta = periods * Fraction(power) * loss.delta
    return None if delta >= 1 else PrivacyLoss(epsilon, delta)


def told(loss: PrivacyLoss, periods: int) -> str:
    """The bound in words."""
    bound = over(loss, periods)
    if bound is None:
        return "nothing is promised"
    return f"{bound}, and a δ that nothing bounds" if loss.rho and 0 < loss.delta < 1 else str(bound)


def words(loss: PrivacyLoss, every: str, most: int | None = None) -> str:
    """`7 days: ε 0.7, 28 days: ε 2.8, 365 days: ε 36.5`. most: no more periods than these are read."""
    found: dict[int, str] = {}
    for periods in PERIODS[every]:
        d = periods if most is None else min(periods, most)
        if d > 1:
            found[d] = f"{d} {every}s: {told(loss, d)}"
    return ", ".join(found.values())
