"""DP007: a list of groups that does not say whether NULL is one; told once for a policy, which is valid as it is."""

from __future__ import annotations

import pytest

import dpsql
from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy
from tests.policy.policies import GOOD

REGION = "region: {type: varchar, domain: [a, b]}"


def with_column(column: str, before: str = "") -> Policy:
    """A policy with one private table of this column, and what else the table says."""
    return parse_policy(
        "version: 1\nname: one\nbudgets: {total: {epsilon: 1}}\ntables:\n"
        "  towns: {public: true, columns: {town: {type: varchar, domain: [x, y]}}}\n"
        f"  people:\n    unit: {{rows: 1}}\n{before}    columns: {{{column}}}\n",
        "one.yaml",
    )


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (REGION, True),
        ("region: {type: varchar, domain: {table: towns, column: town}}", True),
        ("region: {type: varchar, domain: [a, b], nullable: false}", False),
        ("region: {type: varchar, domain: [a, b], nullable: true}", False),
        ("region: {type: varchar, domain: {values: [a, b], null: true}}", False),
        ("region: {type: varchar, domain: {values: [a, b], null: false}}", False),
        ("region: {type: varchar}", False),
        ("age: {type: integer, bounds: [0, 9]}", False),
        ("sure: {type: boolean}", False),
    ],
)
def test_what_is_told(column: str, told: bool) -> None:
    assert [d.code for d in with_column(column).warnings] == (["DP007"] if told else [])


def test_a_key_is_not_null_and_a_public_table_has_its_own_values() -> None:
    assert with_column(REGION, "    primary_key: [region]\n").warnings == ()


def test_all_columns_are_in_one_message() -> None:
    text = GOOD.replace("town: {type: varchar}}", "town: {type: varchar, domain: [a]}}")
    (found,) = parse_policy(text, "good.yaml").warnings
    assert found.severity == "warning" and "`people.town`, `log.level`" in found.message
    assert found.source is not None and found.span is not None
    assert found.source.text[found.span.start : found.span.end] == "[a]"
    assert "nullable: false" in found.help[0]


def test_it_is_no_mistake_and_no_answer_changes() -> None:
    """The group of NULL stays a group."""
    query = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
    policy = with_column(REGION)
    assert [d for d in dpsql.check(query, policy) if d.severity == "error"] == []
    assert policy == with_column("region: {type: varchar, domain: {values: [a, b]}}")


def test_a_policy_in_code_has_no_place_to_point_at() -> None:
    document = {
        "version": 1,
        "name": "code",
        "budgets": {"total": {"epsilon": 1}},
        "tables": {"t": {"unit": {"rows": 1}, "columns": {"r": {"type": "varchar", "domain": ["a"]}}}},
    }
    (found,) = dpsql.Policy.from_dict(document).warnings
    assert found.source is None and "`t.r`" in found.message


# DP015: what is valid and may not be meant ----------------------------------------------------------------------------

HOSPITAL = """version: 1
name: h
budgets: {total: {epsilon: 1, delta: 1e-6}, analysts: {mueller: {epsilon: 1DELTA}}}
units: {patient: {table: patients, key: patient_id}}
tables:
  patients: {unit: {column: patient_id}, primary_key: [patient_id], columns: {patient_id: {type: integer}}}
  visits:
    unit: {column: UNIT}
    max_rows_per_unit: 12
    columns: {visit_id: {type: integer}, patient_id: {type: integer}}
"""


@pytest.mark.parametrize(
    ("unit", "delta", "told"),
    [
        ("patient_id", ", delta: 1e-7", []),
        ("patient_id", ", delta: 0", []),
        ("visit_id", ", delta: 1e-7", ["tables.visits.unit"]),
        ("patient_id", "", ["budgets.analysts.mueller"]),
        ("visit_id", "", ["tables.visits.unit", "budgets.analysts.mueller"]),
    ],
)
def test_a_visit_for_a_patient_and_a_budget_without_delta_are_doubted(unit: str, delta: str, told: list[str]) -> None:
    found = parse_policy(HOSPITAL.replace("UNIT", unit).replace("DELTA", delta), "h.yaml").warnings
    assert [d.code for d in found] == ["DP015"] * len(told)
    assert [d.message.partition(":")[0] for d in found] == told
    if unit == "visit_id":
        assert found[0].help[0] == "unit: {column: patient_id}"


def test_a_draft_says_which_lines_are_undecided() -> None:
    draft = HOSPITAL.replace("UNIT", "patient_id").replace("DELTA", ", delta: 0")
    draft = draft.replace("    max_rows", "    # DECIDE: whose rows are these?\n    max_rows")
    (found,) = parse_policy(draft, "h.yaml").warnings
    assert found.code == "DP016" and "line 9 is not decided" in found.message
