"""One statement → what it is to the front.

What is nothing else is a `QueryCommand`, for those who answer. Everything that PostgreSQL would write is a `Write`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from dpsql.faces.server.front.commands.client_tokens import ClientToken
from dpsql.faces.server.front.commands.commands import (
    CloseCursor,
    Command,
    Deallocate,
    Declare,
    ExecutePrepared,
    Fetch,
    Nothing,
    Prepare,
    QueryCommand,
    ResetAll,
    Set,
    Show,
    Transaction,
    Write,
)
from dpsql.faces.server.front.commands.read_copy import read_copy
from dpsql.faces.server.front.commands.reader import Reader
from dpsql.faces.server.front.error_fields import ProtocolFault
from dpsql.faces.server.front.variables import is_variable

_WRITES: Final = frozenset({
    "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE", "GRANT", "REVOKE", "VACUUM",
    "ANALYZE", "ANALYSE", "REINDEX", "CLUSTER", "COMMENT", "SECURITY", "IMPORT", "REFRESH", "LOCK", "CALL", "DO",
    "NOTIFY", "LISTEN", "LOAD", "CHECKPOINT", "REASSIGN", "ATTACH", "DETACH", "PRAGMA", "INSTALL", "EXPORT", "USE",
})  # fmt: skip
_TOLD_BY_OTHERS: Final = frozenset({"tables", "alltables", "budget", "history", "summaries", "counters", "periods"})
"""What SHOW may be about that is no setting, without spaces."""
_ABOUT: Final = (("DP", "SUMMARY"), ("DP", "COUNTER"))
_OWN: Final = {"CREATE": _ABOUT, "DROP": _ABOUT, "CLOSE": (("DP", "PERIODS"),)}
"""First word → what follows it in a statement of dpsql's own, which PostgreSQL would read as something else."""
_UNLOCK: Final = re.compile(r"\s*SELECT\s+(?:pg_catalog\.)?pg_advisory_unlock_all\s*\(\s*\)\s*", re.IGNORECASE)
MAX_LENGTH: Final = 100_000
"""Characters of a query, as whoever answers accepts them: a longer one is refused there."""
_LONGEST: Final = 10_000
"""Characters of a command that carries no query; what is longer is none."""


_KNOWN: Final[dict[str, QueryCommand]] = {}
"""Queries that were read before: tools send the same texts again. No other command is kept, which may hold a secret."""
_MOST_KNOWN: Final = 500
_SHORT: Final = 2_000


def command(text: str) -> Command | None:
    """What a statement is; None if there is none in the text. Raises Fault 42601 for a command that cannot be read."""
    known = _KNOWN.get(text)
    if known is not None:
        return known
    found = _read(text)
    if isinstance(found, QueryCommand) and len(text) <= _SHORT:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[text] = found
    return found


def first_word(text: str) -> str:
    """Which command a text is, in capitals, for where the rest of it may hold a secret."""
    return Reader(text).word


def _read(text: str) -> Command | None:
    found = Reader(text)
    if found.word in _OWN and tuple(t.upper for t in iter_rest(found)[1:3]) in _OWN[found.word]:
        return QueryCommand(text)  # whether the login may, whoever answers says
    read = _READERS.get(found.word)
    if read is not None:
        return read(found)
    if found.peek() is None:
        return None
    if found.word in _WRITES:
        return Write(found.word)
    if _UNLOCK.fullmatch(text):
        return Nothing("SELECT 1", "pg_advisory_unlock_all")
    readable = found.word in ("SELECT", "WITH", "(") and len(text) <= MAX_LENGTH  # a longer one is refused
    writes = _written(found) if readable else ""
    return Write(writes) if writes else QueryCommand(text)


