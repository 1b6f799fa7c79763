"""What a table's declaration makes known, and what it does not: only promises, and only what they say."""

from __future__ import annotations

import pytest

from dpsql.core.numbers.cap import Unbounded
from tests.support.planning import derived, named, policy, sets

COLUMNS = """
  columns:
    id: {type: bigint, nullable: false}
    g: {type: integer, nullable: false}
    h: {type: integer}
"""


def facts_of(declaration: str, head: str = "units: {person: {}}\n"):  # type: ignore[no-untyped-def]
    tagged = derived("SELECT * FROM t", policy(f"t:\n{declaration}{COLUMNS}", head))
    return tagged.inputs[0].fact, tagged.inputs[0].node


def test_public_tables_never_differ() -> None:
    facts, node = facts_of("  public: true\n  unique: [[id]]\n  max_frequency: [{columns: [h], rows: 5}]\n")
    assert facts.public and not facts.stability and not facts.ids
    assert sets(facts.keys, node) == {frozenset({"id"})}
    assert {tuple(named(c, node)): str(cap) for c, cap in facts.frequency.items()} == {("id",): "1", ("h",): "5"}


ROWS = [(1, "add_remove", "1"), (3, "add_remove", "3"), (1, "replace_one", "2"), (3, "replace_one", "6")]


@pytest.mark.parametrize(("rows", "neighbours", "stability"), ROWS)
def test_row_units(rows: int, neighbours: str, stability: str) -> None:
    facts, _ = facts_of(f"  unit: {{rows: {rows}, neighbours: {neighbours}}}\n", "")
    assert {u: str(c) for u, c in facts.stability.items()} == {"t": stability}
    assert not facts.ids and facts.replaced == (neighbours == "replace_one")


@pytest.mark.parametrize(("neighbours", "stability"), [("add_remove", "1"), ("replace_one", "2")])
def test_id_units(neighbours: str, stability: str) -> None:
    facts, node = facts_of(f"  unit: {{column: id, neighbours: {neighbours}}}\n")
    assert named(facts.ids, node) == named(facts.by_id, node) == {"id"}
    assert {u: str(c) for u, c in facts.stability.items()} == {"person": stability}
    assert facts.most_rows(facts.ids) is None  # nothing says how many rows an id has


@pytest.mark.parametrize(
    ("type_", "one_form"), [("varchar", True), ("double", False), ("float", False), ("interval", False)]
)
def test_an_id_whose_equal_values_are_many(type_: str, one_form: bool) -> None:
    """0.0 and -0.0, or 30 days and 1 month: one id, and what is computed from it is not one value."""
    tables = f"t:\n  unit: {{column: id}}\n  columns: {{id: {{type: {type_}}}}}\n"
    tagged = derived("SELECT * FROM t", policy(tables, "units: {person: {}}\n"))
    facts, node = tagged.inputs[0].fact, tagged.inputs[0].node
    assert named(facts.ids, node) == {"id"} and named(facts.by_id, node) == ({"id"} if one_form else set())


def test_an_enforced_limit_is_no_fact_of_the_table() -> None:
    facts, _ = facts_of(
        "  unit: {column: id}\n  max_rows_per_unit: 5\n  max_rows_per_group: 2\n  max_groups_per_unit: 3\n"
    )
    assert facts.most_rows(facts.ids) is None and facts.contribution is None


def test_a_promise_is() -> None:
    facts, _ = facts_of("  unit: {column: id}\n  max_rows_per_unit: {rows: 5, enforce: assume}\n")
    assert str(facts.most_rows(facts.ids)) == "5"


def test_a_key_with_nulls_is_no_key() -> None:
    """SQL's UNIQUE admits many NULLs: equality finds one row at most, but NULL may stand in all."""
    facts, node = facts_of("  unit: {column: id}\n  unique: [[id, h], [g, id]]\n")
    assert sets(facts.keys, node) == {frozenset({"g", "id"})}
    assert sets(facts.frequency, node) == {frozenset({"g", "id"}), frozenset({"h", "id"})}


def test_the_id_as_a_key_determines_the_row() -> None:
    facts, node = facts_of("  unit: {column: id}\n  primary_key: [id]\n")
    assert named(facts.by_id, node) == {"id", "g", "h"} and str(facts.most_rows(facts.ids)) == "1"


