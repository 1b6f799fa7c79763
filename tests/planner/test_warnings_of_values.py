"""DP505: literals that the policy does not list for the column they are compared with."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.ir.public_facts import KeysOf, PublicFacts
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.stages import releasing
from dpsql.policy.policy import Policy
from dpsql.service.checks.check import static_plan

COLUMNS: dict[str, Any] = {
    "id": {"type": "bigint", "nullable": False},
    "region": {"type": "varchar", "domain": ["north", "south", "Mid O'West"], "nullable": False},
    "grade": {"type": "integer", "domain": [1, 2, 3]},
    "price": {"type": "decimal(6,2)", "domain": [1.5, 2]},
    "rate": {"type": "double", "domain": [0.1, 2]},
    "day": {"type": "date", "domain": ["2024-01-01", "2024-01-02"]},
    "at": {"type": "timestamp", "domain": ["2024-01-01 10:00:00"]},
    "paid": {"type": "boolean", "domain": [True]},
    "code": {"type": "integer", "domain": {"table": "codes", "column": "code"}},
    "town": {"type": "varchar"},
    "many": {"type": "varchar", "domain": [f"value {i:04}" for i in range(5000)]},
}
POLICY = Policy.model_validate(
    {
        "version": 1,
        "name": "t",
        "tables": {
            "visits": {"unit": {"column": "id"}, "max_rows_per_unit": 2, "columns": COLUMNS},
            "codes": {
                "public": True,
                "unique": [["code"]],
                "columns": {
                    "code": {"type": "integer", "nullable": False},
                    "kind": {"type": "varchar", "domain": ["acute", "chronic"]},
                },
            },
        },
        "budgets": {"total": {"epsilon": 100, "delta": 1e-6}},
    }
)
BOTH = "SELECT COUNT(*) FROM (SELECT id, region FROM visits UNION ALL SELECT id, {} FROM visits) u WHERE region = '{}'"
SETTINGS = QuerySettings(epsilon=Fraction(10), delta=Fraction(1, 10**9))


def planned(sql: str, parameters: Any = ()) -> Plan:
    return static_plan(Source(sql), POLICY, parameters, settings=SETTINGS)


def warned(sql: str, parameters: Any = ()) -> list[Diagnostic]:
    return [w for w in planned(sql, parameters).warnings if w.code == "DP505"]


def marked(sql: str) -> list[str]:
    """The texts under the carets."""
    return [sql[w.span.start : w.span.end] for w in warned(sql) if w.span is not None]


@pytest.mark.parametrize(
    ("condition", "literals"),
    [
        ("region = 'nroth'", ["'nroth'"]),
        ("'nroth' = v.region", ["'nroth'"]),
        ("region = 'North'", ["'North'"]),
        ("region IN ('x', 'north', 'y')", ["'x'", "'y'"]),
        ("region = 'x' OR (grade = 4 AND town = 'x')", ["'x'", "4"]),
        ("grade IN (1, 4)", ["4"]),
        ("grade = '4'", ["'4'"]),
        ("grade = 1.5", ["1.5"]),
        ("price = 2.001", ["2.001"]),
        ("rate = 0.2", ["0.2"]),
        ("day = '2024-01-03'", ["'2024-01-03'"]),
        ("at = '2024-05-05 00:00:00'", ["'2024-05-05 00:00:00'"]),
        ("TIMESTAMP '2024-01-01 10:00:01' = at", ["'2024-01-01 10:00:01'"]),
        ("paid = FALSE", ["FALSE"]),
    ],
)
def test_a_literal_that_is_not_listed(condition: str, literals: list[str]) -> None:
    assert marked(f"SELECT COUNT(*) FROM visits v WHERE {condition}") == literals


@pytest.mark.parametrize(
    "condition",
    [
        "region = 'north'",
        "region = 'Mid O''West'",
        "region IN ('north', 'south')",
        "region <> 'nroth'",
        "region NOT IN ('nroth')",
        "NOT region = 'nroth'",
        "NOT (grade = 1 OR region = 'nroth')",
        "(region = 'nroth') IS NOT TRUE",
        "region IS DISTINCT FROM 'nroth'",
        "region LIKE 'nroth'",
        "region > 'nroth'",
        "UPPER(region) = 'NORTH'",
        "region || '' = 'nroth'",
        "CAST(grade AS VARCHAR) = '9'",
        "grade + 1 = 4",
        "grade = 2.0",
        "grade = 3 + 1",
        "grade = NULL",
        "price IN (2, 1.50, '2.00')",
        "rate IN (0.1, 2, 2.0)",
        "CASE WHEN region = 'nroth' THEN grade = 9 ELSE TRUE END",
        "paid = TRUE",
        "paid",
        "NOT paid",
        "at = '2024-01-01 10:00:00'",
        "at = TIMESTAMP '2024-01-01 10:00:00.000'",
        "at = DATE '2024-05-05'",
        "day = TIMESTAMP '2024-05-05 00:00:00'",
        "code = 99",
        "town = 'nroth'",
        "region = town",
    ],
)
def test_silence(condition: str) -> None:
    assert marked(f"SELECT COUNT(*) FROM visits WHERE {condition}") == []


@pytest.mark.parametrize(
    ("sql", "times"),
    [
        ("SELECT COUNT(*) FILTER (WHERE region = 'x') FROM visits", 1),
        ("SELECT COUNT_IF(region = 'x') FROM visits", 1),
        ("SELECT SUM(CASE WHEN region = 'x' THEN 1 ELSE 0 END) FROM visits", 0),
        ("SELECT region, COUNT(*) FROM visits GROUP BY region HAVING region = 'x'", 1),
        ("WITH w AS (SELECT region AS r FROM visits) SELECT COUNT(*) FROM w WHERE r = 'x'", 1),
        ("WITH w AS (SELECT UPPER(region) AS region FROM visits) SELECT COUNT(*) FROM w WHERE region = 'x'", 0),
        ("WITH w AS (SELECT * FROM visits WHERE region = 'x') SELECT COUNT(*) FROM w UNION SELECT COUNT(*) FROM w", 1),
        ("SELECT COUNT(*) FROM visits a JOIN visits b ON a.id = b.id AND b.region = 'x'", 1),
        ("SELECT COUNT(*) FROM visits JOIN codes USING (code) WHERE kind = 'accute'", 1),
        ("SELECT COUNT(*) FROM codes WHERE kind = 'accute'", 1),
        ("SELECT COUNT(*) FROM visits a WHERE EXISTS (SELECT 1 FROM visits b WHERE a.id = b.id AND b.region = 'x')", 1),
        (
            "SELECT COUNT(*) FROM visits a WHERE NOT EXISTS (SELECT 1 FROM visits b WHERE a.id = b.id AND region = '')",
            0,
        ),
        ("SELECT COUNT(*) FROM visits WHERE id NOT IN (SELECT id FROM visits WHERE region = 'x')", 0),
        (BOTH.format("'west'", "x"), 1),
        (BOTH.format("'west'", "west"), 0),
        (BOTH.format("'west'", "north"), 0),
        (BOTH.format("town", "x"), 0),
        ("SELECT COUNT(*) FROM (SELECT kind FROM codes UNION ALL SELECT 'all') u WHERE kind = 'all'", 0),
        ("SELECT COUNT(*) FROM (SELECT kind FROM codes UNION ALL SELECT 'all') u WHERE kind = 'al'", 1),
        ("SELECT COUNT(*) FROM (SELECT kind FROM codes UNION ALL SELECT lower('AL')) u WHERE kind = 'al'", 0),
        ("SELECT COUNT(*) FROM (SELECT kind FROM codes EXCEPT SELECT 'x') u WHERE kind = 'x'", 1),
        ("SELECT COUNT(*) FROM (SELECT 'x' AS k EXCEPT SELECT kind FROM codes) u WHERE k = 'acute'", 1),
        ("SELECT COUNT(*) FROM (SELECT kind FROM codes UNION ALL SELECT NULL) u WHERE kind = 'x'", 0),
    ],
)
def test_wherever_rows_are_asked_for(sql: str, times: int) -> None:
    assert len(warned(sql)) == times


def test_a_domain_that_a_table_holds_is_not_looked_at_even_where_it_is_known() -> None:
    keys = {KeysOf("codes", ("code",), POLICY.defaults.max_keys): ((1,), (2,))}
    sql = "SELECT code, COUNT(*) FROM visits WHERE code = 99 GROUP BY code"
    known = compile_query(Source(sql), POLICY, PublicFacts(keys=keys), SETTINGS)
    assert known.basis.complete and "DP505" not in [w.code for w in known.warnings]


def test_what_is_said() -> None:
    sql = "SELECT COUNT(*) FROM visits WHERE region IN ('nroth', 'mid o''west', 'zzz') OR grade = 7"
    near, cased, far, number = warned(sql)
    assert near.message == "'nroth' is not among the values that the policy lists for region"
    assert near.severity == "warning" and near.help[0] == "did you mean 'north'?"
    assert cased.help[0] == "did you mean 'Mid O''West'?"
    assert far.help[0] == "the policy lists 'north', 'south', 'Mid O''West'" and far.fix is None
    assert number.help[0] == "the policy lists 1, 2, 3" and number.fix is None
    assert near.notes == ("from the policy alone: no data were looked at",)


def test_the_fix_is_a_guess_that_replaces_the_literal() -> None:
    sql = "SELECT COUNT(*) FROM visits WHERE region = 'mid o''west'"
    (found,) = warned(sql)
    assert found.fix is not None and not found.fix.safe
    (edit,) = found.fix.edits
    fixed = sql[: edit.span.start] + edit.text + sql[edit.span.end :]
    assert fixed == "SELECT COUNT(*) FROM visits WHERE region = 'Mid O''West'" and warned(fixed) == []


def test_a_parameter_is_warned_of_and_left_as_it_is() -> None:
    (found,) = warned("SELECT COUNT(*) FROM visits WHERE region = ?", ["nroth"])
    assert found.help[0] == "did you mean 'north'?" and found.fix is None


def test_long_lists_and_long_values_are_cut() -> None:
    listed = ", ".join(str(i) for i in range(11, 31))
    found = warned(f"SELECT COUNT(*) FROM visits WHERE grade IN ({listed})")
    assert len(found) == 5 and found[-1].notes[-1] == "15 more literals after this one are not listed either"
    (far,) = warned("SELECT COUNT(*) FROM visits WHERE many = 'x'")
    assert far.help[0].count("value") == 8 and far.help[0].endswith("'value 0007', … (5,000 in all)")
    (long,) = warned(f"SELECT COUNT(*) FROM visits WHERE region = '{'x' * 5000}'")
    assert len(long.message) < 150


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits WHERE region = 'nroth'",
        "SELECT region, COUNT(*) FROM visits WHERE region IN ('nroth', 'north') GROUP BY region",
        "SELECT region, AVG(CLIP(rate, 0, 2)) FROM visits WHERE grade = 9 GROUP BY region HAVING region = 'x'",
    ],
)
def test_the_plan_is_the_same_without_the_warning(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_it = planned(sql)
    assert "DP505" in [w.code for w in with_it.warnings]
    monkeypatch.setattr(releasing, "undeclared_values", lambda *_: ())
    without = planned(sql)
    assert "DP505" not in [w.code for w in without.warnings]
    assert without.hash == with_it.hash and without.cost == with_it.cost and without.notes == with_it.notes
    assert [r.statements for r in without.releases] == [r.statements for r in with_it.releases]
    assert without.post == with_it.post
