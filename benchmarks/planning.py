"""From text to plan: the five queries, a join of five tables, one to eight joins, and `dpsql check` over 1,000 files.

    python -m benchmarks.planning [--size short] [--rounds 9] [--json FILE]

No data is read. Times are warm, but for `dpsql check`, which is a process of its own, started with the interpreter.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import data
from benchmarks.frame import Figures, Settings, command, seconds, spread, table, take_turns
from benchmarks.queries import QUERIES
from dpsql.diagnostics.diagnostic import Source
from dpsql.policy.load import parse_policy
from dpsql.service.checks.check import static_plan

TITLE = "Planning"

FIVE_TABLES = """\
SELECT r.r_name, COUNT(*) AS n, SUM(l.l_price * (1 - l.l_discount)) AS revenue, AVG(l.l_quantity) AS quantity
FROM customer c
JOIN orders o ON o.o_custkey = c.c_custkey
JOIN lineitem l ON l.l_custkey = c.c_custkey
JOIN nation n ON n.n_nationkey = c.c_nationkey
JOIN region r ON r.r_regionkey = n.n_regionkey
WHERE o.o_day >= DATE '1995-01-01' AND l.l_quantity BETWEEN 5 AND 40 AND n.n_name <> 'PERU'
GROUP BY r.r_name
HAVING COUNT(*) > 100
ORDER BY revenue DESC
LIMIT 3
"""

FIVE_TABLES_POLICY = """\
version: 1
name: benchmark-five-tables
units:
  customer: {}
tables:
  customer:
    unit: {column: c_custkey}
    primary_key: [c_custkey]
    columns:
      c_custkey:   {type: bigint, nullable: false}
      c_nationkey: {type: integer, nullable: false}
  orders:
    unit: {column: o_custkey}
    max_rows_per_unit: 50
    columns:
      o_custkey: {type: bigint, nullable: false}
      o_day:     {type: date, nullable: false}
  lineitem:
    unit: {column: l_custkey}
    max_rows_per_unit: 200
    columns:
      l_custkey:  {type: bigint, nullable: false}
      l_price:    {type: "decimal(12,2)", bounds: [0, 100000], nullable: false}
      l_discount: {type: "decimal(3,2)", bounds: [0, 0.2], nullable: false}
      l_quantity: {type: integer, bounds: [1, 50], nullable: false}
  nation:
    public: true
    primary_key: [n_nationkey]
    columns:
      n_nationkey: {type: integer, nullable: false}
      n_regionkey: {type: integer, nullable: false}
      n_name:      {type: varchar, nullable: false}
  region:
    public: true
    primary_key: [r_regionkey]
    columns:
      r_regionkey: {type: integer, nullable: false}
      r_name:      {type: varchar, domain: [AFRICA, AMERICA, ASIA, EUROPE, MIDDLE EAST], nullable: false}
budgets:
  total: {epsilon: 10, delta: 1e-6}
