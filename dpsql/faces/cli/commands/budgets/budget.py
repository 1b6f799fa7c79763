"""`dpsql budget`: what has been spent of each unit and what is left, from policy and ledger; the data is not opened."""

from __future__ import annotations

import datetime as dt
import getpass
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dpsql.answers.results.cell_texts import Cell, cell
from dpsql.answers.stored.analyst_account import answers_beside
from dpsql.answers.stored.older_answers import in_all
from dpsql.core.ledger import closings, counters
from dpsql.core.ledger.failures import counted, look_at, too_many
from dpsql.core.ledger.ledger import CHARGING, Entry, EntryKind, Failure, FailureCap, Ledger, Receipt
from dpsql.core.ledger.losses.regions import write
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, left_text, remaining
from dpsql.diagnostics.errors import reject
from dpsql.faces.cli.answer_text import loss_json
from dpsql.faces.cli.commands.budgets import budget_additions, budget_plot
from dpsql.faces.cli.commands.budgets.budget_additions import Addition
from dpsql.faces.cli.json_text import document
from dpsql.faces.cli.options import ReportFormat
from dpsql.faces.cli.table_layout import print_table
from dpsql.policy.load import load_policy
from dpsql.service.accounts.ledgers import (
    FORGETS,
    AnyPlace,
    accept_ledger,
    look_at_ledger,
    open_ledger,
    place_of,
    shown,
)
from dpsql.service.accounts.remaining_budgets import limits_of, lines_by_period

