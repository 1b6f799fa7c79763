"""Which groups, values and rows are kept: each id's own choice, of its own rows alone, whatever the hash gives.

The counts of groups are of fixed data under a fixed salt, so a test passes always or never. Its bounds are six standard
deviations of a fair choice: of 200 fair orders of 20 groups one in a million would fail.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from math import sqrt

import duckdb
import pytest

from dpsql.core.ir.nodes import Truncate
from dpsql.core.printing.expressions import Aliases
from dpsql.core.printing.relational_nodes import Emitter
from dpsql.core.printing.shapes.release_statement import Statement
from dpsql.core.release.planned import PlannedRelease
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.planning import planned, policy

SALT = 31_337
MONTHS, PEOPLE, KEPT = 20, 1_000, 5
POLICY = policy(
    """
visits:
  unit: {of: person, column: person}
  max_rows_per_unit: 5
  columns:
    person: {type: bigint}
    day: {type: date}
    town: {type: varchar}
    x: {type: integer, bounds: [0, 9]}
capped:
  unit: {of: other, column: person}
  max_rows_per_unit: 3
  columns: {person: {type: double}, town: {type: varchar}, n: {type: integer}, x: {type: double}, i: {type: interval}}
""",
    "units: {person: {}, other: {}}\n",
)

# --- no group vanishes ----------------------------------------------------------------------------------------------

SPELLINGS = (
    "date_trunc('month', day)",
    "strftime(day, '%Y-%m')",
    "year(day) * 12 + month(day)",
    "town",
)
VISITS = f"""CREATE TABLE visits AS SELECT p AS person, DATE '2023-05-01' + to_months(CAST(m AS INTEGER)) AS day,
  'town ' || m AS town, 1 AS x FROM range({PEOPLE}) a(p), range({MONTHS}) b(m)"""


def release(sql: str) -> PlannedRelease:
    (found,) = planned(sql, POLICY).releases
    return found


def run(connection: duckdb.DuckDBPyConnection, statement: Statement) -> list[tuple[object, ...]]:
    return connection.execute(statement.salted(SALT)).fetchall()


@pytest.fixture(scope="module")
def visits() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(VISITS)
        yield connection


def test_equal_groups_stay_equal_however_the_key_is_written(visits: duckdb.DuckDBPyConnection) -> None:
    """Everybody has one row in each of 20 months, and keeps five."""
    fair, share = PEOPLE * KEPT / MONTHS, KEPT / MONTHS
    off = 6 * sqrt(PEOPLE * share * (1 - share))
    for key in SPELLINGS:
        (statement,) = release(f"SELECT {key} AS k, COUNT(DISTINCT person) FROM visits GROUP BY k").statements
        counts = {row[0]: row[1] for row in run(visits, statement)}
        assert len(counts) == MONTHS, key
        assert sum(counts.values()) == PEOPLE * KEPT, key  # type: ignore[arg-type]
        assert all(abs(n - fair) < off for n in counts.values()), (key, counts)  # type: ignore[operator]


def test_one_group_written_in_two_ways_is_kept_by_the_same_people(visits: duckdb.DuckDBPyConnection) -> None:
    """Of equal type and value: the order is of the values, not of what they are computed from."""
    for one, other in (
        ("date_trunc('month', day)", "CAST(strftime(day, '%Y-%m') || '-01' AS DATE)"),
        ("town", "concat(town, '')"),
    ):
        counts = [
            sorted(run(visits, s))
            for key in (one, other)
            for s in release(f"SELECT {key} AS k, COUNT(DISTINCT person) FROM visits GROUP BY k").statements
        ]
        assert counts[0] == counts[1]


@pytest.mark.parametrize("key", SPELLINGS)
def test_distinct_values_are_all_there(visits: duckdb.DuckDBPyConnection, key: str) -> None:
    (statement,) = release(f"SELECT COUNT(DISTINCT {key}) FROM visits").statements
    assert run(visits, statement) == [(MONTHS,)]


def test_few_people_keep_what_the_limit_allows(visits: duckdb.DuckDBPyConnection) -> None:
    for people in (0, 1, 2, 3):
        (statement,) = release(f"SELECT COUNT(DISTINCT town) FROM visits WHERE person < {people}").statements
        ((found,),) = run(visits, statement)
        assert min(people, 1) * KEPT <= found <= people * KEPT  # type: ignore[operator]


# --- a function of the id's own rows --------------------------------------------------------------------------------

HASHES = {"as it is": r"\g<0>", "constant": "0", "one bit": r"(\g<0> % 2)"}
"""What stands for the engine's hash: ties are broken by the values themselves."""
DATA: dict[str, tuple[str, ...]] = {
    "person": ("'0.0'", "'-0.0'", "1.5", "'nan'", "NULL"),
    "town": ("'a'", "'A'", "'a '", "''", "NULL"),
    "n": ("0", "1", "NULL"),
    "x": ("'0.0'", "'-0.0'", "'nan'", "-CAST('nan' AS DOUBLE)", "7.25", "8", "9", "NULL"),
    "i": (
        "INTERVAL 30 DAY",
        "INTERVAL 1 MONTH",
        "INTERVAL 720 HOUR",
        "INTERVAL 1 DAY",
        "INTERVAL 2 DAY",
        "INTERVAL 3 DAY",
        "NULL",
    ),
}
TYPES = ("DOUBLE", "VARCHAR", "INTEGER", "DOUBLE", "INTERVAL")
QUERIES = {
    "SELECT town, n, COUNT(*) FROM capped GROUP BY town, n": "f: u, k0, k1",
    "SELECT COUNT(DISTINCT x) FROM capped": "t: u, x",
    "SELECT COUNT(DISTINCT i) FROM capped": "t: u, x",
    "SELECT town, COUNT(DISTINCT x) FROM capped GROUP BY town": "t: u, k0, x",
}
"""Query → the step of its last statement that has what is kept, and the columns that say what."""


