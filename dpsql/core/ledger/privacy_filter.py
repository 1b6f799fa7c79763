"""Running totals, and the one decision a ledger makes: does this charge fit?

*Claim.* A charge that `check` lets pass keeps every total within its cap. *Why.* Totals and caps are exact rationals;
a stored charge is never below the loss it stands for (rounded up to a grid that holds every usual number exactly);
all units of a query are checked before any is charged. *When it would be false.* If another charge came between `check`
and `add`: ledgers call both inside one lock or transaction. *Tested by* tests/core/ledger/test_ledger_contract.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from dpsql.core.ledger.accountant import ACCOUNTANTS, Accountant, in_terms_of
from dpsql.core.ledger.failures import read, require_few
from dpsql.core.ledger.ledger import Account, Caps, Entry, Failure, Receipt
from dpsql.core.ledger.refusals import Limit, key, over_budget
from dpsql.core.policy.units import DEFAULT_UNIT, UnitNames
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss


def settle(entry: Entry, accountant: Accountant) -> Entry:
    """The entry as it is stored: charges rounded up to the grid, text that any file can hold.

    Raises ValueError for an entry no caller should make: no id, no account, a unit whose name no file can hold, or a
    charge in another accountant's terms.
    """
    if not entry.id or not entry.analyst:
        raise ValueError("an entry needs an id and an account")
    if any(_plain(answer) != answer or not answer for answer in entry.answers):
        raise ValueError("the id of a stored answer is not valid text")
    for unit, loss in (*entry.charges.items(), *entry.received.items()):
        if _plain(unit) != unit:
            raise ValueError(f"the name of unit {unit!r} is not valid text")
        if not in_terms_of(accountant, loss):
            raise ValueError(f"the charge of unit {unit!r} ({loss}) is not in terms of {accountant}")
    return replace(
        entry,
        analyst=_plain(entry.analyst),
        charges={unit: loss.on_grid() for unit, loss in entry.charges.items()},
        statement=_plain(entry.statement),
        received={unit: loss.on_grid() for unit, loss in entry.received.items()},
        answers=tuple(entry.answers),
    )


def _plain(text: str) -> str:
    # Half of a surrogate pair (from a file name or an argument in another encoding) cannot be written to any file.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Book:
    """Totals per unit, of all analysts and of each. Not safe for threads: its ledger holds the lock.

    A unit has one account, whatever it was called: entries count for what their units are called now.
    """

    def __init__(self, accountant: str, names: UnitNames | None = None) -> None:
        """names: of the policy's units; None: any name is a unit of its own. ValueError for an unknown accountant."""
        match = [known for known in ACCOUNTANTS if known == accountant]
        if not match:
            raise ValueError(f"accountant must be one of {', '.join(ACCOUNTANTS)}, got {accountant!r}")
        self.accountant: Accountant = match[0]
        self._names = names
        self._totals: dict[tuple[str, str | None], PrivacyLoss] = {}
        self._answers: dict[str, set[str]] = {}
        self._definitions: list[Entry] = []
        self._failures: list[Failure] = []

    def spent(self, unit: str, analyst: str | None = None) -> PrivacyLoss:
        """Total loss of a unit, or what one analyst's account holds."""
        return self._totals.get((unit, None if analyst is None else _plain(analyst)), NO_LOSS)

    def received(self, analyst: str | None = None) -> frozenset[str]:
        """Ids of the stored answers that an account holds; None: that anybody has paid for."""
        if analyst is None:
            return frozenset().union(*self._answers.values())
        return frozenset(self._answers.get(_plain(analyst), ()))

    def definitions(self) -> Sequence[Entry]:
        """Entries that define something, in the order in which they were added."""
        return tuple(self._definitions)

    def failures(self) -> Sequence[Failure]:
        """What failed since a custodian looked last, in the order in which it was added."""
        return tuple(self._failures)

    def accounts(self) -> Sequence[Account]:
        """Every account with anything spent: units in order, each one's total before its analysts."""
        ordered = sorted(self._totals.items(), key=lambda item: (item[0][0], item[0][1] is not None, item[0][1] or ""))
        return [Account(unit, analyst, spent) for (unit, analyst), spent in ordered if spent != NO_LOSS]

    def add(self, entry: Entry) -> None:
        """Count a settled entry."""
        entry = entry if self._names is None else entry.called(self._names)
        for unit, loss in entry.charges.items():
            self._totals[unit, None] = self.spent(unit) + loss
        for unit in entry.units:
            self._totals[unit, entry.analyst] = self.spent(unit, entry.analyst) + entry.in_account(unit)
        if entry.answers:
            self._answers.setdefault(entry.analyst, set()).update(entry.answers)
        if entry.defines:
            self._definitions.append(entry)
        elif entry.fails:
            self._failures.append(read(entry))
        elif entry.looks:
            self._failures.clear()

    @property
    def unnamed(self) -> Sequence[str]:
        """Units that have spent, and of which the policy says neither that it has them nor what became of them.

        *Claim.* While there are none, what was spent of a unit counts for it under its present name. *Why.* Its old
        name is in an entry; so it is the present one, or `former_units` says what that is. *When it would be false.* If
        `former_units` says what is not so; if a table was given to another unit that is there as well: entries do not
        name tables. *Tested by* tests/core/ledger/test_units.py.
        """
        if self._names is None:
            return ()
        spent = {unit for (unit, _), loss in self._totals.items() if loss != NO_LOSS}
        return sorted(spent - self._names.now - self._names.former.keys())

    def check(self, entry: Entry, caps: Caps) -> None:
        """Raise BudgetExceeded with one diagnostic per cap that a settled entry does not fit into."""
        require_fits(entry, caps, self.spent, self.failures)


