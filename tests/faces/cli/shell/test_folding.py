"""EXPLAIN on narrow terminals: nothing is lost, nothing is too wide, and the tree's bars reach from node to node."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.faces.cli.shell.output.folding import folded
from dpsql.faces.cli.shell.output.output import line_width

POLICY: dict[str, Any] = {
    "version": 1,
    "name": "shop",
    "units": {"person": {}},
    "tables": {
        "people": {
            "unit": {"column": "person_id"},
            "primary_key": ["person_id"],
            "columns": {
                "person_id": {"type": "bigint", "nullable": False},
                "region": {"type": "varchar", "domain": ["north", "süd", "日本"]},
                "age": {"type": "integer", "bounds": [0, 110], "nullable": False},
            },
        },
        "codes": {"public": True, "columns": {"code": {"type": "varchar"}, "rank": {"type": "integer"}}},
    },
    "budgets": {"total": {"epsilon": 1000}},
}
QUERIES = {
    "one node": "SELECT 1 AS one",
    "groups": "SELECT region, COUNT(*) AS n, AVG(age) AS a, SUM(age) AS s FROM people WHERE age > 3 AND age < 80 "
    "GROUP BY region ORDER BY n DESC LIMIT 3",
    "two releases": "WITH c AS (SELECT region, COUNT(*) AS n FROM people GROUP BY region) "
    "SELECT c.region, c.n, (SELECT COUNT(*) FROM people) AS t FROM c JOIN codes ON c.region = codes.code",
    "long names": "SELECT COUNT(*) FILTER (WHERE region = 'north' AND age > 17) AS x, "
    "SUM(CASE WHEN age > 3 AND region = '日本' THEN age * 3 + 7 ELSE 0 END) AS s "
    "FROM people WHERE region IN ('north', '日本', 'süd') AND age <> 7 AND age <> 8",
    "deep": "SELECT SUM(total) AS s FROM (SELECT person_id, SUM(age) AS total FROM people JOIN codes ON region = code "
    "WHERE code IN (SELECT code FROM codes WHERE rank > 2) GROUP BY person_id) t",
}


@pytest.fixture(scope="module")
def con() -> Iterator[dpsql.Connection]:
    people = pyarrow.table(
        {
            "person_id": pyarrow.array([1], pyarrow.int64()),
            "region": ["north"],
            "age": pyarrow.array([30], pyarrow.int32()),
        }
    )
    codes = pyarrow.table({"code": ["north"], "rank": pyarrow.array([1], pyarrow.int32())})
    with dpsql.connect(
        dpsql.Policy.from_dict(POLICY),
        frames={"people": people, "codes": codes},
        ledger=MemoryLedger("shop"),
        epsilon=1,
    ) as opened:
        yield opened


def words(text: str) -> Counter[str]:
    return Counter(re.sub("[│├└─]", " ", text).split())


@pytest.mark.parametrize("columns", [60, 80, 100, 120])
@pytest.mark.parametrize("query", QUERIES)
def test_a_tree_that_fits(con: dpsql.Connection, query: str, columns: int) -> None:
    text = con.sql(QUERIES[query]).explain()
    shown = folded(text, columns)
    assert words(shown) == words(text)
    lines = shown.split("\n")
    for line in lines:
        assert line_width(line) <= columns or (columns == 60 and re.search(r"l∞|laplace", line)), line
    for above, line in pairwise(lines):
        for place, sign in enumerate(line):
            if sign in "│├└":
                assert above[place : place + 1].strip(), f"the bar is broken above\n{line}\n\n{shown}"


def test_what_fits_is_left_as_it_is(con: dpsql.Connection) -> None:
    for query in QUERIES.values():
        text = con.sql(query).explain()
        assert folded(text, max(map(line_width, text.split("\n")))) == text


def test_facts_stand_beside_their_nodes_or_below_them(con: dpsql.Connection) -> None:
    text = con.sql(QUERIES["two releases"]).explain()
    assert """
   │  │     └─ group by region   stability person=1 id · id person_id ·
   │  │        │                 rule group keys · domain of people.region
   │  │        └─ scan people    stability""" in folded(text, 80)
    assert """
   │  │     └─ group by region
   │  │        │    stability person=1 id · id person_id ·
   │  │        │    rule group keys ·
   │  │        │    domain of people.region
   │  │        └─ scan people
   │  │                stability""" in folded(text, 60)


def test_names_of_units_may_have_spaces(con: dpsql.Connection) -> None:
    text = con.sql(QUERIES["groups"]).explain()
    spaced = re.sub(r"stability person=", "stability a b = c=", text)
    pad = {line: folded(line, 60) for line in spaced.split("\n") if "stability" in line}
    assert pad and all("stability a b = c=1 id" in found for found in pad.values())


@pytest.mark.parametrize(
    "text", ["", "\n\n", "└─ x" * 40, "├─\n" * 3 + "y " * 90, "a " * 90 + "\n\n  component  l1 x", "│" * 90]
)
def test_texts_of_other_forms_are_folded_somehow(text: str) -> None:
    assert words(folded(text, 40)) == words(text)
