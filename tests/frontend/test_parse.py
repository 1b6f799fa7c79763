"""One query and nothing else: what stands around it, and what is no query."""

from __future__ import annotations

import pytest
import sqlglot.parser

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.parse import MAX_DEPTH, MAX_LENGTH, parse

COMPILED = not sqlglot.parser.__file__.endswith(".py")
"""Whether these tests run with sqlglot compiled: tests/deep/frontend/test_compiled_parser.py."""


def refused(text: str, dialect: str = "duckdb") -> str:
    with pytest.raises(Rejected) as refusal:
        parse(Source(text), dialect)
    (found,) = refusal.value.diagnostics
    assert found.help and (found.code == "DP903" or (found.span is not None and found.span.start < found.span.end))
    assert "sqlglot" not in str(refusal.value) and "Traceback" not in str(refusal.value)
    return found.code


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT 1;",
        "SELECT 1 ; ;",
        "-- first\nSELECT 1 -- last",
        "/* a; b */ SELECT 1 /* c; */ ;\n-- d; e\n",
        "\n\t SELECT ';' AS x\r\n",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "(SELECT 1)",
        "FROM t SELECT x",
    ],
)
def test_queries(text: str) -> None:
    assert parse(Source(text)).tree is not None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "DP011"),
        ("   \n", "DP011"),
        (";", "DP011"),
        ("-- nothing", "DP011"),
        ("SELECT 1; SELECT 2", "DP011"),
        ("SELECT 1; DROP TABLE t", "DP011"),
        ("INSERT INTO t VALUES (1)", "DP012"),
        ("DROP TABLE t", "DP012"),
        ("CREATE TABLE t AS SELECT 1", "DP012"),
        ("EXPLAIN SELECT 1", "DP012"),
        ("CALL f()", "DP012"),
        ("INSTALL httpfs", "DP012"),
        ("SELECT (", "DP010"),
        ("SELECT 'a", "DP010"),
        ('SELECT "a', "DP010"),
        ("SELECT 1 +", "DP010"),
        ("SELECT a b c d", "DP010"),
        ("SELECT 1\0", "DP010"),
        ("SELECT " + "(" * (MAX_DEPTH + 50) + "1" + ")" * (MAX_DEPTH + 50), "DP010"),
        ("SELECT " + "(" * 50_000, "DP010"),
        ("SELECT " + "1, " * MAX_LENGTH, "DP010"),
    ],
)
def test_everything_else(text: str, code: str) -> None:
    assert refused(text) == code


def test_dialects() -> None:
    assert parse(Source("SELECT `a` FROM t"), "bigquery").tree is not None
    assert refused("SELECT 1", "klingon") == refused("SELECT 1", "") == "DP903"


@pytest.mark.parametrize("text", ["SELECT $1, ''", "SELECT $name || ''", "SELECT 1 WHERE $1 LIKE $2 ESCAPE ''"])
def test_an_empty_text_at_the_end_after_a_parameter(text: str) -> None:
    assert parse(Source(text)).tree is not None


def test_a_batch_is_not_one_query() -> None:
    sql = "-- tiles\nDP /* a */ BATCH (SELECT COUNT(*) FROM t; SELECT 1)"
    with pytest.raises(Rejected) as refusal:
        parse(Source(sql))
    (found,) = refusal.value.diagnostics
    assert found.code == "DP010" and "con.batch_of(sql)" in found.help[0]
    assert found.span is not None and sql[found.span.start : found.span.end] == "DP /* a */ BATCH"


def test_what_the_first_word_is() -> None:
    with pytest.raises(Rejected) as refusal:
        parse(Source("/* select */ -- please\n  drop table t"))
    (found,) = refusal.value.diagnostics
    assert "DROP" in found.message and found.source is not None
    assert found.source.text[found.span.start : found.span.end] == "drop table t"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT union, AVG(x) AS m FROM t GROUP BY union", "union"),
        ("SELECT COUNT(*) AS n FROM t WHERE Union = 3", "Union"),
        ("SELECT SUM(having) AS n FROM t", "having"),
        ("SELECT AVG(Alter) AS n FROM t", "Alter"),
        ("SELECT x, drop FROM t", "drop"),
        ("SELECT Lock, COUNT(*) AS n FROM t GROUP BY Lock", "Lock"),
        ("SELECT COUNT(*) AS n FROM t GROUP BY insert", "insert"),
        ("-- alter\nSELECT COUNT(*) AS n FROM create", "create"),
    ],
)
def test_a_keyword_where_a_name_was_meant(sql: str, word: str) -> None:
    with pytest.raises(Rejected) as refused:
        parse(Source(sql))
    (found,) = refused.value.diagnostics
    assert found.span is not None and sql[found.span.start : found.span.end] == word
    assert found.help == (f'write  "{word}"',)
    quoted = sql.replace(word, f'"{word}"')
    parse(Source(quoted))


@pytest.mark.parametrize(
    ("sql", "marked", "dialect"),
    [
        ("SELECT 'é😀' AS a,\n 2 FROM t WHERE b = 'oops;\nSELECT 1\n", "'oops;", "duckdb"),
        ("SELECT 'it''s", "'it''s", "postgres"),
        ("SELECT 'a' || 'it's' FROM t  \n", "' FROM t  ", "duckdb"),
        ('SELECT "oops FROM t', '"oops FROM t', "duckdb"),
        ("SELECT E'oops", "E'oops", "duckdb"),
        ("SELECT $$/* oops", "$$/* oops", "duckdb"),
        ("SELECT `oops", "`oops", "bigquery"),
        ("SELECT [oops", "[oops", "tsql"),
        ("SELECT 1 /* a */ + 2 /* oops", "/* oops", "duckdb"),
        ("/*", "/*", "mysql"),
    ],
)
def test_what_is_never_closed_is_marked_where_it_begins(sql: str, marked: str, dialect: str) -> None:
    with pytest.raises(Rejected) as refusal:
        parse(Source(sql), dialect)
    (found,) = refusal.value.diagnostics
    assert found.code == "DP010" and found.span is not None
    if COMPILED:  # does not say where
        assert (found.message, found.help) == ("the text cannot be read as SQL", ("check the quotes",))
    else:
        assert "never closed" in found.message and sql[found.span.start : found.span.end] == marked


@pytest.mark.parametrize(("sql", "meant"), [("SELEC", "SELECT"), ("FRM t", "FROM"), ("-- a\nWIHT x", "WITH")])
def test_a_misspelt_beginning_is_a_syntax_error_however_little_follows(sql: str, meant: str) -> None:
    with pytest.raises(Rejected) as refused:
        parse(Source(sql))
    assert refused.value.code == "DP010" and refused.value.diagnostics[0].help == (f"did you mean {meant}?",)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_a_text_that_is_cast_to_an_interval_is_one(dialect: str) -> None:
    written = [f"SELECT t - {length} AS u FROM v" for length in ("'7 days'::interval", "INTERVAL '7 days'")]
    cast, plain = (parse(Source(sql), dialect).tree.sql("duckdb") for sql in written)
    assert cast == plain
