"""Subqueries in expressions: which join stands for each, which names mean what, and what is refused where."""

from __future__ import annotations

import pytest

from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, columns_of
from dpsql.core.ir.nodes import Aggregate, Filter, Join, JoinKind, Node, Project, Window, inputs, output_columns
from dpsql.core.ir.walk import expressions, walk
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse
from tests.support.planning import policy

POLICY = policy(
    """
people:
  unit: {column: pid, of: person}
  primary_key: [pid]
  columns: {pid: {type: bigint, nullable: false}, city: {type: varchar}, age: {type: integer}}
visits:
  unit: {column: pid, of: person}
  columns: {pid: {type: bigint, nullable: false}, city: {type: varchar}, cost: {type: double, bounds: [0, 9]}}
codes:
  public: true
  columns: {code: {type: integer}, label: {type: varchar}, n: {type: integer, nullable: false}}
more:
  public: true
  columns: {code: {type: integer}, x: {type: integer}, n: {type: integer, nullable: false}}
"""
)


def bound(sql: str, parameters: object = ()) -> Node:
    return bind(parse(Source(sql)), POLICY, parameters).root  # type: ignore[arg-type]


def text(e: Expr | None) -> str:
    match e:
        case Column(name=name):
            return name
        case Literal(value=value):
            return repr(value)
        case Call(function=function, args=args):
            return f"{function}({', '.join(map(text, args))})"
        case Cast(arg=arg):
            return f"cast({text(arg)})"
        case _:
            return ""


def joins(node: Node) -> list[str]:
    """Every join of the plan, from the top: kind, equalities, residual."""
    found = []
    for j in walk(node):
        if isinstance(j, Join):
            on = [f"{text(p.left)} = {text(p.right)}" for p in j.equalities]
            on += [] if j.residual is None else [text(j.residual)]
            found.append(f"{'scalar ' if j.scalar else ''}{j.kind.value} {' and '.join(on)}".strip())
    return found


def filters(node: Node) -> list[str]:
    return [text(f.predicate) for f in walk(node) if isinstance(f, Filter)]


def require_resolved(node: Node) -> None:
    """Every expression reads columns of its own inputs only, and no number stands for two columns."""
    for n in walk(node):
        below = {c.uid for child in inputs(n) for c in output_columns(child)}
        for e in expressions(n):
            assert columns_of(e) <= below, (type(n), text(e))
    made = [
        c.uid
        for n in walk(node)
        for c in (
            [i.column for i in n.items]
            if isinstance(n, Project)
            else [k.column for k in n.keys] + [c.column for c in n.calls]
            if isinstance(n, Aggregate)
            else []
        )
    ]
    assert len(made) == len(set(made))


