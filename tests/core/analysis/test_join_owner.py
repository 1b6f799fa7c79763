"""Joins on the owner: the shared id, or a foreign key of a unit path."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsql.core.analysis.rules.join_same_unit import joins_same_unit
from dpsql.core.ir.nodes import Aggregate, Filter, Item, JoinKind, SetKind
from tests.support.plan_nodes import at, column, combine, facts_of, filled, join, refused, scan, stability
from tests.support.planning import named

ONE = {"person": "1"}


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI])
def test_on_the_shared_id(kind: JoinKind) -> None:
    found = join(kind, people := scan("people"), visits := scan("visits"), "id")
    facts = facts_of(found)
    both = {at(people, "id").uid, at(visits, "id").uid}
    assert stability(found) == ONE
    assert facts.ids == (both if kind is JoinKind.INNER else {at(people, "id").uid})


def test_full_joins_are_refused() -> None:
    assert refused(join(JoinKind.FULL, scan("people"), scan("visits"), "id")) == "DP220"


def test_rows_of_an_id_multiply() -> None:
    found = join(JoinKind.INNER, scan("visits"), scan("visits"), "id")
    facts = facts_of(found)
    assert str(facts.most_rows(frozenset(facts.ids))) == "16"
    found = join(JoinKind.LEFT, people := scan("people"), scan("visits"), "id")
    assert str(facts_of(found).most_rows(frozenset({at(people, "id").uid}))) == "4"


def test_on_a_foreign_key() -> None:
    found = join(JoinKind.INNER, scan("tests"), scan("visits"), "a", "b")
    assert stability(found) == ONE and named(facts_of(found).ids, found) == {"id"}
    assert stability(join(JoinKind.LEFT, scan("visits"), scan("tests"), "a", "b")) == ONE
    visits = scan("visits")
    filtered = Filter(visits, filled(visits, "k"))
    assert stability(join(JoinKind.INNER, filtered, scan("tests"), "a", "b", "k")) == ONE


def test_a_part_of_a_foreign_key_is_none() -> None:
    assert refused(join(JoinKind.INNER, scan("tests"), scan("visits"), "a")) == "DP230"
    assert refused(join(JoinKind.INNER, scan("tests"), scan("visits"), "a=b", "b=a")) == "DP230"


def test_two_rows_that_refer_to_the_same_one() -> None:
    tests = join(JoinKind.INNER, scan("tests"), scan("visits"), "a", "b")
    assert stability(join(JoinKind.INNER, tests, scan("tests"), "a", "b")) == ONE


def test_a_union_names_no_row() -> None:
    """Its column `a` may come from another table: it is no key of visits, whatever its origin."""
    both = combine(SetKind.UNION, True, scan("visits"), scan("people"), "a=k", "b=v", "id")
    assert stability(both) == ONE
    assert refused(join(JoinKind.INNER, scan("tests"), both, "a", "b")) == "DP230"


def test_groups_keep_the_way_to_their_owner() -> None:
    visits = scan("visits")
    items = tuple(Item(column(n), at(visits, n)) for n in ("id", "a", "b"))
    groups = Aggregate(visits, items, (), inner=True)
    assert stability(join(JoinKind.INNER, scan("tests"), groups, "a", "b")) == ONE


def test_two_rows_that_name_others_by_the_same_columns() -> None:
    """A second foreign key, to another key of the same table, leads from the same columns to somebody else."""
    found = join(JoinKind.INNER, left := scan("tests"), right := scan("tests"), "a", "b")
    own, same = facts_of(left), facts_of(right)
    assert joins_same_unit(found, own, same)
    elsewhere = frozenset(replace(hop, references=("k", "v")) for hop in same.hops)
    assert not joins_same_unit(found, own, replace(same, hops=elsewhere))


def test_what_only_some_rows_of_an_id_have_is_no_function_of_it() -> None:
    found = join(JoinKind.LEFT, left := scan("people"), right := scan("people"), "id")
    assert facts_of(found).by_id == facts_of(left).by_id | facts_of(right).by_id
    assert facts_of(replace(found, residual=filled(right, "v"))).by_id == facts_of(left).by_id


def test_a_key_of_rows_that_may_be_padded_is_none() -> None:
    found = join(JoinKind.LEFT, left := scan("people"), right := scan("people"), "id")
    keys = facts_of(found).keys
    assert frozenset({at(left, "id").uid}) in keys and frozenset({at(right, "id").uid}) not in keys
