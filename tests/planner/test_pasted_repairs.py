"""Repairs that a reader pastes into the query are accepted, and are in his own words."""

from __future__ import annotations

import re

import pytest

import dpsql
from tests.support.planning import policy

TABLES = """
flights:
  unit: {column: tailnum}
  max_rows_per_unit: 20
  columns:
    tailnum: {type: varchar}
    arr_delay: {type: double}
    dist: {type: double, bounds: [0, 5000]}
    day: {type: date, bounds: [2024-01-01, 2024-12-31]}
    lg: {type: varchar, domain: [AL, NL]}
    note: {type: varchar}
"""


def repairs(sql: str) -> list[str]:
    """What stands behind two spaces in the help of the first finding, words for bounds and gaps filled in."""
    found = dpsql.check(sql, policy(TABLES))
    assert found, sql
    texts = [part for line in found[0].help for part in re.split(r"  +", line)[1:]]
    return [text.replace("lower, upper", "1, 60").replace("…", "ORDER BY day") for text in texts]


@pytest.mark.parametrize(
    ("refused", "pasted"),
    [
        ("SELECT MAX(arr_delay) FROM flights", "SELECT {} FROM flights"),
        ("SELECT MIN(dist) FROM flights", "SELECT {} FROM flights"),
        ("SELECT SUM(LN(dist)) FROM flights", "SELECT SUM({}) FROM flights"),
        ("SELECT SUM(EXP(dist)) FROM flights", "SELECT SUM({}) FROM flights"),
        ("SELECT SUM(TAN(dist)) FROM flights", "SELECT SUM({}) FROM flights"),
        ("SELECT SUM(POW(dist - 10, dist)) FROM flights", "SELECT SUM({}) FROM flights"),
        ("SELECT SUM(total(dist)) FROM flights", "SELECT {} FROM flights"),
        ("SELECT * FROM flights LIMIT 5", "{}"),
        ("SELECT * FROM flights", "{}"),
        ("PIVOT flights ON lg USING SUM(dist) GROUP BY lg", "PIVOT flights ON {} USING SUM(dist) GROUP BY lg"),
        ("SELECT SUM(arr_delay) FROM flights", "{} SELECT SUM(arr_delay) FROM flights"),
    ],
)
def test_a_repair_is_accepted_when_it_is_pasted(refused: str, pasted: str) -> None:
    repair = repairs(refused)[-1].partition(", lower above")[0].partition(", upper at most")[0]
    assert [d.code for d in dpsql.check(pasted.format(repair), policy(TABLES)) if d.severity == "error"] == []


def test_a_window_is_made_per_unit_and_aggregated() -> None:
    (repair, *_) = repairs("SELECT LAG(dist) OVER (ORDER BY day) AS w FROM flights")
    assert repair.startswith("SELECT COUNT(w) FROM (SELECT ") and "OVER (PARTITION BY tailnum ORDER BY day)" in repair
    whole = repair.replace("SELECT ORDER BY day OVER", "SELECT LAG(dist) OVER").replace(
        "FROM ORDER BY day)", "FROM flights)"
    )
    assert dpsql.check(whole, policy(TABLES)) == []


@pytest.mark.parametrize(
    ("call", "own"),
    [
        ("dateadd('day', 7, day)", "day + INTERVAL"),
        ("format_date('%Y', day)", "strftime(day, "),
    ],
)
def test_functions_of_other_databases_are_repaired_with_the_readers_arguments(call: str, own: str) -> None:
    assert own in " ".join(repairs(f"SELECT COUNT(*) FROM flights WHERE {call} IS NULL"))


def test_a_join_of_tables_without_ids_may_be_with_a_public_one() -> None:
    tables = (
        "r: {unit: {rows: 1}, columns: {a: {type: bigint}}}\nplaces: {unit: {rows: 1}, columns: {a: {type: bigint}}}\n"
    )
    (found,) = dpsql.check("SELECT COUNT(*) FROM r JOIN places USING (a)", policy(tables))
    assert "if tables.places says nothing" in found.help[-2] and found.help[-2].endswith(":  public: true")
    changed = tables.replace("places: {unit: {rows: 1}", "places: {public: true, primary_key: [a]")
    assert dpsql.check("SELECT COUNT(*) FROM r JOIN places USING (a)", policy(changed)) == []
