"""Set operations: rows add up, ids survive at the same position only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsql.core.ir.nodes import Filter, SetKind
from dpsql.core.ir.types import VARCHAR
from tests.support.plan_nodes import combine, facts_of, filled, keys, refused, scan, stability
from tests.support.planning import named

ALL = [(kind, every) for kind in SetKind for every in (False, True)]


@pytest.mark.parametrize(("kind", "every"), ALL)
def test_rows_add_up(kind: SetKind, every: bool) -> None:
    assert stability(combine(kind, every, scan("log"), scan("notes"), "k", "v")) == {"log": "3", "notes": "1"}
    assert stability(combine(kind, every, scan("log"), scan("log"), "k")) == {"log": "6"}
    assert stability(combine(kind, every, scan("log"), scan("one"), "k")) == {"log": "3"}
    assert stability(combine(kind, every, scan("one"), scan("log"), "k")) == {"log": "3"}
    found = combine(kind, every, scan("log"), scan("notes"), "k", "v")
    assert keys(found) == (set() if every else {frozenset({"k", "v"})})


@pytest.mark.parametrize(("kind", "every"), ALL)
def test_ids_at_the_same_position(kind: SetKind, every: bool) -> None:
    found = combine(kind, every, scan("people"), scan("visits"), "id", "k")
    assert stability(found) == {"person": "1"} and named(facts_of(found).ids, found) == {"id"}


@pytest.mark.parametrize(("kind", "every"), ALL)
def test_ids_elsewhere(kind: SetKind, every: bool) -> None:
    assert refused(combine(kind, every, scan("people"), scan("visits"), "id=k", "k=id")) == "DP220"
    assert refused(combine(kind, every, scan("people"), scan("visits"), "k")) == "DP220"


@pytest.mark.parametrize(("kind", "every"), ALL)
def test_a_converted_id_is_none(kind: SetKind, every: bool) -> None:
    """The binder writes conversions as casts, which are no bare columns; a plan without one is refused all the same."""
    found = combine(kind, every, scan("people"), scan("visits"), "id", "k")
    own, *others = found.columns
    text = replace(own, column=replace(own.column, type=VARCHAR))
    assert refused(found) == "" and refused(replace(found, columns=(text, *others))) == "DP220"


@pytest.mark.parametrize(
    ("kind", "first", "code"),
    [
        (SetKind.UNION, "people", "DP220"),
        (SetKind.UNION, "one", "DP220"),
        (SetKind.INTERSECT, "people", ""),
        (SetKind.INTERSECT, "one", ""),
        (SetKind.EXCEPT, "people", ""),
        (SetKind.EXCEPT, "one", "DP220"),
    ],
)
def test_public_rows_beside_those_of_ids(kind: SetKind, first: str, code: str) -> None:
    people_first = first == "people"
    found = (
        combine(kind, False, scan("people"), scan("one"), "id=k", "v")
        if people_first
        else combine(kind, False, scan("one"), scan("people"), "k=id", "v")
    )
    assert refused(found) == code


def test_rows_of_people_beside_single_rows() -> None:
    assert stability(combine(SetKind.UNION, True, scan("visits"), scan("log"), "k")) == {"person": "4", "log": "3"}
    tests = scan("tests")
    assert refused(combine(SetKind.UNION, True, tests, scan("log"), "k")) == "DP230"


def test_frequencies() -> None:
    def most(kind: SetKind) -> str:
        found = combine(kind, True, scan("log"), scan("notes"), "k")
        return str(facts_of(found).most_rows(frozenset({found.columns[0].column.uid})))

    assert [most(kind) for kind in (SetKind.UNION, SetKind.INTERSECT, SetKind.EXCEPT)] == ["7", "2", "2"]


def test_replaced_rows() -> None:
    twice = facts_of(combine(SetKind.UNION, True, scan("sized"), scan("sized"), "k"))
    assert twice.size == 20 and {u: str(c) for u, c in (twice.replaced_rows or {}).items()} == {"sized": "2"}
    filtered = Filter(sized := scan("sized"), filled(sized, "k"))
    some = facts_of(combine(SetKind.UNION, True, filtered, scan("sized"), "k"))
    assert some.size is None and some.replaced_rows is not None
    assert facts_of(combine(SetKind.UNION, False, scan("sized"), scan("sized"), "k")).replaced_rows is None
    assert refused(combine(SetKind.UNION, True, scan("sized"), scan("log"), "k")) == "DP230"


def test_lists_are_not_compared() -> None:
    assert refused(combine(SetKind.UNION, False, scan("log"), scan("log"), "l")) == "DP301"
    assert refused(combine(SetKind.UNION, True, scan("log"), scan("log"), "l")) == ""


@pytest.mark.parametrize(("kind", "every"), [pair for pair in ALL if pair != (SetKind.UNION, True)])
def test_replaced_rows_correspond_in_union_all_only(kind: SetKind, every: bool) -> None:
    facts = facts_of(combine(kind, every, scan("sized"), scan("sized"), "k"))
    assert facts.replaced_rows is None and facts.size is None


@pytest.mark.parametrize(
    ("kind", "nullable"),
    [
        (SetKind.UNION, (True, True, False)),
        (SetKind.INTERSECT, (False, False, False)),
        (SetKind.EXCEPT, (True, False, False)),
    ],
)
def test_values_that_may_be_null(kind: SetKind, nullable: tuple[bool, ...]) -> None:
    """k may be NULL and r may not: k beside r, r beside k, r beside r."""
    found = [combine(kind, True, scan("log"), scan("log"), pair) for pair in ("k=r", "r=k", "r")]
    assert tuple(facts_of(f).columns[f.columns[0].column.uid].value.nullable for f in found) == nullable
