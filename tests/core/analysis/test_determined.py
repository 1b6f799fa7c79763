"""Which columns of joined rows are functions of the id: those of the one row that functions of the id find."""

from __future__ import annotations

import pytest

from dpsql.core.ir.nodes import output_columns
from dpsql.core.ir.public_facts import FrequencyOf
from dpsql.policy.tools.assumptions import promises
from tests.support.planning import below_release, derived, planned, policy

POLICY = policy("""
people:
  unit: {of: person, column: pid}
  max_rows_per_unit: 5
  primary_key: [pid]
  columns: {pid: {type: integer}, area: {type: integer}, best: {type: integer}, size: {type: double}}
visits:
  unit: {of: person, column: pid}
  max_rows_per_unit: 5
  unique: [[pid, number]]
  columns: {pid: {type: integer, nullable: false}, number: {type: integer}, area: {type: integer}, w: {type: varchar}}
nations:
  public: true
  unique: [[area]]
  columns: {area: {type: integer}, name: {type: varchar}}
tongues:
  public: true
  max_frequency: [{columns: [area], rows: 2}]
  columns: {area: {type: integer}, tongue: {type: varchar}}
prices:
  public: true
  unique: [[area, w]]
  columns: {area: {type: integer}, w: {type: varchar}, price: {type: integer}}
""")


def by_id(keys: str, rows: str) -> set[str]:
    """Which of the group columns are functions of the id."""
    plan = planned(f"SELECT {keys}, COUNT(*) AS n {rows} GROUP BY {keys}", POLICY)
    node = plan.releases[0].measured.node
    known = below_release(plan).by_id
    return {k.name for k in node.keys if k.uid in known}


PEOPLE = "FROM visits JOIN people ON visits.pid = people.pid"


@pytest.mark.parametrize(
    ("keys", "rows", "found"),
    [
        ("people.area, visits.number, w", f"{PEOPLE}", {"area"}),
        ("name, w", f"{PEOPLE} JOIN nations ON people.area = nations.area", {"name"}),
        ("name, w", f"{PEOPLE} LEFT JOIN nations ON people.area = nations.area", {"name"}),
        # not by a function of the id, not one row, or not for all rows of the id
        ("name, w", f"{PEOPLE} JOIN nations ON visits.area = nations.area", set()),
        ("tongue, w", f"{PEOPLE} JOIN tongues ON people.area = tongues.area", set()),
        ("name, w", f"{PEOPLE} LEFT JOIN nations ON people.area = nations.area AND w = 'a'", set()),
        ("name, w", f"{PEOPLE} JOIN nations ON people.area = nations.area AND w = 'a'", {"name"}),
        ("name, w", f"{PEOPLE} JOIN nations ON people.area + 1 = nations.area", set()),
        ("price, visits.w", f"{PEOPLE} JOIN prices ON people.area = prices.area AND visits.w = prices.w", set()),
        # a column that equals one
        ("tongues.area, tongue", f"{PEOPLE} JOIN tongues ON people.area = tongues.area", {"area"}),
        ("tongues.area, tongue", f"{PEOPLE} LEFT JOIN tongues ON people.area = tongues.area", set()),
        ("visits.area, w", f"{PEOPLE} AND visits.area = people.area", {"area"}),
        (
            "name, w",
            f"{PEOPLE} JOIN tongues ON visits.w = tongue AND people.area = tongues.area "
            "JOIN nations ON tongues.area = nations.area",
            {"name"},
        ),
        # a promised key of a private table
        ("w", "FROM people JOIN visits ON people.pid = visits.pid AND best = number", {"w"}),
        ("w", "FROM people LEFT JOIN visits ON people.pid = visits.pid AND best = number", {"w"}),
        ("w", "FROM people LEFT JOIN visits ON people.pid = visits.pid AND best = number AND w > 'a'", set()),
        ("w", "FROM people JOIN visits ON people.pid = visits.pid", set()),
        # computed: a guess, which is enforced
        ("a, w", f"FROM (SELECT visits.pid, abs(people.area) AS a, w {PEOPLE}) AS q", set()),
        (
            "b, w",
            f"{PEOPLE} JOIN (SELECT area, upper(name) AS b FROM nations) AS n ON people.area = n.area",
            set(),
        ),
        (
            "c, w",
            f"{PEOPLE} JOIN (SELECT abs(area) AS c, tongue FROM tongues) AS t ON people.area = c",
            set(),
        ),
        # totals of an id
        ("m, w", "FROM visits JOIN (SELECT pid, MIN(w) AS m FROM visits GROUP BY pid) AS f USING (pid)", {"m"}),
        (
            "m, visits.w",
            "FROM visits JOIN (SELECT pid, w, MIN(number) AS m FROM visits GROUP BY pid, w) AS f ON visits.pid = f.pid",
            set(),
        ),
    ],
)
def test_functions_of_the_id(keys: str, rows: str, found: set[str]) -> None:
    assert by_id(keys, rows) == found


def test_the_run_checks_the_keys_that_it_relies_on() -> None:
    """A key of a public table that is none would put an id into more groups than are counted (DP409)."""
    plan = planned(
        f"SELECT name, w, COUNT(*) AS n {PEOPLE} JOIN nations ON people.area = nations.area GROUP BY ALL", POLICY
    )
    assert plan.basis.public[FrequencyOf("nations", ("area",))] == 1


def test_the_audit_lists_the_keys_that_it_relies_on() -> None:
    (found,) = [p for p in promises(POLICY) if p.kind == "unique"]
    assert found.where == "tables.visits.unique[0]"
    assert "or be counted in n of its groups" in found.when_false


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ("JOIN (SELECT area, name AS b FROM nations) AS n ON people.area = n.area", {"b"}),
        ("JOIN (SELECT area, upper(name) AS b FROM nations) AS n ON people.area = n.area", set()),
        ("JOIN (SELECT area AS b FROM tongues) AS t ON people.area = t.b", {"b"}),
        ("JOIN (SELECT abs(area) AS b FROM tongues) AS t ON people.area = t.b", set()),
    ],
)
def test_what_is_computed_is_no_function_of_the_id(rows: str, found: set[str]) -> None:
    """As it is bound: rewrites write what is computed out where it is used."""
    tagged = derived(f"SELECT people.pid, b FROM people {rows}", POLICY)
    assert {c.name for c in output_columns(tagged.node) if c.uid in tagged.fact.by_id} == {"pid", *found}
