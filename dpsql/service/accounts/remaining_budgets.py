"""What an analyst may still spend, as the ledger and the policy's limits have it now."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from dpsql.core.ledger.ledger import Caps, Ledger
from dpsql.core.ledger.losses import many_periods
from dpsql.core.ledger.losses.fixed_budgets import in_force
from dpsql.core.ledger.losses.regions import END, Days, Region, between, words
from dpsql.core.ledger.refusals import CapReached, key, over_budget
from dpsql.core.policy.period_ids import whose
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, left_text, remaining
from dpsql.planner.plan import Charge


@dataclass(frozen=True, slots=True)
class Budget:
    """What has been spent of a privacy unit and what is left, for this analyst and in total. None: no cap declared."""

    unit: str
    spent: PrivacyLoss
    remaining: PrivacyLoss | None
    total_spent: PrivacyLoss
    total_remaining: PrivacyLoss | None

    def __str__(self) -> str:
        """One line; what is spent is rounded up and what is left down."""
        own = f"spent {self.spent}, {_left(self.remaining)}"
        return f"{self.unit}: {own}; in total spent {self.total_spent}, {_left(self.total_remaining)}"


def _left(left: PrivacyLoss | None) -> str:
    return left_text(left) if left is None else f"left {left_text(left)}"


class Budgets(dict[str, Budget]):
    """Privacy unit → Budget, with the tightest numbers over all units in front."""

    @property
    def spent(self) -> PrivacyLoss:
        """The most that this analyst has spent of any one unit."""
        return _each(max, [b.spent for b in self.values()]) or PrivacyLoss()

    @property
    def remaining(self) -> PrivacyLoss | None:
        """What a query that touches every unit could still spend; None if no cap is declared."""
        return _each(min, [r for b in self.values() for r in (b.remaining, b.total_remaining) if r is not None])

    def __str__(self) -> str:
        """One line per unit."""
        return "\n".join(map(str, self.values()))

    __repr__ = __str__


def _each(choose: Callable[[list[Fraction]], Fraction], losses: list[PrivacyLoss]) -> PrivacyLoss | None:
    if not losses:
        return None
    return PrivacyLoss(
        choose([x.epsilon for x in losses]), choose([x.delta for x in losses]), choose([x.rho for x in losses])
    )


def limits_of(policy: Policy, ledger: Ledger | None, analyst: str) -> Caps:
    """What limits an account (`*`: the shared one): the policy's numbers, or what the ledger has fixed below them."""
    caps = policy.caps_for(None if analyst == "*" else analyst)
    limits = Caps(caps.total, caps.analyst, caps.per_query, by_period=caps.by_period)
    return limits if ledger is None else in_force(limits, analyst, ledger.fixed())


def budgets_of(policy: Policy, ledger: Ledger, analyst: str) -> Budgets:
    """The budgets of one account (`*`: the shared one). Raises CannotOpen."""
    caps = limits_of(policy, ledger, analyst)
    found = Budgets()
    for unit in policy.units:
        own, total = ledger.spent(unit, analyst), ledger.spent(unit)
        own_cap, total_cap = caps.analyst.get(unit), caps.total.get(unit)
        found[unit] = Budget(
            unit,
            own,
            None if own_cap is None else remaining(own_cap, own),
            total,
            None if total_cap is None else remaining(total_cap, total),
        )
    return found


