"""What programs are told, as the description's schemas say: data for JSON, for the API and for agents alike."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.diagnostics.note import Note, note_records
from dpsql.faces.server.statements import Login, Refused, Value
from dpsql.faces.server.web.api import problems
from dpsql.faces.server.web.api.bodies import Question, Questions, values_for
from dpsql.faces.server.web.session_asking import Asker, Cost, GivenRows, WaitingClient
from dpsql.frontend.text import counter_statements
from dpsql.frontend.text.counter_statements import RECEIVE, TICK
from dpsql.frontend.text.summary_statements import CREATE
from dpsql.policy.tools.show import declared_of, promises, whose_rows

Data = dict[str, Any]
_PRICED: Final = ("SELECT", "BATCH", CREATE, counter_statements.CREATE, RECEIVE, TICK)
"""Commands that may be charged."""


async def query(asker: Asker, asked: Question, waiting: WaitingClient) -> GivenRows:
    """Run a query: it is charged, unless its answer is stored. Raises Refused, Gone."""
    settings = asked.settings.settings()
    described = await asker.described(asked.sql, settings)
    values = values_for(described.parameters, asked.parameters)
    try:
        return await asker.typed(asked.sql, values, settings, waiting)
    finally:
        waiting.close()


async def explain(asker: Asker, asked: Question) -> Data:
    """The plan of a query, its price and its errors; free. Raises Refused."""
    found = await _costed(asker, asked)
    lines = [f"{'   ' * depth}{operator}" + "  " * bool(f) + " · ".join(f) for depth, operator, f in found.tree]
    asker.note(asked.sql)
    return {"operators": lines, "plan": found.plan, **_priced(found)}


async def cost(asker: Asker, asked: Question) -> Data:
    """The price of a query and its errors; free. Raises Refused."""
    found = await _costed(asker, asked, tree=False)
    asker.note(asked.sql)
    return _priced(found)


async def batch(asker: Asker, asked: Questions) -> Data:
    """The price of several queries together; free. What is refused of them stands in its place."""
    found: list[Data] = []
    total, left = NO_LOSS, None
    known: set[str] = set()
    for question in asked.queries:
        try:
            cost = await _costed(asker, question, tree=False)
        except Refused as refused:
            found.append({"refused": problems.as_data(422, refused.diagnostics[0].message, refused.diagnostics)})
            continue
        asker.note(question.sql)
        found.append(_priced(cost))
        left = cost.left
        said = cost.hash or question.sql  # a summary has several plans
        if said not in known and not cost.is_nominal:  # an equal question is paid once
            total += cost.price
        known.add(said)
    fits = left is None or total.within(left)
    answerable = not any("refused" in item or item["price"] is None for item in found)
    return {"queries": found, "price": problems.spent(total), "left": problems.left(left), "fits": fits and answerable}


async def budget(asker: Asker, login: Login) -> Data:
    """What the account has spent and has left of each privacy unit, and of its periods; what is closed, the counters,
    and the login's ceilings. Raises Refused."""
    units = [_amounts(row) for row in await asker.rows("SELECT * FROM dpsql.budget")]
    closed = await asker.rows("SELECT * FROM dpsql.closed_periods")
    periods = (
        [
            _amounts(row) | {"first_day": plain(row["first_day"]), "last_day": plain(row["last_day"])}
            for row in await asker.rows("SELECT * FROM dpsql.periods")
        ]
        if closed
        else []
    )
    counters = await asker.rows("SELECT * FROM dpsql.counters") if closed else []
    return {
        "database": login.database, "account": login.account, "units": units, "ceilings": asdict(login.ceilings),
        "closed_periods": [{name: plain(value) for name, value in row.items()} for row in closed],
        "periods": periods, "counters": [{name: plain(value) for name, value in row.items()} for row in counters],
    }  # fmt: skip


def tables(policy: Policy) -> Data:
    """What may be asked."""
    found = [
        {
            "name": table.name, "public": table.public, "rows_of": whose_rows(table), "promises": promises(table),
            "columns": [
                {"name": c.name, "type": None if c.sql_type is None else c.sql_type.name, "nullable": c.is_nullable,
                 "declared": declared_of(c)}
                for c in table.columns.values()
            ],
        }
        for table in policy.tables.values()
    ]  # fmt: skip
    return {"database": policy.name, "tables": found}


async def _costed(asker: Asker, asked: Question, *, tree: bool = True) -> Cost:
    settings = asked.settings.settings()
    described = await asker.described(asked.sql, settings)
    if described.command not in _PRICED:
        raise problems.not_a_query()
    return await asker.cost(asked.sql, values_for(described.parameters, asked.parameters), settings, tree=tree)


def _priced(cost: Cost) -> Data:
    nominal = [Note("no ε is known: times and errors are those of ε 1")] if cost.is_nominal else []
    return {
        "price": None if cost.is_nominal else problems.spent(cost.price),
        "left": problems.left(cost.left), "times": cost.times,
        "errors": {name: plain(width) for name, width in cost.errors.items()}, "confidence": 0.95,
        "notes": note_records((*cost.notes, *nominal)),
    }  # fmt: skip


def given(found: GivenRows) -> Data:
    """The answer to a query, or the answers to those of a batch."""
    answer = found.answer
    return {
        **_rows(found),
        "answers": [_rows(each) for each in found.more],
        "confidence": 0.95,
        "spent": problems.spent(answer.charged),
        "notes": note_records(answer.notices),
        "warnings": [problems.finding(d) for d in answer.warnings],
        "plan": answer.plan or None,
        "entry": answer.entry or None,
    }


def _rows(found: GivenRows) -> Data:
    rows = found.answer.rows
    return {
        "columns": [{"name": name, "type": type_.name} for name, type_ in found.columns],
        "rows": [[plain(row[at]) for at in found.places] for row in rows],
        "intervals": [[_interval(row, found.ends.get(n)) for n in range(len(found.places))] for row in rows],
    }


def _interval(row: Sequence[Value], at: int | None) -> list[Any] | None:
    if at is None or (row[at] is None and row[at + 1] is None):
        return None
    return [plain(row[at]), plain(row[at + 1])]


def plain(value: Value) -> Any:
    """A value of SQL as JSON has it: what JSON has no kind for is text, as ISO 8601 writes dates and times."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return value.hex()
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return f"P{value.days}DT{value.seconds + value.microseconds / 1e6:g}S"
        case Decimal() | UUID():
            return str(value)
        case list() | tuple():
            return [plain(item) for item in value]


def _amounts(row: Any) -> Data:
    parts = ("epsilon", "delta", "rho")
    limited = any(row[f"{part}_left"] is not None for part in parts)
    return {
        "unit": row["unit"],
        "spent": {part: row[f"{part}_spent"] or 0.0 for part in parts},
        "left": {part: row[f"{part}_left"] or 0.0 for part in parts} if limited else None,
    }
