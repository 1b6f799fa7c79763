"""docs/howto/spark.md, done as it says: its policy, its query, a draft of another policy."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import dpsql
from dpsql.faces.cli.main import main
from dpsql.policy.load import load_policy
from tests.engines_elsewhere.spark.servers import Server

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_page_is_true(
    cluster: Server, schema: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = schema(
        "CREATE TABLE SCHEMA.orders USING parquet AS SELECT id % 100 AS customer, "
        "CAST(id % 90 AS DECIMAL(10, 2)) AS amount, CASE WHEN id % 3 = 0 THEN 'north' ELSE 'south' END AS region "
        "FROM range(3000)",
        "CREATE TABLE SCHEMA.regions USING parquet AS SELECT 'north' AS name UNION ALL SELECT 'south'",
    )
    page = (DOCS / "howto" / "spark.md").read_text(encoding="utf-8")
    found = re.search(r"^```yaml[^\n]*\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    text = re.sub(r"database: sc://\S+", f"database: '{cluster.address}'", found[1])
    text = text.replace("s3a://lake/orders", str(cluster.folder / "warehouse" / f"{name}.db" / "orders"))
    policy = tmp_path / "policy.yaml"
    policy.write_text(text.replace("main.sales.regions", f"spark_catalog.{name}.regions"), encoding="utf-8")
    with dpsql.connect(policy) as con:
        answer = con.sql("SELECT region, COUNT(*) AS n FROM orders GROUP BY region ORDER BY n").run(epsilon=5)
        (north, fewer), (south, more) = answer.rows
        assert (north, south) == ("north", "south") and abs(fewer - 1000) < 300 and abs(more - 2000) < 300
    for command in (["policy", "verify", str(policy)], ["policy", "init", cluster.address]):
        assert main(command) == 0
    assert f"{name}.orders" in capsys.readouterr().out


def test_a_function_that_is_refused_is_refused_by_check_alone(tmp_path: Path) -> None:
    """Without a cluster: the dialect is the policy's."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\nname: shop\ndatabase: sc://nowhere:15002\nbudgets: {total: {epsilon: 1}}\ntables:\n  orders:\n"
        "    source: a.b.orders\n    unit: {of: customer, column: customer}\n    max_rows_per_unit: 3\n"
        "    columns: {customer: {type: bigint}, amount: {type: double, bounds: [0, 9]}}\n"
    )
    loaded = load_policy(policy)
    assert dpsql.check("SELECT SUM(CLIP(amount * amount, 0, 9)) AS s FROM orders", loaded) == []
    found = dpsql.check("SELECT SUM(CLIP(LN(amount), 0, 9)) AS s FROM orders", loaded)
    assert [(d.code, d.message) for d in found] == [("DP105", "ln cannot be computed exactly on Apache Spark")]