def refused(sql: str, code: str, under: str) -> str:
    """The refusal's text; its caret stands under `under`."""
    with pytest.raises(Rejected) as caught:
        bound(sql)
    first = caught.value.diagnostics[0]
    assert first.code == code, str(caught.value)
    assert first.span is not None and sql[first.span.start : first.span.end] == under, str(caught.value)
    assert first.help and all(first.help)
    return " ".join([first.message, first.label])


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("code IN (SELECT code FROM more)", "semi code = code"),
        ("(code) IN ((SELECT code FROM more))", "semi code = code"),
        ("code = ANY (SELECT code FROM more)", "semi code = code"),
        ("code = SOME (SELECT code FROM more)", "semi code = code"),
        ("n < ANY (SELECT x FROM more)", "semi lt(n, x)"),
        ("n + 1 IN (SELECT x FROM more)", "semi add(n, 1) = x"),
        ("(n, code) IN (SELECT n, x FROM more)", "semi n = n and code = x"),
        ("(n, code) = ANY (SELECT n, x FROM more)", "semi n = n and code = x"),
        ("EXISTS (SELECT * FROM more)", "semi"),
        ("EXISTS (FROM more)", "semi"),
        ("NOT EXISTS (SELECT 1 FROM more)", "anti"),
        ("NOT NOT EXISTS (SELECT 1 FROM more)", "semi"),
        ("NOT (EXISTS (SELECT 1 FROM more))", "anti"),
        ("EXISTS (SELECT 1 FROM more m WHERE m.code = codes.code)", "semi code = code"),
        ("EXISTS (SELECT 1 FROM more m WHERE codes.code = m.code AND x > codes.n)", "semi code = code and gt(x, n)"),
        ("EXISTS (SELECT codes.n FROM more m WHERE m.code = codes.code)", "semi code = code"),
        ("EXISTS (SELECT 1 FROM more m WHERE m.code = codes.code LIMIT 1)", "semi code = code"),
        ("EXISTS (SELECT 1 FROM more m WHERE m.code = codes.code LIMIT ALL)", "semi code = code"),
        ("EXISTS (SELECT 1 FROM more WHERE label = 'a')", "semi eq(label, 'a')"),
        ("n IN (SELECT n FROM more m WHERE m.code = codes.code)", "semi code = code and n = n"),
        ("n IN (SELECT DISTINCT n FROM more m WHERE m.code = codes.code)", "semi code = code and n = n"),
        ("n IN (SELECT MAX(n) FROM more m WHERE m.code = codes.code GROUP BY x)", "semi code = code and n = max(n)"),
        ("n IN (SELECT n FROM more m WHERE m.code = codes.code ORDER BY x)", "semi code = code and n = n"),
    ],
)
def test_conditions_are_semi_and_anti_joins(condition: str, expected: str) -> None:
    node = bound(f"SELECT COUNT(*) FROM codes WHERE {condition}")
    assert joins(node) == [expected]
    require_resolved(node)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n NOT IN (SELECT n FROM more)", "anti n = n"),
        ("NOT (n IN (SELECT n FROM more))", "anti n = n"),
        ("NOT n = ANY (SELECT n FROM more)", "anti n = n"),
        ("n NOT IN (SELECT x FROM more)", "anti coalesce(eq(n, x), True)"),
        ("code NOT IN (SELECT n FROM more)", "anti coalesce(eq(code, n), True)"),
        ("n NOT IN (SELECT x FROM more WHERE x IS NOT NULL)", "anti n = x"),
        ("n NOT IN (SELECT x FROM more WHERE x > 3)", "anti n = x"),
        ("n NOT IN (SELECT x FROM more WHERE x > 3 OR n = 1)", "anti coalesce(eq(n, x), True)"),
        ("code IS NOT NULL AND code NOT IN (SELECT n FROM more)", "anti code = n"),
        ("n NOT IN (SELECT MAX(n) FROM more)", "anti coalesce(eq(n, max(n)), True)"),
        ("n NOT IN (SELECT n FROM more GROUP BY n)", "anti n = n"),
        ("n NOT IN (SELECT COUNT(*) FROM more GROUP BY x)", "anti n = count(*)"),
        ("n NOT IN (SELECT n + 1 FROM more)", "anti coalesce(eq(n, n + 1), True)"),
        ("n NOT IN (SELECT a.n FROM more a LEFT JOIN more b ON a.x = b.x)", "anti n = n"),
        ("n NOT IN (SELECT b.n FROM more a LEFT JOIN more b ON a.x = b.x)", "anti coalesce(eq(n, n), True)"),
        ("n NOT IN (SELECT b.n FROM more a FULL JOIN more b ON a.x = b.x)", "anti coalesce(eq(n, n), True)"),
        ("n NOT IN (SELECT n FROM more UNION SELECT x FROM more)", "anti coalesce(eq(n, n), True)"),
        ("n NOT IN (SELECT n FROM more EXCEPT SELECT x FROM more)", "anti n = n"),
        ("(n, code) NOT IN (SELECT n, x FROM more)", "anti n = n and coalesce(eq(code, x), True)"),
        ("NOT (n < ANY (SELECT x FROM more))", "anti coalesce(lt(n, x), True)"),
    ],
)
def test_not_in_is_exact_about_null(condition: str, expected: str) -> None:
    node = bound(f"SELECT COUNT(*) FROM codes WHERE {condition}")
    assert joins(node)[0] == expected
    require_resolved(node)


