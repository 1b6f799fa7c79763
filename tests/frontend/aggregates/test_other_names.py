"""BOOL_OR, BOOL_AND, EVERY, ANY_VALUE and APPROX_COUNT_DISTINCT are MAX, MIN and COUNT(DISTINCT) by other names."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.service.checks.check import static_plan
from tests.support.planning import policy

TABLES = """
t:
  unit: {column: id}
  max_rows_per_unit: 4
  columns: {id: {type: integer}, b: {type: boolean}, i: {type: integer, bounds: [0, 9]}}
"""
ROWS = [(1, True, 3), (1, False, 5), (2, False, 4), (2, None, 4), (3, None, None), (4, True, 9), (4, True, 1)]


@pytest.mark.parametrize(
    ("called", "known"),
    [
        ("approx_count_distinct(i)", "COUNT(DISTINCT i)"),
        ("approx_count_distinct(id) FILTER (WHERE i > 3)", "COUNT(DISTINCT id) FILTER (WHERE i > 3)"),
    ],
)
def test_they_are_planned_alike(called: str, known: str) -> None:
    plans = [static_plan(Source(f"SELECT {text} AS n FROM t"), policy(TABLES)) for text in (called, known)]
    assert len({fingerprint(plan.tree.node) for plan in plans}) == 1


@pytest.mark.parametrize(("called", "share"), [("bool_or(b)", 2 / 3), ("bool_and(b)", 1 / 3), ("every(i > 3)", 1 / 3)])
def test_conditions_of_a_person(tmp_path: Path, called: str, share: float) -> None:
    """Of the units that have a value: one that is true, all that are true."""
    written = "version: 1\nname: p\nunits: {person: {}}\nbudgets: {total: {epsilon: 1e18}}\ntables:\n"
    (tmp_path / "p.yaml").write_text(written + "".join(f"  {line}\n" for line in TABLES.strip().splitlines()), "utf-8")
    sql = f"SELECT AVG(CLIP(CAST(f AS INTEGER), 0, 1)) AS a FROM (SELECT id, {called} AS f FROM t GROUP BY id)"
    with duckdb.connect() as plain:
        plain.execute("CREATE TABLE t (id INTEGER, b BOOLEAN, i INTEGER)")
        plain.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)
        own = plain.execute(
            sql.replace("CLIP(CAST(f AS INTEGER), 0, 1)", "CAST(f AS INTEGER)").replace("every", "bool_and")
        )
        assert own.fetchall()[0][0] == pytest.approx(share)
        with dpsql.connect(plain, policy=tmp_path / "p.yaml", ledger=MemoryLedger(), optimizers="ours") as con:
            assert con.sql(sql).run(epsilon=10**9).rows[0][0] == pytest.approx(share, abs=1e-3)


def test_any_value_of_a_person_is_one_of_his() -> None:
    any_, least = (
        static_plan(
            Source(f"SELECT AVG(CLIP(f, 0, 9)) AS a FROM (SELECT id, {f}(i) AS f FROM t GROUP BY id)"), policy(TABLES)
        )
        for f in ("any_value", "MIN")
    )
    assert any_.releases[0].statements[0].sql == least.releases[0].statements[0].sql


@pytest.mark.parametrize("called", ["bool_or(i)", "every(id)", "bool_and('x')"])
def test_what_is_no_condition_is_refused(called: str) -> None:
    with pytest.raises(Rejected) as refusal:
        static_plan(Source(f"SELECT id, {called} AS f FROM t GROUP BY id"), policy(TABLES))
    assert refusal.value.diagnostics[0].code in ("DP106", "DP203")
