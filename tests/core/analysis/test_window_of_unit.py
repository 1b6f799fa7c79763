"""Windows among the rows of one id: whose rows change, what is unique afterwards, and what has no rule."""

from __future__ import annotations

import pytest

from dpsql.core.ir.expressions import Call, Cast, Literal
from dpsql.core.ir.nodes import Filter, Frame, Node, SortKey, Window, WindowCall
from dpsql.core.ir.types import BIGINT, BOOLEAN, DOUBLE, INTEGER
from dpsql.diagnostics.errors import Rejected
from tests.support.plan_nodes import at, column, facts_of, scan, stability
from tests.support.planning import planned, policy

VISITS = scan("visits")
ID, K = at(VISITS, "id"), at(VISITS, "k")
PLACE = column("place", BIGINT)
NUMBERED = Window(VISITS, (WindowCall("row_number", (), PLACE, (ID,), (SortKey(K),)),))


def kept(function: str, most: int, below: Node = NUMBERED) -> Filter:
    return Filter(below, Call(function, (PLACE, Literal(most, INTEGER)), BOOLEAN))


def test_only_rows_of_the_id_change() -> None:
    facts = facts_of(NUMBERED)
    assert stability(NUMBERED) == {"person": "1"} and facts.ids == {ID.uid}
    assert facts.is_key(frozenset({ID.uid, PLACE.uid})) and not facts.is_key(frozenset({ID.uid}))


@pytest.mark.parametrize(("function", "most", "rows"), [("eq", 1, 1), ("eq", 7, 1), ("le", 1, 1), ("lt", 2, 1)])
def test_one_place_is_one_row(function: str, most: int, rows: int) -> None:
    assert facts_of(kept(function, most)).is_key(frozenset({ID.uid}))


@pytest.mark.parametrize(("function", "most", "rows"), [("le", 3, "3"), ("lt", 3, "2"), ("ge", 2, "4"), ("le", 9, "4")])
def test_the_first_places_are_few_rows(function: str, most: int, rows: str) -> None:
    facts = facts_of(kept(function, most))
    assert not facts.is_key(frozenset({ID.uid})) and str(facts.rows_of_an_id()) == rows


def test_a_rank_is_no_place_of_its_own() -> None:
    ranked = Window(VISITS, (WindowCall("rank", (), PLACE, (ID,), (SortKey(K),)),))
    assert not facts_of(kept("eq", 1, ranked)).is_key(frozenset({ID.uid}))
    assert not facts_of(ranked).is_key(frozenset({ID.uid, PLACE.uid}))


def test_a_partition_by_an_expression_has_no_key() -> None:
    made = Call("add", (K, Literal(1, INTEGER)), BIGINT)
    numbered = Window(VISITS, (WindowCall("row_number", (), PLACE, (ID, made)),))
    assert stability(numbered) == {"person": "1"}
    assert not facts_of(kept("eq", 1, numbered)).is_key(frozenset({ID.uid}))


@pytest.mark.parametrize(
    "call",
    [
        WindowCall("row_number", (), PLACE, (K,)),
        WindowCall("row_number", (), PLACE, (Call("add", (ID, Literal(1, INTEGER)), BIGINT),)),
        WindowCall("row_number", (), PLACE),
        WindowCall("last_value", (K,), column("w"), (ID,), (SortKey(K),)),
        WindowCall("first_value", (K,), column("w"), (ID,), (SortKey(K),), Frame("RANGE", 0, None)),
        WindowCall("count", (), PLACE, (ID,), (SortKey(K),), Frame("RANGE", -1, 0)),
        WindowCall("avg", (K,), column("w"), (ID,)),
        WindowCall("sum", (Cast(K, DOUBLE),), column("w", DOUBLE), (ID,)),
    ],
)
def test_what_has_no_rule_is_refused(call: WindowCall) -> None:
    with pytest.raises(Rejected) as refusal:
        facts_of(Window(VISITS, (call,)))
    assert refusal.value.diagnostics[0].code in ("DP113", "DP106")


def test_rows_of_a_row_unit_are_refused() -> None:
    log = scan("log")
    with pytest.raises(Rejected) as refusal:
        facts_of(Window(log, (WindowCall("row_number", (), PLACE, (at(log, "r"),)),)))
    assert refusal.value.diagnostics[0].code == "DP113"


def test_the_order_is_total() -> None:
    """All columns decide, and of those with two forms the text; not where peers are told apart by nothing."""
    tables = policy("""
rides:
  unit: {column: id, of: person}
  max_rows_per_unit: 9
  columns: {id: {type: bigint, nullable: false}, at: {type: timestamp}, price: {type: double}}
""")
    sql = "SELECT COUNT(*) FROM (SELECT id FROM rides QUALIFY {} OVER (PARTITION BY id ORDER BY at) = 1)"
    (release,) = planned(sql.format("ROW_NUMBER()"), tables).releases
    (statement,) = release.statements
    order = statement.sql.partition("PARTITION BY")[2].partition("ORDER BY")[2].partition(")\n")[0]
    assert order.count('"at"') == 2 and order.count('"price"') == 2 and "VARCHAR" in order, statement.sql
    (ranked,) = planned(sql.format("RANK()"), tables).releases
    assert '"price"' not in ranked.statements[0].sql.partition("PARTITION BY")[2]


def test_values_of_other_rows_have_the_bounds_of_their_column() -> None:
    """So that the step from row to row has a sum."""
    tables = policy("""
rides:
  unit: {column: id, of: person}
  max_rows_per_unit: 3
  columns: {id: {type: bigint, nullable: false}, price: {type: integer, bounds: [0, 100]}}
""")
    steps = "SELECT price - LAG(price) OVER (PARTITION BY id ORDER BY price) AS step FROM rides"
    (release,) = planned(f"SELECT SUM(step) FROM ({steps})", tables).releases
    assert [m.sensitivity.l1 for m in release.measured.measurements] == [300]
    sums = "SELECT SUM(price) OVER (PARTITION BY id) AS paid FROM rides"
    with pytest.raises(Rejected) as refusal:  # a sum of values has not their bounds
        planned(f"SELECT SUM(paid) FROM ({sums})", tables)
    assert refusal.value.diagnostics[0].code == "DP202"
