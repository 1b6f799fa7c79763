"""Answers statements of those who are logged in: what texts alone decide is decided here, the rest by workers.

*Claim.* A text that is refused reaches no worker, and no data. Whose account is charged, and what he may spend, is what
the login says. *Why.* Every text is planned here first, from the policy and the names and types of its data; what is
handed on carries the account and the ceilings of the login, and nothing of the statement can name another. *When it
would be false.* If a setting of a statement were read as an account; if a role were left out where a relation tells of
others (`account_relations.py`). *Tested by* tests/faces/server/test_gateway.py.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final, TypeVar

from dpsql.answers.results import counter_rows
from dpsql.answers.results.interval_columns import with_ends
from dpsql.answers.results.summary_rows import DROPPED, MADE
from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.types import VARCHAR, Kind, SqlType, parse_type, value_range
from dpsql.core.policy.catalogue import Catalogue
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import CannotOpen, Error, Rejected
from dpsql.diagnostics.note import NOTHING_RAN, Note
from dpsql.faces.server.account_relations import RELATIONS, named_in, require_own, with_no_rows
from dpsql.faces.server.asked import DIALECT, asked, with_defaults
from dpsql.faces.server.metrics import Spent
from dpsql.faces.server.pace import Clock, LoopClock, Pace
from dpsql.faces.server.packed_rows import PackedRows, Pieces
from dpsql.faces.server.previews import why_empty
from dpsql.faces.server.size_limits import no_room, stopped
from dpsql.faces.server.speech import EXPLAINED, OwnStatement, Spoken, spoken
from dpsql.faces.server.statements import (
    Answer,
    Ceilings,
    ChargedRun,
    DescribedStatement,
    Login,
    Refused,
    StatementSettings,
    Value,
)
from dpsql.faces.server.turns import Seats
from dpsql.faces.server.workers.worker_link import Starting
from dpsql.faces.server.workers.worker_messages import Ask, Reply
from dpsql.faces.server.workers.worker_pool import SLICE, Pool
from dpsql.frontend.bind.expressions.clock import may_ask, moment
from dpsql.frontend.bind.parameters import GivenRelation
from dpsql.frontend.catalogue.answer_names import shown_names
from dpsql.frontend.parse import MAX_LENGTH, require_length
from dpsql.frontend.text.counter_statements import (
    CreateCounter,
    DropCounter,
    ReceiveCounter,
    TickCounter,
    relations_named,
)
from dpsql.frontend.text.period_statements import ClosePeriods, ReopenPeriods
from dpsql.frontend.text.summary_statements import CreateSummary, DropSummary
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings as Planned
from dpsql.planner.summaries.design import require_static
from dpsql.policy.resolve.from_catalogue import complete
from dpsql.service.checks.check import check_batch, static_plan
from dpsql.service.counters.closing import growing_table
from dpsql.service.counters.countable import require_countable
from dpsql.service.planning.statement_signature import Signature, signature
from dpsql.service.privacy_settings import settled

T = TypeVar("T")
Columns = tuple[tuple[str, SqlType], ...]

_PRIVATE_ROWS: Final = frozenset({"DP110", "DP112"})
"""Refusals of queries that would show rows as they are."""
_THREADS: Final = 3
_MOST_KEPT: Final = 1_000
_SHOWN: Final = re.compile(r"\s*SHOW\s[\s\w.;]{1,100}$", re.IGNORECASE)
"""What is planned in no time."""
_SHORT: Final = 2_000
"""Characters of a statement, or of one of its values, that is told apart without a thread."""
Given = tuple[GivenRelation, ...]
"""Counters that a text reads, without rows: their columns, as a worker told them."""
_Passing = tuple[bytes, Columns, StatementSettings, str, str, Given]


@dataclass(frozen=True, slots=True)
class _Text:
    """A statement's query with its public relations in it. moved: by how many characters its places are further on.
    given: the counters that it reads."""

    spoken: Spoken
    sql: str
    values: tuple[Value, ...] | Mapping[str, Value]
    moved: int = 0
    given: Given = ()


class Gateway:
    """Implements `Answering`. policy: completed with the data's types."""

    def __init__(self, policy: Policy, pool: Pool, catalogue: Catalogue | None = None) -> None:
        """catalogue: names and types of the data, as the first worker told them."""
        self.policy, self.pool, self.catalogue = policy, pool, catalogue or Catalogue(())
        self._planning = ThreadPoolExecutor(_THREADS, thread_name_prefix="plan")
        self._seats = Seats(_THREADS - 1, pool.queue)
        """For planning, but for what every client asks, which has a thread of its own."""
        self._own_seat = Seats(1, pool.queue)
        self._planned: dict[tuple[bytes, StatementSettings, Given], Columns] = {}
        """Statements that are not refused, by a hash of text and values → their columns, which depend on these and the
        settings alone."""
        self._described_before: dict[tuple[bytes, StatementSettings, str, Given], DescribedStatement] = {}
        """Texts that are not refused, by a hash → what is said of them, which depends on these, the policy, settings,
        the kind of login and the counters that they read alone."""
        self._long: set[bytes] = set()
        """Texts that took long to plan, by a hash: they are looked at where what computes is."""
        self._passed: set[_Passing | None] = set()
        """Statements that went on to the workers: what that depended on."""
        self._looking: set[asyncio.Task[ChargedRun]] = set()
        """Who looks what runs that were refused have charged."""
        self._asked: dict[str, bool] = {}
        """Name of a statement that is on its way → whether it was stopped."""

    @classmethod
    async def open(
        cls, policy: Policy, start: Starting, clock: Clock | None = None, *, made_up: bool = False
    ) -> Gateway:
        """Start the workers. Raises CannotOpen: policy, data or ledger; DP407 for a ledger that forgets.

        made_up: whether the rows are; one worker then answers at once, and there is no ledger.
        """
        if policy.ledger_path is None and policy.ledger_url is None and not made_up:
            raise CannotOpen([_FORGETFUL])
        serving = policy.serving
        size = 0 if made_up else serving.workers
        pool = Pool(start, size, serving.queue, Pace.of(serving.answers_at), clock or LoopClock())
        ready = await pool.open()
        try:
            if policy.hash != ready.policy:
                raise CannotOpen([_ANOTHER_POLICY])
            completed = replace(complete(policy, ready.catalogue), name=policy.name)
        except CannotOpen:
            await pool.drain()
            raise
        return cls(completed, pool, ready.catalogue)

    def begin_nothing(self) -> None:
        """From now on nothing is charged that does not run yet: what waits for a worker is refused, and what comes."""
        self.pool.begin_nothing()

    async def close(self) -> None:
        """Let running statements end, and the workers with them."""
        await self.pool.finish()
        if self._looking:
            await asyncio.wait(set(self._looking))
        await self.pool.drain()
        self._planning.shutdown()

    # --- Answering -------------------------------------------------------------------------------------------------

    async def describe(self, login: Login, sql: str, settings: StatementSettings) -> DescribedStatement:
        """See Answering."""
        given = await self._given_to(login, sql)
        key = (_digest(sql), settings, login.kind, given)
        kept = self._described_before.get(key)
        if kept is not None:
            return replace(kept, sql=sql)
        found = await self._in_thread(login, sql, lambda: self._described(login, sql, settings, given))
        if len(self._described_before) >= _MOST_KEPT:
            self._described_before.clear()
        self._described_before[key] = replace(found, sql="")
        return found

    async def run(
        self,
        login: Login,
        described: DescribedStatement,
        values: tuple[Value, ...],
        settings: StatementSettings,
        run_id: str,
    ) -> Answer:
        """See Answering."""
        if Pieces.crowded_for(login.account):
            raise no_room()
        self._asked[run_id] = False
        try:
            return await self._answered(login, described, values, settings, run_id)
        finally:
            del self._asked[run_id]

    async def _answered(
        self,
        login: Login,
        described: DescribedStatement,
        values: tuple[Value, ...],
        settings: StatementSettings,
        run_id: str,
    ) -> Answer:
        now, said = moment(), spoken(described.sql)
        if said.own is not None:
            _require_may(login, said.own, described.sql)
            if said.form is None:
                return await self._by_parts(login, described, settings, run_id, now)
        elif (preview := await self._preview(login, described, values, settings, now)) is not None:
            return preview
        ask = Ask(
            run_id,
            "look" if said.form is None else "cost" if said.form == "cost" else "explain",
            login.account,
            said.sql,
            values,
            with_defaults(settings, login),
            login.ceilings,
            now,
            said.form or "text",
            said.batch,
            0.0 if said.command == "SHOW" else SLICE,
            bool(self._long) and _digest(described.sql) in self._long,
        )
        reply = await self.pool.look(ask)
        if self._asked[run_id]:  # while it was looked at: nothing is charged for it any more
            raise stopped()
        if reply.answer is None and not reply.refused:
            return await self._paid(replace(ask, wish="run"), described)
        return _with_room(ask.account, _given(reply, described))

    async def _preview(
        self,
        login: Login,
        described: DescribedStatement,
        values: tuple[Value, ...],
        settings: StatementSettings,
        now: dt.datetime,
    ) -> Answer | None:
        """The answer to a preview; None for what goes on to the workers. Raises Refused."""
        sql = described.sql
        given = await self._given_to(login, sql)
        passing = _passing(login, described, values, settings, given)
        if passing in self._passed:
            return None
        preview = await self._in_thread(
            login, sql, lambda: self._checked(login, described, values, settings, now, given)
        )
        if preview is None and passing is not None and not may_ask(described.sql):
            if len(self._passed) >= _MOST_KEPT:
                self._passed.clear()
            self._passed.add(passing)
        return preview

    async def _paid(self, ask: Ask, described: DescribedStatement) -> Answer:
        """What came of a run. Raises Refused, with what it charged all the same."""
        entry: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        try:
            return _with_room(ask.account, _given(await self.pool.run(ask, entry), described))
        except Refused as refused:
            refused.charge = self._look_for(self._charged(entry))
            raise

    def _look_for(self, charged: Coroutine[None, None, ChargedRun]) -> asyncio.Task[ChargedRun]:
        looking = asyncio.create_task(charged)
        self._looking.add(looking)
        looking.add_done_callback(self._looking.discard)
        return looking

    async def _charged(self, entry: asyncio.Future[str]) -> ChargedRun:
        """What a run was charged, in words, and its entry, as the ledger has it: a worker may have died before that."""
        id = await entry
        if not id:
            return ChargedRun()
        try:
            told = await self.pool.look(
                Ask("custodian", "entry", "", id, (), StatementSettings(), Ceilings(), moment())
            )
        except Refused:
            return ChargedRun("unknown", id)
        if told.answer is None:
            return ChargedRun("unknown", id)
        return (
            ChargedRun(str(told.answer.rows[0][0]), id, bool(told.answer.rows[0][1]))
            if told.answer.rows
            else ChargedRun()
        )

    async def _by_parts(
        self, login: Login, described: DescribedStatement, settings: StatementSettings, run_id: str, now: dt.datetime
    ) -> Answer:
        """What is said of a summary, a counter or periods, part by part: each that reads private rows is a run of its
        own. One that gives rows is the last."""
        wanted = with_defaults(settings, login)
        ask = Ask(run_id, "look", login.account, described.sql, (), wanted, login.ceilings, now)
        notices, paid, charged = tuple[Note, ...](), list[ChargedRun](), NO_LOSS
        answer = Answer((), ())
        try:
            for place in count():
                part = replace(ask, form=str(place))
                reply = await self.pool.look(part)
                if self._asked[run_id]:
                    raise stopped()
                if reply.refused or (reply.answer is not None and reply.answer.rows):
                    break
                if reply.answer is None:
                    answer = await self._paid(replace(part, wish="run"), described)
                    notices = answer.notices or notices
                    paid.append(ChargedRun(answer.spent, answer.entry))
                    charged += answer.charged
                    if answer.rows:
                        break
            answer = answer if reply.answer is None and not reply.refused else _given(reply, described)
        except Refused as refused:
            if paid:
                refused.charge = self._look_for(_summed(paid, refused.charge))
            raise
        spent, entry, _ = _joined(paid)
        if answer.columns == counter_rows.DONE:
            price = "" if charged == NO_LOSS else str(charged)
            answer = replace(answer, rows=[(row[0], price, *row[2:]) for row in answer.rows])
        told = tuple(dict.fromkeys((*notices, *answer.notices)))
        return replace(answer, notices=told, spent=spent, entry=entry, charged=charged)

    async def stop(self, run_id: str) -> None:
        """See Answering."""
        if run_id in self._asked:
            self._asked[run_id] = True
        await self.pool.stop(run_id)

    async def spent(self) -> Sequence[Spent] | None:
        """What every account has spent, for the custodian; None if no worker answers, or none could run anything."""
        ask = Ask("custodian", "spent", "", "", (), StatementSettings(), Ceilings(), moment())
        try:
            told = await self.pool.look(ask)
        except Refused:
            return None
        if told.answer is None or not self.pool.can_run:
            return None
        rows: Any = told.answer.rows
        name = self.policy.name
        return [Spent(unit, who or "", e, d, r, name, what) for what, unit, who, e, d, r in rows]

    async def _given_to(self, login: Login, sql: str) -> Given:
        """The counters that a text reads, as a worker knows them. Raises Refused: the account has not got one."""
        names = [n for n in relations_named(sql) if n not in RELATIONS] if "dpsql" in sql.lower() else []
        if not names or len(sql) > MAX_LENGTH:
            return ()
        ask = Ask("counters", "given", login.account, sql, (), StatementSettings(), login.ceilings, moment())
        told = await self.pool.look(ask)
        if told.refused:
            raise Refused(told.refused)
        assert told.answer is not None
        found: dict[tuple[str, bool], list[tuple[str, SqlType]]] = {}
        rows: Any = told.answer.rows
        for name, of_days, column, type_ in rows:
            found.setdefault((name, of_days), []).append((column, parse_type(type_) or VARCHAR))
        return tuple(
            GivenRelation(name, tuple(columns), "", of_days=_no_row if of_days else None)
            for (name, of_days), columns in found.items()
        )

    # --- what texts decide -----------------------------------------------------------------------------------------

    async def _in_thread(self, login: Login, sql: str, decide: Callable[[], T]) -> T:
        """What is decided of a text, in a thread, when it is the account's turn. Raises Refused."""
        seats = self._own_seat if _SHOWN.match(sql) else self._seats

        def timed() -> T:
            began = time.thread_time()
            try:
                return decide()
            finally:
                if time.thread_time() - began > SLICE:
                    self._keep_long(sql)

        async with seats.taken(login.account):
            try:
                return await asyncio.get_running_loop().run_in_executor(self._planning, timed)
            except Error as error:
                raise Refused(error.diagnostics) from None

    def _keep_long(self, sql: str) -> None:
        if len(self._long) >= _MOST_KEPT:
            self._long.clear()
        self._long.add(_digest(sql))

    def _described(self, login: Login, sql: str, settings: StatementSettings, given: Given = ()) -> DescribedStatement:
        require_length(Source(sql))
        if (said := spoken(sql)).own is not None:
            _require_may(login, said.own, sql)
            made = self._own(said.own, sql)
            return DescribedStatement(sql, made if said.form is None else EXPLAINED[said.form], (), said.command)
        text = self._text(login, sql, (), given)
        if text.spoken.batch:
            form = text.spoken.form
            return DescribedStatement(sql, () if form is None else EXPLAINED[form], command=text.spoken.command)
        found = self._signature(text, sql)
        if text.spoken.form is not None:
            return DescribedStatement(sql, EXPLAINED[text.spoken.form], found.parameters, "EXPLAIN")
        columns: Columns = tuple((c.name, c.type) for c in found.columns)
        if not found.parameters or settings.intervals:
            samples = self._text(login, sql, found.samples, given).values if found.parameters else text.values
            try:
                columns = self._columns(text, samples, sql, settings, None)
            except Rejected as refusal:
                if not _is_previewed(login, refusal):
                    raise
        names = shown_names(text.sql, DIALECT, [name for name, _ in columns])
        return DescribedStatement(sql, columns, found.parameters, text.spoken.command, names)

    def _own(self, statement: OwnStatement, sql: str) -> Columns:
        """What a statement about a summary, a counter or periods gives. Raises Rejected."""
        match statement:
            case CreateSummary() | DropSummary():
                require_static(statement, self.policy, sql)
                return MADE if isinstance(statement, CreateSummary) else DROPPED
            case ClosePeriods() | ReopenPeriods():
                growing_table(self.policy, statement.table)
                return counter_rows.CLOSED
            case CreateCounter():
                require_countable(statement, self.policy, sql)
        return counter_rows.DONE

    def _checked(
        self,
        login: Login,
        described: DescribedStatement,
        values: tuple[Value, ...],
        settings: StatementSettings,
        now: dt.datetime,
        given: Given,
    ) -> Answer | None:
        """None for what workers may answer; the answer to a preview. Raises Rejected."""
        text = self._text(login, described.sql, values, given)
        if text.spoken.batch:
            wanted = replace(settled(asked(settings), Planned()), dialect=DIALECT, asked=now)
            check_batch(text.sql, self.policy, wanted, skip_refused=text.spoken.batch == "skip")
            return None
        try:
            columns = self._columns(text, text.values, described.sql, settings, now)
        except Rejected as refusal:
            if text.spoken.form is not None or not _is_previewed(login, refusal):
                raise
            warnings = tuple(replace(d, severity="warning") for d in refusal.diagnostics)
            return Answer(described.columns, why_empty(text.sql, described.columns), warnings=warnings)
        if text.spoken.form is None:
            _require_fitting(columns, described)
        return None

    def _columns(
        self,
        text: _Text,
        values: tuple[Value, ...] | Mapping[str, Value],
        sql: str,
        settings: StatementSettings,
        now: dt.datetime | None,
    ) -> Columns:
        key = (_digest(f"{len(text.sql)} {text.sql} {values!r}"), settings, text.given)
        known = self._planned.get(key)
        if known is not None:  # a statement is described before it is run, and tools ask the same again
            return known
        wanted = replace(settled(asked(settings), Planned()), dialect=DIALECT, asked=now, relations=text.given)
        plan: Plan = self._moved(
            text, sql, lambda: static_plan(Source(text.sql), self.policy, values, dialect=DIALECT, settings=wanted)
        )
        found = with_ends(plan) if settings.intervals else tuple((c.name, c.type) for c in plan.columns)
        if not may_ask(text.sql):
            if len(self._planned) >= _MOST_KEPT:
                self._planned.clear()
            self._planned[key] = found
        return found

    @staticmethod
    def _text(login: Login, sql: str, values: tuple[Value, ...], given: Given = ()) -> _Text:
        """What a statement asks, with what the login may read of the server's own relations. Raises Rejected."""
        said = spoken(sql)
        names = () if said.batch else named_in(said.sql)
        if not names:
            return _Text(said, said.sql, values, given=given)
        require_own(names, login.role)
        return _Text(said, *with_no_rows(said.sql, values, names), given)

    def _signature(self, text: _Text, sql: str) -> Signature:
        return self._moved(
            text, sql, lambda: signature(Source(text.sql), self.policy, dialect=DIALECT, relations=text.given)
        )

    @staticmethod
    def _moved(text: _Text, sql: str, make: Callable[[], T]) -> T:
        """What `make` makes; its refusals shown in the statement as it was written."""
        try:
            return make()
        except Error as error:
            error.diagnostics = tuple(
                d if d.source is None or d.span is None else d.within(Source(sql), -text.moved)
                for d in error.diagnostics
            )
            raise