def test_a_constant_is_compared_inside_the_subquery() -> None:
    node = bound("SELECT COUNT(*) FROM codes WHERE 5 IN (SELECT n FROM more)")
    assert joins(node) == ["semi"] and filters(node) == ["eq(5, n)"]
    node = bound("SELECT COUNT(*) FROM codes WHERE 5 NOT IN (SELECT x FROM more)")
    assert joins(node) == ["anti"] and filters(node) == ["coalesce(eq(5, x), True)"]


def test_other_terms_are_filters_below_the_join() -> None:
    node = bound(
        "SELECT COUNT(*) FROM codes WHERE n > 1 AND (label = 'a' AND code IN (SELECT code FROM more)) AND n < 9"
    )
    (join,) = [j for j in walk(node) if isinstance(j, Join)]
    assert filters(join.left) == ["and(and(gt(n, 1), eq(label, 'a')), lt(n, 9))"]


def test_conditions_over_groups_join_above_them() -> None:
    node = bound(
        "SELECT label, COUNT(*) FROM codes GROUP BY label "
        "HAVING COUNT(*) > 1 AND label IN (SELECT label FROM codes) "
        "AND NOT EXISTS (SELECT 1 FROM more WHERE label = 'q')"
    )
    assert joins(node) == ["anti eq(label, 'q')", "semi label = label"]
    require_resolved(node)


# --- scalars ---------------------------------------------------------------------------------------------------------


def test_a_scalar_subquery_joins_below_the_clause_that_uses_it() -> None:
    node = bound("SELECT COUNT(*) FROM codes WHERE n > 2 AND n > (SELECT AVG(x) FROM more)")
    assert joins(node) == ["scalar cross"] and filters(node) == ["gt(n, avg(x))", "gt(n, 2)"]
    require_resolved(node)
    node = bound("SELECT SUM(n - (SELECT MIN(x) FROM more)) / (SELECT MAX(x) FROM more) FROM codes")
    outer, inner = (j for j in walk(node) if isinstance(j, Join))
    assert isinstance(outer.left, Aggregate) and outer.left.input is inner
    require_resolved(node)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT (SELECT COUNT(*) FROM codes) / (SELECT COUNT(*) FROM more)",
        "SELECT label, (SELECT MAX(x) FROM more) FROM codes ORDER BY (SELECT MIN(n) FROM more) + n",
        "SELECT label FROM codes GROUP BY label HAVING COUNT(*) > (SELECT MAX(x) FROM more) "
        "ORDER BY (SELECT MIN(x) FROM more)",
        "SELECT COUNT(*) FILTER (WHERE n > (SELECT MIN(x) FROM more)) + (SELECT MAX(x) FROM more) FROM codes",
        "WITH q AS (\nSELECT MAX(x) AS top FROM more) SELECT (SELECT top FROM q), (SELECT top + 1 FROM q)",
        "SELECT (SELECT MAX(n) FROM (SELECT n, (SELECT MIN(x) FROM more) AS m FROM codes) WHERE n > m), (SELECT 1)",
        "SELECT n FROM codes WHERE n > (SELECT MAX(x) FROM more WHERE n < (SELECT AVG(n) FROM codes))"
        " AND n < (SELECT SUM(x) FROM more)",
        "SELECT CASE WHEN n > (SELECT AVG(n) FROM codes) THEN 1 END, COALESCE((SELECT MAX(x) FROM more), 0) FROM codes",
    ],
)
def test_several_and_nested_scalars(sql: str) -> None:
    node = bound(sql)
    assert len(joins(node)) == sql.count("(SELECT ") - sql.count("FROM (SELECT")
    assert set(joins(node)) == {"scalar cross"}
    require_resolved(node)


