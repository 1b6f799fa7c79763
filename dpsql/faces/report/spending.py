"""What was spent over time, as a ledger's story tells it: for drawings of the budget.

One panel for each unit and currency (ε or ρ, and δ where any was spent), one line for the total and one for each
account.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Literal

from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.service.accounts.spending_story import NEVER, SpendingStory

Part = Literal["epsilon", "rho", "delta"]
SYMBOLS: dict[Part, str] = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}


@dataclass(frozen=True, slots=True)
class SpendingLine:
    """What one account (None: all together) has spent after each entry. limit: None if no cap is declared."""

    account: str | None
    points: tuple[tuple[datetime, Fraction], ...]
    limit: Fraction | None

    @property
    def drawn(self) -> bool:
        """Whether there was an entry. If there was none, no time is known."""
        return self.points[0][0] != NEVER

    @property
    def spent(self) -> Fraction:
        """After the last entry."""
        return self.points[-1][1]

    @property
    def share(self) -> Fraction:
        """How much of the limit is spent; of none, all of it once anything is."""
        if not self.limit:
            return Fraction(bool(self.spent or self.limit is not None))
        return min(Fraction(1), self.spent / self.limit)


@dataclass(frozen=True, slots=True)
class Panel:
    """One unit in one currency."""

    unit: str
    part: Part
    lines: tuple[SpendingLine, ...]

    @property
    def title(self) -> str:
        """The unit, and what is counted."""
        return f"{self.unit}: {self.symbol}"

    @property
    def symbol(self) -> str:
        """What is counted."""
        return SYMBOLS[self.part]

    @property
    def shown(self) -> list[tuple[int, SpendingLine]]:
        """The lines that are drawn over time, with their numbers: the total, and who has spent."""
        return [(at, line) for at, line in enumerate(self.lines) if at == 0 or line.spent]

    @property
    def limits(self) -> dict[Fraction, list[tuple[int, SpendingLine]]]:
        """Each limit once, with the lines that are drawn and that it is of."""
        found: dict[Fraction, list[tuple[int, SpendingLine]]] = {}
        for at, line in self.shown:
            if line.limit is not None:
                found.setdefault(line.limit, []).append((at, line))
        return found

    @property
    def top(self) -> Fraction:
        """The largest number to be drawn; above 0."""
        return max(
            (max(line.spent, line.limit or Fraction(0)) for line in self.lines), default=Fraction(0)
        ) or Fraction(1)


def panels(policy: Policy, story: SpendingStory, analyst: str | None) -> list[Panel]:
    """A panel for each unit and currency. analyst: this account alone beside the total, else all that are declared or
    have spent.
    """
    wanted = None if analyst is None else policy.account(analyst)
    names = sorted({*story.counts, *policy.budgets.analysts} if wanted is None else {wanted})
    main: Part = "rho" if policy.privacy.accountant == "zcdp" else "epsilon"
    found = []
    for unit in policy.units:
        deltas = any(story.trail(unit, who).spent.delta for who in story.accounts(unit))
        parts: tuple[Part, ...] = (main, "delta") if deltas else (main,)
        for part in parts:
            lines = [_line(None, unit, part, story, policy.caps_for().total.get(unit))]
            for name in names:
                limit = policy.caps_for(None if name == "*" else name).analyst.get(unit)
                lines.append(_line(name, unit, part, story, limit))
            found.append(Panel(unit, part, tuple(lines)))
    return found


def _line(account: str | None, unit: str, part: Part, story: SpendingStory, limit: PrivacyLoss | None) -> SpendingLine:
    trail = story.trail(unit, account)
    points = [(at, getattr(spent, part)) for at, spent in trail.points()]
    total = getattr(trail.spent, part)
    whole = ((story.begins, Fraction(0)), *points, (story.ends, total))
    return SpendingLine(account, whole, None if limit is None else getattr(limit, part))
