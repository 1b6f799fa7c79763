"""Other dialects: what is accepted means what it means there, and everything else is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.dialects import DIALECTS
from dpsql.service.checks.check import static_plan
from tests.support.planning import policy

POLICY = policy("""
t:
  public: true
  columns:
    i: {type: integer}
    j: {type: integer}
    n: {type: 'decimal(9,2)'}
    x: {type: double}
    s: {type: varchar}
    r: {type: varchar}
    d: {type: date}
    e: {type: date}
    at: {type: timestamp}
    b: {type: boolean}
""")
DATA = """
CREATE TABLE t AS SELECT * FROM (VALUES
  (-7, 2, CAST(2.50 AS DECIMAL(9,2)), CAST(2.5 AS DOUBLE), 'Abc', NULL, DATE '2024-03-31', DATE '2024-02-10',
   TIMESTAMP '2024-03-31 23:59:59.9', TRUE)) AS t(i, j, n, x, s, r, d, e, "at", b)
"""
OTHERS = DIALECTS[1:]


@pytest.fixture(scope="module")
def one_row() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(DATA)
        yield connection


def rows(sql: str, dialect: str, connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """The rows that the plan's own SQL gives. Raises Rejected."""
    return connection.execute(static_plan(Source(sql), POLICY, dialect=dialect).post.sql).fetchall()


def refused(sql: str, dialect: str) -> tuple[str, str]:
    with pytest.raises(Rejected) as refusal:
        static_plan(Source(sql), POLICY, dialect=dialect)
    found = refusal.value.diagnostics[0]
    assert found.span is not None and found.help and "Traceback" not in str(refusal.value)
    assert 0 <= found.span.start < found.span.end <= len(sql)
    return found.code, found.message


