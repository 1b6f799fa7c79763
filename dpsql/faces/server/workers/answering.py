"""What a worker does with a statement: plan it, charge it, run it; or only say what that would do.

All accounts share one service. What a statement is asked with comes with it, and is set on no session.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from dpsql.answers.results.answer import Release
from dpsql.answers.results.interval_columns import places_of_ends, rows_with_ends, with_ends
from dpsql.answers.results.summary_rows import DROPPED, MADE, made
from dpsql.core.ir.types import BOOLEAN, DOUBLE, VARCHAR
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, largest, remaining
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import EngineError, Error, reject
from dpsql.diagnostics.note import NOTHING_RAN, Note, Rank, Topic
from dpsql.faces.server.account_relations import RELATIONS, named_in, whole, with_rows
from dpsql.faces.server.asked import DIALECT, asked
from dpsql.faces.server.statements import Answer, Value
from dpsql.faces.server.workers.batch_runs import batch_reply
from dpsql.faces.server.workers.ceilings import AccountSpending, ceilings_now, require_asked
from dpsql.faces.server.workers.counter_runs import RunSteps, counter_reply
from dpsql.faces.server.workers.cut import TOO_MUCH, Cut
from dpsql.faces.server.workers.kept_answers import KeptAnswers
from dpsql.faces.server.workers.notices import cost_told, price_told, sendable, summary_cost_told, told, too_many_rows
from dpsql.faces.server.workers.own_account import rows_of, standing
from dpsql.faces.server.workers.worker_messages import Ask, Reply
from dpsql.frontend.text.counter_statements import CounterStatement, CreateCounter, counter_statement, relations_named
from dpsql.frontend.text.period_statements import ClosePeriods, PeriodStatement, ReopenPeriods, period_statement
from dpsql.frontend.text.summary_statements import CREATE, DROP, DropSummary, SummaryStatement, summary_statement
from dpsql.planner.costs.answer_size import known_size
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.explain.stable_json import dumps
from dpsql.planner.plan import Plan
from dpsql.service.counters import counter
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.service import Service
from dpsql.service.session import Session


class WorkerAnswering:
    """Answers statements, one after the other; but runs, which may be asked at one time, are charged before any of them
    draws, and draw one after the other.

    rows: the most rows of an answer. leaving: told the name of a run when it has done all that reads private rows; when
    it returns, others may see what came of that. charging: told the name of a run and the ledger's entry that it is
    about to make. drawing: told the name of a run that is charged; when it returns, it draws, for so
    many seconds, 0 for no limit. spending: what was read of the ledger.
    """

    def __init__(
        self,
        service: Service,
        rows: int,
        leaving: Callable[[str], object],
        charging: Callable[[str, str], object],
        drawing: Callable[[str], float] | None = None,
        spending: AccountSpending | None = None,
    ) -> None:
        self._service, self._rows, self._leaving, self._charging = service, rows, leaving, charging
        self._drawing = drawing
        self._kept, self._spending = KeptAnswers(), spending or AccountSpending(service)
        self._names: dict[str, frozenset[str]] = {}
        """Run that is not over → what it holds."""
        self._naming = threading.Lock()
        self._draws = False
        """Whether one of the runs that are not over has drawn."""

    def answer(self, ask: Ask) -> Reply:
        """What came of a statement. Never raises: what is not expected becomes one constant refusal."""
        cut = Cut(self._service, 0 if ask.computing or ask.wish == "run" else ask.within)
        try:
            with cut:
                return self._answer(ask)
        except _Later:
            return Reply(ask.id, instead="later")
        except Error as error:
            if cut.is_over and any(d.code == "DP901" for d in error.diagnostics):
                return Reply(ask.id, instead="computes")
            return Reply(ask.id, refused=error.diagnostics)
        except Exception:  # its text could hold anything, and is shown nowhere
            return Reply(ask.id, refused=(_INTERNAL,))

    def _answer(self, ask: Ask) -> Reply:
        if ask.wish == "spent":
            return Reply(ask.id, _spent(self._service))
        if ask.wish == "entry":
            return Reply(ask.id, _price_of(self._service, ask.sql))
        if ask.wish == "stopped":
            self._service.stopped(ask.sql)
            return Reply(ask.id, Answer((), ()))
        now = dt.datetime.now(dt.UTC)
        ceilings = ceilings_now(self._spending, ask.account, ask.ceilings, now)
        session = self._service.session(ask.account, None, ceilings)
        if ask.batch:
            return batch_reply(ask, session, self._rows, lambda plan: self._run(ask, session, plan))
        if ask.wish == "given":
            return Reply(ask.id, _given(session, ask.sql))
        if (statement := summary_statement(ask.sql)) is not None:
            return self._summary(ask, session, statement)
        if (own := counter_statement(ask.sql) or period_statement(ask.sql)) is not None:
            return self._counter(ask, session, own)
        if ask.wish == "look" and not ask.settings.intervals and (name := whole(ask.sql)) is not None:
            return self._whole(ask, session, name)
        sql, moved = ask.sql, 0
        values: tuple[Value, ...] | Mapping[str, Value] = ask.values
        if names := named_in(sql):
            sql, values, moved = with_rows(sql, ask.values, rows_of(session, names, self._spending))
        question = WrittenQuery(sql, values, DIALECT, ask.asked)
        try:
            return self._planned(ask, session, question)
        except Error as error:
            error.diagnostics = tuple(_in_text(d, ask.sql, moved) for d in error.diagnostics)
            raise

    def _whole(self, ask: Ask, session: Session, name: str) -> Reply:
        rows = rows_of(session, [name], self._spending)[name]
        if len(rows) > self._rows:
            raise Error([too_many_rows(self._rows, is_paid=False)])
        free = self._service.free if ask.settings.notices else ""
        notices = (Note(free, Rank.DANGER, Topic.PRICE),) if free else ()
        return Reply(ask.id, Answer(tuple(RELATIONS[name].items()), sendable(rows, is_paid=False), notices))

    def _planned(self, ask: Ask, session: Session, question: WrittenQuery) -> Reply:
        match ask.wish:
            case "explain":
                plan = session.previewed(question, asked(ask.settings))
                charge = session.charge_to_show(plan)
                text = dumps(plan, charge) if ask.form == "json" else as_text(plan, False, charge)
                lines = [text] if ask.form == "json" else text.splitlines()
                answer = Answer(
                    (("QUERY PLAN", VARCHAR),), [(line,) for line in lines], plan=plan.hash, command="EXPLAIN"
                )
                return Reply(ask.id, answer, plan=plan.hash)
            case "cost":
                plan = session.previewed(question, asked(ask.settings))
                return Reply(ask.id, cost_told(session, plan), plan=plan.hash)
            case "look":
                plan = session.planned(question, asked(ask.settings))
                held = self._held(ask, session, plan)
                if held is None and not plan.bid.unpriced:
                    self._require_asked(ask, plan.loss)
                if held is None and (size := known_size(plan)) is not None and size > self._rows:
                    raise Error([too_many_rows(self._rows, is_paid=False)])
                return Reply(ask.id, held, plan=plan.hash)
            case "run":
                plan = session.planned(question, asked(ask.settings))
                warnings = session.warnings(plan)
                release, entry = self._run(ask, session, plan)
                answer = self._shown(ask, session, release)
                return Reply(ask.id, replace(answer, entry=entry, warnings=warnings), plan=plan.hash)
            case "spent" | "entry" | "stopped" | "given":
                raise AssertionError(ask.wish)

    def _run(self, ask: Ask, session: Session, plan: Plan) -> tuple[Release, str]:
        """Charge and run; the answer, and the ledger's entry, "" where nothing was charged."""
        entries: list[str] = []

        def run(steps: RunSteps) -> Release:
            def charging(entry: str) -> None:
                if not entries:
                    self._require_asked(ask, plan.loss)
                entries.append(entry)
                steps.charging(entry)

            return session.run(plan, charging=charging, leaving=steps.leaving, drawing=steps.drawing)

        release: Release = self._steps(ask, session.names(plan), run)
        return release, entries[-1] if entries and release.spent != NO_LOSS else ""

    def _steps(self, ask: Ask, names: frozenset[str], run: Callable[[RunSteps], Any]) -> Any:
        """What a run gives that holds these names.

        What is charged when others have drawn would tell when they had: it is not. So is what waits for one of them.
        """
        cut, begun = Cut(self._service), False

        def charging(entry: str) -> None:
            nonlocal begun
            if not begun and self._draws:
                raise _Later
            begun = True
            self._charging(ask.id, entry)

        def drawing() -> None:
            if self._drawing is not None:
                cut.seconds = self._drawing(ask.id)
                self._draws = True
            cut.__enter__()

        def leaving() -> None:
            cut.__exit__()
            self._leaving(ask.id)

        with self._naming:
            if any(names & others for others in self._names.values()):
                raise _Later
            self._names[ask.id] = names
        try:
            return run(RunSteps(charging, drawing, leaving))
        finally:
            cut.__exit__()
            with self._naming:
                del self._names[ask.id]
                self._draws = self._draws and bool(self._names)

    def _require_asked(self, ask: Ask, loss: PrivacyLoss) -> None:
        """Raises Rejected DP413. The parts of a summary are no statements of their own."""
        ceilings = replace(ask.ceilings, least_epsilon=None) if summary_statement(ask.sql) else ask.ceilings
        require_asked(self._spending, ask.account, ceilings, loss, dt.datetime.now(dt.UTC))

    def _counter(self, ask: Ask, session: Session, statement: CounterStatement | PeriodStatement) -> Reply:
        if self._service.free and isinstance(statement, ClosePeriods | ReopenPeriods):
            raise reject(
                "DP903", "nobody closes periods of made-up rows: as many are closed as there are rows of",
                help=["connect to the database of the true rows"], notes=[NOTHING_RAN],
            )  # fmt: skip
        if ask.wish == "look" and ask.form == "0" and isinstance(statement, CreateCounter):
            own = counter.CounterQuery(session, statement, ask.sql)
            self._require_asked(ask, own.cost(ask.settings.epsilon, rho=ask.settings.rho))
        return counter_reply(ask, session, statement, lambda names, run: self._steps(ask, names, run))

    def _summary(self, ask: Ask, session: Session, statement: SummaryStatement) -> Reply:
        """Drop one; explain one; or make one: each part is a run of its own, which leaves at its own moment.

        Of an Ask, `form` is the number of the part. Looked at, one that is held gives an answer without rows, and one
        that is to be paid for gives none; where there is none with this number, all of them get their name.
        """
        if isinstance(statement, DropSummary):
            session.drop_summary(statement.name)
            return Reply(ask.id, Answer(DROPPED, [(statement.name,)], command=DROP))
        summary, given = session.summary_of(ask.sql), ask.settings
        epsilon, rho = (None, None) if statement.amounts else (given.epsilon, given.rho)
        if ask.wish == "cost":
            return Reply(ask.id, summary_cost_told(session, summary.begun(epsilon, rho)))
        if ask.wish == "explain":
            lines = [(line,) for line in summary.explain(epsilon, rho=rho).splitlines()]
            return Reply(ask.id, Answer((("QUERY PLAN", VARCHAR),), lines, command="EXPLAIN"))
        place = int(ask.form)
        making = summary.begun(epsilon, rho, place if ask.wish == "run" else None)
        if ask.wish == "look":
            if place == 0:
                making.require_room()  # what is refused in the end, is at first
            if place >= len(making.plans):
                rows = made(statement.name, making.defined())
                return Reply(ask.id, Answer(MADE, rows, making.notes, command=CREATE))
            free = session.charge(list(making.plans.values())[place]).loss == NO_LOSS
            return Reply(ask.id, Answer(MADE, ()) if free else None)
        (plan,) = making.plans.values()
        release, entry = self._run(ask, session, plan)
        notices = (price_told(session, release.spent),) if ask.settings.notices else ()
        found = Answer(MADE, (), notices, (), str(release.spent), plan.hash, entry, CREATE, charged=release.spent)
        return Reply(ask.id, found)

    def _held(self, ask: Ask, session: Session, plan: Plan) -> Answer | None:
        """The answer to a plan that nothing is charged for; None if there is something to pay."""
        found = session.looked_up(plan)
        if found is None:
            return None
        kept = self._kept.get(ask.account, found, ask.settings)
        if kept is not None:
            return kept
        try:
            with Cut(self._service, ask.within if ask.computing else 0):
                answer = self._shown(ask, session, session.given(found))
        except EngineError:
            if not ask.computing:
                raise
            raise Error([TOO_MUCH]) from None
        self._kept.keep(ask.account, found, ask.settings, answer)
        return answer

    def _shown(self, ask: Ask, session: Session, release: Release) -> Answer:
        if len(release) > self._rows:
            raise Error([too_many_rows(self._rows, is_paid=release.spent != NO_LOSS)])
        ends = ask.settings.intervals
        columns = with_ends(release.plan) if ends else tuple(zip(release.columns, release.types, strict=True))
        rows: Any = rows_with_ends(release, LEVEL) if ends else release.rows
        return Answer(
            columns,
            sendable(rows, release.spent != NO_LOSS),
            told(session, release) if ask.settings.notices else (),
            spent=str(release.spent) if release.spent != NO_LOSS else "",
            plan=release.plan.hash,
            ends=places_of_ends(release.plan) if ends else (),
            charged=release.spent,
            left=session.budget.remaining if release.spent != NO_LOSS else None,
        )


