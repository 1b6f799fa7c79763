"""`from:` and `as:` — what a policy may say a column is made of, and what it may not."""

from __future__ import annotations

import jsonschema
import pytest

import dpsql
from dpsql.core.ir import types
from dpsql.core.policy.derived import Derived, DerivedError, parse_derived
from dpsql.policy.file.schema import policy_schema

FORMS = {
    "id": Derived("id"),
    '"odd ""name"""': Derived('odd "name"'),
    "address.city": Derived("address", ("city",)),
    'a."b c".d': Derived("a", ("b c", "d")),
    "profile ->> '$.city'": Derived("profile", path="$.city"),
    "profile->>'city'": Derived("profile", path="$.city"),
    "a.b ->> '$.homes[0].\"zip code\"'": Derived("a", ("b",), '$.homes[0]."zip code"'),
    "seen at time zone 'Europe/Berlin'": Derived("seen", zone="Europe/Berlin"),
    "paid = 'ja'": Derived("paid", texts=("ja",)),
    "a.b ->> 'c' IN ('x', 'it''s')": Derived("a", ("b",), "$.c", texts=("x", "it's")),
    "p ->> '$.at' AT TIME ZONE 'Etc/GMT+3'": Derived("p", path="$.at", zone="Etc/GMT+3"),
}


@pytest.mark.parametrize(("text", "expected"), FORMS.items())
def test_what_is_understood_is_printed_and_understood_again(text: str, expected: Derived) -> None:
    assert parse_derived(text) == expected == parse_derived(str(expected))


WRONG = """
1 | a + 1 | lower(a) | a, b | a; DROP TABLE t | a -- b | (SELECT 1) | a -> '$.b' | a ->> b | a::int | a..b | .a | a b
a ->> '$.*' | a ->> '$..b' | a ->> '$[#-1]' | a ->> '' | a ->> 'x''y' | a ->> '/b' | a ->> '$' | a[1]
a = b | a = 1 | a IN () | a IN 'x' | a IN ('x', 1) | a = 'x' OR TRUE | a = 'x' = 'y' | a <> 'x'
a AT TIME ZONE 'UTC' = 'x'
a AT TIME ZONE '' | a AT TIME ZONE 'UTC'' OR' | a AT TIME ZONE b
"""


@pytest.mark.parametrize("text", ["", *(text.strip() for text in WRONG.strip().replace("\n", "|").split("|"))])
def test_all_else_is_refused(text: str) -> None:
    with pytest.raises(DerivedError):
        parse_derived(text)


POLICY = """
version: 1
name: shop
tables:
  people:
    unit: {column: id}
    primary_key: [id]
    columns:
      id: {type: uuid}
      city: {from: address.city, type: varchar}
  visits:
    unit: {column: person, as: uuid}
    foreign_keys: [{columns: [person], references: people(id)}]
    columns: {person: {}}
budgets: {total: {epsilon: 1}}
"""


def refused(text: str) -> str:
    with pytest.raises(dpsql.CannotOpen) as found:
        dpsql.Policy.from_yaml(text)
    assert {d.code for d in found.value.diagnostics} == {"DP003"}
    return str(found.value)


def test_both_are_part_of_the_policy_in_both_directions() -> None:
    policy = dpsql.Policy.from_yaml(POLICY)
    city, person = policy.tables["people"].columns["city"], policy.tables["visits"].columns["person"]
    assert city.derived == Derived("address", ("city",)) and city.sql_type == types.VARCHAR
    assert person.derived == Derived("person") and person.sql_type == types.UUID
    again = dpsql.Policy.from_dict(policy.document)
    assert again == policy and again.tables == policy.tables
    assert policy.document["tables"]["people"]["columns"]["city"]["from"] == "address.city"
    table = {"columns": {"a": {"from": "b"}}, "unit": {"column": "a", "as": "uuid"}}
    jsonschema.validate({"version": 1, "name": "x", "tables": {"t": table}}, policy_schema())
    for change in (("address.city", "address.town"), ("{column: person, as: uuid}", "{column: person}")):
        other = POLICY.replace(*change).replace("columns: {person: {}}", "columns: {person: {type: uuid}}")
        assert dpsql.Policy.from_yaml(other).hash != policy.hash


def test_mistakes_are_told() -> None:
    assert "type is missing" in refused(POLICY.replace("from: address.city, type: varchar", "from: address.city"))
    assert "has a path that is not" in refused(POLICY.replace("address.city", "\"address ->> '$.*'\""))
    assert "type must be boolean" in refused(POLICY.replace("address.city", "city = 'Bonn'"))
    assert "is not known" in refused(POLICY.replace("person: {}", "person: {type: uudi}"))
    assert "is not known" in refused(POLICY.replace("as: uuid", "as: uudi"))
    assert "the types must be the same" in refused(POLICY.replace("as: uuid", "as: varchar"))
    assert "as is the type of the ids" in refused(POLICY.replace("{column: person, as: uuid}", "{rows: 1, as: uuid}"))


def test_ids_of_different_types_are_repaired_by_the_line_that_is_shown() -> None:
    wrong = POLICY.replace("{column: person, as: uuid}", "{column: person}").replace(
        "person: {}", "person: {type: varchar}"
    )
    wrong = "\n".join(line for line in wrong.splitlines() if "foreign_keys" not in line)
    for text in (wrong, wrong.replace("visits:", "a_visits:")):
        with pytest.raises(dpsql.CannotOpen) as found:
            dpsql.Policy.from_yaml(text)
        (help,) = found.value.diagnostics[0].help
        table, unit = help.split(", in place of its unit:  ", 1)
        assert table.endswith("visits") and unit.startswith("unit: {column: person, as: uuid}")
        repaired = text.replace("unit: {column: person}", unit)
        assert "person: {type: varchar}" in repaired  # as the data has it
        assert dpsql.Policy.from_yaml(repaired).units["unit"].tables
