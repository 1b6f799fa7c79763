"""What the front and a worker say to each other: one JSON text a line, and nothing that could run.

*Claim.* A value that crosses is the value that was sent, and reading a line does nothing but make values. *Why.* JSON's
own numbers are whole or binary64, both written exactly; every other kind of value is an object with one key that names
its kind. *When it would be false.* If a pickle crossed, or a Decimal as a float. *Tested by*
tests/faces/server/test_messages.py.
"""

from __future__ import annotations

import datetime as dt
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, Literal

from dpsql.core.ir.types import NULL, SqlType, parse_type
from dpsql.core.policy.catalogue import Catalogue, CatalogueColumn, CatalogueKey, CatalogueTable
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Diagnostic, Mark, Source, Span
from dpsql.diagnostics.note import Note, Rank, Topic
from dpsql.faces.server.packed_rows import PackedRows, Pieces
from dpsql.faces.server.packed_values import pack, unpack
from dpsql.faces.server.statements import Answer, Ceilings, StatementSettings, Value

LONGEST: Final = 2**28
"""Bytes of one line."""

Wish = Literal["look", "run", "explain", "cost", "spent", "entry", "stopped", "given"]
"""look: the answer if nothing is charged for it. run: charge and run. explain, cost: what a run would do. spent: what
every account has spent, for the custodian; there is no statement then. entry: the price of the ledger's entry whose
id stands in place of the statement, and whether its run has failed; no row if it was not made. stopped: the run of this
entry is ended by the server, and is no failure. given: the columns of the counters that a text reads."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A statement for a worker. account: whose budget it is. asked: what NOW() means, in UTC.

    form: of an EXPLAIN, "text" or "json". batch: as `Spoken` has it. within: seconds for what costs nothing, 0 for no
    limit. computing: whether it has a seat for what computes: then it is refused in the end.
    """

    id: str
    wish: Wish
    account: str
    sql: str
    values: tuple[Value, ...]
    settings: StatementSettings
    ceilings: Ceilings
    asked: dt.datetime
    form: str = "text"
    batch: str = ""
    within: float = 0.0
    computing: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of it: an answer; refusals; or neither, where a look found something to pay.

    plan: the hash of what is asked, for the audit log. instead: why it was not answered here: it "computes" for longer
    than was allowed, or it draws what another run of this worker holds, and was not begun: "later".
    """

    id: str
    answer: Answer | None = None
    refused: tuple[Diagnostic, ...] = ()
    plan: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of the answer that follows, compressed. count: of the rows."""

    id: str
    count: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Charging:
    """A run is about to make this entry of the ledger. It has read no private row yet."""

    id: str
    entry: str


@dataclass(frozen=True, slots=True)
class IsCharged:
    """A run is charged, and draws when it is told to."""

    id: str


@dataclass(frozen=True, slots=True)
class Draw:
    """The run may read private rows, and no other one is charged before all that are have drawn.

    within: seconds after which it is stopped, 0 for no limit.
    """

    id: str
    within: float = 0.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """A run has done all that reads private rows. Nobody can see that yet."""

    id: str


