"""Periods of growing tables that the custodian has closed, or opened again: entries that charge nobody.

*Claim.* No query reads a row of a period that no entry of its ledger has closed; and a unit with accounts by period
keeps one way of telling a row's period for as long as its ledger lives. *Why.* What a scan may read is found of these
entries alone (core/analysis/rules/scan.py), and each of them says by which column, made of what, and every how long: a
policy that says otherwise is refused, also under other names of table and unit. *When it would be false.* If the rows
themselves change their date, which is the custodian's promise; if an older ledger was accepted: then what it forgot has
to be closed again. *Tested by* tests/core/ledger/test_closings.py.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from dpsql.core.ir.periods import Closed, Span, words
from dpsql.core.ledger.chain.acceptance import CUSTODIAN
from dpsql.core.ledger.ledger import Caps, Entry, EntryKind, Ledger
from dpsql.core.ledger.refusals import unusable
from dpsql.core.policy.growing import Growth
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table
from dpsql.diagnostics.errors import reject

_CLOSED, _REOPENED = "CLOSE DP PERIODS ", "REOPEN DP PERIODS "
"""How the statements of these entries begin; JSON follows."""
_WAY: Final = ("by", "made of", "every")
"""What tells the period of a row."""


def close(ledger: Ledger, policy: Policy, table: Table, through: dt.date) -> Closed:
    """Custodian only: its periods up to a day are complete. Nothing is added if they are closed already.

    Raises Rejected DP903: the day ends no period; CannotOpen.
    """
    grows = _grows(table)
    if grows.ends(through) != through or through < grows.first:
        before = grows.begins(through) - dt.timedelta(days=1)
        ends = [str(day) for day in (before, grows.ends(through)) if day >= grows.first]
        raise reject(
            "DP903", f"{through} ends no {grows.every} of {table.name}, which begins with {grows.first}",
            help=[f"--through {'  or  --through '.join(ends)}"],
        )  # fmt: skip
    known = closed_periods(ledger.closings(), policy, table)
    if known.through is None or known.through < through:
        _add(ledger, policy, EntryKind.CLOSE, _CLOSED, _said(table, grows) | {"through": through.isoformat()})
    return closed_periods(ledger.closings(), policy, table)


def reopen(ledger: Ledger, policy: Policy, table: Table, days: tuple[dt.date, dt.date]) -> Closed:
    """Custodian only: rows of these closed days were corrected. They are read as before, and what was stored of them
    is served no longer; what was spent of them stays. Raises Rejected DP903, CannotOpen.
    """
    grows, (first, last) = _grows(table), days
    known = closed_periods(ledger.closings(), policy, table)
    if first > last or known.through is None or first < grows.first or last > known.through:
        closed = "none" if known.through is None else words(((grows.first, known.through),))
        raise reject("DP903", f"{first} … {last} are not closed days of {table.name}", help=[f"closed are: {closed}"])
    ends = {"first": first.isoformat(), "last": last.isoformat()}
    _add(ledger, policy, EntryKind.REOPEN, _REOPENED, _said(table, grows) | ends)
    return closed_periods(ledger.closings(), policy, table)


def closed_periods(entries: Iterable[Entry], policy: Policy, table: Table) -> Closed:
    """What a ledger's entries say of a growing table. Raises CannotOpen DP407: its periods are told otherwise now."""
    grows, through, reopened = _grows(table), None, list[Span]()
    own = _said(table, grows)
    known = [(entry, _read(entry)) for entry in entries]
    names = {str(said["table"]).casefold() for _, said in known}
    for entry, said in known:
        if not _is_of(said, policy, table, names):
            continue
        if any(said.get(name) != own[name] for name in _WAY):
            raise _told_otherwise(said, own, table, policy)
        if entry.kind is EntryKind.CLOSE:
            day = dt.date.fromisoformat(said["through"])
            through = day if through is None else max(through, day)
        else:
            reopened.append((dt.date.fromisoformat(said["first"]), dt.date.fromisoformat(said["last"])))
    return Closed(through, tuple(reopened))


def statement_words(entry: Entry) -> str:
    """What such an entry did, for the history."""
    said = _read(entry)
    if entry.kind is EntryKind.CLOSE:
        return f"{_CLOSED}OF {said['table']} THROUGH {said['through']}"
    return f"{_REOPENED}OF {said['table']} FROM {said['first']} THROUGH {said['last']}"


def _is_of(said: dict[str, Any], policy: Policy, table: Table, names: Collection[str]) -> bool:
    """Whether an entry is about a table: of its name, or of its unit where that has no other table. One of a table that
    is gone is about those of its unit that have no entry of their own: it may be what they were called.

    names: of all tables with entries.
    """
    unit, named = policy.unit_names.present(str(said["unit"])), str(said["table"]).casefold()
    if unit != table.unit:
        return False
    others = [name.casefold() for name in policy.units[unit].tables]
    gone = named not in others and table.name.casefold() not in names
    return len(others) == 1 or gone or named == table.name.casefold()


def _said(table: Table, grows: Growth) -> dict[str, Any]:
    return {
        "table": table.name, "unit": table.unit, "by": grows.by, "made of": grows.made_of, "every": grows.every,
    }  # fmt: skip


def _grows(table: Table) -> Growth:
    if table.grows is None:
        raise reject(
            "DP903", f"{table.name} does not grow: it has no periods to close",
            help=[f"custodian: tables.{table.name}:  grows: {{by: day, every: day, from: 2026-01-01}}"],
        )  # fmt: skip
    return table.grows


def _add(ledger: Ledger, policy: Policy, kind: EntryKind, begins: str, said: dict[str, Any]) -> None:
    statement = begins + json.dumps(said, sort_keys=True)
    # Of two who say the same at one time, one adds it.
    id = f"{kind.value} {len(ledger.closings())} {hashlib.sha256(statement.encode()).hexdigest()[:32]}"
    ledger.reserve(Entry(id, CUSTODIAN, {}, "", policy.hash, statement, kind=kind), Caps())


def _read(entry: Entry) -> dict[str, Any]:
    begins = _CLOSED if entry.kind is EntryKind.CLOSE else _REOPENED
    found: dict[str, Any] = json.loads(entry.statement.removeprefix(begins))
    return found


def _told_otherwise(said: dict[str, Any], own: dict[str, Any], table: Table, policy: Policy) -> Exception:
    def way(of: dict[str, Any]) -> str:
        made = f" (from: {of['made of']})" if of["made of"] else ""
        return f"by {of['by']}{made} every {of['every']}"

    return unusable(
        policy.ledger or "of this policy",
        f"its periods of {said['table']} are told {way(said)}, and the policy tells those of {table.name} {way(own)}: "
        "a row would have a second period, and a second budget",
        f"custodian: say in tables.{table.name}.grows what was said when the first period was closed",
    )


def tables_that_grow(policy: Policy) -> Sequence[Table]:
    """Those of which there are periods to close."""
    return [table for table in policy.tables.values() if table.grows is not None]
