"""Texts in JSON: what is written is the path that is read, no text makes it fail, and a column of it is found."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.core.gate.grammar import is_scalar
from dpsql.core.gate.vocabularies import DUCKDB
from dpsql.diagnostics.diagnostic import Source
from dpsql.service.checks.check import static_plan
from tests.support.planning import policy

TABLE = """
people:
  public: true
  columns:
    n: {type: integer}
    note: {type: varchar}
    odd name: {type: varchar}
"""
NOTE = """{"city": "Rome", "n": 7, "home": {"city": "Oslo"}, "homes": ["a", {"city": "Bonn"}], "a.b": "dot",
    "odd key": true, "none": null, "text": "{\\"city\\": \\"Kiel\\"}"}"""


def read(expression: str, note: str | None = NOTE, dialect: str = "duckdb") -> Any:
    """What the plan's own SQL gives for one row."""
    sql = static_plan(Source(f"SELECT {expression} AS v FROM people p"), policy(TABLE), dialect=dialect).post.sql
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE people (n INTEGER, note VARCHAR, "odd name" VARCHAR)')
        connection.execute("INSERT INTO people VALUES (1, $1, $1)", [note])
        return connection.execute(sql).fetchall()[0][0]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("note ->> 'city'", "Rome"),
        ("note ->> '$.home.city'", "Oslo"),
        ("p.note -> 'home' ->> 'city'", "Oslo"),
        ("(note -> 'home') ->> 'city'", "Oslo"),
        ("note::json -> 'home' ->> 'city'", "Oslo"),
        ("CAST(note AS JSON) ->> 'city'", "Rome"),
        ("json_extract_string(note, '$.homes[1].city')", "Bonn"),
        ("note -> 'homes' ->> 0", "a"),
        ("note -> 'homes' -> 1 ->> 'city'", "Bonn"),
        ("note ->> 'a.b'", "dot"),
        ("note ->> 'odd key'", "true"),
        ("note ->> '$.none'", None),
        ("note ->> 'missing'", None),
        ("(note ->> 'text') ->> 'city'", "Kiel"),
        ("\"odd name\" ->> 'n'", "7"),
        ("(note ->> 'n')::INTEGER + 1", 8),
        ("CAST(note ->> 'city' AS INTEGER)", None),
        ("upper(note ->> 'city')", "ROME"),
    ],
)
def test_the_path_that_is_written_is_read(written: str, found: object) -> None:
    assert read(written) == found


@pytest.mark.parametrize(
    ("dialect", "written", "found"),
    [
        ("postgres", "note::jsonb #>> '{home,city}' = 'Oslo'", True),
        ("postgres", "note::jsonb -> 'home' ->> 'city' <> 'Oslo'", False),
        ("postgres", "(note ->> 'n')::int", 7),
        ("postgres", "note ->> 'none' IS NULL", True),
        ("spark", "get_json_object(note, '$.home.city') IN ('Oslo', 'Rome')", True),
        ("bigquery", "CAST(JSON_VALUE(note, '$.n') AS INT64)", 7),
    ],
)
def test_other_dialects_read_what_they_write(dialect: str, written: str, found: object) -> None:
    assert read(written, dialect=dialect) == found


@pytest.mark.parametrize(
    "note",
    [
        None, "", "not json", "{", '{"city"', '{"city": "a"} x', "nan", '{"city": NaN}', '{"city": 1e999}',
        '{"city": "\\ud800"}', '{"city": "\\u0000"}', "[" * 5000 + "]" * 5000, '{"city": 1,"city": 2}', "\ufeff{}",
        '{"city": 123456789012345678901234567890}', "\x00", "'", '{"city": {"k": [1, "é"]}}', "1", '"city"', "null",
    ],
)  # fmt: skip
def test_no_text_makes_it_fail(note: str | None) -> None:
    for written in ("note ->> 'city'", "note ->> '$[0].city'", "CAST(note ->> 'city' AS INTEGER)"):
        read(written, note)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("note -> 'city' IS NULL", "a query reads texts in JSON, not JSON itself"),
        ("CAST(note -> 'n' AS INTEGER)", "a query reads texts in JSON, not JSON itself"),
        ("note ->> concat('a', 'b')", "this path in JSON is not read"),
        ("note ->> n", "this path in JSON is not read"),
    ],
)
def test_what_is_no_text_by_a_literal_path_is_refused_in_sql(written: str, message: str) -> None:
    (found,) = dpsql.check(f"SELECT {written} AS v FROM people", policy(TABLE))
    assert (found.code, found.message) == ("DP105", message)
    assert found.help and "JSONExtract" not in str(found)


def test_a_path_that_a_function_is_given_stands_in_brackets() -> None:
    sql = "SELECT COUNT(lower(note -> 'a' ->> 'b')) AS n FROM people"
    (found,) = dpsql.check(sql, policy(TABLE))
    assert found.code == "DP101" and "lower((x -> 'a' ->> 'b'))" in found.help[0]
    assert dpsql.check(sql.replace("lower(", "lower((").replace(")) AS", "))) AS"), policy(TABLE)) == []


@pytest.mark.parametrize("path", ["$..a", "$.*", "$[#-1]", "$", "$.a[*]"])
def test_paths_of_many_values_are_refused(path: str) -> None:
    (found,) = dpsql.check(f"SELECT json_extract_string(note, '{path}') AS v FROM people", policy(TABLE))
    assert found.code in ("DP105", "DP106")


def test_a_column_that_the_policy_makes_of_it_is_that_column() -> None:
    made = policy(TABLE + "    city: {from: \"note ->> '$.city'\", type: varchar, domain: [Rome]}\n")
    sql = "SELECT note ->> 'city' AS v FROM people"
    assert "json" not in static_plan(Source(sql), made).post.sql


def test_the_gate_knows_it() -> None:
    text = "CASE WHEN json_valid(a) THEN json_extract_string(a, '$.x') END"
    assert is_scalar(text, ("a",), DUCKDB) and not is_scalar(text.replace("json_valid", "json_each"), ("a",), DUCKDB)