def lines_by_period(policy: Policy, ledger: Ledger | None, analyst: str | None = None) -> list[str]:
    """What each period of a growing table has lost, and what that means; empty if no unit has accounts by period."""
    found: list[str] = []
    for unit, (table, *others) in policy.by_period.items():
        assert table.grows is not None
        cap = limits_of(policy, ledger, analyst or "*")
        limit = cap.total.get(unit) if analyst is None else cap.analyst.get(unit)
        spent = () if ledger is None else ledger.by_period(unit, analyst)
        whom = f"one {whose(table)}" if table.per else f"each row of {table.name} by {table.grows.every}"
        found += ["", f"{unit}, {whom}"]
        first = min(t.grows.first for t in (table, *others) if t.grows is not None)
        for days, loss in _runs(spent, first):
            left = "no limit" if limit is None else f"{_left(remaining(limit, loss))} of {limit}"
            nothing = "ρ 0" if policy.privacy.accountant == "zcdp" and not loss.rho else str(loss)
            found.append(f"  {days:<25}  spent {nothing}, {left}")
        if analyst is None and limit is not None:
            what = f"one {whose(table)}" if table.per else f"one row of {table.name}"
            found.append(
                f"{limit} is what {what} may lose in all. Nothing limits what all periods together tell of all rows."
            )
            every = table.grows.every
            whom = f"A {table.per} of many {every}s" if table.per else f"Somebody with a row in each of many {every}s"
            found.append(f"{whom} is protected less: {over(limit, table)}.")
    return found


def over(limit: PrivacyLoss, table: Table) -> str:
    """What an id of a table loses that is in several periods."""
    assert table.grows is not None
    return many_periods.words(limit, table.grows.every)


def _runs(spent: Region, first: dt.date) -> Iterator[tuple[str, PrivacyLoss]]:
    """Stretches of days of one loss, from the first day of the table on, those that lost nothing among them."""
    start = first.toordinal()
    for span in spent:
        begin, stop = max(span.bounds[0], start), span.bounds[1]
        if stop <= start:
            continue
        if begin > start:
            yield words((dt.date.fromordinal(start), dt.date.fromordinal(begin - 1))), NO_LOSS
        yield words((dt.date.fromordinal(begin), span.last)), span.loss
        start = stop
    if start < END:
        yield words((dt.date.fromordinal(start), None)), NO_LOSS


def stretches(own: Region, every: Region, first: dt.date) -> Iterator[tuple[Days, PrivacyLoss, PrivacyLoss]]:
    """From the first day of a table on: days on which neither changes, and what each says of them."""
    start = first.toordinal()
    cuts = {start, END, *(cut for span in (*own, *every) for cut in span.bounds if cut > start)}
    for begin, stop in pairwise(sorted(cuts)):
        span = between(begin, stop, NO_LOSS)
        yield (span.first, span.last), _lost(own, begin), _lost(every, begin)


def _lost(region: Region, day: int) -> PrivacyLoss:
    return next((span.loss for span in region if span.bounds[0] <= day < span.bounds[1]), NO_LOSS)


def total(charges: Iterable[Charge]) -> dict[str, PrivacyLoss]:
    """What they charge together, unit by unit."""
    return _summed(charge.by_unit for charge in charges)


def total_of_new(charges: Iterable[Charge]) -> dict[str, PrivacyLoss]:
    """What their new noise costs together: of stored answers only the account is charged."""
    return _summed(charge.new for charge in charges)


def _summed(each: Iterable[Mapping[str, PrivacyLoss]]) -> dict[str, PrivacyLoss]:
    made: dict[str, PrivacyLoss] = {}
    for losses in each:
        for unit, loss in losses.items():
            made[unit] = made.get(unit, NO_LOSS) + loss
    return made


def require_left(what: str, charges: Sequence[Charge], caps: Caps, left: Budgets, analyst: str) -> None:
    """Refuse before the first of several runs what would be refused before the last. what: all of them, in words.

    Raises BudgetExceeded.
    """
    account, limits = f"budgets.analysts.{key(analyst)}", list[CapReached]()
    of_new = total_of_new(charges)
    for unit, loss in total(charges).items():
        if unit in caps.analyst:
            name = f"{what}: budget of analyst {analyst!r} on unit {unit!r}"
            limits.append(CapReached("DP404", name, account, loss, caps.analyst[unit], left[unit].spent))
        if unit in caps.total and unit in of_new:
            name = f"{what}: total budget of unit {unit!r}"
            limits.append(
                CapReached("DP403", name, "budgets.total", of_new[unit], caps.total[unit], left[unit].total_spent)
            )
    refusal = over_budget(limits)
    if refusal is not None:
        raise refusal
