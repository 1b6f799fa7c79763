"""What the gate lets through, and what it does not: a text that is more than one scalar expression over its columns."""

from __future__ import annotations

import pytest

from dpsql.core.gate.grammar import admitted, is_scalar
from dpsql.core.gate.vocabularies import DUCKDB, POSTGRES, SPARK, Vocabulary
from dpsql.core.ir.types import BIGINT
from dpsql.core.printing.dialects.duckdb import DuckDB
from dpsql.core.printing.dialects.postgres import Postgres
from dpsql.core.printing.dialects.postgres_again import PostgresAgain
from dpsql.core.values.value import Value, type_range
from dpsql.diagnostics.errors import Rejected
from dpsql.spelling.postgres_functions import POSTGRES as SPELLED
from tests.support.planning import planned, policy

X, S = 't1."x"', 't1."s"'
LONG = 't1."s" COLLATE "C"'
ATOMS = (X, S, LONG, "\0p1\0")
MADE = f"pg_temp.dpsql_{'0a' * 16}"
ENGINES = {"duckdb": DUCKDB, "postgres": POSTGRES, "spark": SPARK}

EVERYWHERE = [
    "x", "0", "12.5", "1e-07", "NULL", "TRUE", "'a'", "'it''s; -- $ (SELECT 1)'", "(x)", "((x + 1) * -2)", "(- -5)",
    "(NOT x > 1 AND x IS NOT NULL OR FALSE)", "(x IS DISTINCT FROM s)", "(x IS NOT DISTINCT FROM 1)",
    "(x IS NOT TRUE)",
    "(x BETWEEN 1 AND 2 AND s = 'a')", "(x NOT BETWEEN 1 AND 2)", "(x IN (1, 2))", "(x NOT IN (1))", "(s LIKE 'a%')",
    "CASE WHEN x > 1 THEN CASE WHEN x > 2 THEN 1 END WHEN s = 'b' THEN 2 ELSE 3 END", "COALESCE(x, 1)", "abs(x)",
    "(a || 'b' || COALESCE(a, 'c'))", "DATE '2024-02-29'", "(x\n+ 1)", "(\0p1\0 % 2)",
]  # fmt: skip
OF = {
    "duckdb": [
        "TRY(x + 1)", "TRY_CAST(x AS DECIMAL(18,2))", "CAST(x AS INTEGER[])", "(x // 2)", "[x, 1]", "(s ILIKE 'a')",
        "CAST(x AS TIMESTAMP WITH TIME ZONE)", "TIMESTAMPTZ '2024-01-01 00:00:00+00:00'", r"(s LIKE '\')", "(x & 1)",
        "(s LIKE 'a' ESCAPE '!')",
    ],
    "postgres": [
        "CAST(x AS double precision)", "CAST(x AS numeric(38, 2))", 's COLLATE "C"', "l", "(l = 'a' COLLATE \"C\")",
        "(x # 3)", "ARRAY[x, 1]", "(x = ANY(x))", "extract(year FROM x)", "(s LIKE 'a' ESCAPE '!' COLLATE \"C\")",
        "make_interval(months => x)", f"{MADE}()", f"{MADE}(x, s)", "CAST(x AS text[])",
        "(SELECT CASE WHEN v.x0 > 1 THEN v.x1 END FROM (SELECT (x + 1) AS x0, s AS x1 OFFSET 0) AS v)",
        "(SELECT (SELECT v.x0 FROM (SELECT v.x0 AS x0 OFFSET 0) AS v) FROM (SELECT x AS x0 OFFSET 0) AS v)",
        "(SELECT count(*) > 0 FROM pg_catalog.pg_timezone_names AS z WHERE z.name = 'UTC' COLLATE \"C\")",
    ],
    "spark": [
        "CAST(x AS DECIMAL(38, 0))", "try_cast(x AS ARRAY<ARRAY<STRING>>)", r"'\\ \' \u0024 \u0000'", "(x div 2)",
        "(x * 0.5D)", "X'00ff'", "INTERVAL '3' MONTH", "INTERVAL '1 02:00:00.000000' DAY TO SECOND", "(x ^ 1)",
        "extract(SECOND FROM x)", "trim(BOTH 'a' FROM s)", "trim(LEADING FROM s)", "array(x, 1)",
        "transform(array(x), v -> v + 1)[0]", "transform(array(struct(x AS x0, s AS x1)), v -> v.x0 + v.x1)[0]",
    ],
}  # fmt: skip
NOWHERE = {
    "of two expressions": [
        "x, x", "(x, x)", "(x) (x)", "x x", "(x x)", "'a' 'b'", "(1 2)", "CASE WHEN x THEN 1, 2 END",
    ],
    "that closes what it did not open": ["1) + (2", "TRUE) OR (TRUE", "(x))", "((x)", "x)", ")", "(x]", "[x)"],
    "without brackets": ["x + 1", "x OR TRUE", "NOT x", "- x", "x IS NULL", "x IN (1)", "(x) + (x)", "x = ANY(x)"],
    "with a name for it": ["x AS y", "(x AS y)", "x y", "abs(x AS y)", "struct(x AS x0)", "CASE WHEN x THEN y END"],
    "that reads what is not listed": [
        "y", "(y)", 't1."y"', 't1 . "x"', "t1.y", "rowid", "ctid", "(t1.rowid)", "v.x0", "t1", '"x"', 't2."x"', "(*)",
        't1."x".y', 't1."xx"', "\0p2\0", "\0p1\0p1\0", "(t1.*)", "`x`",
    ],
    "with a subquery or a window": [
        "(SELECT 1)", "(SELECT x FROM t)", "(SELECT x)", "(x IN (SELECT 1))", "(EXISTS (SELECT 1))", "((SELECT x))",
        "(SELECT v.x0 FROM (SELECT x AS x0) AS v)", "(SELECT x FROM (SELECT x AS x0 OFFSET 0) AS v)",
        "(SELECT v.x1 FROM (SELECT x AS x0 OFFSET 0) AS v)", "(SELECT v.x0 FROM (SELECT x AS x1 OFFSET 0) AS v)",
        "(SELECT v.x0 FROM (SELECT x AS x0 OFFSET 1) AS v)",
        "(SELECT v.x0 FROM (SELECT x AS x0 FROM t OFFSET 0) AS v)",
        "(SELECT v.x0, 1 FROM (SELECT x AS x0 OFFSET 0) AS v)", "(SELECT v.x0 FROM t)", "(SELECT v.x0 FROM t AS v)",
        "(SELECT v.x0 FROM (SELECT x AS x0 OFFSET 0) AS v WHERE x > 1)",
        "(SELECT y FROM (SELECT x AS x0 OFFSET 0) AS v)",
        "(SELECT count(*) > 0 FROM t AS z WHERE z.name = 'UTC' COLLATE \"C\")", "(SELECT count(*) FROM t)",
        "(SELECT count(*) > 0 FROM pg_catalog.pg_timezone_names AS z WHERE z.name = s COLLATE \"C\")",
        "abs(x) OVER ()", "row_number() OVER (ORDER BY x)", "count(*)", "abs(*)", "abs(DISTINCT x)",
        "abs(x) FILTER (WHERE TRUE)", "abs(x ORDER BY x)",
    ],
    "with a function that is not on the list": [
        "now()", "random()", "random(x)", "sum(x)", "current_setting('a')", "CURRENT_DATE", "current_user", "ABS(x)",
        "nextval('a')", "version()", "getvariable('a')", "pg_sleep(x)", "pg_temp.dpsql_1()", f"{MADE}0()",
        f"x.{MADE}()", "pg_temp.f(x)", "f(x)",
        "pg_catalog.abs(x)", "abs()", "NULLIF(x)", "NULLIF(x, x, x)", "TRY()", "TRY(x, x)", "COALESCE()",
        "Coalesce(x)", "dpsql_00(x)", "rand()", "reflect('a')", "abs (x",
    ],
    "with another statement, or a comment": [
        "x;", "(x; DELETE)", "(x) -- y", "(x --\n)", "(x /* y */)", "(x + 1 # y\n)", "(1--1)", "(x */ 2)", "(x ;)",
    ],
    "with symbols that are not listed": [
        "(x :: int)", "(x = = 1)", "(x == 1)", "(x +- 1)", "(x ! 1)", "(x @ 1)", "$1", "($1)", "(?)", "(:x)", "\\",
        "(\\)",
        "(x <=> 1)", "(x != 1)", "(x ~ 'a')", "(x -> 1)", "(x << 1)", "(x . y)", "(~ x)", "(+ x)", "(x := 1)",
        "(x => 1)",
        "(x ×2)", "(x\t+ 1)", "(x\r+ 1)", "(x\u00a0+ 1)", "{x}", "{'a': x}", "x[1]", "(x[x])", "x[0:1]", "(x).y",
    ],
    "with a literal that is none": [
        "'a", "'a''", "''' OR x", "E'a'", "U&'a'", "N'a'", "B'1'", "$$a$$", "'a\0'", "1.", ".5", "1x", "0x1F",
        "1_000",
        "1e", "1E5", "1.5.5", "5AND", "(1AND 1)", "DATE x", "DATE ('a')", "INTERVAL '1'", "INTERVAL '1' YEAR", '"C"',
        "TIME x", "DATE", "DATE 5", "'a' COLLATE \"D\"", "s COLLATE C",
    ],
    "that is no sentence": [
        "", " ", "()", "(x +)", "(+)", "(x AND)", "(AND x)", "(NOT)", "(x IS)", "(x IS 1)", "(x IS NOT)",
        "(x BETWEEN 1)",
        "(x BETWEEN 1 OR 2)", "(x NOT)", "(x NOT = 1)", "(x IN x)", "(x IN ())", "(x IN (1,))", "(x = 1 = 2)",
        "(x = 1 IS NULL)", "(x BETWEEN 1 2)", "CASE x THEN 1 END", "CASE WHEN x 1 END", "(x IS DISTINCT FROM NOT x)",
        "(x LIKE)",
        "(x IS DISTINCT s)", "(x IS DISTINCT FROM)", "(s LIKE 'a' ESCAPE s)", "CASE END", "CASE x WHEN 1 THEN 2 END",
        "CASE WHEN x END", "CASE WHEN x THEN 1", "CASE WHEN x THEN 1 ELSE END", "CASE ELSE 1 END",
        "CASE WHEN x THEN 1 ELSE 2 ELSE 3 END", "(x END)", "abs(x,)", "abs(,x)", "abs(x", "abs", "abs x",
        "(x IS NULL NULL)",
    ],
    "with a cast to what is not listed": [
        "CAST(x)", "CAST(x INTEGER)", "CAST(x AS)", "CAST(x AS y)", "CAST(x AS regclass)", "CAST(x, INTEGER)",
        "CAST(AS INTEGER)",
        "CAST(x AS INTEGER AS INTEGER)", "CAST(x AS DECIMAL(x))", "CAST(x AS integer) integer",
        "CAST(x AS ENUM('a'))",
        "CAST(x AS STRUCT(a INTEGER))", "CAST x AS INTEGER", "CAST(x AS INTEGER + 1)", "CAST(x y AS INTEGER)",
        "CAST(x AS DATEX)", "CAST(x AS DATE x)", "CAST(x AS \"C\")",
    ],
}  # fmt: skip
OF_ANOTHER = {
    "duckdb": [*OF["postgres"][5:], *OF["spark"][3:-4], "CAST(x AS double precision)", "trim(BOTH 'a' FROM s)"],
    "postgres": ["TRY(x)", "TRY_CAST(x AS integer)", "(x // 2)", "[x]", "X'00'", "(x * 0.5D)", "(x ^ 1)",
    "(x div 2)"],
    "spark": ["TRY(x)", "(x // 2)", "[x, 1]", "ARRAY[x]", "'it''s'", r"'\n'", "'$'", r"'\u0041'", "x[0", "x[-1]",
              "transform(x, v -> v)", "transform(array(x), v -> x)[0]", "transform(array(x), v -> v)",
              "transform(array(x), y -> y)[0]", "transform(array(struct(x AS x0)), v -> v.x1)[0]",
              "transform(array(struct(x AS x0)), v -> v)[0]", "transform(array(struct(x)), v -> v.x0)[0]",
              "transform(array(x), v -> v)[1]", "extract(TIMEZONE FROM x)", "extract(x FROM x)",
              "trim(s FROM s)", "trim(BOTH s)", "(x # 1)", "(x FROM s)", "substring(s FROM 1)"],
}  # fmt: skip


