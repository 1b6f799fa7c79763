"""`--budget-report`: what running every statement of a repository once would take, and how far the budgets reach.

From the policy and the texts alone: nothing is read from a ledger, and answers that are stored are not thought of.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, show_left, show_spent
from dpsql.diagnostics.layout import escaped, inert, one_line
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.examine.examination import Examination, ExaminedStatement
from dpsql.faces.check.report.formats.texts import no_command

REFUSED, UNSTATED, FREE, CHARGED = "refused", "no epsilon", "public", "charged"


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One statement, and one privacy unit that it is charged to ("" if there is none).

    line: of the file, from 1. total: what this and all statements before it take of the unit.
    """

    path: str
    line: int
    status: str
    unit: str = ""
    loss: PrivacyLoss = NO_LOSS
    total: PrivacyLoss = NO_LOSS


@dataclass(frozen=True, slots=True)
class LimitUse:
    """One limit of the policy: its name there, and how many statements from the first on fit into it.

    over: the first row that does not fit; None if all do.
    """

    name: str
    unit: str
    cap: PrivacyLoss
    spent: PrivacyLoss
    fitting: int
    over: PriceRow | None


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """Every statement in order, and every limit of the policy."""

    rows: tuple[PriceRow, ...]
    accounts: tuple[LimitUse, ...]


def budget_report(examined: Iterable[tuple[Document, Examination]], policy: Policy) -> BudgetReport:
    """The report of examinations that were made under this policy."""
    totals: dict[str, PrivacyLoss] = {}
    rows: list[PriceRow] = []
    for document, examination in examined:
        for statement in examination.statements:
            line = document.source.position(document.placed(statement.span).start)[0]
            rows += _rows(document.name, line, statement, totals)
    return BudgetReport(tuple(rows), tuple(_accounts(rows, policy)))


def _rows(path: str, line: int, statement: ExaminedStatement, totals: dict[str, PrivacyLoss]) -> Iterator[PriceRow]:
    price = statement.price
    if price is None or price.epsilon is None:
        yield PriceRow(path, line, REFUSED if price is None else UNSTATED)
    elif not price.cost:
        yield PriceRow(path, line, FREE)
    else:
        for unit, loss in price.cost:
            totals[unit] = totals.get(unit, NO_LOSS) + loss
            yield PriceRow(path, line, CHARGED, unit, loss, totals[unit])


def _accounts(rows: Sequence[PriceRow], policy: Policy) -> Iterator[LimitUse]:
    for unit in policy.units:
        charged = [row for row in rows if row.unit == unit]
        caps = policy.caps_for(None).total
        if unit in caps:
            yield _account("budgets.total", unit, caps[unit], charged)
        for analyst, budget in policy.budgets.analysts.items():
            yield _account(f"budgets.analysts.{analyst}", unit, budget.cap, charged)


def _account(name: str, unit: str, cap: PrivacyLoss, charged: Sequence[PriceRow]) -> LimitUse:
    over = next((row for row in charged if not row.total.within(cap)), None)
    spent = charged[-1].total if charged else NO_LOSS
    return LimitUse(name, unit, cap, spent, len(charged) if over is None else charged.index(over), over)


def as_text(report: BudgetReport) -> str:
    """A table of the statements, and a line for each limit."""
    table = [("statement", "unit", "cost", "together")]
    for row in report.rows:
        place = no_command(one_line(f"{row.path}:{row.line}"))
        if row.status == CHARGED:
            table.append((place, row.unit, str(row.loss), str(row.total)))
        else:
            table.append((place, "", row.status, ""))
    widths = [max(len(line[column]) for line in table) for column in range(4)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in table]
    return inert("\n".join([*lines, *([""] if report.accounts else []), *map(_account_line, report.accounts)]))


def _account_line(account: LimitUse) -> str:
    head = one_line(f"{account.name}, {account.unit}: {account.spent} of {_cap(account.cap)}")
    if account.over is None:
        return f"{head}: all fit"
    first = one_line(f"{account.over.path}:{account.over.line}")
    return f"{head}: the first {account.fitting} fit; {first} does not" if account.fitting else f"{head}: none fits"


def _cap(cap: PrivacyLoss) -> str:
    parts = [("ε", cap.epsilon), ("ρ", cap.rho), ("δ", cap.delta)]
    return " ".join(f"{sign} {show_left(part)}" for sign, part in parts if part) or "nothing"


def as_json(report: BudgetReport) -> str:
    """One object: `statements` and `budgets`, a line for each of them. Losses are rounded up, limits down."""
    return (
        '{\n  "statements": '
        + _lines(_row_record(row) for row in report.rows)
        + ',\n  "budgets": '
        + _lines(_account_record(account) for account in report.accounts)
        + "\n}"
    )


def _row_record(row: PriceRow) -> dict[str, Any]:
    charged = row.status == CHARGED
    return {
        "path": row.path,
        "line": row.line,
        "status": row.status,
        "unit": row.unit or None,
        "cost": _loss_record(row.loss) if charged else None,
        "together": _loss_record(row.total) if charged else None,
    }


def _account_record(account: LimitUse) -> dict[str, Any]:
    over = account.over
    cap = account.cap
    return {
        "name": account.name,
        "unit": account.unit,
        "limit": {p: float(show_left(getattr(cap, p))) for p in ("epsilon", "delta", "rho")},
        "together": _loss_record(account.spent),
        "fitting": account.fitting,
        "over": None if over is None else {"path": over.path, "line": over.line},
    }


def _loss_record(loss: PrivacyLoss) -> Mapping[str, float]:
    return {part: float(show_spent(getattr(loss, part))) for part in ("epsilon", "delta", "rho")}


def _lines(records: Iterable[Mapping[str, Any]]) -> str:
    lines = [f"    {escaped(json.dumps(record, ensure_ascii=False))}" for record in records]
    return "[\n" + ",\n".join(lines) + "\n  ]" if lines else "[]"