@dataclass(frozen=True, slots=True)
class Go:
    """The run may store what it has drawn, let others go on, and reply."""

    id: str


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker has opened data and ledger. policy: the hash of its file. catalogue: names and types of the data."""

    policy: str
    catalogue: Catalogue


@dataclass(frozen=True, slots=True)
class Broken:
    """A worker cannot open the data or the ledger, and ends."""

    refused: tuple[Diagnostic, ...] = field(default_factory=tuple)


Message = Ask | Reply | Part | Charging | IsCharged | Draw | Waiting | Go | Ready | Broken


def write(message: Message) -> bytes:
    """One line."""
    text = json.dumps(
        {type(message).__name__: _WRITERS[type(message)](message)}, ensure_ascii=True, separators=(",", ":")
    )
    return text.encode("ascii") + b"\n"


def read(line: bytes, parts: Sequence[Part] = (), accounts: Mapping[str, str] = MappingProxyType({})) -> Message:
    """The message of one line. Raises ValueError for anything else.

    parts: that came before a reply. accounts: id → who has asked.
    """
    try:
        ((name, fields),) = json.loads(line).items()
        if name == "Reply":
            return _read_reply(fields, parts, accounts.get(fields["id"], ""))
        return _READERS[name](fields)
    except (KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError("no message") from error


def _type(name: str) -> SqlType:
    found = NULL if name == NULL.name else parse_type(name)
    if found is None:
        raise ValueError(f"no type: {name}")
    return found


# --- messages ---------------------------------------------------------------------------------------------------------


def _note(note: str) -> list[str | None]:
    if not isinstance(note, Note):
        return [note, Rank.REMARK.name, None]
    return [note, note.rank.name, None if note.topic is None else note.topic.name]


def _read_note(parts: Sequence[str]) -> Note:
    text, rank, topic = parts
    return Note(text, Rank[rank], Topic[topic] if topic else None)


def _diagnostic(d: Diagnostic) -> dict[str, Any]:
    return {
        "code": d.code,
        "message": d.message,
        "source": None if d.source is None else [d.source.text, d.source.name],
        "span": None if d.span is None else [d.span.start, d.span.end],
        "label": d.label,
        "help": d.help,
        "notes": [_note(n) for n in d.notes],
        "severity": d.severity,
        "mark": None if d.mark is None else d.mark.name,
    }


def _diagnostics(found: Sequence[Mapping[str, Any]]) -> tuple[Diagnostic, ...]:
    return tuple(
        Diagnostic(
            d["code"],
            d["message"],
            None if d["source"] is None else Source(*d["source"]),
            None if d["span"] is None else Span(*d["span"]),
            d["label"],
            tuple(d["help"]),
            tuple(map(_read_note, d["notes"])),
            d["severity"],
            mark=None if d["mark"] is None else Mark[d["mark"]],
        )
        for d in found
    )


def _write_ask(ask: Ask) -> dict[str, Any]:
    plain = ("id", "wish", "account", "sql", "form", "batch", "within", "computing")
    own = {name: getattr(ask, name) for name in plain}
    return {
        **own,
        "values": [pack(v) for v in ask.values],
        "settings": asdict(ask.settings),
        "ceilings": asdict(ask.ceilings),
        "asked": ask.asked.isoformat(),
    }


def _read_ask(fields: dict[str, Any]) -> Ask:
    return Ask(
        **{
            **fields,
            "values": tuple(unpack(v) for v in fields["values"]),
            "settings": StatementSettings(**fields["settings"]),
            "ceilings": Ceilings(**fields["ceilings"]),
            "asked": dt.datetime.fromisoformat(fields["asked"]),
        }
    )


def _write_answer(answer: Answer) -> dict[str, Any]:
    return {
        "columns": [[name, type_.name] for name, type_ in answer.columns],
        "rows": len(answer.rows.pieces.written())
        if isinstance(answer.rows, PackedRows)
        else [[pack(v) for v in row] for row in answer.rows],
        "notices": [_note(n) for n in answer.notices],
        "warnings": [_diagnostic(d) for d in answer.warnings],
        "spent": answer.spent,
        "plan": answer.plan,
        "entry": answer.entry,
        "command": answer.command,
        "more": [_write_answer(each) for each in answer.more],
        "ends": answer.ends,
        "charged": _loss(answer.charged),
        "left": None if answer.left is None else _loss(answer.left),
    }


def _loss(loss: PrivacyLoss) -> list[str]:
    return [str(part) for part in (loss.epsilon, loss.delta, loss.rho)]


def _read_loss(parts: Sequence[str]) -> PrivacyLoss:
    return PrivacyLoss(*map(Fraction, parts))


def parts_of(reply: Reply) -> Iterator[Part]:
    """What is written before a reply: the rows of its answers that are many."""
    for answer in () if reply.answer is None else (reply.answer, *reply.answer.more):
        if isinstance(answer.rows, PackedRows):
            yield from (Part(reply.id, count, data) for count, data in answer.rows.pieces.written())


def _read_answer(fields: dict[str, Any], parts: Iterator[Part], account: str) -> Answer:
    rows = fields["rows"]
    return Answer(
        **{
            **fields,
            "columns": tuple((name, _type(type_)) for name, type_ in fields["columns"]),
            "rows": PackedRows(Pieces([(p.count, p.data) for p in islice(parts, rows)], account))
            if isinstance(rows, int)
            else [tuple(unpack(v) for v in row) for row in rows],
            "notices": tuple(map(_read_note, fields["notices"])),
            "warnings": _diagnostics(fields["warnings"]),
            "more": tuple(_read_answer(each, parts, account) for each in fields["more"]),
            "ends": tuple(fields["ends"]),
            "charged": _read_loss(fields["charged"]),
            "left": None if fields["left"] is None else _read_loss(fields["left"]),
        }
    )


def _write_reply(reply: Reply) -> dict[str, Any]:
    return {
        "id": reply.id,
        "answer": None if reply.answer is None else _write_answer(reply.answer),
        "refused": [_diagnostic(d) for d in reply.refused],
        "plan": reply.plan,
        "instead": reply.instead,
    }


def _read_reply(fields: dict[str, Any], parts: Sequence[Part] = (), account: str = "") -> Reply:
    answer = None if fields["answer"] is None else _read_answer(fields["answer"], iter(parts), account)
    return Reply(fields["id"], answer, _diagnostics(fields["refused"]), fields["plan"], fields["instead"])


def _read_table(fields: dict[str, Any]) -> CatalogueTable:
    return CatalogueTable(
        fields["name"],
        tuple(CatalogueColumn(**c) for c in fields["columns"]),
        tuple(fields["primary_key"]),
        tuple(tuple(u) for u in fields["unique"]),
        tuple(CatalogueKey(tuple(k["columns"]), k["table"], tuple(k["references"])) for k in fields["foreign_keys"]),
        tuple(fields["reads"]),
        fields["source"],
    )


def _without_values(catalogue: Catalogue) -> dict[str, Any]:
    """What a type itself lists stays behind: it may have been made of private rows."""
    found = asdict(catalogue)
    for table in found["tables"]:
        for column in table["columns"]:
            del column["enumerated"]
    return found


_WRITERS: Final[Mapping[type, Callable[[Any], Any]]] = {
    Ask: _write_ask,
    Reply: _write_reply,
    Part: lambda part: [part.id, part.count, b64encode(part.data).decode("ascii")],
    Charging: asdict,
    IsCharged: asdict,
    Draw: asdict,
    Waiting: asdict,
    Go: asdict,
    Ready: lambda ready: {"policy": ready.policy, "catalogue": _without_values(ready.catalogue)},
    Broken: lambda broken: [_diagnostic(d) for d in broken.refused],
}
_READERS: Final[Mapping[str, Callable[[Any], Message]]] = {
    "Ask": _read_ask,
    "Reply": _read_reply,
    "Part": lambda fields: Part(fields[0], fields[1], b64decode(fields[2])),
    "Charging": lambda fields: Charging(**fields),
    "IsCharged": lambda fields: IsCharged(**fields),
    "Draw": lambda fields: Draw(**fields),
    "Waiting": lambda fields: Waiting(**fields),
    "Go": lambda fields: Go(**fields),
    "Ready": lambda fields: Ready(
        fields["policy"], Catalogue(tuple(_read_table(t) for t in fields["catalogue"]["tables"]))
    ),
    "Broken": lambda fields: Broken(_diagnostics(fields)),
}
