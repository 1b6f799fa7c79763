"""Rows in compressed pieces: the same rows, at any place and in any order, and bytes that are counted."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import random
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest

from dpsql.core.ir.types import BIGINT, VARCHAR
from dpsql.core.policy.catalogue import Catalogue
from dpsql.faces.server import packed_rows
from dpsql.faces.server.packed_rows import FEW, PackedRows, Pieces, TooManyBytes, packed, pieces_of
from dpsql.faces.server.statements import Answer
from dpsql.faces.server.workers.worker_link import Streams
from dpsql.faces.server.workers.worker_messages import Ask, Part, Ready, Reply, parts_of, read, write
from tests.faces.server.test_messages import ASK

ROWS = [(i, f"text {i}" * 3, Decimal(i), None, dt.date(2024, 1, 1)) for i in range(9_000)]


def cut(rows: Any) -> PackedRows:
    found = packed(rows)
    assert isinstance(found, PackedRows)
    return found


def test_rows_are_the_same_at_any_place() -> None:
    rows = cut(ROWS)
    assert len(rows.pieces.written()) > 3
    assert len(rows) == len(ROWS) and list(rows) == ROWS
    random.seed(1)
    for _ in range(200):
        number = random.randrange(-len(ROWS), len(ROWS))
        assert rows[number] == ROWS[number]
        start, end, step = random.randrange(9_500), random.randrange(9_500), random.choice([None, 1, -1, 7])
        assert list(rows[start:end:step]) == ROWS[start:end:step]
        assert list(rows[start:end][::-1]) == ROWS[start:end][::-1]
    with pytest.raises(IndexError):
        rows[len(ROWS)]


def test_few_rows_stay_as_they_are_and_many_bytes_are_refused() -> None:
    assert packed(ROWS[:FEW]) == ROWS[:FEW] and packed([]) == []
    for rows in ([("x" * 9_000_000,)] * 2, [("x" * 100_000,)] * 200, [(i,) for i in range(3_000_000)]):
        with pytest.raises(TooManyBytes):
            packed(rows)


def test_one_piece_is_unpacked_at_a_time() -> None:
    rows = cut(ROWS)
    seen: list[int] = []
    loads = packed_rows.json.loads

    def counted(text: Any) -> Any:
        seen.append(len(text))
        return loads(text)

    with patch.object(packed_rows.json, "loads", counted):
        assert sum(1 for _ in rows) == len(ROWS)
    assert len(seen) == len(rows.pieces.written()) and max(seen) < packed_rows.PIECE + 1_000


def held_of(account: str) -> int:
    gc.collect()
    return sum(pieces.held for pieces in list(Pieces.alive) if pieces.account == account)


def test_what_is_held_is_counted_until_it_is_let_go() -> None:
    rows = PackedRows(Pieces(list(pieces_of(ROWS)), "zoe"))
    view = rows[10:20]
    held = rows.pieces.held
    assert held_of("zoe") == held and held * 4 < sum(len(str(row)) for row in ROWS)
    del rows
    assert held_of("zoe") == held and len(view) == 10
    del view
    assert held_of("zoe") == 0


def test_who_holds_much_gets_no_further_answer() -> None:
    piece = (1, b"x" * (packed_rows.MOST_OF_ACCOUNT // 4))
    held = [Pieces([piece], "ana") for _ in range(4)]
    assert not Pieces.crowded_for("ana")
    held.append(Pieces([piece], "ana"))
    assert Pieces.crowded_for("ana") and not Pieces.crowded_for("ben")
    held += [Pieces([piece], f"other{i}") for i in range(16)]
    assert Pieces.crowded_for("ben")
    del held
    gc.collect()
    assert not Pieces.crowded_for("ana")


@pytest.mark.parametrize(
    ("rows", "width", "is_counted"),
    [
        (0, 0, False),
        (1, 9, False),
        (64, 100, False),
        (65, 1, True),
        (64, 2_000, True),
        (1, packed_rows.PIECE + 1, True),
    ],
)
def test_few_rows_are_counted_as_well_where_they_are_long(rows: int, width: int, is_counted: bool) -> None:
    """A cursor of one row could hold megabytes that nobody counted, and a connection has fifty of them."""
    given = packed([("x" * width,)] * rows)
    assert isinstance(given, PackedRows) == is_counted and list(given) == [("x" * width,)] * rows
    own = sum(len(text) for row in given for text in row)
    assert is_counted or own <= packed_rows.PIECE


def test_a_long_reply_is_read_in_pieces_between_which_others_have_their_turn() -> None:
    """Also those of a batch, each its own. No line is longer than a piece."""
    columns = tuple((f"c{i}", VARCHAR) for i in range(5))
    more = (Answer(columns, cut(ROWS[:3_000])), Answer((("n", BIGINT),), [(1,)]), Answer(columns, cut(ROWS[3_000:])))
    reply = Reply("q", Answer(columns, cut(ROWS), more=more), plan="p")
    lines = [write(message) for message in (*parts_of(reply), reply)]
    assert max(map(len, lines)) < 2 * packed_rows.PIECE and isinstance(read(lines[0]), Part)
    turns: list[int] = []

    async def asked() -> Reply:
        reader = asyncio.StreamReader(limit=2**20)
        reader.feed_data(write(Ready("h", Catalogue(()))))

        class Sink:
            def write(self, data: bytes) -> None:
                for line in lines:
                    reader.feed_data(line)

            async def drain(self) -> None:
                pass

        sink: Any = Sink()
        worker = await Streams.opened(reader, sink, None)

        async def other() -> None:
            while True:
                turns.append(1)
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        ask = Ask(**{**{name: getattr(ASK, name) for name in Ask.__slots__}, "id": "q", "account": "max"})
        found = await worker.ask(ask)
        task.cancel()
        assert isinstance(found, Reply)
        return found

    found = asyncio.run(asked()).answer
    assert found is not None and list(found.rows) == ROWS
    assert [list(each.rows) for each in found.more] == [ROWS[:3_000], [(1,)], ROWS[3_000:]]
    assert len(turns) >= len(lines) - 1
    many = [each.rows for each in (found, *found.more) if isinstance(each.rows, PackedRows)]
    assert len(many) == 3 and held_of("max") == sum(rows.pieces.held for rows in many)
