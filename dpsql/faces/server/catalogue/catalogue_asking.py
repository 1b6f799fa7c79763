"""The front asks the catalogue as it asks those who hold the data: `LoginCatalogue` of `statements.py`, of each
login.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from dpsql.core.ir import types as t
from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.note import Note
from dpsql.engines.policy_catalogue import DoesNotFit, TooMuch
from dpsql.faces.server.catalogue.login_catalogue import LoginCatalogue
from dpsql.faces.server.statements import Answer, DescribedStatement, Login, Refused, StatementSettings, Value
from dpsql.frontend.catalogue.known import NotListed

T = TypeVar("T")
UNKNOWN: Final = "0A000"
_KEPT = 16
"""Logins whose catalogue is kept: 12 MB each."""
_THREADS = 2
_SAME = {
    "boolean": t.BOOLEAN, "smallint": t.SMALLINT, "integer": t.INTEGER, "bigint": t.BIGINT, "real": t.FLOAT,
    "double precision": t.DOUBLE, "text": t.VARCHAR,
}  # fmt: skip
_OWN = {"oid": Kind.INTEGER, "xid": Kind.INTEGER} | dict.fromkeys(
    ("name", '"char"', "character varying", "int2vector", "oidvector", "json"), Kind.VARCHAR
)
"""Types that PostgreSQL's catalogue has and no data of ours; `wire/wire_values.py` knows them by these names."""


def sql_type(name: str) -> SqlType:
    """PostgreSQL's type as the wire knows it; a text where it knows none."""
    if name.endswith("[]"):
        return t.list_of(sql_type(name[:-2]))
    return _SAME.get(name) or (SqlType(_OWN[name], name) if name in _OWN else t.VARCHAR)


class CatalogueOfLogins:
    """Answers of one policy's catalogue, which a client knows as the database of its name.

    made_up: whether its rows are.
    Each login is answered one question at a time, so that nobody's long ones take all of the threads.
    """

    def __init__(self, policy: Policy, *, made_up: bool = False) -> None:
        self._policy, self._made_up = policy, made_up
        self._lock = threading.Lock()
        self._of: OrderedDict[tuple[str, tuple[str, ...]], LoginCatalogue] = OrderedDict()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="catalogue")

    def concerns(self, sql: str) -> bool:
        """Whether a statement asks the catalogue, and nothing else."""
        return LoginCatalogue.concerns(sql)

    async def describe(self, login: Login, sql: str, settings: StatementSettings) -> DescribedStatement:
        """Columns and types of parameters. Raises Refused."""
        question = await self._in_turn(login, lambda: self._seen_by(login).read(sql))
        columns = tuple((name, sql_type(kind)) for name, kind in question.columns)
        return DescribedStatement(sql, columns, tuple(map(sql_type, question.parameters)))

    async def run(
        self,
        login: Login,
        described: DescribedStatement,
        values: tuple[Value, ...],
        settings: StatementSettings,
        run_id: str,
    ) -> Answer:
        """The answer; it costs nothing. Raises Refused."""
        given = [_text(value) for value in values]
        table = await self._in_turn(login, lambda: self._seen_by(login).answer(described.sql, given))
        notices = tuple(Note(f"{what} says nothing here: NULL, FALSE or no rows") for what in table.missing)
        return Answer(tuple((name, sql_type(kind)) for name, kind in table.columns), table.rows, notices)

    async def stop(self, run_id: str) -> None:
        """Nothing runs for longer than a second."""

    def close(self) -> None:
        """Forget everything. Closing twice is allowed."""
        with self._lock:
            for catalogue in self._of.values():
                catalogue.close()
            self._of.clear()
        self._threads.shutdown()

    async def _in_turn(self, login: Login, step: Callable[[], T]) -> T:
        """What a step gives, in a thread, when the login's last one is over. Raises Refused."""
        async with self._turns.setdefault(login.name, asyncio.Lock()):
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._guarded, step)

    def _seen_by(self, login: Login) -> LoginCatalogue:
        key = (login.name, login.databases)  # which change when the file of users is read anew
        with self._lock:
            if key not in self._of:
                self._of[key] = LoginCatalogue(self._policy, login.name, login.databases, made_up=self._made_up)
                if len(self._of) > _KEPT:
                    self._of.popitem(last=False)[1].close()
            self._of.move_to_end(key)
            return self._of[key]

    @staticmethod
    def _guarded(step: Callable[[], T]) -> T:
        try:
            return step()
        except DoesNotFit as column:
            if str(column):
                raise Refused([Diagnostic("DP103", f"column {column} does not exist", help=("SHOW TABLES",))]) from None
            message, repair = "columns or types in this question about the catalogue do not fit", "SHOW TABLES"
        except NotListed as what:
            message, repair = f"{what} is not on the list of what may be asked of the catalogue", "SHOW TABLES"
        except TooMuch:
            message, repair = "this question about the catalogue takes too long or too much memory", "ask for less"
        raise Refused([Diagnostic("DP101", message, help=(repair,))], UNKNOWN)


def _text(value: Value) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "t" if value else "f"
        case list():
            return "{" + ",".join("NULL" if v is None else str(_text(v)) for v in value) + "}"
    return str(value)
