"""TPC-H at any scale: which queries are answered, how far from the exact answer, and how fast beside plain DuckDB.

    tpchgen-cli parquet -s 1 --output-dir=DIR/data
    python -m benchmarks.tpch DIR [--policies tpch tpch-supplier tpch-rows] [--queries q01 …] [--rounds 3] [--json FILE]

For every query and policy: the code of the refusal, or

plain     processor seconds of the same text in plain DuckDB on the same files, median over the rounds
dpsql     the same of planning, charging (a ledger in memory), running, adding noise and post-processing
rows      rows of the exact answer, and how many of them are among the rows answered at ε = 1
error     median over the shown numbers of |answer - exact| / |exact| at ε = 1, in one run; numbers of rows that both
          have; an exact 0 is left out
agrees    with ε = 10¹² every exact row is there, every number within 10⁻⁶ of the exact one (or one unit of it), and
          counts and sums of any further row are 0; private groups of one unit stay hidden and are left out

Prints Markdown tables. No test judges a figure. Policies are read from examples/tpch, with a budget that cannot end.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb

import dpsql
from benchmarks.__main__ import machine
from dpsql.budget.memory import MemoryLedger

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "tpch"
NUMBERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "q01": (
        ("l_returnflag", "l_linestatus"),
        (
            "sum_qty",
            "sum_base_price",
            "sum_disc_price",
            "sum_charge",
            "avg_qty",
            "avg_price",
            "avg_disc",
            "count_order",
        ),
    ),
    "q02": (("s_name", "p_partkey"), ("s_acctbal",)),
    "q03": (("l_orderkey",), ("revenue",)),
    "q03-months": (("month",), ("revenue",)),
    "q04": (("o_orderpriority",), ("order_count",)),
    "q05": (("n_name",), ("revenue",)),
    "q06": ((), ("revenue",)),
    "q07": (("supp_nation", "cust_nation", "l_year"), ("revenue",)),
    "q08": (("o_year",), ("mkt_share",)),
    "q09": (("nation", "o_year"), ("sum_profit",)),
    "q10": (("c_custkey",), ("revenue",)),
    "q10-nations": (("n_name",), ("revenue",)),
    "q11": (("ps_partkey",), ("value",)),
    "q12": (("l_shipmode",), ("high_line_count", "low_line_count")),
    "q13": (("c_count",), ("custdist",)),
    "q14": ((), ("promo_revenue",)),
    "q15": (("s_suppkey",), ("total_revenue",)),
    "q16": (("p_brand", "p_type", "p_size"), ("supplier_cnt",)),
    "q17": ((), ("avg_yearly",)),
    "q18": (("c_custkey", "o_orderkey"), ("quantity",)),
    "q18-orders": ((), ("orders", "quantity")),
    "q19": ((), ("revenue",)),
    "q20": (("s_name",), ()),
    "q20-suppliers": (("s_name",), ()),
    "q21": (("s_name",), ("numwait",)),
    "q22": (("cntrycode",), ("numcust", "totacctbal")),
}
"""query → the columns that tell its rows apart, and those that hold numbers made of many rows."""


@dataclass(frozen=True, slots=True)
class Result:
    """What was found of one query under one policy. Times in processor seconds; None where it is refused."""

    query: str
    policy: str
    code: str | None
    free: bool = False
    plain: float | None = None
    dpsql: float | None = None
    rows: int | None = None
    found: int | None = None
    error: float | None = None
    agrees: bool | None = None


Rows = dict[tuple[str, ...], dict[str, float]]


def session(folder: Path, policy: str) -> dpsql.Connection:
    """The policy beside the data, with a budget that cannot end and its ledger in memory."""
    text = (EXAMPLE / f"{policy}.yaml").read_text(encoding="utf-8")
    copy = folder / f"{policy}-measured.yaml"
    copy.write_text(re.sub(r"total: \{epsilon: \d+, delta: [^}]+", "total: {epsilon: 1e18, delta: 0.5", text))
    return dpsql.connect(copy, ledger=MemoryLedger())


def plain_tables(folder: Path) -> duckdb.DuckDBPyConnection:
    """Plain DuckDB over the same files."""
    con = duckdb.connect()
    for file in sorted((folder / "data").glob("*.parquet")):
        con.execute(f"CREATE VIEW {file.stem} AS FROM read_parquet('{file}')")
    return con


def numbers(query: str, columns: list[str], rows: list[tuple[Any, ...]]) -> Rows:
    """Key → its numbers."""
    keys, values = NUMBERS[query]
    found: Rows = {}
    for row in rows:
        named = dict(zip(columns, row, strict=True))
        found[tuple(str(named[k]) for k in keys)] = {v: 0.0 if named[v] is None else float(named[v]) for v in values}
    return found


def error(exact: Rows, answer: Rows) -> float | None:
    """The median relative error of the numbers that both have."""
    found = [
        abs(answer[key][name] - true) / abs(true)
        for key, row in exact.items()
        if key in answer
        for name, true in row.items()
        if true and math.isfinite(answer[key][name])
    ]
    return statistics.median(found) if found else None


def agree(exact: Rows, answer: Rows, hidden: bool) -> bool:
    """Whether an answer with next to no noise is the exact one, but for groups without rows, and hidden ones."""
    near = all(
        (hidden and key not in answer)
        or (key in answer and all(math.isclose(answer[key][n], v, rel_tol=1e-6, abs_tol=1) for n, v in row.items()))
        for key, row in exact.items()
    )
    empty = (row for key, row in answer.items() if key not in exact)
    return near and all(abs(v) < 1 for row in empty for name, v in row.items() if not name.startswith("avg"))


def timed(rounds: int, run: Callable[[], Any]) -> tuple[float, Any]:
    """Median processor seconds of all threads, which other programs disturb least, and the last result."""
    times, result = [], None
    for _ in range(rounds):
        start = time.process_time()
        result = run()
        times.append(time.process_time() - start)
    return statistics.median(times), result


def measure(query: str, policy: str, con: dpsql.Connection, plain: duckdb.DuckDBPyConnection, rounds: int) -> Result:
    """One query under one policy."""
    text = (EXAMPLE / "queries" / f"{query}.sql").read_text(encoding="utf-8")
    try:
        plan = con.plan(text)
    except dpsql.Rejected as refused:
        return Result(query, policy, refused.diagnostics[0].code)

    def exactly() -> tuple[list[str], list[tuple[Any, ...]]]:
        cursor = plain.execute(text)
        return [d[0] for d in cursor.description or []], cursor.fetchall()

    slow, (columns, rows) = timed(rounds, exactly)
    private, answer = timed(rounds, lambda: con.sql(text).run(epsilon=1, fresh=True))
    quiet = con.sql(text).run(epsilon=10**12, fresh=True)
    hidden = any(release.measured.threshold is not None for release in plan.releases)
    exact = numbers(query, columns, rows)
    noisy = numbers(query, list(answer.columns), answer.fetchall())
    return Result(
        query,
        policy,
        None,
        not plan.releases,
        round(slow, 3),
        round(private, 3),
        len(exact),
        len(exact.keys() & noisy.keys()),
        error(exact, noisy),
        agree(exact, numbers(query, list(quiet.columns), quiet.fetchall()), hidden),
    )


def markdown(results: list[Result]) -> str:
    """The tables of one policy after the other, as the example's README has them."""
    lines: list[str] = []
    for policy in dict.fromkeys(r.policy for r in results):
        lines += ["", f"## `{policy}.yaml`", ""]
        lines += ["| query | | answer | rows | error | DuckDB | dpsql |", "|---|---|---|--:|--:|--:|--:|"]
        for r in (r for r in results if r.policy == policy):
            text = (EXAMPLE / "queries" / f"{r.query}.sql").read_text(encoding="utf-8")
            said = r.code or ("exact" if r.free else "answered")
            cells = [
                r.query,
                text.splitlines()[0].removeprefix("-- "),
                said + (" DIFFERS" if r.agrees is False else ""),
            ]
            if r.code is None:
                assert r.plain is not None and r.dpsql is not None
                cells += [f"{r.found} of {r.rows}", _percent(r.error), f"{r.plain:.2f} s", f"{r.dpsql:.2f} s"]
            lines.append("| " + " | ".join([*cells, *[""] * (7 - len(cells))]) + " |")
    return "\n".join(lines)


def _percent(x: float | None) -> str:
    if x is None:
        return ""
    if x < 0.0001:
        return "0" if x == 0 else "< 0.01%"
    return f"{x:.2%}" if x < 0.1 else f"{x:.0%}" if x < 10 else f"{x:.0f} ×"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch")
    parser.add_argument("folder", type=Path, help="a folder with data/*.parquet")
    parser.add_argument("--policies", nargs="*", default=["tpch", "tpch-supplier", "tpch-rows"])
    parser.add_argument("--queries", nargs="*", default=sorted(NUMBERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    plain = plain_tables(given.folder)
    results = []
    for policy in given.policies:
        with session(given.folder, policy) as con:
            for query in given.queries:
                results.append(measure(query, policy, con, plain, given.rounds))
                print(results[-1], flush=True)
    print(markdown(results))
    if given.json is not None:
        report = {"machine": machine(), "results": [asdict(r) for r in results]}
        given.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
