"""Who answers a server's front in tests: fixed answers to a few statements, or a session over the demo's data."""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import re
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from dpsql.core.ir import types as t
from dpsql.core.ir.types import SqlType
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.errors import Error
from dpsql.diagnostics.note import Note
from dpsql.faces.server.statements import (
    STOPPED,
    Answer,
    AuditEvent,
    DescribedStatement,
    Login,
    Refused,
    StatementSettings,
    Value,
)
from dpsql.frontend.placeholders import placeholders

COLUMNS: dict[str, tuple[SqlType, Value]] = {
    "n": (t.BIGINT, 42), "i": (t.INTEGER, -1), "region": (t.VARCHAR, "norð"), "d": (t.DATE, dt.date(2025, 1, 2)),
    "f": (t.DOUBLE, 0.5), "dec": (t.decimal(10, 2), Decimal("3.50")), "b": (t.BOOLEAN, True), "none": (t.BIGINT, None),
    "ts": (t.TIMESTAMP, dt.datetime(2025, 1, 2, 3, 4, 5)), "list": (t.list_of(t.VARCHAR), ["a", None]),
    "huge": (t.HUGEINT, 2**70), "blob": (t.BLOB, b"\x00\x01"), "u": (t.UUID, UUID(int=7)),
    "tz": (t.TIMESTAMPTZ, dt.datetime(2025, 1, 2, tzinfo=dt.UTC)), "iv": (t.INTERVAL, dt.timedelta(hours=3)),
}  # fmt: skip
"""Name of a column → its type, and its value in every row."""
_FORM = re.compile(r"\s*SELECT\s+([\w, ]+?)(?:\s+FROM\s+numbers\((\d+)\))?(?:\s+WHERE\s+(.*?))?\s*", re.IGNORECASE)
_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*")
_BATCH = re.compile(r"\s*DP BATCH \((.*)\)\s*", re.DOTALL)


@dataclass
class Answers:
    """Implements `Answering`. What is known: `SELECT` of columns by the names below; `n` rows of them where WHERE says.

        SELECT <columns> [FROM numbers(<n>)] [WHERE x = $1 …]     parameters are BIGINT, or TEXT where compared to y

    and `DP BATCH (…; …)` of these. Whatever else is refused as DP102, at the word behind FROM. `hold` has runs
    wait until they are stopped or let go.
    """

    asked: list[tuple[Login, str, tuple[Value, ...], StatementSettings]] = field(default_factory=list)
    hold: bool = False
    fail: bool = False
    running: threading.Event = field(default_factory=threading.Event)
    stopped: list[str] = field(default_factory=list)
    warnings: tuple[Diagnostic, ...] = ()
    notices: tuple[Note, ...] = (Note("spent ε 0.5"),)
    _ends: dict[str, asyncio.Event] = field(default_factory=dict)

    async def describe(self, login: Login, sql: str, settings: StatementSettings) -> DescribedStatement:
        if _BATCH.fullmatch(sql):
            return DescribedStatement(sql, command="BATCH")
        found = _FORM.fullmatch(_COMMENT.sub(" ", sql))
        names = [] if found is None else [n.strip() for n in found[1].split(",")]
        if found is None or not all(n in COLUMNS for n in names):
            at = re.search(r"(?<=FROM )\w+", sql, re.IGNORECASE) or re.search(r"\S+", sql)
            span = Span(*at.span()) if at else Span(0, 1)
            raise Refused([Diagnostic("DP102", "unknown table", Source(sql), span, "here", ("SELECT n",))])
        columns = tuple((n, COLUMNS[n][0]) for n in names)
        if settings.intervals:
            columns += (("n_low", t.DOUBLE),)
        parameters = tuple(
            t.VARCHAR if name == "y" else t.BIGINT for name in re.findall(r"(\w) = \$\d", found[3] or "")
        )
        return DescribedStatement(sql, columns, parameters)

    async def run(
        self,
        login: Login,
        described: DescribedStatement,
        values: tuple[Value, ...],
        settings: StatementSettings,
        run_id: str,
    ) -> Answer:
        self.asked.append((login, described.sql, values, settings))
        if self.fail:
            raise KeyError("a value of a private row")
        end = self._ends[run_id] = asyncio.Event()
        self.running.set()
        try:
            while self.hold and not end.is_set():
                await asyncio.sleep(0.001)
        finally:
            del self._ends[run_id]
        if end.is_set():
            raise Refused([Diagnostic("DP901", "the statement was stopped")], STOPPED)
        if batch := _BATCH.fullmatch(described.sql):
            each = [await self.describe(login, sql, settings) for sql in batch[1].split(";")]
            return Answer((), (), (Note("spent ε 0.5"),), command="BATCH", more=tuple(map(self._answer, each)))
        return self._answer(described)

    def _answer(self, described: DescribedStatement) -> Answer:
        found = _FORM.fullmatch(_COMMENT.sub(" ", described.sql))
        assert found is not None
        one = tuple(0.0 if name == "n_low" else COLUMNS[name][1] for name, _ in described.columns)
        return Answer(described.columns, [one] * int(found[2] or 1), self.notices, self.warnings, "ε 0.5", "plan", "id")

    async def stop(self, run_id: str) -> None:
        self.stopped.append(run_id)
        if (end := self._ends.get(run_id)) is not None:
            end.set()


