"""Whole numbers of more digits than Python reads or prints (4,300): a refusal with a code, wherever one may stand."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import dpsql
from tests.support.checklist_clinic import Attack, Clinic

HUGE = 10**5000
DIGITS = "9" * 5000
WHERE = "SELECT COUNT(*) FROM patients WHERE pid = ?"


@pytest.mark.parametrize(
    "value",
    [HUGE, -HUGE, [HUGE], (1, HUGE), Fraction(1, HUGE), Fraction(HUGE, 3), Decimal("1e5000"), {"a": HUGE}],
    ids=["number", "negative", "list", "tuple", "small fraction", "fraction", "decimal", "dict"],
)
def test_probe_as_a_parameter(attack: Attack, value: object) -> None:
    before = attack.spent
    asked: list[tuple[str, Any]] = [
        (WHERE, [value]),
        (WHERE.replace("?", "$a"), {"a": value}),
        ("SELECT COUNT(*) FROM patients WHERE pid IN (1, ?)", [value]),
        ("SELECT COUNT(*) FROM patients LIMIT ?", [value]),
        (WHERE, {1: value}),
        (WHERE.replace("?", "$a"), {HUGE: value}),
    ]
    for sql, parameters in asked:
        for _ in range(2):  # what was asked before is looked up by its parameters
            with pytest.raises(dpsql.Rejected) as refused:
                attack.con.sql(sql, parameters).run(epsilon=1)
            assert "set_int_max_str_digits" not in str(refused.value)
        with pytest.raises(dpsql.Rejected):
            attack.con.execute(sql, parameters, epsilon=1)
        with pytest.raises(dpsql.Rejected):
            attack.con.executemany(sql, [parameters], epsilon=1)
    assert attack.spent == before


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM patients GROUP BY {}",
        "SELECT COUNT(*) FROM patients ORDER BY {}",
        "SELECT COUNT(*) FROM patients WHERE pid = ${}",
        "SELECT COUNT(*) FROM patients WHERE pid = {}",
        "SELECT COUNT(*) FROM patients WHERE age < 1e{}",
        "SELECT COUNT(*) FROM patients LIMIT {}",
        "SELECT COUNT(*) FROM patients LIMIT 1 OFFSET {}",
        "SELECT SUM(CLIP(age, 0, {})) FROM patients",
        "SELECT COUNT(*) FROM patients WHERE CAST(age AS DECIMAL({}, 2)) > 1",
        "SELECT COUNT(*) FROM patients WHERE day + INTERVAL {} DAY > day",
        "SELECT ROUND(COUNT(*), {}) FROM patients",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = {}) COUNT(*) FROM patients",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = {}) COUNT(*) FROM patients",
    ],
)
def test_probe_in_a_text(attack: Attack, text: str) -> None:
    before = attack.spent
    for dialect in ("duckdb", "bigquery", "postgres", "snowflake", "tsql"):
        with pytest.raises(dpsql.Rejected) as refused:
            attack.con.sql(text.format(DIGITS), dialect=dialect).run(epsilon=1)
        assert "set_int_max_str_digits" not in str(refused.value)
        assert dpsql.check(text.format(DIGITS), attack.con.policy, dialect=dialect)
    assert attack.spent == before


@pytest.mark.parametrize(
    "amount",
    [HUGE, -HUGE, Fraction(1, HUGE), DIGITS, f"1/{DIGITS}", f"1e{DIGITS}"],
    ids=["number", "negative", "fraction", "text", "quotient", "exponent"],
)
def test_probe_as_a_setting(attack: Attack, clinic: Clinic, amount: Any) -> None:
    query = attack.con.sql("SELECT COUNT(*) AS n FROM patients")
    answer = query.run(epsilon=1)
    before = attack.spent
    settings: list[Mapping[str, Any]] = [
        {"epsilon": amount}, {"rho": amount}, {"epsilon": 1, "delta": amount}, {"epsilon": 1, "confidence": amount},
        {"max_error": {"n": amount}}, {"epsilon": 1, "weights": {"n": amount}},
    ]  # fmt: skip
    for given in settings:
        with pytest.raises(dpsql.Rejected):
            query.run(**given)
    for name in ("epsilon", "rho", "delta"):
        with pytest.raises(dpsql.Rejected):
            attack.con.set(name, amount)
    with pytest.raises(dpsql.Rejected):
        clinic.connect(epsilon=amount)
    with pytest.raises(dpsql.Rejected):
        clinic.connect(threads=amount)
    with pytest.raises(dpsql.Rejected):
        answer.intervals(amount)
    assert attack.spent == before


def put(path: tuple[str, ...], value: object) -> dict[str, Any]:
    """A small policy with this value at this place."""
    column = {"type": "double", "bounds": [0, 10]}
    people = {"unit": {"column": "id"}, "columns": {"id": {"type": "bigint"}, "x": column}}
    found: dict[str, Any] = {
        "version": 1, "name": "club", "tables": {"people": people},
        "budgets": {"total": {"epsilon": 2}}, "defaults": {},
    }  # fmt: skip
    at = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return found


@pytest.mark.parametrize(
    "path",
    [
        ("version",), ("name",), ("data_version",), ("tables",), ("defaults",), ("defaults", "epsilon"),
        ("budgets", "total", "epsilon"), ("budgets", "total", "delta"), ("tables", "people", "max_rows_per_unit"),
        ("tables", "people", "columns", "x", "bounds"), ("tables", "people", "columns", "x", "domain"),
        ("tables", "people", "unit", "rows"), ("tables", "people", "primary_key"), ("former_units",),
    ],
)  # fmt: skip
def test_probe_in_a_policy(path: tuple[str, ...]) -> None:
    values: tuple[object, ...] = (
        HUGE, -HUGE, [HUGE, HUGE], [0, HUGE], {"a": HUGE}, {HUGE: 1}, Fraction(1, HUGE), Decimal("1e5000"),
    )  # fmt: skip
    for value in values:
        with pytest.raises(dpsql.CannotOpen) as refused:
            dpsql.Policy.from_dict(put(path, value))
        assert {d.code for d in refused.value.diagnostics} == {"DP003"}
    for text in (DIGITS, f"0x{'f' * 5000}", f"1e{DIGITS}", f"[{DIGITS}, 1]"):
        # A text is a name, and a text of many digits may be one.
        lines = str(put(path, "HERE")).replace("'HERE'", text)
        with pytest.raises(dpsql.CannotOpen):
            dpsql.Policy.from_yaml(lines)
