"""Texts that are small to write and large to plan: what planning them takes is counted, and has a bound.

Calls are counted as Python's profiler sees them, in Python and in C, the same number on every machine: twice the text
takes about twice as many.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest

import dpsql
from dpsql.release.result import unique_names
from tests.attacks.conftest import Attack
from tests.unit.checking.samples import policy


def calls(action: Callable[[], object]) -> int:
    """How many functions are called meanwhile."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


def checked(sql: str) -> list[str]:
    """The codes of what `dpsql check` finds."""
    return [finding.code for finding in dpsql.check(sql, policy())]


def nested(first: str, step: str, levels: int, last: str) -> str:
    """WITH queries that each read the one before, `{}`."""
    queries = [f"t0 AS ({first})", *(f"t{i} AS ({step.format(f't{i - 1}')})" for i in range(1, levels + 1))]
    return f"WITH {', '.join(queries)} {last.format(f't{levels}')}"


DOUBLED = {
    "joined": ("SELECT 1 AS a", "SELECT l.a FROM {0} l JOIN {0} r ON l.a = r.a"),
    "crossed": ("SELECT 1 AS a", "SELECT l.a FROM {0} l, {0} r"),
    "united": ("SELECT 1 AS a", "SELECT a FROM {0} UNION ALL SELECT a FROM {0}"),
    "constants": ("VALUES (1)", "SELECT l.col0 FROM {0} l JOIN {0} r USING (col0)"),
}


@pytest.mark.parametrize(("first", "step"), DOUBLED.values(), ids=list(DOUBLED))
def test_probe_doubled_queries_take_time_by_their_leaves(first: str, step: str) -> None:
    """Joins were ordered again for every join above them: nine of these took half a minute, twelve would take hours."""
    texts = [nested(first, step, levels, "SELECT * FROM {}") for levels in (4, 5, 6, 7)]
    taken = [calls(partial(checked, sql)) for sql in texts]
    assert all(b < 2.5 * a for a, b in pairwise(taken)), taken


@pytest.mark.parametrize(("first", "step"), DOUBLED.values(), ids=list(DOUBLED))
@pytest.mark.parametrize("levels", [10, 12, 40])
def test_probe_doubled_queries_are_refused_by_their_leaves(attack: Attack, first: str, step: str, levels: int) -> None:
    sql = nested(first, step, levels, "SELECT * FROM {}")
    with pytest.raises(dpsql.Rejected) as refused:
        attack.con.sql(sql).run(epsilon=1)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "DP101" and "more than 1,000 relations" in diagnostic.message
    assert diagnostic.span is not None and sql[diagnostic.span.start : diagnostic.span.end] in first
    assert "use each of them fewer times" in diagnostic.help[0]


def test_probe_equal_names_are_numbered_in_one_walk() -> None:
    """2,000 columns of one name took 56 seconds: each number was tried again for each of them, in a list."""

    class Name(str):
        looks = 0

        def __eq__(self, other: object) -> bool:
            Name.looks += 1
            return str.__eq__(self, other)

        def __hash__(self) -> int:
            Name.looks += 1
            return str.__hash__(self)

    names = [Name("n") for _ in range(2000)]
    assert unique_names(names) == ["n", *(f"n_{i}" for i in range(1, 2000))]
    assert Name.looks < 20 * len(names)
