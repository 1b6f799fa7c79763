"""What a query asks for: how much it may lose, in which accountant's terms, and which columns matter more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.core.policy.units import Accountant
from dpsql.core.privacy_loss import PrivacyLoss, pure_to_rho


@dataclass(frozen=True, slots=True)
class LossRequest:
    """What one query may lose, and how that is split.

    epsilon: ε of the whole query, > 0. delta: its δ, for thresholds and for the conversion of Gaussian noise; 0: none.
    accountant: how the losses of the parts add up. rho: under zcdp the ρ of the whole query; None stands for ε²/2,
    what a pure ε is worth there.
    weights: uid of an output column of a release → its part of the whole, > 0; a column that is not named has 1.
    family: the name of the only noise that may be chosen, where it has been chosen before; empty: any.
    aside: the part of ε or ρ that others lose as such. part: what it may lose of the rest, of an ε once it is
    converted to ρ; what is left of that is another request's, of the same δ. None: all, and nothing aside.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    accountant: Accountant = "approx_dp"
    rho: Fraction | None = None
    weights: Mapping[int, Fraction] = field(default_factory=dict)
    family: str = ""
    aside: Fraction = Fraction(0)
    part: Fraction | None = None

    @property
    def budget(self) -> PrivacyLoss:
        """The most that may be charged, in the accountant's terms."""
        if self.accountant == "zcdp":
            return PrivacyLoss(delta=self.delta, rho=pure_to_rho(self.epsilon) if self.rho is None else self.rho)
        return PrivacyLoss(self.epsilon, self.delta)
