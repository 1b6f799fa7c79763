"""TPC-H: which queries are answered, how far from the exact answer, and how fast beside plain DuckDB and the floor.

    python -m benchmarks.tpch [--size short] [--policies tpch …] [--queries q01 …] [--folder DIR] [--json FILE]

The tables are made by tpchgen-cli, or by DuckDB's tpch extension where that is missing: scale 0.01 for --quick, else 1
(about 400 MB). For every query and policy: the code of the refusal, or

DuckDB    processor seconds of the same text in plain DuckDB on the same files, median over the rounds
dpsql     the same of planning, charging (a ledger in memory), running, adding noise and post-processing
× DuckDB  the ratio of wall times, median over interleaved rounds
× floor   the same to sums per customer, see tpch_floors.py
rows      rows of the exact answer, and how many of them are among the rows answered at ε = 1
error     median over the shown numbers of |answer - exact| / |exact| at ε = 1, in one run; numbers of rows that both
          have; an exact 0 is left out
agrees    with ε = 10¹² every exact row is there, every number within 10⁻⁶ of the exact one (or one unit of it), and
          counts and sums of any further row are 0; private groups of one unit stay hidden and are left out

Policies are read from examples/tpch, with a budget that cannot end. Full runs all three of them, short the first.
"""

from __future__ import annotations

import math
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import copytree, which
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

import dpsql
from benchmarks.frame import Figures, Settings, command, take_turns, times, unasked
from benchmarks.tpch_floors import FLOORS
from dpsql.core.ledger.memory import MemoryLedger

TITLE = "TPC-H"
POLICIES = ("tpch", "tpch-supplier", "tpch-rows")
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


Rows = dict[tuple[str, ...], dict[str, float]]


def made(folder: Path, scale: str) -> Path:
    """A folder with data/*.parquet of that scale, made unless it is there."""
    home = folder / f"tpch-{scale}"
    if not (home / "data").exists():
        with TemporaryDirectory(dir=folder) as name:
            generate(Path(name) / "data", scale)
            home.mkdir(exist_ok=True)
            copytree(Path(name) / "data", home / "data")
    return home


def generate(target: Path, scale: str) -> None:
    """The eight tables as Parquet files."""
    program = which("tpchgen-cli", path=Path(sys.executable).parent) or which("tpchgen-cli")
    if program is not None:
        line = [program, "parquet", "-s", scale, f"--output-dir={target}"]
        subprocess.run(line, check=True, capture_output=True)
        return
    target.mkdir()
    with duckdb.connect() as con:
        con.execute("INSTALL tpch; LOAD tpch")
        con.execute("CALL dbgen(sf = ?)", [float(scale)])
        for (table,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            con.execute(f"COPY {table} TO '{target / f'{table}.parquet'}'")


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


def measure(query: str, policy: str, con: dpsql.Connection, plain: duckdb.DuckDBPyConnection, rounds: int) -> Figures:
    """One query under one policy."""
    text = query_text(query)
    try:
        plan = con.plan(text)
    except dpsql.Rejected as refused:
        return {"query": query, "policy": policy, "code": refused.diagnostics[0].code}
    cursor = plain.execute(text)
    exact = numbers(query, [d[0] for d in cursor.description or []], cursor.fetchall())
    runs: dict[str, Callable[[], object]] = {"plain": lambda: plain.execute(text).fetchall()}
    if policy == "tpch" and query in FLOORS:
        floor = FLOORS[query].sql()
        runs["floor"] = lambda: plain.execute(floor).fetchall()
    runs["dpsql"] = lambda: con.sql(unasked(text)).run(epsilon=1, fresh=True).fetchall()
    found = take_turns(runs, rounds, limit=30)
    answer = con.sql(text).run(epsilon=1, fresh=True)
    noisy = numbers(query, list(answer.columns), answer.fetchall())
    quiet = con.sql(text).run(epsilon=10**12, fresh=True)
    hidden = any(release.measured.threshold is not None for release in plan.releases)
    return {
        "query": query,
        "policy": policy,
        "code": None,
        "free": not plan.releases,
        "times": found,
        "rows": len(exact),
        "found": len(exact.keys() & noisy.keys()),
        "error": error(exact, noisy),
        "agrees": agree(exact, numbers(query, list(quiet.columns), quiet.fetchall()), hidden),
    }


def query_text(query: str) -> str:
    """The SQL of one query; its first line is a comment that names it."""
    return (EXAMPLE / "queries" / f"{query}.sql").read_text(encoding="utf-8")


def run(settings: Settings, policies: Sequence[str] = (), queries: Sequence[str] = ()) -> Figures:
    """All queries, or those given, under the size's policies, or those given."""
    scale = settings.pick("0.01", "1", "1")
    rounds = settings.turns(1, 3, 5)
    folder = made(settings.folder, scale)
    plain = plain_tables(folder)
    results = []
    for policy in policies or settings.pick(POLICIES[:1], POLICIES[:1], POLICIES):
        with session(folder, policy) as con:
            for query in queries or settings.pick(("q03", "q06"), sorted(NUMBERS), sorted(NUMBERS)):
                results.append(measure(query, policy, con, plain, rounds))
    return {"scale": scale, "rounds": rounds, "results": results}


def markdown(figures: Figures) -> str:
    """The tables of one policy after the other, as the example's README has them."""
    lines = [f"Scale {figures['scale']}, {figures['rounds']} interleaved rounds."]
    results = figures["results"]
    for policy in dict.fromkeys(r["policy"] for r in results):
        lines += ["", f"## `{policy}.yaml`", ""]
        lines += ["| query | | answer | rows | error | DuckDB | dpsql | × DuckDB | × floor |"]
        lines += ["|---|---|---|--:|--:|--:|--:|--:|--:|"]
        for r in (r for r in results if r["policy"] == policy):
            title = query_text(r["query"]).splitlines()[0].removeprefix("-- ")
            cells = [r["query"], title, r["code"] or ("exact" if r["free"] else "answered")]
            if r["code"] is None:
                cells[2] += "" if r["agrees"] else " DIFFERS"
                cpu = [f"{r['times'][name]['cpu_ms'] / 1e3:.2f} s" for name in ("plain", "dpsql")]
                over = r["times"]["dpsql"]["over"]
                ratios = [times(over["plain"]), times(over.get("floor"))]
                cells += [f"{r['found']} of {r['rows']}", _percent(r["error"]), *cpu, *ratios]
            lines.append("| " + " | ".join([*cells, *[""] * (9 - len(cells))]) + " |")
    return "\n".join(lines)


def _percent(x: float | None) -> str:
    if x is None:
        return ""
    if x < 0.0001:
        return "0" if x == 0 else "< 0.01%"
    return f"{x:.2%}" if x < 0.1 else f"{x:.0%}" if x < 10 else f"{x:.0f} ×"


if __name__ == "__main__":
    command(__doc__, "tpch", run, markdown, policies=POLICIES, queries=sorted(NUMBERS))
