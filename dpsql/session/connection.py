"""A session: one policy, one database, one ledger, one analyst."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsql.answers.store import AnswerStore
from dpsql.budget.ledger import Ledger
from dpsql.compiler import Plan, Settings
from dpsql.diagnostics.errors import reject
from dpsql.engine.base import Engine
from dpsql.engine.scratch import Scratch
from dpsql.loss import PrivacyLoss, remaining
from dpsql.policy.complete import complete
from dpsql.policy.load import load_policy
from dpsql.policy.models import Policy, default_head_path
from dpsql.release.result import Release
from dpsql.session.facts import FactStore
from dpsql.session.planning import Planner, Question
from dpsql.session.plans import Plans
from dpsql.session.query import Query
from dpsql.session.running import Account, Runner, answers_beside
from dpsql.session.settings import USUAL, Amount, Asked

if TYPE_CHECKING:
    import duckdb


def connect(
    source: str | PathLike[str] | Policy | duckdb.DuckDBPyConnection,
    *,
    policy: str | PathLike[str] | Policy | None = None,
    frames: Mapping[str, object] | None = None,
    analyst: str | None = None,
    ledger: str | PathLike[str] | Ledger | None = None,
    epsilon: Amount | None = None,
    delta: Amount | None = None,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: bool = False,
) -> Connection:
    """Open a session.

    source: a policy (file or object), whose data is opened read-only and locked; or a DuckDB connection that is already
        open, together with `policy=` (nothing is locked then; results say so).
    frames: with a DuckDB connection: table name of the policy → pandas, polars or Arrow table that holds its rows.
    analyst: whose budget is spent; None is the shared account `*`. The name is trusted from the caller.
    ledger: path of the ledger, instead of the policy's; or a Ledger object.
    epsilon, delta: defaults of this session's queries.
    threads, memory_limit: how much DuckDB may take, e.g. 4 and `"8GB"`, of a policy's data. What needs more memory is
        spilled to a private temporary folder.
    progress: for the custodian: a bar, on a terminal or in a notebook, for queries that take longer than a second. How
        it moves depends on private rows and is not covered by ε.
    Raises CannotOpen: policy, data or ledger cannot be opened, or the policy and the data disagree. Rejected DP903.
    """
    name: object = analyst
    if name == "" or not isinstance(name, str | None):
        raise reject("DP903", "an analyst is a name", help=["leave it out to spend the shared budget"])
    settings = Asked(epsilon, delta).settled(Settings())
    completed, engine = open_data(source, policy, frames, threads, memory_limit, progress)
    return Connection(completed, engine, analyst, ledger, settings)


def open_data(
    source: str | PathLike[str] | Policy | duckdb.DuckDBPyConnection,
    policy: str | PathLike[str] | Policy | None,
    frames: Mapping[str, object] | None,
    threads: int | None,
    memory_limit: str | None,
    progress: bool = False,
) -> tuple[Policy, Engine]:
    """The policy, completed with the data's types, and its data, opened as `connect` says. The caller closes it.

    Raises CannotOpen, Rejected DP903.
    """
    from dpsql.engine.duckdb import DuckDBEngine

    given = policy if policy is not None else source
    if not isinstance(given, Policy | str | PathLike):
        raise reject("DP903", "a connection needs a policy", help=["dpsql.connect(connection, policy='policy.yaml')"])
    loaded = given if isinstance(given, Policy) else load_policy(given)
    engine: DuckDBEngine
    if isinstance(source, Policy | str | PathLike):
        if frames:
            raise reject(
                "DP903", "frames need a connection of your own",
                help=["dpsql.connect(duckdb.connect(), policy='policy.yaml', frames={…})"],
            )  # fmt: skip
        sources = {t.name: t.source for t in loaded.tables.values() if t.source is not None}
        engine = DuckDBEngine.open(
            loaded.database_path, sources, loaded.directory,
            threads=threads, memory_limit=memory_limit, progress=progress,
        )  # fmt: skip
    elif threads is not None or memory_limit is not None:
        raise reject(
            "DP903", "threads and memory_limit are for data that dpsql opens",
            help=["on a connection of your own:  SET threads = 4;  SET memory_limit = '8GB'"],
        )  # fmt: skip
    else:
        engine = DuckDBEngine.wrap(source, progress=progress)
    try:
        for name, frame in (frames or {}).items():
            engine.register(name, frame)
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


def _each(choose: Callable[[list[Fraction]], Fraction], losses: list[PrivacyLoss]) -> PrivacyLoss | None:
    if not losses:
        return None
    return PrivacyLoss(
        choose([x.epsilon for x in losses]), choose([x.delta for x in losses]), choose([x.rho for x in losses])
    )


class Connection:
    """An open session. A context manager; closing twice is allowed. Not to be shared between threads at one time."""

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
        self._settings = settings or Settings()
        self._engine = engine
        self._facts = FactStore(engine)
        self._plans = Plans()
        self._scratch = Scratch()
        self._ledger = ledger if ledger is not None and not isinstance(ledger, str | PathLike) else None
        self._ledger_path = Path(ledger) if isinstance(ledger, str | PathLike) else None
        self._store: AnswerStore | None = None
        self._closed = False

    # --- queries ---------------------------------------------------------------------------------------------------

    def sql(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = (), *, dialect: str = "duckdb") -> Query:
        """A query to look at and to run. Nothing is parsed or spent yet."""
        wanted: list[tuple[object, Any]] = [(sql, str), (parameters, (Sequence, Mapping)), (dialect, str)]
        if not all(isinstance(given, kind) for given, kind in wanted):
            raise reject(
                "DP903", "a query is a text, its parameters a list or a dict, its dialect a name",
                help=["con.sql('SELECT … WHERE x > ?', [5])"],
            )  # fmt: skip
        return Query(self, Question(sql, parameters, dialect))

    def execute(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        *,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        rho: Amount | None = None,
        max_error: Mapping[str, Amount] | None = None,
        confidence: Amount = USUAL,
        weights: Mapping[str, Amount] | None = None,
        fresh: bool = False,
    ) -> Release:
        """Run at once, as `Query.run`. Raises Rejected, BudgetExceeded, EngineError."""
        return self.sql(sql, parameters).run(
            epsilon, delta, rho=rho, max_error=max_error, confidence=confidence, weights=weights, fresh=fresh
        )

    def plan(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        dialect: str = "duckdb",
        *,
        rho: Amount | None = None,
        max_error: Mapping[str, Amount] | None = None,
        confidence: Amount = USUAL,
        weights: Mapping[str, Amount] | None = None,
    ) -> Plan:
        """The plan of a query with these settings (else the session's, else the policy's). Raises Rejected."""
        asked = Asked(epsilon, delta, rho, max_error, confidence, weights)
        return self.planner.plan(Question(sql, parameters, dialect), asked)

    def preview(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        dialect: str = "duckdb",
        *,
        rho: Amount | None = None,
        max_error: Mapping[str, Amount] | None = None,
        confidence: Amount = USUAL,
        weights: Mapping[str, Amount] | None = None,
    ) -> Plan:
        """As `plan`, but where no ε or δ is known anywhere a nominal one is used, so that EXPLAIN always shows.

        A nominal δ only where private keys need one: elsewhere it would show noise that a run without δ does not draw.
        """
        asked = Asked(epsilon, delta, rho, max_error, confidence, weights)
        return self.planner.preview(Question(sql, parameters, dialect), asked)

    @property
    def planner(self) -> Planner:
        """What makes this session's plans. Raises Rejected DP903 once it is closed."""
        self._require_open()
        return Planner(self.policy, self._engine, self._facts, self._settings, self._plans)

    def run(self, plan: Plan, *, fresh: bool = False) -> Release:
        """Run a plan made by this session: check public facts, reserve, fetch, add noise, store, post-process.

        Numbers that were released before, as accurately as planned or better, are given again instead.
        fresh: pay for new noise all the same.
        Raises Rejected (DP409, DP905), BudgetExceeded (nothing ran), EngineError (what was charged stays charged).
        """
        self._require_open()
        if not plan.complete:
            raise reject(
                "DP903", "the plan was made without data and cannot be run",
                source=plan.source, help=["plan the query in this session:  con.sql(…).run(…)"],
            )  # fmt: skip
        if plan.policy_hash != self.policy.hash:
            raise reject("DP903", "the plan belongs to another policy", help=["plan the query in this session"])
        runner = Runner(self._engine, self._facts, self._scratch, self.policy.noise)
        if all(r.measured.known for r in plan.releases):
            return runner.free(plan)
        return runner.run(plan, self._account(), fresh)

    def price(self, plan: Plan) -> PrivacyLoss:
        """What a run of a plan would charge now, stored answers considered: the largest over all units.

        Raises CannotOpen.
        """
        self._require_open()
        if self._ledger is None and not ledger_places(self.policy, self._ledger_path)[0].exists():
            return plan.loss  # looking makes no ledger, and without one nothing is stored
        return plan.loss if all(r.measured.known for r in plan.releases) else self._account().price(plan)

    def _account(self) -> Account:
        ledger = self._open_ledger()
        if self._store is None:
            self._store = answers_beside(ledger)
        return Account(self.policy, self.analyst, ledger, self._store)

    # --- budget ----------------------------------------------------------------------------------------------------

    @property
    def budget(self) -> Budgets:
        """Privacy unit → spent and remaining, for this analyst and in total. Raises CannotOpen."""
        caps = self.policy.caps_for(None if self.analyst == "*" else self.analyst)
        ledger, found = self._open_ledger(), Budgets()
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

    def _open_ledger(self) -> Ledger:
        if self._ledger is None:
            self._ledger = open_ledger(self.policy, self._ledger_path)
        return self._ledger

    # --- life ------------------------------------------------------------------------------------------------------

    def _require_open(self) -> None:
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

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def open_ledger(policy: Policy, path: Path | None = None) -> Ledger:
    """The policy's ledger, or the one at `path`; made if it is not there. Raises CannotOpen DP407."""
    from dpsql.budget.sqlite import SqliteLedger

    where, head = ledger_places(policy, path)
    return SqliteLedger.open(where, head, policy.name, policy.privacy.accountant)


def look_at_ledger(policy: Policy, path: Path | None = None) -> Ledger:
    """As `open_ledger`, to read; it need not be writable then. Raises CannotOpen DP407."""
    from dpsql.budget.sqlite import SqliteLedger

    where, head = ledger_places(policy, path)
    return SqliteLedger.look(where, head, policy.name, policy.privacy.accountant)


def ledger_places(policy: Policy, path: Path | None = None) -> tuple[Path, Path]:
    """Where a ledger lies and where its head does: one file has one head, however it was named."""
    if path is None or Path(os.path.abspath(path)) == policy.ledger_path:
        return policy.ledger_path, policy.ledger_head_path
    return path, default_head_path(path, policy.name)