class _Later(Exception):
    """A run would wait for one of its own worker, which leaves first."""


class AtOnce(WorkerAnswering):
    """Answers of made-up rows, over which no clock need be kept: whoever looks is given what a run would give, and no
    run waits until it may leave."""

    def __init__(
        self,
        service: Service,
        rows: int,
        leaving: Callable[[str], object],
        charging: Callable[[str, str], object],
        drawing: Callable[[str], float] | None = None,
        spending: AccountSpending | None = None,
    ) -> None:
        super().__init__(service, rows, lambda id: None, charging)

    def answer(self, ask: Ask) -> Reply:
        """See Answering."""
        reply = super().answer(ask)
        is_unanswered = ask.wish == "look" and reply.answer is None and not reply.refused
        return super().answer(replace(ask, wish="run")) if is_unanswered else reply


def _spent(service: Service) -> Answer:
    """What every account has spent of each unit, may spend, and has left; no account: all together.

    Of made-up rows, for which nobody is charged, it is nothing.
    """
    parts = ("epsilon", "delta", "rho")
    rows = [
        (what, unit, account, *(float(getattr(loss, part)) for part in parts))
        for unit, account, spent, cap in standing(service.policy, service.ledger)
        if not service.free
        for what, loss in (("spent", spent), ("budget", cap), ("left", None if cap is None else remaining(cap, spent)))
        if loss is not None
    ]
    return Answer(
        (*((name, VARCHAR) for name in ("what", "unit", "account")), *((part, DOUBLE) for part in parts)), rows
    )