def require_fits(
    entry: Entry,
    caps: Caps,
    spent_of: Callable[[str, str | None], PrivacyLoss],
    failures: Callable[[], Sequence[Failure]] = tuple,
) -> None:
    """As `Book.check`. spent_of: what has been spent of a unit, by one account or (None) in total."""
    if caps.failures is not None and entry.charges:  # answers that are stored read no private row
        require_few(caps.failures, entry.analyst, failures())
    limits: list[Limit] = []
    account = f"budgets.analysts.{key(entry.analyst)}"
    for unit in entry.units:
        own, known = entry.in_account(unit), entry.received.get(unit, NO_LOSS)
        if caps.per_query is not None:
            name = f"limit per query of analyst {entry.analyst!r}{_on(unit)}"
            limits.append(Limit("DP405", name, f"{account}.per_query", own, caps.per_query, received=known))
        for setting, ceiling in caps.ceilings.items():
            name = f"ceiling {setting} of this login{_on(unit)}"
            left = ceiling.left_of(unit, partial(spent_of, unit, entry.analyst))
            limits.append(Limit("DP413", name, setting, own, left, received=known))
        if unit in caps.analyst:
            name = f"budget of analyst {entry.analyst!r}{_on(unit)}"
            spent = spent_of(unit, entry.analyst)
            limits.append(Limit("DP404", name, account, own, caps.analyst[unit], spent, known))
        if unit in caps.total and unit in entry.charges:
            name, asked = f"total budget{_on(unit, 'of')}", entry.charges[unit]
            limits.append(Limit("DP403", name, "budgets.total", asked, caps.total[unit], spent_of(unit, None)))
    refusal = over_budget(limits)
    if refusal is not None:
        raise refusal


def _on(unit: str, word: str = "on") -> str:
    """` on unit 'patient'`; nothing where the policy gives its one unit no name."""
    return "" if unit == DEFAULT_UNIT else f" {word} unit {unit!r}"


def same_request(earlier: Receipt, settled: Entry) -> Receipt:
    """The receipt of an entry reserved before, for its second reservation.

    Raises ValueError if the id belongs to another request: a small charge must not pay for a large one.
    """
    if earlier.entry != settled:
        raise ValueError(f"the id {settled.id!r} already belongs to another entry")
    return earlier
