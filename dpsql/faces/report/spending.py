"""What was spent after each entry of a ledger: for drawings of the budget.

One panel for each unit and currency (ε or ρ, and δ where any was spent), one line for the total and one for each
account. Time is the clock's, but never runs backwards: an entry is drawn no earlier than the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final, Literal

from dpsql.core.ledger.ledger import Receipt
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss

Part = Literal["epsilon", "rho", "delta"]
SYMBOLS: dict[Part, str] = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SpendingLine:
    """What one account (None: all together) has spent after each entry. limit: None if no cap is declared."""

    account: str | None
    points: tuple[tuple[datetime, Fraction], ...]
    limit: Fraction | None

    @property
    def drawn(self) -> bool:
        """Whether there was an entry. If there was none, no time is known."""
        return self.points[0][0] != _NEVER

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


def panels(policy: Policy, entries: Sequence[Receipt], analyst: str | None) -> list[Panel]:
    """A panel for each unit and currency. analyst: this account alone beside the total, else all that are declared or
    have spent.
    """
    entries = [replace(r, entry=r.entry.called(policy.unit_names)) for r in entries]
    times = _times(entries)
    wanted = None if analyst is None else policy.account(analyst)
    spenders = {r.entry.analyst for r in entries if r.entry.units}
    names = sorted({*spenders, *policy.budgets.analysts} if wanted is None else {wanted})
    main: Part = "rho" if policy.privacy.accountant == "zcdp" else "epsilon"
    found = []
    for unit in policy.units:
        deltas = any(r.entry.in_account(unit).delta for r in entries)
        parts: tuple[Part, ...] = (main, "delta") if deltas else (main,)
        for part in parts:
            lines = [_line(None, unit, part, entries, times, policy.caps_for().total.get(unit))]
            for name in names:
                limit = policy.caps_for(None if name == "*" else name).analyst.get(unit)
                lines.append(_line(name, unit, part, entries, times, limit))
            found.append(Panel(unit, part, tuple(lines)))
    return found


def _line(
    account: str | None,
    unit: str,
    part: Part,
    entries: Sequence[Receipt],
    times: Sequence[datetime],
    limit: PrivacyLoss | None,
) -> SpendingLine:
    total = Fraction(0)
    points = [(times[0], total)]
    for receipt, time in zip(entries, times[1:], strict=True):
        entry = receipt.entry
        if account is None:
            loss = entry.charges.get(unit, NO_LOSS)
        else:
            loss = entry.in_account(unit) if entry.analyst == account else NO_LOSS
        if loss != NO_LOSS:
            total += getattr(loss, part)
            points.append((time, total))
    points.append((times[-1], total))
    return SpendingLine(account, tuple(points), None if limit is None else getattr(limit, part))


def _times(entries: Sequence[Receipt]) -> list[datetime]:
    """The start, then one time for each entry, never before the one before it."""
    found: list[datetime] = []
    for receipt in entries:
        try:
            time = datetime.fromisoformat(receipt.reserved_at).astimezone(UTC)
        except (ValueError, OverflowError):
            time = found[-1] if found else _NEVER
        found.append(max(time, found[-1]) if found else time)
    return [found[0] if found else _NEVER, *found]
