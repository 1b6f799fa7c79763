"""Asks in the name of a session: what somebody typed, which is noted in the audit log, and what a page needs."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

from dpsql.core.ir.types import SqlType
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.note import NOTHING_RAN, Note
from dpsql.faces.server.front.asking import Asking
from dpsql.faces.server.statements import (
    TOO_MANY,
    Answer,
    Answering,
    DescribedStatement,
    Recording,
    Refused,
    StatementSettings,
    Value,
)
from dpsql.faces.server.web.guard import Message
from dpsql.faces.server.web.sessions import MOST_RUNNING, WebSession

Columns = tuple[tuple[str, SqlType], ...]
Operator = tuple[int, str, tuple[str, ...]]
"""A node of a plan: its depth, what it does, and what is known of its rows."""
CURVE: Final = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5")
"""The ε of a table of errors."""
_SAYS_EPSILON: Final = re.compile(
    r"DIFFERENTIAL_PRIVACY|ANONYMIZATION|dpsql\s{0,9}:[^*\n]{0,200}\b(?:epsilon|rho)\s{0,9}=", re.IGNORECASE
)
_numbers = count(1)


class WaitingClient:
    """Who waits at the other end of a request. See `front.asking.Client`."""

    def __init__(self, receive: Callable[[], Awaitable[Message]]) -> None:
        self.gone = asyncio.Event()
        self._receive = receive
        self._left: Callable[[], object] = self.gone.set
        self._watching: asyncio.Task[None] | None = None

    def watch(self, left: Callable[[], object]) -> None:
        """See Client."""
        if self.gone.is_set():
            asyncio.get_running_loop().call_soon(left)
        self._left = left
        if self._watching is None:
            self._watching = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone.set()
        self._left()

    def close(self) -> None:
        """Look no longer."""
        if self._watching is not None:
            self._watching.cancel()


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Rows. columns: of the query itself. places: where each stands in a row. ends: column → where its interval does.

    more: of a batch the answers of its queries.
    """

    columns: Columns
    ends: Mapping[int, int]
    places: tuple[int, ...]
    answer: Answer
    more: tuple[GivenRows, ...] = ()

    @classmethod
    def of(cls, answer: Answer) -> GivenRows:
        """With its intervals apart."""
        width = len(answer.columns) - 2 * len(answer.ends)
        ends = {at: width + 2 * number for number, at in enumerate(answer.ends)}
        return cls(answer.columns[:width], ends, tuple(range(width)), answer, tuple(map(cls.of, answer.more)))


@dataclass(frozen=True, slots=True)
class Cost:
    """What a statement would cost now. errors: column → ±, None where it depends on the data; of a summary the ± of a
    cell, by what is counted; of a batch the tree tells them. left: None for no limit.

    is_nominal: nobody has said an ε, so that price and errors are those of ε 1, which no run would take.
    tree: operators of the plan, each with its depth and what is said of it; of a batch or a summary the lines of its
    EXPLAIN. plan: the data of EXPLAIN (FORMAT JSON), of a query alone.
    """

    price: PrivacyLoss
    errors: Mapping[str, float | None]
    left: PrivacyLoss | None
    times: int | None
    notes: tuple[Note, ...] = ()
    tree: tuple[Operator, ...] = ()
    plan: Mapping[str, Any] = field(default_factory=dict)
    hash: str = ""
    is_nominal: bool = False


