"""Whole statements on a real PostgreSQL: no unit moves or loses more than they are priced at, and no statement fails.

The attack of tests/deep/core/analysis/test_whole_statements.py, which says what it does, over the same seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.deep.core.analysis.test_whole_statements import (
    all_groups_kept,
    all_rows_unlimited,
    groups_unlimited,
    rows_unlimited,
    values_unlimited,
)
from tests.engines_elsewhere.postgres.neighbour_store import PostgresStore
from tests.engines_elsewhere.postgres.servers import Server
from tests.support.falsified import GUESSES, falsify
from tests.support.whole_statements import CRASHES, Attacked, attacked


@pytest.fixture
def store(one_server: Server) -> Iterator[PostgresStore]:
    name = one_server.new_database()
    found = PostgresStore(one_server, name)
    yield found
    found.close()
    one_server.drop(name)


def _unbroken(found: Attacked, comparisons: int) -> None:
    wrong = found.problems + found.failed
    assert not wrong, "\n\n".join(wrong[:3])
    assert found.compared >= comparisons and found.statements > found.refused.total()
    assert found.tally.equal > 0.05 * found.tally.pairs


def test_nothing_moves_beyond_its_price(store: PostgresStore) -> None:
    _unbroken(attacked(range(12), store=store), 300)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(8))
def test_nothing_moves_beyond_its_price_thoroughly(store: PostgresStore, part: int) -> None:
    _unbroken(attacked(range(30_000 + part * 50, 30_050 + part * 50), store=store), 2_000)


def test_false_guesses_move_no_price(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    falsify(monkeypatch, 5)
    _unbroken(attacked(range(500, 508), store=store, forgiven=CRASHES), 150)


@pytest.mark.exhaustive
@pytest.mark.parametrize("guess", [*GUESSES, "all"])
def test_false_guesses_move_no_price_thoroughly(
    store: PostgresStore, guess: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    falsify(monkeypatch, 6, GUESSES if guess == "all" else [guess])
    _unbroken(attacked(range(31_000, 31_020), store=store, forgiven=CRASHES), 500)


TWINS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], int]] = {
    "M rows of a group": (rows_unlimited, 4),
    "C rows of an id": (all_rows_unlimited, 2),
    "G groups, by weights": (groups_unlimited, 12),
    "G groups, by keeping them": (all_groups_kept, 5),
    "V values": (values_unlimited, 8),
}


@pytest.mark.parametrize("twin", TWINS)
def test_a_form_that_is_missing_is_found(store: PostgresStore, twin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without, seed = TWINS[twin]
    without(monkeypatch)
    assert attacked(range(seed, seed + 40), until=1, store=store).problems
