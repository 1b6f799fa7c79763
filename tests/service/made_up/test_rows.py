"""Made-up rows keep what the policy promises, and come from the policy alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import CannotOpen
from dpsql.policy.load import load_policy
from dpsql.service.made_up.made_up_rows import UNITS, Values, made_up_rows
from dpsql.service.made_up.service import declared, made_up
from tests.support.small_shop import POLICY as SHOP

POLICY = """\
version: 1
name: clinic
database: nowhere/clinic.duckdb
units: {patient: {table: patients, key: id}}
tables:
  visits:
    unit: {path: [{column: patient, references: patients(id)}]}
    max_rows_per_unit: {rows: 2, enforce: assume}
    primary_key: [no]
    max_frequency: [{columns: [bed], rows: 30, enforce: assume}]
    foreign_keys: [{columns: [code], references: icd10(code)}]
    columns:
      no:      {type: bigint, nullable: false}
      patient: {type: bigint, nullable: false}
      bed:     {type: integer, bounds: [1, 50]}
      code:    {type: varchar, nullable: false}
      ward:    {type: varchar, domain: [surgery, medicine], nullable: false}
      day:     {type: date, bounds: [2024-01-01, 2024-12-31], nullable: false}
      cost:    {type: "decimal(8,2)", bounds: [0, 500]}
      euros:   {from: "CAST(cost AS DOUBLE) / 2", type: double}
      tags:    {type: "varchar[]", max_length: 4}
  patients:
    unit: {column: id}
    primary_key: [id]
    columns:
      id:    {type: bigint, nullable: false}
      born:  {type: timestamp}
      ward:  {type: varchar, domain: {table: wards, column: ward}, nullable: false}
  wards: {public: true, unique: [[ward]], columns: {ward: {type: varchar}, beds: {type: integer}}}
  icd10: {public: true, unique: [[code]]}
budgets: {total: {epsilon: 10, delta: 1e-6}}
"""


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    place = tmp_path_factory.mktemp("policy") / "clinic.yaml"
    place.write_text(POLICY)
    service, _ = made_up(load_policy(place))
    with service:
        return service.policy


@pytest.fixture(scope="module")
def rows(policy: Policy) -> dict[str, list[Values]]:
    return {name: list(found) for name, found in made_up_rows(policy).items()}


def test_keys_limits_and_references_hold(rows: dict[str, list[Values]]) -> None:
    patients, visits = rows["patients"], rows["visits"]
    assert len({row["id"] for row in patients}) == len(patients) == UNITS
    assert {row["patient"] for row in visits} <= {row["id"] for row in patients}
    assert max(Counter(row["patient"] for row in visits).values()) == 2
    assert len({row["no"] for row in visits}) == len(visits) > 500
    assert max(Counter(row["bed"] for row in visits if row["bed"] != "NULL").values()) == 30
    assert {row["code"] for row in visits} <= {row["code"] for row in rows["icd10"]}


def test_values_are_those_that_are_declared(rows: dict[str, list[Values]]) -> None:
    visits = rows["visits"]
    assert {row["ward"] for row in visits} == {"'surgery'", "'medicine'"} == {row["ward"] for row in rows["wards"]}
    assert {row["ward"] for row in rows["patients"]} == {"'surgery'", "'medicine'"}
    assert all("DATE '2024-" in row["day"] for row in visits) and "NULL" in {row["cost"] for row in visits}
    assert all("euros" not in row for row in visits)
    assert {row["code"] for row in rows["icd10"]} >= {"'code 1'", "'code 2'"}  # nobody takes that for true


def test_they_are_always_the_same_and_others_of_another_policy(rows: dict[str, list[Values]], policy: Policy) -> None:
    assert made_up_rows(policy) == rows
    changed = Path(policy.path or "").with_name("other.yaml")
    changed.write_text(POLICY.replace("epsilon: 10", "epsilon: 11"))
    assert made_up(load_policy(changed))[0].policy.hash != policy.hash


def test_what_has_no_type_is_refused_by_name(tmp_path: Path) -> None:
    place = tmp_path / "shop.yaml"
    place.write_text(SHOP.replace("EPSILON", "1").replace("type: double, ", "").replace("{type: bigint}", "{}", 1))
    with pytest.raises(CannotOpen) as refusal:
        declared(load_policy(place))
    assert [d.code for d in refusal.value.diagnostics] == ["DP005", "DP005"]
    assert "tables.orders.columns: customer has no type" in str(refusal.value) and "customer: {type: …}" in str(
        refusal.value
    )
