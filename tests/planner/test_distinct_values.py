"""How many values an expression seems to have: by its type, by CLIP, by functions, by lists; never by a promise."""

from __future__ import annotations

import pytest

from dpsql.core.ir.components import DistinctCount
from dpsql.core.ir.nodes import Release
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.distinct_values import most_values
from tests.support.planning import planned, policy

POLICY = policy("""
t:
  unit: {column: id}
  max_rows_per_unit: 100000
  columns:
    id: {type: bigint, nullable: false}
    b: {type: boolean}
    sure: {type: boolean, nullable: false}
    tiny: {type: tinyint}
    x: {type: integer, bounds: [0, 3]}
    listed: {type: varchar, domain: [p, q]}
    w: {type: varchar}
    f: {type: double, bounds: [0, 2]}
    d: {type: date, bounds: [2024-01-01, 2024-01-03]}
    money: {type: "decimal(9,2)"}
""")


@pytest.mark.parametrize(
    ("counted", "values"),
    [
        # the type
        ("b", 2),
        ("tiny", 256),
        ("x > 1", 2),
        ("w", None),
        # promises are none
        ("x", None),
        ("listed", None),
        ("d", None),
        ("f", None),
        # what a function or a CLIP keeps
        ("CLIP(x, 0, 2)", 3),
        ("CLIP(f, 0, 2)", None),
        ("CAST(CLIP(f, 0, 2) AS INTEGER)", None),
        ("month(d)", 12),
        ("x % 2", 3),
        ("CLIP(x, 0, 9) % 2", 2),
        ("sign(x)", 3),
        # any function of few values
        ("CAST(month(d) AS VARCHAR)", 12),
        ("UPPER(CAST(b AS VARCHAR))", 2),
        ("COALESCE(CAST(b AS VARCHAR), '-')", 3),
        ("CAST(b AS VARCHAR) || CAST(sure AS VARCHAR)", 4),
        ("CONCAT(CAST(b AS VARCHAR), CAST(sure AS VARCHAR))", 9),
        ("CONCAT(CAST(b AS VARCHAR), 'x')", 3),
        ("w || CAST(b AS VARCHAR)", None),
        # branches
        ("CASE WHEN x > 1 THEN 'a' WHEN x < 0 THEN 'b' ELSE 'c' END", 3),
        ("CASE WHEN x > 1 THEN 'a' END", 1),
        ("CASE WHEN x > 1 THEN w ELSE 'c' END", None),
        ("if(x > 1, CAST(b AS VARCHAR), CAST(tiny AS VARCHAR))", 258),
        ("GREATEST(CLIP(x, 0, 1), 5)", 3),
        ("NULLIF(CLIP(x, 0, 1), 1)", 2),
        ("NULLIF(CAST(b AS VARCHAR), 'true')", 2),
    ],
)  # fmt: skip
def test_values_of_an_expression(counted: str, values: int | None) -> None:
    assert counted_values(f"SELECT COUNT(DISTINCT {counted}) FROM t") == values


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("w IN ('p', 'q', 'p', NULL)", 2),
        ("w = 'p'", 1),
        ("w = 'p' OR w IN ('q', 'r')", 3),
        ("w IS NOT DISTINCT FROM 'p' OR w IS NULL", 1),
        ("w IN ('p', 'q') AND x > 0", 2),
        ("w IN ('p', 'q', 'r') AND (w = 'q' OR w = 'p')", 2),
        ("w IN ('p', 'q') OR x > 0", None),
        ("NOT w IN ('p', 'q')", None),
        ("w <> 'p'", None),
        ("UPPER(w) IN ('P', 'Q')", None),
        ("w >= 'p' AND w <= 'q'", None),
        ("listed IN ('p')", None),
    ],
)
def test_values_that_a_condition_lists(condition: str, values: int | None) -> None:
    assert counted_values(f"SELECT COUNT(DISTINCT w) FROM t WHERE {condition}") == values
    assert counted_values(f"SELECT COUNT(DISTINCT w) FILTER (WHERE {condition}) FROM t") == values


@pytest.mark.parametrize(
    ("column", "condition", "values"),
    [("f", "f IN (0e0, 1e0)", None), ("x", "x IN (1, 2)", 2), ("x", "x IN (1.5, 2)", None), ("b", "b = TRUE", 1)],
)
def test_equal_values_have_to_be_one_value(column: str, condition: str, values: int | None) -> None:
    """0.0 and -0.0 are equal, and have two texts; a number may be converted before it is compared."""
    text = f"CAST({column} AS VARCHAR)"
    assert counted_values(f"SELECT COUNT(DISTINCT {text}) FROM t WHERE {condition}") == values


