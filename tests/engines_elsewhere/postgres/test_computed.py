"""Columns that the policy computes are computed by PostgreSQL: the same exact numbers as DuckDB's, and as a query's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import dpsql
from tests.engines_elsewhere.computed import DATA, POLICY, QUERIES, totals
from tests.engines_elsewhere.postgres.servers import Server


def both(tmp_path: Path, server: Server, database: Callable[[str], str]) -> tuple[Path, Path]:
    here, there = tmp_path / "here.yaml", tmp_path / "there.yaml"
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as con:
        con.execute(DATA)
    here.write_text(POLICY.format(database="database: shop.duckdb"))
    there.write_text(POLICY.format(database=f"database: {server.address(database(DATA))}"))
    return here, there


def test_both_engines_compute_the_same(tmp_path: Path, server: Server, database: Callable[[str], str]) -> None:
    here, there = both(tmp_path, server, database)
    for sql, written in QUERIES.items():
        found = totals(there, sql)
        assert found == totals(here, sql), sql
        assert not written or found == totals(there, written), sql


def test_what_is_promised_of_it_is_verified(tmp_path: Path, server: Server, database: Callable[[str], str]) -> None:
    for path in both(tmp_path, server, database):
        path.write_text(
            path.read_text().replace(
                '"trim(buyer)", type: varchar', "\"nullif(trim(buyer), '')\", type: varchar, nullable: false"
            )
        )
        found = {c.where: c for c in dpsql.verify_policy(path).checks}
        assert found["tables.orders.columns.who.nullable"].measured == 2


def test_what_the_server_cannot_compute_is_refused_by_name(one_server: Server, tmp_path: Path) -> None:
    text = POLICY.format(database=f"database: {one_server.address('nowhere')}")
    for new, code in {"CAST(CAST(name AS integer) AS varchar)": "DP105", "name ->> 'a'": "DP105"}.items():
        (tmp_path / "shop.yaml").write_text(text.replace("upper(name)", new))
        with pytest.raises(dpsql.CannotOpen) as caught:
            dpsql.connect(tmp_path / "shop.yaml")
        (found,) = caught.value.diagnostics
        assert found.code == code and found.source is not None and found.span is not None
        assert found.message.startswith("tables.places.columns.code.from: ") and "make a view" in found.help[-1]