def literal(rng: random.Random) -> tuple[str, ...]:
    return tuple(f"CAST({rng.choice(values)} AS {t})" for values, t in zip(DATA.values(), TYPES, strict=True))


def kept(connection: duckdb.DuckDBPyConnection, rows: Sequence[tuple[str, ...]], sql: str) -> list[str]:
    """What is kept of a database, in order."""
    names = ", ".join(f"{name} {t}" for name, t in zip(DATA, TYPES, strict=True))
    connection.execute(f"CREATE OR REPLACE TABLE capped ({names})")
    if rows:
        connection.execute("INSERT INTO capped VALUES " + ", ".join(f"({', '.join(row)})" for row in rows))
    return sorted(str(row) for row in connection.execute(sql).fetchall())


def steps(statement: Statement, step: str, hashed: str) -> str:
    """What stands in one step of a statement, equal values in one form."""
    name, _, columns = step.partition(": ")
    text = statement.salted(SALT)
    text = text.partition(",\nq AS ")[0] if ",\nq AS " in text else text.rpartition("\nSELECT ")[0]
    assert f"{name} AS (" in text and "hash(" in text
    plain = [f"hash({c})" if c in ("u", "x") else c for c in columns.split(", ")]
    return re.sub(r"hash\([^()]*\)", hashed, text) + f"\nSELECT {', '.join(plain)} FROM {name}"


@pytest.mark.parametrize(("sql", "hashed"), [*zip(QUERIES, (*HASHES, "one bit"), strict=True)])
def test_what_an_id_keeps_is_up_to_its_own_rows(sql: str, hashed: str) -> None:
    kept_by_its_own_rows(sql, hashed)