def test_enforced_keys_are_none() -> None:
    facts, _ = facts_of("  unit: {column: id}\n  unique: [{columns: [id, g], enforce: truncate}]\n")
    assert not facts.keys and not facts.frequency


def test_declared_bounds_are_no_facts() -> None:
    """A raw column may hold anything of its type; bounds become facts where the plan clips."""
    declaration = "t:\n  unit: {rows: 1}\n  columns:\n    x: {type: integer, bounds: [0, 10]}\n"
    tagged = derived("SELECT x FROM t", policy(declaration, ""))
    (column,) = tagged.inputs[0].fact.columns.values()
    assert not column.value.interval.bounded and column.hint is not None and column.hint.bounds is not None
    assert column.value.interval.why[0].code == "DP201"


TABLES_OF_A_PATH = """
a:
  unit: {column: id}
  unique: [[k], {columns: [id, g], enforce: truncate}]
  columns: {id: {type: bigint}, k: {type: bigint}, g: {type: bigint}}
t:
  unit: {path: [{column: k, references: a(k)}]}
  columns: {k: {type: bigint}}
"""


def test_rows_of_a_path_have_no_owner_until_they_are_joined() -> None:
    tagged = derived("SELECT k FROM t", policy(TABLES_OF_A_PATH, "units: {person: {table: a, key: id}}\n"))
    facts = tagged.inputs[0].fact
    (cap,) = facts.stability.values()
    assert isinstance(cap, Unbounded) and cap.reasons[0].code == "DP220"
    assert not facts.ids and [(h.table, h.references) for h in facts.hops] == [("a", ("k",))]


def test_only_promised_keys_name_a_row() -> None:
    """Dropping the duplicates of an enforced key moves other ids' rows: a foreign key must not rely on it."""
    tagged = derived("SELECT k FROM a", policy(TABLES_OF_A_PATH, "units: {person: {table: a, key: id}}\n"))
    assert [h.references for h in tagged.inputs[0].fact.promised_keys] == [("k",)]


KEPT = "t:\n  unit: {column: id}\n  primary_key: [id]\n"


def test_what_is_kept_of_a_table_is_what_is_worked_out_anew() -> None:
    """Facts are kept with the policy for a table under the same numbers of columns, and for no other place."""
    both = policy(KEPT + COLUMNS, "units: {person: {}}\n")
    for text in ("SELECT * FROM t", "SELECT * FROM t AS a JOIN t AS b ON a.id = b.id", "SELECT g FROM t WHERE g > 3"):
        derived(text, both)
        again, fresh = derived(text, both), derived(text, policy(KEPT + COLUMNS, "units: {person: {}}\n"))
        assert [t.fact for t in again.walk()] == [t.fact for t in fresh.walk()]
    assert both.scanned


def test_what_is_worked_out_of_expressions_is_not_kept_with_a_table() -> None:
    """It holds them: a policy would grow with every query."""
    one = policy(KEPT + COLUMNS, "units: {person: {}}\n")
    derived("SELECT * FROM t WHERE g > 3", one)
    assert all(not facts._known for facts in one.scanned.values())


def test_no_more_tables_are_kept_than_a_policy_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.core.analysis.rules.scan.MOST_SCANS", 2)
    one = policy(KEPT + COLUMNS, "units: {person: {}}\n")
    derived("SELECT * FROM t a JOIN t b ON a.id = b.id JOIN t c ON a.id = c.id JOIN t d ON a.id = d.id", one)
    assert 1 <= len(one.scanned) <= 2


def test_a_table_whose_owner_or_keys_stand_elsewhere_is_not_kept() -> None:
    """The place in the text where a path is not followed is the query's own, and keys are measured."""
    listed = "s:\n  unit: {rows: 1}\n  columns: {g: {type: bigint, domain: {table: l, column: g}, nullable: false}}\n"
    public = "l:\n  public: true\n  columns: {g: {type: bigint, nullable: false}}\n"
    one = policy(TABLES_OF_A_PATH + listed + public, "units: {person: {table: a, key: id}}\n")
    for table in ("a", "t", "s", "l"):
        derived(f"SELECT * FROM {table}", one)
    assert {name for name, _ in one.scanned} == {"a", "l"}
