"""What one buyer changes of prepared tables' coverage."""

from __future__ import annotations

from pathlib import Path

import duckdb

import dpsql
from dpsql.service.preparing.prepare import prepare
from tests.service.test_prepared import shop

__all__ = ["shop"]


def test_one_buyer_moves_one_cell_of_the_coverage_of_cut_rows_by_one(shop: Path) -> None:
    """In every neighbour, of those above the limit and of those not: priced at 1, and reached."""

    def cells() -> list[int]:
        prepare(shop)
        with dpsql.connect(shop, ledger=":memory:") as con:
            (found,) = con.sql("SELECT COUNT(*) AS n FROM orders").run(epsilon=10**6, coverage=True).coverage
            return [cell.number for cell in found.cells]

    def change(sql: str) -> None:
        with duckdb.connect(str(shop.with_name("shop.duckdb"))) as connection:
            connection.execute(sql)

    change("DELETE FROM orders WHERE buyer IN (3, 4) AND nr > 10; CREATE TABLE every_order AS FROM orders")
    whole, moved = cells(), list[tuple[int, ...]]()
    for buyer in range(5):
        change(f"CREATE OR REPLACE TABLE orders AS FROM every_order WHERE buyer IS DISTINCT FROM {buyer}")
        moved.append(tuple(a - b for a, b in zip(whole, cells(), strict=True)))
    assert whole == [3, 2] and sorted(moved) == [(0, 1), (0, 1), (1, 0), (1, 0), (1, 0)]
