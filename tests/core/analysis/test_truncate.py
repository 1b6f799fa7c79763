"""Truncation makes a frequency true and costs stability; under an id, only per id."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsql.core.ir.expressions import Call, Literal
from dpsql.core.ir.nodes import Equality, JoinKind, Truncate
from dpsql.core.ir.types import INTEGER
from tests.support.plan_nodes import at, facts_of, join, refused, scan, stability


@pytest.mark.parametrize(("rows", "drop", "claim"), [(1, False, "6"), (5, False, "6"), (1, True, "3"), (5, True, "15")])
def test_rows_that_differ(rows: int, drop: bool, claim: str) -> None:
    log = scan("log")
    cut = Truncate(log, (at(log, "v"),), rows, drop)
    assert stability(cut) == {"log": claim}
    assert str(facts_of(cut).most_rows(frozenset({at(log, "v").uid}))) == str(rows)


def test_the_better_of_two_limits() -> None:
    log = scan("log")
    assert str(facts_of(Truncate(log, (at(log, "k"),), 9)).most_rows(frozenset({at(log, "k").uid}))) == "2"


@pytest.mark.parametrize(("drop", "claim"), [(False, "4"), (True, "6")])
def test_partners_of_a_left_join(drop: bool, claim: str) -> None:
    """One row pushed out and one that takes its place, or τ dropped and one padded row: for two rows on the left."""
    free, log = scan("free"), scan("log")
    cut = Truncate(free, (at(free, "k"),), 2, drop)
    assert stability(join(JoinKind.LEFT, log, cut, "k"))["free"] == claim
    assert stability(join(JoinKind.LEFT, log, scan("notes"), "k"))["notes"] == "4"


def test_under_an_id() -> None:
    visits = scan("visits")
    assert stability(Truncate(visits, (at(visits, "id"), at(visits, "k")), 1)) == {"person": "1"}
    assert refused_of(Truncate(visits, (at(visits, "k"),), 1))
    tests = scan("tests")
    assert refused_of(Truncate(tests, (at(tests, "a"),), 1))


def refused_of(node: Truncate) -> bool:
    from dpsql.diagnostics.errors import Rejected

    try:
        facts_of(node)
    except Rejected as refusal:
        return refusal.diagnostics[0].code == "DP220"
    return False


def test_replaced_rows_no_longer_correspond() -> None:
    sized = scan("sized")
    facts = facts_of(Truncate(sized, (at(sized, "k"),), 1))
    assert (
        facts.replaced_rows is None
        and facts.size is None
        and stability(Truncate(sized, (at(sized, "k"),), 1)) == {"sized": "4"}
    )
    assert refused(sized) == ""


def test_a_computed_key_finds_no_truncated_partners() -> None:
    """Of the columns that are looked up by, one is another one: a row pushed out and its successor count apart."""
    cut = Truncate(free := scan("free"), (at(free, "k"),), 2)
    found = join(JoinKind.LEFT, log := scan("log"), cut, "k")
    more = Equality(at(log, "v"), Call("add", (at(free, "r"), Literal(1, INTEGER)), INTEGER))
    assert stability(found)["free"] == "4"
    assert stability(replace(found, equalities=(*found.equalities, more)))["free"] == "8"
