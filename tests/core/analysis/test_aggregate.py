"""Aggregates that stay private: 2k, totals per unit, DISTINCT, and sums that cannot be exact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsql.core.ir.expressions import Call, Cast, Literal
from dpsql.core.ir.nodes import JoinKind
from dpsql.core.ir.types import INTEGER, parse_type
from dpsql.core.numbers.cap import Unbounded
from tests.support.plan_nodes import at, facts_of, group, join, keys, refused, scan, stability
from tests.support.planning import named


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
    assert facts_of(found).replaced_rows is None


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
    ("calls", "code"),
    [
        (("sum d",), "DP201"),
        (("sum distinct v",), ""),
        (("stddev_pop d",), "DP201"),
        (("min l",), "DP106"),
        (("max d",), ""),
    ],
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


def test_groups_of_one_row_are_not_the_largest() -> None:
    """A person's total of numbers of at least 5 may be that of one row, or of none."""
    found = group(visits := scan("visits"), "id", "sum v")
    clipped = Call("clip", (at(visits, "v"), Literal(5, INTEGER), Literal(9, INTEGER)), INTEGER)
    found = replace(found, calls=(replace(found.calls[0], arg=clipped),))
    assert str(facts_of(found).columns[found.calls[0].column.uid].value.interval) == "[0, 36]"


@pytest.mark.parametrize(("type_", "code"), [("decimal(18,8)", ""), ("decimal(20,10)", "DP201")])
def test_sums_of_decimals_fit_by_their_units(type_: str, code: str) -> None:
    """2³¹ in units of 10⁻¹⁰ is above 2⁶⁴: 2⁶³ rows of them would not fit 128 bits."""
    held = parse_type(type_)
    assert held is not None
    found = group(log := scan("log"), "k", "sum v")
    call = replace(found.calls[0], arg=Cast(at(log, "r"), held))
    assert refused(replace(found, calls=(call,))) == code


def test_groups_of_replaced_rows_do_not_correspond() -> None:
    facts = facts_of(group(scan("sized"), "k", "count"))
    assert facts.replaced_rows is None and facts.size is None
