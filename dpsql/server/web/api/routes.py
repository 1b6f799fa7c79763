"""The API's addresses. Each answers as the wire would: the same account, ceilings, moments and lines in the log."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import math
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpsql.policy.tools.show import declared_of, promises, whose_rows
from dpsql.server.databases import NoDatabase
from dpsql.server.front.link import Gone
from dpsql.server.statements import Refused, Value
from dpsql.server.web.api import bodies, document, problems
from dpsql.server.web.asking import Asker, Cost, Given, Waiting
from dpsql.server.web.entrance import Busy, Entrance
from dpsql.server.web.sessions import IDLE, LONGEST, Session, Sessions
from dpsql.server.web.site import House, address_of

ROOT: Final = "/api/v1"
_ASK: Final = {"www-authenticate": 'Basic realm="dpsql", charset="UTF-8"'}
Answered = Callable[[Request, Asker, Session], Awaitable[Response]]


class Api:
    """For analysts' programs."""

    def __init__(self, house: House, sessions: Sessions, entrance: Entrance) -> None:
        self._house, self._sessions, self._entrance = house, sessions, entrance
        self._document = json.dumps(document.document()).encode()

    def routes(self) -> list[Route]:
        """All of them."""
        asked = {
            "query": (self._query, "POST"), "explain": (self._explain, "POST"), "cost": (self._cost, "POST"),
            "batch/cost": (self._batch, "POST"), "budget": (self._budget, "GET"), "tables": (self._tables, "GET"),
        }  # fmt: skip
        return [
            Route(f"{ROOT}/openapi.json", self._described),
            Route(f"{ROOT}/session", self._session, methods=["POST", "DELETE"]),
            *(
                Route(f"{ROOT}/{name}", self._known(answer), methods=[method])
                for name, (answer, method) in asked.items()
            ),
        ]

    # --- who is asking -----------------------------------------------------------------------------------------------

    async def _who(self, request: Request) -> Session | None:
        """Whose session it is, in the database that is asked for. Raises Busy, NoDatabase."""
        kind, _, rest = request.headers.get("authorization", "").partition(" ")
        database = request.query_params.get("database", "")
        if kind.lower() == "bearer":
            found = self._sessions.find(rest.strip(), "API")
            if found is not None and database not in ("", found.login.database):
                raise NoDatabase(database, [found.login.database])
            return found
        if kind.lower() == "basic":
            return await self._entrance.by_basic(rest.strip(), address_of(request), database)
        return None

    def _known(self, answer: Answered) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            try:
                session = await self._who(request)
                if session is None:
                    return problems.problem(
                        401, "name and password are needed, or the token of a session", headers=_ASK
                    )
                asker = self._house.asker(session)
                return await answer(request, asker, session)
            except Busy:
                return problems.problem(503, "too many are logging in", headers={"retry-after": "60"})
            except NoDatabase as wrong:
                known = ", ".join(wrong.known)
                what = "there is no such database for you" if wrong.database else "you have several databases"
                return problems.problem(404 if wrong.database else 400, f"{what}: ?database=…, one of {known}")
            except bodies.Malformed as error:
                return problems.problem(400, f"the body is not understood: {error}")
            except Refused as refused:
                return problems.refusal(refused)
            except Gone:
                return Response(status_code=204)

        return handle

    async def _session(self, request: Request) -> Response:
        return await self._known(self._end if request.method == "DELETE" else self._begin)(request)

    async def _begin(self, request: Request, asker: Asker, session: Session) -> Response:
        if not request.headers.get("authorization", "").lower().startswith("basic "):
            return problems.problem(403, "a token is given for name and password, and not for another token")
        token, own = self._sessions.begin(session.login, "API")
        return answered(
            {"token": token, "database": own.login.database, "idle_seconds": int(IDLE), "seconds": int(LONGEST)}
        )

    async def _end(self, request: Request, asker: Asker, session: Session) -> Response:
        self._sessions.end(session)
        return Response(status_code=204)

    # --- what is asked -----------------------------------------------------------------------------------------------

    async def _described(self, request: Request) -> Response:
        return Response(self._document, media_type="application/json")

    async def _query(self, request: Request, asker: Asker, session: Session) -> Response:
        asked: bodies.Question = await _read(request, bodies.Question)
        settings = asked.settings.settings()
        described = await asker.described(asked.sql, settings)
        values = bodies.values_for(described.parameters, asked.parameters)
        waiting = Waiting(request.receive)
        try:
            given = await asker.typed(asked.sql, values, settings, waiting)
        finally:
            waiting.close()
        return await asyncio.to_thread(lambda: answered(_given(given)))  # of many rows, while others have their turn

    async def _explain(self, request: Request, asker: Asker, session: Session) -> Response:
        cost, sql = await self._costs(request, asker)
        lines = [f"{'   ' * depth}{operator}" + (f"  {said}" if said else "") for depth, operator, said in cost.tree]
        asker.note(sql)
        return answered({"operators": lines, "plan": cost.plan, **_priced(cost)})

    async def _cost(self, request: Request, asker: Asker, session: Session) -> Response:
        cost, sql = await self._costs(request, asker)
        asker.note(sql)
        return answered(_priced(cost))

    async def _costs(self, request: Request, asker: Asker) -> tuple[Cost, str]:
        asked: bodies.Question = await _read(request, bodies.Question)
        return await _costed(asker, asked), asked.sql

    async def _batch(self, request: Request, asker: Asker, session: Session) -> Response:
        asked: bodies.Questions = await _read(request, bodies.Questions)
        found: list[dict[str, Any]] = []
        total = dict.fromkeys(problems.NOTHING, Decimal(0))
        left: dict[str, float] | None = None
        known: set[str] = set()
        for question in asked.queries:
            try:
                cost = await _costed(asker, question, tree=False)
            except Refused as refused:
                found.append({"refused": problems.as_data(422, refused.diagnostics[0].message, refused.diagnostics)})
                continue
            asker.note(question.sql)
            found.append(_priced(cost))
            left = problems.loss(cost.left)
            price = {} if cost.is_nominal else problems.loss(cost.price) or {}
            if cost.hash not in known:  # an equal question is paid once
                total = {name: total[name] + Decimal(repr(price.get(name, 0.0))) for name in total}
            known.add(cost.hash)
        price_of_all = {name: float(amount) for name, amount in total.items()}
        fits = left is None or all(price_of_all[name] <= left[name] for name in total)
        answerable = not any("refused" in item or item["price"] is None for item in found)
        return answered({"queries": found, "price": price_of_all, "left": left, "fits": fits and answerable})

    async def _budget(self, request: Request, asker: Asker, session: Session) -> Response:
        units = await asker.rows("SELECT * FROM dpsql.budget")
        own = session.login
        return answered({"database": own.database, "account": own.account, "units": [_amounts(row) for row in units]})

    async def _tables(self, request: Request, asker: Asker, session: Session) -> Response:
        found = [
            {
                "name": table.name, "public": table.public, "rows_of": whose_rows(table), "promises": promises(table),
                "columns": [
                    {"name": c.name, "type": None if c.sql_type is None else c.sql_type.name, "nullable": c.is_nullable,
                     "declared": declared_of(c)}
                    for c in table.columns.values()
                ],
            }
            for table in self._house.policy(session).tables.values()
        ]  # fmt: skip
        return answered({"database": session.login.database, "tables": found})


