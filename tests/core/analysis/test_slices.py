"""Branches of a union by the rows of one table: where they exclude each other, and where that is not known."""

from __future__ import annotations

import pytest

from dpsql.core.ir.expressions import Call, Expr, Literal
from dpsql.core.ir.nodes import (
    Filter,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    SetKind,
    SetOperation,
    Truncate,
    Unnest,
    output_columns,
)
from dpsql.core.ir.types import BOOLEAN, INTEGER
from tests.support.plan_nodes import at, column, combine, facts_of, group, join, scan, stability

UNION, INTERSECT, EXCEPT = SetKind.UNION, SetKind.INTERSECT, SetKind.EXCEPT
INNER, LEFT, SEMI, ANTI = JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI


def eq(node: Node, name: str, value: int) -> Expr:
    return Call("eq", (at(node, name), Literal(value, INTEGER)), BOOLEAN)


def where(node: Node, name: str, value: int) -> Filter:
    return Filter(node, eq(node, name, value))


def half(table: str, *, other: bool = False) -> Filter:
    """The rows of a table with v = 1, or the others."""
    node = scan(table)
    return (
        Filter(node, Call("is_distinct_from", (eq(node, "v", 1), Literal(True, BOOLEAN)), BOOLEAN))
        if other
        else where(node, "v", 1)
    )


def most(found: Node, *names: str) -> str:
    return str(facts_of(found).most_rows(frozenset(at(found, name).uid for name in names)))


def halves(every: bool = True, kind: SetKind = UNION) -> SetOperation:
    return combine(kind, every, half("log"), half("log", other=True), "k", "v", "r")


def test_halves_of_a_table_change_as_the_table_does() -> None:
    assert stability(halves()) == stability(halves(every=False)) == {"log": "3"}
    assert stability(halves(kind=EXCEPT)) == stability(halves(kind=INTERSECT)) == {"log": "6"}
    assert stability(combine(UNION, True, half("log"), half("log"), "k")) == {"log": "6"}
    assert stability(combine(UNION, True, half("log"), half("notes", other=True), "k")) == {"log": "3", "notes": "1"}
    assert stability(combine(UNION, True, scan("log"), half("log"), "k")) == {"log": "6"}


def test_a_condition_and_what_is_not_true_of_it() -> None:
    def some(*, other: bool) -> Node:
        node = scan("log")
        both = Call("and", (eq(node, "v", 1), eq(node, "k", 2)), BOOLEAN)
        return Filter(node, Call("is_distinct_from", (both, Literal(True, BOOLEAN)), BOOLEAN) if other else both)

    assert stability(combine(UNION, True, some(other=False), some(other=True), "k")) == {"log": "3"}
    joined = join(INNER, some(other=False), scan("one"), "k")
    assert stability(combine(UNION, True, joined, some(other=True), "v")) == {"log": "3"}


def test_several_branches_are_sorted_into_sets() -> None:
    thirds = [where(scan("log"), "v", n) for n in (1, 2, 3)]
    found: Node = combine(UNION, True, thirds[0], thirds[1], "k", "v")
    assert stability(combine(UNION, True, found, thirds[2], "k")) == {"log": "3"}
    assert stability(combine(UNION, True, thirds[2], found, "k")) == {"log": "3"}
    assert stability(combine(UNION, True, found, where(scan("log"), "v", 2), "k")) == {"log": "6"}
    assert stability(combine(UNION, True, found, half("notes"), "k")) == {"log": "3", "notes": "1"}
    # A condition on the union is one on each branch; a column that is another one of the table in each is none.
    fourth = where(scan("log"), "v", 1)
    assert stability(combine(UNION, True, where(found, "v", 2), fourth, "k")) == {"log": "3"}
    swapped = combine(UNION, True, thirds[0], thirds[1], "k=v", "v=k")
    assert stability(combine(UNION, True, where(swapped, "v", 3), where(scan("log"), "k", 3), "k")) == {"log": "6"}


def test_what_is_computed_in_two_branches_may_be_two_values() -> None:
    def parity(value: int) -> Node:
        node = scan("log")
        twice = column("twice", INTEGER)
        made = Project(
            node, (Item(twice, Call("add", (at(node, "v"), at(node, "r")), INTEGER)), Item(k := at(node, "k"), k))
        )
        return where(made, "twice", value)

    assert stability(combine(UNION, True, parity(1), parity(2), "k")) == {"log": "6"}
    assert stability(combine(UNION, True, parity(1), parity(1), "k")) == {"log": "6"}


def test_look_ups_multiply_by_the_larger_number_of_partners() -> None:
    one = join(INNER, half("log"), scan("one"), "k")
    assert stability(combine(UNION, True, one, half("log", other=True), "k")) == {"log": "3"}
    both = join(LEFT, half("log"), scan("one"), "k"), join(LEFT, half("log", other=True), scan("one"), "k")
    assert stability(combine(UNION, True, *both, "k")) == {"log": "3"}
    listed = half("log")
    cut = Unnest(listed, at(listed, "l"), 4, column("e", INTEGER))
    assert stability(combine(UNION, True, cut, half("log", other=True), "k")) == {"log": "12"}
    joined = join(INNER, halves(), scan("one"), "k")
    assert stability(combine(UNION, True, joined, where(scan("log"), "v", 1), "v=k")) == {"log": "6"}


