"""The same queries asked of this checkout and of another one, beside plain DuckDB, in one run.

    python -m benchmarks.before --before CHECKOUT [--size short] [--people N] [--rounds 7] [--only Q1 …] [--json FILE]

plain   the same text in plain DuckDB on the same file, with all of its optimizers and one thread
before  everything that the dpsql of the other checkout does: plan, charge (a ledger in memory), run, noise, results
now     the same of this one

Each is a process of its own, and they take turns. Figures are processor time of the whole process, the least of the
rounds, which other programs disturb least. Ratios above 1.15 are bold: each needs a reason that was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import duckdb

import dpsql
from benchmarks import data, tpch
from benchmarks.frame import Figures, Settings, measured, parser, settings_of, table
from benchmarks.queries import QUERIES
from dpsql.core.ledger.memory import MemoryLedger

TITLE = "Before and now"
BOLD = 1.15
THREADS = 1
LIMIT = 15
"""Seconds after which no further round of a case begins."""

EVENTS = f"""
CREATE TABLE events AS
SELECT CAST(hash(i, 10) % $people AS BIGINT) AS person_id,
       DATE '2024-01-01' + CAST(hash(i, 11) % 366 AS INTEGER) AS day,
       'k' || lpad(CAST(CAST(hash(i, 12) % 2000 AS BIGINT) AS VARCHAR), 4, '0') AS code,
       CAST(hash(i, 12) % 2000 AS INTEGER) AS number,
       CAST(hash(i, 13) % 501 AS INTEGER) AS cents,
       round(500 * {data._UNIFORM.format("i", 14)}, 2)::DOUBLE AS amount,
       CAST(500 * {data._UNIFORM.format("i", 15)} AS DECIMAL(9, 2)) AS price
FROM range(10 * $people) AS t(i);
"""
CATALOGUE = f"""
CREATE TABLE catalogue AS
SELECT id, 'item ' || id AS name, CAST(1000 * {data._UNIFORM.format("id", 16)} AS DECIMAL(9, 2)) AS price
FROM range(2 * $people) AS t(id);
"""
OF_EVENTS = """\
    columns:
      person_id: {type: bigint, nullable: false}
      day:       {type: date, bounds: [2024-01-01, 2024-12-31], nullable: false}
      code:      {type: varchar, nullable: false}
      number:    {type: integer, bounds: [0, 1999], nullable: false}
      cents:     {type: integer, bounds: [0, 500], nullable: false}
      amount:    {type: double, bounds: [0, 500]}
      price:     {type: "decimal(9,2)", bounds: [0, 500], nullable: false}
  catalogue:
    public: true
    primary_key: [id]
    columns:
      id:    {type: bigint, nullable: false}
      name:  {type: varchar, nullable: false}
      price: {type: "decimal(9,2)", nullable: false}