def test_the_same_scalar_is_joined_once_per_level() -> None:
    node = bound("SELECT n / (SELECT MAX(x) FROM more) FROM codes ORDER BY (SELECT MAX(x) FROM more) - n")
    assert joins(node) == ["scalar cross"]
    node = bound("SELECT n / (SELECT MAX(x) FROM more) FROM codes WHERE n > (SELECT MAX(x) FROM more)")
    assert joins(node) == ["scalar cross", "scalar cross"]


def test_a_correlated_aggregate_is_grouped_by_what_it_is_correlated_on() -> None:
    node = bound("SELECT COUNT(*) FROM codes c WHERE n > (SELECT AVG(x) FROM more m WHERE m.code = c.code AND m.n > 1)")
    (join,) = [j for j in walk(node) if isinstance(j, Join)]
    assert joins(node) == ["scalar left code = code"]
    assert isinstance(join.right, Aggregate) and [text(k.expr) for k in join.right.keys] == ["code"]
    assert filters(node) == ["gt(n, avg)", "gt(n, 1)"]
    require_resolved(node)


def test_of_no_rows_count_is_0_and_other_aggregates_null() -> None:
    node = bound("SELECT (SELECT COUNT(*) + MAX(x) FROM more m WHERE m.code = c.code) FROM codes c")
    assert isinstance(node, Project) and text(node.items[0].expr) == "add(coalesce(count, 0), max)"


def test_correlated_on_expressions_on_several_keys_and_twice_on_one() -> None:
    node = bound(
        "SELECT (SELECT SUM(x) FROM more m WHERE m.n + 1 = c.n * 2 AND c.code = m.code AND m.code = c.n) FROM codes c"
    )
    assert joins(node) == ["scalar left mul(n, 2) = key and code = code and n = code"]
    (join,) = [j for j in walk(node) if isinstance(j, Join)]
    assert isinstance(join.right, Aggregate) and [text(k.expr) for k in join.right.keys] == ["add(n, 1)", "code"]
    require_resolved(node)


def test_correlated_with_a_group_key() -> None:
    node = bound(
        "SELECT label, COUNT(*) / (SELECT SUM(x) FROM more m WHERE m.code = LENGTH(c.label)) "
        "FROM codes c GROUP BY label"
    )
    assert joins(node) == ["scalar left length(label) = code"]
    require_resolved(node)
    refused("SELECT label, (SELECT SUM(x) FROM more m WHERE m.code = c.n) FROM codes c GROUP BY label", "DP109", "c.n")


def test_an_aggregate_with_a_scalar_of_its_own() -> None:
    node = bound("SELECT (SELECT SUM(x) - (SELECT MAX(n) FROM codes) FROM more m WHERE m.code = c.code) FROM codes c")
    assert joins(node) == ["scalar left code = code", "scalar cross"]
    require_resolved(node)


def test_private_tables_are_left_to_the_analysis() -> None:
    node = bound("SELECT COUNT(*) FROM people WHERE pid NOT IN (SELECT pid FROM visits WHERE cost > 3)")
    assert joins(node) == ["anti pid = pid"]
    node = bound("SELECT COUNT(*) FROM people p WHERE 3 < (SELECT SUM(cost) FROM visits v WHERE v.pid = p.pid)")
    assert joins(node) == ["scalar left pid = pid"]


# --- names -----------------------------------------------------------------------------------------------------------


def kinds(node: Node) -> list[JoinKind]:
    return [j.kind for j in walk(node) if isinstance(j, Join)]


def test_inner_names_come_first() -> None:
    node = bound("SELECT COUNT(*) FROM codes WHERE EXISTS (SELECT 1 FROM more WHERE code = n)")
    assert joins(node) == ["semi"] and filters(node) == ["eq(code, n)"]
    node = bound("SELECT COUNT(*) FROM codes WHERE EXISTS (SELECT 1 FROM more WHERE code = codes.n)")
    assert joins(node) == ["semi n = code"]