def _written(found: Reader) -> str:
    """What a query would write, as PostgreSQL reads it: WITH … INSERT, SELECT … INTO, FOR UPDATE; "" for nothing."""
    depth, before = 0, ""
    first = found.word
    for token in found.all():
        word, after = token.upper, before
        before = word
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "INTO" and after in ("INSERT", "MERGE"):
            return after
        if word == "INTO" and depth == 0 and after != "AS":
            return f"{first} INTO"
        if word == "FROM" and after == "DELETE":
            return after
        if word in ("UPDATE", "SHARE") and after in ("FOR", "KEY"):
            return "SELECT FOR UPDATE"
        if after == "UPDATE" and token.kind in ("word", "quoted") and first == "WITH":
            return after
    return ""


def _up_to(most: int, read: Callable[[Reader], Command]) -> Callable[[Reader], Command]:
    def checked(found: Reader) -> Command:
        if len(found.text) > most:
            raise ProtocolFault("54000", f"a statement of this kind has at most {most:,} characters")
        return read(found)

    return checked


def _short(read: Callable[[Reader], Command]) -> Callable[[Reader], Command]:
    return _up_to(_LONGEST, read)


def _long(read: Callable[[Reader], Command]) -> Callable[[Reader], Command]:
    """Of one that carries a query, which may have its own length."""
    return _up_to(_LONGEST + MAX_LENGTH, read)


# --- transactions -----------------------------------------------------------------------------------------------------


def _modes(found: Reader) -> None:
    """ISOLATION LEVEL … READ ONLY …: all modes are accepted, for nothing is ever written."""
    while found.peek() is not None:
        if found.accept("ISOLATION", "LEVEL"):
            if not (found.accept("READ", "COMMITTED") or found.accept("READ", "UNCOMMITTED")
                    or found.accept("REPEATABLE", "READ") or found.accept("SERIALIZABLE")):  # fmt: skip
                raise found.wrong(found.peek())
        elif not (found.accept("READ", "ONLY") or found.accept("READ", "WRITE") or found.accept("DEFERRABLE")
                  or found.accept("NOT", "DEFERRABLE") or found.accept(",")):  # fmt: skip
            raise found.wrong(found.peek())


def _begin(found: Reader) -> Command:
    tag = "START TRANSACTION" if found.word == "START" else "BEGIN"
    found.take()
    if tag != "BEGIN":
        if not found.accept("TRANSACTION"):
            raise found.wrong(found.peek())
    else:
        found.one_of("WORK", "TRANSACTION")
    _modes(found)
    return Transaction("begin", tag)


def _end(found: Reader) -> Command:
    do = "commit" if found.take().upper in ("COMMIT", "END") else "rollback"
    if found.accept("PREPARED"):
        return Write("COMMIT PREPARED" if do == "commit" else "ROLLBACK PREPARED")
    found.one_of("WORK", "TRANSACTION")
    if do == "rollback" and found.accept("TO"):
        found.accept("SAVEPOINT")
        name = found.name()
        found.end()
        return Transaction("rollback to", "ROLLBACK", name)
    if not found.accept("AND", "NO", "CHAIN") and found.accept("AND", "CHAIN"):
        raise ProtocolFault("0A000", "AND CHAIN is not supported", "write  COMMIT; BEGIN")
    found.end()
    return Transaction(do, do.upper())


def _savepoint(found: Reader) -> Command:
    do = found.take().upper.lower()
    if do == "release":
        found.accept("SAVEPOINT")
    name = found.name()
    found.end()
    return Transaction(do, do.upper(), name)


# --- settings ---------------------------------------------------------------------------------------------------------


def _set(found: Reader) -> Command:
    found.take()
    if found.accept("TRANSACTION") or found.accept("SESSION", "CHARACTERISTICS", "AS", "TRANSACTION"):
        if found.accept("SNAPSHOT"):
            raise ProtocolFault("0A000", "snapshots are not supported")
        _modes(found)
        return Nothing("SET")
    if found.accept("CONSTRAINTS"):
        return Nothing("SET CONSTRAINTS")
    following = found.peek(1)
    local = found.word == "SET" and following is not None and following.upper not in ("=", "TO", ".")
    scope = found.one_of("LOCAL", "SESSION") if local else ""
    if found.accept("TIME", "ZONE"):
        return Set("timezone", _zone(found), scope == "LOCAL")
    if found.accept("NAMES"):
        return Set("client_encoding", _value(found), scope == "LOCAL")
    if found.accept("AUTHORIZATION"):
        return Set("session_authorization", _value(found), scope == "LOCAL")
    if found.accept("ROLE"):
        return Set("role", _value(found), scope == "LOCAL")
    name = found.dotted().lower()
    if not (found.accept("=") or found.accept("TO")):
        raise found.wrong(found.peek())
    return Set(name, _value(found), scope == "LOCAL")