"""

MOST_JOINS = 8
HEAVY = ("duckdb", "numpy", "pandas", "polars", "pyarrow")
"""What neither `dpsql --help` nor `dpsql check` may load."""


def joined(joins: int) -> str:
    """A query with that many joins: orders with their person, then with public tables."""
    lines = ["SELECT p.region, COUNT(*) AS n, SUM(o.amount) AS s FROM orders o JOIN people p ON p.id = o.person_id"]
    lines += [f"JOIN d{i} ON d{i}.key{i} = p.age + {i}" for i in range(1, joins)]
    where = " AND ".join([f"d{i}.label{i} <> 'x{i}'" for i in range(1, joins)] or ["TRUE"])
    return "\n".join([*lines, f"WHERE {where}", "GROUP BY p.region"])


def joined_policy() -> str:
    """The policy of the persons with public tables to join."""
    public = "".join(
        f"  d{i}:\n    public: true\n    primary_key: [key{i}]\n"
        f"    columns: {{key{i}: {{type: integer, nullable: false}}, label{i}: {{type: varchar, nullable: false}}}}\n"
        for i in range(1, MOST_JOINS)
    )
    return data.POLICY_PERSONS.replace("budgets:", public + "budgets:")


def queries_to_check(count: int) -> list[str]:
    """Different texts of the kinds that analysts write, all accepted under the policy of the persons."""
    kinds = (
        "SELECT COUNT(*) FROM people WHERE age > {i}",
        "SELECT region, COUNT(*) AS n, AVG(income) AS mean FROM people WHERE age BETWEEN {j} AND {i} GROUP BY region",
        "SELECT category, SUM(amount) AS total FROM orders WHERE amount < {i} GROUP BY category ORDER BY total DESC",
        "SELECT p.region, COUNT(*) AS n, SUM(o.amount) AS s FROM people p JOIN orders o ON p.id = o.person_id "
        "WHERE o.amount > {j} AND p.age < {i} GROUP BY p.region HAVING COUNT(*) > {i}",
        "WITH big AS (SELECT person_id, amount * {j} AS a FROM orders WHERE amount > {i}) SELECT SUM(a) FROM big",
    )
    return [kinds[i % len(kinds)].format(i=20 + i, j=1 + i % 19) for i in range(count)]


def planned(text: str, policy: str) -> Callable[[], object]:
    """One run from text to plan."""
    return partial(static_plan, Source(text), parse_policy(policy))


def check_files(count: int, rounds: int) -> Figures:
    """Seconds of `dpsql check` over so many files, and the heavy packages that it and `dpsql --help` load."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "policy.yaml").write_text(data.POLICY_PERSONS, encoding="utf-8")
        for i, text in enumerate(queries_to_check(count)):
            (folder / f"{i:04}.sql").write_text(text + ";\n", encoding="utf-8")
        line = ["check", "--policy", str(folder / "policy.yaml"), str(folder)]
        before = os.times()
        spent = [seconds(partial(dpsql_process, "-m", "dpsql", *line)) for _ in range(rounds)]
        after = os.times()
        program = (
            "import sys; from dpsql.faces.cli.main import main; main(sys.argv[1:]); "
            f"print('loaded', *{{*{HEAVY}}} & {{*sys.modules}})"
        )
        loads = {
            name: dpsql_process("-c", program, *arguments).rsplit("loaded", 1)[1].split()
            for name, arguments in (("dpsql --help", ["--help"]), ("dpsql check", line))
        }
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"files": count, "seconds": spread(spent), "cpu_seconds": cpu / rounds, "loads": loads}


def dpsql_process(*arguments: str) -> str:
    """What a Python process prints."""
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout


def run(settings: Settings) -> Figures:
    """Everything this file measures."""
    rounds = settings.turns(2, 15, 45)
    texts = {q.name: (q.sql, data.POLICIES[q.policy]) for q in QUERIES}
    texts["five tables"] = (FIVE_TABLES, FIVE_TABLES_POLICY)
    with_joins = joined_policy()
    texts |= {f"joins {n}": (joined(n), with_joins) for n in range(1, MOST_JOINS + 1)}
    found = take_turns({name: planned(*text) for name, text in texts.items()}, rounds)
    return {
        "rounds": rounds,
        "plans": {name: {"ms": row["ms"], "cpu_ms": row["cpu_ms"]} for name, row in found.items()},
        "check": check_files(settings.pick(20, 1000, 1000), settings.turns(1, 3, 5)),
    }


def markdown(figures: Figures) -> str:
    """Times per query, and of `dpsql check`."""
    rows = [(name, f"{row['ms'][0]:.2f}", f"{row['cpu_ms']:.2f}") for name, row in figures["plans"].items()]
    check = figures["check"]
    middle, least, most = check["seconds"]
    loads = "; ".join(
        f"`{name}` loads {', '.join(found) or 'none of ' + ', '.join(HEAVY)}" for name, found in check["loads"].items()
    )
    return (
        f"Warm, {figures['rounds']} interleaved rounds.\n\n"
        + table(("query", "ms", "processor ms"), rows)
        + f"\n\n`dpsql check` on {check['files']:,} files: {middle:.2f} s ({least:.2f}–{most:.2f}), of them "
        f"{check['cpu_seconds']:.2f} s of processor time, a process from its start to its end. {loads}."
    )


if __name__ == "__main__":
    command(__doc__, "planning", run, markdown)