# What each expression is in the dialect, by its manual, for the row above.
MEANINGS = [
    # division: of integers whole in PostgreSQL and SQL Server, towards zero
    *[(d, "i / j", -3) for d in ("postgres", "tsql")],
    *[(d, "i / j", -3.5) for d in ("bigquery", "snowflake", "spark", "mysql", "duckdb")],
    *[(d, "7 / 2", 3) for d in ("postgres", "tsql")],
    *[(d, "i / 2.0", -3.5) for d in DIALECTS],
    *[(d, "x / j", 1.25) for d in DIALECTS],
    ("mysql", "i DIV j", -3), ("spark", "i DIV j", -3), ("bigquery", "DIV(i, j)", -3),
    *[(d, "i % j", -1) for d in ("postgres", "spark", "mysql", "tsql", "snowflake")], ("bigquery", "MOD(i, j)", -1),
    # quotes
    *[(d, "'it''s'", "it's") for d in ("postgres", "snowflake", "tsql", "mysql")],
    *[(d, r"'it\'s'", "it's") for d in ("bigquery", "mysql", "spark", "snowflake")],
    *[(d, '"s"', "s") for d in ("bigquery", "mysql", "spark")],
    *[(d, '"s"', "Abc") for d in ("postgres", "snowflake", "tsql", "duckdb")],
    *[(d, "`s`", "Abc") for d in ("bigquery", "mysql", "spark")], ("tsql", "[s]", "Abc"),
    ("postgres", r"'a\b'", r"a\b"), ("bigquery", r"'a\\b'", r"a\b"),
    # || and CONCAT
    *[(d, "s || 'x'", "Abcx") for d in ("postgres", "bigquery", "snowflake", "spark")],
    *[(d, "s || r", None) for d in ("postgres", "bigquery", "snowflake", "spark")],
    ("mysql", "b || FALSE", True), ("mysql", "b && FALSE", False),
    *[(d, "CONCAT(s, 'x')", "Abcx") for d in DIALECTS],
    *[(d, "CONCAT(s, r)", "Abc") for d in ("postgres", "tsql", "duckdb")],
    *[(d, "CONCAT(s, r)", None) for d in ("bigquery", "snowflake", "spark", "mysql")],
    # conditions
    *[(d, "IF(i > 0, 1, 2)", 2) for d in ("bigquery", "spark", "mysql")],
    ("tsql", "IIF(i > 0, 1, 2)", 2), ("snowflake", "IFF(i > 0, 1, 2)", 2),
    *[(d, "IFNULL(r, 'none')", "none") for d in ("bigquery", "mysql", "spark", "snowflake")],
    *[(d, "NVL(r, 'none')", "none") for d in ("snowflake", "spark")],
    *[(d, "COALESCE(r, 'none')", "none") for d in DIALECTS],
    *[(d, "NULLIF(i, -7)", None) for d in DIALECTS],
    *[(d, "CASE WHEN b THEN 'y' ELSE 'n' END", "y") for d in DIALECTS],
    *[(d, "r <=> NULL", True) for d in ("mysql", "spark")],
    ("snowflake", "ZEROIFNULL(NULLIF(i, -7))", 0), ("snowflake", "DIV0(i, j - 2)", 0.0),
    ("snowflake", "DIV0(i, j)", -3.5),
    # casts: cut, rounded, or refused
    *[(d, "CAST(FLOOR(x) AS INT)", 2) for d in ("postgres", "snowflake", "spark", "tsql")],
    ("bigquery", "CAST(FLOOR(x) AS INT64)", 2), ("mysql", "CAST(FLOOR(x) AS SIGNED)", 2),
    ("postgres", "x::int", 2), ("postgres", "(x + 1)::int", 4),
    *[(d, "CAST(n AS INT)", 3) for d in ("postgres", "snowflake")], ("bigquery", "CAST(n AS INT64)", 3),
    *[(d, "CAST(i AS DECIMAL(9, 2))", Decimal("-7.00")) for d in OTHERS],
    ("postgres", "i::float", -7.0), ("snowflake", "i::float", -7.0), ("bigquery", "CAST(i AS FLOAT64)", -7.0),
    ("tsql", "CAST(i AS FLOAT)", -7.0), ("tsql", "POWER(CAST(i AS FLOAT), 2)", 49.0), ("tsql", "POWER(i, 2)", 49.0),
    *[(d, "CAST('2024-01-31' AS DATE)", date(2024, 1, 31)) for d in OTHERS],
    ("bigquery", "SAFE_CAST(i AS FLOAT64)", -7.0),
    ("snowflake", "n::number", Decimal("3")),
    # logarithms
    *[(d, "LN(1)", 0.0) for d in ("postgres", "bigquery", "snowflake", "spark", "mysql")],
    *[(d, "LOG(1)", 0.0) for d in ("bigquery", "spark", "mysql", "tsql")],
    # powers
    ("postgres", "j ^ 3", 8.0), *[(d, "POWER(j, 3)", 8.0) for d in OTHERS],
    # strings begin at 1
    *[(d, "SUBSTRING(s, 1, 2)", "Ab") for d in ("postgres", "snowflake", "spark", "mysql", "tsql", "bigquery")],
    *[(d, "SUBSTR(s, 2)", "bc") for d in ("bigquery", "snowflake", "mysql")],
    ("postgres", "SUBSTRING(s FROM 2 FOR 1)", "b"),
    *[(d, "LEFT(s, 2)", "Ab") for d in OTHERS], *[(d, "RIGHT(s, 1)", "c") for d in OTHERS],
    *[(d, "LENGTH(s)", 3) for d in ("postgres", "bigquery", "snowflake", "spark")], ("mysql", "CHAR_LENGTH(s)", 3),
    ("bigquery", "STRPOS(s, 'b')", 2), ("postgres", "POSITION('b' IN s)", 2), ("snowflake", "CHARINDEX('b', s)", 2),
    *[(d, "LOWER(s)", "abc") for d in OTHERS], *[(d, "UPPER(s)", "ABC") for d in OTHERS],
    *[(d, "s LIKE 'A%'", True) for d in ("postgres", "bigquery", "snowflake", "spark")],
    *[(d, "s LIKE 'a%'", False) for d in ("postgres", "bigquery", "snowflake", "spark")],
    *[(d, "s ILIKE 'a%'", True) for d in ("postgres", "snowflake", "spark")],
    *[(d, "STARTS_WITH(s, 'A')", True) for d in ("postgres", "bigquery")],
    # dates
    *[(d, "YEAR(d)", 2024) for d in ("snowflake", "spark", "mysql", "tsql")],
    *[(d, "MONTH(d)", 3) for d in ("snowflake", "spark", "mysql", "tsql")],
    *[(d, "EXTRACT(YEAR FROM d)", 2024) for d in ("postgres", "bigquery", "snowflake", "spark", "mysql")],
    ("tsql", "DATEPART(year, d)", 2024), ("postgres", "DATE_PART('hour', at)", 23),
    ("postgres", "DATE_TRUNC('month', at)", datetime(2024, 3, 1)),
    ("bigquery", "DATE_TRUNC(d, MONTH)", date(2024, 3, 1)),
    ("snowflake", "DATE_TRUNC('month', d)", date(2024, 3, 1)),
    ("spark", "DATE_TRUNC('MONTH', at)", datetime(2024, 3, 1)),
    ("tsql", "DATETRUNC(month, d)", date(2024, 3, 1)),
    *[(d, "DATEDIFF(d, e)", 50) for d in ("mysql", "spark")],
    *[(d, "DATEDIFF(day, e, d)", 50) for d in ("snowflake", "tsql")],
    ("bigquery", "DATE_DIFF(d, e, DAY)", 50), ("bigquery", "DATE_DIFF(d, e, MONTH)", 1),
    ("snowflake", "DATEDIFF(month, e, d)", 1), ("tsql", "DATEDIFF(month, e, d)", 1),
    *[(d, "d - e", 50) for d in ("postgres", "snowflake")],
    *[(d, "DATE_ADD(d, INTERVAL 1 MONTH) = DATE '2024-04-30'", True) for d in ("bigquery", "mysql")],
    ("snowflake", "DATEADD(day, 1, d) = '2024-04-01'", True),
    ("tsql", "CASE WHEN DATEADD(day, 1, d) = '2024-04-01' THEN 1 END", 1),
    ("postgres", "d + INTERVAL '1 month' = DATE '2024-04-30'", True),
    # texts without what stands at their ends, and parts of them from before their beginning
    *[(d, "TRIM(CONCAT(' ', s, ' '))", "Abc") for d in ("postgres", "snowflake", "spark", "mysql", "tsql")],
    ("postgres", "BTRIM(s, 'Ac')", "b"), ("postgres", "TRIM(LEADING 'A' FROM s)", "bc"),
    ("bigquery", "TRIM(s, 'Ac')", "b"), ("mysql", "TRIM(TRAILING 'c' FROM s)", "Ab"), ("spark", "LTRIM('A', s)", "bc"),
    *[(d, "SUBSTRING(s, 0, 2)", "A") for d in ("postgres", "tsql")], ("postgres", "SUBSTR(s, -1)", "Abc"),
    ("postgres", "SUBSTR(s, j, 1)", "b"), ("postgres", "SUBSTR(s, i + 7, 2)", "A"), ("postgres", "SUBSTR(s, i)", "Abc"),
    *[(d, "SUBSTR(s, -2)", "bc") for d in ("bigquery", "mysql", "spark")], ("mysql", "SUBSTR(s, 0)", ""),
    *[(d, "SPLIT_PART(s, 'b', 2)", "c") for d in ("postgres", "spark")],
    ("postgres", "REPLACE(s, 'b', '-')", "A-c"), ("postgres", "CONCAT_WS('-', s, r, 'x')", "Abc-x"),
    ("postgres", "LOG(100.0)", 2.0),
    # bits
    *[(d, "i & 12", 8) for d in ("postgres", "bigquery", "spark", "mysql", "tsql", "duckdb")],
    *[(d, "i | 4", -3) for d in ("postgres", "bigquery", "spark", "tsql", "duckdb")],
    ("postgres", "i # 3", -6), ("duckdb", "xor(i, 3)", -6), *[(d, "i ^ 3", -6) for d in ("bigquery", "spark", "tsql")],
    ("snowflake", "BITAND(BITOR(i, 4), 15)", 13), *[(d, "~i", 6) for d in ("postgres", "bigquery", "spark", "duckdb")],
    *[(d, "i >> 1", -4) for d in ("postgres", "duckdb")], ("postgres", "i & (1 << 3)", 8), ("duckdb", "j << 3", 16),
    ("postgres", "i & ~4 | 2", -5),
    # lists and rows
    ("postgres", "i = ANY(ARRAY[1, -7])", True), ("postgres", "i = ANY('{1,-7}')", True),
    ("postgres", "i <> ALL('{1,NULL}'::int[])", None), ("postgres", "s = ANY('{}')", False),
    ("postgres", "i > ALL(ARRAY[-9, -8])", True), ("postgres", "i < SOME(ARRAY[-9, -8])", False),
    ("postgres", "s LIKE ANY(ARRAY['x', 'A%'])", True), ("postgres", "s NOT LIKE ALL(ARRAY['x', 'A%'])", False),
    ("bigquery", "s IN UNNEST(['Abc', 'x'])", True), ("duckdb", "s = ANY(['Abc'])", True),
    *[(d, "(i, s) IN ((1, 'x'), (-7, 'Abc'))", True) for d in ("postgres", "snowflake", "mysql", "duckdb")],
    *[(d, "(i, r) NOT IN ((1, 'x'))", True) for d in ("postgres", "snowflake", "mysql", "duckdb")],
    *[(d, "(i, r) IN ((-7, 'x'))", None) for d in ("postgres", "snowflake", "mysql")],
    ("duckdb", "(i, r) IN ((-7, 'x'))", False), ("duckdb", "(i, r) <> (-7, 'x')", True),
    ("postgres", "(i, s) < (-7, 'B')", True), ("postgres", "(i, s) >= (-7, 'B')", False),
    ("postgres", "(i, r) < (0, 'B')", True), ("postgres", "(i, r) < (-7, 'B')", None),
    ("postgres", r"E'a\\b\'\n'", "a\\b'\n"), ("duckdb", r"e'\ta'", "\ta"),
    # quotients and days
    *[(d, "SAFE_DIVIDE(i, j)", -3.5) for d in ("bigquery", "duckdb")], ("bigquery", "SAFE_DIVIDE(i, j - 2)", None),
    *[(d, "DATE(at)", date(2024, 3, 31)) for d in ("bigquery", "mysql", "postgres", "spark", "duckdb")],
    ("bigquery", "DATE(2024, 1, 31)", date(2024, 1, 31)), ("mysql", "YEAR(DATE(at))", 2024),
    # dates by PostgreSQL's formats and parts
    *[(d, "to_char(d, 'YYYY-MM')", "2024-03") for d in ("postgres", "duckdb")],
    ("postgres", "to_char(at, 'Dy DD FMMonth YYYY, HH24:MI')", "Sun 31 March 2024, 23:59"),
    ("postgres", "to_char(d, 'IYYY-\"W\"IW-ID, Q')", "2024-W13-7, 1"),
    ("postgres", "to_char(e, 'Month|')", "February |"),
    ("postgres", "to_char(CURRENT_DATE, '\"Q\"')", "Q"),
    ("postgres", "to_char(DATE '2024-03-31', 'YYYY-\"Q\"Q FMMonth')", "2024-Q1 March"),
    *[("postgres", f"s ~ '{p}'", v) for p, v in (("^A.c$", True), ("a", False), ("[a-c]{2}$", True))],
    ("postgres", "s ~* 'ABC'", True), ("bigquery", "REGEXP_CONTAINS(s, r'b.$')", True),
    *[(d, "TO_DATE('31.01.2024', 'DD.MM.YYYY') < d", True) for d in ("postgres", "duckdb")],
    *[(d, "TO_TIMESTAMP('2024-03-31 23:59', 'YYYY-MM-DD HH24:MI') < at", True) for d in ("postgres", "duckdb")],
    ("postgres", "EXTRACT(DOW FROM d)", 0), ("postgres", "date_part('isodow', d)", 7),
    ("postgres", "EXTRACT(DOY FROM e)", 41),
    ("postgres", "date_trunc('week', at)", datetime(2024, 3, 25)),
    ("postgres", "make_date(2024, j, 29)", date(2024, 2, 29)),
    ("postgres", "EXTRACT(YEAR FROM age(d, DATE '2000-04-01'))", 23), ("postgres", "width_bucket(n, 0, 5, 5)", 3),
    *[(d, "at - e > INTERVAL '50 days'", True) for d in ("postgres", "duckdb")],
    ("duckdb", "INTERVAL 51 DAY <= at - TIMESTAMP '2024-02-10 12:00:00'", False),
    ("postgres", "e + INTERVAL '1 day' * j", datetime(2024, 2, 12)),
    ("postgres", "at <= '2024-03-31T23:59:59+02:00'", False), ("duckdb", "d = '2024-03-31T00:00:00Z'", True),
    ("postgres", "at > '2024-04-01 01:59:59+02'::timestamptz", True),
    ("postgres", "at < now() - interval '30 days'", True),
    # NULL in GREATEST
    *[(d, "GREATEST(i, NULLIF(j, 2))", -7) for d in ("postgres", "spark", "tsql", "duckdb")],
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "expression", "meaning"), MEANINGS)
def test_the_meaning_survives(
    dialect: str, expression: str, meaning: object, one_row: duckdb.DuckDBPyConnection
) -> None:
    ((found,),) = rows(f"SELECT {expression} AS v FROM t", dialect, one_row)
    assert found == meaning and isinstance(found, bool) == isinstance(meaning, bool)
    assert type(found) is not float or not isinstance(meaning, int)  # 7 / 2 is 3, and not 3.0


