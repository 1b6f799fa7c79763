"""The picture of a limit that was found: `python -m docs.found_limits` writes docs/images/found-limits.svg.

The orders are made up, the query and its noise are real: its search is drawn anew each time, so `make generate` leaves
the picture alone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpsql

TARGET = Path(__file__).resolve().parent / "images" / "found-limits.svg"
QUESTION = "SELECT SUM(amount) AS total FROM orders"
POLICY: dict[str, Any] = {
    "version": 1,
    "name": "shop",
    "units": {"customer": {}},
    "tables": {
        "orders": {
            "unit": {"column": "customer"},
            "columns": {"customer": {"type": "bigint", "nullable": False}, "amount": {"type": "integer"}},
        }
    },
    "budgets": {"total": {"epsilon": 100}},
}


def orders() -> pd.DataFrame:
    """Of 20,000 customers, some of whom buy a hundred times as much as others."""
    rng = np.random.default_rng(7)
    amounts = np.ceil(100 * rng.lognormal(0, 1, 20_000)).astype(int)
    return pd.DataFrame({"customer": range(len(amounts)), "amount": amounts})


def draw(target: Path) -> None:
    """Ask, and draw the limit that was found."""
    import matplotlib as mpl

    mpl.use("Agg")
    with dpsql.connect(dpsql.Policy.from_dict(POLICY), frames={"orders": orders()}, ledger=":memory:") as con:
        answer = con.sql(QUESTION).run(epsilon=0.8, limits="search")
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dpsql", "font.family": "sans-serif"}):
        axes = answer.plot("bound")
        axes[0].figure.figure.savefig(target, facecolor="white", metadata={"Date": None})
    print(*answer.notes, sep="\n")


if __name__ == "__main__":
    draw(TARGET)
    print(f"wrote {TARGET}")
    sys.exit(0)