def test_an_alias_hides_the_outer_table() -> None:
    node = bound("SELECT COUNT(*) FROM codes c WHERE EXISTS (SELECT 1 FROM more c WHERE c.code = c.n)")
    assert joins(node) == ["semi"] and filters(node) == ["eq(code, n)"]
    refused("SELECT COUNT(*) FROM codes c WHERE EXISTS (SELECT 1 FROM more c WHERE c.label = 'a')", "DP103", "c.label")


def test_ambiguous_only_within_one_level() -> None:
    sql = "SELECT COUNT(*) FROM codes a, codes b WHERE EXISTS (SELECT 1 FROM more WHERE {} = 1)"
    bound(sql.format("code"))
    refused(sql.format("label"), "DP104", "label")


def test_names_that_using_merged_and_with_queries_reach_subqueries() -> None:
    node = bound(
        "WITH q AS (SELECT code, x FROM more) SELECT COUNT(*) FROM codes JOIN more USING (code) "
        "WHERE EXISTS (SELECT 1 FROM q WHERE q.code = more.code) "
        "AND x IN (SELECT q.x FROM q JOIN q AS r USING (code, x))"
    )
    assert kinds(node) == [JoinKind.SEMI, JoinKind.SEMI, JoinKind.INNER, JoinKind.INNER]
    node = bound(
        "SELECT COUNT(*) FROM codes JOIN more USING (code) WHERE EXISTS (SELECT 1 FROM visits WHERE cost = code)"
    )
    assert joins(node)[0] == "semi code = cost"
    bound("SELECT COUNT(*) FROM codes WHERE n IN (WITH q AS (SELECT x FROM more) SELECT * FROM q)")


def test_parameters_in_the_order_of_the_text() -> None:
    node = bound(
        "SELECT COUNT(*) FROM codes WHERE n > ? AND n IN (SELECT n FROM more WHERE x = ?) AND n < ?", (1, 2, 3)
    )
    assert sorted(filters(node)) == ["and(gt(n, 1), lt(n, 3))", "eq(x, 2)"]


# --- refusals --------------------------------------------------------------------------------------------------------