class Asker:
    """Asks for one session, over the interface that the wire uses."""

    def __init__(self, session: WebSession, answering: Answering, recording: Recording, has_default: bool) -> None:
        """has_default: whether the policy says an ε for queries that say none."""
        self._session, self._answering, self._recording = session, answering, recording
        self._has_default = has_default

    async def typed(
        self, sql: str, values: tuple[Value, ...] | None, settings: StatementSettings, client: WaitingClient
    ) -> GivenRows:
        """The answer to what somebody typed, charged and noted as over the wire. Raises Refused, Gone.

        values: None for a statement without parameters.
        """
        session = self._session
        if len(session.running) >= MOST_RUNNING:
            raise Refused([_TOO_MANY], TOO_MANY)
        asking = Asking(session.login, self._answering, self._recording)
        session.running.add(asking)
        try:
            wide = replace(settings, intervals=True)
            described = await asking.describe(sql, wide)
            if values is None and described.parameters:
                raise no_values()
            return GivenRows.of(await asking.run(described, values or (), wide, None, client))
        finally:
            session.running.discard(asking)

    async def described(self, sql: str, settings: StatementSettings) -> DescribedStatement:
        """Raises Refused, with a line in the log."""
        return await Asking(self._session.login, self._answering, self._recording).describe(sql, settings)

    async def rows(self, sql: str) -> list[dict[str, Value]]:
        """Of a public relation, for a page: free, and not noted. Raises Refused."""
        answer = await self._ask(sql, StatementSettings())
        return [dict(zip((name for name, _ in answer.columns), row, strict=True)) for row in answer.rows]

    async def cost(
        self, sql: str, values: tuple[Value, ...], settings: StatementSettings, *, tree: bool = True
    ) -> Cost:
        """What a statement that is charged would cost, its plan if wanted; spends nothing. Raises Refused."""
        command = (await self._answering.describe(self._session.login, sql, settings)).command
        priced = await self._ask("EXPLAIN (COST) " + sql, settings, values, sql)
        plan: Mapping[str, Any] = {}
        operators: tuple[Operator, ...] = ()
        if tree and command == "SELECT":
            told = await self._ask("EXPLAIN (FORMAT JSON) " + sql, settings, values, sql)
            plan = json.loads(str(told.rows[0][0]))
            operators = tuple((row["depth"], row["operator"], tuple(row["facts"])) for row in plan["tree"])
        elif tree:
            shown = await self._ask("EXPLAIN " + sql, settings, values, sql)
            operators = tuple((0, str(line), ()) for (line,) in shown.rows)
        first = priced.rows[0]
        errors = {str(row[1]): row[2] for row in priced.rows if row[1] is not None and command != "BATCH"}
        times = first[4] if isinstance(first[4], int) else None
        own = self._session.login.defaults
        clause = _SAYS_EPSILON.search(sql) is not None
        said = (settings.epsilon, settings.rho, own.epsilon, own.rho)
        unsaid = command in ("SELECT", "BATCH") and not (any(said) or clause or self._has_default)  # else: refused
        return Cost(
            priced.charged,
            {name: width if isinstance(width, float) else None for name, width in errors.items()},
            priced.left,
            times,
            priced.notices,
            operators,
            plan,
            priced.plan,
            unsaid and priced.charged != NO_LOSS,
        )

    def note(self, sql: str) -> None:
        """A line of the log: somebody has asked what this costs."""
        Asking(self._session.login, self._answering, self._recording).noted("EXPLAIN (COST) " + sql)

    async def curve(self, sql: str, settings: StatementSettings) -> list[tuple[str, Mapping[str, float | None]]]:
        """ε → the ± of each column. What a ceiling forbids is left out."""
        found = []
        for epsilon in CURVE:
            try:
                cost = await self.cost(sql, (), replace(settings, epsilon=epsilon, rho=None), tree=False)
            except Refused:
                continue
            found.append((epsilon, cost.errors))
        return found

    async def _ask(
        self, sql: str, settings: StatementSettings, values: tuple[Value, ...] = (), within: str | None = None
    ) -> Answer:
        """within: the statement that a person wrote, at the end of `sql`: refusals are about that."""
        login = self._session.login
        try:
            described = await self._answering.describe(login, sql, settings)
            return await self._answering.run(login, described, values, settings, f"{login.name}/page{next(_numbers)}")
        except Refused as refused:
            if within is None:
                raise
            by = len(within) - len(sql)
            told = [d if d.source is None else d.within(Source(within), by) for d in refused.diagnostics]
            raise Refused(told, refused.sqlstate) from None


_TOO_MANY: Final = Diagnostic(
    "DP414",
    f"{MOST_RUNNING} statements of this session are on their way already",
    help=("wait for one of them",),
    notes=(NOTHING_RAN,),
)


def no_values() -> Refused:
    """There is a parameter, and no place to say its value."""
    return Refused([_NO_VALUES], "42P02")


_NO_VALUES: Final = Diagnostic(
    "DP013", "there is no value for $1", help=("write the value into the query",),
    notes=(NOTHING_RAN,),
)  # fmt: skip
