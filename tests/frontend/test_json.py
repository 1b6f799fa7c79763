"""JSON is read by the policy: a query that reads some is told the column to declare, and that column works."""

from __future__ import annotations

import re

import pytest

import dpsql
from tests.support.planning import policy

TABLE = """
people:
  unit: {rows: 1}
  columns:
    n: {type: integer, bounds: [0, 9]}
    note: {type: varchar}
    odd name: {type: varchar}
"""


def told(sql: str) -> str:
    """The column that a refusal proposes."""
    (found,) = dpsql.check(sql, policy(TABLE))
    assert found.code == "DP105" and found.message == "a query reads no JSON"
    (help,) = found.help
    return help.removeprefix("custodian: declare its values as columns, in the policy:  ")


@pytest.mark.parametrize(
    ("written", "column"),
    [
        ("note ->> 'city'", """note_city: {from: "note ->> '$.city'", type: varchar}"""),
        ("note -> '$.home.city'", """note_city: {from: "note ->> '$.home.city'", type: varchar}"""),
        ("p.note -> 'home' ->> 'city'", """note_city: {from: "note ->> '$.home.city'", type: varchar}"""),
        ("(note -> 'home') ->> 'city'", """note_city: {from: "note ->> '$.home.city'", type: varchar}"""),
        ("json_extract_string(note, '$.homes[0]')", """note_homes: {from: "note ->> '$.homes[0]'", type: varchar}"""),
        ("note ->> 'n'", """note_n: {from: "note ->> '$.n'", type: varchar}"""),
        ("note ->> '$[1]'", """note_value: {from: "note ->> '$[1]'", type: varchar}"""),
        ("\"odd name\" ->> 'x'", """odd_name_x: {from: '"odd name" ->> \'\'$.x\'\'', type: varchar}"""),
    ],
)
def test_the_column_that_is_proposed_can_be_declared_and_asked(written: str, column: str) -> None:
    sql = f"SELECT COUNT(*) FROM people p WHERE {written} = 'b'"
    assert told(sql) == column
    name = column.split(":", 1)[0]
    declared = policy(f"{TABLE}    {column}\n")
    assert dpsql.check(f"SELECT COUNT(*) FROM people WHERE {name} = 'b'", declared) == []


@pytest.mark.parametrize("written", ["note -> concat('a', 'b')", "note -> n", "lower(note) -> '$.*'", "note -> '$..a'"])
def test_what_no_column_can_be_made_of_is_shown_an_example(written: str) -> None:
    column = told(f"SELECT COUNT(*) FROM people WHERE ({written}) IS NULL")
    assert re.fullmatch(r"\w+: \{from: \"\w+ ->> '\$\.\w+'\", type: varchar\}", column)