IN = "(SELECT x FROM more)"


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (f"SELECT COUNT(*) FROM codes WHERE NOT (n = 1 OR n IN {IN})", "may be NULL"),
        (f"SELECT COUNT(*) FROM codes WHERE NOT (n = 1 AND n NOT IN {IN})", "may be NULL"),
        (f"SELECT COUNT(*) FROM codes WHERE CASE WHEN n = 1 THEN n IN {IN} END", "may be NULL"),
        (f"SELECT COUNT(*) FROM codes WHERE CASE n = 1 WHEN n IN {IN} THEN TRUE END", "may be NULL"),
        (f"SELECT n IN {IN} FROM codes", "may be NULL"),
        (f"SELECT COUNT(*) FROM codes GROUP BY n IN {IN}", "may be NULL"),
        (f"SELECT COUNT(*) FROM codes WHERE (EXISTS {IN}) IS TRUE", "equalities"),
        (f"SELECT COUNT(*) FROM codes WHERE EXISTS {IN} = (n = 1)", "equalities"),
        (f"SELECT EXISTS {IN}", "equalities"),
        (f"SELECT SUM(CASE WHEN EXISTS {IN} THEN 1 END) FROM codes", "equalities"),
        (f"SELECT COUNT(*) FROM codes ORDER BY EXISTS {IN}", "equalities"),
        (f"SELECT COUNT(*) FROM codes WHERE n = 1 OR n < ANY {IN}", "condition of WHERE or HAVING"),
        (f"SELECT COUNT(*) FROM codes JOIN more ON EXISTS {IN}", "condition of WHERE or HAVING"),
        (f"SELECT COUNT(*) FROM codes QUALIFY ROW_NUMBER() OVER () = 1 OR n IN {IN}", "condition of WHERE or HAVING"),
    ],
)
def test_conditions_inside_other_expressions(sql: str, why: str) -> None:
    assert why in refused(sql, "DP111", IN)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) FROM codes WHERE n = 1 OR code IN (SELECT x FROM more)", ["left code = x"]),
        ("SELECT COUNT(*) FROM codes WHERE n = 1 OR (code, n) IN (SELECT x, n FROM more)", ["left code = x and n = n"]),
        ("SELECT COUNT(*) FROM codes WHERE n = 1 OR n = ANY (SELECT x FROM more)", ["left n = x"]),
        ("SELECT n IN (SELECT n FROM more) FROM codes", ["left n = n"]),
        ("SELECT n NOT IN (SELECT n FROM more) FROM codes", ["left n = n"]),
        ("SELECT n IN (SELECT n FROM more) a FROM codes GROUP BY a", ["left n = n"]),
        ("SELECT n IN (SELECT n FROM more) a FROM codes GROUP BY n IN (SELECT n FROM more)", ["left n = n"]),
        ("SELECT COUNT(*) FILTER (WHERE code IN (SELECT x FROM more)) FROM codes", ["left code = x"]),
        ("SELECT SUM(CASE WHEN code IN (SELECT x FROM more) THEN 1 END) FROM codes", ["left code = x"]),
        ("SELECT COUNT(*) FROM codes c WHERE NOT (n = 1 OR EXISTS (SELECT 1 FROM more WHERE more.code = c.code))",
         ["left code = code"]),
        ("SELECT code FROM codes GROUP BY code HAVING COUNT(*) > 3 OR code IN (SELECT x FROM more)", ["left code = x"]),
    ],
)  # fmt: skip
def test_conditions_as_values_look_up_distinct_rows(sql: str, expected: list[str]) -> None:
    node = bound(sql)
    assert joins(node) == expected
    (right,) = [n.right for n in walk(node) if isinstance(n, Join)]
    assert isinstance(right, Aggregate) and not right.calls
    require_resolved(node)


@pytest.mark.parametrize(
    ("subquery", "why"),
    [
        ("(SELECT x FROM more)", "no row, or several"),
        ("(SELECT x FROM more WHERE n = 3)", "no row, or several"),
        ("(SELECT x FROM more ORDER BY x LIMIT 2)", "LIMIT"),
        ("(SELECT MAX(x) FROM more LIMIT 0)", "LIMIT"),
        ("(SELECT MAX(x) FROM more HAVING COUNT(*) > 3)", "HAVING"),
        ("(SELECT MAX(x) FROM more GROUP BY n)", "each group"),
        ("(SELECT DISTINCT x FROM more)", "distinct"),
        ("(SELECT MAX(x) FROM more UNION ALL SELECT 1)", "several"),
        ("(SELECT 1 FROM more, codes)", "several"),
        ("(SELECT MAX(x), MIN(x) FROM more)", "one column, not 2"),
        ("(SELECT * FROM more)", "one column, not 3"),
        ("(SELECT x FROM more m WHERE m.code = c.code)", "one aggregate"),
        ("(SELECT MAX(x) FROM more m WHERE m.code = c.code GROUP BY x)", "one aggregate"),
        ("(SELECT MAX(x) FROM more m WHERE m.code = c.code HAVING COUNT(*) > 1)", "one aggregate"),
        ("(SELECT MAX(x) FROM more m WHERE m.code = c.code LIMIT 1)", "one aggregate"),
        ("(SELECT 1 FROM more m WHERE m.code = c.code)", "one aggregate"),
    ],
)
def test_scalars_with_another_number_of_rows(subquery: str, why: str) -> None:
    assert why in refused(f"SELECT COUNT(*) FROM codes c WHERE n = {subquery}", "DP111", subquery)


@pytest.mark.parametrize(
    "sql",
    [
        "(SELECT SUM(x) FROM more LIMIT 3)",
        "(SELECT MAX(x) FROM more ORDER BY 1)",
        "(SELECT 7)",
    ],
)
def test_scalars_with_exactly_one_row(sql: str) -> None:
    bound(f"SELECT COUNT(*) FROM codes c WHERE n = {sql}")


