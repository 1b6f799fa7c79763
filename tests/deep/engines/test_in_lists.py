"""Lists that are joined, of every pair of what is looked for and what the list has."""

from __future__ import annotations

import pytest

from tests.engines.test_in_lists import (
    FEW,
    PAIRS,
    Database,
    Pair,
    as_written,
    differences,
    each_row_is_on_its_own,
    joined,
    some_of_it_fails,
)

__all__ = ["as_written", "joined"]

OTHERS = [pair for pair in PAIRS if pair not in FEW]


@pytest.mark.parametrize("pair", OTHERS, ids=" in ".join)
def test_a_list_that_is_joined_has_the_rows_of_one_that_is_written(
    pair: Pair, joined: Database, as_written: Database
) -> None:
    assert differences(joined, as_written, [pair]) == []


@pytest.mark.parametrize("pair", OTHERS, ids=" in ".join)
def test_one_row_more_changes_no_other_row(pair: Pair, joined: Database) -> None:
    each_row_is_on_its_own(pair, joined)


def test_some_of_it_fails_and_much_does_not(joined: Database) -> None:
    some_of_it_fails(joined, PAIRS, fail=30, differ=100, join=60)