REFUSED = [
    *[(d, "CAST(x AS INT)", "CAST|cast") for d in ("snowflake", "spark", "tsql")],
    ("bigquery", "CAST(x AS INT64)", "DOUBLE"), ("mysql", "CAST(x AS SIGNED)", "DOUBLE"),
    *[(d, "CAST(n AS INT)", "DECIMAL") for d in ("spark", "tsql")], ("mysql", "CAST(i AS FLOAT)", "FLOAT"),
    *[(d, "CAST(x AS VARCHAR(9))", "VARCHAR") for d in ("postgres", "snowflake", "tsql")],
    ("postgres", "x::text", "DOUBLE"), ("bigquery", "CAST(b AS STRING)", "BOOLEAN"),
    *[(d, "CAST(s AS INT)", "text") for d in ("postgres", "spark", "tsql")],
    ("postgres", "n::numeric", "DECIMAL"), ("spark", "CAST(x AS DECIMAL)", "DECIMAL"),
    ("spark", "CAST(d AS TIMESTAMP)", "TIMESTAMPTZ"), ("bigquery", "CAST(d AS TIMESTAMP)", "TIMESTAMPTZ"),
    ("postgres", "s ~ r", "pattern"), ("postgres", "s ~ ('a' || 'b')", "pattern"),
    *[("postgres", rf"s ~ '{p}'", "pattern") for p in (r"\bA", r"\w", "[[:alpha:]]", "(?i)a", "a{300}")],
    ("postgres", "s::boolean", "BOOLEAN"), ("spark", "CAST(i AS FLOAT)", "FLOAT"),
    *[(d, "d - e", "difference") for d in ("bigquery", "spark", "mysql", "tsql")],
    ("mysql", "d + 1", "a date with a number"), ("mysql", "d - i", "a date with a number"),
    *[(d, "GREATEST(i, j)", "GREATEST") for d in ("bigquery", "mysql", "snowflake")],
    *[(d, "s LIKE 'a%'", "LIKE") for d in ("mysql", "tsql")],
    ("postgres", r"s LIKE '10\%'", "backslash"), ("bigquery", r"s LIKE '10\\%'", "backslash"),
    ("mysql", "LENGTH(s)", "LENGTH"), ("tsql", "LEN(s)", "LEN"), ("tsql", "CHARINDEX('b', s)", "CHARINDEX"),
    ("tsql", "POWER(i, -1)", "POWER"), ("tsql", "POWER(n, 2)", "POWER"), ("tsql", "DATEDIFF(d, e)", ""),
    ("tsql", "ISNULL(i, 0.5)", "ISNULL"), ("tsql", "CONVERT(INT, x)", "CONVERT"),
    ("snowflake", "TO_CHAR(d, 'YYYY')", "TO_CHAR"), ("mysql", "DATE_FORMAT(d, '%Y')", "DATE_FORMAT"),
    ("postgres", "age(d, e)", "AGE"), ("bigquery", "EXTRACT(DAYOFWEEK FROM d)", "DAYOFWEEK"),
    ("postgres", "EXTRACT(SECOND FROM at)", "SECOND"), ("bigquery", "DATE_TRUNC(d, WEEK)", "DATE_TRUNC"),
    *[(d, "DAYOFWEEK(d)", "DAYOFWEEK|TS_OR_DS") for d in ("snowflake", "spark", "mysql")],
    ("spark", "TRUNC(d, 'MM')", "DATE_TRUNC"), ("mysql", "TIMESTAMPDIFF(MONTH, d, e)", "TIMESTAMPDIFF"),
    ("snowflake", "SUBSTRING(s, -2)", "SUBSTRING"), ("mysql", "SUBSTRING(s, i)", "SUBSTRING"),
    ("mysql", "TRIM(BOTH 'xy' FROM s)", "TRIM"), ("mysql", "i | 1", "bits"), ("mysql", "i & -1", "bits"),
    ("mysql", "~i", "bits"), ("postgres", "i << 1", "shift"), ("bigquery", "i >> 1", "shift"),
    *[(d, "i & 3 | 4", "order") for d in ("bigquery", "spark", "tsql")], ("tsql", "i + 1 & 3", "order"),
    ("postgres", "LEFT(s, -1)", "LEFT"), ("postgres", "ROUND(x)", "ROUND"), ("mysql", "ROUND(x)", "ROUND"),
    ("bigquery", "TRIM(s)", "TRIM"), ("mysql", "b XOR b", "XOR"), ("mysql", "REPLACE(s, 'b', 'c')", "REPLACE"),
    ("spark", "CONCAT_WS('-', s, r)", "CONCAT_WS"),
    *[(d, "epoch_ms(at)", "EPOCH_MS") for d in OTHERS],
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "expression", "named"), REFUSED)
def test_what_may_mean_something_else_is_refused_by_name(dialect: str, expression: str, named: str) -> None:
    code, message = refused(f"SELECT {expression} AS v FROM t", dialect)
    assert code == "DP119" and dialect in message
    assert any(name in message for name in named.split("|")), message


