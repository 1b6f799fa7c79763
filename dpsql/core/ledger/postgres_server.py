"""PostgreSQL as ledgers and stored answers need it: connections with their settings, transactions, errors as DP407.

*Claim.* What `transaction` returned from is durable on the server; what it raised CannotOpen from was not committed, or
its notes say otherwise; where neither is known it raises `UnknownOutcome`. No message holds a value, a statement or
what the server says of them. *Why.* `synchronous_commit` is set and read back, and a server without fsync is refused
(`agrees`). COMMIT is sent last, and its answer is looked at: a transaction that failed before answers ROLLBACK, and a
warning says that a standby did not confirm. Errors are told by their SQLSTATE alone, but for those of connecting, which
speak of host, role and database. Names are found in `pg_catalog` only, and row security raises where it would hide
rows. *When it would be false.* If the server's disk acknowledges writes that it does not make; if a server fails over
to a standby that does not have what was committed (the head notices, chain/head.py). *Tested by*
tests/engines_elsewhere/postgres/ledger/.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dpsql.core.ledger.refusals import after_commit, unusable
from dpsql.core.policy.server_address import ServerError, parse_server
from dpsql.diagnostics.errors import CannotOpen

if TYPE_CHECKING:
    from psycopg import Connection, Error

Result = TypeVar("Result")
_OLDEST: Final = 14
"""The first version that is served; older ones get no repairs any more."""

_URL = (
    "name a database that is there: `ledger:` in the policy, or --ledger;  postgresql://ROLE@HOST:PORT/DATABASE,  or  "
    "postgresql:///?service=NAME  of a service file; a password belongs in ~/.pgpass or in PGPASSWORD",
)
_AGAIN = "ask again when the server answers; its log says what happened"
GRANTS: Final = (
    "its owner, for the role of the gateways:  GRANT USAGE ON SCHEMA dpsql TO ROLE;  "
    "GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA dpsql TO ROLE;  "
    "GRANT UPDATE (last_sequence, last_hash) ON dpsql.head TO ROLE"
)
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_DIRECT = "connect to the server itself, not to a pooler that shares connections by the transaction"
_REFUSED: dict[str, tuple[str, str]] = {
    "42501": ("this role lacks a right", GRANTS),
    "42P01": ("its tables are missing", GRANTS),
    "3F000": ("its schema is missing", GRANTS),
    "0A000": ("this server only reads", "name the server that writes, not a standby"),
    "23505": ("something of that name or number is there already", "restore the newest intact copy of the database"),
    "53100": ("the server's disk is full", "custodian: give the server room"),
    "53": ("the server has too many connections, or lacks memory", "custodian: raise max_connections, or ask again"),
    "57": ("the server stopped it", _AGAIN),
    "XX": ("the server reports damaged data", "custodian: restore the newest intact copy of the database"),
}
"""SQLSTATE, or how it begins → what is said of it, and the repair."""


class UnknownOutcome(Exception):
    """The connection was lost, or the server failed, when COMMIT was asked for: it may have been done."""


class StillLocked(CannotOpen):
    """Somebody else has kept a lock for as long as one waits."""


class LedgerConnection:
    """One connection, used by one thread at a time. `LedgerServer` makes it, and takes it back."""

    def __init__(self, url: str, timeout: float, connection: Connection[Any]) -> None:
        self._url, self._timeout, self._connection = url, timeout, connection
        self._warned: list[object] = []
        self.taken, self.used = True, False
        """Whether somebody uses it, and whether somebody has before: the server may have gone away meanwhile."""
        connection.add_notice_handler(self._warned.append)

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be asked over it any more."""
        lost: bool = self._connection.closed
        return lost

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement. Raises CannotOpen (DP407)."""
        import psycopg

        try:
            found: list[tuple[Any, ...]] = self._connection.execute(sql, parameters, prepare=True).fetchall()
        except psycopg.Error as error:
            raise self._refusal(error) from None
        return found

    def change(self, sql: str, parameters: Sequence[object] = ()) -> int:
        """How many rows a statement has written. Raises CannotOpen (DP407)."""
        import psycopg

        try:
            written: int = self._connection.execute(sql, parameters, prepare=True).rowcount
        except psycopg.Error as error:
            raise self._refusal(error) from None
        return written

    def change_all(self, sql: str, parameters: Sequence[Sequence[object]]) -> None:
        """One statement for several rows. Raises CannotOpen (DP407)."""
        import psycopg

        try:
            self._connection.cursor().executemany(sql, parameters)
        except psycopg.Error as error:
            raise self._refusal(error) from None

    def run(self, script: str) -> str:
        """Run statements of ours, one or several; what the server says it did last. Raises CannotOpen (DP407)."""
        import psycopg

        try:
            return self._connection.execute(script.encode(), prepare=False).statusmessage or ""
        except psycopg.Error as error:
            raise self._refusal(error) from None

    def commit(self) -> None:
        """Raises Unknown; CannotOpen (DP407) where nothing was committed."""
        self._warned.clear()
        try:
            said = self.run("COMMIT")
        except CannotOpen:
            raise UnknownOutcome from None
        if said != "COMMIT":
            raise self._unusable("the server took the transaction back", _AGAIN)
        if self._warned:
            raise after_commit(
                self._unusable("the server warned: a standby has not confirmed what it committed", _AGAIN)
            )

    def end(self) -> bool:
        """Take back what is not committed; whether the connection can serve again. If not, it is closed."""
        from psycopg import Error
        from psycopg.pq import TransactionStatus as Status

        serves = False
        try:
            if self._connection.pgconn.transaction_status in (Status.INTRANS, Status.INERROR):
                self._connection.execute("ROLLBACK")
            serves = self._connection.pgconn.transaction_status == Status.IDLE
        except Error:
            pass
        finally:
            if not serves:
                self.close()
        return serves

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _refusal(self, error: Error) -> CannotOpen:
        state = error.sqlstate or ""
        if state == "55P03":
            refusal = self._unusable(
                f"another gateway has kept it locked for {self._timeout:g} s",
                "wait for the other one, or end it, and try again",
            )
            return StillLocked(refusal.diagnostics)
        if self._connection.closed:
            return self._unusable("the connection to the server was lost", _AGAIN)
        what, repair = _REFUSED.get(state) or _REFUSED.get(state[:2]) or ("the server refused a statement", _AGAIN)
        return self._unusable(f"{what} (SQLSTATE {state})", repair)

    def _unusable(self, what: str, *help: str) -> CannotOpen:
        return unusable(self._url, what, *help)


class LedgerServer:
    """A database, by its URL. Connections are made when they are needed, and kept; it may serve several threads."""

    def __init__(self, url: str, timeout: float = 10.0) -> None:
        """timeout: seconds to connect, to wait for a lock, and that a silent gateway may keep one.

        Raises CannotOpen (DP407): the URL holds a password, or is none.
        """
        try:
            self.url, self.timeout = parse_server(url).text, timeout
        except ServerError as error:
            raise unusable("on a server", f"the address {error}", error.help) from None
        self._idle: list[LedgerConnection] = []
        self._process = os.getpid()
        self._open = True

    def read(self, action: Callable[[LedgerConnection], Result]) -> Result:
        """Ask something that changes nothing, once more if the connection turns out to be lost. Raises CannotOpen."""
        session = self._taken()
        try:
            try:
                return action(session)
            except CannotOpen:
                if not (session.is_lost and session.used):
                    raise
            session = self._fresh()
            return action(session)
        finally:
            self._give_back(session)

    def transaction(self, action: Callable[[LedgerConnection], Result]) -> Result:
        """Do something in one transaction, taken back if it raises. Each statement sees what was committed before it.

        Raises Unknown; CannotOpen (DP407) where nothing was committed.
        """

        def committed(session: LedgerConnection) -> Result:
            result = action(session)
            session.commit()
            return result

        return self._begun(committed)

    def holding(self, locks: Callable[[LedgerConnection], object], action: Callable[[], Result]) -> Result:
        """Act while a transaction is open that has taken locks; nothing of it is committed.

        Where its connection is lost meanwhile, the action goes on. Raises CannotOpen (DP407): they were not to be had.
        """

        def held(session: LedgerConnection) -> Result:
            locks(session)
            return action()

        return self._begun(held)

    def _begun(self, action: Callable[[LedgerConnection], Result]) -> Result:
        session = self._taken()
        try:
            try:
                session.run(_BEGIN)
            except CannotOpen:
                if not (session.is_lost and session.used):
                    raise
                session = self._fresh()
                session.run(_BEGIN)
            return action(session)
        finally:
            late: BaseException | None = None
            while session.taken:
                # A Ctrl-C in here must not leave a transaction open, with its locks, for as long as the process lives.
                try:
                    self._give_back(session)
                except BaseException as error:
                    late = error
            if late is not None:
                raise late

    def close(self) -> None:
        """Let go of all connections: of those in use when they are done, and of later ones as well."""
        self._open = False
        while self._idle:
            self._idle.pop().close()

    def _taken(self) -> LedgerConnection:
        if os.getpid() != self._process:  # forked: the parent goes on to use these, and libpq lets its own alone
            self._idle, self._process = [], os.getpid()
        try:
            session = self._idle.pop()
        except IndexError:
            return self._fresh()
        session.taken = True
        return session

    def _give_back(self, session: LedgerConnection) -> None:
        serves = session.end()
        session.taken = False  # first: a Ctrl-C in between loses a connection, and no other one gets two users
        if serves:
            session.used = True
            self._idle.append(session)
        if not self._open:
            self.close()

    def _fresh(self) -> LedgerConnection:
        session = LedgerConnection(self.url, self.timeout, _connected(self.url, self.timeout))
        try:
            session.rows("SELECT pg_catalog.set_config('search_path', 'pg_catalog', false)")
            ((kept,),) = session.rows("SELECT current_setting('synchronous_commit')")
            waits = int(self.timeout * 1000)
            settings = {
                "synchronous_commit": kept if kept == "remote_apply" else "on",
                "row_security": "off",
                "quote_all_identifiers": "off",
                "lock_timeout": waits,
                # A gateway that vanishes holding the lock keeps the others no longer than they are ready to wait.
                "idle_in_transaction_session_timeout": max(1, waits // 2),
            }
            calls = ", ".join("set_config(%s, %s, false)" for _ in settings)
            session.rows(f"SELECT {calls}", [str(part) for setting in settings.items() for part in setting])
            check_settings(session, self.url)
        except BaseException:
            session.close()
            raise
        return session


SETTINGS: Final = (
    "pg_catalog.current_setting('search_path'), pg_catalog.current_setting('row_security'), "
    "pg_catalog.current_setting('synchronous_commit'), pg_catalog.current_setting('fsync')"
)
"""What the promise rests on; selected with the lock of each charge, and checked by `agrees`."""


def agrees(url: str, search_path: str, row_security: str, synchronous_commit: str, fsync: str) -> None:
    """Raise CannotOpen (DP407) unless what is committed is durable, and what was set for the connection has stayed."""
    if fsync != "on":
        raise unusable(
            url, "the server's fsync is off, so a power cut would lose what was charged",
            "custodian: set  fsync = on  in the server's postgresql.conf",
        )  # fmt: skip
    if (search_path, row_security) != ("pg_catalog", "off") or synchronous_commit not in ("on", "remote_apply"):
        raise unusable(url, "what is set for a connection does not stay", _DIRECT)


def check_settings(session: LedgerConnection, url: str) -> None:
    """Raise CannotOpen (DP407) for a server whose version, encoding or settings cannot keep a ledger."""
    ((version, encoding),) = session.rows(
        "SELECT current_setting('server_version_num'), current_setting('server_encoding')"
    )
    if int(version) < _OLDEST * 10_000:
        raise unusable(url, f"this is PostgreSQL {int(version) // 10_000}", f"use PostgreSQL {_OLDEST} or later")
    if encoding != "UTF8":
        raise unusable(
            url, f"the database's encoding is {encoding}, which cannot hold every text",
            "make another:  CREATE DATABASE NAME ENCODING 'UTF8' TEMPLATE template0",
        )  # fmt: skip
    agrees(url, *session.rows(f"SELECT {SETTINGS}")[0])


def identity(url: str, timeout: float) -> tuple[object, ...]:
    """Which database of which cluster this is, however it was named, and whatever is set there. Raises CannotOpen."""
    session = LedgerConnection(url, timeout, _connected(url, timeout))
    try:
        (found,) = session.rows(
            "SELECT c.system_identifier, d.oid FROM pg_catalog.pg_control_system() AS c, pg_catalog.pg_database AS d "
            "WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()"
        )
    finally:
        session.close()
    return found


def _connected(url: str, timeout: float) -> Connection[Any]:
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ModuleNotFoundError:
        raise unusable(
            url, "this needs psycopg, the client of PostgreSQL, which is not installed", "pip install 'dpsql[postgres]'"
        ) from None
    try:
        asked = conninfo_to_dict(url)
    except (psycopg.Error, ValueError):
        raise unusable("on a server", "PostgreSQL's client does not understand the URL", *_URL) from None
    if any("password" in name for name in asked):
        raise unusable("on a server", "PostgreSQL's client finds a password in the URL", *_URL)
    # A server that is gone without a word is noticed within half a minute.
    usual = {
        "connect_timeout": max(2, int(timeout)), "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
        "tcp_user_timeout": 30_000, "application_name": "dpsql",
    }  # fmt: skip
    fixed = {"autocommit": True, "client_encoding": "UTF8"}
    try:
        connection: Connection[Any] = _connection_class().connect(**{**usual, **asked, **fixed})
        return connection
    except psycopg.Error as error:
        text = " ".join(str(error).split())[:300]
        raise unusable(url, f"it cannot be reached ({text})", *_URL) from None
    except (OSError, ValueError):
        raise unusable(url, "it cannot be reached (not a host name)", *_URL) from None


@cache
def _connection_class() -> Any:
    """One that a Ctrl-C took away from whoever would have closed it: libpq closes it, and no warning is printed."""
    import psycopg

    return type("Connection", (psycopg.Connection,), {"__del__": lambda self: None})


def refuse_the_datas(server: LedgerServer, data: str) -> None:
    """A ledger beside the data would be written by a role that may only read, or read by whoever may read the data."""
    if identity(server.url, server.timeout) == identity(data, server.timeout):
        raise unusable(
            server.url, "this is the database that holds the data",
            "custodian: make another database for the ledger, with a role of its own, and name it in `ledger:`",
        )  # fmt: skip