def text_of(short: str) -> str:
    """With the columns' names for x, s, a and l."""
    words = {"x": X, "s": S, "a": S, "l": LONG}
    return words.get(short, "".join(words.get(w, w) for w in _split(short)))


def _split(text: str) -> list[str]:
    """At letters that stand alone, outside of literals and of names."""
    found, quoted = [""], ""
    for i, c in enumerate(text):
        if c in "'\"":
            quoted = "" if quoted == c else quoted or c
        around = text[max(i - 1, 0)] if i else " ", text[i + 1] if i + 1 < len(text) else " "
        alone = c in "xsal" and not any(n.isalnum() or n in "_.\"'\0`" for n in around)
        found += [c, ""] if alone and not quoted else []
        if not (alone and not quoted):
            found[-1] += c
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_printed_passes(engine: str) -> None:
    vocabulary = ENGINES[engine]
    written = [t for t in EVERYWHERE if vocabulary is not SPARK or "''" not in t] + OF[engine]
    assert [t for t in written if not is_scalar(text_of(t), ATOMS, vocabulary)] == []


@pytest.mark.parametrize("what", NOWHERE)
@pytest.mark.parametrize("engine", ENGINES)
def test_no_text_passes(engine: str, what: str) -> None:
    admitted_of = admitted_texts(NOWHERE[what], ENGINES[engine])
    assert [t for t in admitted_of if (engine, t) not in SAME] == []