async def spent_in_all(gateways: Sequence[Gateway]) -> Sequence[Spent] | None:
    """What every account of every database has spent; None if one of them cannot be asked, or could run nothing."""
    found = await asyncio.gather(*(gateway.spent() for gateway in gateways))
    whole = [own for own in found if own is not None]
    return [spent for own in whole for spent in own] if len(whole) == len(found) else None


def _no_row(first: dt.date, last: dt.date) -> list[tuple[LiteralValue, ...]]:
    """Of a window whose ± is not known here."""
    return []


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _passing(
    login: Login, described: DescribedStatement, values: tuple[Value, ...], settings: StatementSettings, given: Given
) -> _Passing | None:
    """What decides whether a statement with its values goes on to the workers; None where that takes long to say."""
    if len(described.sql) > _SHORT or len(values) > 100 or not all(map(_is_short, values)):
        return None
    asked = _digest(f"{len(described.sql)} {described.sql} {values!r}")
    return asked, described.columns, settings, login.role, login.kind, given


def _is_short(value: Value) -> bool:
    return len(value) <= _SHORT if isinstance(value, str | bytes) else not isinstance(value, list)


def _require_may(login: Login, statement: OwnStatement, sql: str) -> None:
    """Raises Refused 25006: the login has no right to this."""
    match statement:
        case CreateSummary() | DropSummary():
            right, what = "summaries", "make or drop summaries"
        case ClosePeriods() | ReopenPeriods():
            right, what = "periods", "close or reopen periods"
        case ReceiveCounter():
            return
        case CreateCounter() | DropCounter() | TickCounter():
            right, what = "counters", "make, tick or drop counters"
    if right not in login.may:
        help = f"custodian: give it the right, in the file of users:  may: [{right}]"
        found = Diagnostic(
            "DP903", f"this login may not {what}", source=Source(sql), help=(help,), notes=(NOTHING_RAN,)
        )
        raise Refused([found], "25006")


