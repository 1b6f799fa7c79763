"""Batches and summaries over a prepared table: the numbers before noise and answers of the same table as it is."""

from __future__ import annotations

from pathlib import Path

import dpsql
from dpsql.service.preparing.prepare import prepare
from tests.support.board_elsewhere import MEMBERS, answers, exactly
from tests.support.summary_board import POLICY, make_board

LIMIT = "max_rows_per_unit: 4"


def shape(policy: Path) -> str:
    """How a batch bounds what one person adds."""
    with dpsql.connect(policy, ledger=":memory:", analyst="ana") as con:
        return con.batch(MEMBERS).plan(epsilon=1).releases[0].statements[0].shape


def test_a_prepared_table_gives_the_same(tmp_path: Path) -> None:
    """A limit that leaves no row out: which rows are left out, a preparation draws for itself."""
    text = POLICY.replace("max_rows_per_unit: 3", LIMIT)
    text = text.replace("max_groups_per_unit: 1\n    max_rows_per_group: 1", LIMIT)
    plain = make_board(tmp_path / "plain", text)
    board = make_board(tmp_path / "prepared", text.replace(LIMIT, f"{LIMIT}\n    prepared: true"))
    prepare(board)
    assert (shape(board), shape(plain)) == ("direct", "two-level, weights per id")
    assert exactly(board) == exactly(plain)
    assert answers(board) == answers(plain)