def _given(session: Session, sql: str) -> Answer:
    """Columns of the counters that a text reads, in order. Raises Rejected DP903: the account has not got one."""
    rows = [
        (given.name, given.of_days is not None, name, type_.name)
        for given in session.given_relations(relations_named(sql))
        for name, type_ in given.columns
    ]
    return Answer((("name", VARCHAR), ("of_days", BOOLEAN), ("column", VARCHAR), ("type", VARCHAR)), rows)


def _price_of(service: Service, id: str) -> Answer:
    """What an entry of the ledger charged its account, and whether its run failed; no row if there is none."""
    service.count_crashes()
    entries = [r.entry for r in service.ledger.find([id])]
    has_failed = any(failure.entry == id for failure in service.ledger.failures())
    rows = [(str(largest(entry.in_account(unit) for unit in entry.units)), has_failed) for entry in entries]
    return Answer((("price", VARCHAR), ("failed", BOOLEAN)), rows)


def _in_text(found: Diagnostic, sql: str, moved: int) -> Diagnostic:
    """A finding about a text that relations were put into, shown in the text as it was written."""
    if not moved or found.span is None or found.source is None:
        return found
    return found.within(replace(found.source, text=sql), -moved)


_INTERNAL: Final = Diagnostic(
    "DP904",
    "dpsql itself failed; what was charged stays charged",
    help=("tell the custodian which statement it was",),
)
