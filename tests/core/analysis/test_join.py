"""Stability, keys and frequencies of joins, and the joins that have none."""

from __future__ import annotations

import pytest

from dpsql.core.ir.nodes import Join
from dpsql.core.ir.public_facts import FrequencyOf, PublicFacts, RowsOf
from dpsql.diagnostics.errors import Rejected
from tests.support.planning import derived, named, policy, sets

TABLES = """
rows:
  unit: {rows: 2}
  unique: [[r]]
  columns: {r: {type: bigint, nullable: false}, k: {type: integer}, w: {type: double}}
people:
  unit: {column: id}
  primary_key: [id]
  columns: {id: {type: bigint, nullable: false}, city: {type: varchar, nullable: false}}
visits:
  unit: {column: id}
  max_rows_per_unit: {rows: 5, enforce: assume}
  columns: {id: {type: bigint, nullable: false}, friend: {type: bigint}, k: {type: integer}, day: {type: date}}
one:
  public: true
  unique: [[k]]
  columns: {k: {type: integer, nullable: false}, name: {type: varchar}}
three:
  public: true
  max_frequency: [{columns: [k], rows: 3}]
  columns: {k: {type: integer, nullable: false}, name: {type: varchar}}
many:
  public: true
  columns: {k: {type: integer}, name: {type: varchar}, w: {type: double}, b: {type: bigint}}
by_person:
  public: true
  unique: [[id]]
  columns: {id: {type: bigint, nullable: false}, land: {type: varchar}}
"""
POLICY = policy(TABLES)


def joined(text: str, public: PublicFacts | None = None):  # type: ignore[no-untyped-def]
    tagged = derived(f"SELECT 1 AS one FROM {text}", POLICY, public)
    return next((t.fact, t.node) for t in tagged.walk() if isinstance(t.node, Join))  # the outermost one


@pytest.mark.parametrize(
    ("text", "stability"),
    [
        ("rows JOIN one ON rows.k = one.k", "2"),
        ("rows JOIN three ON rows.k = three.k", "6"),
        ("three JOIN rows ON rows.k = three.k", "6"),
        ("rows JOIN three ON rows.k + 1 = three.k", "6"),
        ("rows JOIN three ON rows.k = three.k AND rows.r > 3 AND three.name = 'x'", "6"),
        ("rows JOIN one ON rows.k = one.k JOIN three ON one.k = three.k", "6"),
        ("rows JOIN three AS a ON rows.k = a.k JOIN three AS b ON rows.k = b.k", "18"),
        ("rows JOIN (SELECT k AS kk FROM three WHERE name = 'x') AS s ON rows.k = s.kk", "6"),
        ("rows JOIN (SELECT three.k FROM one JOIN three ON one.k = three.k) AS s ON rows.k = s.k", "6"),
        ("rows LEFT JOIN three ON rows.k = three.k", "6"),
        ("three LEFT JOIN rows ON rows.k = three.k", "12"),  # a padded row goes when its partner comes
        ("one LEFT JOIN rows ON rows.k = one.k", "4"),
        ("rows FULL JOIN three ON rows.k = three.k", "12"),
    ],
)
def test_rows(text: str, stability: str) -> None:
    facts, _ = joined(text)
    assert {u: str(c) for u, c in facts.stability.items()} == {"rows": stability} and not facts.ids


@pytest.mark.parametrize(
    "text",
    [
        "rows JOIN many ON rows.k = many.k",
        "rows JOIN three ON rows.k = three.k + 1",
        "rows JOIN three ON rows.k < three.k",
        "rows CROSS JOIN one",
        "rows JOIN one ON rows.k = one.k OR rows.r = 3",
        "rows JOIN (SELECT k + 0 AS k FROM one) AS o ON rows.k = o.k",
    ],
)
def test_unbounded_multiplicity_has_a_reason(text: str) -> None:
    facts, _ = joined(text)
    (cap,) = facts.stability.values()
    (reason,) = cap.reasons
    assert reason.code == "DP210" and reason.help and reason.span is not None


