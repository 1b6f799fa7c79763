"""Statements that were charged and then failed: entries that charge nobody, counted until a custodian has looked.

*Claim.* While the ledger holds `most` failures of an account, or `in_total` of all, within the policy's time, no entry
that pays for new noise is admitted under that cap. *Why.* It is looked at where budgets are, in the transaction that
charges; failures are entries of the chain, so no restart and no other gateway forgets them. *When it would be false.*
If a clock goes forward: then they are old too soon. If several statements fail at one time: each was admitted before.
*Tested by* tests/core/ledger/test_ledger_contract.py, tests/service/test_failures.py.

It is a brake and no guarantee (docs/explanation/guarantee.md): that a statement failed is no answer with noise.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Collection, Sequence
from typing import Final, Literal

from dpsql.core.ledger.chain.acceptance import CUSTODIAN
from dpsql.core.ledger.ledger import Caps, Entry, EntryKind, Failure, FailureCap, Ledger
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.diagnostics.note import NOTHING_RAN

_FAILED, _LOOKED_AT = "STATEMENT FAILED ", "FAILURES LOOKED AT "
"""How the statements of these entries begin."""

How = Literal["failed", "crashed"]
"""failed: the engine did. crashed: the process that ran it ended with it."""

LOOK: Final = "custodian: look at them, and let private queries go on:  dpsql budget POLICY --failures --clear WHY"


def note(ledger: Ledger, entry: str, analyst: str, how: How) -> None:
    """Say in the ledger that the run which this entry charged has failed; of one run only once. Raises CannotOpen."""
    statement = f"{_FAILED}{_now()} {how} {entry}"
    with contextlib.suppress(ValueError):  # it is said already, of another time
        ledger.reserve(Entry(f"failed {entry}", analyst, {}, "", "", statement, kind=EntryKind.FAILURE), Caps())


def look_at(ledger: Ledger, who: str, why: str) -> None:
    """Custodian only: say that all failures until now were looked at; they count no more. Raises CannotOpen."""
    history = ledger.history()
    statement = f"{_LOOKED_AT}{_now()} by {who}: {why}"
    after = history[-1].hash if history else "nothing"
    ledger.reserve(Entry(f"looked at {after}", CUSTODIAN, {}, "", "", statement, kind=EntryKind.LOOK), Caps())


def read(entry: Entry) -> Failure:
    """What an entry says that `note` made."""
    at, how, failed = (*entry.statement.removeprefix(_FAILED).split(" ", 2), "", "")[:3]
    try:
        moment = dt.datetime.fromisoformat(at)
    except ValueError:
        return Failure(entry.analyst, None, failed, how)
    return Failure(entry.analyst, moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC), failed, how)


def counted(failures: Collection[Failure], since: dt.datetime) -> Sequence[Failure]:
    """Those from then on. One whose time cannot be read counts."""
    return [f for f in failures if f.at is None or f.at >= since]


def too_many(cap: FailureCap, account: str, failures: Collection[Failure]) -> str | None:
    """Why private queries of an account are to stop, in words; None if they need not."""
    found = counted(failures, cap.since)
    if sum(f.account == account for f in found) >= cap.most:
        return f"{cap.most} statements of account {account!r} failed in the engine"
    if len(found) >= cap.in_total:
        return f"{cap.in_total} statements of all accounts together failed in the engine"
    return None


def require_few(cap: FailureCap, account: str, failures: Collection[Failure]) -> None:
    """Raises BudgetExceeded DP416."""
    why = too_many(cap, account, failures)
    if why is not None:
        on = "or wait: each counts for the time  failures: {per: …}  of the policy; stored answers go on"
        raise BudgetExceeded(
            [Diagnostic("DP416", f"{why}, and a custodian has to look", help=(LOOK, on), notes=(NOTHING_RAN,))]
        )


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
