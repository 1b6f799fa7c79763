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
from dpsql.diagnostics.layout import text_width
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.explain.rows import ComponentTable, Part, PlanRow, PlanTree
from dpsql.planner.explain.written import written

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


def narrow(con: dpsql.Connection, query: str, columns: int) -> str:
    plan = con.sql(QUERIES[query]).plan()
    return as_text(plan, charge=con.charge_to_show(plan), columns=columns)


@pytest.mark.parametrize("columns", [60, 80, 100, 120])
@pytest.mark.parametrize("query", QUERIES)
def test_a_tree_that_fits(con: dpsql.Connection, query: str, columns: int) -> None:
    text, shown = con.sql(QUERIES[query]).explain(), narrow(con, query, columns)
    assert words(shown) == words(text)
    lines = shown.split("\n")
    for line in lines:
        assert text_width(line) <= columns or (columns == 60 and re.search(r"l∞|laplace", line)), line
    for above, line in pairwise(lines):
        for place, sign in enumerate(line):
            if sign in "│├└":
                assert above[place : place + 1].strip(), f"the bar is broken above\n{line}\n\n{shown}"


def test_what_fits_is_left_as_it_is(con: dpsql.Connection) -> None:
    for query in QUERIES:
        text = con.sql(QUERIES[query]).explain()
        assert narrow(con, query, max(map(text_width, text.split("\n")))) == text


def test_facts_stand_beside_their_nodes_or_below_them(con: dpsql.Connection) -> None:
    assert """
   │  │     └─ group by region   stability person=1 id · id person_id ·
   │  │        │                 rule group keys · domain of people.region
   │  │        └─ scan people    stability""" in narrow(con, "two releases", 80)
    assert """
   │  │     └─ group by region
   │  │        │    stability person=1 id · id person_id ·
   │  │        │    rule group keys ·
   │  │        │    domain of people.region
   │  │        └─ scan people
   │  │                stability""" in narrow(con, "two releases", 60)


def test_names_of_units_may_have_spaces() -> None:
    """What is known of a node is a value: nobody has to find in a line where it begins."""
    tree = PlanTree(
        (PlanRow((), "project x", ("public",)), PlanRow((True,), "scan t", ("stability a b = c=1 id", "id x")))
    )
    assert "stability a b = c=1 id" in written([tree], 40)
    assert [(row.depth, row.bars) for row in tree.rows] == [(0, ""), (1, "└─ ")]


@pytest.mark.parametrize(
    "part",
    ["", "└─ x" * 40, "y " * 90, "│" * 90, PlanTree((PlanRow((), "z " * 50, ()),)), ComponentTable((("n " * 40, "1"),)),
     PlanTree((PlanRow((), "a\x1b[1mb", ("日本 " * 40,)),))],
)  # fmt: skip
def test_parts_of_other_forms_are_folded_somehow(part: Part) -> None:
    assert words(written([part], 40)) == words(written([part]))
