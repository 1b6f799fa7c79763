"""What a login may still spend: its ceilings for one query, for the last hour and the last day.

*Claim.* In any day (hour) an account is charged at most its login's ceiling, as far as the clock of this machine is
true. *Why.* What was charged in it is read from the ledger before a statement, the rest is a limit that the ledger
checks when it charges, and statements of one account with ceilings run one after the other (`pool.py`). *When it would
be false.* If two servers had one ledger; if the clock went back. Budgets rest on neither. *Tested by*
tests/server/test_ceilings.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from dpsql.core.ledger.ledger import Receipt
from dpsql.core.policy.units import Accountant
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, exact_epsilon, largest, remaining
from dpsql.server.statements import Ceilings
from dpsql.service.service import Service

_SPANS: Final = {"per_hour": dt.timedelta(hours=1), "per_day": dt.timedelta(days=1)}


def left_of(service: Service, account: str, ceilings: Ceilings, now: dt.datetime) -> Mapping[str, PrivacyLoss]:
    """Name of a ceiling → what one query may cost now. Raises CannotOpen (DP407)."""
    accountant = service.policy.privacy.accountant
    given = {name: getattr(ceilings, name) for name in ("per_query", *_SPANS)}
    caps = {name: _cap(amount, accountant) for name, amount in given.items() if amount is not None}
    if not any(name in _SPANS for name in caps):
        return caps
    history = service.ledger.history()
    own = service.policy.account(account)
    return {
        name: remaining(cap, spent_since(history, own, now - _SPANS[name])) if name in _SPANS else cap
        for name, cap in caps.items()
    }


def spent_since(history: Sequence[Receipt], account: str, since: dt.datetime) -> PrivacyLoss:
    """What an account was charged from then on: of the unit that lost most. Entries without a time count."""
    found: dict[str, PrivacyLoss] = {}
    for receipt in history:
        if receipt.entry.analyst == account and not _is_before(receipt.reserved_at, since):
            for unit in receipt.entry.units:
                found[unit] = found.get(unit, NO_LOSS) + receipt.entry.in_account(unit)
    most = largest(found.values())
    return PrivacyLoss(most.epsilon, Fraction(0), most.rho)


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
