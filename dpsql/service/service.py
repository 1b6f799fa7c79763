"""A service: one policy over one database, with one ledger. Its sessions share it, and so do threads.

*Claim.* Whatever runs, planning, explaining and pricing wait for no query; runs wait for each other. *Why.* Plans are
made under a lock of their own (`FactStore.lock`), with public facts measured over a second connection
(`Engine.sibling`); a price reads the ledger and the stored answers, each of which guards itself. Whoever has something
to charge or to draw holds `running`. *When it would be false.* If compiling asked the first connection for anything, or
if a ledger or a store of answers held its lock for as long as a query runs. *Tested by*
tests/service/test_service.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import ClassVar, Self

from dpsql.answers.stored.analyst_account import AnalystAccount, answers_beside
from dpsql.answers.stored.store.store import AnswerStore
from dpsql.core.engine import Engine, TellsItsData
from dpsql.core.ir.periods import Closed
from dpsql.core.ledger.closings import closed_periods, tables_that_grow
from dpsql.core.ledger.ledger import Ceiling, Entry, Ledger
from dpsql.core.ledger.underway import count_crashes, forget
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.engines.scratch import Scratch
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.tools.decisions import decided
from dpsql.service.accounts.ledgers import AnyPlace, is_in_memory, open_ledger, place_of
from dpsql.service.counters.counter_store import CounterStore
from dpsql.service.planning.planning import Planner
from dpsql.service.planning.public_facts import FactStore
from dpsql.service.session import Session
from dpsql.service.summaries.summary_store import SummaryStore


class Service:
    """What the sessions of all analysts share. It owns the engine, the ledger and the stored answers, and closes them.

    policy: completed with the data's types. engine: where queries run. planner: makes and keeps their plans. facts:
    public facts measured so far. summaries, counters: those that the ledger knows. scratch: where noisy numbers are
    post-processed. running, post_processing: held while a query that is charged runs, and while `scratch` is used.
    is_cut: whether what runs now is stopped by who interrupts it, which is no failure.
    free: what is told of each answer in place of a price; empty where data and prices are true. A context manager;
    closing twice is allowed.
    """

    free: ClassVar[str] = ""

    def __init__(self, policy: Policy, engine: Engine, ledger: str | PathLike[str] | Ledger | None = None) -> None:
        """ledger: its path or URL instead of the policy's, or a Ledger object. Raises CannotOpen DP016."""
        self.policy = policy if self.free else decided(policy)
        self.engine = engine
        self.facts = FactStore(engine, self.closed_periods)
        self.planner = Planner(policy, self.facts)
        self.summaries = SummaryStore(self)
        self.counters = CounterStore(self)
        self.scratch = Scratch()
        self.running, self.post_processing = threading.RLock(), threading.RLock()
        self._opening = threading.RLock()
        self._ledger = ledger if ledger is not None and not isinstance(ledger, str | PathLike) else None
        self._ledger_name = ledger if isinstance(ledger, str | PathLike) else None
        self.forgets = self._ledger is None and is_in_memory(policy, self._ledger_name)
        """Whether what was spent is forgotten with the service."""
        self._store: AnswerStore | None = None
        self._head: Path | None = None
        self._closings: tuple[Sequence[Entry], Mapping[str, Closed]] | None = None
        self._closed = self.is_cut = False

    def session(
        self,
        analyst: str | None = None,
        settings: QuerySettings | None = None,
        ceilings: Mapping[str, Ceiling] | None = None,
    ) -> Session:
        """A session of one analyst; None: of the shared account. It need not be closed.

        ceilings: what it may spend besides, by the name of each ceiling.
        """
        return Session(self, analyst, settings, ceilings)

    def account(
        self,
        analyst: str,
        charging: Callable[[str], object] | None = None,
        ceilings: Mapping[str, Ceiling] | None = None,
        leaving: Callable[[], object] | None = None,
        named: bool = False,
        drawing: Callable[[], object] | None = None,
    ) -> AnalystAccount:
        """An analyst's account in the ledger, with the answers stored beside it. Raises CannotOpen.

        charging: told the id of an entry before it is reserved. ceilings: see `session`. leaving, named, drawing: see
        `AnalystAccount`.
        """
        ledger = self.ledger
        with self._opening:
            if self._store is None:
                self._store = answers_beside(ledger)
            store = self._store
        order = f"{self.engine.dialect.name} {self.engine.version}"
        summaries = self.summaries.for_plan
        return AnalystAccount(
            self.policy, analyst, ledger, store, order, charging, ceilings or {}, leaving, drawing, summaries, named,
            self._head, self.engine.data_identity if isinstance(self.engine, TellsItsData) else "",
            self.planner.narrowed,
        )  # fmt: skip

    # --- the ledger ------------------------------------------------------------------------------------------------

    @property
    def has_ledger(self) -> bool:
        """Whether there is a ledger, or should be one; looking makes none. Raises CannotOpen."""
        place = self.ledger_place
        return self._ledger is not None or (place is not None and place.is_taken)

    @property
    def ledger_place(self) -> AnyPlace | None:
        """Where the ledger and its head are, unless the caller gave a ledger of his own. None: in memory."""
        return place_of(self.policy, self._ledger_name)

    @property
    def ledger(self) -> Ledger:
        """The ledger, opened, and made if it is not there. Raises CannotOpen."""
        with self._opening:
            if self._ledger is None:
                self.require_open()
                place = self.ledger_place
                self._ledger, self._head = open_ledger(self.policy, place), None if place is None else place.head
                self.count_crashes()
            if self._closed:  # by another thread, which may have seen no ledger yet
                self._ledger.close()
                self.require_open()
            return self._ledger

    def closed_periods(self) -> Mapping[str, Closed]:
        """What is closed of each growing table; looking makes no ledger. Raises CannotOpen."""
        growing = tables_that_grow(self.policy)
        entries = self.ledger.closings() if growing and self.has_ledger else ()
        if self._closings is None or self._closings[0] != entries:
            found = {table.name: closed_periods(entries, self.policy, table) for table in growing}
            self._closings = entries, found
        return self._closings[1]

    def count_crashes(self) -> None:
        """Note in the ledger what was charged on this machine and whose process is gone. Raises CannotOpen."""
        if self._ledger is not None and self._head is not None:
            count_crashes(self._ledger, self._head)

    def stopped(self, entry: str) -> None:
        """The run of another process that this entry charged is ended by who waits for it: that is no failure."""
        if self._head is not None:
            forget(self._head, entry)

    def interrupt(self) -> None:
        """Stop whatever is computed now, from any thread: it raises EngineError."""
        self.engine.interrupt()
        self.facts.interrupt()
        self.scratch.interrupt()

    # --- life ------------------------------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether somebody has closed it."""
        return self._closed

    def require_open(self) -> None:
        """Raises Rejected DP903 once the service is closed."""
        if self._closed:
            raise reject("DP903", "the connection is closed", help=["open it again with dpsql.connect(…)"])

    def close(self) -> None:
        """Let go of data and ledger."""
        if self._closed:
            return
        self._closed = True
        self.engine.close()
        self.scratch.close()
        if self._store is not None:
            self._store.close()
        if self._ledger is not None:
            self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
