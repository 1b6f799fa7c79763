"""The examples keep what their policies promise; data that is changed under them does not."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import duckdb

from dpsql.service.checks.verify import Verification, verify_policy


def broken(found: Verification) -> dict[str, int | None]:
    return {c.where: c.measured for c in found.broken}


def test_flights(flights_folder: Path, flights_tables: duckdb.DuckDBPyConnection) -> None:
    for policy in sorted(flights_folder.glob("*.yaml")):
        found = verify_policy(policy)
        assert found.holds and len(found.checks) > (30 if "planes:" in policy.read_text() else 5), policy
    numbers = {(c.kind, c.where): c.measured for c in verify_policy(flights_folder / "flights.yaml").checks}
    truth = flights_tables.execute("SELECT count(*) FROM flights WHERE tailnum IS NULL").fetchall()[0][0]
    assert numbers["no_id", "tables.flights.unit"] == truth > 0


def test_flights_with_a_doubled_register(flights_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "flights"
    copytree(flights_folder, folder)
    register = folder / "data" / "planes.parquet"
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE planes AS FROM read_parquet('{register}')")
        con.execute("INSERT INTO planes FROM planes WHERE tailnum = 'N10156'")
        con.execute("INSERT INTO planes (year) VALUES (2013)")
        con.execute(f"COPY planes TO '{register}'")
    for policy in (p for p in folder.glob("*.yaml") if "planes:" in p.read_text()):
        assert broken(verify_policy(policy)) == {
            "tables.planes.primary_key": 2,
            **{f"tables.planes.columns.{c}.nullable": 1 for c in ("tailnum", "manufacturer", "model", "engines")},
            **{f"tables.planes.columns.{c}.nullable": 1 for c in ("seats", "engine")},
        }


def test_tpch(tpch_folder: Path) -> None:
    for policy in sorted(tpch_folder.glob("*.yaml")):
        found = verify_policy(policy)
        assert found.holds, (policy, broken(found))


def test_tpch_with_orders_that_share_a_number(tpch_folder: Path, tmp_path: Path) -> None:
    """The path of lineitem rests on the key of orders; lines of an order that is gone lead to nobody."""
    folder = tmp_path / "tpch"
    copytree(tpch_folder, folder)
    orders = folder / "data" / "orders.parquet"
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE orders AS FROM read_parquet('{orders}')")
        con.execute("UPDATE orders SET o_orderkey = 1 WHERE o_orderkey = 2")
        con.execute(f"COPY orders TO '{orders}'")
        lines = con.execute(
            f"SELECT count(*) FROM read_parquet('{folder}/data/lineitem.parquet') WHERE l_orderkey = 2"
        ).fetchall()[0][0]
    found = verify_policy(folder / "tpch.yaml")
    assert broken(found) == {"tables.orders.primary_key": 2, "tables.lineitem.unit.path[0].references": 2}
    left_out = {c.where: c.measured for c in found.checks if c.kind == "no_id"}
    assert left_out["tables.lineitem.unit"] == lines > 0