SAME = {("spark", "x[1]"), ("spark", "x[0]")}
"""What one engine has, and the others have not: an element of a list."""


@pytest.mark.parametrize("engine", OF_ANOTHER)
def test_what_another_engine_has_does_not_pass(engine: str) -> None:
    assert admitted_texts(OF_ANOTHER[engine], ENGINES[engine]) == []


def admitted_texts(texts: list[str], vocabulary: Vocabulary) -> list[str]:
    return [t for t in texts if is_scalar(text_of(t), ATOMS, vocabulary)]


def test_an_atom_ends_where_it_ends() -> None:
    """`t1.c1` is no part of `t1.c10`, and a literal does not go on behind one."""
    assert is_scalar("(t1.c1 + 1)", ("t1.c1",), DUCKDB)
    assert not is_scalar("(t1.c10 + 1)", ("t1.c1",), DUCKDB)
    assert is_scalar("(t1.c10 + 1)", ("t1.c1", "t1.c10"), DUCKDB)
    assert is_scalar("('a''b')", ("'a'",), POSTGRES) and not is_scalar("('a' 'b')", ("'a'",), POSTGRES)
    assert not is_scalar("(x.y)", ("x",), DUCKDB)
    assert not is_scalar("x'00'", ("x",), SPARK)


def test_a_text_that_is_printed_wrongly_is_refused_before_anything_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """DP904 with the place of what was printed: of calls, casts and constants."""
    log = policy(
        "log:\n  unit: {rows: 1}\n  columns:\n    n: {type: integer, bounds: [0, 10]}\n    s: {type: varchar}\n"
    )
    queries = {
        "call": "SELECT SUM(CLIP(n + 1, 0, 5)) FROM log",
        "convert": "SELECT COUNT(*) FROM log WHERE CAST(s AS INTEGER) > 3",
        "constant": "SELECT COUNT(*) FROM log WHERE n < 5",
    }
    for name, sql in queries.items():
        assert planned(sql, log)
        printed = getattr(DuckDB, name)
        with monkeypatch.context() as patched:
            patched.setattr(DuckDB, name, lambda self, *args, printed=printed: printed(self, *args) + ") OR (TRUE")
            with pytest.raises(Rejected) as refusal:
                planned(sql, log)
        (diagnostic,) = refusal.value.diagnostics
        assert diagnostic.code == "DP904" and "nothing was run" in diagnostic.message


def test_the_body_of_a_function_passes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL's second asking puts texts into functions that it makes."""
    bigint, x = Value(BIGINT, type_range(BIGINT), type_range(BIGINT)), ["t1.x", "t1.y"]
    held = [type_range(BIGINT)] * 2
    assert (
        PostgresAgain(SPELLED)
        .attempt("(t1.x * t1.y)", "mul", x, [bigint, bigint], held, bigint)
        .startswith("(pg_temp.")
    )
    monkeypatch.setattr(Postgres, "call", lambda *args: "1) + (2")
    with pytest.raises(Rejected, match="DP904"):
        PostgresAgain(SPELLED).attempt("(t1.x * t1.y)", "mul", x, [bigint, bigint], held, bigint)


def test_the_place_is_shown() -> None:
    with pytest.raises(Rejected, match="DP904"):
        admitted("(x", ("x",), "duckdb")
    assert admitted("(x)", ("x",), "duckdb") == "(x)"