def test_the_value_of_a_first_row_is_read_as_in() -> None:
    first = "(SELECT x FROM more ORDER BY x LIMIT 1)"
    assert bound(f"SELECT COUNT(*) FROM codes c WHERE n = {first}") == bound(
        f"SELECT COUNT(*) FROM codes c WHERE n IN {first}"
    )


@pytest.mark.parametrize(
    ("condition", "under"),
    [
        ("n > (SELECT AVG(x) FROM more m WHERE m.code > c.code)", "m.code > c.code"),
        ("n > (SELECT AVG(x) FROM more m WHERE c.n > 1)", "c.n > 1"),
        ("n > (SELECT AVG(x) FROM more m WHERE m.n = c.n + m.x)", "m.n = c.n + m.x"),
        ("n > (SELECT AVG(x) FROM more m WHERE m.n = 1 OR m.n = c.n)", "m.n = 1 OR m.n = c.n"),
        ("n > (SELECT AVG(x + c.n) FROM more m)", "c.n"),
        ("n > (SELECT AVG(x) + c.n FROM more m)", "c.n"),
        ("n > (SELECT AVG(x) FILTER (WHERE m.n = c.n) FROM more m)", "c.n"),
        ("n > (SELECT AVG(x) FROM more m ORDER BY c.n)", "c.n"),
        ("n IN (SELECT c.n FROM more m WHERE m.code = c.code)", "c.n"),
        ("n IN (SELECT x FROM more m GROUP BY x, c.n)", "c.n"),
        ("n IN (SELECT x FROM more m GROUP BY x HAVING COUNT(*) > c.n)", "c.n"),
        ("EXISTS (SELECT 1 FROM more m JOIN more k ON k.x = c.n)", "c.n"),
        ("EXISTS (SELECT 1 FROM (SELECT 1 FROM more m WHERE x = c.n))", "c.n"),
        ("EXISTS (WITH q AS (SELECT c.n) SELECT 1 FROM q)", "c.n"),
        ("EXISTS (SELECT x FROM more m WHERE x = c.n UNION SELECT 1)", "c.n"),
        ("EXISTS (SELECT 1 FROM more m WHERE EXISTS (SELECT 1 FROM more WHERE x=c.n))", "c.n"),
        ("EXISTS (SELECT 1 FROM more m WHERE c.n IN (SELECT x FROM more))", "c.n"),
        ("n NOT IN (SELECT MAX(x) FROM more m WHERE c.code = 3)", "c.code = 3"),
        ("EXISTS (SELECT x FROM more m WHERE c.code = 3 GROUP BY x)", "c.code = 3"),
        ("EXISTS (SELECT COUNT(*) FROM more m WHERE m.code = c.code)", None),
        ("EXISTS (SELECT n, COUNT(*) FROM more m WHERE m.x < c.n GROUP BY n)", None),
        ("n IN (SELECT x FROM more m WHERE m.code < c.code LIMIT 2)", None),
        ("EXISTS (SELECT 1 FROM more m WHERE m.code < c.code OFFSET 1)", None),
        (
            "n IN (SELECT x FROM more m WHERE m.code < c.code "
            "QUALIFY ROW_NUMBER() OVER (ORDER BY x) = 1)",
            None,
        ),
    ],
)  # fmt: skip
def test_outer_names_where_no_join_can_bring_them(condition: str, under: str | None) -> None:
    sql = f"SELECT COUNT(*) FROM codes c WHERE {condition}"
    refused(sql, "DP111", sql[sql.index("(SELECT") :] if under is None else under)


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("n IN (SELECT x FROM more m WHERE m.code = c.code LIMIT 2)", ["le(row_number, 2)"]),
        ("EXISTS (SELECT 1 FROM more m WHERE m.code = c.code LIMIT 0)", ["le(row_number, 0)"]),
        ("EXISTS (SELECT 1 FROM more m WHERE m.code = c.code OFFSET 1)", ["gt(row_number, 1)"]),
        (
            "n IN (SELECT x FROM more m WHERE m.code = c.code LIMIT 2 OFFSET 1)",
            ["gt(row_number, 1)", "le(row_number, 3)"],
        ),
        (
            "n IN (SELECT x FROM more m WHERE m.code = c.code QUALIFY ROW_NUMBER() OVER (ORDER BY x) = 1)",
            ["eq(row_number, 1)"],
        ),
        ("n IN (SELECT ROW_NUMBER() OVER (ORDER BY x) FROM more m WHERE m.n = c.n)", []),
    ],
)
def test_limits_and_windows_of_each_outer_row(condition: str, kept: list[str]) -> None:
    """Equalities alone tie them: they are those of the rows with the same value."""
    root = bound(f"SELECT COUNT(*) FROM codes c WHERE {condition}")
    (window,) = [n for n in walk(root) if isinstance(n, Window)]
    (call,) = window.calls
    assert [text(e) for e in call.partition] == ["n" if "m.n" in condition else "code"]
    assert [text(n.predicate) for n in walk(root) if isinstance(n, Filter)] == kept


