"""A server whose worker, a process of its own, asks a cluster: an answer is paid once, and a refusal never."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dpsql.faces.server.statements import Refused
from tests.engines_elsewhere.spark.servers import Server
from tests.support.served_shop import FINE, served, with_serve
from tests.support.small_shop import PRICE, Shop

pytestmark = pytest.mark.processes

POLICY = """
version: 1
name: shop
database: ADDRESS
tables:
  orders:
    source: spark_catalog.SCHEMA.orders
    unit: {of: customer, column: customer}
    max_rows_per_unit: 5
    columns:
      customer: {type: bigint}
      city:     {type: varchar, domain: [Bonn, Lyon, Oslo], nullable: false}
      amount:   {type: bigint, bounds: [0, 100]}
ledger: shop.ledger.sqlite
ledger_head: head.json
budgets: {total: {epsilon: 100}}
"""
ORDERS = (
    "CREATE TABLE SCHEMA.orders USING parquet AS SELECT id % 300 AS customer, id % 101 AS amount, "
    "element_at(array('Bonn', 'Lyon', 'Oslo'), CAST(id % 3 AS INT) + 1) AS city FROM range(2000)"
)
CITIES = "SELECT city, COUNT(*) AS n FROM orders GROUP BY city ORDER BY city"


def test_a_question_is_answered_paid_once_and_another_refused(
    cluster: Server, schema: Callable[..., str], tmp_path: Path
) -> None:
    shop = Shop(tmp_path)
    shop.policy.write_text(POLICY.replace("ADDRESS", cluster.address).replace("SCHEMA", schema(ORDERS)))
    with served(with_serve(shop, f"{FINE}}}")) as server:
        answer = server.ask(CITIES)
        assert [row[0] for row in answer.rows] == ["Bonn", "Lyon", "Oslo"] and answer.spent == "ε 0.1"
        again = server.ask(CITIES)
        assert (list(again.rows), again.spent) == (list(answer.rows), "")
        with pytest.raises(Refused) as refusal:
            server.ask("SELECT SUM(customer) FROM orders")
        assert [d.code for d in refusal.value.diagnostics] == ["DP201"]
    assert shop.spent() == PRICE
