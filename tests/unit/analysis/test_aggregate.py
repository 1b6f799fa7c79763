"""Aggregates that stay private: 2k, totals per unit, DISTINCT, and sums that cannot be exact."""

from __future__ import annotations

import pytest

from dpsql.numbers.cap import Unbounded
from dpsql.plan.nodes import JoinKind
from tests.unit.analysis.relations import at, facts_of, group, join, keys, refused, scan, stability
from tests.unit.planning import named


@pytest.mark.parametrize(
    ("by", "calls", "rows"),
    [
        ("k", ("count",), "6"),
        ("k v", ("count", "sum v"), "6"),
        ("k", (), "3"),
        ("", ("count",), "2"),
    ],
)
def test_rows_that_differ(by: str, calls: tuple[str, ...], rows: str) -> None:
    found = group(scan("log"), by, *calls)
    assert stability(found) == {"log": rows} and keys(found) == {frozenset(by.split())}
    assert facts_of(found).slots is None


def test_groups_of_groups() -> None:
    assert stability(group(group(scan("log"), "k", "count"), "count", "count")) == {"log": "12"}


def test_one_row_of_two_units() -> None:
    both = join(JoinKind.INNER, scan("log"), scan("notes"), "k")
    assert stability(both) == {"log": "15", "notes": "2"}
    assert stability(group(both, "", "count")) == {"log": "2", "notes": "2"}


def test_totals_per_unit() -> None:
    visits = scan("visits")
    found = group(visits, "id k", "count")
    facts = facts_of(found)
    assert stability(found) == {"person": "1"} and named(facts.ids, found) == {"id"}
    assert keys(found) == {frozenset({"id", "k"})} and str(facts.most_rows(facts.ids)) == "4"
    alone = group(visits, "id", "count", "sum v")
    assert keys(alone) == {frozenset({"id"})} and named(facts_of(alone).by_id, alone) == {"id", "count", "sum"}


def test_groups_of_several_people_are_no_relation() -> None:
    assert refused(group(scan("visits"), "k", "count")) == "DP110"
    assert refused(group(scan("tests"), "a b", "count")) == "DP110"  # not even by the way to their owner


def test_intervals() -> None:
    visits = scan("visits")
    found = group(visits, "id", "count", "sum v", "count distinct k")
    count, total, distinct = (facts_of(found).columns[c.column.uid].value for c in found.calls)
    assert (str(count.interval), str(total.interval), str(distinct.interval)) == ("[0, 4]", "[0, 36]", "[0, 4]")
    assert not count.nullable and total.nullable
    unlimited = group(scan("free"), "k", "count")
    (value,) = (facts_of(unlimited).columns[c.column.uid].value for c in unlimited.calls)
    assert value.interval.hi is None and value.interval.why[0].code == "DP202"


@pytest.mark.parametrize(
    ("calls", "code"), [(("sum d",), "DP201"), (("sum distinct v",), "DP101"), (("min l",), "DP106"), (("max d",), "")]
)
def test_calls(calls: tuple[str, ...], code: str) -> None:
    assert refused(group(scan("log"), "k", *calls)) == code


def test_lists_are_no_keys() -> None:
    assert refused(group(scan("log"), "l", "count")) == "DP301"


def test_frequencies_count_no_nulls() -> None:
    """k may be NULL in any number of rows: two rows of a k are no bound on the rows of its groups."""
    log = scan("log")
    value = facts_of(found := group(log, "k", "count")).columns[at(found, "count").uid].value
    assert value.interval.hi is None
    cap = facts_of(log).most_rows(frozenset({at(log, "k").uid}))
    assert cap is not None and not isinstance(cap, Unbounded)
