"""What one unit can change in a release, and the bounding below that claims it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.core.analysis.public_groups import groups_of_an_id, released_groups
from dpsql.core.analysis.rules.release import contributions
from dpsql.core.ir.components import KeySource
from dpsql.core.ir.nodes import BoundContributions, GroupKeys, Item, Node, Release
from dpsql.core.numbers.cap import finite
from tests.support.plan_nodes import at, column, facts_of, refused, scan


@pytest.mark.parametrize(("cap", "rows"), [(Fraction(5, 2), 3), (Fraction(0), 1), (Fraction(4), 4)])
def test_contributions_are_whole_and_never_nothing(cap: Fraction, rows: int) -> None:
    below = replace(facts_of(log := scan("log")), stability={"log": finite(cap)})
    assert contributions(Release(GroupKeys(log, (), ()), (), (), ()), below)["log"].rows == rows


def bounded(by: str, keys: int | None, groups: int, id_: str = "id") -> Node:
    """At most two rows in each of so many groups. keys: how many are in the public list; None: private."""
    visits = scan("visits")
    item = Item(column("g"), at(visits, by))
    sources = None if keys is None else (KeySource((0,), tuple((n,) for n in range(keys)), "a list"),)
    grouped = GroupKeys(visits, (item,), sources)
    return BoundContributions(grouped, at(visits, id_), (item.column,), None, 2, groups, few_groups=True)


@pytest.mark.parametrize(
    ("by", "keys", "groups", "code"),
    [("k", 3, 3, ""), ("k", 4, 3, "DP211"), ("k", None, 3, "DP211"), ("k", 0, 3, "DP211"), ("id", 9, 1, "")],
)
def test_few_groups_are_counted(by: str, keys: int | None, groups: int, code: str) -> None:
    assert refused(bounded(by, keys, groups)) == code


def two_keys(*keys: tuple[int, int]) -> GroupKeys:
    """Visits by two columns; one list holds the combinations."""
    visits = scan("visits")
    items = (Item(column("g"), at(visits, "id")), Item(column("h"), at(visits, "k")))
    return GroupKeys(visits, items, (KeySource((1, 0), keys, "a list"),))


def test_combinations_of_what_is_no_function_of_the_id_are_counted_once() -> None:
    keyed = two_keys((1, 7), (2, 7), (1, 8), (2, 9), (1, 9))  # k, then id
    by_id = facts_of(keyed).by_id
    assert released_groups(keyed) == 5
    assert groups_of_an_id(keyed, by_id) == 2
    assert groups_of_an_id(keyed, frozenset()) == 5
    assert groups_of_an_id(keyed, frozenset(i.column.uid for i in keyed.items)) == 1


def test_lists_that_are_not_known_say_nothing() -> None:
    for keyed in (two_keys(), replace(two_keys((1, 7)), sources=None)):
        assert released_groups(keyed) is None
        assert groups_of_an_id(keyed, facts_of(keyed).by_id) is None


@pytest.mark.parametrize(("few", "cut", "code"), [(True, False, ""), (False, True, ""), (False, False, "DP211")])
def test_groups_beside_rows_are_enforced(few: bool, cut: bool, code: str) -> None:
    node = bounded("k", 3, 3)
    assert isinstance(node, BoundContributions)
    assert refused(replace(node, rows=9, per_group=None, few_groups=few, truncate_groups=cut)) == code


def test_contributions_are_bounded_by_the_id_itself() -> None:
    assert refused(bounded("k", 3, 3, "v")) == "DP220"


def test_scaled_down_where_more_groups_are_possible() -> None:
    node = bounded("k", 4, 3)
    assert isinstance(node, BoundContributions)
    spread = facts_of(replace(node, few_groups=False)).contribution
    cut = facts_of(replace(node, few_groups=False, truncate_groups=True)).contribution
    assert spread is not None and spread.scaled_over_groups and spread.scaled and spread.rows == 6
    assert cut is not None and not cut.scaled_over_groups and cut.most_groups == 3
