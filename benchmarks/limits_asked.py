"""Limits that a search finds, through the whole product: the same as in `limits.py`, and the time that it takes."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

import dpsql
from benchmarks.frame import Figures, take_turns, unasked
from benchmarks.limit_rules import Totals, limits_found
from benchmarks.tpch import EXAMPLE, session
from dpsql.core.ledger.memory import MemoryLedger

EPSILON = Fraction(8, 10)
_LINES = "FROM orders JOIN lineitem ON l_orderkey = o_orderkey"
QUESTIONS = {
    "Q3": (
        "tpch",
        f"SELECT COUNT(*) AS n {_LINES} WHERE o_orderdate < DATE '1997-01-01' AND l_shipdate > DATE '1994-01-01'",
    ),
    "Q10": ("tpch", "SELECT COUNT(*) AS n FROM orders"),
    "Q18": ("tpch", f"SELECT SUM(l_quantity) AS n {_LINES}"),
    "Q11": ("tpch-supplier", "SELECT SUM(ps_supplycost * ps_availqty) AS n FROM partsupp"),
    "Q20": ("tpch-supplier", "SELECT COUNT(*) AS n FROM lineitem"),
}
"""Row of `limits.py` → the policy of examples/tpch whose unit it has, and the query."""
TIMED = {
    "ungrouped": "SELECT COUNT(*) AS n FROM orders",
    "grouped": "SELECT o_orderpriority, COUNT(*) AS n FROM orders GROUP BY o_orderpriority",
}


def opened(folder: Path, policy: str) -> dpsql.Connection:
    """An example's policy without limits and bounds of numbers, and with a budget that cannot end."""
    text = (EXAMPLE / f"{policy}.yaml").read_text(encoding="utf-8")
    text = re.sub(r"total: \{epsilon: \d+, delta: [^}]+", "total: {epsilon: 1e18, delta: 0.5", text)
    text = re.sub(r"^ *max_rows_per_unit:.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r",? *bounds: \[[-+0-9., ]*\]", "", text)
    copy = folder / f"{policy}-open.yaml"
    copy.write_text(text, encoding="utf-8")
    return dpsql.connect(copy, ledger=MemoryLedger())


def asked(folder: Path, totals: Mapping[str, Totals], runs: int) -> list[Figures]:
    """For each row the limits that the product finds, and those of as many releases drawn without the engine."""
    found = []
    for policy in dict.fromkeys(policy for policy, _ in QUESTIONS.values()):
        with opened(folder, policy) as con:
            for name, (own, sql) in QUESTIONS.items():
                if own == policy:
                    found.append({"row": name} | _asked(con, sql, totals[name], runs))
    return found


def _asked(con: dpsql.Connection, sql: str, totals: Totals, runs: int) -> Figures:
    answers = [con.sql(sql).run(epsilon=EPSILON, limits="search", fresh=True) for _ in range(runs)]
    worth = answers[0].plan.found[0].octaves.grid
    errors = [100 * abs(float(a.rows[0][0]) / float(totals.true * worth) - 1) for a in answers]
    drawn = Counter(limit and float(limit * worth) for limit in limits_found(totals, EPSILON, 400))
    return {
        "limits": dict(Counter(str(a.bounds[0].limit) for a in answers)),
        "drawn": {f"{limit:g}" if limit else "none": n for limit, n in drawn.most_common()},
        "error": statistics.median(errors),
    }


def paces(folder: Path, rounds: int) -> Figures:
    """How long a query takes with a search, beside the same query whose limit is declared."""
    found = {}
    with opened(folder, "tpch") as searching, session(folder, "tpch") as declared:
        for name, sql in TIMED.items():
            found[name] = take_turns(
                {"declared": _run(declared, sql), "search": _run(searching, sql, "search")}, rounds
            )
    return found


def _run(con: dpsql.Connection, sql: str, limits: str = "declared") -> Callable[[], object]:
    return lambda: con.sql(unasked(sql)).run(epsilon=1, limits=limits, fresh=True)