budgets:
"""


def _numbers(n: int) -> str:
    return ", ".join(str(7 * i % 2000) for i in range(n))


def _codes(n: int) -> str:
    return ", ".join(f"'k{7 * i % 2000:04}'" for i in range(n))


_ONCE = (
    "SELECT COUNT(*), SUM(amount) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day DESC) AS r "
    "FROM events) AS e WHERE r {}"
)

CASES: dict[str, tuple[str, str]] = {
    **{q.name: (q.policy, q.sql) for q in QUERIES},
    **{
        f"IN of {n} integers": ("rows", f"SELECT COUNT(*), SUM(cents) FROM events WHERE number IN ({_numbers(n)})")
        for n in (20, 300, 1000)
    },
    **{
        f"IN of {n} texts": ("rows", f"SELECT COUNT(*), SUM(cents) FROM events WHERE code IN ({_codes(n)})")
        for n in (20, 300, 1000)
    },
    **{
        f"IN of {n} integers, persons": (
            "persons",
            f"SELECT COUNT(*), SUM(cents) FROM events WHERE number IN ({_numbers(n)})",
        )
        for n in (20, 300, 1000)
    },
    **{
        f"slice of {n} texts": ("rows", f"SELECT COUNT(*) FILTER (WHERE code IN ({_codes(n)})), COUNT(*) FROM events")
        for n in (20, 300, 1000)
    },
    "ORDER BY … LIMIT, public": ("rows", "SELECT id, name, price FROM catalogue ORDER BY price DESC, id LIMIT 10"),
    "ORDER BY … LIMIT, groups": ("rows", "SELECT day, COUNT(*) AS n FROM events GROUP BY day ORDER BY n DESC LIMIT 5"),
    "latest row per person": ("persons", _ONCE.format("= 1")),
    "three rows per person": ("persons", _ONCE.format("<= 3")),
    "sum of an expression, integers": ("rows", "SELECT SUM(cents * 2 + number * 3) FROM events"),
    "sum of an expression, doubles": ("rows", "SELECT SUM(amount * 1.2e0 + 3) FROM events"),
    "sum of an expression, decimals": ("rows", "SELECT SUM(price * 2 + cents) FROM events"),
    "sum of a log": ("rows", "SELECT SUM(LN(amount + 1)) FROM events"),
    "sum of a CASE": ("rows", "SELECT SUM(CASE WHEN number < 1000 THEN cents ELSE 0 END) FROM events"),
    "average of an expression": ("rows", "SELECT AVG(cents * 2 + number) FROM events"),
    "average of a column": ("rows", "SELECT AVG(cents), AVG(amount) FROM events"),
    "variance of a column": ("rows", "SELECT VAR_POP(cents), VAR_POP(amount) FROM events"),
    "sum of an expression, persons": ("persons", "SELECT COUNT(*), SUM(amount * 1.2e0 + cents) FROM events"),
    "average of an expression, persons": ("persons", "SELECT AVG(amount * 1.2e0 + cents) FROM events"),
    "keys that are expressions": ("rows", "SELECT MONTH(day) AS m, COUNT(*), SUM(cents) FROM events GROUP BY m"),
    "slices with sums": (
        "rows",
        "SELECT SUM(cents) FILTER (WHERE number % 7 = 1), COUNT(*) FILTER (WHERE number % 7 = 1), AVG(cents) "
        "FILTER (WHERE number % 7 = 2) FROM events",
    ),
    "pivot of 10": (
        "rows",
        "SELECT " + ", ".join(f"COUNT(*) FILTER (WHERE number % 10 = {i})" for i in range(10)) + " FROM events",
    ),
    "median": ("rows", "SELECT MEDIAN(amount), MEDIAN(cents) FROM events"),
    "median, persons": ("persons", "SELECT MEDIAN(amount) FROM events"),
    "distinct values": ("rows", "SELECT COUNT(DISTINCT number) FROM events"),
    "distinct values, persons": ("persons", "SELECT COUNT(DISTINCT number) FROM events"),
    "persons": ("persons", "SELECT COUNT(DISTINCT person_id) FROM events WHERE amount > 250"),
    "private keys": ("persons", "/* dpsql: delta=1e-9 */ SELECT code, COUNT(*) FROM events GROUP BY code"),
    "semi join": (
        "persons",
        "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM events e WHERE e.person_id = people.id AND "
        "e.cents > 400)",
    ),
    "left join": (
        "persons",
        "SELECT p.region, COUNT(*), SUM(e.cents) FROM people p LEFT JOIN events e ON p.id = e.person_id GROUP BY "
        "p.region",
    ),
    "grouped by person": (
        "persons",
        "SELECT COUNT(*), AVG(n) FROM (SELECT person_id, LEAST(COUNT(*), 50) AS n FROM events GROUP BY person_id) AS e",
    ),
    "selective": (
        "rows",
        "SELECT COUNT(*), SUM(amount) FROM events WHERE day BETWEEN DATE '2024-03-01' AND DATE '2024-03-02' AND "
        "code LIKE 'k00%'",
    ),
}
"""Name → which policy, and the query."""
PREPARED = (
    "Q3",
    "Q4",
    "Q5",
    "IN of 300 integers, persons",
    "latest row per person",
    "sum of an expression, persons",
    "left join",
    "median, persons",
)


def made(folder: Path, people: int) -> Path:
    """A database file with all tables."""

    def write(draft: Path) -> None:
        with duckdb.connect(str(draft)) as con:
            for sql in (data._PEOPLE, data._ORDERS, EVENTS, CATALOGUE):
                con.execute(sql, {"people": people} if "$people" in sql else None)

    return data.kept(folder / f"before-{people}-duckdb-{duckdb.__version__}.duckdb", write)


def policies(home: Path, database: Path) -> dict[str, Path]:
    """Name → a policy file over the database."""
    events = {
        "rows": "  events:\n    unit: {rows: 1}\n",
        "persons": "  events:\n    unit: {column: person_id}\n    max_rows_per_unit: 20\n"
        "    foreign_keys: [{columns: [person_id], references: people(id)}]\n",
    }
    texts = {
        name: text.replace("budgets:\n", events[name] + OF_EVENTS).replace(
            "version: 1\n", f"version: 1\ndatabase: {database.resolve()}\n"
        )
        for name, text in data.POLICIES.items()
    }
    texts["persons, prepared"] = re.sub(r"(?m)^(    unit: .*)$", r"\1\n    prepared: true", texts["persons"])
    for name, text in texts.items():
        (home / f"{name}.yaml").write_text(re.sub(r"(?m)^name: .*", f"name: {name.replace(', ', '-')}", text))
    return {name: home / f"{name}.yaml" for name in texts}


class Plain:
    """Plain DuckDB, as one that takes turns."""

    def __init__(self, threads: int) -> None:
        self.connection = duckdb.connect(config={"threads": threads})

    def opened(self, sources: dict[str, str], database: str | None) -> None:
        """Sees these tables."""
        if database is not None:
            self.connection.execute(f"ATTACH '{database}' AS d (READ_ONLY); USE d")
        for name, source in sources.items():
            self.connection.execute(f"CREATE OR REPLACE VIEW memory.{name} AS FROM {source}")

    def once(self, sql: str) -> tuple[float, float]:
        """Seconds of one run, on the clock and of the processor."""
        return _timed(lambda: self.connection.execute(sql).fetchall())


class Other:
    """A process in which the dpsql of a checkout answers."""

    def __init__(self, checkout: Path) -> None:
        own = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
        line = [sys.executable, str(Path(__file__).resolve()), "--serve"]
        self.process = subprocess.Popen(line, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **question: object) -> Any:
        """Its answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process ended: {question}")
        return json.loads(line)


