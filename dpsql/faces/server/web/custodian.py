"""The custodian's console: all accounts, refusals, sessions, the ledger and the policy. A listener of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.faces.server.refusal_counts import Refusals
from dpsql.faces.server.statements import AuditEvent, Refused, StatementSettings
from dpsql.faces.server.visitors import Visited, Visitor
from dpsql.faces.server.web.pages import custody, reference
from dpsql.faces.server.web.session_asking import WaitingClient
from dpsql.faces.server.web.site import House, Page, Site, Visit, html
from dpsql.frontend.text.period_statements import CLOSE
from dpsql.frontend.text.quoted_names import quoted

_OF_REPORT: Final = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""Of a page that is one file, with its style within it. It still runs nothing, loads nothing and sends nothing, and has
no origin whose cookies it could use."""


class Custodian(Site):
    """For custodians. refusals: since the server began. doors: everywhere somebody may be."""

    def __init__(self, house: House, refusals: Refusals, doors: Sequence[Visited]) -> None:
        super().__init__(house, "custodian")
        self._refusals = refusals
        self._doors = [*doors, self.sessions]

    def pages(self) -> list[tuple[str, tuple[str, ...], Page]]:
        """See Site."""
        return [
            ("/", ("GET",), self._accounts),
            ("/refusals", ("GET",), self._refused),
            ("/sessions", ("GET", "POST"), self._sessions),
            ("/periods", ("GET", "POST"), self._periods),
            ("/ledger", ("GET",), self._ledger),
            ("/policy", ("GET",), self._policy),
            (reference.REPORT, ("GET",), self._report),
        ]

    async def _accounts(self, visit: Visit) -> bytes:
        rows = await visit.asker.rows("SELECT * FROM dpsql.accounts")
        spending = await visit.asker.rows("SELECT * FROM dpsql.spending_of_all")
        return custody.accounts(visit.frame, rows, spending)

    async def _refused(self, visit: Visit) -> bytes:
        return custody.refusals(visit.frame, self._refusals.by_code(visit.session.login.database))

    async def _sessions(self, visit: Visit) -> bytes:
        said, database = "", visit.session.login.database

        def there(door: Visited) -> list[Visitor]:
            return [visitor for visitor in door.visitors() if visitor.database == database]

        if visit.request.method == "POST":
            number, key = visit.form.get("door", ""), visit.form.get("key", "")
            door = self._doors[int(number)] if number in map(str, range(len(self._doors))) else None
            found = None if door is None else next((v for v in there(door) if v.key == key), None)
            said = "nobody is there any more"
            if door is not None and found is not None:
                ending, own = visit.form.get("do") == "end", visit.session.login
                what = f"the {'session' if ending else 'statement'} of {found.name}"
                self.house.door.recording.record(AuditEvent("stop", own.name, own.address, what, database=database))
                await (door.end_of(key) if ending else door.stop_of(key))
                said = "ended" if ending else "stopped"
        visitors = [(number, v) for number, door in enumerate(self._doors) for v in there(door)]
        return custody.sessions(visit.frame, visitors, said)

    async def _periods(self, visit: Visit) -> bytes:
        said, refused = "", tuple[Diagnostic, ...]()
        if visit.request.method == "POST":
            waiting = WaitingClient(visit.request.receive)
            through, table = visit.form.get("through", ""), visit.form.get("table", "")
            sql = f"{CLOSE} OF {quoted(table)} THROUGH DATE '{through.replace(chr(39), '')}'"
            try:
                given = await visit.asker.typed(sql, None, StatementSettings(), waiting)
                said = "; ".join(f"{row[0]!s}: {row[3]!s}" for row in given.answer.rows)
            except Refused as error:
                refused = tuple(error.diagnostics)
            finally:
                waiting.close()
        closed = await visit.asker.rows("SELECT * FROM dpsql.closed_periods")
        periods = await visit.asker.rows("SELECT * FROM dpsql.periods_of_all") if closed else []
        counters = await visit.asker.rows("SELECT * FROM dpsql.counters") if closed else []
        may = "periods" in visit.session.login.may
        return custody.periods(visit.frame, closed, periods, counters, said, refused, may=may)

    async def _ledger(self, visit: Visit) -> bytes:
        rows = await visit.asker.rows("SELECT * FROM dpsql.ledger")
        failures = await visit.asker.rows("SELECT * FROM dpsql.failures")
        return custody.ledger(visit.frame, rows, failures, self.house.policy(visit.session).failures)

    async def _policy(self, visit: Visit) -> bytes:
        return reference.policy_in_words(visit.frame, self.house.policy(visit.session))

    async def _report(self, visit: Visit) -> Response:
        rows = await visit.asker.rows("SELECT * FROM dpsql.report")
        response = html(str(rows[0]["page"]).encode())
        response.headers["content-security-policy"] = _OF_REPORT
        return response
