"""Queries about people over prepared tables, beside plain DuckDB and beside the tables as they are.

    python -m benchmarks.prepared [--size short] [--people 1000000] [--rounds 9] [--folder DIR] [--json FILE]

plain     the same query in plain DuckDB on the same file, or files: not private at all
as it is  everything that dpsql does, on the tables as they are
prepared  the same on the copies that `dpsql prepare` made

The last three of the five queries with at most ten orders of a person, and TPC-H with the limits of examples/tpch. Each
contestant has a DuckDB of its own, with two threads; charges are durable.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

import dpsql
from benchmarks import data, tpch
from benchmarks.frame import Figures, Settings, command, number, table, take_turns, times, unasked
from benchmarks.queries import QUERIES

TITLE = "Prepared tables"
ASKED = tuple(query for query in QUERIES if query.policy == "persons")
TPCH = ("q01", "q03-months", "q05", "q06", "q10-nations", "q12", "q18-orders")
PERSONS = data.POLICY_PERSONS.replace("    max_groups_per_unit: 5\n    max_rows_per_group: 5\n", "")


def policies(folder: Path, text: str) -> tuple[Path, Path]:
    """A policy twice, its tables as they are and prepared, each with a ledger of its own."""
    found = []
    for name in ("as-it-is", "prepared"):
        own = re.sub(r"(?m)^name: .*", f"name: {name}\nledger: {name}.sqlite\nledger_head: {name}.json", text)
        if name == "prepared":
            own = re.sub(r"(?m)^(    unit: .*)$", r"\1\n    prepared: true", own)
        file = folder / f"{name}.yaml"
        file.write_text(own, encoding="utf-8")
        found.append(file)
    return found[0], found[1]


@contextmanager
def sessions(text: str, folder: Path | None = None) -> Iterator[tuple[dpsql.Connection, dpsql.Connection, float]]:
    """Sessions over a policy's tables as they are and prepared, and the seconds that preparing took.

    folder: where the policy's data is, by default in paths of its own.
    """
    with TemporaryDirectory(dir=folder) as name:
        plain, prepared = policies(Path(name), text)
        began = time.perf_counter()
        dpsql.prepare(prepared, threads=2)
        spent = time.perf_counter() - began
        with dpsql.connect(plain, threads=2) as one, dpsql.connect(prepared, threads=2) as other:
            yield one, other, spent


def contest(
    sql: str, plain: duckdb.DuckDBPyConnection, one: dpsql.Connection, other: dpsql.Connection, rounds: int
) -> Figures:
    """One query of all three, in turns."""
    runs: dict[str, Callable[[], object]] = {
        "plain": lambda: plain.execute(sql).fetchall(),
        "as it is": lambda: one.sql(unasked(sql)).run(epsilon=1, fresh=True).fetchall(),
        "prepared": lambda: other.sql(unasked(sql)).run(epsilon=1, fresh=True).fetchall(),
    }
    return take_turns(runs, rounds, limit=60)


def persons(settings: Settings, people: int, rounds: int) -> Figures:
    """The last three of the five queries."""
    file = data.make(settings.folder, people)
    text = PERSONS.replace("units:", f"database: {file.resolve()}\nunits:")
    with duckdb.connect(config={"threads": 2}) as plain, sessions(text) as (one, other, spent):
        plain.execute(f"ATTACH '{file}' AS d (READ_ONLY); USE d")
        ((rows,),) = plain.execute("SELECT COUNT(*) FROM orders").fetchall()
        found = {query.name: contest(query.sql, plain, one, other, rounds) for query in ASKED}
    return {"people": people, "orders": rows, "prepared_in": spent, "queries": found}


def of_tpch(settings: Settings, scale: str, rounds: int) -> Figures:
    """Queries of TPC-H about customers; plain DuckDB reads the same Parquet files."""
    home = tpch.made(settings.folder, scale)
    text = (tpch.EXAMPLE / "tpch.yaml").read_text(encoding="utf-8").replace("'data/", f"'{(home / 'data').resolve()}/")
    text = re.sub(r"total: \{epsilon: \d+, delta: [^}]+", "total: {epsilon: 1e18, delta: 0.5", text)
    private = re.compile(r"(?m)^(    unit: .*)$")
    assert len(private.findall(text)) == 3
    with tpch.plain_tables(home) as plain, sessions(text) as (one, other, spent):
        plain.execute("SET threads = 2")
        with warnings.catch_warnings(action="ignore", category=dpsql.UtilityWarning):  # Q18 as it is: DP502
            found = {name: contest(tpch.query_text(name), plain, one, other, rounds) for name in TPCH}
    return {"scale": scale, "prepared_in": spent, "queries": found}


def run(settings: Settings) -> Figures:
    """Persons of one size or two, and TPC-H."""
    rounds = settings.turns(1, 9, 9)
    sizes = settings.pick((20_000,), (data.PEOPLE,), (data.PEOPLE, 10 * data.PEOPLE))
    sizes = (settings.people,) if settings.people else sizes
    return {
        "rounds": rounds,
        "persons": [persons(settings, people, rounds) for people in sizes],
        "tpch": of_tpch(settings, settings.pick("0.01", "1", "1"), rounds),
    }


def markdown(figures: Figures) -> str:
    """One line for each query."""
    said = [f"{figures['rounds']} interleaved rounds, end to end, with a durable charge; ε = 1."]
    for size in figures["persons"]:
        head = f"{size['orders']:,} orders of {size['people']:,} persons, prepared in {size['prepared_in']:.1f} s:"
        said += [head, _table(size["queries"])]
    of = figures["tpch"]
    head = f"TPC-H at scale {of['scale']}, prepared in {of['prepared_in']:.1f} s; plain DuckDB reads Parquet:"
    return "\n\n".join([*said, head, _table(of["queries"])])


def _table(queries: Figures) -> str:
    rows = [
        (
            name,
            *(f"{row[who]['ms'][0]:.1f}" for who in ("plain", "as it is", "prepared")),
            times(row["as it is"]["over"]["plain"]),
            times(row["prepared"]["over"]["plain"]),
            number(row["prepared"]["cpu_over"]["plain"]),
        )
        for name, row in queries.items()
    ]
    head = ("query", "plain ms", "as it is", "prepared", "as it is × plain", "prepared × plain", "in processor time")
    return table(head, rows)


if __name__ == "__main__":
    command(__doc__, "prepared", run, markdown)