def _zone(found: Reader) -> str | None:
    """A zone: a value, LOCAL, or an interval such as `INTERVAL '+00:00' HOUR TO MINUTE`."""
    if found.accept("LOCAL"):
        found.end()
        return None
    if not found.accept("INTERVAL"):
        return _value(found)
    value = found.take().value
    if found.accept("HOUR") and found.accept("TO"):
        found.accept("MINUTE")
    found.end()
    return value


def _value(found: Reader) -> str | None:
    """One value, or several behind commas; None for DEFAULT."""
    if found.accept("DEFAULT"):
        found.end()
        return None
    parts: list[str] = []
    while True:
        sign = found.one_of("-", "+")
        token = found.take()
        if token.kind == "sign":
            raise found.wrong(token)
        value = found.text[token.start : token.end] if token.kind == "word" else token.value
        if token.kind == "number" and found.accept("/"):  # an amount such as 1/3
            value += f"/{found.take().value}"
        parts.append(sign + value)
        if not found.accept(","):
            found.end()
            return ", ".join(parts)


def _reset(found: Reader) -> Command:
    found.take()
    if found.accept("ALL"):
        found.end()
        return ResetAll("RESET")
    if found.accept("TIME", "ZONE"):
        name = "timezone"
    elif found.accept("SESSION", "AUTHORIZATION"):
        name = "session_authorization"
    else:
        name = found.dotted().lower()
    found.end()
    return Set(name, None, tag="RESET")


def _show(found: Reader) -> Command:
    found.take()
    words = [t.value for t in iter_rest(found)]
    name = {
        ("time", "zone"): "timezone", ("transaction", "isolation", "level"): "transaction_isolation",
        ("session", "authorization"): "session_authorization",
    }.get(tuple(words), "".join(words).lower())  # fmt: skip
    if name == "all" or is_variable(name):
        return Show(name)
    told_by_others = name in _TOLD_BY_OTHERS or name.startswith("dpsql.")
    return QueryCommand(found.text) if told_by_others else Show(name)


def iter_rest(found: Reader) -> Sequence[ClientToken]:
    """The tokens that are left, without taking them; at most twenty."""
    return [t for t in map(found.peek, range(20)) if t is not None]


def _discard(found: Reader) -> Command:
    found.take()
    what = found.one_of("ALL", "PLANS", "SEQUENCES", "TEMPORARY", "TEMP")
    found.end()
    if not what:
        raise found.wrong()
    return ResetAll("DISCARD ALL", everything=True) if what == "ALL" else Nothing(f"DISCARD {what}")


# --- cursors ----------------------------------------------------------------------------------------------------------


def _declare(found: Reader) -> Command:
    found.take()
    name, hold = found.name(), False
    while not found.accept("CURSOR"):
        if not (found.accept("NO", "SCROLL") or found.one_of("BINARY", "ASENSITIVE", "INSENSITIVE", "SCROLL")):
            raise found.wrong(found.peek())
    if found.accept("WITH", "HOLD"):
        hold = True
    else:
        found.accept("WITHOUT", "HOLD")
    if not found.accept("FOR"):
        raise found.wrong(found.peek())
    return Declare(name, found.rest(), hold)


def _fetch(found: Reader) -> Command:
    move = found.take().upper == "MOVE"
    direction, count = _direction(found)
    found.one_of("FROM", "IN")
    name = found.name()
    found.end()
    return Fetch(name, direction, count, move)