def test_a_list_goes_with_its_column() -> None:
    inner = "SELECT id, w AS v FROM t WHERE w IN ('p', 'q')"
    assert counted_values(f"SELECT COUNT(DISTINCT v) FROM ({inner}) AS i") == 2
    assert counted_values(f"SELECT COUNT(DISTINCT u) FROM (SELECT id, UPPER(v) AS u FROM ({inner}) AS i) AS j") == 2
    joined = f"SELECT COUNT(DISTINCT i.v) FROM t LEFT JOIN ({inner}) AS i ON t.id = i.id"
    assert counted_values(joined) == 2
    both = f"{inner} UNION ALL SELECT id, w FROM t WHERE w = 'r'"
    assert counted_values(f"SELECT COUNT(DISTINCT v) FROM ({both}) AS i") == 3  # the branches read one table once


def test_long_expressions_are_not_looked_into() -> None:
    whens = " ".join(f"WHEN x = {i} THEN 'a'" for i in range(100))
    assert counted_values(f"SELECT COUNT(DISTINCT CASE {whens} END) FROM t") is None
    assert counted_values(f"SELECT COUNT(DISTINCT CASE {whens} END = 'a') FROM t") == 2


def counted_values(sql: str) -> int | None:
    """The image of what the only COUNT(DISTINCT …) counts; the plan says so, too, where it is small."""
    plan = planned(sql, POLICY)
    (release,) = [t for t in plan.tree.walk() if isinstance(t.node, Release)]
    (component,) = plan.releases[0].measured.node.components
    assert isinstance(component, DistinctCount)
    found = most_values(component.arg, release.inputs[0], component.filter)
    assert component.values == (found if found is None or found < 100_000 else None)
    return found


def test_what_is_said_of_the_values_is_said_by_the_plan() -> None:
    plan = planned("SELECT COUNT(DISTINCT month(d)) AS n FROM t", POLICY)
    assert plan.releases[0].measured.measurements[0].sensitivity.l1 == 12
    assert plan.source == Source("SELECT COUNT(DISTINCT month(d)) AS n FROM t")
    assert plan.notes == ()  # no limit takes anything away


@pytest.mark.parametrize(
    ("inner", "condition", "values"),
    [
        ("SELECT id, MAX(tiny) AS k FROM t GROUP BY id, w", "k IN (1, 2)", 2),
        ("SELECT id, tiny AS k FROM t", "k IN (1, 2)", 2),
        ("SELECT id, tiny + x AS k FROM t", "k IN (1, 2)", None),
        ("SELECT id, w, MAX(month(d)) AS k FROM t GROUP BY id, w", "w <> 'a'", 12),
        ("SELECT id, w, x % 2 AS k FROM t GROUP BY 1, 2, 3", "k > 0", 3),
    ],
)
def test_columns_are_followed_down(inner: str, condition: str, values: int | None) -> None:
    rows = f"SELECT id, k FROM ({inner}) AS i WHERE {condition}"
    assert counted_values(f"SELECT COUNT(DISTINCT k) FROM ({rows}) AS j") == values


@pytest.mark.parametrize(
    ("inner", "condition", "rows"),
    [
        ("SELECT DISTINCT id, month(d) AS k FROM t", "TRUE", 13),
        ("SELECT DISTINCT id, month(d) AS k FROM t", "k <= 3", 3),
        ("SELECT DISTINCT id, month(d) AS k FROM t", "k < 3 AND k IS NOT NULL", 2),
        ("SELECT id, b AS k, COUNT(*) AS n FROM t GROUP BY 1, 2", "k", 3),
        ("SELECT id, sure AS k, COUNT(*) AS n FROM t GROUP BY 1, 2", "TRUE", 2),
        ("SELECT id, b, CLIP(x, 0, 4) AS k FROM t GROUP BY 1, 2, 3", "TRUE", 18),
        ("SELECT id, w AS k FROM t GROUP BY 1, 2", "TRUE", 100000),
        ("SELECT id, ROW_NUMBER() OVER (PARTITION BY id, sure ORDER BY x) AS k FROM t", "k <= 2", 4),
        ("SELECT id, MIN(x) AS k FROM t GROUP BY id", "TRUE", 1),
    ],
)
def test_rows_that_an_id_seems_to_have(inner: str, condition: str, rows: int) -> None:
    plan = planned(f"SELECT COUNT(*) FROM ({inner}) AS i WHERE {condition}", POLICY)
    assert plan.releases[0].measured.contribution.rows == rows
