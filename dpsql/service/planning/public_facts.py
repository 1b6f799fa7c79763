"""Measures the public facts a compilation asks for, and checks them again before a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from dpsql.core.engine import Engine
from dpsql.core.ir.periods import Closed
from dpsql.core.ir.public_facts import ClosedPeriods, FrequencyOf, Keys, KeysOf, PublicFacts, Request, RowsOf
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.engines import public_facts as public
from dpsql.planner.plan import Plan
from dpsql.policy.tools.assumptions import PAGES

T = TypeVar("T")
MOST_ROUNDS = 20
"""Each round of compiling can ask for new facts only after the previous ones are known; queries need two or three."""


@dataclass(frozen=True, slots=True)
class FactRound:
    """One attempt to make a plan. A refusal is none yet where facts are missing: they are measured for the next one."""

    known: PublicFacts

    def __enter__(self) -> PublicFacts:
        return self.known

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, Rejected) and bool(self.known.missing)


class FactStore:
    """Public facts measured so far.

    lock: held while plans are made of them.
    """

    def __init__(self, engine: Engine, periods: Callable[[], Mapping[str, Closed]] = dict) -> None:
        """engine: where queries run; facts for plans are measured by its sibling, which waits for none of them.
        periods: what is closed of each growing table.
        """
        self._running, self._periods = engine, periods
        self._closed: Mapping[str, Closed] = {}
        self._sibling: Engine | None = None
        self.lock = threading.RLock()
        self._numbers: dict[FrequencyOf | RowsOf, int] = {}
        self._keys: dict[KeysOf, Keys | None] = {}
        self.changes = 0
        """How often anything here has changed."""

    @property
    def engine(self) -> Engine:
        """The one that plans are made with."""
        if self._sibling is None:
            self._sibling = self._running.sibling()
        return self._sibling

    def interrupt(self) -> None:
        """Stop what is measured now, from any thread."""
        if self._sibling is not None:
            self._sibling.interrupt()

    def rounds(self) -> Iterator[FactRound]:
        """What is known, again and again until a plan that is made of it lacks nothing. Raises Rejected, EngineError.

        for round in facts.rounds():
            with round as public:
                plan = …
        """
        for _ in range(MOST_ROUNDS):
            known = PublicFacts(dict(self._numbers), dict(self._keys), periods=dict(self._closed))
            yield FactRound(known)
            if not known.missing:
                return
            for request in known.missing:
                self._measure(request)
        raise reject("DP101", "the query asks for too many public facts")

    def compile(self, compile_with: Callable[[PublicFacts], T]) -> T:
        """What a function makes of public facts, once none is missing. Raises Rejected, EngineError."""
        for known in self.rounds():
            with known as public:
                made = compile_with(public)
        return made

    def look_at_periods(self) -> None:
        """Ask the ledger what is closed, before a plan is made or one that was kept is given. Raises CannotOpen."""
        found = self._periods()
        if found != self._closed:
            self._closed, self.changes = found, self.changes + 1

    def _measure(self, request: Request) -> None:
        self.changes += 1
        match request:
            case ClosedPeriods(table=table):
                self._closed = {**self._closed, table: self._periods()[table]}
            case KeysOf(table=table, columns=columns, limit=limit):
                found = public.key_list(self.engine, table, columns, limit)
                self._keys[request] = None if found is None else Keys(found)
            case FrequencyOf() | RowsOf():
                self._numbers[request] = _number(self.engine, request)

    def check_again(self, plan: Plan) -> None:
        """In the run's transaction: no public fact may be larger than planned, and what is closed is what was.

        Raises Rejected DP409.
        """
        if plan.basis.periods:
            with self.lock:
                self.look_at_periods()
                now_closed = dict(self._closed)
            for name, then in plan.basis.periods.items():
                if now_closed.get(name) != then:
                    raise reject(
                        "DP409", f"the closed periods of {name} have changed since the query was planned",
                        source=plan.source, help=["run the query again: it will be planned anew"],
                    )  # fmt: skip
        for request, planned in plan.basis.public.items():
            now = _number(self._running, request)
            if now > planned:
                with self.lock:
                    self._numbers[request] = now
                    self.changes += 1
                counted = "rows"
                if isinstance(request, FrequencyOf):
                    counted = f"most rows per value of ({', '.join(request.columns)})"
                raise reject(
                    "DP409", f"the public table {request.table} has changed since the query was planned",
                    source=plan.source, help=["run the query again: it will be planned anew"],
                    notes=[
                        f"{counted}: {planned:,} when planned, {now:,} now",
                        f"the noise covers what was planned ({PAGES}/README.md)",
                    ],
                )  # fmt: skip


def _number(engine: Engine, request: FrequencyOf | RowsOf) -> int:
    match request:
        case FrequencyOf(table=table, columns=columns):
            return public.frequency(engine, table, columns)
        case RowsOf(table=table):
            return public.row_count(engine, table)