def test_averages_of_integers_in_tsql() -> None:
    assert refused("SELECT AVG(i) AS a FROM t", "tsql")[0] == "DP119"
    assert static_plan(Source("SELECT AVG(CAST(i AS DECIMAL(9, 2))) AS a FROM t"), POLICY, dialect="tsql")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_order_of_null(dialect: str, one_row: duckdb.DuckDBPyConnection) -> None:
    """NULL is smallest in BigQuery, Spark, MySQL and SQL Server, largest in PostgreSQL and Snowflake; DuckDB: last."""
    values = "(SELECT i AS v FROM t UNION ALL SELECT NULLIF(i, -7) FROM t) AS u"
    first = [
        rows(f"SELECT v FROM {values} ORDER BY v {direction}", dialect, one_row)[0] == (None,)
        for direction in ("", "DESC")
    ]
    smallest, largest = [True, False], [False, True]
    expected = {"duckdb": [False, False], "postgres": largest, "snowflake": largest}.get(dialect, smallest)
    assert first == expected


def test_the_first_rows(one_row: duckdb.DuckDBPyConnection) -> None:
    assert rows("SELECT TOP 1 i FROM t ORDER BY i", "tsql", one_row) == [(-7,)]
    assert rows("SELECT i FROM t ORDER BY i LIMIT 1, 5", "mysql", one_row) == []  # offset, count
    assert refused("SELECT TOP 50 PERCENT i FROM t", "tsql")[0] == "DP101"


