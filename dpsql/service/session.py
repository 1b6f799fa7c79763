"""A session: one policy, one database, one ledger, one analyst."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Self

from dpsql.answers.account import Account, answers_beside
from dpsql.answers.store.store import AnswerStore
from dpsql.core.engine import Engine
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import PrivacyLoss, left_text, remaining
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen, reject
from dpsql.engines.duckdb.scratch import Scratch
from dpsql.planner.plan import Charge, Plan
from dpsql.planner.settings import Settings
from dpsql.policy.load import load_policy
from dpsql.policy.resolve.from_catalogue import complete
from dpsql.results.answer import Release
from dpsql.service.arguments import Parameters, checked_parameters
from dpsql.service.frames import by_table
from dpsql.service.kept_plans import Plans
from dpsql.service.ledgers import FORGETS, Place, is_in_memory, open_ledger, place_of
from dpsql.service.planning import Planner, Question
from dpsql.service.public_facts import FactStore
from dpsql.service.query import Query
from dpsql.service.running import Runner
from dpsql.service.settings import USUAL, Amount, Asked, switch

if TYPE_CHECKING:
    import duckdb


def open_data(
    source: str | PathLike[str] | Policy | duckdb.DuckDBPyConnection,
    policy: str | PathLike[str] | Policy | None,
    frames: Mapping[str, object] | None,
    threads: int | None,
    memory_limit: str | None,
    progress: bool = False,
) -> tuple[Policy, Engine]:
    """The policy, completed with the data's types, and its data, opened as `dpsql.connect` says. The caller closes it.

    Raises CannotOpen, Rejected DP903.
    """
    from dpsql.engines.duckdb.engine import DuckDBEngine

    given = policy if policy is not None else source
    if not isinstance(given, Policy | str | PathLike):
        raise reject("DP903", "a connection needs a policy", help=["dpsql.connect(connection, policy='policy.yaml')"])
    loaded = given if isinstance(given, Policy) else load_policy(given)
    engine: DuckDBEngine
    tables = by_table(loaded, frames or {})
    if isinstance(source, Policy | str | PathLike):
        if tables and loaded.database_path is not None:
            raise reject(
                "DP903", f"a frame is given for table `{next(iter(tables))}`, which lies in the policy's `database`",
                help=["leave the frame out, or ask the custodian to take `database` out of the policy"],
            )  # fmt: skip
        sources = {t.name: t.source for t in loaded.tables.values() if t.source is not None}
        engine = DuckDBEngine.open(
            loaded.database_path, sources, loaded.directory, frames=tables,
            threads=threads, memory_limit=memory_limit, progress=progress,
        )  # fmt: skip
        tables = {}
    elif threads is not None or memory_limit is not None:
        raise reject(
            "DP903", "threads and memory_limit are for data that dpsql opens",
            help=["on a connection of your own:  SET threads = 4;  SET memory_limit = '8GB'"],
        )  # fmt: skip
    else:
        engine = DuckDBEngine.wrap(source, progress=progress)
    try:
        for name, frame in tables.items():
            engine.register(name, frame.value)
        return complete(loaded, engine.describe()), engine
    except BaseException:
        engine.close()
        raise


@dataclass(frozen=True, slots=True)
class Budget:
    """What has been spent of a privacy unit and what is left, for this analyst and in total. None: no cap declared."""

    unit: str
    spent: PrivacyLoss
    remaining: PrivacyLoss | None
    total_spent: PrivacyLoss
    total_remaining: PrivacyLoss | None

    def __str__(self) -> str:
        """One line; what is spent is rounded up and what is left down."""
        own = f"spent {self.spent}, {_left(self.remaining)}"
        return f"{self.unit}: {own}; in total spent {self.total_spent}, {_left(self.total_remaining)}"


def _left(left: PrivacyLoss | None) -> str:
    return "no limit" if left is None else f"left {left_text(left, in_rho=bool(left.rho) and not left.epsilon)}"


class Budgets(dict[str, Budget]):
    """Privacy unit → Budget, with the tightest numbers over all units in front."""

    @property
    def spent(self) -> PrivacyLoss:
        """The most that this analyst has spent of any one unit."""
        return _each(max, [b.spent for b in self.values()]) or PrivacyLoss()

    @property
    def remaining(self) -> PrivacyLoss | None:
        """What a query that touches every unit could still spend; None if no cap is declared."""
        return _each(min, [r for b in self.values() for r in (b.remaining, b.total_remaining) if r is not None])

    def __str__(self) -> str:
        """One line per unit."""
        return "\n".join(map(str, self.values()))

    __repr__ = __str__


def _each(choose: Callable[[list[Fraction]], Fraction], losses: list[PrivacyLoss]) -> PrivacyLoss | None:
    if not losses:
        return None
    return PrivacyLoss(
        choose([x.epsilon for x in losses]), choose([x.delta for x in losses]), choose([x.rho for x in losses])
    )


class Session:
    """Everything but PEP 249, which dpsql.api adds. A context manager; closing twice is allowed.

    Threads may share it: they plan and run one after the other.
    """

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        analyst: str | None = None,
        ledger: str | PathLike[str] | Ledger | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.policy = policy
        self.analyst = policy.account(analyst)
        self._settings = self._opened_with = settings or Settings()
        self._alone, self._setting = threading.RLock(), threading.Lock()
        self._engine = engine
        self._facts = FactStore(engine)
        self._plans = Plans()
        self._scratch = Scratch()
        self._ledger = ledger if ledger is not None and not isinstance(ledger, str | PathLike) else None
        self._ledger_name = ledger if isinstance(ledger, str | PathLike) else None
        self._forgets = self._ledger is None and is_in_memory(policy, self._ledger_name)
        self._store: AnswerStore | None = None
        self._closed = False

    # --- queries ---------------------------------------------------------------------------------------------------

    def sql(self, sql: str, parameters: Parameters = (), *, dialect: str = "duckdb") -> Query:
        """A query to look at and to run. Nothing is parsed or spent yet.

        parameters: a sequence for `?`, a mapping for `$name`; None is as good as none.
        Raises Rejected DP903: one of these is of another kind.
        """
        return Query(self, Question(sql, checked_parameters(sql, parameters, dialect), dialect))

    def plan(
        self,
        sql: str,
        parameters: Parameters = (),
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        dialect: str = "duckdb",
        *,
        rho: Amount | None = None,
        max_error: Mapping[str, Amount] | None = None,
        confidence: Amount = USUAL,
        weights: Mapping[str, Amount] | None = None,
        allow_dearer: bool | None = None,
        coverage: bool | None = None,
    ) -> Plan:
        """The plan of a query with these settings (else the session's, else the policy's). Raises Rejected."""
        asked = Asked(epsilon, delta, rho, max_error, confidence, weights, allow_dearer, coverage)
        return self.planner.plan(Question(sql, checked_parameters(sql, parameters, dialect), dialect), asked)

    def preview(
        self,
        sql: str,
        parameters: Parameters = (),
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        dialect: str = "duckdb",
        *,
        rho: Amount | None = None,
        max_error: Mapping[str, Amount] | None = None,
        confidence: Amount = USUAL,
        weights: Mapping[str, Amount] | None = None,
        allow_dearer: bool | None = None,
        coverage: bool | None = None,
    ) -> Plan:
        """As `plan`, but where no ε or δ is known anywhere a nominal one is used, so that EXPLAIN always shows.

        A nominal δ only where private keys need one: elsewhere it would show noise that a run without δ does not draw.
        """
        asked = Asked(epsilon, delta, rho, max_error, confidence, weights, allow_dearer, coverage)
        return self.planner.preview(Question(sql, checked_parameters(sql, parameters, dialect), dialect), asked)

    @property
    def planner(self) -> Planner:
        """What makes this session's plans. Raises Rejected DP903 once it is closed."""
        self.require_open()
        return Planner(self.policy, self._engine, self._facts, self._settings, self._plans, self._alone)

    def set(self, name: str, amount: Amount | bool | None) -> Fraction | bool | None:
        """What `SET epsilon = 0.2` does: from now on queries that ask for nothing else run with this.

        name: epsilon or rho (each replaces the other) or delta, with an amount; or allow_dearer or coverage, which
            are on or off.
        amount: None for what the session was opened with, as RESET does.
        Returns what holds now; None: what the policy says. Raises Rejected DP903 for other names, DP406 for no amount.
        """
        self.require_open()
        with self._setting:  # not `_alone`, which a query of another thread may hold for minutes
            self._settings = now = self._changed(name, amount, self._settings)
        found: Fraction | bool | None = getattr(now, name)
        return found

    def _changed(self, name: str, amount: Amount | bool | None, now: Settings) -> Settings:
        opened = self._opened_with
        match name, amount:
            case "allow_dearer", _:
                wanted = opened.allow_dearer if amount is None else switch(amount, name)
                return replace(now, allow_dearer=wanted)
            case "coverage", _:
                return replace(now, coverage=opened.coverage if amount is None else switch(amount, name))
            case (("epsilon" | "rho"), None):
                return replace(now, epsilon=opened.epsilon, rho=opened.rho)
            case "delta", None:
                return replace(now, delta=opened.delta)
            case "epsilon", _:
                return Asked(epsilon=amount).settled(now)
            case "rho", _:
                return Asked(rho=amount).settled(now)
            case "delta", _:
                return Asked(delta=amount).settled(now)
        raise reject(
            "DP903", f"there is no setting {name!r}", help=["SET epsilon, delta, rho, allow_dearer or coverage"]
        )

    def run(self, plan: Plan, *, fresh: bool = False, charging: Callable[[str], object] | None = None) -> Release:
        """Run a plan made by this session: check public facts, reserve, fetch, add noise, store, post-process.

        Numbers that were released before, as accurately as planned or better, are given again instead; what others
        have bought only where all that is charged is no more than the plan's cost, unless the plan allows dearer ones.
        fresh: pay for new noise all the same.
        charging: called with the id of the ledger's entry before that is made, so that a caller whose run is stopped
            can look whether it was.
        Raises Rejected (DP409, DP905), BudgetExceeded (nothing ran), EngineError (what was charged stays charged).
        """
        self.require_open()
        if not plan.complete:
            raise reject(
                "DP903", "the plan was made without data and cannot be run",
                source=plan.source, help=["plan the query in this session:  con.sql(…).run(…)"],
            )  # fmt: skip
        if plan.policy_hash != self.policy.hash:
            raise reject("DP903", "the plan belongs to another policy", help=["plan the query in this session"])
        runner = Runner(self._engine, self._facts, self._scratch, self.policy.noise)
        with self._alone:
            if all(r.measured.known for r in plan.releases):
                return runner.free(plan)
            release = runner.run(plan, self._account(charging), fresh)
            return replace(release, notes=(*release.notes, FORGETS)) if self._forgets else release

    def charge(self, plan: Plan, *, fresh: bool = False) -> Charge:
        """What a run of a plan charges if nothing is bought or spent in between. fresh: of a run with new noise.

        Raises CannotOpen.
        """
        self.require_open()
        if fresh or all(r.measured.known for r in plan.releases):
            return Charge.of_new(plan)
        if not self.has_ledger:
            return Charge.of_new(plan)  # looking makes no ledger, and without one nothing is stored
        with self._alone:
            return self._account().charge(plan)

    def outlook(self, plan: Plan, *, fresh: bool = False) -> Charge:
        """As `charge`, for EXPLAIN, which needs no ledger: that of new noise, with a note, where none can be read."""
        try:
            return self.charge(plan, fresh=fresh)
        except CannotOpen as refusal:
            why = refusal.diagnostics[0].message if refusal.diagnostics else "they cannot be read"
            return replace(Charge.of_new(plan), notes=(f"stored answers were not looked at: {why}",))

    def price(self, plan: Plan) -> PrivacyLoss:
        """The `charge` of a run, the largest over all units. Raises CannotOpen."""
        return self.charge(plan).loss

    def warnings(self, plan: Plan, *, fresh: bool = False) -> tuple[Diagnostic, ...]:
        """What speaks against a run (DP5xx), if it would spend something now. Raises CannotOpen."""
        return plan.warnings if plan.warnings and self.charge(plan, fresh=fresh).loss != PrivacyLoss() else ()

    def _account(self, charging: Callable[[str], object] | None = None) -> Account:
        ledger = self.ledger
        if self._store is None:
            self._store = answers_beside(ledger)
        order = f"{self._engine.dialect} {self._engine.version}"
        return Account(self.policy, self.analyst, ledger, self._store, order, charging)

    # --- budget ----------------------------------------------------------------------------------------------------

    @property
    def has_ledger(self) -> bool:
        """Whether there is a ledger, or should be one; looking makes none. Raises CannotOpen."""
        place = self.ledger_place
        return self._ledger is not None or (place is not None and place.is_taken)

    @property
    def ledger_place(self) -> Place | None:
        """Where the ledger and its head are, unless the caller gave a ledger of his own. None: in memory."""
        return place_of(self.policy, self._ledger_name)

    @property
    def budget(self) -> Budgets:
        """Privacy unit → spent and remaining, for this analyst and in total. Raises CannotOpen."""
        caps = self.policy.caps_for(None if self.analyst == "*" else self.analyst)
        ledger, found = self.ledger, Budgets()
        for unit in self.policy.units:
            own, total = ledger.spent(unit, self.analyst), ledger.spent(unit)
            own_cap, total_cap = caps.analyst.get(unit), caps.total.get(unit)
            found[unit] = Budget(
                unit,
                own,
                None if own_cap is None else remaining(own_cap, own),
                total,
                None if total_cap is None else remaining(total_cap, total),
            )
        return found

    @property
    def ledger(self) -> Ledger:
        """The session's ledger, opened, and made if it is not there. Raises CannotOpen."""
        with self._alone:
            if self._ledger is None:
                self.require_open()
                self._ledger = open_ledger(self.policy, self.ledger_place)
            if self._closed:  # by another thread, which may have seen no ledger yet
                self._ledger.close()
                self.require_open()
            return self._ledger

    # --- life ------------------------------------------------------------------------------------------------------

    def require_open(self) -> None:
        """Raises Rejected DP903 once the session is closed."""
        if self._closed:
            raise reject("DP903", "the connection is closed", help=["open it again with dpsql.connect(…)"])

    def close(self) -> None:
        """Let go of data and ledger."""
        if self._closed:
            return
        self._closed = True
        self._engine.close()
        self._scratch.close()
        if self._ledger is not None:
            self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