def _is_previewed(login: Login, refusal: Rejected) -> bool:
    """Whether a tool that asks for private rows is given their columns, and no rows."""
    return login.kind == "bi" and all(d.code in _PRIVATE_ROWS for d in refusal.diagnostics)


def _require_fitting(columns: Columns, described: DescribedStatement) -> None:
    """Raises Refused where an answer would have other columns than its reader was told."""
    pairs = zip(columns, described.columns, strict=False)
    if len(columns) != len(described.columns) or not all(_fits(now, told) for (_, now), (_, told) in pairs):
        told, now = (", ".join(f"{n} {t}" for n, t in c) for c in (described.columns, columns))
        raise Refused(
            [
                Diagnostic(
                    "DP013", f"with these values the columns are {now}, and {told} was described",
                    help=("give the parameter a type:  CAST($1 AS …)",),
                    notes=(NOTHING_RAN,),
                )
            ],
            "0A000",
        )  # fmt: skip


def _fits(now: SqlType, told: SqlType) -> bool:
    """Whether a value of one type can be sent as the other, as it is."""
    if now.kind is Kind.INTEGER and told.kind is Kind.INTEGER:
        return value_range(now).within(value_range(told))  # type: ignore[union-attr,arg-type]
    return now == told or (now.kind is Kind.DECIMAL and told.kind is Kind.DECIMAL)


