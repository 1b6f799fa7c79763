"""Columns that the policy makes of the data's: a function of the row alone, total, and compared as one type."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest

import dpsql
from dpsql.core.ir.types import BIGINT, INTEGER, parse_type
from dpsql.core.policy.derived import parse_derived
from dpsql.core.release.noisy import exact_totals
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.read_as import Made

ROWS = (
    ("{'a': {'b c': 7}, 'd': 'x'}", '{"n": 5, "l": [{"k": "v"}]}', "2024-07-01 22:30:00+00"),
    ("{'a': NULL, 'd': '12'}", "no json", "infinity"),
    ("NULL", "", "-infinity"),
    ("{'a': {'b c': -1}, 'd': NULL}", '{"n": "1e999", "l": {}}', "294247-01-10 04:00:54+00"),
    ("{'a': {'b c': 2147483647}, 'd': ''}", '{"n": {"n": 1}}', "290308-12-22 (BC) 00:00:00+00"),
    ("NULL", "NULL", "NULL"),
    ("NULL", '{"n": 99999999999}', "0001-01-01 00:00:00+00"),
    ("NULL", "[" * 3000, "9999-12-31 23:59:59+00"),
)
FAR: list[Any] = [None] * 7


def engine_of(
    folder: Path, *columns: tuple[str, str, str], rows: Sequence[tuple[str, str, str]] = ROWS
) -> DuckDBEngine:
    with duckdb.connect(str(folder / "d.duckdb")) as con:
        con.execute(
            'CREATE TABLE t (id INT, s STRUCT(a STRUCT("b c" INT), d VARCHAR), j VARCHAR, seen TIMESTAMPTZ, raw INT)'
        )
        for i, (struct, text, at) in enumerate(rows):
            time = "NULL" if at == "NULL" else f"TIMESTAMPTZ '{at}'"
            con.execute(f"INSERT INTO t VALUES ({i}, {struct}, ?, {time}, {i})", [None if text == "NULL" else text])
    made = tuple(Made(name, parse_derived(of), parse_type(type_)) for name, of, type_ in columns)  # type: ignore[arg-type]
    return DuckDBEngine.open(Path("d.duckdb"), {}, folder, made={"T": made})


@pytest.mark.parametrize(
    ("of", "type_", "expected"),
    [
        ('s.A."b c"', "INTEGER", [7, None, None, -1, 2**31 - 1, None, None, None]),
        ('s.a."b c"', "TINYINT", [7, None, None, -1, None, None, None, None]),
        ("s.d", "DECIMAL(4,1)", [None, 12, *[None] * 6]),
        ("j ->> '$.n'", "INTEGER", [5, *FAR]),
        ("j ->> 'n'", "VARCHAR", ["5", None, None, "1e999", '{"n":1}', None, "99999999999", None]),
        ("j ->> '$.l[0].k'", "VARCHAR", ["v", *FAR]),
        ("seen AT TIME ZONE 'Asia/Tokyo'", "DATE", ["2024-07-02", *FAR]),
        ("seen AT TIME ZONE 'America/New_York'", "TIMESTAMP", ["2024-07-01 18:30:00", *FAR]),
        ("j AT TIME ZONE 'UTC'", "TIMESTAMP", [None, *FAR]),
        ("s.d = 'x'", "BOOLEAN", [True, False, None, None, False, None, None, None]),
        ("id IN ('0', '2', 'it''s')", "BOOLEAN", [True, False, True, *[False] * 5]),
        ("j ->> 'n' = '5'", "BOOLEAN", [True, None, None, False, False, None, False, None]),
        ("id", "VARCHAR", list("01234567")),
        ("raw", "UTINYINT", list(range(8))),
    ],
)
def test_of_any_row_it_is_a_value_or_null(tmp_path: Path, of: str, type_: str, expected: list[Any]) -> None:
    engine = engine_of(tmp_path, ("made", of, type_))
    table = engine.describe().table("t")
    assert table is not None and (table.columns[-1].name, table.columns[-1].type) == ("made", type_)
    as_text = type_ in ("DATE", "TIMESTAMP")
    for sql in ("SELECT made, id FROM {}", "SELECT MAX(made), id FROM {} GROUP BY id HAVING COUNT(*) = 1"):
        for connection in (engine, engine.sibling()):
            found = connection.fetch(sql.format(connection.table_sql("t")))
            by_id = {i: str(v) if as_text and v is not None else v for v, i in found.rows()}
            assert [by_id[i] for i in range(8)] == expected
    engine.close()


def test_an_integer_is_made_of_whole_numbers_only(tmp_path: Path) -> None:
    """Of an integer column each possible value is a public key: what a cast rounds would be another's."""
    numbers = ["2.0", "2.5", "-0.5", "-0.0", "'nan'", "'inf'", "1e300", "9007199254740993", "NULL"]
    with duckdb.connect(str(tmp_path / "d.duckdb")) as con:
        values = ", ".join(f"({i}, ({n})::DOUBLE, ({n})::DOUBLE::VARCHAR)" for i, n in enumerate(numbers))
        con.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {values}, (9, 0, '2.5'), (10, 1, ' 7 ')) v(i, x, s)")
        con.execute("CREATE TABLE big AS SELECT 9223372036854775807 AS n, 12345678901234567.5::DECIMAL(18,1) AS d")
    made = {
        "t": (Made("x", parse_derived("x"), BIGINT), Made("s", parse_derived("s"), INTEGER)),
        "big": (Made("n", parse_derived("n"), BIGINT), Made("d", parse_derived("d"), BIGINT)),
    }
    engine = DuckDBEngine.open(Path("d.duckdb"), {}, tmp_path, made=made)
    assert engine.describe().table("t") is not None
    found = engine.fetch(f"SELECT x, s FROM {engine.table_sql('t')} ORDER BY i").columns
    assert found[0] == [2, None, None, 0, None, None, None, 9007199254740992, None, 0, 1]
    assert found[1] == [2, None, None, 0, None, None, None, None, None, None, 7]
    (n, d) = engine.fetch(f"SELECT n, d FROM {engine.table_sql('big')}").columns
    assert n == [2**63 - 1] and d in ([None], [12345678901234568])  # beyond 2^53 a double is whole
    engine.close()


