"""Groups that belong to one unit each are refused where their keys are private: no threshold would show one."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.core.ir.public_facts import PublicFacts
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.policy import Policy

POLICY = Policy.model_validate(
    {
        "version": 1,
        "name": "lone",
        "units": {"person": {"table": "people", "key": "pid"}},
        "tables": {
            "people": {
                "unit": {"column": "pid"},
                "primary_key": ["pid"],
                "unique": [["phone"], ["email"]],
                "columns": {
                    "pid": {"type": "bigint"},
                    "phone": {"type": "varchar", "nullable": False},
                    "email": {"type": "varchar"},
                    "town": {"type": "varchar"},
                },
            },
            "orders": {
                "unit": {"column": "pid"},
                "primary_key": ["day", "number"],
                "max_rows_per_unit": 9,
                "columns": {
                    "day": {"type": "date"},
                    "number": {"type": "bigint"},
                    "pid": {"type": "bigint"},
                    "shop": {"type": "bigint", "nullable": False},
                },
            },
            "lines": {
                "unit": {"path": [{"columns": ["day", "number"], "references": "orders(day, number)"}]},
                "max_rows_per_unit": 20,
                "columns": {
                    "day": {"type": "date", "nullable": False},
                    "number": {"type": "bigint", "nullable": False},
                    "item": {"type": "varchar"},
                },
            },
            "log": {
                "unit": {"rows": 2},
                "unique": [["entry"]],
                "columns": {"entry": {"type": "bigint", "nullable": False}, "kind": {"type": "varchar"}},
            },
        },
        "budgets": {"total": {"epsilon": 10, "delta": 1e-6}},
    }
)


def shown(sql: str) -> str:
    """`planned`, or what the refusal says."""
    try:
        compile_query(Source(sql), POLICY, PublicFacts(), QuerySettings(Fraction(1), Fraction(1, 10**7)))
    except Rejected as refused:
        (found,) = refused.diagnostics
        assert found.code == "DP301" and found.span is not None and found.help
        return found.message.split(":")[0]
    return "planned"


@pytest.mark.parametrize(
    ("sql", "group", "whom"),
    [
        ("SELECT phone, COUNT(*) FROM people GROUP BY phone", "phone", "person"),
        ("SELECT town, phone, COUNT(*) FROM people GROUP BY 1, 2", "phone", "person"),
        ("SELECT day, number, COUNT(*) FROM orders GROUP BY 1, 2", "day, number", "person"),
        ("SELECT day AS d, item, number, COUNT(*) FROM lines GROUP BY ALL", "d, number", "person"),
        ("SELECT orders.day, orders.number, COUNT(*) FROM orders JOIN lines USING (day, number) GROUP BY 1, 2",
         "day, number", "person"),
        ("SELECT phone, COUNT(*) FROM people JOIN orders USING (pid) GROUP BY phone", "phone", "person"),
        ("SELECT entry, COUNT(*) FROM log GROUP BY entry", "entry", "row"),
    ],
)  # fmt: skip
def test_groups_of_one_unit(sql: str, group: str, whom: str) -> None:
    assert shown(sql) == f"each group of {group} belongs to one {whom}"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT email, COUNT(*) FROM people GROUP BY email",  # NULL may be many people's
        "SELECT town, COUNT(*) FROM people GROUP BY town",
        "SELECT day, COUNT(*) FROM orders GROUP BY day",
        "SELECT number, item, COUNT(*) FROM lines GROUP BY 1, 2",
        "SELECT a.day, b.number, COUNT(*) FROM orders AS a JOIN orders AS b USING (pid) GROUP BY 1, 2",
        "SELECT substring(phone, 1, 2) AS area, COUNT(*) FROM people GROUP BY area",
        "SELECT phone, COUNT(*) FROM people WHERE phone IN ('1', '2') GROUP BY phone",  # listed: shown with noise
        "SELECT shop, COUNT(*) FROM orders LEFT JOIN people USING (pid) GROUP BY shop",
        "SELECT kind, COUNT(*) FROM log GROUP BY kind",
    ],
)
def test_groups_that_many_may_share(sql: str) -> None:
    assert shown(sql) == "planned"


def test_padded_rows_share_a_group() -> None:
    """The order number is missing for everybody without an order."""
    sql = "SELECT o.day, o.number, COUNT(*) FROM people AS p LEFT JOIN orders AS o ON p.pid = o.pid GROUP BY 1, 2"
    assert shown(sql) == "planned"


def test_totals_of_lone_groups_have_a_repair_that_holds() -> None:
    """A subquery grouped by a key of an id's rows is refused, and planned once it groups as the help says."""
    settings = QuerySettings(Fraction(1), Fraction(1, 10**7))
    with pytest.raises(Rejected) as caught:
        compile_query(
            Source("SELECT COUNT(*) FROM (SELECT phone, COUNT(*) AS n FROM people GROUP BY phone) AS t WHERE n < 3"),
            POLICY, PublicFacts(), settings,
        )  # fmt: skip
    assert any(line.endswith("GROUP BY pid, phone") for line in caught.value.diagnostics[0].help)
    sql = "SELECT COUNT(*) FROM (SELECT phone, COUNT(*) AS n FROM people GROUP BY pid, phone) AS t WHERE n < 3"
    assert shown(sql) == "planned"
    with pytest.raises(Rejected) as rows:
        compile_query(Source("SELECT entry, COUNT(*) FROM log GROUP BY entry"), POLICY, PublicFacts(), settings)
    assert len(rows.value.diagnostics[0].help) == 1
