"""The benchmarks run, compare like with like, and write what they measured. No figure is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import dpsql
from benchmarks import data, queries

pytestmark = pytest.mark.e2e


@pytest.mark.slow
def test_everything_runs_and_is_written_down(root: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "--quick",
        "--people",
        "500",
        "--rounds",
        "1",
        "--folder",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "latest.json").read_text())
    assert {"machine", "end_to_end", "planning_ms", "samplers", "ledger"} <= set(report)
    assert report["machine"]["duckdb"] == duckdb.__version__
    found = report["end_to_end"]["queries"]
    assert list(found) == ["Q1", "Q2", "Q3", "Q4", "Q5"]
    for name, rows in found.items():
        assert {"plain", "engine", "dpsql"} <= set(rows)
        assert ("floor" in rows) == (name in {"Q3", "Q4", "Q5"})
        assert all(row["median_ms"] > 0 for row in rows.values())
    assert set(report["planning_ms"]) == {*found, "five-table join"}


def test_floors_and_answers_are_those_of_the_queries(tmp_path: Path) -> None:
    """At a large ε, dpsql answers what the per-person floor says (counts and sums: the bounded truth)."""
    policy = tmp_path / "persons.yaml"
    policy.write_text(data.POLICY_PERSONS + "ledger: l.sqlite\nledger_head: head.json\n")
    by_name = {q.name: q for q in queries.QUERIES}
    with duckdb.connect(str(data.make(tmp_path, 2000)), read_only=True) as plain:
        with dpsql.connect(plain, policy=policy) as con:
            ours = {n: con.execute(by_name[n].sql, epsilon=100_000).rows for n in ("Q3", "Q4", "Q5")}
        floors = {n: plain.execute(by_name[n].floor or "").fetchall() for n in ours}
        assert plain.execute("SELECT MAX(n) FROM (SELECT COUNT(*) n FROM orders GROUP BY person_id)").fetchall() == [
            (200,)
        ]
        assert plain.execute("SELECT COUNT(*), COUNT(DISTINCT id) FROM people").fetchall() == [(2000, 2000)]
    ((n, s),) = ours["Q3"]
    assert (n, s) == (pytest.approx(floors["Q3"][0][0], rel=1e-3), pytest.approx(floors["Q3"][0][1], rel=1e-3))
    assert [row[0] for row in ours["Q4"]] == sorted(row[0] for row in floors["Q4"])
    floor5 = {row[0]: row[1:] for row in floors["Q5"]}
    assert len(ours["Q5"]) == 4
    for region, n, s in ours["Q5"]:
        assert (n, s) == (pytest.approx(floor5[region][0], rel=1e-3), pytest.approx(floor5[region][1], rel=1e-3))
