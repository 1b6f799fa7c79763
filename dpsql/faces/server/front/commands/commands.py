"""What a statement may be to the front: a transaction's mark, a setting, a cursor, a copy, a write, or a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class QueryCommand:
    """For those who answer. at: where the query begins in the statement; None: it is not written there."""

    sql: str
    at: int | None = 0


@dataclass(frozen=True, slots=True)
class Transaction:
    """do: begin, commit, rollback, savepoint, release or rollback to. name: of a savepoint."""

    do: str
    tag: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Set:
    """value: None for DEFAULT and RESET. local: until the transaction ends."""

    name: str
    value: str | None
    local: bool = False
    tag: str = "SET"


@dataclass(frozen=True, slots=True)
class ResetAll:
    """RESET ALL, or DISCARD ALL, which forgets statements and cursors as well."""

    tag: str
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Show:
    """name: of a setting, in lower case; "all" for all of them."""

    name: str


@dataclass(frozen=True, slots=True)
class Declare:
    """A cursor. hold: it stays when the transaction ends."""

    name: str
    query: QueryCommand
    hold: bool


@dataclass(frozen=True, slots=True)
class Fetch:
    """direction: forward, backward, absolute or relative. count: None for all. move: without rows."""

    cursor: str
    direction: str
    count: int | None
    move: bool = False


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """name: None for all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class CopyOut:
    """COPY … TO STDOUT. format: text, csv or binary; the others are those of text and csv."""

    query: QueryCommand
    format: str = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'


@dataclass(frozen=True, slots=True)
class Prepare:
    """SQL's own PREPARE. types: names as they were written."""

    name: str
    query: QueryCommand
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExecutePrepared:
    """arguments: the texts of literals; None for NULL."""

    name: str
    arguments: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Deallocate:
    """name: None for all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Nothing:
    """Accepted, and nothing is done: UNLISTEN, and the unlocking of locks that nobody has."""

    tag: str
    column: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """What PostgreSQL would write with. word: which it is, in capitals."""

    word: str


Command: TypeAlias = (
    QueryCommand | Transaction | Set | ResetAll | Show | Declare | Fetch | CloseCursor | CopyOut | Prepare
    | ExecutePrepared
    | Deallocate | Nothing | Write
)  # fmt: skip