def serve(questions: IO[str], answers: IO[str]) -> None:
    """Answer until there are no more questions: open a policy, prepare it before, run a text."""
    sessions: dict[str, dpsql.Connection] = {}
    for number, line in enumerate(questions):
        question = json.loads(line)
        found: object = None
        if "open" in question:
            file = Path(question["open"])
            if question["prepare"]:
                dpsql.prepare(file, threads=question["threads"])
            sessions[question["name"]] = dpsql.connect(file, ledger=MemoryLedger(), threads=question["threads"])
        else:
            session, sql = sessions[question["name"]], f"{question['sql']}\n-- {number}"
            try:
                found = _timed(lambda: session.sql(sql).run(epsilon=1, fresh=True).fetchall())  # noqa: B023
            except dpsql.Rejected as refused:
                found = refused.diagnostics[0].code
        answers.write(json.dumps(found) + "\n")
        answers.flush()


def _timed(run: Callable[[], object]) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - clock, time.process_time() - processor


@contextmanager
def contestants(before: Path) -> Iterator[dict[str, Other]]:
    """The two processes."""
    found = {"before": Other(before), "now": Other(Path(__file__).resolve().parent.parent)}
    try:
        yield found
    finally:
        for other in found.values():
            assert other.process.stdin is not None
            other.process.stdin.close()
            other.process.wait(60)


def contest(case: str, sql: str, name: str, plain: Plain, others: dict[str, Other], rounds: int) -> Figures:
    """One query of all three, in turns; the code of a refusal in place of a time."""
    found: dict[str, list[tuple[float, float]]] = {"plain": [], "before": [], "now": []}
    refused = {}
    began = time.perf_counter()
    for done in range(rounds + 1):
        if done > 2 and time.perf_counter() - began > LIMIT:
            break
        for who in found:
            if who in refused:
                continue
            answer = plain.once(sql) if who == "plain" else others[who].ask(name=name, sql=sql)
            if isinstance(answer, str):
                refused[who] = answer
            elif done:  # the first round warms up
                found[who].append(tuple(answer))
    least: Figures = {
        who: refused.get(who) or {"ms": 1e3 * min(t for t, _ in runs), "cpu_ms": 1e3 * min(t for _, t in runs)}
        for who, runs in found.items()
    }
    print(case, *(f"{one['cpu_ms']:.1f}" if isinstance(one, dict) else one for one in least.values()), file=sys.stderr)
    return least


