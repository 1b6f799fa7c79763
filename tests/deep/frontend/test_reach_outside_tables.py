"""Item 38: texts that explode are refused."""

from __future__ import annotations

import datetime as dt
import enum
from decimal import Decimal

import pytest

from tests.support.checklist_clinic import LARGE, Attack


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM patients WHERE " + "(" * 500 + "age = 1" + ")" * 500,
        "SELECT COUNT(*) FROM patients WHERE " + "NOT " * 500 + "age = 1",
        "SELECT SUM(" + "-".join(["age"] * 2000) + ") FROM patients",
        "SELECT COUNT(*) FROM patients WHERE " + " OR ".join(f"age = {i}" for i in range(5000)),
        "SELECT COUNT(*) FROM patients WHERE age IN (" + ", ".join(map(str, range(15000))) + ")",
        "SELECT age x0, " + ", ".join(f"x{i} + x{i} AS x{i + 1}" for i in range(40)) + " FROM patients GROUP BY x40",
        "WITH a0 AS (SELECT age AS x FROM patients), "
        + ", ".join(f"a{i + 1} AS (SELECT x + x AS x FROM a{i})" for i in range(40))
        + " SELECT SUM(x) FROM a40",
        "WITH a0 AS (SELECT pid FROM patients), "
        + ", ".join(f"a{i + 1} AS (SELECT l.pid FROM a{i} l JOIN a{i} r ON l.pid = r.pid)" for i in range(40))
        + " SELECT COUNT(*) FROM a40",
        "SELECT COUNT(*) FROM patients" + " -- x" * 30000,
    ],
    ids=["parentheses", "not", "sum", "or", "in", "aliases", "nested names", "nested joins", "long"],
)
def test_item_38_texts_that_explode_are_refused(attack: Attack, text: str) -> None:
    attack.refused(text, "DP010", "DP101")


@pytest.mark.parametrize(
    "value", ["it's", "'; DROP TABLE patients; --", "\\'", "\\", '"', "$$", "\n", "\u2028", "%", "é", "e\u0301", "🙂"]
)
def test_item_38_literals_stay_literals(attack: Attack, value: str) -> None:
    """As text of the query and as a parameter, a literal means itself and no more."""
    quoted = value.replace("'", "''")
    assert attack.answer(f"SELECT COUNT(*) FROM patients WHERE name <> '{quoted}'") == [(4,)]
    assert attack.answer("SELECT COUNT(*) FROM patients WHERE name <> ?", parameters=[value]) == [(4,)]
    assert attack.answer(f"SELECT COUNT(*) FROM patients WHERE name = '{quoted}'") == [(0,)]


OTHERS = "1 OR TRUE) --"


def _printing(own: type) -> type:
    """A subclass whose objects say that they are something else, in every way that they are asked."""
    said = {m: lambda *_, **__: OTHERS for m in ("__str__", "__repr__", "__format__", "isoformat", "replace", "hex")}
    return type("Printing", (own,), said)


@pytest.mark.parametrize(
    ("column", "value", "count"),
    [
        ("age", _printing(int)(30), 1),
        ("income", _printing(float)(50000.0), 1),
        ("income", _printing(Decimal)(30000), 1),
        ("name", _printing(str)("alice"), 1),
        ("day", _printing(dt.date)(2024, 1, 1), 1),
        ("ts", _printing(dt.datetime)(2024, 2, 2), 1),
        ("ts", _printing(dt.datetime)(2024, 2, 2, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), 1),
        ("day", _printing(dt.datetime)(2024, 1, 1), 1),
        ("age", enum.IntEnum("Ages", {"OLD": 50}).OLD, 1),
        ("name", enum.Enum("Names", {"BOB": "bob"}, type=str).BOB, 1),
    ],
)
def test_item_38_a_parameter_is_printed_as_what_it_holds(
    attack: Attack, column: str, value: object, count: int
) -> None:
    """A number whose class prints it as other text used to put that text into the engine's SQL."""
    sql = f"SELECT COUNT(*) FROM patients WHERE {column} = ?"
    query = attack.con.sql(sql, parameters=[value])
    assert OTHERS not in query.explain(1, engine_sql=True)
    assert query.run(epsilon=LARGE).rows == ((count,),)
    within = attack.con.sql(f"SELECT COUNT(*) FROM patients WHERE {column} IN (?, ?)", parameters=[value, value])
    assert OTHERS not in within.explain(1, engine_sql=True)
    assert within.run(epsilon=LARGE).rows == ((count,),)


def test_item_38_every_dialect_is_bound_by_the_same_rules(attack: Attack) -> None:
    """The text's dialect changes how it is read, never what is allowed."""
    for dialect in (
        "postgres",
        "bigquery",
        "snowflake",
        "mysql",
        "spark",
        "tsql",
    ):
        rows = attack.answer("SELECT COUNT(*) FROM patients WHERE age > 1", dialect=dialect)
        assert rows == [(3,)], dialect
        for sql in ("SELECT name FROM patients", "SELECT SUM(big) FROM patients", "SELECT MAX(age) FROM patients"):
            attack.refused(sql, "DP110", "DP201", "DP101", dialect=dialect)
        for sql in (
            "SELECT COUNT(*) FROM hidden",
            "SELECT COUNT(*) FROM patients LIMIT (SELECT 1)",
            "DROP TABLE patients",
        ):
            attack.refused(sql, "DP010", "DP012", "DP101", "DP102", "DP111", "DP115", dialect=dialect)
    for dialect in ("klingon", "oracle", "clickhouse", "sqlite", "hive"):  # nobody has compared these with DuckDB
        attack.refused("SELECT 1", "DP903", dialect=dialect)
