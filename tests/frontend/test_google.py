"""The lift of GoogleSQL's privacy clause: what is taken out, what is left, and that places in the text stay right."""

from __future__ import annotations

from fractions import Fraction

import pytest
from sqlglot import exp

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.google.privacy_clause import Clause, bounds_of
from dpsql.frontend.parse import Parsed, parse
from dpsql.planner.settings.privacy_clause import with_clause
from dpsql.planner.settings.query_settings import QuerySettings

BARE = "SELECT region, COUNT(*) AS n, SUM(x + 1) AS s FROM t GROUP BY region"


def read(sql: str, dialect: str = "duckdb") -> Parsed:
    return parse(Source(sql), dialect)


def clause(options: str, kind: str = "DIFFERENTIAL_PRIVACY") -> Clause:
    found = read(f"SELECT WITH {kind} OPTIONS ({options}) COUNT(*) AS n FROM t").clause
    assert found is not None
    return found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT WITH DIFFERENTIAL_PRIVACY region, COUNT(*) AS n, SUM(x + 1) AS s FROM t GROUP BY region",
        "select with differential_privacy options() region, COUNT(*) AS n, SUM(x + 1) AS s FROM t GROUP BY region",
        "SELECT /* WITH */ WITH -- a\n ANONYMIZATION OPTIONS (epsilon = 1) region, ANON_COUNT(*) AS n, "
        "ANON_SUM(x + 1 CLAMPED BETWEEN 0 AND 1) AS s FROM t GROUP BY region",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) region, "
        "COUNT(*, contribution_bounds_per_group => (0, 4)) AS n, "
        "SUM(x + 1, CONTRIBUTION_BOUNDS_PER_ROW=>(-.5,+4e0)) AS s FROM t GROUP BY region",
    ],
)
def test_what_is_left_is_the_query_without_it(sql: str) -> None:
    assert read(sql).tree.sql("duckdb", comments=False) == read(BARE).tree.sql("duckdb")


def test_options() -> None:
    assert clause("epsilon = 0.1").epsilon == Fraction(1, 10)
    assert clause("epsilon=.5, delta=1e-9").delta == Fraction(1, 10**9)
    assert clause("epsilon = +2").epsilon == 2
    assert clause("max_groups_contributed = 3").max_groups == 3
    assert clause("kappa = 3", "ANONYMIZATION") == clause("max_groups_contributed = 3")
    assert clause("max_rows_contributed = 1").max_rows == 1
    assert clause("min_privacy_units_per_group = 50").min_units == 50
    assert clause("group_selection_strategy = PUBLIC_GROUPS").public_groups is True
    assert clause("group_selection_strategy = 'laplace_threshold'").public_groups is False
    assert read("SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM t").clause == Clause()
    assert read(BARE).clause is None


def test_clauses_of_subqueries() -> None:
    inner = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*) AS n FROM t"
    for sql in (f"SELECT n FROM ({inner}) AS a", f"WITH a AS ({inner}) SELECT n FROM a", f"{inner} UNION ALL {inner}"):
        assert read(sql).clause == Clause(epsilon=Fraction(1))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1)' AS x, COUNT(*) FROM t",
        "SELECT COUNT(*) /* SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) */ FROM t",
        "SELECT COUNT(*) -- , contribution_bounds_per_group => (0, 1)\n FROM t",
        'SELECT "SELECT WITH ANONYMIZATION" FROM t',
        'SELECT COUNT("ANON_COUNT"), "anon_sum" FROM t',
        "SELECT SUM(clamped) FROM t WHERE clamped BETWEEN 0 AND 1",
        "SELECT SUM(x * clamped) AS differential_privacy, epsilon AS options FROM t",
        "WITH differential_privacy AS (SELECT 1 AS epsilon) SELECT epsilon FROM differential_privacy",
        "SELECT anon_count FROM t",
    ],
)
def test_texts_comments_and_names_are_no_clauses(sql: str) -> None:
    parsed = read(sql)
    assert parsed.clause is None
    assert not any(bounds_of(node) for node in parsed.tree.walk())


@pytest.mark.parametrize("dialect", ["bigquery", "mysql", "spark"])
def test_texts_in_double_quotes_are_no_clauses(dialect: str) -> None:
    assert read('SELECT "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1)" AS x', dialect).clause is None


def test_a_column_called_clamped() -> None:
    (total,) = read("SELECT ANON_SUM(CASE WHEN clamped BETWEEN 0 AND 1 THEN x END) FROM t").tree.find_all(exp.Sum)
    assert bounds_of(total) is None
    (total,) = read("SELECT ANON_SUM(x * clamped CLAMPED BETWEEN 0 AND 1) FROM t").tree.find_all(exp.Sum)
    found = bounds_of(total)
    assert found is not None and found.clamped == (0, 1) and total.this.sql() == "x * clamped"


@pytest.mark.parametrize("argument", ["x", "?", "$1", "$low", "(x)", "'a'", '"x y"', "1", "t.x", "CAST(x AS DOUBLE)"])
def test_clamped_may_follow_any_expression(argument: str) -> None:
    (total,) = read(f"SELECT ANON_SUM({argument} CLAMPED BETWEEN 0 AND 1) FROM t").tree.find_all(exp.Sum)
    assert bounds_of(total) is not None