_GUESSES: tuple[tuple[SqlType, Any], ...] = (
    (t.BIGINT, 1), (t.VARCHAR, "1"), (t.DATE, "2025-01-01"), (t.DOUBLE, 1.5), (t.BOOLEAN, True),
)  # fmt: skip


class SessionAnswers:
    """Implements `Answering` over a policy's data in this process, with a ledger in memory."""

    def __init__(self, policy: Path) -> None:
        import dpsql

        self.connection = dpsql.connect(policy, ledger=":memory:")
        self._lock = threading.Lock()

    async def describe(self, login: Login, sql: str, settings: StatementSettings) -> DescribedStatement:
        return await asyncio.to_thread(self._in_lock, lambda: self._describe(sql))

    def _in_lock(self, step: Callable[[], Any]) -> Any:
        with self._lock:
            try:
                return step()
            except Error as error:
                raise Refused(error.diagnostics) from None

    def _describe(self, sql: str) -> DescribedStatement:
        names = placeholders(sql) or frozenset()
        count = max((int(n) for n in names if n.isdigit()), default=0)
        refusal: Error | None = None
        for guess in itertools.product(_GUESSES, repeat=count):
            try:
                plan = self.connection.preview(sql, [value for _, value in guess])
            except Error as error:
                refusal = refusal or error
                continue
            return DescribedStatement(
                sql, tuple((c.name, c.type) for c in plan.columns), tuple(type_ for type_, _ in guess)
            )
        assert refusal is not None
        raise refusal

    async def run(
        self,
        login: Login,
        described: DescribedStatement,
        values: tuple[Value, ...],
        settings: StatementSettings,
        run_id: str,
    ) -> Answer:
        answer: Answer = await asyncio.to_thread(self._in_lock, lambda: self._run(described, values, settings))
        return answer

    def _run(self, described: DescribedStatement, values: tuple[Value, ...], settings: StatementSettings) -> Answer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            query = self.connection.sql(described.sql, list(values))
            plan = query.plan(settings.epsilon, settings.delta, rho=settings.rho, limits=settings.limits)
            release = self.connection.run(plan)
        columns = tuple(zip(release.columns, release.types, strict=True))
        return Answer(columns, release.rows, (Note(f"spent {release.spent}"), *release.notes), spent=str(release.spent))

    async def stop(self, run_id: str) -> None:
        """Its runs are over soon."""


class Recorded:
    """An audit log in memory."""

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def record(self, event: AuditEvent) -> None:
        self.events.append(event)

    def require(self) -> None:
        pass


class NoCatalogue:
    """A catalogue that nothing concerns."""

    def concerns(self, sql: str) -> bool:
        return False

    async def describe(self, login: Login, sql: str, settings: StatementSettings) -> DescribedStatement:
        raise AssertionError

    async def run(
        self,
        login: Login,
        described: DescribedStatement,
        values: tuple[Value, ...],
        settings: StatementSettings,
        run_id: str,
    ) -> Answer:
        raise AssertionError

    async def stop(self, run_id: str) -> None:
        pass