def kept_by_its_own_rows(sql: str, hashed: str) -> None:
    """Alone, beside others, and in whatever order the rows arrived; and never more than the limit."""
    rng, limited = random.Random(f"{sql} {hashed}"), 0
    text = steps(release(sql).statements[-1], QUERIES[sql], HASHES[hashed])
    with duckdb.connect(config={"threads": 1}) as connection:
        for _ in range(12):
            rows = [literal(rng) for _ in range(rng.choice((2, 20, 20)))]
            whole = kept(connection, rows, text)
            assert kept(connection, rng.sample(rows, len(rows)), text) == whole
            alone: list[str] = []
            for names in (("'0.0'", "'-0.0'"), ("1.5",), ("'nan'",)):
                own = [row for row in rows if any(name in row[0] for name in names)]
                mine = kept(connection, own, text)
                assert len(mine) <= 3
                limited += len(mine) == 3
                alone += mine
            assert sorted(alone) == whole, rows
    assert limited > 5


def test_a_database_where_it_is_not_is_seen() -> None:
    """Without the values in the order, ties are broken by which row comes first."""
    sql = next(iter(QUERIES))
    text = steps(release(sql).statements[-1], QUERIES[sql], "0")
    broken, count = re.subn("ORDER BY 0, k0, k1", "ORDER BY 0", text)
    assert count == 1
    rows = [(f"1.5::{TYPES[0]}", f"'{town}'", "1", "0.0", "INTERVAL 1 DAY") for town in "abcdefgh"]
    with duckdb.connect(config={"threads": 1}) as connection:
        found = {tuple(kept(connection, rows[at:] + rows[:at], broken)) for at in range(8)}
        assert len(found) > 1
        assert len({tuple(kept(connection, rows[at:] + rows[:at], text)) for at in range(8)}) == 1


# --- rows of a key --------------------------------------------------------------------------------------------------

DEVICES = policy(
    """
readings:
  unit: {rows: 1}
  max_frequency: [{columns: [device], rows: 1, enforce: truncate}]
  columns: {device: {type: integer}, span: {type: interval}, x: {type: double}, spans: {type: 'interval[]'}}
repairs:
  unit: {rows: 1}
  max_frequency: [{columns: [device], rows: 1, enforce: truncate}]
  columns: {device: {type: integer}}
""",
    "",
)


@pytest.mark.parametrize("hashed", HASHES)
@pytest.mark.parametrize(
    ("column", "forms"),
    [
        ("span", ("INTERVAL 30 DAY", "INTERVAL 1 MONTH", "INTERVAL 720 HOUR")),
        ("x", ("CAST('0.0' AS DOUBLE)", "CAST('-0.0' AS DOUBLE)")),
        ("x", ("CAST('nan' AS DOUBLE)", "-CAST('nan' AS DOUBLE)")),
        ("spans", ("[INTERVAL 30 DAY]", "[INTERVAL 1 MONTH]")),
    ],
)
def test_the_row_that_is_kept_is_the_same_whichever_came_first(column: str, forms: Sequence[str], hashed: str) -> None:
    """Rows that are equal and look different: later arithmetic can tell them apart."""
    plan = planned("SELECT COUNT(*) FROM readings AS a JOIN repairs AS b ON a.device = b.device", DEVICES)
    cut = next(t for t in plan.tree.walk() if isinstance(t.node, Truncate) and len(t.node.input.columns) > 1)  # type: ignore[union-attr]
    text = Emitter(DUCKDB, lambda name: name, {}, Aliases()).query(cut)
    text = Statement(re.sub(r"hash\([^()]*\)", HASHES[hashed], text), (), "").salted(SALT)
    found = set()
    with duckdb.connect(config={"threads": 1}) as connection:
        for order in (forms, forms[::-1]):
            connection.execute(
                "CREATE OR REPLACE TABLE readings (device INTEGER, span INTERVAL, x DOUBLE, spans INTERVAL[])"
            )
            for form in order:
                connection.execute(f"INSERT INTO readings (device, {column}) VALUES (1, {form})")
            rows = connection.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({text})").fetchall()
            assert len(rows) == 1
            found |= set(rows)
    assert len(found) == 1
