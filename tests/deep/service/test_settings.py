"""The most absurd numbers are planned and shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.api.connection import connect
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.diagnostics.errors import Rejected


@pytest.mark.parametrize("accountant", ["approx_dp", "zcdp"])
def test_the_most_absurd_numbers_are_planned_and_shown(club_folder: Path, tmp_path: Path, accountant: str) -> None:
    """Whatever a caller may write is priced and explained, or refused: searches and messages stay in range."""
    text = (club_folder / "club.yaml").read_text(encoding="utf-8")
    text = text.replace("club.duckdb", str(club_folder / "club.duckdb"))
    text = text.replace("name: club\n", f"name: club\nprivacy: {{accountant: {accountant}}}\n")
    if accountant == "zcdp":
        text = text.replace("epsilon: 10000", "rho: 10000")
    (tmp_path / "club.yaml").write_text(text, encoding="utf-8")
    sums = ", ".join(f"SUM(amount + {i}) AS s{i}" for i in range(12))
    with connect(tmp_path / "club.yaml", ledger=MemoryLedger("club", accountant)) as con:
        query = con.sql(f"SELECT COUNT(*) AS n, {sums} FROM tills")
        for wish in (
            {"epsilon": "1e100"},
            {"epsilon": 1, "weights": {"s1": "1e100"}},
            {"epsilon": "1e100", "weights": {"s1": "1e-100", "s2": "1e100"}},
            {"max_error": {"s1": "1e-100"}},
            {"max_error": {"s1": "1e100"}},
            {"max_error": {"s1": 5}, "confidence": "1e-6"},
        ):
            for delta in ("1e-9", "1e-300"):
                try:
                    loss = query.plan(delta=delta, **wish).loss
                    assert loss.epsilon or loss.rho
                    assert query.explain(delta=delta, **wish) and query.accuracy(delta=delta, **wish)
                except Rejected as refusal:
                    assert refusal.diagnostics[0].code == "DP410"
