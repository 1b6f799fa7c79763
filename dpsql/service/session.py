"""A session: one analyst, his account and his settings, over a service that others share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final, Unpack

from dpsql.answers.results.answer import Release
from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.ledger_summaries import definitions
from dpsql.answers.stored.resolve import Resolution, resolve
from dpsql.core.ledger.ledger import Ceiling, Ledger
from dpsql.core.policy.budgets import SHARED_ACCOUNT
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import CannotOpen, Rejected, reject
from dpsql.diagnostics.note import Note, Rank
from dpsql.frontend.bind.parameters import GivenRelation
from dpsql.frontend.text.counter_statements import CounterStatement, CreateCounter, counter_statement, relations_named
from dpsql.frontend.text.summary_statements import CreateSummary, DropSummary, summary_statement
from dpsql.planner.plan import Charge, Plan
from dpsql.planner.searches.may_search import search_refused
from dpsql.planner.settings.privacy_clause import with_said
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service import pipeline
from dpsql.service.accounts.ledgers import AnyPlace
from dpsql.service.accounts.remaining_budgets import Budgets, budgets_of
from dpsql.service.batches.batch import Batch, Statement
from dpsql.service.batches.batch_design import written_in
from dpsql.service.checks.described import Description, described
from dpsql.service.counters import counter
from dpsql.service.counters.counter import CounterDone, CounterQuery, KnownCounter
from dpsql.service.counters.counter_store import ERRORS, Ticked
from dpsql.service.given_arguments import Parameters, checked_parameters
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.planning.searches import with_held_limits
from dpsql.service.privacy_settings import Amount, Asked, Options, asked_for, searched, setting, settled, switch
from dpsql.service.query import Query
from dpsql.service.summaries.summary import KnownSummary, SummaryQuery, drop, known_summaries

if TYPE_CHECKING:
    from dpsql.service.service import Service


_HARDLY: Final = Fraction(1, 10**6)
"""An ε whose noise any summary is more accurate than."""


class Session:
    """One analyst, his account and his settings. Light, and it owns nothing: its service does.

    Threads may share it: they plan, explain and price while another's query runs, and run one after the other.
    """

    def __init__(
        self,
        service: Service,
        analyst: str | None = None,
        settings: QuerySettings | None = None,
        ceilings: Mapping[str, Ceiling] | None = None,
    ) -> None:
        """analyst: whose account is charged, if the policy names him. settings: where a query asks for nothing else.

        ceilings: what it may spend besides, by the name of each ceiling.
        """
        self.service = service
        self.ceilings, self.named = ceilings or {}, analyst is not None
        self.analyst = service.policy.account(analyst)
        self._settings = self._opened_with = settings or QuerySettings()
        self._setting = threading.Lock()

    @property
    def policy(self) -> Policy:
        """The policy, completed with the data's types."""
        return self.service.policy

    @property
    def settings(self) -> QuerySettings:
        """What holds where a query asks for nothing else. Raises Rejected DP903 once the service is closed."""
        self.require_open()
        return self._settings

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that can be asked, as the policy has them."""
        return tuple(self.policy.tables)

    def describe(self, table: str | None = None) -> Description:
        """What can be asked: the tables and whose rows they hold, or the columns of one with their types, bounds and
        public groups. From the policy alone, and free.

        Raises Rejected DP102 for a table that the policy does not list.
        """
        return described(self.policy, table)

    # --- queries ---------------------------------------------------------------------------------------------------

    def sql(self, sql: str, parameters: Parameters = (), *, dialect: str = "duckdb") -> Query:
        """A query to look at and to run. Nothing is parsed or spent yet.

        parameters: a sequence for `?`, a mapping for `$name`; None is as good as none.
        Raises Rejected DP903: one of these is of another kind.
        """
        return Query(self, WrittenQuery(sql, checked_parameters(sql, parameters, dialect), dialect))

    def batch(self, statements: Sequence[Statement], *, skip_refused: bool = False) -> Batch:
        """Many counts and sums over one relation, to look at and to run together: more accurate than each alone, at one
        price.

        statements: `SELECT [keys,] COUNT(*), SUM(x), AVG(x) … FROM … [WHERE …] [GROUP BY keys]`, each a text or
            (text, parameters), with the same FROM; keys and conditions read columns with public lists of values.
        skip_refused: members that are none are left out and named, and the rest goes on.
        Nothing is parsed or spent yet.
        """
        return Batch(self, statements, skip_refused)

    def batch_of(self, text: str, name: str = "<sql>", *, skip_refused: bool = False) -> Batch:
        """As `batch`, of all statements of a text, or of the one DP BATCH that it is. Refusals name places in it.

        What a comment before DP BATCH says holds for the batch, whatever its caller says. name: of the text, for these.
        Raises Rejected DP903: none is in it; DP010: a batch that cannot be read; DP902: a comment that would not hold.
        """
        source = Source(text, name)
        written, skips, said = written_in(source)
        return Batch(self, written, skip_refused or skips, lambda settings: with_said(settings, said, source))

    def summary(self, name: str, table: str, columns: Sequence[str], k: int = 2) -> SummaryQuery:
        """All marginals of at most k of these columns, to look at and to make: later counts are answered from them.

        name: what it is called from then on. table: of the policy. columns: with public lists of values. Nothing is
        spent before `run`. Raises Rejected DP010: one of these is none.
        """
        made = CreateSummary(name, tuple(table.split(".")), tuple(columns), k)
        return self.summary_of(made.sql)

    def summary_of(self, sql: str) -> SummaryQuery:
        """The summary of a CREATE DP SUMMARY. Raises Rejected DP010."""
        read = summary_statement(sql)
        if not isinstance(read, CreateSummary):
            raise reject("DP903", "this is no statement that makes a summary", help=["CREATE DP SUMMARY …"])
        return SummaryQuery(self, read, sql)

    def drop_summary(self, name: str) -> None:
        """Forget a summary's name; what was paid for stays stored. Raises Rejected DP903: there is none."""
        self.require_open()
        drop(self, DropSummary(name))

    @property
    def summaries(self) -> tuple[KnownSummary, ...]:
        """The summaries that the ledger knows, and what each would be charged first. Raises CannotOpen."""
        self.require_open()
        return known_summaries(self)

    def counter_of(self, sql: str) -> CounterQuery:
        """The counter of a CREATE DP COUNTER, to look at and to make: a number for each closed period of a growing
        table, for ever, at one price. `dpsql.<name>` is read like a table, for nothing. Raises Rejected DP010.
        """
        read = counter_statement(sql)
        if not isinstance(read, CreateCounter):
            raise reject("DP903", "this is no statement that makes a counter", help=["CREATE DP COUNTER …"])
        return CounterQuery(self, read, sql)

    def drop_counter(self, name: str) -> None:
        """End a counter of this account: periods that it has not measured get back what it would have cost them.

        Raises Rejected DP903: there is none of this name, or it is another account's.
        """
        self.require_open()
        counter.drop(self, name)

    def receive_counter(self, name: str) -> PrivacyLoss:
        """Have another account's counter from now on, at its price; what was charged.

        Raises Rejected DP903, BudgetExceeded.
        """
        self.require_open()
        return counter.receive_counter(self, name)

    def tick_counter(self, name: str) -> Ticked:
        """Count the closed periods that a counter lacks. To draw again what was lost is charged to who has made it, and
        done only if he asks. Raises Rejected DP903, BudgetExceeded, CannotOpen, EngineError.
        """
        self.require_open()
        return counter.tick_counter(self, name)

    def do_counter(
        self, statement: CounterStatement, sql: str, epsilon: Amount | None = None, rho: Amount | None = None
    ) -> CounterDone:
        """Do what a statement about a counter says. epsilon, rho: where it says neither. Raises dpsql.Error."""
        self.require_open()
        return counter.done(self, statement, sql, epsilon, rho)

    def explain_counter(
        self, statement: CounterStatement, sql: str, epsilon: Amount | None = None, rho: Amount | None = None
    ) -> str:
        """What a statement about a counter would do and cost; of a new one its ±. Raises Rejected DP012: it is free."""
        return counter.explained(self, statement, sql, epsilon, rho)

    @property
    def counters(self) -> tuple[KnownCounter, ...]:
        """The counters that the ledger knows. Raises CannotOpen."""
        self.require_open()
        return counter.known_counters(self)

    def plan(
        self,
        sql: str,
        parameters: Parameters = (),
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        dialect: str = "duckdb",
        **options: Unpack[Options],
    ) -> Plan:
        """The plan of a query with these settings (else the session's, else the policy's). Raises Rejected."""
        asked = asked_for(epsilon, delta, options)
        return self.planned(WrittenQuery(sql, checked_parameters(sql, parameters, dialect), dialect), asked)

    def preview(
        self,
        sql: str,
        parameters: Parameters = (),
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        dialect: str = "duckdb",
        **options: Unpack[Options],
    ) -> Plan:
        """As `plan`, but where no ε or δ is known anywhere a nominal one is used, so that EXPLAIN always shows.

        A nominal δ only where private keys need one: elsewhere it would show noise that a run without δ does not draw.
        """
        asked = asked_for(epsilon, delta, options)
        return self.previewed(WrittenQuery(sql, checked_parameters(sql, parameters, dialect), dialect), asked)

    def planned(self, question: WrittenQuery, asked: Asked) -> Plan:
        """`plan` of a question that has been read. Raises Rejected."""
        return self.planned_with(question, settled(asked, self.settings))

    def previewed(self, question: WrittenQuery, asked: Asked) -> Plan:
        """`preview` of a question that has been read. Raises Rejected."""
        return self.planned_with(question, settled(asked, self.settings), looking=True)

    def planned_with(self, question: WrittenQuery, settings: QuerySettings, *, looking: bool = False) -> Plan:
        """As `planned`, with settings that are complete; with the limits that the account's own searches found, where
        its ledger can be read. Raises Rejected.

        Where nobody says what it may cost, and a summary that the account has answers it, it is a plan for nothing.
        looking: as `preview`.
        """
        if "dpsql" in question.sql.lower() and (names := relations_named(question.sql)):
            return self._of_counters(names, question, settings, looking)
        try:
            return self._with_held_limits(pipeline.compile(self.service, question, settings, looking=looking))
        except Rejected as refusal:
            found = self._otherwise(question, settings, {d.code for d in refusal.diagnostics}, looking)
            if found is None:
                raise
            return found

    def _of_counters(
        self, names: Sequence[str], question: WrittenQuery, settings: QuerySettings, looking: bool
    ) -> Plan:
        """A plan that reads counters: numbers that the account has. Raises Rejected, CannotOpen."""
        if not self.has_ledger:
            return pipeline.compile(self.service, question, settings, looking=looking)
        given = self.given_relations(names)
        plan = pipeline.compile(
            self.service, question, replace(settings, relations=given), looking=looking or bool(given)
        )
        if given and not plan.known:
            raise reject(
                "DP903", "a query that reads a counter reads no private rows", source=Source(question.sql),
                help=["ask the table by itself; join counters with each other, and with public tables"],
            )  # fmt: skip
        return plan

    def given_relations(self, names: Sequence[str]) -> tuple[GivenRelation, ...]:
        """The counters among these names. Raises Rejected DP903: the account has not got one; CannotOpen."""
        if not self.has_ledger:
            return ()
        given = self.service.counters.relations(names, self.service.account(self.analyst))
        known = {relation.name.casefold() for relation in given}
        for name in names:
            state = None if name in known else self.service.counters.called(name.removesuffix(ERRORS))
            if state is not None:
                raise counter.not_read(self, state)
        return given

    def _otherwise(
        self, question: WrittenQuery, settings: QuerySettings, refused: Set[str], looking: bool
    ) -> Plan | None:
        """A plan for what the account has, where there is none of the query by itself; else None."""
        if settings.max_error:
            if "DP411" not in refused:
                return None
            # What an error costs can be said once all limits are known.
            own = replace(settings, max_error={}, epsilon=Fraction(1), rho=None, nominal=True)
            unlimited = pipeline.compile(self.service, question, own, looking=looking)
            limited = self._with_held_limits(unlimited, settings)
            return None if limited is unlimited else limited
        if looking or not refused <= {"DP401"}:
            return None
        try:
            if not self.has_ledger or not definitions(self.service.ledger):
                return None
            own = replace(settings, epsilon=_HARDLY, nominal=True, allow_dearer=False)
            plan = pipeline.compile(self.service, question, own)
            plan = replace(plan, bid=replace(plan.bid, unpriced=True))
            found = resolve(plan, self._account()())
        except (Rejected, CannotOpen):
            return None
        return plan if found.is_held and found.price.is_nothing else None

    def _with_held_limits(self, plan: Plan, settings: QuerySettings | None = None) -> Plan:
        try:
            if plan.finding is None or not self.has_ledger:
                return plan
            return with_held_limits(self.service, plan, self.service.account(self.analyst), settings)
        except CannotOpen:
            return plan

    def set(self, name: str, amount: Amount | bool | None) -> Fraction | bool | str | None:
        """What `SET epsilon = 0.2` does: from now on queries that ask for nothing else run with this.

        name: epsilon or rho (each replaces the other) or delta, with an amount; allow_dearer, coverage or
            consistent_totals, which are on or off; or limits: "auto", "search" or "declared".
        amount: None for what the session was opened with, as RESET does.
        Returns what holds now; None: what the policy says. Raises Rejected DP903 for other names, DP406 for no amount.
        """
        self.require_open()
        with self._setting:
            self._settings = now = self._changed(name, amount, self._settings)
        return setting(now, name)

    def _changed(self, name: str, amount: Amount | bool | None, now: QuerySettings) -> QuerySettings:
        opened = self._opened_with
        match name, amount:
            case "allow_dearer", _:
                wanted = opened.allow_dearer if amount is None else switch(amount, name)
                return replace(now, allow_dearer=wanted)
            case "coverage", _:
                return replace(now, coverage=opened.coverage if amount is None else switch(amount, name))
            case "consistent_totals", _:
                wanted = opened.consistent_totals if amount is None else switch(amount, name)
                return replace(now, consistent_totals=wanted)
            case "limits", _:
                wanted = opened.search if amount is None else searched(amount)
                if wanted and self.policy.search == "refuse":
                    raise search_refused()
                return replace(now, search=wanted)
            case (("epsilon" | "rho"), None):
                return replace(now, epsilon=opened.epsilon, rho=opened.rho)
            case "delta", None:
                return replace(now, delta=opened.delta)
            case "epsilon", _:
                return settled({"epsilon": amount}, now)
            case "rho", _:
                return settled({"rho": amount}, now)
            case "delta", _:
                return settled({"delta": amount}, now)
        raise reject(
            "DP903",
            f"there is no setting {name!r}",
            help=["SET epsilon, delta, rho, allow_dearer, coverage, consistent_totals or limits"],
        )

    def run(
        self,
        plan: Plan,
        *,
        fresh: bool = False,
        charging: Callable[[str], object] | None = None,
        leaving: Callable[[], object] | None = None,
        drawing: Callable[[], object] | None = None,
    ) -> Release:
        """Run a plan made by this session: check public facts, reserve, fetch, add noise, store, post-process.

        Numbers that were released before, as accurately as planned or better, are given again instead; what others
        have bought only where all that is charged is no more than the plan's cost, unless the plan allows dearer ones.
        fresh: pay for new noise all the same.
        charging: called with the id of the ledger's entry before that is made, so that a caller whose run is stopped
            can look whether it was.
        leaving: called once all that reads private rows is done, however it ended, and before its numbers are stored
            or another's equal query goes on; when it returns is when others may know of it.
        drawing: called between the charge and the first draw, which waits until it returns.
        Raises Rejected (DP409, DP905), BudgetExceeded (nothing ran), EngineError (what was charged stays charged).
        """
        self.require_open()
        if not plan.basis.complete:
            raise reject(
                "DP903", "the plan was made without data and cannot be run",
                source=plan.source, help=["plan the query in this session:  con.sql(…).run(…)"],
            )  # fmt: skip
        if plan.basis.policy_hash != self.policy.hash:
            raise reject("DP903", "the plan belongs to another policy", help=["plan the query in this session"])
        return pipeline.run(self.service, plan, self._account(charging, leaving, drawing), fresh=fresh)

    def looked_up(self, plan: Plan) -> Resolution | None:
        """What a run of a plan would give if nothing is drawn and nothing charged for it; None if a run would pay.

        Raises BudgetExceeded if that would be refused now, CannotOpen.
        """
        self.require_open()
        return pipeline.held(self.service, plan, self._account(), refusing=True)

    def names(self, plan: Plan) -> frozenset[str]:
        """What a run would hold until its answer is stored: who draws the same waits for it. Raises CannotOpen."""
        self.require_open()
        return frozenset(pipeline.names(self.service, plan, self._account()))

    def given(self, found: Resolution) -> Release:
        """The answer of what was looked up. Raises CannotOpen."""
        return pipeline.given(self.service, found)

    def held(self, plan: Plan) -> Release | None:
        """The answer to a plan if nothing is drawn and nothing charged for it; None if a run would pay.

        Raises as `looked_up`.
        """
        found = self.looked_up(plan)
        return None if found is None else self.given(found)

    def charge(self, plan: Plan, *, fresh: bool = False) -> Charge:
        """What a run of a plan charges if nothing is bought or spent in between. fresh: of a run with new noise.

        Raises CannotOpen.
        """
        self.require_open()
        if fresh or plan.known:
            return Charge.of_new(plan)
        if not self.has_ledger:
            return Charge.of_new(plan)  # looking makes no ledger, and without one nothing is stored
        return resolve(plan, self._account()()).charge

    def charge_to_show(self, plan: Plan, *, fresh: bool = False) -> Charge:
        """As `charge`, for EXPLAIN, which needs no ledger: that of new noise, with a note, where none can be read.

        Over made-up rows nothing, with a word of what it is where they are true.
        """
        if self.service.free:
            true = f"; where it is true this costs {Charge.of_new(plan).loss}, unless its answer is stored"
            return Charge({}, (Note(self.service.free + ("" if plan.known else true), Rank.DANGER),))
        try:
            return self.charge(plan, fresh=fresh)
        except CannotOpen as refusal:
            why = refusal.diagnostics[0].message if refusal.diagnostics else "they cannot be read"
            return replace(Charge.of_new(plan), notes=(Note(f"stored answers were not looked at: {why}", Rank.SOURCE),))

    def price(self, plan: Plan) -> PrivacyLoss:
        """The `charge` of a run, the largest over all units. Raises CannotOpen."""
        return self.charge(plan).loss

    def warnings(self, plan: Plan, *, fresh: bool = False) -> tuple[Diagnostic, ...]:
        """What speaks against a run (DP5xx), if it would spend something now. Raises CannotOpen.

        Nothing if the account could never pay: repairs that it cannot pay either are no help.
        """
        if not plan.warnings:
            return ()
        charge = self.charge(plan, fresh=fresh)
        own = self.policy.caps_for(None if self.analyst == SHARED_ACCOUNT else self.analyst).analyst
        payable = all(loss.within(own[unit]) for unit, loss in charge.by_unit.items() if unit in own)
        return plan.warnings if payable and charge.loss != NO_LOSS else ()

    # --- budget ----------------------------------------------------------------------------------------------------

    @property
    def has_ledger(self) -> bool:
        """Whether there is a ledger, or should be one; looking makes none. Raises CannotOpen."""
        return self.service.has_ledger

    @property
    def ledger_place(self) -> AnyPlace | None:
        """Where the ledger and its head are, unless the caller gave a ledger of his own. None: in memory."""
        return self.service.ledger_place

    @property
    def ledger(self) -> Ledger:
        """The service's ledger, opened, and made if it is not there. Raises CannotOpen."""
        return self.service.ledger

    @property
    def budget(self) -> Budgets:
        """Privacy unit → spent and remaining, for this analyst and in total. Raises CannotOpen."""
        return budgets_of(self.policy, self.ledger, self.analyst)

    def _account(
        self,
        charging: Callable[[str], object] | None = None,
        leaving: Callable[[], object] | None = None,
        drawing: Callable[[], object] | None = None,
    ) -> Callable[[], AnalystAccount]:
        return cache(lambda: self.service.account(self.analyst, charging, self.ceilings, leaving, self.named, drawing))

    def require_open(self) -> None:
        """Raises Rejected DP903 once the service is closed."""
        self.service.require_open()
