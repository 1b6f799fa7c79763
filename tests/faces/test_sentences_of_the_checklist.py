"""Sentences of the checklist that no other file of this folder asserts, one test for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import dpsql
from tests.support.checklist_clinic import POLICY, Attack, Clinic


def test_item_51_a_list_is_cut_to_the_length_that_is_declared(make: Callable[..., Clinic]) -> None:
    """Fifty elements where three are declared; without a declaration nothing bounds them, and it is refused."""
    lists = (
        "\n  lists:\n    unit: {column: pid}\n    max_rows_per_unit: 3\n    columns:\n      pid: {type: bigint}\n"
        "      tags: {type: 'varchar[]', max_length: 3}\n      free: {type: 'varchar[]'}\n"
    )
    made = (
        "CREATE TABLE lists (pid BIGINT, tags VARCHAR[], free VARCHAR[])",
        "INSERT INTO lists SELECT i, [('k' || j) for j in range(50)], ['x'] FROM range(4) r(i)",
        "INSERT INTO lists VALUES (9, NULL, NULL), (NULL, ['a'], NULL)",
    )
    with make(*made, policy=POLICY + lists).connect() as con:
        hostile = Attack(con)
        sql = "SELECT COUNT(*) FROM lists, UNNEST(tags) AS u(tag)"
        assert hostile.sensitivities(sql) == [(3, 3)]
        assert hostile.answer(sql) == [(12,)]
        for form in ("lists, UNNEST(free) AS u(tag)", "(SELECT pid, unnest(free) AS tag FROM lists)"):
            hostile.refused(f"SELECT COUNT(*) FROM {form}", "DP210")


@pytest.mark.parametrize("budget", [".nan", ".inf", "-.inf", "-1", "true", '"x"', "[1]", "1/0"])
def test_item_64_a_budget_is_a_finite_number(tmp_path: Path, budget: str) -> None:
    """NaN is below no limit and above none: as a total it would let everything pass."""
    for policy in (
        POLICY.replace("epsilon: 1000000000", f"epsilon: {budget}"),
        POLICY.replace("delta: 0.9}}", f"delta: {budget}}}}}"),
        POLICY.replace("delta: 0.9}}", f"delta: 0.9}}, analysts: {{ana: {{epsilon: {budget}, delta: 0.1}}}}}}"),
    ):
        (tmp_path / "clinic.yaml").write_text(policy)
        with pytest.raises(dpsql.CannotOpen) as caught:
            dpsql.connect(tmp_path / "clinic.yaml")
        assert {d.code for d in caught.value.diagnostics} <= {"DP001", "DP003"}, caught.value


@pytest.mark.parametrize(
    "sql",
    [
        "FROM patients",
        "TABLE patients",
        "FROM patients SELECT name",
        "WITH RECURSIVE t(n) USING KEY (n) AS (SELECT pid FROM visits UNION SELECT n FROM t) SELECT COUNT(*) FROM t",
        "MERGE INTO patients USING visits ON patients.pid = visits.pid WHEN MATCHED THEN DELETE",
        "SET VARIABLE x = (SELECT MAX(age) FROM patients)",
        "SET search_path = 'x'",
        "SUMMARIZE SELECT name FROM patients",
        "SELECT COUNT(COLUMNS(*)) FROM patients",
        "SELECT SUM(COLUMNS('a.*')) FROM patients",
        "SELECT list_transform([age], lambda x: x) FROM patients",
        "SELECT [x for x in [age]] FROM patients",
        "SELECT COUNT(*) FROM patients, LATERAL (SELECT * FROM visits WHERE visits.amt > patients.age)",
        "SELECT COUNT(*) FROM patients WHERE age::VARIANT IS NULL",
        "SELECT union_value(k := age) FROM patients",
        "SELECT MAP {1: age}[1] FROM patients",
        "SELECT COUNT(*) FROM patients WHERE name SIMILAR TO '.*'",
        "SELECT COUNT(*) FROM patients GROUP BY #1",
        "SELECT COUNT(*) FROM (SELECT * FROM patients LIMIT 50%)",
        "SELECT COUNT(*) FROM patients WHERE TRY(error('x')) IS NULL",
        "SELECT COUNT(*) FROM patients ANTI JOIN visits ON TRUE",
        "SELECT COUNT(*) FROM (patients CROSS JOIN visits)",
        "SELECT COUNT(*) FROM patients WHERE age <> ALL (SELECT age FROM grid)",
    ],
)
def test_item_38_rare_syntax_over_private_rows_is_refused(attack: Attack, sql: str) -> None:
    attack.refused(sql, "DP010", "DP012", "DP101", "DP105", "DP106", "DP110", "DP111", "DP118", "DP230")
