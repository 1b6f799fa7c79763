"""Limits and bounds that a policy leaves to a search: what they become, and what the tools of a policy say of them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.core.policy.tables import RowLimit, power_of_two
from dpsql.faces.editor.describe import column_text
from dpsql.policy.load import parse_policy
from dpsql.policy.tools.assumptions import promises
from dpsql.policy.tools.show import describe, show_policy
from tests.policy.policies import good, mistakes, spoiled

LIMIT = "max_rows_per_unit: 20"
SEARCHED = "max_rows_per_unit: search"
CAPPED = "max_rows_per_unit: {search: true, at_most: 1000}"


def test_a_policy_says_nothing_of_searches_unless_it_does() -> None:
    visits, age = good().tables["visits"], good().tables["people"].columns["age"]
    assert not visits.search_rows and visits.at_most is None and not age.search_bounds
    assert good().search == "allow"


def test_rows_of_a_unit() -> None:
    found = good(LIMIT, SEARCHED).tables["visits"]
    assert found.search_rows and found.at_most is None and found.max_rows_per_unit is None
    assert good(LIMIT, "max_rows_per_unit: {search: true}") == good(LIMIT, SEARCHED)


def test_the_cap_is_a_limit_wherever_nothing_is_searched() -> None:
    found = good(LIMIT, CAPPED).tables["visits"]
    assert found.search_rows and found.at_most == 1000
    assert found.max_rows_per_unit == RowLimit(1000, "truncate")


def test_bounds_of_a_column() -> None:
    free = good("[0, 110]", "search").tables["people"].columns["age"]
    within = good("[0, 110]", "{search: true, within: [0, 200]}").tables["people"].columns["age"]
    assert free.search_bounds and free.bounds is None
    assert within.search_bounds and within.bounds == (0, 200)
    assert column_text(free) == "integer, bounds searched"
    assert column_text(within) == "integer, bounds searched within [0, 200]"


def test_the_grid_of_a_column_is_public_and_exact() -> None:
    people, items = good().tables["people"].columns, good().tables["items"].columns
    assert people["age"].grid == 1 and items["price"].grid == Fraction(1, 100) and people["town"].grid is None
    assert good().tables["towns"].columns["area"].grid == Fraction(1, 2**20)
    coarse = good("area: {type: double}", "area: {type: double, resolution: 0.01}").tables["towns"].columns["area"]
    assert coarse.resolution == Fraction(1, 100) and coarse.grid == Fraction(1, 128)


@pytest.mark.parametrize("x", [Fraction(1), Fraction(3, 7), Fraction(1, 10**15), Fraction(10**15), Fraction(7, 8)])
def test_a_power_of_two_is_the_largest_that_is_not_above(x: Fraction) -> None:
    found = power_of_two(x)
    assert found <= x < 2 * found
    assert found.numerator & (found.numerator - 1) == 0 == found.denominator & (found.denominator - 1)


def test_the_hash_says_what_is_measured() -> None:
    forms = [good(), good(LIMIT, SEARCHED), good(LIMIT, CAPPED), good(LIMIT, "max_rows_per_unit: 1000")]
    assert len({p.hash for p in forms}) == 4
    assert good("[0, 110]", "{ends: [0, 110]}").hash == good().hash


def test_who_may_search_changes_no_answer() -> None:
    assert good("name: good", "name: good\nsearch: refuse").hash == good().hash


def test_a_policy_that_refuses_searches_asks_for_none() -> None:
    text = spoiled(LIMIT, SEARCHED).replace("[0, 110]", "search") + "search: refuse\n"
    assert [d.message for d in mistakes(text)] == [
        "tables.people.columns.age: bounds is to be searched, but the policy says  search: refuse",
        "tables.visits: max_rows_per_unit is to be searched, but the policy says  search: refuse",
    ]


def test_a_search_is_no_promise() -> None:
    text = spoiled(LIMIT, CAPPED).replace("[0, 110]", "search")
    assert promises(parse_policy(text)) == promises(good())


def test_show_tells_them() -> None:
    text = spoiled(LIMIT, CAPPED).replace("[0, 110]", "{search: true, within: [0, 200]}")
    policy = parse_policy(text.replace("type: double", "type: double, resolution: 0.01"))
    said = show_policy(policy)
    assert "rows per unit: searched, at most 1000" in said and "bounds searched within [0, 200]" in said
    assert "resolution 0.01" in said and "search       allow" in said
    assert describe(policy)["tables"]["people"]["columns"]["age"]["search_bounds"] is True
    assert "rows per unit: searched\n" in show_policy(good(LIMIT, SEARCHED))
