"""Which columns are bare columns of tables, and that only of these a condition tells keys, values and NULLs."""

from __future__ import annotations

import pytest

from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.stored_columns import row_numbers, stored_columns
from dpsql.core.ir.nodes import Filter, Node, output_columns
from dpsql.core.ir.walk import Tagged
from dpsql.diagnostics.diagnostic import Source
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse
from tests.support.planning import planned, policy

POLICY = policy(
    "t:\n  unit: {column: id}\n  max_rows_per_unit: 9\n  columns:\n    id: {type: integer}\n    k: {type: bigint}\n"
    "    s: {type: varchar}\n    x: {type: double, bounds: [0, 9]}\n"
    "u:\n  public: true\n  columns: {k: {type: bigint}, name: {type: varchar}}\n"
)


def bound(rows: str) -> Node:
    """A query as it is bound."""
    return bind(parse(Source(rows)), POLICY).root


def filtered(inner: str, condition: str) -> Tagged[Facts]:
    """The rows of a subquery that satisfy a condition, as a plan has them."""
    plan = planned(f"SELECT COUNT(*), SUM(CLIP(k, 0, 9)) FROM ({inner}) AS q WHERE {condition}", POLICY)
    return next(t for t in plan.tree.walk() if isinstance(t.node, Filter))


@pytest.mark.parametrize(
    ("rows", "stored"),
    [
        ("SELECT id, k, k + 0 AS j FROM t", {"id", "k"}),
        ("SELECT id, n FROM (SELECT id, k AS n, -k AS m FROM t) AS q WHERE m < 3", {"id", "n"}),
        ("SELECT id, MAX(k) AS k, s FROM t GROUP BY id, s", {"id", "s"}),
        ("SELECT id, k % 2 AS k, COUNT(*) AS n FROM t GROUP BY 1, 2", {"id"}),
        ("SELECT DISTINCT id, k, upper(s) AS s FROM t", {"id", "k"}),
        ("SELECT t.id, u.k, u.name FROM t LEFT JOIN u ON t.k = u.k", {"id", "k", "name"}),
        ("SELECT id, k, v FROM t CROSS JOIN (VALUES (1), (2)) AS w(v)", {"id", "k"}),
        ("SELECT id, k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", {"id", "k"}),
        ("SELECT id, k, s FROM t UNION ALL SELECT id, k, upper(s) FROM t", {"id", "k"}),
        ("SELECT id, k FROM t UNION SELECT id, id FROM t", {"id"}),  # one side is converted to BIGINT
        ("SELECT id, k, LAG(k) OVER (PARTITION BY id ORDER BY k) AS before FROM t", {"id", "k"}),
        ("SELECT id, CAST(k AS BIGINT) AS k FROM t", {"id", "k"}),  # no conversion at all
        ("SELECT id, CAST(k AS INTEGER) AS k FROM t", {"id"}),
    ],
)
def test_stored_columns(rows: str, stored: set[str]) -> None:
    node = bound(rows)
    found = stored_columns(node)
    assert {c.name for c in output_columns(node) if c.uid in found} == stored


def test_row_numbers() -> None:
    node = bound(
        "SELECT id, n, n + 1 AS m, r FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY k) AS n,"
        " RANK() OVER (PARTITION BY id ORDER BY k) AS r FROM t) AS q WHERE n < 9"
    )
    assert {c.name for c in output_columns(node) if c.uid in row_numbers(node)} == {"n"}


ONE = "(CLIP(CAST(k AS DOUBLE), 1, 2) + 1e19 - 1e19)"
"""1 or 2 in real arithmetic, and 0 in the engine."""


@pytest.mark.parametrize(
    ("inner", "condition", "keys"),
    [
        ("SELECT id, k, COUNT(*) AS n FROM t GROUP BY 1, 2", "k = 3", {"id"}),
        ("SELECT id, k, COUNT(*) AS n FROM t GROUP BY 1, 2", "k <= 3", {"id", "k"}),
        ("SELECT id, -k AS k, COUNT(*) AS n FROM t GROUP BY 1, 2", "k = 3", {"id", "k"}),
        ("SELECT id, CLIP(k, 0, 9) AS k, COUNT(*) AS n FROM t GROUP BY 1, 2", "k <= 0", {"id", "k"}),
        (f"SELECT id, coalesce(CAST(0 / {ONE} AS BIGINT), -k) AS k, COUNT(*) AS n FROM t GROUP BY 1, 2", "k <= 0",
         {"id", "k"}),
        (f"SELECT id, sign({ONE}) AS k, COUNT(*) AS n FROM t GROUP BY 1, 2", "k <= 1", {"id", "k"}),
        ("SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY k) AS k FROM t", "k = 1", {"id"}),
        ("SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY k) AS k FROM t", "k <= 1", {"id"}),
        ("SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY k) AS k FROM t", "k <= 2", {"id", "row_number"}),
        ("SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY k) - 1 AS k FROM t", "k <= 0",
         {"id", "row_number"}),
    ],
)  # fmt: skip
def test_keys_are_shortened_by_stored_columns_and_row_numbers(inner: str, condition: str, keys: set[str]) -> None:
    node = filtered(inner, condition)
    names = {c.uid: c.name for c in output_columns(node.node)}
    found = [{names[uid] for uid in key} for key in node.fact.keys if key <= names.keys()]
    assert min(found, key=len, default=keys) == keys


@pytest.mark.parametrize(
    ("inner", "nullable"),
    [
        ("SELECT id, k FROM t", False),
        ("SELECT id, CAST(x AS BIGINT) AS k FROM t", True),
        ("SELECT id, MAX(k) AS k FROM t GROUP BY id", True),
    ],
)
def test_filters_tell_of_stored_columns_alone(inner: str, nullable: bool) -> None:
    found = filtered(inner, "k IS NOT NULL")
    (fact,) = [found.fact.columns[c.uid] for c in output_columns(found.node) if c.name == "k"]
    assert fact.value.nullable is nullable


@pytest.mark.parametrize(
    ("counted", "values"),
    [
        ("CASE WHEN k > 3 THEN 'a' ELSE 'b' END", 2),
        ("k) FILTER (WHERE k IN (1, 2)", 2),
        (f"coalesce(CLIP(CAST(0 / {ONE} AS BIGINT), 0, 0), k)", None),
        (f"coalesce(CLIP(CAST(0 / {ONE} AS BIGINT), 0, 0), CLIP(k, 0, 4))", 5),
        ("j) FILTER (WHERE j IN (1, 2)", None),
        (f"sign({ONE})", 3),
        ("ln(CASE WHEN k > 3 THEN 2 ELSE 1 END)", None),
    ],
)
def test_values_that_a_count_can_count(counted: str, values: int | None) -> None:
    rows = "(SELECT id, k, k + 0 AS j FROM t) AS q"
    plan = planned(f"SELECT COUNT(DISTINCT {counted}) FROM {rows}", POLICY)
    assert plan.releases[0].measured.measurements[0].component.values == values