def run(settings: Settings, before: Path | None = None, only: tuple[str, ...] = ()) -> Figures:
    """All cases; TPC-H at scale 1, and prepared."""
    assert before is not None, "say which checkout, with --before"
    rounds, threads = settings.turns(1, 7, 15), THREADS
    people = settings.people or settings.pick(5_000, 300_000, data.PEOPLE)
    database = made(settings.folder, people)
    found: Figures = {}

    def wanted(name: str) -> bool:
        return not only or any(word in name for word in only)

    with contestants(before) as others, tempfile.TemporaryDirectory() as name:
        plain = Plain(threads)
        plain.opened({}, str(database))
        for who, other in others.items():
            (home := Path(name) / who).mkdir()
            for policy, file in policies(home, database).items():
                other.ask(open=str(file), prepare="prepared" in policy, name=policy, threads=threads)
        for case, (policy, sql) in CASES.items():
            if wanted(case):
                found[case] = contest(case, sql, policy, plain, others, rounds)
        for case in PREPARED:
            if wanted(title := f"{case}, prepared"):
                found[title] = contest(title, CASES[case][1], "persons, prepared", plain, others, rounds)
        if any(wanted(f"TPC-H {q}{more}") for q in tpch.NUMBERS for more in ("", ", prepared")):
            found |= _tpch(settings, Path(name), others, rounds, threads, wanted)
    return {"people": people, "rounds": rounds, "queries": found}


def _tpch(
    settings: Settings, home: Path, others: dict[str, Other], rounds: int, threads: int, wanted: Callable[[str], bool]
) -> Figures:
    folder = tpch.made(settings.folder, settings.pick("0.01", "1", "1"))
    text = (tpch.EXAMPLE / "tpch.yaml").read_text(encoding="utf-8")
    text = text.replace("'data/", f"'{(folder / 'data').resolve()}/")
    text = re.sub(r"total: \{epsilon: \d+, delta: [^}]+", "total: {epsilon: 1e18, delta: 0.5", text)
    texts = {"tpch": text, "tpch, prepared": re.sub(r"(?m)^(    unit: .*)$", r"\1\n    prepared: true", text)}
    for who, other in others.items():
        for name, own in texts.items():
            file = home / who / f"{name}.yaml"
            file.write_text(re.sub(r"(?m)^name: .*", f"name: {name.replace(', ', '-')}", own))
            other.ask(open=str(file), prepare="prepared" in name, name=name, threads=threads)
    plain = Plain(threads)
    plain.opened({f.stem: f"read_parquet('{f}')" for f in sorted((folder / "data").glob("*.parquet"))}, None)
    found = {}
    for query in sorted(tpch.NUMBERS):
        for name in texts:
            if wanted(title := f"TPC-H {query}{name.removeprefix('tpch')}"):
                found[title] = contest(title, tpch.query_text(query), name, plain, others, rounds)
    return found


def markdown(figures: Figures) -> str:
    """One line for each query."""
    rows = []
    for name, row in figures["queries"].items():
        if isinstance(row["now"], str):
            rows.append((name, "", "", f"refused, {row['now']}", "", ""))
            continue
        cpu = {who: own["cpu_ms"] if isinstance(own, dict) else None for who, own in row.items()}
        over = [None if base is None else cpu["now"] / base for base in (cpu["before"], cpu["plain"])]
        shown = ["–" if r is None else f"{r:.2f}" for r in over]
        if over[0] is not None and over[0] > BOLD:
            shown[0] = f"**{shown[0]}**"
        rows.append((name, *("–" if t is None else f"{t:.1f}" for t in cpu.values()), *shown))
    head = ("query", "plain", "before", "now", "now × before", "now × plain")
    said = f"{figures['people']:,} people, {figures['rounds']} interleaved rounds; processor time in ms, the least."
    return f"{said}\n\n{table(head, rows)}"


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve(sys.stdin, sys.stdout)
    else:
        options: argparse.ArgumentParser = parser(__doc__, "python -m benchmarks.before")
        options.add_argument(
            "--before", type=Path, required=True, help="another checkout, whose dpsql is asked the same"
        )
        options.add_argument("--only", nargs="+", default=(), help="cases with one of these words in their name")
        given = options.parse_args()
        figures = measured(lambda s: run(s, given.before, tuple(given.only)), settings_of(given))
        print(markdown(figures["figures"]))
        if given.json:
            given.json.write_text(json.dumps({"before": figures}, indent=1) + "\n", encoding="utf-8")
