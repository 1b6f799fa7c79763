"""Whatever the planner guesses, no unit moves or loses more than the fixtures cost, over their own policies.

The guesses of tests/support/falsified.py; some of the fixtures each time, and all of them by `make exhaustive`.
"""

from __future__ import annotations

from itertools import islice

import pytest

from tests.deep.core.analysis.test_whole_statements import all_groups_kept, filters_back, rows_unlimited
from tests.fixtures.cases import Case, policy
from tests.support.falsified import GUESSES, falsify
from tests.support.fixture_worlds import attacked_fixtures, fixture_cases
from tests.support.whole_statements import CRASHES, Attacked


def _some(seed: int, most: int | None = None) -> list[Case]:
    return list(islice(fixture_cases(seed), most))


def _attacked(cases: list[Case], seed: int) -> Attacked:
    policies = {name: policy(name) for name in {case.settings["policy"] for case in cases}}
    return attacked_fixtures(cases, seed, policies, CRASHES)


def _unbroken(found: Attacked) -> None:
    wrong = found.problems + found.failed
    assert not wrong, "\n\n".join(wrong[:3])
    assert found.statements > 3 * found.refused.total()
    assert found.moved > 0.2 * found.compared and found.tally.equal > 0.05 * found.tally.pairs


def test_fixtures_move_no_more_than_they_cost() -> None:
    _unbroken(_attacked(_some(1, 100), 1))


@pytest.mark.parametrize("guess", [*GUESSES, "all"])
def test_a_guess_moves_no_price(guess: str, monkeypatch: pytest.MonkeyPatch) -> None:
    falsify(monkeypatch, 1, GUESSES if guess == "all" else [guess])
    _unbroken(_attacked(_some(2, 30), 2))


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(3, 8))
@pytest.mark.parametrize("guess", ["none", *GUESSES, "all"])
def test_guesses_move_no_price_thoroughly(guess: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    falsify(monkeypatch, seed, GUESSES if guess == "all" else [] if guess == "none" else [guess])
    _unbroken(_attacked(_some(seed), seed))


@pytest.mark.parametrize(
    ("guess", "without"),
    [("disjoint", filters_back), ("functions of the id", all_groups_kept), ("rows", rows_unlimited)],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_form_that_is_missing_is_found(guess: str, without: object, monkeypatch: pytest.MonkeyPatch) -> None:
    falsify(monkeypatch, 1, [guess])
    assert callable(without)
    without(monkeypatch)
    cases = fixture_cases(1)
    while some := list(islice(cases, 60)):
        if _attacked(some, 1).problems:
            return
    raise AssertionError("the missing form was not found")
