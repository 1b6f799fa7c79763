"""Whatever the planner guesses, no unit moves or loses more than a statement is priced at, and no statement fails.

NULLs, finite numbers, intervals and ranges of values, how many there are, which conditions exclude each other, which
columns are functions of the id, how many rows it has, whether every row counts: each guess is falsified at random, and
all at once, over random statements. Where a form is missing that makes a guess true, it is found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from tests.deep.core.analysis.test_whole_statements import (
    all_groups_kept,
    all_rows_unlimited,
    filters_back,
    rows_that_add_nothing,
    unclipped,
    values_unlimited,
)
from tests.support.falsified import GUESSES, falsify
from tests.support.whole_statements import CRASHES, Attacked, attacked


def _attacked(seeds: range, seed: int, guesses: Collection[str], m: pytest.MonkeyPatch, until: int = 10**9) -> Attacked:
    falsify(m, seed, guesses)
    return attacked(seeds, until, forgiven=CRASHES)


def _unbroken(found: Attacked) -> None:
    wrong = found.problems + found.failed
    assert not wrong, "\n\n".join(wrong[:3])
    assert found.statements > 2 * found.refused.total() and found.tally.equal > 0.05 * found.tally.pairs


@pytest.mark.parametrize("guess", GUESSES)
def test_a_guess_moves_no_price(guess: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _unbroken(_attacked(range(300, 308), 1, [guess], monkeypatch))


def test_all_guesses_together_move_no_price(monkeypatch: pytest.MonkeyPatch) -> None:
    _unbroken(_attacked(range(24), 2, GUESSES, monkeypatch))


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("guess", [*GUESSES, "all"])
def test_guesses_move_no_price_thoroughly(guess: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    guesses = GUESSES if guess == "all" else [guess]
    _unbroken(_attacked(range(20_000 + 30 * part, 20_030 + 30 * part), part, guesses, monkeypatch))


# --- twins ------------------------------------------------------------------------------------------------------------

TWINS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], range]] = {
    "nullable": (rows_that_add_nothing, range(3, 99, 8)),
    "intervals": (unclipped, range(2, 40)),
    "disjoint": (filters_back, range(7, 40)),
    "values": (values_unlimited, range(3, 40)),
    "rows": (all_rows_unlimited, range(40)),
    "functions of the id": (all_groups_kept, range(5, 60)),
}


@pytest.mark.parametrize("guess", TWINS)
def test_a_form_that_is_missing_is_found(guess: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without, seeds = TWINS[guess]
    without(monkeypatch)
    assert _attacked(seeds, 3, [guess], monkeypatch, until=1).problems