@pytest.mark.parametrize("change", ["truncated", "grouped", "distinct", "semi", "private partner", "public kept"])
def test_branches_that_are_no_slices_add_up(change: str) -> None:
    one, other = half("log"), half("log", other=True)
    made: dict[str, Node] = {
        "truncated": Truncate(one, (at(one, "k"),), 1, drop=True),
        "grouped": group(one, "k", "count"),
        "distinct": group(one, "k"),
        "semi": join(SEMI, one, scan("notes"), "k"),
        "private partner": join(INNER, one, scan("notes"), "k"),
        "public kept": Join(LEFT, public := scan("one"), one, join(INNER, public, one, "k").equalities),
    }
    left = made[change]
    together = dict(stability(left))
    together["log"] = str(int(together["log"]) + 3)
    assert stability(combine(UNION, True, left, other, "k")) == together


def test_replaced_rows() -> None:
    one, other = half("sized"), half("sized", other=True)
    found = facts_of(combine(UNION, True, one, other, "k"))
    assert {u: str(c) for u, c in (found.replaced_rows or {}).items()} == {"sized": "1"} and found.size is None
    assert {u: str(c) for u, c in found.stability.items()} == {"sized": "2"}
    assert facts_of(combine(UNION, False, one, other, "k")).replaced_rows is None


def test_frequencies_are_the_table_s_where_the_columns_are() -> None:
    assert most(halves(), "k") == "2" and most(halves(), "r") == "1"
    assert not any(len(key) < 3 for key in facts_of(halves(every=False)).keys) and not facts_of(halves()).keys
    swapped = combine(UNION, True, half("visits"), half("visits", other=True), "id", "a=b", "b=a")
    assert most(swapped, "id") == "4" and facts_of(swapped).most_rows(frozenset({at(swapped, "a").uid})) is None
    assert most(swapped, "a", "b") == "2"
    assert most(combine(UNION, True, half("log"), half("notes", other=True), "k"), "k") == "7"
    again = combine(UNION, True, half("visits"), half("visits"), "id", "a", "b")
    assert (most(again, "id"), most(again, "a", "b")) == ("8", "2")
    apart = combine(UNION, True, half("visits"), half("visits", other=True), "id", "a", "b")
    assert (most(apart, "id"), most(apart, "a", "b")) == ("4", "1")


def test_rows_of_ids_with_private_partners_of_their_own() -> None:
    """Partners of the same id come and go with it: how often an id repeats is known all the same."""
    found = join(INNER, half("visits"), scan("people"), "id")
    union = combine(UNION, True, found, half("visits", other=True), "id")
    assert stability(union) == {"person": "1"} and most(union, "id") == "4"
    reverse = join(INNER, scan("people"), half("visits"), "id")
    names = "a", "b"
    assert most(combine(UNION, True, reverse, half("visits", other=True), "id", *names), *names) == "1"


def test_ids_that_differ_are_no_rows() -> None:
    """visits: 4 rows of an id, which the branches no longer show."""

    def without_id(node: Node) -> Node:
        return Project(node, (Item(column("k", INTEGER), at(node, "k")),))

    one, other = without_id(half("visits")), without_id(half("visits", other=True))
    assert stability(combine(UNION, True, one, other, "k")) == {"person": "8"}


# --- a table and itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SEMI, ANTI])
def test_a_table_and_itself(kind: JoinKind) -> None:
    """log: 3 rows of a unit, 2 of which have one k; visits: 4 rows of an id."""
    assert stability(join(kind, scan("log"), scan("log"), "k")) == {"log": "6"}
    assert stability(join(kind, half("log"), half("log", other=True), "k")) == {"log": "6"}
    assert stability(join(kind, scan("log"), scan("log"), "k", "v")) == {"log": "6"}
    assert stability(join(kind, scan("log"), scan("log"), "r")) == {"log": "3"}
    assert stability(join(kind, scan("log"), scan("log"), "k=r")) == {"log": "9"}
    assert stability(join(kind, scan("log"), scan("notes"), "k")) == {"log": "3", "notes": "2"}
    assert stability(join(kind, scan("visits"), scan("visits"), "a", "b")) == {"person": "4"}


def test_only_filters_and_projections_of_itself() -> None:
    joined = join(INNER, scan("log"), scan("one"), "k")
    assert stability(join(SEMI, joined, scan("log"), "k")) == {"log": "9"}
    assert stability(join(SEMI, scan("log"), joined, "k")) == {"log": "9"}
    assert stability(join(SEMI, halves(), scan("log"), "k")) == {"log": "9"}
    cut = Truncate(table := scan("log"), (at(table, "k"),), 1)
    assert stability(join(SEMI, scan("log"), cut, "k")) == {"log": "15"}


# --- groups that are looked up ----------------------------------------------------------------------------------------


def test_groups_that_are_looked_up_by_their_keys() -> None:
    """notes: one row of a unit; log: 2 rows with one k."""
    assert stability(join(LEFT, scan("log"), group(scan("notes"), "k", "count"), "k")) == {"log": "3", "notes": "4"}
    by_two = join(LEFT, scan("log"), group(scan("notes"), "k v", "count"), "k")
    assert stability(by_two) == {"log": "15", "notes": "4"}
    named = group(scan("notes"), "k v", "count")
    kept = Project(named, tuple(Item(column(c.name, c.type), c) for c in output_columns(named) if c.name != "v"))
    assert stability(join(LEFT, scan("log"), kept, "k")) == {"log": "15", "notes": "4"}


def test_groups_that_are_looked_up_by_a_number() -> None:
    grouped = group(scan("notes"), "k", "count")
    assert stability(join(LEFT, scan("log"), grouped, "k", "v=count")) == {"log": "3", "notes": "8"}
