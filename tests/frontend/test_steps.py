"""Texts that are small to write and large to plan: what planning them takes is counted, and has a bound.

Calls are counted as Python's profiler sees them, in Python and in C, the same number on every machine: twice the text
takes about twice as many.
"""

from __future__ import annotations

import pytest

import dpsql
from dpsql.answers.results.answer import unique_names
from dpsql.core.ir import step_count as steps
from dpsql.diagnostics.errors import TooLarge
from dpsql.functions.text import patterns
from tests.support.checked_files import policy
from tests.support.checklist_clinic import Attack


def checked(sql: str) -> list[str]:
    """The codes of what `dpsql check` finds."""
    return [finding.code for finding in dpsql.check(sql, policy())]


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


def test_probe_too_many_steps_are_refused_by_name(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT diag, COUNT(*) AS n FROM patients GROUP BY diag"
    monkeypatch.setattr(steps, "MOST", 20)
    with pytest.raises(TooLarge, match="planning it would take more than 20 steps") as refused:
        attack.con.sql(sql).run(epsilon=1)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "DP101" and diagnostic.help


def test_probe_patterns_are_matched_in_linear_time() -> None:
    """Each % tried every place for all that follow it: a constant LIKE held the interpreter's lock for ever.

    A group that does not look back cannot: the expression has no other repetition but the one before the last piece.
    """
    expression = patterns._expression("%a%a_%b%", "")
    assert expression == "(?>.*?a)(?>.*?a.)(?>.*?b).*"
    assert checked(f"SELECT lpad('', 1000, 'a') LIKE '{'%a' * 490}%b'") == []


def test_probe_an_interrupt_leaves_no_steps_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A count that was never ended is nobody's: else each later text would add to it, until all are refused."""
    monkeypatch.setattr(steps, "MOST", 1_000)
    with monkeypatch.context() as m:
        m.setattr(steps, "end", lambda: None)
        for _ in range(20):
            assert checked("SELECT COUNT(*) FROM patients") == []
    assert checked("SELECT COUNT(*) FROM patients") == []
    steps.take(1_001)  # nobody counts
