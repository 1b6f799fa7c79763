"""What ε means as odds: how far a guess about one person may move, in the worst case.

Claim: let somebody hold a guess about one unit, and know all rows of all others. If the answers are ε-differentially
private, then the odds of "is in the data" against "is not" change by a factor of at most e^ε. So do the odds of one
property against another where neighbours are databases with one unit *replaced*. Where neighbours have one unit *added
or removed*, two properties are two steps apart (without the unit lies between them), and the factor is at most e^(2ε).
Why: Bayes' rule multiplies the odds by the ratio of the probabilities of what was answered, and that ratio is what ε
bounds: at most e^ε for each step (Dwork, McSherry, Nissim & Smith 2006, Definition 1; Kasiviswanathan & Smith 2014).
When it would be false: with δ > 0 the ratio may be larger on outcomes that δ allows; a guess about several units.
Tested by: tests/faces/cli/test_policy_report.py (randomised response and a histogram of one person reach both).
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.core.policy.units import Neighbours
from dpsql.core.privacy_loss import PrivacyLoss, rho_to_epsilon, show_spent

CONVERSION_DELTA = Fraction(1, 10**6)
"""δ at which ρ is told as ε, where a policy counts in ρ."""

_LIKELIEST = 700.0
"""An ε at which no guess is limited any more, and e^ε is still a float."""


def steps(neighbours: Neighbours) -> int:
    """How many neighbours lie between two databases in which one unit has one property or another."""
    return 2 if neighbours == "add_remove" else 1


def afterwards(before: float, epsilon: Fraction, steps: int = 1) -> float:
    """The most that a guess held with probability `before` may rise to: p / (p + (1 − p)·e^(−steps·ε))."""
    return before / (before + (1 - before) * math.exp(-min(float(steps * epsilon), _LIKELIEST)))


def as_epsilon(loss: PrivacyLoss) -> tuple[Fraction, Fraction]:
    """A loss as (ε, δ): as it is, or of ρ by Canonne, Kamath & Steinke 2020, Corollary 13, at `CONVERSION_DELTA`.

    What else is spent of δ is added to that. Raises ValueError for ρ above 10⁹.
    """
    if not loss.rho:
        return loss.epsilon, loss.delta
    return rho_to_epsilon(loss.rho, CONVERSION_DELTA), loss.delta + CONVERSION_DELTA


def in_hundred(probability: float) -> str:
    """`2.7 in 100`, rounded up; from 99 on, that it is more."""
    percent = 100 * probability
    if percent > 99:
        return "over 99 in 100"
    return f"{_ceil(percent, 1):.1f} in 100" if percent < 10 else f"{math.ceil(percent - 1e-9)} in 100"


def one_in(delta: Fraction) -> str:
    """`1 in 1,000,000`: a probability that is never shown smaller than it is."""
    if not delta:
        return "none"
    return f"1 in {math.floor(1 / delta):,}" if delta > Fraction(1, 10**15) else show_spent(delta)


def _ceil(value: float, places: int) -> float:
    scale = 10.0**places
    return math.ceil(value * scale - 1e-9) / scale
