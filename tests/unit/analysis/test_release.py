"""What one unit can change in a release, and the bounding below that claims it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.analysis.rules.release import contributions
from dpsql.numbers.cap import finite
from dpsql.plan.components import KeySource
from dpsql.plan.nodes import BoundContributions, GroupKeys, Item, Node, Release
from tests.unit.analysis.relations import at, column, facts_of, refused, scan


@pytest.mark.parametrize(("cap", "rows"), [(Fraction(5, 2), 3), (Fraction(0), 1), (Fraction(4), 4)])
def test_contributions_are_whole_and_never_nothing(cap: Fraction, rows: int) -> None:
    below = replace(facts_of(log := scan("log")), stability={"log": finite(cap)})
    assert contributions(Release(log, (), (), ()), below)["log"].rows == rows


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


def test_contributions_are_bounded_by_the_id_itself() -> None:
    assert refused(bounded("k", 3, 3, "v")) == "DP220"


def test_scaled_down_where_more_groups_are_possible() -> None:
    node = bounded("k", 4, 3)
    assert isinstance(node, BoundContributions)
    spread = facts_of(replace(node, few_groups=False)).contribution
    cut = facts_of(replace(node, few_groups=False, truncate_groups=True)).contribution
    assert spread is not None and spread.spread and spread.scaled and spread.rows == 6
    assert cut is not None and not cut.spread and cut.most_groups == 3