def test_names_are_found_whatever_their_case(one_row: duckdb.DuckDBPyConnection) -> None:
    for dialect in DIALECTS:
        assert rows("SELECT I AS v FROM T", dialect, one_row) == [(-7,)]


def test_text_is_compared_as_it_is_stored() -> None:
    for dialect in DIALECTS:
        plan = static_plan(Source("SELECT i FROM t WHERE s = 'abc'"), POLICY, dialect=dialect)
        assert any("'a' is not 'A'" in note for note in plan.notes) == (dialect in ("mysql", "tsql"))


def test_the_clause_in_every_dialect(policies: Path) -> None:
    """The lift works on tokens, so it is the same for all."""
    sql = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.2, max_groups_contributed = 2)\n"
        "kind, COUNT(*, contribution_bounds_per_group => (0, 3)) AS n, DP_INTERVAL_LOW(n) AS l\n"
        "FROM grouped GROUP BY kind"
    )
    for dialect in DIALECTS:
        assert dpsql.check(sql, policies / "limits.yaml", dialect=dialect) == []


def test_carets_stay_right_behind_what_is_rewritten() -> None:
    sql = "SELECT CONCAT(s, 'x') AS c, DATE_ADD(d, INTERVAL 1 DAY) AS f, nothing AS n FROM t"
    with pytest.raises(Rejected) as refusal:
        static_plan(Source(sql), POLICY, dialect="mysql")
    span = refusal.value.diagnostics[0].span
    assert span is not None and sql[span.start : span.end] == "nothing"


def test_unknown_dialects() -> None:
    for dialect in ("oracle", "sqlite", "", "klingon"):
        with pytest.raises(Rejected) as refusal:
            static_plan(Source("SELECT 1 AS x"), POLICY, dialect=dialect)
        assert refusal.value.diagnostics[0].code == "DP903"
    assert static_plan(Source("SELECT 1 AS x"), POLICY, dialect="Postgres")


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("call", ["GREATEST(d, CURRENT_DATE)", "COALESCE(CURRENT_DATE, d)", "LEAST(CURRENT_DATE, d)"])
def test_the_clock_in_a_call_is_the_clock_also_where_a_limit_follows(dialect: str, call: str) -> None:
    sql = f"SELECT COUNT(*) AS n FROM t WHERE {call} > DATE '2000-01-01' LIMIT 5"
    assert [d for d in dpsql.check(sql, POLICY, dialect=dialect) if d.severity == "error"] == []


@pytest.mark.parametrize("form", ['""', "SSSS", "IDDD"])
def test_a_format_that_says_nothing_or_reads_otherwise_is_refused(form: str) -> None:
    code, _ = refused(f"SELECT to_char(at, '{form}') AS v FROM t", "postgres")
    assert code in ("DP106", "DP119")
