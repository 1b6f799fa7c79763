"""SUM of a constant is that many times COUNT(*): one component, one stored answer, intervals in proportion."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from dpsql.api.connection import Connection
from dpsql.core.ir.components import ProductSum, RowCount, ValueSum
from dpsql.core.ir.nodes import Release
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.aggregates.count import Count
from dpsql.frontend.aggregates.sum import Sum
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.explain.stable_json import as_json
from tests.support.club import club_folder, con, ledger  # noqa: F401 — fixtures
from tests.support.planning import planned, policy

POLICY = policy(
    """
people: {unit: {of: person, column: id}, max_rows_per_unit: 4, columns: {id: {type: bigint, nullable: false}, x: {type: integer, bounds: [0, 9]}}}
"""  # noqa: E501
)


def release(sql: str) -> Release:
    (found,) = planned(sql, POLICY).releases
    return found.measured.node


@pytest.mark.parametrize(
    ("sql", "times"),
    [
        ("SELECT SUM(1) FROM people", 1),
        ("SELECT SUM(5) FROM people", 5),
        ("SELECT SUM(-3) FROM people", -3),
        ("SELECT SUM(2.50) FROM people", Fraction(5, 2)),
        ("SELECT SUM(0.5e0) FROM people", Fraction(1, 2)),
        ("SELECT SUM(2 + 3) FROM people", 5),
        ("SELECT SUM(CAST('7' AS INTEGER)) FROM people", 7),
        ("SELECT SUM(CLIP(9, 0, 4)) FROM people", 4),
        ("SELECT SUM(one) FROM (SELECT 1 AS one, * FROM people)", 1),
        ("SELECT ANON_SUM(5 CLAMPED BETWEEN 0 AND 3) FROM people", None),
        ("SELECT SUM(5, contribution_bounds_per_row => (0, 3)) FROM people", 3),
        # what is no constant, or is no multiple of a count, stays a sum
        ("SELECT SUM(x) FROM people", None),
        ("SELECT SUM(0) FROM people", None),
        ("SELECT SUM(x * 0 + 1) FROM people", None),
        ("SELECT SUM(CAST(NULL AS INTEGER)) FROM people", None),
        ("SELECT SUM(5, contribution_bounds_per_group => (0, 12)) FROM people", None),
        ("SELECT SUM(9223372036854775808) FROM people", None),
    ],
)
def test_which_sums_are_counts(sql: str, times: Fraction | int | None) -> None:
    node = release(sql)
    (component,) = node.components
    (output,) = node.outputs
    if times is None:
        assert isinstance(component, ValueSum | ProductSum) and output.recipe == Sum(0)
    else:
        assert (type(component), component.arg) == (RowCount, None)
        assert output.recipe == Count(0, times=Fraction(times))


def test_they_are_one_component() -> None:
    node = release("SELECT COUNT(*), COUNT(1), SUM(1), SUM(5), SUM(-2.5), SUM(CAST(1 AS DOUBLE)) FROM people")
    assert len(node.components) == 1
    where = "FILTER (WHERE x > 3)"
    node = release(f"SELECT COUNT(*), SUM(1), COUNT(*) {where}, SUM(1) {where}, SUM(9) {where} FROM people")
    # The total is made of the slice and the rest.
    total = Count(1, (0,))
    assert [o.recipe for o in node.outputs] == [total, total, Count(0), Count(0), Count(0, times=Fraction(9))]
    node = release(f"SELECT SUM(-2), COUNT(*) {where} FROM people")
    assert [o.recipe for o in node.outputs] == [Count(1, (0,), Fraction(-2)), Count(0)]


def test_over_the_bounds_of_a_sum_it_is_refused_as_before() -> None:
    for sql in ("SELECT SUM(DISTINCT '1') FROM people", "SELECT SUM(NULL) FROM people", "SELECT SUM('a') FROM people",
                "SELECT SUM(CAST('inf' AS DOUBLE)) FROM people"):  # fmt: skip
        with pytest.raises(Rejected):
            planned(sql, POLICY)


def test_explain_says_what_it_is_made_of() -> None:
    plan = planned("SELECT SUM(5) AS s, COUNT(*) AS n FROM people", POLICY)
    assert "SUM(5) = 5 · COUNT(*)  ± 59.91" in as_text(plan)
    (found,) = as_json(plan)["releases"]
    assert len(found["components"]) == 1
    assert [(o["column"], o["components"]) for o in found["outputs"]] == [("sum", [0]), ("count", [0])]
    split = as_text(planned("SELECT SUM(-2) AS s, COUNT(*) FILTER (WHERE x > 3) AS n FROM people", POLICY))
    assert "SUM(-2) = -2 · (COUNT(*) FILTER ((x > 3) IS NOT TRUE) + COUNT(*) FILTER (x > 3))  ± 32.9\n" in split
    assert found["outputs"][0]["expected_error"] == 5 * found["outputs"][1]["expected_error"]


ASKED = (
    ("SELECT SUM(1) AS s FROM members", 1),
    ("SELECT SUM(5) AS s FROM members", 5),
    ("SELECT SUM(-3) AS s FROM members", -3),
    ("SELECT SUM(2.5) AS s FROM members", Fraction(5, 2)),
    ("SELECT SUM(0.5e0) AS s FROM members", Fraction(1, 2)),
    ("SELECT COUNT(1) AS s FROM members", 1),
)


@pytest.mark.parametrize(("sql", "times"), ASKED)
def test_after_a_count_it_costs_nothing(sql: str, times: Fraction, con: Connection) -> None:  # noqa: F811
    count = con.sql("SELECT COUNT(*) AS n FROM members").run(epsilon=1)
    ((n,),), ((low, high),) = count.rows, (row["n"] for row in count.intervals())
    query = con.sql(sql)
    assert not query.cost(epsilon=1).epsilon
    answer = query.run(epsilon=1)
    ((s,),) = answer.rows
    assert not answer.spent.epsilon and Fraction(s) == times * n
    (own,) = (row["s"] for row in answer.intervals())
    assert own == pytest.approx(sorted((float(times) * low, float(times) * high)))
    assert query.accuracy(epsilon=1)["s"] == pytest.approx(
        abs(float(times)) * con.sql("SELECT COUNT(*) AS n FROM members").accuracy(epsilon=1)["n"]
    )


def test_a_count_after_it_costs_nothing(con: Connection) -> None:  # noqa: F811
    city = "FROM members GROUP BY city ORDER BY city"
    first = con.sql(f"SELECT city, SUM(4) AS s {city}").run(epsilon=1)
    then = con.sql(f"SELECT city, COUNT(*) AS n {city}").run(epsilon=1)
    assert first.spent.epsilon == 1 and not then.spent.epsilon
    assert [s for _, s in first.rows] == [4 * n for _, n in then.rows]


def test_beside_a_slice_it_is_made_of_the_same_parts(con: Connection) -> None:  # noqa: F811
    """SUM(1) is COUNT(*) where that is split, too: the same stored numbers, whichever of them was asked first."""
    parts = "COUNT(*) FILTER (WHERE age > 40) AS old FROM members"
    first = con.sql(f"SELECT COUNT(*) AS n, {parts}").run(epsilon=1)
    then = con.sql(f"SELECT SUM(-2) AS s, {parts}").run(epsilon=1)
    assert len(first.plan.releases[0].measured.node.components) == 2
    assert first.spent.epsilon == 1 and not then.spent.epsilon
    assert then.rows == ((-2 * first.rows[0][0], first.rows[0][1]),)
    ((counted,), (summed,)) = first.intervals(), then.intervals()
    assert summed["s"] == (-2 * counted["n"][1], -2 * counted["n"][0])
    wished = con.sql(f"SELECT SUM(-2) AS n, {parts}").plan(max_error={"n": 40, "old": 20}).loss
    assert wished == con.sql(f"SELECT COUNT(*) AS n, {parts}").plan(max_error={"n": 20, "old": 20}).loss


@pytest.mark.parametrize(
    ("constant", "type_", "value"),
    [
        ("1", "HUGEINT", 1),
        ("2.50", "DECIMAL(38,2)", Decimal("2.50")),
        ("1e0", "DOUBLE", 1.0),
        ("CAST(3 AS TINYINT)", "HUGEINT", 3),
    ],
)
def test_the_type_is_that_of_a_sum(constant: str, type_: str, value: object, con: Connection) -> None:  # noqa: F811
    answer = con.sql(f"SELECT SUM({constant}) AS s FROM members").run(epsilon=1)
    assert [str(t) for t in answer.types] == [type_] and type(answer.rows[0][0]) is type(value)
    none = con.sql(f"SELECT SUM({constant}) AS s FROM members WHERE FALSE").run()
    assert none.rows == ((0,),) and none.types == answer.types and type(none.rows[0][0]) is type(value)


def test_the_ends_of_its_interval_and_a_largest_error(con: Connection) -> None:  # noqa: F811
    answer = con.sql("SELECT SUM(5) AS s, DP_INTERVAL_LOW(s) AS low, DP_INTERVAL_HIGH(s) AS high FROM members").run(
        epsilon=1
    )
    ((_, low, high),), ((own_low, own_high),) = answer.rows, (row["s"] for row in answer.intervals())
    assert (low, high) == (own_low, own_high)
    sums, counts = (con.sql(f"SELECT {x} AS v FROM members") for x in ("SUM(5)", "COUNT(*)"))
    assert sums.plan(max_error={"v": 50}).loss == counts.plan(max_error={"v": 10}).loss
