"""The analysts' console: budget, history, try a query, what may be asked, how to connect."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dpsql.core.privacy_loss import exact_delta, exact_epsilon
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.note import NOTHING_RAN
from dpsql.faces.server.statements import Ceilings, Refused, StatementSettings
from dpsql.faces.server.web.api.routes import Api
from dpsql.faces.server.web.mcp.endpoint import Agents
from dpsql.faces.server.web.pages import account, query, reference
from dpsql.faces.server.web.pages.page_frame import PageFrame
from dpsql.faces.server.web.pages.query import WrittenForm
from dpsql.faces.server.web.pages.reference import WireAddress
from dpsql.faces.server.web.session_asking import WaitingClient, no_values
from dpsql.faces.server.web.site import House, Page, Site, Visit

_MOST_KEPT: Final = 2_000
_FREE: Final = ("SHOW", "EXPLAIN")
"""Commands that charge nothing and change nothing, whatever they say."""


class Console(Site):
    """For analysts. place: where they connect over PostgreSQL's protocol."""

    def __init__(self, house: House, place: WireAddress) -> None:
        super().__init__(house, "analyst")
        self._place = place
        self._widths: OrderedDict[tuple[str, str, str], str] = OrderedDict()
        """Database, statement and ε → its ± in words, which no data decides."""

    def pages(self) -> list[tuple[str, tuple[str, ...], Page]]:
        """See Site."""
        return [
            ("/", ("GET",), self._budget),
            ("/history", ("GET",), self._history),
            ("/query", ("GET",), self._form),
            ("/query/price", ("GET", "POST"), self._price),
            ("/query/run", ("GET", "POST"), self._run),
            ("/tables", ("GET",), self._tables),
            ("/connect", ("GET",), self._connect),
        ]

    def others(self) -> list[Route]:
        """See Site."""
        api = Api(self.house, self.sessions, self.entrance)
        return [*api.routes(), *Agents(self.house, self.entrance).routes()]

    async def _budget(self, visit: Visit) -> bytes:
        login = visit.session.login
        budgets = await visit.asker.rows("SELECT * FROM dpsql.budget")
        spending = await visit.asker.rows("SELECT * FROM dpsql.spending")
        periods = await visit.asker.rows("SELECT * FROM dpsql.periods")
        closed = await visit.asker.rows("SELECT * FROM dpsql.closed_periods")
        counters = await visit.asker.rows("SELECT * FROM dpsql.counters") if closed else []
        ceilings = _ceilings(login.ceilings)
        return account.budget(visit.frame, login.account, budgets, spending, ceilings, periods, closed, counters)

    async def _history(self, visit: Visit) -> bytes:
        rows = await visit.asker.rows("SELECT * FROM dpsql.history")
        rows.sort(key=lambda row: -_whole(row["number"]))
        total = _whole(rows[0]["number"]) if rows else 0
        pages = max(-(-len(rows) // account.SHOWN), 1)
        wanted = visit.request.query_params.get("page", "1")
        page = min(max(int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 6 else 1, 1), pages)
        shown = rows[(page - 1) * account.SHOWN : page * account.SHOWN]
        entries = [(row, await self._width(visit, row)) for row in shown]
        return account.history(visit.frame, entries, page, pages, total)

    async def _width(self, visit: Visit, row: account.Row) -> str:
        """The ± of a statement at the price it had. What has parameters has none here."""
        sql, epsilon = str(row["statement"]), f"{row['epsilon']:.10g}" if isinstance(row["epsilon"], float) else ""
        key = (visit.session.login.database, sql, epsilon)
        if key not in self._widths:
            try:
                asked = StatementSettings(epsilon=epsilon) if epsilon not in ("", "0") else StatementSettings()
                found = account.widths_in_words((await visit.asker.cost(sql, (), asked, tree=False)).errors)
            except Refused:
                found = "–"
            self._widths[key] = found
            while len(self._widths) > _MOST_KEPT:
                self._widths.popitem(last=False)
        return self._widths[key]

    # --- try a query -------------------------------------------------------------------------------------------------

    async def _form(self, visit: Visit) -> bytes:
        return query.query(visit.frame, WrittenForm())

    async def _price(self, visit: Visit) -> bytes | Response:
        if visit.request.method != "POST":
            return RedirectResponse("/query", 303)
        written, frame = _written(visit.form), _on_query(visit)
        try:
            settings = _settings(written)
            described = await visit.asker.described(written.sql, settings)
            if described.parameters:
                raise no_values()
            if described.command in _FREE:
                return await self._answer(visit, written, settings)
            if described.command in query.WITHOUT_A_PRICE:
                return query.without_a_price(frame, written, described.command)
            cost = await visit.asker.cost(written.sql, (), settings)
            visit.asker.note(written.sql)
            curve = await visit.asker.curve(written.sql, settings) if cost.errors and cost.plan else []
        except Refused as refused:
            return query.refused(frame, written, refused.diagnostics)
        return query.price(frame, written, cost, curve)

    async def _run(self, visit: Visit) -> bytes | Response:
        if visit.request.method != "POST":
            return RedirectResponse("/query", 303)
        written = _written(visit.form)
        try:
            return await self._answer(visit, written, _settings(written))
        except Refused as refused:
            return query.refused(_on_query(visit), written, refused.diagnostics)

    async def _answer(self, visit: Visit, written: WrittenForm, settings: StatementSettings) -> bytes:
        waiting = WaitingClient(visit.request.receive)
        try:
            given = await visit.asker.typed(written.sql, None, settings, waiting)
        finally:
            waiting.close()
        return query.answered(_on_query(visit), written, given)

    # --- to read -----------------------------------------------------------------------------------------------------

    async def _tables(self, visit: Visit) -> bytes:
        return reference.tables(visit.frame, self.house.policy(visit.session))

    async def _connect(self, visit: Visit) -> bytes:
        url, place = visit.request.url, self._place
        if (
            place.host in ("0.0.0.0", "::") and url.hostname
        ):  # all addresses of this machine: the one that led here does
            place = replace(place, host=url.hostname)
        return reference.connect(visit.frame, place, f"{url.scheme}://{url.netloc}")


def _on_query(visit: Visit) -> PageFrame:
    return replace(visit.frame, here="/query")


def _written(form: Mapping[str, str]) -> WrittenForm:
    given = {name: form.get(name, "").strip() for name in ("sql", "epsilon", "delta")}
    return WrittenForm(given["sql"], given["epsilon"], given["delta"], form.get("search") == "on")


def _settings(written: WrittenForm) -> StatementSettings:
    """What the fields ask. Raises Refused DP406 for what is no amount."""
    for name, text in (("epsilon", written.epsilon), ("delta", written.delta)):
        try:
            if text and name == "epsilon":
                exact_epsilon(text)
            elif text:
                exact_delta(text)
        except ValueError as error:
            example = "0.5" if name == "epsilon" else "1e-9"
            raise Refused(
                [Diagnostic("DP406", str(error), help=(f"SET {name} = {example}",), notes=(NOTHING_RAN,))]
            ) from None
    return StatementSettings(
        epsilon=written.epsilon or None, delta=written.delta or None, limits="search" if written.search else "auto"
    )


def _ceilings(own: Ceilings) -> list[str]:
    words = (("one query", own.per_query), ("one hour", own.per_hour), ("one day", own.per_day))
    return [f"at most ε {amount} in {span}" for span, amount in words if amount is not None]


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