def test_bounds_know_their_aggregate_and_place() -> None:
    sql = (
        "SELECT SUM(a), SUM(ABS(b) + 1, contribution_bounds_per_group => (-1, 2.5)), COUNT(*), "
        "COUNT(c, contribution_bounds_per_group => (0, 3)) FILTER (WHERE d > 0) FROM t"
    )
    parsed = read(sql)
    found = {node.this.sql(): bounds_of(node) for node in parsed.tree.find_all(exp.Sum, exp.Count)}
    assert found["a"] is None and found["*"] is None
    total, count = found["ABS(b) + 1"], found["c"]
    assert total is not None and total.per_group == (-1, Fraction(5, 2)) and total.per_row is None
    assert sql[total.start : total.end] == "SUM(ABS(b) + 1, contribution_bounds_per_group => (-1, 2.5))"
    assert sql[total.span.start : total.span.end] == "contribution_bounds_per_group => (-1, 2.5)"
    assert count is not None and count.per_group == (0, 3)


@pytest.mark.parametrize(
    ("sql", "code", "place"),
    [
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1 COUNT(*) FROM t", "DP115", "COUNT"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon 1) COUNT(*) FROM t", "DP010", "1"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS epsilon = 1 COUNT(*) FROM t", "DP010", "epsilon"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (", "DP014", "("),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon =", "DP115", "="),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (, epsilon = 1) 1", "DP014", ","),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ('epsilon' = 1) 1", "DP014", "'epsilon'"),
        ("SELECT WITH", "DP014", "WITH"),
        ("SELECT WITH 'DIFFERENTIAL_PRIVACY' 1", "DP014", "WITH 'DIFFERENTIAL_PRIVACY'"),
        ("SELECT WITH x AS (SELECT 1) 2", "DP014", "WITH x"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1) 1", "DP406", "1"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = -1) 1", "DP406", "-1"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1.5) 1", "DP406", "1.5"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1e99) 1", "DP406", "1e99"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e99999) 1", "DP115", "1e99999"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = NULL) 1", "DP115", "NULL"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = 1) 1", "DP014", "1"),
        (
            "SELECT WITH ANONYMIZATION OPTIONS (kappa = 1, max_groups_contributed = 1) 1",
            "DP014",
            "max_groups_contributed",
        ),
        ("SELECT SUM(x, contribution_bounds_per_group => 3) FROM t", "DP010", "3"),
        ("SELECT SUM(x, contribution_bounds_per_group => (1)) FROM t", "DP010", ")"),
        ("SELECT SUM(x, contribution_bounds_per_group => (0, 1) + 1) FROM t", "DP010", "+"),
        ("SELECT SUM(x, contribution_bounds_per_group => (0, 1)", "DP010", None),
        ("SELECT ANON_SUM(x CLAMPED BETWEEN 0 AND) FROM t", "DP115", ")"),
        ("SELECT ANON_SUM(x CLAMPED BETWEEN 0 AND 1 + 1) FROM t", "DP010", "+"),
        ("SELECT (1, contribution_bounds_per_group => (0, 1))", "DP014", "contribution_bounds_per_group"),
        ("SELECT SUM(x, contribution_bounds_per_group => (0, 1)) OVER () FROM t", "DP014", None),
    ],
)
def test_what_is_no_clause_is_refused_where_it_stands(sql: str, code: str, place: str | None) -> None:
    with pytest.raises(Rejected) as refusal:
        read(sql)
    (found,) = refusal.value.diagnostics
    assert found.code == code and found.help and found.span is not None
    assert place is None or sql[found.span.start : found.span.end] == place


def test_every_cut_of_a_clause_ends_in_a_query_or_a_refusal() -> None:
    """No prefix, and no loss of one token, gives anything but a parsed query or a coded refusal."""
    sql = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, group_selection_strategy = PUBLIC_GROUPS) g, "
        "COUNT(*, contribution_bounds_per_group => (0, 4)) AS n, ANON_SUM(x CLAMPED BETWEEN -1 AND 4) FROM t GROUP BY g"
    )
    words = sql.split()
    for text in [
        *(sql[:i] for i in range(len(sql))),
        *(" ".join(words[:i] + words[i + 1 :]) for i in range(len(words))),
    ]:
        try:
            read(text)
        except Rejected as refusal:
            assert refusal.diagnostics[0].code in ("DP010", "DP011", "DP012", "DP014", "DP115", "DP406")


def test_placeholders_are_numbered_beside_a_clause() -> None:
    sql = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*, contribution_bounds_per_group => (0, 4)) "
        "FROM t WHERE a = ? AND b = ?"
    )
    found = [node.sql("duckdb") for node in read(sql).tree.find_all(exp.EQ)]
    assert found == ["b = $2", "a = $1"] or found == ["a = $1", "b = $2"]


def test_an_epsilon_of_the_clause_stands_in_place_of_the_session_s_rho() -> None:
    given = QuerySettings(rho=Fraction(3))
    found = with_clause(given, clause("epsilon = 0.5"))
    assert (found.epsilon, found.rho) == (Fraction(1, 2), None)
    assert with_clause(given, clause("delta = 1e-9")).rho == 3
