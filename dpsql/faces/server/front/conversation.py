"""One client, once he has logged in: messages in, answers out, one statement at a time.

The simple protocol and the extended one come together in `_execute`: a statement is understood (`_understood`), gets
values as a portal, and runs. What a portal was described with, it runs with.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from dpsql.core.ir.types import VARCHAR, parse_type
from dpsql.diagnostics.errors import Error
from dpsql.faces.server.front import error_fields as errors
from dpsql.faces.server.front.asking import Asking
from dpsql.faces.server.front.client_link import ClientLink, Gone
from dpsql.faces.server.front.commands import commands as c
from dpsql.faces.server.front.commands.client_tokens import ClientStatement, split_text
from dpsql.faces.server.front.commands.read_command import command, first_word
from dpsql.faces.server.front.commands.setting_comments import Said, said_before, with_said
from dpsql.faces.server.front.copying import copied
from dpsql.faces.server.front.error_fields import ProtocolFault
from dpsql.faces.server.front.kept import MOST_BOUND, KeptStatements
from dpsql.faces.server.front.portals import Columns, Portal, PreparedStatement, from_literal, parameter_types, spread
from dpsql.faces.server.front.sending import Sender
from dpsql.faces.server.front.transactions import IDLE, Transactions
from dpsql.faces.server.front.variables import Variables, written
from dpsql.faces.server.statements import Answer, Refused, Value
from dpsql.faces.server.wire import messages as m
from dpsql.faces.server.wire import replies
from dpsql.faces.server.wire.wire_values import Unreadable, decode, encoder, wire_type

MOST_STATEMENTS: Final = 1_000
"""Statements of one text."""
T = TypeVar("T")
_LONG: Final = 20_000

_log = logging.getLogger("dpsql.server")


@dataclass(frozen=True, slots=True)
class Result:
    """What a command gives that is no query: a tag, and rows if it has columns."""

    tag: str
    columns: Columns | None = None
    rows: Sequence[tuple[Value, ...]] = ()


class Conversation:
    """Speaks with one client until he leaves. ending: told that it shall end as soon as nothing runs."""

    def __init__(self, link: ClientLink, decoder: m.Decoder, asking: Asking, variables: Variables) -> None:
        self.link, self._decoder, self.asking = link, decoder, asking
        self._transactions = Transactions(variables)
        self._out = Sender(link, variables)
        self._kept = KeptStatements()
        self._skipping = False
        self._idle = False
        self.ending = False

    async def talk(self) -> None:
        """Until the client says good-bye. Raises Gone, Malformed."""
        await self._ready()
        while not self.ending:
            self._idle = True
            message = await self._next()
            self._idle = False
            if isinstance(message, m.Terminate):
                return
            await self._take(message)
        self._say_end()

    def end(self) -> None:
        """No further statement is taken; what runs comes to its end."""
        self.ending = True
        if self._idle:
            self._say_end()
            self.link.close()

    def _say_end(self) -> None:
        fault = ProtocolFault("57P01", "terminating connection due to administrator command")
        self._out.error(fault.fields(severity="FATAL"))
        self.link.send(self._out.rest())

    async def stop(self) -> None:
        """Another connection asked that what runs here be stopped."""
        await self.asking.stop()

    async def _ready(self) -> None:
        self._out.send(replies.ready_for_query(self._transactions.state))
        await self._out.flush()

    # --- messages --------------------------------------------------------------------------------------------------

    async def _next(self) -> m.Later:
        while (message := self._decoder.later()) is None:
            self._decoder.feed(await self.link.receive())
        return message

    async def _take(self, message: m.Later) -> None:
        match message:
            case m.SimpleQuery():
                self._skipping = False
                await self._simple(message.sql)
                await self._ready()
            case m.Sync():
                self._skipping = False
                if self._transactions.state == IDLE:
                    self._kept.end_of_transaction()
                await self._ready()
            case m.Flush():
                await self._out.flush()
            case m.CopyIn():
                pass
            case _ if self._skipping:
                pass
            case m.FunctionCall():
                await self._guarded(self._refuse_call, 0)
                await self._ready()
            case _:
                self._skipping = not await self._guarded(lambda: self._extended(message), 0)
                await self._out.flush_some()

    async def _refuse_call(self) -> None:
        raise ProtocolFault("0A000", "functions are not called by their oid", "SELECT …")

    async def _guarded(self, step: Callable[[], Awaitable[None]], offset: int) -> bool:
        """Whether a step went well; if not, the client was told why."""
        try:
            await step()
            return True
        except Gone:
            raise
        except Refused as refused:
            self._out.error(errors.refusal(refused, offset))
        except Error as error:  # of whoever answers in this process
            self._out.error(errors.refusal(Refused(error.diagnostics), offset))
        except ProtocolFault as fault:
            self._out.error(fault.fields(offset))
        except Unreadable as error:
            self._out.error(ProtocolFault(error.sqlstate, str(error)).fields())
        except Exception as error:
            _log.error("unforeseen %s", type(error).__name__)  # and nothing of its text
            self._out.error(errors.failure())
        self._transactions.failed()
        return False

    async def _simple(self, text: str) -> None:
        found: list[ClientStatement] = []

        async def split() -> None:
            found.extend(await split_text(text))
            if len(found) > MOST_STATEMENTS:
                raise ProtocolFault(
                    "54000", f"a text has at most {MOST_STATEMENTS:,} statements", "send fewer at one time"
                )

        if not await self._guarded(split, 0):
            return
        if not found:
            self._out.send(replies.empty_query_response())
        for number, statement in enumerate(found):
            if number:
                await asyncio.sleep(0)  # others have their turn
            if self.ending:
                return
            if not await self._guarded(lambda s=statement: self._run_simple(s), statement.start):  # type: ignore[misc]
                return

    async def _run_simple(self, statement: ClientStatement) -> None:
        prepared = await self._understood(statement.text, statement.start, several=True)
        if prepared.types and prepared.query is not None:
            raise ProtocolFault("42P02", "there is no parameter $1", "PREPARE q AS …;  EXECUTE q(…)")
        portal = Portal(prepared, (), (), prepared.asked, prepared.described)
        await self._execute(portal, 0, describe=True)

    async def _extended(self, message: m.Later) -> None:
        match message:
            case m.Parse():
                await self._parse(message)
            case m.Bind():
                await self._bind(message)
            case m.Describe(kind="S"):
                prepared = self._kept.statement(message.name)
                self._out.send(replies.parameter_description([t.oid for t in prepared.types]))
                self._out.columns(self._kept.columns(prepared), ())
            case m.Describe():
                portal = self._kept.portal(message.name)
                self._out.columns(self._kept.columns_of_portal(portal), portal.formats)
            case m.Execute():
                await self._execute(self._kept.portal(message.portal), message.most, describe=False)
            case m.Close():
                self._kept.drop(message.kind, message.name)
                self._out.send(replies.close_complete())
            case _:
                raise ProtocolFault("08P01", "this message is not expected here")

    async def _parse(self, message: m.Parse) -> None:
        found = await split_text(message.sql)
        if len(found) > 1:
            raise ProtocolFault("42601", "cannot insert multiple commands into a prepared statement")
        self._kept.require_new_statement(message.name)
        one = found[0] if found else ClientStatement("", 0)
        self._kept.keep_statement(message.name, await self._understood(one.text, one.start, message.types))
        self._out.send(replies.parse_complete())

    async def _bind(self, message: m.Bind) -> None:
        prepared = self._kept.statement(message.statement)
        self._kept.require_new_portal(message.portal)
        count = len(prepared.types)
        if len(message.values) != count:
            raise ProtocolFault(
                "08P01", f"{len(message.values)} values were bound, and the statement has {count} parameters"
            )
        bound = sum(len(value or b"") for value in message.values)
        if bound > MOST_BOUND:
            raise ProtocolFault(
                "54000", f"the values of a statement have at most {MOST_BOUND:,} bytes", "pass long lists as a table"
            )
        formats = spread(message.formats, count)
        values = await _apart(
            lambda: tuple(map(decode, message.values, prepared.types, formats)), bound + len(message.values)
        )
        portal = await self._bound(prepared, values, message.results)
        portal.bound = bound
        self._kept.keep_portal(message.portal, portal)
        self._out.send(replies.bind_complete())

    async def _bound(self, prepared: PreparedStatement, values: tuple[Value, ...], formats: tuple[int, ...]) -> Portal:
        """A portal of a statement; described anew if the settings are others than when that was prepared."""
        query, described = prepared.query, prepared.described
        now = with_said(self._transactions.now, prepared.said).asked
        if query is not None and described is not None and now != prepared.asked:
            again = await self.asking.describe(query.sql, now)
            if again.columns != described.columns:
                raise ProtocolFault("0A000", "cached plan must not change result type", "prepare the statement again")
            described = again
        columns = self._kept.columns(prepared)
        if len(formats) > 1 and len(formats) != len(columns or ()):
            raise ProtocolFault("08P01", "there is not one format for each column")
        return Portal(prepared, values, formats, now, described)

    # --- statements ------------------------------------------------------------------------------------------------

    async def _understood(
        self, text: str, offset: int, oids: Sequence[int] = (), said: Said = (), *, several: bool = False
    ) -> PreparedStatement:
        """A statement as far as it can be understood without values and data. Raises Refused, Fault.

        said: by comments that were before it. several: it may have several answers.
        """
        try:
            found = await _apart(lambda: command(text), len(text))
        except ProtocolFault as fault:
            self.asking.refused(text, fault.sqlstate, first_word(text))
            raise
        try:
            said = said or said_before(found, text)
            asked = with_said(self._transactions.now, said).asked
        except ProtocolFault as fault:
            self.asking.refused(text, fault.sqlstate)
            raise
        if not (isinstance(found, c.Transaction) and found.do in ("commit", "rollback", "rollback to")):
            self._transactions.require_sound()
        if isinstance(found, c.Write):
            self.asking.refused(text, "25006", found.word)
            raise ProtocolFault(
                "25006", f"cannot execute {found.word} in a read-only transaction", "nothing is written here"
            )
        prepared = PreparedStatement(text, found, offset, asked=asked, said=said)
        query = prepared.query
        described = None
        if query is not None:
            try:
                described = await self.asking.describe(query.sql, asked)
            except Refused as refused:
                raise refused.moved(query.at) from None
        if (
            described is not None
            and described.command == "BATCH"
            and not (several and isinstance(found, c.QueryCommand))
        ):
            raise ProtocolFault(
                "0A000", "a batch has several answers", "send it as it is: no cursor, no PREPARE, no values"
            )
        types = parameter_types(described, oids)
        if isinstance(types, int):
            raise ProtocolFault(
                "42704", f"there is no type with the oid {types} here", "leave the parameter's type out"
            )
        return PreparedStatement(text, found, offset, described, asked, types, said)

    async def _execute(self, portal: Portal, most: int, *, describe: bool) -> None:
        """Run a portal, or go on with it, and send what it gives. describe: send the columns, too."""
        statement = portal.statement
        self._require_sound(statement)
        match statement.command:
            case None:
                self._out.send(replies.empty_query_response())
            case c.QueryCommand():
                if portal.answer is None:
                    portal.answer = await self._ask(portal)
                await self._give(portal, most, describe)
            case c.CopyOut() as how:
                answer = await self._ask(portal)
                for data in copied(how, answer.columns, answer.rows):
                    self._out.send(data)
                    await self._out.flush_some()
                self._out.send(replies.command_complete(f"COPY {len(answer.rows)}"))
            case _:
                if portal.answer is None:
                    if portal.done:
                        raise ProtocolFault("55000", "this statement was executed already", "bind it again")
                    result = await self._command(portal)
                    portal.done = result.tag
                    if result.columns is None:
                        self._out.changes(self._transactions.now)
                        self._out.send(replies.command_complete(result.tag))
                        return
                    portal.answer = Answer(result.columns, result.rows, command=result.tag)
                await self._give(portal, most, describe)

    def _require_sound(self, statement: PreparedStatement) -> None:
        what = statement.command
        if what is not None and not isinstance(what, c.Transaction):
            self._transactions.require_sound()

    async def _ask(self, portal: Portal) -> Answer:
        """The answer to a portal's query; what is told with it is sent."""
        query, described = portal.statement.query, portal.described
        assert query is not None and described is not None
        self._kept.require_room()
        variables = self._transactions.now
        try:
            answer = await self.asking.run(described, portal.values, portal.asked, variables.timeout, self.link)
        except Refused as refused:
            raise refused.moved(query.at) from None
        offset = portal.statement.offset + (query.at or 0)
        self._out.told_with(answer, variables, portal.asked.notices, offset)
        return answer if answer.more else replace(answer, columns=described.shown)

    async def _give(self, portal: Portal, most: int, describe: bool) -> None:
        answer = portal.answer
        assert answer is not None
        if answer.more:
            for each in answer.more:
                await self._give(replace(portal, answer=each), most, describe)
            return
        if describe:
            self._out.columns(answer.columns, portal.formats)
        rows = portal.forward(most or None)
        formats = spread(portal.formats, len(answer.columns))
        encoders = [encoder(type_, format) for (_, type_), format in zip(answer.columns, formats, strict=True)]
        for row in rows:
            self._out.send(replies.data_row([encode(value) for encode, value in zip(encoders, row, strict=True)]))
            await self._out.flush_some()
        if most and len(rows) == most:
            self._out.send(replies.portal_suspended())
        else:
            tag = answer.command
            self._out.send(replies.command_complete(f"SELECT {len(rows)}" if tag == "SELECT" else tag))

    # --- commands --------------------------------------------------------------------------------------------------

    async def _command(self, portal: Portal) -> Result:
        """Do what is no query. Raises Fault, Refused."""
        transactions = self._transactions
        match portal.statement.command:
            case c.Transaction() as what:
                tag, warning, over = transactions.do(what)
                if over:
                    self._kept.end_of_transaction()
                self._out.warn(warning, transactions.now)
                return Result(tag)
            case c.Set() as what:
                try:
                    warning = transactions.set(what)
                except ProtocolFault as fault:
                    self.asking.refused(written(what), fault.sqlstate)
                    raise
                self._out.warn(warning, transactions.now)
                return Result(what.tag)
            case c.ResetAll(tag=tag, everything=everything):
                if everything:
                    if transactions.state != IDLE:
                        raise ProtocolFault("25001", "DISCARD ALL cannot run inside a transaction block")
                    self._kept = KeptStatements()
                transactions.reset()
                return Result(tag)
            case c.Show(name="all"):
                columns = (("name", VARCHAR), ("setting", VARCHAR))
                return Result("SHOW", columns, transactions.now.all())
            case c.Show(name=name):
                return Result("SHOW", ((name, VARCHAR),), [(transactions.now.show(name),)])
            case c.Declare() as what:
                return self._declare(what, portal)
            case c.Fetch() as what:
                return await self._fetch(what)
            case c.CloseCursor(name=name):
                self._kept.forget_portal(name)
                return Result("CLOSE CURSOR" if name is not None else "CLOSE CURSOR ALL")
            case c.Prepare() as what:
                return await self._prepare(what, portal.statement)
            case c.ExecutePrepared() as what:
                return await self._execute_prepared(what, portal.statement.said)
            case c.Deallocate(name=name):
                self._kept.forget_statement(name)
                return Result("DEALLOCATE" if name is not None else "DEALLOCATE ALL")
            case c.Nothing(tag=tag, column=column):
                return Result(tag, ((column, VARCHAR),), [("",)]) if column else Result(tag)
        raise AssertionError(portal.statement.command)

    def _declare(self, what: c.Declare, portal: Portal) -> Result:
        if self._transactions.state == IDLE and not what.hold:
            raise ProtocolFault("25P01", "DECLARE CURSOR can only be used in transaction blocks", "BEGIN, or WITH HOLD")
        self._kept.require_new_portal(what.name)
        cursor = Portal(
            portal.statement, portal.values, (), portal.asked, portal.described, cursor=True, hold=what.hold
        )
        self._kept.keep_portal(what.name, cursor)
        return Result("DECLARE CURSOR")

    async def _fetch(self, what: c.Fetch) -> Result:
        cursor = self._kept.portal(what.cursor)
        if not cursor.cursor:
            raise ProtocolFault("34000", f'"{what.cursor[:100]}" is no cursor')
        if cursor.answer is None:
            cursor.answer = await self._ask(cursor)
        rows = cursor.fetch(what.direction, what.count)
        if what.move:
            return Result(f"MOVE {len(rows)}")
        return Result(f"FETCH {len(rows)}", cursor.answer.columns, rows)

    async def _prepare(self, what: c.Prepare, statement: PreparedStatement) -> Result:
        self._kept.require_new_statement(what.name)
        oids = []
        for name in what.types:
            found = parse_type(name)
            if found is None:
                raise ProtocolFault("42704", f'type "{name[:100]}" does not exist')
            oids.append(wire_type(found).oid)
        try:
            place = statement.offset + (what.query.at or 0)
            prepared = await self._understood(what.query.sql, place, oids, statement.said)
        except Refused as refused:
            raise refused.moved(what.query.at) from None
        if not isinstance(prepared.command, c.QueryCommand):
            raise ProtocolFault("42601", "only queries are prepared", at=what.query.at)
        self._kept.keep_statement(what.name, prepared)
        return Result("PREPARE")

    async def _execute_prepared(self, what: c.ExecutePrepared, said: Said) -> Result:
        prepared = self._kept.statement(what.name)
        prepared = replace(prepared, said=prepared.said + said)
        if prepared.query is None:
            raise ProtocolFault("0A000", "EXECUTE runs queries")
        if len(what.arguments) != len(prepared.types):
            raise ProtocolFault(
                "42601", f"the statement has {len(prepared.types)} parameters, and {len(what.arguments)} came"
            )
        values = tuple(map(from_literal, what.arguments, prepared.types))
        answer = await self._ask(await self._bound(prepared, values, ()))
        return Result(answer.command, answer.columns, answer.rows)


async def _apart(step: Callable[[], T], size: int) -> T:
    """What a step gives; where it has much to read, in a thread, so that others are not held up."""
    return await asyncio.to_thread(step) if size > _LONG else step()
