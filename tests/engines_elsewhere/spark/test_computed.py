"""Columns that the policy computes are computed by Spark: the same exact numbers as DuckDB's, and as a query's."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from tests.engines_elsewhere.computed import DATA, POLICY, QUERIES, totals
from tests.engines_elsewhere.spark.servers import Server

pytestmark = pytest.mark.long_on_spark


def both(tmp_path: Path, cluster: Server) -> tuple[Path, Path]:
    """The same rows in DuckDB and in files of the cluster."""
    here, there = tmp_path / "here.yaml", tmp_path / "there.yaml"
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as con:
        con.execute(DATA)
        con.execute("SET TimeZone = 'UTC'")
        for table in ("orders", "places"):
            con.execute(f"COPY {table} TO '{tmp_path}/{table}.parquet'")
    here.write_text(POLICY.format(database="database: shop.duckdb"))
    text = POLICY.format(database=f"database: {cluster.address}")
    for table in ("orders", "places"):
        text = text.replace(f"  {table}:\n", f"  {table}:\n    source: read_parquet('{tmp_path}/{table}.parquet')\n")
    there.write_text(text)
    return here, there


def test_both_engines_compute_the_same(tmp_path: Path, cluster: Server) -> None:
    here, there = both(tmp_path, cluster)
    for sql, written in QUERIES.items():
        found = totals(there, sql)
        assert found == totals(here, sql), sql
        assert not written or found == totals(there, written), sql


def test_what_is_promised_of_it_is_verified(tmp_path: Path, cluster: Server) -> None:
    for path in both(tmp_path, cluster):
        path.write_text(
            path.read_text().replace(
                '"trim(buyer)", type: varchar', "\"nullif(trim(buyer), '')\", type: varchar, nullable: false"
            )
        )
        found = {c.where: c for c in dpsql.verify_policy(path).checks}
        assert found["tables.orders.columns.who.nullable"].measured == 2


def test_what_the_cluster_cannot_compute_is_refused_by_name(tmp_path: Path) -> None:
    text = POLICY.format(database="database: sc://nowhere.example")
    for new, code in {"reverse(name)": "DP105", "name ->> 'a'": "DP105"}.items():
        (tmp_path / "shop.yaml").write_text(text.replace("upper(name)", new))
        with pytest.raises(dpsql.CannotOpen) as caught:
            dpsql.connect(tmp_path / "shop.yaml")
        (found,) = caught.value.diagnostics
        assert found.code == code and found.source is not None and found.span is not None
        assert found.message.startswith("tables.places.columns.code.from: ") and "store the column" in found.help[-1]