def test_measured_facts_are_used_and_noted() -> None:
    number = FrequencyOf("many", ("k",))
    public = PublicFacts({number: 4, RowsOf("one"): 10})
    assert [str(c) for c in joined("rows JOIN many ON rows.k = many.k", public)[0].stability.values()] == ["8"]
    assert [str(c) for c in joined("rows CROSS JOIN one", public)[0].stability.values()] == ["20"]
    assert public.used == {number: 4, RowsOf("one"): 10} and not public.missing
    nothing = PublicFacts()
    joined("rows JOIN many ON rows.k = many.k", nothing)
    assert nothing.missing == {number}
    declared = PublicFacts()
    joined("rows JOIN three ON rows.k = three.k", declared)
    assert declared.used == {FrequencyOf("three", ("k",)): 3}  # to be checked against the table at the run


@pytest.mark.parametrize(
    ("text", "ids", "most"),
    [
        ("visits JOIN one ON visits.k = one.k", {"id"}, "5"),
        ("visits JOIN three ON visits.k = three.k", {"id"}, "15"),
        ("visits JOIN people ON visits.id = people.id", {"id"}, "5"),
        ("people JOIN visits ON visits.id = people.id", {"id"}, "5"),
        ("visits AS a JOIN visits AS b ON a.id = b.id", {"id"}, "25"),
        ("people JOIN by_person ON people.id = by_person.id", {"id"}, "1"),
    ],
)
def test_ids(text: str, ids: set[str], most: str) -> None:
    facts, node = joined(text)
    assert named(facts.ids, node) == ids and {u: str(c) for u, c in facts.stability.items()} == {"person": "1"}
    caps = [facts.most_rows(frozenset({uid})) for uid in facts.ids]
    assert min(str(c) for c in caps if c is not None) == most


def test_what_the_id_determines() -> None:
    facts, node = joined("people JOIN by_person ON people.id = by_person.id")
    assert named(facts.by_id, node) == {"id", "city", "land"}
    facts, node = joined("visits JOIN one ON visits.k = one.k")
    assert named(facts.by_id, node) == {"id"}  # k is not the person's, so neither is its name
    facts, node = joined("visits JOIN people ON visits.id = people.id")
    assert {"city", "id"} <= named(facts.by_id, node) and "day" not in named(facts.by_id, node)


def test_keys() -> None:
    facts, node = joined("rows JOIN one ON rows.k = one.k")
    assert frozenset({"r"}) in sets(facts.keys, node)
    facts, node = joined("rows JOIN three ON rows.k = three.k")
    assert frozenset({"r"}) not in sets(facts.keys, node)  # a row may appear three times


@pytest.mark.parametrize(
    "text",
    [
        "rows AS a JOIN rows AS b ON a.k = b.k",
        "visits AS a JOIN visits AS b ON a.k = b.k",
        "visits AS a JOIN visits AS b ON a.id = b.id + 0",
        "visits AS a JOIN visits AS b ON a.id < b.id",
        "visits AS a JOIN visits AS b ON a.id = b.friend",
        "visits AS a JOIN people AS b ON a.friend = b.id AND a.k = 1 AND b.city = 'x'",
        "visits AS a JOIN visits AS b ON a.id = b.id OR a.k = b.k",
        "visits CROSS JOIN people",
        "visits JOIN rows ON visits.k = rows.r",
        "(SELECT id + 1 AS id FROM visits) AS a JOIN people ON a.id = people.id",
    ],
)
def test_private_joins_without_a_rule(text: str) -> None:
    with pytest.raises(Rejected) as refusal:
        joined(text)
    assert refusal.value.diagnostics[0].code == "DP230"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("rows JOIN many ON rows.w = many.w", "DP117"),
        ("rows JOIN one ON CAST(rows.k AS DOUBLE) = one.k", "DP117"),
        ("rows JOIN many ON CAST(rows.k AS DECIMAL(9,2)) = many.b", "DP117"),
        ("visits JOIN many ON visits.day = many.name", "DP117"),
    ],
)
def test_types_of_keys(text: str, code: str) -> None:
    with pytest.raises(Rejected) as refusal:
        joined(text)
    assert refusal.value.diagnostics[0].code == code