_LONGEST: Final = 120
"""Characters of a statement in the history's table."""


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One line: what an analyst (None: all together) has spent of a unit. limit: None if no cap is declared."""

    unit: str
    analyst: str | None
    spent: PrivacyLoss
    limit: PrivacyLoss | None

    @property
    def left(self) -> PrivacyLoss | None:
        """None if no cap is declared."""
        return None if self.limit is None else remaining(self.limit, self.spent)


def run(
    policy: str,
    analyst: str | None,
    ledger: str | None,
    format: ReportFormat,
    history: bool,
    plot: str | None,
    accept: bool,
    failures: bool = False,
    clear: str | None = None,
    addition: Addition | None = None,
) -> int:
    """Raises CannotOpen (policy, ledger), Rejected DP903 (the plot cannot be made; there is no such budget)."""
    if plot is not None:
        budget_plot.check(plot)
    loaded = load_policy(policy)
    place = place_of(loaded, ledger)
    if accept:
        if place is None:
            raise reject("DP903", "a ledger in memory has no head", help=["leave  --accept-head  out"])
        accept_ledger(loaded, place)
        print(f"{shown(place)} is accepted as it stands", file=sys.stderr)
    if addition is not None:
        budget_additions.add(loaded, place, addition)
    if clear is not None:
        _clear(loaded, place, failures, clear)
    found = look_at_ledger(loaded, place)
    try:
        lower = [] if found is None else list(budget_additions.differences(loaded, found))
        accounts, everything = read_accounts(loaded, found, analyst)
        failed = _failed(loaded, found, everything, analyst) if failures else None
        regions = {u: write(() if found is None else found.by_period(u)) for u in loaded.by_period}
        periods = lines_by_period(loaded, found, None if analyst is None else loaded.account(analyst))
        lower += () if found is None else in_all(answers_beside(found))
    finally:
        if found is not None:
            found.close()
    entries = everything if analyst is None else [r for r in everything if r.entry.analyst == loaded.account(analyst)]
    if plot is not None:
        budget_plot.write(plot, loaded, everything, analyst)
    match format:
        case ReportFormat.TABLE:
            print_budget(loaded, accounts, entries if history else None, place, queries_of(entries))
            for line in (*periods, *lower):
                print(line)
            if failed is not None:
                _print_failures(failed)
        case ReportFormat.JSON:
            found_json = _as_json(loaded, accounts, entries, place, history)
            found_json = {**found_json, "periods": regions} if loaded.by_period else found_json
            print(document(found_json if failed is None else {**found_json, "failures": _failures_json(failed)}))
    return 0


def read_accounts(
    policy: Policy, ledger: Ledger | None, analyst: str | None
) -> tuple[list[BudgetLine], Sequence[Receipt]]:
    """The accounts of every unit, its total first (of one analyst, if one is given), and all of the ledger's entries.

    A ledger that was never made (None) is an empty one. Raises CannotOpen DP407.
    """
    wanted = None if analyst is None else policy.account(analyst)
    spent: dict[tuple[str, str | None], PrivacyLoss] = {}
    entries: Sequence[Receipt] = ()
    if ledger is not None:
        spent = {(a.unit, a.analyst): a.spent for a in ledger.accounts()}
        entries = ledger.history()
    names = [*policy.budgets.analysts, *(a for _, a in spent if a is not None)]
    if wanted is not None:
        names = [wanted]
    found = []
    for unit in policy.units:
        total = limits_of(policy, ledger, "*").total.get(unit)
        found.append(BudgetLine(unit, None, spent.get((unit, None), NO_LOSS), total))
        for name in sorted(set(names)):
            limit = limits_of(policy, ledger, name).analyst.get(unit)
            found.append(BudgetLine(unit, name, spent.get((unit, name), NO_LOSS), limit))
    return found, entries


def print_budget(
    policy: Policy,
    accounts: Sequence[BudgetLine],
    history: Sequence[Receipt] | None,
    place: AnyPlace | None,
    count: int,
) -> None:
    """The table of accounts, and the entries if wanted."""
    header, rows = account_rows(policy, accounts)
    print_table(header, rows, sys.stdout)
    print(closing_line(policy, place, count))
    if history is not None:
        print()
        print_table(*history_rows(history), sys.stdout)
        for line in policies_of(history):
            print(line)


def queries_of(entries: Sequence[Receipt]) -> int:
    """How many queries were charged. An entry without a charge is a part of one that was charged before."""
    return sum(bool(r.entry.units) for r in entries)


def account_rows(policy: Policy, accounts: Sequence[BudgetLine]) -> tuple[Sequence[str], list[list[Cell]]]:
    """The table of accounts: header and rows."""
    in_rho = policy.privacy.accountant == "zcdp"
    header = ("unit", "account", "spent", "left", "limit")
    return header, [
        [
            cell(a.unit),
            cell("total" if a.analyst is None else a.analyst),
            cell(_spent_text(a.spent, in_rho)),
            cell(left_text(a.left, in_rho=in_rho)),
            cell("" if a.limit is None else left_text(a.limit, in_rho=in_rho)),
        ]
        for a in accounts
    ]


def closing_line(policy: Policy, place: AnyPlace | None, count: int) -> str:
    """`(2 queries charged)  clinic, approx_dp, clinic.ledger.sqlite`."""
    charged = f"({count} quer{'y' if count == 1 else 'ies'} charged)"
    where = f"{shown(place)}; {FORGETS}" if place is None else shown(place)
    return f"{charged}  {policy.name}, {policy.privacy.accountant}, {where}"


def history_rows(history: Sequence[Receipt]) -> tuple[Sequence[str], list[list[Cell]]]:
    """The table of what was charged: header and rows."""
    return ("#", "UTC", "account", "charged", "statement"), [
        [
            cell(r.sequence),
            cell(r.reserved_at[:16].replace("T", " ")),
            cell(r.entry.analyst),
            cell(_charged(r.entry)),
            cell(shortened(_said(r.entry))),
        ]
        for r in history
    ]


def policies_of(history: Sequence[Receipt]) -> list[str]:
    """Where the policy changed between charges, its total perhaps: which hash from which entry on. None if not."""
    charged = [(r.sequence, r.entry.policy_hash) for r in history if r.entry.units]
    first = [(n, h) for at, (n, h) in enumerate(charged) if not at or charged[at - 1][1] != h]
    if len(first) < 2:
        return []
    spans = ", ".join(f"{hash[:12]} from entry {number}" for number, hash in first)
    return [f"the policy was changed between charges: {spans}"]


def shortened(statement: str) -> str:
    """A statement as one line that a table can hold; JSON has it whole."""
    line = " ".join(statement.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _said(entry: Entry) -> str:
    """Its statement, in words where that is for programs."""
    if entry.kind in (EntryKind.CLOSE, EntryKind.REOPEN):
        return closings.statement_words(entry)
    return counters.statement_words(entry) if entry.kind in counters.KINDS else entry.statement


def _charged(entry: Entry) -> str:
    """New noise first; then stored answers, which count for the account and not in total."""
    if entry.kind not in CHARGING or (entry.kind is EntryKind.TICK and not entry.units):
        return "nothing"
    if not entry.units:
        return "in an earlier entry"  # of the same run: it was charged before it was known what it would ask
    new = [f"{loss} of {unit}" for unit, loss in entry.charges.items()]
    return "; ".join([*new, *(f"{loss} of {unit} (stored answers)" for unit, loss in entry.received.items())])


@dataclass(frozen=True, slots=True)
class _Failed:
    """What failed, each with its text; how many of these stop private queries, and whose are stopped now."""

    found: Sequence[tuple[Failure, str]]
    cap: FailureCap
    stopped: Sequence[str]


def _clear(policy: Policy, place: AnyPlace | None, failures: bool, why: str) -> None:
    if not failures or place is None or not why.strip():
        raise reject("DP903", "failures are cleared with a reason, in a ledger", help=["--failures --clear 'WHY'"])
    ledger = open_ledger(policy, place)
    try:
        look_at(ledger, getpass.getuser(), why)
    finally:
        ledger.close()
    print("what has failed until now counts no more", file=sys.stderr)


def _failed(policy: Policy, ledger: Ledger | None, entries: Sequence[Receipt], analyst: str | None) -> _Failed:
    own = policy.failures
    cap = FailureCap(own.most, own.in_total, dt.datetime.now(dt.UTC) - own.per)
    every = counted([] if ledger is None else ledger.failures(), cap.since)
    texts = {r.entry.id: r.entry.statement for r in entries}
    names = [policy.account(analyst)] if analyst is not None else dict.fromkeys(f.account for f in every)
    stopped = [name for name in names if too_many(cap, name, every) is not None]
    return _Failed([(f, texts.get(f.entry, "")) for f in every if f.account in names], cap, stopped)


def _print_failures(failed: _Failed) -> None:
    print()
    header = ("UTC", "account", "how", "statement")
    rows = [
        [cell(f"{f.at:%Y-%m-%d %H:%M}" if f.at else ""), cell(f.account), cell(f.how), cell(shortened(text))]
        for f, text in failed.found
    ]
    print_table(header, rows, sys.stdout)
    print(f"{failed.cap.most} of one account, or {failed.cap.in_total} in total, stop private queries (DP416)")
    if failed.stopped:
        print(f"stopped now: {', '.join(failed.stopped)};  --failures --clear WHY  lets them go on")


def _failures_json(failed: _Failed) -> Mapping[str, Any]:
    return {
        "most": failed.cap.most,
        "in_total": failed.cap.in_total,
        "since": failed.cap.since.isoformat(timespec="seconds"),
        "stopped": list(failed.stopped),
        "found": [
            {
                "analyst": f.account,
                "at": None if f.at is None else f.at.isoformat(),
                "how": f.how,
                "statement": text,
                "entry": f.entry,
            }
            for f, text in failed.found
        ],
    }


def _spent_text(spent: PrivacyLoss, in_rho: bool) -> str:
    return "ρ 0" if in_rho and not spent.rho else str(spent)


def _as_json(
    policy: Policy, accounts: Sequence[BudgetLine], entries: Sequence[Receipt], place: AnyPlace | None, history: bool
) -> Mapping[str, Any]:
    """`analyst` null is the total; `limit` and `left` are null where no cap is declared."""
    found: dict[str, Any] = {
        "policy": policy.name,
        "accountant": policy.privacy.accountant,
        "ledger": shown(place),
        "queries": queries_of(entries),
        "accounts": [
            {
                "unit": a.unit,
                "analyst": a.analyst,
                "spent": loss_json(a.spent),
                "left": None if a.left is None else loss_json(a.left),
                "limit": None if a.limit is None else loss_json(a.limit),
            }
            for a in accounts
        ],
    }
    if history:
        found["history"] = [
            {
                "sequence": r.sequence,
                "analyst": r.entry.analyst,
                "reserved_at": r.reserved_at,
                "charges": {unit: loss_json(loss) for unit, loss in r.entry.charges.items()},
                "received": {unit: loss_json(loss) for unit, loss in r.entry.received.items()},
                "answers": list(r.entry.answers),
                "kind": r.entry.kind.value,
                "fixed": [{"unit": u, "analyst": a, "limit": loss_json(cap)} for (u, a), cap in r.fixed.items()],
                "statement": r.entry.statement,
                "plan": r.entry.plan_hash,
                "policy": r.entry.policy_hash,
                "hash": r.hash,
            }
            for r in entries
        ]
    return found