def test_it_takes_the_place_of_the_column_of_its_name(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, ("ID", "raw", "VARCHAR"), ("s", "id", "BIGINT"))
    found = engine.fetch(f"SELECT id, s, raw FROM {engine.table_sql('t')} WHERE raw = 3")
    assert list(found.rows()) == [("3", 3, 3)]
    engine.close()


@pytest.mark.parametrize("of", ["nothing", "s.none", "j.a", "seen AT TIME ZONE 'Europe/Nowhere'"])
def test_what_no_row_could_have_is_refused_when_the_data_is_opened(tmp_path: Path, of: str) -> None:
    engine = engine_of(tmp_path, ("made", of, "VARCHAR"), rows=())
    with pytest.raises(dpsql.CannotOpen, match=r"tables\.t\.columns\.made: its `from` cannot be computed"):
        engine.describe()
    engine.close()


POLICY = """
version: 1
name: shop
units: {person: {table: people, key: id}}
tables:
  people:
    unit: {column: id}
    primary_key: [id]
    columns: {id: {type: uuid}, lang: {type: varchar, from: "profile ->> 'lang'", domain: [de, fr], nullable: true}}
  visits:
    unit: {column: person, of: person, as: uuid}
    max_rows_per_unit: 3
    columns: {person: {}, n: {type: bigint, bounds: [0, 10]}}
budgets: {total: {epsilon: 10000000}}
"""
ONE, TWO = (uuid.UUID(int=i) for i in (1, 2))


def asked(sql: str, *worlds: list[tuple[str | None, int]]) -> tuple[int, list[dict[Any, Any]]]:
    """Its sensitivity; and of each of some tables of visits the exact totals, before noise."""
    people = pyarrow.table({"id": [str(ONE), str(TWO)], "profile": [json.dumps({"lang": "de"}), "broken"]})
    with duckdb.connect() as own:
        own.register("p", people)
        own.execute("CREATE TABLE people AS SELECT id::UUID AS id, profile FROM p")
        own.execute("CREATE TABLE visits (person VARCHAR, n BIGINT)")
        with dpsql.connect(own, policy=dpsql.Policy.from_yaml(POLICY), ledger=":memory:", optimizers="ours") as con:
            (release,) = con.sql(sql).plan(epsilon=1).releases
            (total,) = release.measured.measurements
            found = []
            for visits in worlds:
                own.execute("DELETE FROM visits")
                if visits:
                    own.execute(f"INSERT INTO visits VALUES {', '.join(['(?, ?)'] * len(visits))}", sum(visits, ()))
                found.append(exact_totals(release, con.service.engine, 7))
            return total.sensitivity.l1, found


SPELLINGS = [str(ONE), str(ONE).upper(), "{" + str(ONE) + "}", str(ONE).replace("-", "")]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits",
        "SELECT SUM(n) FROM visits",
        "SELECT COUNT(*) FROM visits JOIN people ON person = id WHERE lang = 'de'",
        "SELECT lang, COUNT(*) FROM visits JOIN people ON person = id GROUP BY lang",
        "SELECT COUNT(DISTINCT person) FROM visits",
    ],
)
def test_spellings_of_one_id_are_one_unit(sql: str) -> None:
    """Nobody moves an answer by more than its sensitivity, however many spellings his id has."""
    others: list[tuple[str | None, int]] = [(str(TWO), 5), ("junk", 10), (None, 10), ("", 10)]
    mine = [(spelling, 10) for spelling in SPELLINGS for _ in range(3)]
    l1, (with_me, without, nobodys, empty) = asked(sql, [*others, *mine], others, others[1:], [])
    moved = sum(abs(with_me.get(k, [0])[0] - without.get(k, [0])[0]) for k in {*with_me, *without})
    assert 0 < moved <= l1
    assert nobodys == empty  # what is no id is nobody's


def test_columns_are_made_of_a_frames_too() -> None:
    policy = dpsql.Policy.from_yaml("""
version: 1
name: frames
tables:
  t:
    unit: {column: who, as: uuid}
    max_rows_per_unit: 2
    columns:
      who: {}
      n: {from: n, type: integer, bounds: [0, 9]}
      city: {from: home.city, type: varchar, domain: [B, U], nullable: false}
budgets: {total: {epsilon: 1000000}}
""")
    rows = {
        "who": [str(uuid.UUID(int=i // 2)).upper() for i in range(20)],
        "n": [None if i % 5 == 0 else float(i % 10) for i in range(20)],
        "home": [{"city": "BU"[i % 2]} for i in range(20)],
    }
    with dpsql.connect(policy, frames={"t": pyarrow.table(rows)}, ledger=":memory:", epsilon=60_000) as con:
        answer = con.execute(
            "SELECT city, COUNT(*) AS c, COUNT(n) AS n, SUM(n) AS s FROM t GROUP BY city ORDER BY city"
        )
        assert answer.fetchall() == [("B", 10, 8, 40), ("U", 10, 8, 40)]