def _direction(found: Reader) -> tuple[str, int | None]:
    following = found.peek(1)
    if following is None:
        return "forward", 1  # the cursor's name alone
    match found.one_of("NEXT", "PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE", "ALL", "FORWARD", "BACKWARD"):
        case "NEXT":
            return "forward", 1
        case "PRIOR":
            return "backward", 1
        case "FIRST":
            return "absolute", 1
        case "LAST":
            return "absolute", -1
        case "ALL":
            return "forward", None
        case "ABSOLUTE" | "RELATIVE" as word:
            return word.lower(), _count(found)
        case "FORWARD" | "BACKWARD" as word:
            if found.accept("ALL"):
                return word.lower(), None
            token = found.peek()
            counted = token is not None and (token.kind == "number" or token.upper in ("-", "+"))
            return word.lower(), _count(found) if counted else 1
    token = found.peek()
    if token is not None and (token.kind == "number" or token.upper in ("-", "+")):
        return "forward", _count(found)
    return "forward", 1


def _count(found: Reader) -> int:
    sign = -1 if found.one_of("-", "+") == "-" else 1
    token = found.take()
    if token.kind != "number" or not token.value.isdecimal() or len(token.value) > 18:
        raise found.wrong(token)
    return sign * int(token.value)


def _close(found: Reader) -> Command:
    found.take()
    name = None if found.accept("ALL") else found.name()
    found.end()
    return CloseCursor(name)


# --- PREPARE ----------------------------------------------------------------------------------------------------------


def _prepare(found: Reader) -> Command:
    found.take()
    if found.accept("TRANSACTION"):
        return Write("PREPARE TRANSACTION")
    name, types = found.name(), list[str]()
    if found.accept("("):
        while not found.accept(")"):
            token = found.take()
            if token.upper == ",":
                types.append("")
            elif types:
                types[-1] = f"{types[-1]} {token.value}".strip()
            else:
                types.append(token.value)
    if not found.accept("AS"):
        raise found.wrong(found.peek())
    return Prepare(name, found.rest(), tuple(types))


def _execute(found: Reader) -> Command:
    found.take()
    name, arguments = found.name(), list[str | None]()
    if found.accept("("):
        while True:
            arguments.append(_literal(found))
            if found.accept(")"):
                break
            if not found.accept(","):
                raise found.wrong(found.peek())
    found.end()
    return ExecutePrepared(name, tuple(arguments))


def _literal(found: Reader) -> str | None:
    sign = found.one_of("-", "+")
    token = found.take()
    if token.kind == "word" and token.upper in ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIME", "INTERVAL", "NUMERIC"):
        token = found.take()
    if token.kind not in ("number", "string") and token.upper not in ("TRUE", "FALSE", "NULL"):
        raise found.wrong(token)
    while found.accept("::"):  # the parameter has its own type
        found.name()
    return None if token.upper == "NULL" else sign + token.value


def _deallocate(found: Reader) -> Command:
    found.take()
    found.accept("PREPARE")
    name = None if found.accept("ALL") else found.name()
    found.end()
    return Deallocate(name)


def _unlisten(found: Reader) -> Command:
    return Nothing("UNLISTEN")


_READERS: Final[dict[str, Callable[[Reader], Command]]] = {
    "BEGIN": _short(_begin), "START": _short(_begin), "COMMIT": _short(_end), "END": _short(_end),
    "ROLLBACK": _short(_end), "ABORT": _short(_end), "SAVEPOINT": _short(_savepoint), "RELEASE": _short(_savepoint),
    "SET": _short(_set), "RESET": _short(_reset), "SHOW": _short(_show), "DISCARD": _short(_discard),
    "DECLARE": _long(_declare), "FETCH": _short(_fetch), "MOVE": _short(_fetch), "CLOSE": _short(_close),
    "COPY": _long(read_copy), "PREPARE": _long(_prepare), "EXECUTE": _short(_execute),
    "DEALLOCATE": _short(_deallocate), "UNLISTEN": _short(_unlisten),
}  # fmt: skip
