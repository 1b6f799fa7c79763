"""What was spent over time, as a ledger's story tells it: for drawings of the budget.

One panel for each unit and currency (ε or ρ, and δ where any was spent), one line for the total and one for each
account. Of units with a budget for each period, each line over the periods, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Final, Literal

from dpsql.core.ledger.losses.regions import Region
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.service.accounts.spending_story import NEVER, SpendingStory

Part = Literal["epsilon", "rho", "delta"]
LAST: Final = date.max.toordinal()
SYMBOLS: dict[Part, str] = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}


@dataclass(frozen=True, slots=True)
class SpendingLine:
    """What one account (None: all together) has spent after each entry. limit: None if no cap is declared.

    periods: what each day has lost, from the first of its table to one behind the last of which there is anything to
    say, where it changes; empty where days have no accounts, or nothing was spent.
    """

    account: str | None
    points: tuple[tuple[datetime, Fraction], ...]
    limit: Fraction | None
    periods: tuple[tuple[date, Fraction], ...] = ()

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
    """One unit in one currency. every: what its periods are called; empty where it has one account."""

    unit: str
    part: Part
    lines: tuple[SpendingLine, ...]
    every: str = ""

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
            days, every = _days(policy, unit, story)
            lines = [_line(None, unit, part, story, policy.caps_for().total.get(unit), days)]
            for name in names:
                limit = policy.caps_for(None if name == "*" else name).analyst.get(unit)
                lines.append(_line(name, unit, part, story, limit, days))
            found.append(Panel(unit, part, tuple(lines), every))
    return found


def _days(policy: Policy, unit: str, story: SpendingStory) -> tuple[tuple[date, ...], str]:
    """The days on which what the units of a day have lost may change, from their first one on; what a period is called.

    The last of them is behind the last one. Empty where there is nothing to draw.
    """
    growing = [table.grows for table in policy.by_period.get(unit, ()) if table.grows is not None]
    if not growing:
        return (), ""
    first = min(grows.first for grows in growing)
    regions = (story.trail(unit, who).by_period for who in story.accounts(unit))
    cuts = {cut for region in regions for span in region for cut in span.bounds if first.toordinal() < cut < LAST}
    begins = sorted({first, *map(date.fromordinal, cuts)}) if story.accounts(unit) else []
    behind = [min(growing[0].ends(day).toordinal() + 1, LAST) for day in begins[-1:]]
    return (*begins, *map(date.fromordinal, behind)), growing[0].every


def _by_day(region: Region, part: Part, days: tuple[date, ...]) -> tuple[tuple[date, Fraction], ...]:
    found, at = list[tuple[date, Fraction]](), 0
    for day in days[:-1]:
        while at < len(region) and region[at].bounds[1] <= day.toordinal():
            at += 1
        begun = at < len(region) and region[at].bounds[0] <= day.toordinal()
        found.append((day, getattr(region[at].loss, part) if begun else Fraction(0)))
    return (*found, *((days[-1], spent) for _, spent in found[-1:]))


def _line(
    account: str | None, unit: str, part: Part, story: SpendingStory, limit: PrivacyLoss | None, days: tuple[date, ...]
) -> SpendingLine:
    trail = story.trail(unit, account)
    points = [(at, getattr(spent, part)) for at, spent in trail.points()]
    total = getattr(trail.spent, part)
    whole = ((story.begins, Fraction(0)), *points, (story.ends, total))
    most = None if limit is None else getattr(limit, part)
    return SpendingLine(account, whole, most, _by_day(trail.by_period, part, days))
