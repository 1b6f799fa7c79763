"""`in_clause` makes a join of a list: rows and failures are those of the list as written, in every neighbour.

Some pairs of what is looked for and what the list has; the others are in tests/deep/engines/test_in_lists.py.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import duckdb
import pytest

from dpsql.engines.duckdb.locked.optimizers import disable, unwanted

Database = duckdb.DuckDBPyConnection

SIZES = (5, 20, 300, 1000)
ROWS = 60
COLUMNS = {
    "i": "INTEGER", "b": "BIGINT", "e": "DECIMAL(9,2)", "x": "DOUBLE", "f": "FLOAT", "s": "VARCHAR", "d": "DATE",
    "t": "TIMESTAMP", "o": "BOOLEAN",
}  # fmt: skip
ENDS: dict[str, tuple[str, ...]] = {
    "i": ("-2147483648", "2147483647", "0"),
    "b": ("-9223372036854775808", "9223372036854775807", "0", "9007199254740993"),
    "e": ("-9999999.99", "9999999.99", "0.00", "0.01"),
    "x": ("'nan'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE", "-0.0::DOUBLE", "0.1::DOUBLE", "1e308", "5e-324"),
    "f": ("'nan'::FLOAT", "'inf'::FLOAT", "-0.0::FLOAT", "0.1::FLOAT"),
    "s": ("''", "'5'", "' 5'", "'5.0'", "'é'", "'x'", "'2024-02-29'", "'300000-01-01'"),
    "d": ("DATE '2024-02-29'", "DATE '5000000-01-01'", "DATE '0001-01-01'", "'infinity'::DATE", "'-infinity'::DATE"),
    "t": ("TIMESTAMP '2024-02-29'", "TIMESTAMP '2024-02-29 00:00:00.000001'", "'infinity'::TIMESTAMP"),
    "o": ("TRUE", "FALSE"),
}
PLAIN: dict[str, Callable[[int], str]] = {
    "i": str, "b": str, "e": lambda n: f"{n}.25", "x": lambda n: f"{n}.5::DOUBLE", "f": lambda n: f"{n}.5::FLOAT",
    "s": lambda n: f"'{n}'", "d": lambda n: f"DATE '2024-01-01' + {n}", "o": lambda n: "TRUE" if n % 2 else "FALSE",
    "t": lambda n: f"TIMESTAMP '2024-01-01' + INTERVAL {n} DAY",
}  # fmt: skip
FORMS = (
    "{0} IN ({1})", "{0} NOT IN ({1})", "NOT ({0} IN ({1}))", "{0} IN ({1}) OR id = 7",
    "COALESCE({0} IN ({1}), id > 9)", "({0} IN ({1})) IS NULL",
    "CASE WHEN id % 2 = 0 THEN {0} IN ({1}) ELSE id > 9 END", "id % 2 = 0 AND {0} IN ({1})",
)  # fmt: skip
OTHERS = {
    # what is looked for, and the column whose values the list has: mixed types, casts that fail, chains, guards
    "mixed": [("i", "e"), ("i", "x"), ("b", "x"), ("e", "x"), ("e", "i"), ("x", "i"), ("f", "x"), ("d", "t"),
              ("t", "d")],
    "computed": [("i + 1", "i"), ("b - 1", "b"), ("i * 2", "b"), ("e + e", "e"), ("-i", "i"), ("x + 1e19 - 1e19", "x")],
    "cast": [
        ("CAST(s AS INTEGER)", "i"), ("CAST(s AS DATE)", "d"), ("CAST(CAST(s AS DATE) AS TIMESTAMP)", "t"),
        ("CAST(d AS TIMESTAMP)", "t"), ("CAST(x AS INTEGER)", "i"), ("CAST(i AS TINYINT)", "i"),
        ("CAST(b AS DOUBLE)", "x"),
    ],
    "tried": [
        ("TRY_CAST(s AS INTEGER)", "i"), ("TRY(CAST(s AS INTEGER))", "i"), ("TRY_CAST(d AS TIMESTAMP)", "t"),
        ("TRY(i + 1)", "i"), ("TRY_CAST(TRY_CAST(s AS DATE) AS TIMESTAMP)", "t"), ("TRY_CAST(x AS BIGINT)", "b"),
    ],
}  # fmt: skip


def members(column: str, size: int, chance: random.Random) -> str:
    """A list with duplicates, ends of the type, and in every other one NULL."""
    some = [*ENDS[column], *(PLAIN[column](chance.randrange(40)) for _ in range(size))][: max(size, 3)]
    chance.shuffle(some)
    return ", ".join(["NULL", *some[1:]] if size % 3 else [*some, some[0]])


def filled(connection: Database) -> None:
    chance = random.Random(40)
    connection.execute(f"CREATE TABLE p (id INTEGER, {', '.join(f'{c} {t}' for c, t in COLUMNS.items())})")
    rows = []
    for row in range(ROWS):
        values = [
            "NULL" if row % 11 == 10 else chance.choice(ENDS[c]) if row % 3 == 0 else PLAIN[c](chance.randrange(40))
            for c in COLUMNS
        ]
        rows.append(f"({row}, {', '.join(values)})")
    connection.execute(f"INSERT INTO p VALUES {', '.join(rows)}")
    connection.execute("CREATE TABLE fine AS FROM p WHERE id % 3 <> 0")  # no row of it makes a cast or a chain fail


def opened(on: frozenset[str] = frozenset()) -> Database:
    """A database with our optimizers. on: turned the other way."""
    connection = duckdb.connect()
    disable(connection, unwanted(connection) ^ on)
    connection.execute("SET threads = 1")
    filled(connection)
    return connection


@pytest.fixture(scope="module")
def joined() -> Iterator[Database]:
    with opened() as connection:
        yield connection


@pytest.fixture(scope="module")
def as_written() -> Iterator[Database]:
    with opened(frozenset({"in_clause"})) as connection:
        yield connection


def outcome(connection: Database, sql: str) -> str:
    try:
        return repr(sorted(connection.execute(sql).fetchall(), key=repr))
    except duckdb.Error:
        return "fails"


def conditions(looked_for: str, column: str, most: int = 1000) -> Iterator[str]:
    """Every form of a short list, and one of a long one; the longest of a bare column alone."""
    chance = random.Random(f"{looked_for} {column}")
    for size in SIZES if looked_for == column else SIZES[:-1]:
        forms = FORMS if size == 20 else chance.sample(FORMS[:3], 1 if size > 20 else 3)
        for form in forms if size <= most else ():
            yield form.format(looked_for, members(column, size, chance))


Pair = tuple[str, str]
PAIRS: list[Pair] = [*((column, column) for column in COLUMNS), *itertools.chain.from_iterable(OTHERS.values())]
FEW: list[Pair] = [*((column, column) for column in "ixst"), *(pair for pairs in OTHERS.values() for pair in pairs[:2])]
ASKED = (
    "SELECT id, {c} AS k FROM {t}", "SELECT id FROM {t} WHERE {c}", "SELECT COUNT(*) FILTER (WHERE {c}) AS n FROM {t}",
    "SELECT {c} AS k, COUNT(*) AS n, SUM(id) AS m FROM {t} GROUP BY 1",
)  # fmt: skip


def differences(one: Database, other: Database, pairs: list[Pair], change: Callable[[str], str] = str) -> list[str]:
    """The statements that two databases answer in another way. Where a row makes all fail, the others are asked."""
    found = []
    for condition in itertools.chain.from_iterable(itertools.starmap(conditions, pairs)):
        for asked in ASKED if len(condition) < 2000 else ASKED[:2]:
            for table in ("p", "fine"):
                sql = asked.format(c=condition, t=table)
                given = outcome(one, change(sql))
                if given != outcome(other, sql):
                    found.append(sql)
                if given != "fails":
                    break
    return found


@pytest.mark.parametrize("pair", FEW, ids=" in ".join)
def test_a_list_that_is_joined_has_the_rows_of_one_that_is_written(
    pair: Pair, joined: Database, as_written: Database
) -> None:
    assert differences(joined, as_written, [pair]) == []


@pytest.mark.parametrize("pair", FEW, ids=" in ".join)
def test_one_row_more_changes_no_other_row(pair: Pair, joined: Database) -> None:
    each_row_is_on_its_own(pair, joined)


def each_row_is_on_its_own(pair: Pair, joined: Database) -> None:
    """Of those that compute on their own, whether all rows are there or one: also whether it fails is up to each."""
    for condition in conditions(*pair, most=20):
        sql = f"SELECT id, {condition} AS k FROM p"
        together, alone = (outcome(joined, f"{sql} WHERE id {rows}") for rows in ("< 21", "< 20"))
        last = outcome(joined, f"{sql} WHERE id = 20")
        if "fails" in (alone, last):
            assert together == "fails"
        else:
            assert sorted([*eval(alone), *eval(last)]) == sorted(eval(together))  # of numbers and None


def test_some_of_it_fails_and_much_does_not(joined: Database) -> None:
    some_of_it_fails(joined, FEW, fail=15, differ=40, join=25)


def some_of_it_fails(joined: Database, pairs: list[Pair], fail: int, differ: int, join: int) -> None:
    """Of what is asked of these pairs, so many fail, have answers of their own, and are joins."""
    asked = [f"SELECT {c} FROM p" for pair in pairs for c in conditions(*pair, most=20)]
    found = [outcome(joined, sql) for sql in asked]
    assert found.count("fails") > fail and len(set(found)) > differ
    plans = [joined.execute(f"EXPLAIN {sql}").fetchall()[0][1] for sql in asked]
    assert sum("Join" in plan for plan in plans) > join, "no list is joined"


def test_twins_that_lose_a_null_or_a_failure_are_found(joined: Database, as_written: Database) -> None:
    for pairs, lose in (
        ([("i", "i"), ("s", "s")], lambda sql: sql.replace("(NULL, ", "(")),
        (OTHERS["cast"][:2], lambda sql: sql.replace("CAST(", "TRY_CAST(")),
    ):
        assert differences(joined, as_written, pairs, lose)  # and none without, as above
