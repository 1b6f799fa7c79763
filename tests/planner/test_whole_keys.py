"""Bins: whole numbers that are typed DOUBLE, as keys of releases, and their values in the answer."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.errors import Rejected
from tests.support.planning import planned, policy

HEAD = """
people:
  unit: {column: id, of: person}
  primary_key: [id]
  columns:
    id: {type: bigint, nullable: false}
    age: {type: integer, bounds: [0, 99], nullable: false}
    fee: {type: double, bounds: [0, 500]}
    smoker: {type: double, domain: [0, 1]}
    tax: {type: double, domain: [0, 0.1, 2.5, -3], nullable: false}
    day: {type: date, bounds: [2024-01-01, 2024-03-31], nullable: false}
"""
BINS = (
    "floor(age / 10) * 10", "floor(age / 10)", "ceil(age / 10)", "round(age / 10)", "round(age, -1)",
    "trunc(age / 7) * 7 + 1", "-floor(age / 10)", "floor(fee / 10)", "ceil(fee / 100) * 100", "round(fee)",
    "floor(fee / 50) + floor(age / 50)", "CAST(floor(fee / 50) AS INTEGER)",
    "floor(fee / 0.5) * 0.5", "floor(fee / 50.0) * 50.0", "floor(fee / 2.5) * -2.5 + .1", "floor(age / 10) / 4.0",
    "smoker", "tax", "-tax", "tax * 10.0 + 1", "CAST(tax AS DECIMAL(5,1))",
    "time_bucket(INTERVAL 1 MONTH, day)", "time_bucket(INTERVAL 7 DAY, day)",
)  # fmt: skip


@pytest.mark.parametrize("bins", BINS)
def test_the_list_is_public(bins: str) -> None:
    (release,) = planned(f"SELECT {bins} AS b, COUNT(*) FROM people GROUP BY b", policy(HEAD)).releases
    assert release.measured.threshold is None and release.measured.contribution.most_groups == 1


def test_what_is_no_whole_number_is_refused() -> None:
    for bins in (
        "fee",
        "fee * 10",
        "round(fee, 1)",
        "floor(fee) * 0.0",
        "floor(fee) + 1e300",
        "floor(fee) / fee",
        "age / 10 * 10",
    ):
        with pytest.raises(Rejected) as refusal:
            planned(f"SELECT {bins} AS b, COUNT(*) FROM people GROUP BY b", policy(HEAD))
        assert refusal.value.diagnostics[0].code == "DP301"


def test_the_groups_are_duckdbs(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "test.duckdb") as db:
        db.execute(
            "CREATE TABLE people AS SELECT i AS id, CAST(i * 7 % 100 AS INTEGER) AS age, i / 3.0 AS fee, "
            "CAST(nullif(i % 3, 2) AS DOUBLE) AS smoker, [0.0, -0.0, 0.1, 2.5, -3][1 + i % 5]::DOUBLE AS tax, "
            "DATE '2024-01-01' + CAST(i % 90 AS INTEGER) AS day FROM range(400) t(i)"
        )
        indented = "".join(f"  {line}\n" for line in HEAD.strip().splitlines())
        path = tmp_path / "test.yaml"
        path.write_text(
            "version: 1\nname: test\ndatabase: test.duckdb\nbudgets: {total: {epsilon: 1e9}}\nunits: {person: {}}\n"
            f"tables:\n{indented}"
        )
        asked = {b: f"SELECT {b} AS b, COUNT(*) AS n FROM people GROUP BY b ORDER BY b" for b in BINS}
        theirs = {b: db.execute(sql).fetchall() for b, sql in asked.items()}
    with dpsql.connect(path, ledger=":memory:") as con:
        for b, sql in asked.items():
            ours = [row for row in con.sql(sql).run(epsilon=1e6).rows if row[1]]
            assert ours == theirs[b] and [type(r[0]) for r in ours] == [type(r[0]) for r in theirs[b]], b


def test_what_a_list_does_not_hold_is_left_out(tmp_path: Path) -> None:
    """Nor is it counted with the value beside it."""
    path = tmp_path / "test.yaml"
    path.write_text(
        "version: 1\nname: test\ndatabase: test.duckdb\nbudgets: {total: {epsilon: 1e9}}\n"
        "tables:\n  t:\n    unit: {rows: 1}\n    columns:\n      x: {type: double, domain: [0, 1], nullable: false}\n"
    )
    with duckdb.connect(tmp_path / "test.duckdb") as db:
        db.execute("CREATE TABLE t AS SELECT unnest([0, 1, 1, .4, .9999, 1e300, 'nan', '-inf', NULL])::DOUBLE AS x")
    with dpsql.connect(path, ledger=":memory:") as con:
        rows = con.sql("SELECT x, COUNT(*) FROM t GROUP BY x ORDER BY x").run(epsilon=1e6).rows
    assert [tuple(row) for row in rows] == [(0.0, 1), (1.0, 2)]
