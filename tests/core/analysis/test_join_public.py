"""Joins with public rows: what replaced rows, public sizes and functions of the id become."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import Join, JoinKind, Node, Values
from dpsql.core.ir.types import INTEGER
from tests.support.plan_nodes import at, column, facts_of, filled, join, scan, stability


def written(*numbers: int | None) -> Values:
    """Rows of one column `k`, written in the query."""
    return Values((column("k", INTEGER),), tuple((n,) for n in numbers))


def replaced_rows(facts: Facts) -> dict[str, str] | None:
    return None if facts.replaced_rows is None else {unit: str(cap) for unit, cap in facts.replaced_rows.items()}


@pytest.mark.parametrize(
    ("kind", "rows", "of_a_row", "size"),
    [
        (JoinKind.LEFT, (1, 2), "1", 10),
        (JoinKind.LEFT, (1, 1), "2", None),  # a replaced row may have met one of them before, and two now
        (JoinKind.INNER, (1, 2), "1", None),
        (JoinKind.SEMI, (1, 1), "1", None),
    ],
)
def test_replaced_rows(kind: JoinKind, rows: tuple[int, ...], of_a_row: str, size: int | None) -> None:
    facts = facts_of(join(kind, scan("sized"), written(*rows), "k"))
    assert replaced_rows(facts) == {"sized": of_a_row} and facts.size == size


def test_a_whole_product_has_a_public_size() -> None:
    product = Join(JoinKind.CROSS, sized := scan("sized"), written(1, 2, 3), ())
    assert facts_of(product).size == 30 and replaced_rows(facts_of(product)) == {"sized": "3"}
    assert facts_of(replace(product, residual=filled(sized, "k"))).size is None


def test_kept_public_rows_are_replaced_by_none() -> None:
    """A public row stays padded, or has partners: what goes and what comes no longer correspond."""
    facts = facts_of(join(JoinKind.LEFT, written(1, 2), scan("sized"), "k"))
    assert facts.replaced_rows is None and facts.size is None


def test_columns_of_the_one_partner_are_functions_of_the_id() -> None:
    def determined(kind: JoinKind, left: Node, residual: bool) -> bool:
        found = join(kind, left, right := scan("one"), "k")
        found = replace(found, residual=filled(left, "v")) if residual else found
        return {c.uid for c in right.columns} <= facts_of(found).by_id

    for kind in (JoinKind.INNER, JoinKind.LEFT):
        assert determined(kind, scan("people"), False) and not determined(kind, scan("visits"), False)
    assert determined(JoinKind.INNER, scan("people"), True)
    assert not determined(JoinKind.LEFT, scan("people"), True)  # of rows of one id some may be padded


def test_columns_that_may_be_padded_may_be_null() -> None:
    for kind, nullable in ((JoinKind.INNER, False), (JoinKind.LEFT, True), (JoinKind.FULL, True)):
        found = join(kind, scan("log"), rows := written(1, 2), "k")
        value = facts_of(found).columns[at(rows, "k").uid].value
        assert value.nullable is nullable and value.domain is not None and value.domain.null is nullable


def test_the_one_row_of_a_side_is_not_alone_in_a_full_join() -> None:
    one, other = written(1), written(2)
    assert str(facts_of(join(JoinKind.INNER, one, other, "k")).most_rows(frozenset())) == "1"
    assert facts_of(join(JoinKind.FULL, one, other, "k")).most_rows(frozenset()) is None


def test_a_key_of_rows_that_may_be_padded_is_none() -> None:
    found = join(JoinKind.LEFT, people := scan("people"), one := scan("one"), "id=k")
    assert frozenset({at(people, "id").uid}) in facts_of(found).keys
    assert frozenset({at(one, "k").uid}) not in facts_of(found).keys


def test_rows_that_match_nothing_stay_in_a_left_join() -> None:
    assert stability(join(JoinKind.LEFT, scan("log"), written(None, None), "k")) == {"log": "3"}
    assert stability(join(JoinKind.INNER, scan("log"), written(None, None), "k")) == {"log": "0"}