def test_other_refusals() -> None:
    refused("SELECT COUNT(*) FROM codes WHERE n > ALL (SELECT x FROM more)", "DP111", "(SELECT x FROM more)")
    refused("SELECT COUNT(*) FROM codes WHERE n IN (SELECT x, n FROM more)", "DP106", "(SELECT x, n FROM more)")
    refused("SELECT COUNT(*) FROM codes WHERE (n, n) IN (SELECT x FROM more)", "DP106", "(SELECT x FROM more)")
    refused(
        "SELECT COUNT(*) FROM codes WHERE (n, n) <> ANY (SELECT x, n FROM more)", "DP111", "(SELECT x, n FROM more)"
    )
    refused("SELECT COUNT(*) FROM codes GROUP BY (SELECT MAX(x) FROM more)", "DP111", "(SELECT MAX(x) FROM more)")
    refused("SELECT (SELECT MAX(x) FROM more) m, COUNT(*) FROM codes GROUP BY m", "DP111", "(SELECT MAX(x) FROM more)")
    refused("SELECT (SELECT MAX(x) FROM more), COUNT(*) FROM codes GROUP BY ALL", "DP111", "(SELECT MAX(x) FROM more)")
    refused("SELECT COUNT(*) FROM codes LIMIT (SELECT 1)", "DP111", "(SELECT 1)")
    refused("SELECT COUNT(*) FROM codes c JOIN more ON c.n = (SELECT 1)", "DP111", "(SELECT 1)")
    refused("SELECT SUM(CLIP(n, 0, (SELECT MAX(x) FROM more))) FROM codes", "DP115", "(SELECT MAX(x) FROM more)")
    refused(
        "SELECT COUNT(*) FROM codes WHERE label = (SELECT MAX(n) FROM more)",
        "DP106",
        "label = (SELECT MAX(n) FROM more",
    )
    refused("SELECT COUNT(*) FROM codes WHERE n IN (SELECT nothing FROM more)", "DP103", "nothing")
    refused("SELECT COUNT(*) FROM codes WHERE n IN (SELECT x FROM nothing)", "DP102", "nothing")
    refused("SELECT DISTINCT label FROM codes ORDER BY (SELECT MAX(x) FROM more)", "DP109", "(SELECT MAX(x) FROM more)")


def test_several_refusals_of_one_where_are_told_together() -> None:
    with pytest.raises(Rejected) as caught:
        bound(
            "SELECT COUNT(*) FROM codes WHERE nothing = 1 AND n IN (SELECT none FROM more) "
            "AND EXISTS (SELECT 1 FROM nowhere)"
        )
    assert [d.code for d in caught.value.diagnostics] == ["DP103", "DP103", "DP102"]
