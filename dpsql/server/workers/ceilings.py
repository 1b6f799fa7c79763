"""What a login may still spend: its ceilings for one query, for the last hour and the last day.

*Claim.* In any day (hour) an account is charged at most its login's ceiling, as far as the clocks of the machines that
charge are true. *Why.* What was charged in it is read from the ledger before a statement, with all that the account had
spent by then; what it spends from then on counts in the transaction that charges (`Ceiling` of core/ledger/ledger.py),
whoever charges it. *When it would be false.* If a clock goes back. Budgets do not rest on clocks. *Tested by*
tests/server/test_ceilings.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from dpsql.core.ledger.ledger import Ceiling, Receipt
from dpsql.core.policy.units import Accountant, UnitNames
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, exact_epsilon, largest, remaining
from dpsql.server.statements import Ceilings
from dpsql.service.service import Service

_SPANS: Final = {"per_hour": dt.timedelta(hours=1), "per_day": dt.timedelta(days=1)}


def ceilings_now(service: Service, account: str, ceilings: Ceilings, now: dt.datetime) -> Mapping[str, Ceiling]:
    """A login's ceilings by their names, as the ledger limits a charge by them. Raises CannotOpen (DP407)."""
    accountant = service.policy.privacy.accountant
    given = {name: getattr(ceilings, name) for name in ("per_query", *_SPANS)}
    caps = {name: _cap(amount, accountant) for name, amount in given.items() if amount is not None}
    if not any(name in _SPANS for name in caps):
        return {name: Ceiling(cap) for name, cap in caps.items()}
    names, own = service.policy.unit_names, service.policy.account(account)
    history = [receipt for receipt in service.ledger.history() if receipt.entry.analyst == own]
    before = spent_since(history, None, names)
    found: dict[str, Ceiling] = {}
    for name, cap in caps.items():
        if name in _SPANS:
            spent = largest(spent_since(history, now - _SPANS[name], names).values())
            found[name] = Ceiling(remaining(cap, PrivacyLoss(spent.epsilon, Fraction(0), spent.rho)), before)
        else:
            found[name] = Ceiling(cap)
    return found


def spent_since(history: Sequence[Receipt], since: dt.datetime | None, names: UnitNames) -> dict[str, PrivacyLoss]:
    """Unit → what it was charged from then on; None: ever. Entries without a time count."""
    found: dict[str, PrivacyLoss] = {}
    for receipt in history:
        if since is None or not _is_before(receipt.reserved_at, since):
            entry = receipt.entry.called(names)
            for unit in entry.units:
                found[unit] = found.get(unit, NO_LOSS) + entry.in_account(unit)
    return found


def _is_before(reserved_at: str, since: dt.datetime) -> bool:
    try:
        at = dt.datetime.fromisoformat(reserved_at)
    except ValueError:
        return False
    return (at if at.tzinfo is not None else at.replace(tzinfo=dt.UTC)) < since


def _cap(amount: str, accountant: Accountant) -> PrivacyLoss:
    """An ε in the ledger's terms: under zCDP ρ = ε²/2, as the ε of a query is read. δ has no ceiling."""
    epsilon = exact_epsilon(amount)
    if accountant == "zcdp":
        return PrivacyLoss(delta=Fraction(1), rho=epsilon * epsilon / 2)
    return PrivacyLoss(epsilon, Fraction(1))
