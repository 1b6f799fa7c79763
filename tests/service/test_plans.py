"""Plans that were made without data are for looking at."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.diagnostics.diagnostic import Source
from dpsql.service.checks.check import static_plan

POLICY = {
    "version": 1,
    "name": "shop",
    "tables": {
        "kinds": {"public": True, "unique": [["kind"]], "columns": {"kind": {"type": "varchar", "nullable": False}}},
        "sales": {
            "unit": {"rows": 1},
            "columns": {"kind": {"type": "varchar", "domain": {"table": "kinds", "column": "kind"}}},
        },
    },
    "budgets": {"total": {"epsilon": 10}},
}
QUERY = "SELECT kind, COUNT(*) AS n FROM sales GROUP BY kind"


def test_a_plan_without_the_public_key_list_does_not_run(tmp_path: Path) -> None:
    data = duckdb.connect()
    data.execute("CREATE TABLE kinds AS SELECT 'tea' AS kind")
    data.execute("CREATE TABLE sales AS SELECT 'tea' AS kind FROM range(100)")
    ledger = MemoryLedger("shop", "approx_dp")
    with dpsql.connect(data, policy=dpsql.Policy.model_validate(POLICY), ledger=ledger, optimizers="ours") as con:
        blind = static_plan(Source(QUERY), con.policy)
        assert not blind.basis.complete
        with pytest.raises(dpsql.Rejected, match="DP903"):
            con.run(blind)
        assert not ledger.history()
        seen = con.sql(QUERY).plan(epsilon=5)
        assert seen.basis.complete and [kind for kind, _ in con.run(seen)] == ["tea", None]
