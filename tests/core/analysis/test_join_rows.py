"""Joins of private tables by frequency."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsql.core.analysis.rules.join_by_frequency import counted_by_rows
from dpsql.core.ir.nodes import Filter, JoinKind, Truncate
from dpsql.diagnostics.errors import Rejected
from tests.support.plan_nodes import at, facts_of, filled, join, keys, refused, scan, stability

# log: 3 rows differ, at most 2 of a k; notes: 1 and 5.


@pytest.mark.parametrize(
    ("kind", "log", "notes"),
    [
        (JoinKind.INNER, "15", "2"),
        (JoinKind.LEFT, "15", "4"),
        (JoinKind.FULL, "30", "4"),
        (JoinKind.SEMI, "3", "2"),
        (JoinKind.ANTI, "3", "2"),
    ],
)
def test_rows_that_differ(kind: JoinKind, log: str, notes: str) -> None:
    found = join(kind, scan("log"), scan("notes"), "k")
    assert stability(found) == {"log": log, "notes": notes}
    assert facts_of(found).ids == frozenset() and facts_of(found).replaced_rows is None


def test_a_table_joined_with_itself() -> None:
    assert stability(join(JoinKind.INNER, scan("log"), scan("log"), "k")) == {"log": "12"}
    found = join(JoinKind.INNER, scan("log"), scan("log"), "r")
    assert stability(found) == {"log": "6"} and frozenset({"r"}) in keys(found)


def test_more_equalities_than_the_frequency_needs() -> None:
    assert stability(join(JoinKind.INNER, scan("log"), scan("notes"), "k", "v")) == {"log": "15", "notes": "2"}


def test_single_rows_and_rows_of_people() -> None:
    """A person has at most four visits, each of which meets at most two rows of the log."""
    found = join(JoinKind.INNER, scan("log"), scan("visits"), "k=a", "r=b")
    assert stability(found) == {"log": "3", "person": "4"}
    assert stability(join(JoinKind.SEMI, scan("visits"), scan("log"), "a=r", "b=k")) == {"person": "4", "log": "3"}


@pytest.mark.parametrize(("left", "right"), [("free", "log"), ("log", "free"), ("free", "free")])
def test_keys_that_may_repeat_without_limit(left: str, right: str) -> None:
    assert refused(join(JoinKind.INNER, scan(left), scan(right), "k")) == "DP230"


def test_only_the_left_side_of_a_semi_join_needs_a_frequency() -> None:
    assert refused(join(JoinKind.SEMI, scan("log"), scan("free"), "k")) == ""
    assert refused(join(JoinKind.SEMI, scan("free"), scan("log"), "k")) == "DP230"


def test_people_of_any_number_of_rows() -> None:
    people = scan("people")
    assert stability(join(JoinKind.INNER, people, scan("notes"), "id=k")) == {"person": "5", "notes": "1"}
    assert refused(join(JoinKind.INNER, scan("tests"), scan("notes"), "k")) == "DP230"


def test_different_neighbours() -> None:
    assert refused(join(JoinKind.INNER, scan("sized"), scan("log"), "k")) == "DP230"
    sized = scan("sized")
    assert refused(join(JoinKind.INNER, Filter(sized, filled(sized, "k")), scan("sized"), "k")) == "DP230"
    other = scan("sized")
    one_each, another = (Truncate(s, (at(s, "k"),), 1) for s in (sized, other))
    assert refused(join(JoinKind.INNER, one_each, another, "k")) == ""
    assert refused(join(JoinKind.INNER, one_each, scan("log"), "k")) == "DP230"


def test_rows_of_nobody_are_not_counted_by_their_owner() -> None:
    """A promise of four rows for each id says nothing of the rows whose id is NULL."""
    facts = facts_of(visits := scan("visits"))
    assert {unit: str(cap) for unit, cap in counted_by_rows(facts).stability.items()} == {"person": "4"}
    id_ = at(visits, "id").uid
    columns = {
        **facts.columns,
        id_: replace(facts.columns[id_], value=replace(facts.columns[id_].value, nullable=True)),
    }
    with pytest.raises(Rejected) as refusal:
        counted_by_rows(replace(facts, columns=columns))
    assert refusal.value.diagnostics[0].code == "DP230"
