"""Columns without a name are called over the wire as PostgreSQL calls them; names that are given stay."""

from __future__ import annotations

import pytest

from dpsql.frontend.catalogue.answer_names import shown_names

ITEMS = {
    "count(*)": "count",
    "SUM(x)": "sum",
    "AVG(x) FILTER (WHERE x > 1)": "avg",
    "1": "?column?",
    "'a'": "?column?",
    "x + 1": "?column?",
    "- x": "?column?",
    "NOT TRUE": "?column?",
    "x IN (1, 2)": "?column?",
    "coalesce(x, 1)": "coalesce",
    "CASE WHEN x > 1 THEN 2 END": "case",
    "to_char(d, 'YYYY')": "to_char",
    "date_trunc('month', d)": "date_trunc",
    "EXTRACT(year FROM d)": "extract",
    "x::text": "x",
    "max(x)::int": "max",
    "1::bigint": "int8",
    "1::numeric(9, 2)": "numeric",
    "1::float8": "float8",
    "round(avg(x)::numeric(9, 2), 2)": "round",
    "sum(x)::numeric(9, 2)": "sum",
    "interval '1 day'": "interval",
    "mod(5, 2)": "mod",
    "5 % 2": "?column?",
    "sum(sum(x)) OVER ()": "sum",
    "(count(*))": "count",
    "stddev(x)": "stddev",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)": "percentile_cont",
    'count(*) AS "COUNT(*)"': "COUNT(*)",
    'x AS "A b"': "A b",
}


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_names_of_an_answer(dialect: str) -> None:
    """As PostgreSQL gave them, once asked (tests/engines_elsewhere/postgres/test_meaning_of_texts.py asks again)."""
    ours = [name if " AS " in item else item.lower() for item, name in ITEMS.items()]
    assert shown_names(f"SELECT {', '.join(ITEMS)} FROM t", dialect, ours) == tuple(ITEMS.values())


def test_a_type_without_digits_has_no_place_in_the_text() -> None:
    """sqlglot reads `NUMERIC` as DECIMAL(18, 3), whose digits are counted from there."""
    text = "SELECT ROUND(AVG(x)::numeric, 2), sum(x)::numeric FROM t"
    assert shown_names(text, "duckdb", ["round(avg(x), 2)", "sum(x)"]) == ("round", "sum")


def test_ends_of_intervals_are_called_as_their_number() -> None:
    given = ["count(*)", "g", "count(*)_low", "count(*)_high"]
    shown = ("count", "g", "count_low", "count_high")
    assert shown_names("SELECT count(*), g FROM t GROUP BY g", "duckdb", given) == shown


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM (SELECT count(*), sum(x) FROM t) AS q",
        "SELECT * FROM (SELECT * FROM (SELECT count(*), sum(x) FROM t) AS q) AS r",
    ],
)
def test_a_star_shows_the_names_of_the_query_within(text: str) -> None:
    assert shown_names(text, "duckdb", ["count(*)", "sum(x)"]) == ("count", "sum")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM (SELECT count(*), sum(x) FROM t) AS q(a, b)",
        "SELECT * FROM (SELECT count(*), sum(x) FROM t) AS q, t",
        "SELECT * EXCLUDE (x) FROM (SELECT count(*), sum(x), x FROM t) AS q",
    ],
)
def test_a_star_of_anything_else_shows_what_dpsql_calls_its_columns(text: str) -> None:
    assert shown_names(text, "duckdb", ["count(*)", "sum(x)"]) == ("count(*)", "sum(x)")


@pytest.mark.parametrize("text", ["SELECT *, 1 + 1 FROM t", "SELECT t.*, 1 + 1 FROM t", "SELECT", "DESCRIBE t"])
def test_where_columns_are_not_known_names_stay(text: str) -> None:
    assert shown_names(text, "duckdb", ["a", "b", "1 + 1"]) == ("a", "b", "1 + 1")
