"""What crosses between front and worker is what was sent, and nothing but values."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import pytest

from dpsql.core.ir.types import BIGINT, NULL, VARCHAR, decimal, list_of
from dpsql.core.policy.catalogue import Catalogue, CatalogueColumn, CatalogueKey, CatalogueTable
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.note import Note, Rank, Topic
from dpsql.faces.server.packed_values import pack, unpack
from dpsql.faces.server.statements import Answer, Ceilings, StatementSettings
from dpsql.faces.server.workers.worker_messages import (
    Ask,
    Broken,
    Go,
    Message,
    Ready,
    Reply,
    Waiting,
    read,
    write,
)

VALUES = [
    None, True, False, 0, -(2**200), 0.1, -0.0, 5e-324, math.inf, "", "ä\ud800\n\0", b"\0\xff",
    Decimal("0.10"), Decimal("-1E+30"), Decimal("NaN"), dt.date(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.time(1, 2, 3, 4), dt.timedelta(days=-1, microseconds=1),
    UUID(int=7), [1, [None, "x"], Decimal(2)],
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_as_it_went(value: object) -> None:
    found = unpack(json.loads(json.dumps(pack(value))))  # type: ignore[arg-type]
    assert type(found) is type(value) and repr(found) == repr(value)


def test_what_is_no_value_of_sql_does_not_cross() -> None:
    for odd in (object(), {"float": "1"}, 1j):
        with pytest.raises(ValueError, match="no value"):
            pack(odd)  # type: ignore[arg-type]


REFUSAL = Diagnostic("DP103", "m", Source("SELECT x", "q"), Span(7, 8), "l", ("h",), ("n",), "warning")
ASK = Ask(
    "r1", "run", "ana", "SELECT $1", (Decimal("1.5"), None), StatementSettings("0.1", intervals=True),
    Ceilings(per_day="1"),
    dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "json",
)  # fmt: skip
ANSWER = Answer(
    (("n", BIGINT), ("d", decimal(38, 2)), ("l", list_of(VARCHAR)), ("z", NULL)),
    [(2**90, Decimal("1.50"), ["a"], None)],
    (Note("ε 0.1", Rank.SOURCE, Topic.PRICE), Note("rows are left out", Rank.DANGER)), (REFUSAL,), "ε 0.1", "hash",
    "entry", "SHOW", charged=PrivacyLoss(Fraction(1, 3), rho=Fraction(2)), left=PrivacyLoss(Fraction(1, 7)),
)  # fmt: skip
TABLE = CatalogueTable(
    "t", (CatalogueColumn("c", "BIGINT", False),), ("c",), (("c", "d"),), (CatalogueKey(("c",), "u", ("v",)),), ("t",),
    "s",
)  # fmt: skip


@pytest.mark.parametrize(
    "message",
    [ASK, Reply("r1", ANSWER, (), "p"), Reply("r1", None, (REFUSAL,)), Reply("r1"), Waiting("r1"), Go("r1"),
     Ready("h", Catalogue((TABLE,))), Broken((REFUSAL,))],
)  # fmt: skip
def test_a_message_comes_as_it_went_in_one_line(message: Message) -> None:
    line = write(message)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert read(line) == message


def test_notes_keep_their_rank_and_topic() -> None:
    reply = read(write(Reply("r1", ANSWER)))
    assert isinstance(reply, Reply) and reply.answer is not None
    told = [(note.rank, note.topic) for note in reply.answer.notices]
    assert told == [(Rank.SOURCE, Topic.PRICE), (Rank.DANGER, None)]


def test_what_a_type_lists_stays_behind() -> None:
    """The texts of an ENUM may have been made of private rows."""
    column = CatalogueColumn("c", "ENUM", True, ("secret",))
    line = write(Ready("h", Catalogue((CatalogueTable("t", (column,)),))))
    assert b"secret" not in line


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"{}", b"[]", b"null", b'{"Ask":{}}', b'{"Else":{}}', b'{"Go":{"id":"a","more":1}}', b"\x80",
     b'{"Reply":{"id":"a","answer":null,"refused":[{}],"plan":""}}', b"[" * 100_000],
)  # fmt: skip
def test_anything_else_is_no_message(line: bytes) -> None:
    with pytest.raises(ValueError):  # of json, or ours
        read(line)