async def _summed(paid: Sequence[ChargedRun], last: Awaitable[ChargedRun] | None) -> ChargedRun:
    """What parts were charged, and the one that was refused."""
    return _joined([*paid, *([] if last is None else [await last])])


def _joined(paid: Sequence[ChargedRun]) -> ChargedRun:
    prices, entries = " + ".join(c.price for c in paid if c.price), ", ".join(c.entry for c in paid if c.entry)
    return ChargedRun(prices, entries, any(c.has_failed for c in paid))


def _given(reply: Reply, described: DescribedStatement) -> Answer:
    if reply.refused:
        raise Refused(reply.refused)
    assert reply.answer is not None
    if reply.answer.more:
        return replace(reply.answer, command=described.command)
    _require_fitting(reply.answer.columns, described)
    return replace(reply.answer, columns=described.columns, command=described.command)


def _with_room(account: str, answer: Answer) -> Answer:
    """The answer, if there is room for it: several that were asked for at one time were all told that there was."""
    if any(isinstance(own.rows, PackedRows) for own in (answer, *answer.more)) and Pieces.crowded_for(account):
        raise no_room(is_paid=bool(answer.spent))
    return answer


_FORGETFUL: Final = Diagnostic(
    "DP407",
    "the policy's ledger is in memory, where each worker would have its own",
    help=("custodian: name a file or a database:  ledger: clinic.ledger.sqlite",),
)
_ANOTHER_POLICY: Final = Diagnostic(
    "DP004", "the workers have another policy than the server", help=("custodian: restart both",)
)