async def _costed(asker: Asker, asked: bodies.Question, *, tree: bool = True) -> Cost:
    settings = asked.settings.settings()
    described = await asker.described(asked.sql, settings)
    if described.command != "SELECT":
        raise problems.not_a_query()
    values = bodies.values_for(described.parameters, asked.parameters)
    return await asker.cost(asked.sql, values, settings, tree=tree)


async def _read(request: Request, kind: Any) -> Any:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise bodies.Malformed("its content type is not application/json")
    return bodies.read(await request.body(), kind)


# --- as JSON ---------------------------------------------------------------------------------------------------------


def answered(data: Any) -> Response:
    """A response that is JSON."""
    return Response(json.dumps(data, ensure_ascii=True, allow_nan=False), media_type="application/json")


def _priced(cost: Cost) -> dict[str, Any]:
    notes = [*cost.notes, "no ε is known: times and errors are those of ε 1"] if cost.is_nominal else list(cost.notes)
    return {
        "price": None if cost.is_nominal else problems.loss(cost.price),
        "left": problems.loss(cost.left), "times": cost.times,
        "errors": {name: plain(width) for name, width in cost.errors.items()}, "confidence": 0.95,
        "notes": notes,
    }  # fmt: skip


def _given(given: Given) -> dict[str, Any]:
    answer = given.answer
    rows = [[plain(row[at]) for at in given.places] for row in answer.rows]
    return {
        "columns": [{"name": name, "type": type_.name} for name, type_ in given.columns],
        "rows": rows,
        "intervals": [[_interval(row, given.ends.get(n)) for n in range(len(given.places))] for row in answer.rows],
        "confidence": 0.95,
        "spent": problems.loss(answer.spent),
        "notes": list(answer.notices),
        "warnings": [problems.finding(d) for d in answer.warnings],
        "plan": answer.plan or None,
        "entry": answer.entry or None,
    }


def _interval(row: Sequence[Value], at: int | None) -> list[Any] | None:
    if at is None or row[at] is None or row[at + 1] is None:
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


def _amounts(row: Any) -> dict[str, Any]:
    parts = ("epsilon", "delta", "rho")
    limited = any(row[f"{part}_left"] is not None for part in parts)
    return {
        "unit": row["unit"],
        "spent": {part: row[f"{part}_spent"] or 0.0 for part in parts},
        "left": {part: row[f"{part}_left"] or 0.0 for part in parts} if limited else None,
    }
