"""Which ledger a session charges: the policy's file or database, another one, or one in memory."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

from dpsql.core.ledger.files.plain_files import located
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.refusals import unusable
from dpsql.core.policy.policy import IN_MEMORY, Policy, default_head_path
from dpsql.core.policy.server_address import ServerError, names_server, parse_server
from dpsql.diagnostics.note import Note, Rank

FORGETS: Final = Note(
    "the ledger is in memory: what was spent is forgotten when the session ends, and a new one starts anew", Rank.DANGER
)


class LedgerPlace(NamedTuple):
    """A ledger's file and that of its head."""

    path: Path
    head: Path

    @property
    def is_taken(self) -> bool:
        """Whether there is a ledger, or the head remembers one (so that opening it says what is wrong)."""
        return os.path.lexists(self.path) or _is_remembered(self.head)

    @property
    def files(self) -> tuple[Path, ...]:
        """What is kept here, whether it is there already or not."""
        return tuple(self)


class ServerPlace(NamedTuple):
    """The URL of a ledger's database, and the file of this gateway's head."""

    url: str
    head: Path

    @property
    def is_taken(self) -> bool:
        """As of `LedgerPlace`. Raises CannotOpen DP407: the server does not say."""
        from dpsql.core.ledger.postgres import is_founded

        return _is_remembered(self.head) or is_founded(self.url)

    @property
    def files(self) -> tuple[Path, ...]:
        """As of `LedgerPlace`."""
        return (self.head,)


AnyPlace = LedgerPlace | ServerPlace


def _is_remembered(head: Path) -> bool:
    from dpsql.core.ledger.chain.head import Head

    known = Head(head, 1.0).read()
    return known is not None and known.sequence > 0


def is_in_memory(policy: Policy, named: str | PathLike[str] | None = None) -> bool:
    """Whether the named ledger, else the policy's, is one in memory."""
    return (policy.ledger if named is None else os.fspath(named)) == IN_MEMORY


def place_of(policy: Policy, named: str | PathLike[str] | None = None) -> AnyPlace | None:
    """Where a ledger and its head lie: the named one, else the policy's. None: in memory, where `:memory:` is named.

    One file has one head, however it was named; a database has one for each spelling of its URL. Raises CannotOpen
    DP407: a URL that holds a password, or none that is understood.
    """
    if is_in_memory(policy, named):
        return None
    own, head = policy.ledger_url or policy.ledger_path, policy.ledger_head_path
    policys = None if own is None or head is None else _place(own, head)
    if named is None or (policys is not None and _is_same(os.fspath(named), policys)):
        return policys
    ledger = _address(os.fspath(named)) if names_server(os.fspath(named)) else Path(named)
    return _place(ledger, default_head_path(ledger, policy.name))


def _address(named: str) -> str:
    try:
        server = parse_server(named)
        if server.kind == "spark":
            raise ServerError("is Spark's, which has no transactions", "postgresql://payer@host/ledger")
        return server.text
    except ServerError as error:
        raise unusable("on a server", f"the address {error}", error.help) from None


def _place(ledger: str | Path, head: Path) -> AnyPlace:
    return ServerPlace(ledger, head) if isinstance(ledger, str) else LedgerPlace(ledger, head)


def _is_same(named: str, other: AnyPlace) -> bool:
    match other:
        case ServerPlace(url):
            return named.strip() == url
        case LedgerPlace(path):
            try:
                return not names_server(named) and located(named) == located(path)
            except ValueError:  # no file name, which opening it will say
                return False


def open_ledger(policy: Policy, place: AnyPlace | None) -> Ledger:
    """The ledger there, made if it is not; None: a new one in memory. Raises CannotOpen DP407."""
    accountant = policy.privacy.accountant
    match place:
        case None:
            from dpsql.core.ledger.memory import MemoryLedger

            return MemoryLedger(policy.name, accountant)
        case LedgerPlace(path, head):
            from dpsql.core.ledger.sqlite import SqliteLedger

            return SqliteLedger.open(path, head, policy.name, accountant, units=policy.unit_names)
        case ServerPlace(url, head):
            from dpsql.core.ledger.postgres import PostgresLedger

            data = policy.server
            return PostgresLedger.open(
                url, head, policy.name, accountant, units=policy.unit_names, data=None if data is None else data.text
            )


def look_at_ledger(policy: Policy, place: AnyPlace | None) -> Ledger | None:
    """The ledger there, to read; it need not be writable then. None if there is none, and none is made.

    Raises CannotOpen DP407.
    """
    accountant = policy.privacy.accountant
    match place:
        case None:
            return None
        case LedgerPlace(path, head):
            from dpsql.core.ledger.sqlite import SqliteLedger

            if not place.is_taken:
                return None
            return SqliteLedger.look(path, head, policy.name, accountant, units=policy.unit_names)
        case ServerPlace(url, head):
            from dpsql.core.ledger.postgres import PostgresLedger

            return PostgresLedger.look(url, head, policy.name, accountant, units=policy.unit_names)


def accept_ledger(policy: Policy, place: AnyPlace) -> None:
    """Custodian only: declare the ledger there, as it now stands, to be the true one. Raises CannotOpen DP407.

    Where nothing is left of a ledger that its head remembers, one is made whose first entry says so.
    """
    from dpsql.core.ledger.chain.acceptance import accepting, remembered
    from dpsql.core.ledger.chain.hash_chain import Point
    from dpsql.core.ledger.chain.head import Head
    from dpsql.core.ledger.ledger import Caps

    known = remembered(Head(place.head, 1.0))
    match place:
        case LedgerPlace(path, head):
            from dpsql.core.ledger import sqlite

            sqlite.accept_head(path, head)
        case ServerPlace(url, head):
            from dpsql.core.ledger import postgres

            postgres.accept_head(url, head)
    if known and not place.is_taken:
        ledger = open_ledger(policy, place)
        try:
            ledger.reserve(accepting(Point(0, ""), f"its head remembered entry {known}"), Caps())
        finally:
            ledger.close()


def shown(place: AnyPlace | None) -> str:
    """Where a ledger is, as messages say it."""
    match place:
        case None:
            return IN_MEMORY
        case LedgerPlace(path):
            return str(path)
        case ServerPlace(url):
            return url
