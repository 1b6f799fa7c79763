"""FROM: kinds of joins, what their conditions become, which names are visible, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import duckdb
import pytest

from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Column
from dpsql.core.ir.nodes import Filter, Join, JoinKind, Node, Project, Scan
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.bound import BoundQuery
from dpsql.frontend.parse import parse
from dpsql.policy.policy import Policy
from tests.support.planning import planned, policy

TABLES = {
    "a": {"x": "INTEGER", "y": "INTEGER", "z": "INTEGER"},
    "b": {"x": "INTEGER", "w": "INTEGER", "y": "BIGINT"},
    "c": {"x": "INTEGER", "v": "INTEGER"},
    "s": {"x": "VARCHAR", "label": "VARCHAR"},
}


@cache
def public() -> Policy:
    text = "".join(
        f"{name}: {{public: true, columns: {{{', '.join(f'{c}: {{type: {t}}}' for c, t in columns.items())}}}}}\n"
        for name, columns in TABLES.items()
    )
    return policy(text, head="")


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, columns in TABLES.items():
            connection.execute(f"CREATE TABLE {name} ({', '.join(f'{c} {t}' for c, t in columns.items())})")
        yield connection


def bound(sql: str) -> BoundQuery:
    return bind(parse(Source(sql)), public())


def joins(sql: str) -> list[Join]:
    """The joins of a query, outermost first."""
    return [n for n in walk(bound(sql).root) if isinstance(n, Join)]


def shape(node: Node) -> str:
    """A tree of joins as text: left(a, b)."""
    match node:
        case Join(kind=kind, left=left, right=right):
            return f"{kind.value}({shape(left)}, {shape(right)})"
        case Scan(table=table):
            return table
        case Project(input=child) | Filter(input=child):
            return shape(child)
        case _:
            return type(node).__name__.lower()


def refused(sql: str, of: Policy | None = None) -> str:
    with pytest.raises(Rejected) as caught:
        bind(parse(Source(sql)), of or public())
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.help and diagnostic.span is not None, sql
    return f"{diagnostic.code} {diagnostic.message} | {' '.join(diagnostic.help)}"


# --- kinds and shapes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a JOIN b ON a.x = b.x", "inner(a, b)"),
        ("a INNER JOIN b USING (x)", "inner(a, b)"),
        ("a NATURAL JOIN b", "inner(a, b)"),
        ("a, b", "cross(a, b)"),
        ("a CROSS JOIN b", "cross(a, b)"),
        ("a JOIN b ON TRUE", "cross(a, b)"),
        ("a LEFT JOIN b ON TRUE", "left(a, b)"),
        ("a LEFT OUTER JOIN b USING (x)", "left(a, b)"),
        ("a RIGHT JOIN b USING (x)", "left(b, a)"),
        ("a RIGHT OUTER JOIN b ON a.x = b.x", "left(b, a)"),
        ("a NATURAL RIGHT JOIN b", "left(b, a)"),
        ("a FULL JOIN b ON a.x = b.x", "full(a, b)"),
        ("a NATURAL FULL OUTER JOIN b", "full(a, b)"),
        ("a SEMI JOIN b ON a.x = b.x", "semi(a, b)"),
        ("a NATURAL SEMI JOIN b", "semi(a, b)"),
        ("a ANTI JOIN b USING (x)", "anti(a, b)"),
        ("a LEFT JOIN b USING (x) RIGHT JOIN c USING (x)", "left(c, left(a, b))"),
        # A JOIN binds tighter than a comma, which shows where rows appear without a partner.
        ("c, a JOIN b ON a.x = b.x", "inner(cross(c, a), b)"),
        ("c, a LEFT JOIN b ON a.x = b.x", "left(cross(c, a), b)"),
        ("c, a RIGHT JOIN b ON a.x = b.x", "cross(c, left(b, a))"),
        ("c, a FULL JOIN b USING (x), s", "cross(cross(c, full(a, b)), s)"),
        # Brackets, and the standard's way without them.
        ("(a)", "a"),
        ("((a JOIN b USING (x)))", "inner(a, b)"),
        ("a JOIN (b JOIN c ON b.x = c.x) ON a.x = b.x", "inner(a, inner(b, c))"),
        ("a JOIN b JOIN c ON b.x = c.x ON a.x = b.x", "inner(a, inner(b, c))"),
        ("(a LEFT JOIN b USING (x)) JOIN c USING (x)", "inner(left(a, b), c)"),
        ("((a RIGHT JOIN b USING (x)) AS t JOIN c USING (x)) AS u, s", "cross(inner(left(b, a), c), s)"),
        ("(SELECT x FROM a) AS t JOIN c USING (x)", "inner(a, c)"),
        ("((SELECT x FROM a) AS t JOIN c USING (x))", "inner(a, c)"),
    ],
)
def test_shape(source: str, expected: str) -> None:
    assert shape(bound(f"SELECT COUNT(*) FROM {source}").root.input.input) == expected  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"])
def test_equalities_stand_apart_and_all_other_terms_stay_in_the_join(kind: str) -> None:
    """A term of one side is no filter: in an outer or anti join it decides about partners, not about rows."""
    on = "a.x = b.x AND a.y > 1 AND b.w = 2 AND (a.z < b.w AND b.y = a.y + 1)"
    (join,) = joins(f"SELECT COUNT(*) FROM a {kind} JOIN b ON {on}")
    assert len(join.equalities) == 2
    assert join.residual is not None and len(conjuncts(join.residual)) == 3
    lefts = {c.uid for c in join.left.columns}  # type: ignore[union-attr]
    first = join.equalities[0]
    assert isinstance(first.left, Column) and isinstance(first.right, Column)
    assert first.left.uid in lefts and first.right.uid not in lefts
    assert not any(isinstance(n, Filter) for n in walk(bound(f"SELECT * FROM a {kind} JOIN b ON {on}").root))


# --- names -----------------------------------------------------------------------------------------------------------


def chosen(sql: str) -> list[str]:
    """What each selected item is, as `table.column`; anything computed as its function."""
    root = bound(sql).root
    assert isinstance(root, Project)
    tables = {c.uid: f"{n.table}.{c.name}" for n in walk(root) if isinstance(n, Scan) for c in n.columns}
    below = {i.column.uid: i.expr for n in walk(root) if isinstance(n, Project) for i in n.items}
    found = []
    for item in root.items:
        expr = item.expr
        while isinstance(expr, Column) and expr.uid in below:
            expr = below[expr.uid]
        found.append(tables[expr.uid] if isinstance(expr, Column) else expr.function if isinstance(expr, Call) else "?")
    return found


@pytest.mark.parametrize(
    ("kind", "merged"),
    [("", "a.x"), ("LEFT", "a.x"), ("RIGHT", "b.x"), ("FULL", "coalesce"), ("SEMI", "a.x"), ("ANTI", "a.x")],
)
def test_what_using_merges(kind: str, merged: str) -> None:
    join = f"FROM a {kind} JOIN b USING (x)"
    assert chosen(f"SELECT x, a.x {join}") == [merged, "a.x"]
    if kind not in ("SEMI", "ANTI"):
        assert chosen(f"SELECT b.x, z {join}") == ["b.x", "a.z"]
        assert chosen(f"SELECT * {join}") == [merged, "a.y", "a.z", "b.w", "b.y"]
        assert chosen(f"SELECT a.* {join}") == ["a.x", "a.y", "a.z"]
        assert chosen(f"SELECT b.* {join}") == ["b.x", "b.w", "b.y"]
        assert chosen(f"SELECT x {join} JOIN c USING (x)") == [merged]


def test_using_in_a_chain_goes_on_with_the_merged_column() -> None:
    first, second = joins("SELECT COUNT(*) FROM a RIGHT JOIN b USING (x) LEFT JOIN c USING (x)")
    assert isinstance(second.left, Scan) and second.left.table == "b"
    (pair,) = first.equalities
    assert isinstance(pair.left, Column) and pair.left.uid == second.left.columns[0].uid
    assert chosen("SELECT x FROM a FULL JOIN b USING (x) RIGHT JOIN c USING (x)") == ["c.x"]
    assert chosen("SELECT a.x, b.x, c.x FROM a FULL JOIN b USING (x) RIGHT JOIN c USING (x)") == ["a.x", "b.x", "c.x"]


STARS = [
    "a RIGHT JOIN b USING (x)", "a FULL JOIN b USING (x, y)", "a NATURAL RIGHT JOIN b", "b NATURAL FULL JOIN a",
    "a JOIN b USING (y, x)", "a JOIN b USING (Y)", "a JOIN b USING (x, x)", "a SEMI JOIN b USING (x)",
    "a NATURAL ANTI JOIN b", "a RIGHT JOIN b USING (x) FULL JOIN c USING (x)", "c, a FULL JOIN b USING (x)",
    "a NATURAL JOIN c, c AS c2", "c JOIN (a RIGHT JOIN b USING (x)) USING (x)", "(a JOIN b ON a.x = b.x) AS t",
    "(a FULL JOIN b USING (x)) AS t(q)", "(SELECT * FROM a, b) AS t", "(SELECT * FROM a, b)", "a AS t(p, p)",
    "(SELECT 1 AS x, 2 AS X, 3 AS x_1)", "(a JOIN b USING (x)) AS t(p, q) LEFT JOIN c ON p = c.x",
    "(VALUES (1, 'a'), (2, 'b'))", "(VALUES (1, 2)) AS v(k)", "(VALUES (1, 2)) AS v(k, k)",
    "a SEMI JOIN b USING (x), b", "a JOIN b JOIN c ON b.x = c.x ON a.x = b.x",
    "((VALUES (1)) AS v(x) JOIN c USING (x)) LEFT JOIN a USING (x)",
]  # fmt: skip


@pytest.mark.parametrize("source", STARS)
def test_star_gives_duckdbs_names_in_its_order(engine: duckdb.DuckDBPyConnection, source: str) -> None:
    theirs = [row[0] for row in engine.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
    assert [c.name for c in bound(f"SELECT * FROM {source}").columns] == theirs


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT b.x FROM a SEMI JOIN b USING (x)",
        "SELECT w FROM a ANTI JOIN b USING (x)",
        "SELECT a.z FROM (a JOIN b USING (x)) AS t",
        "SELECT x FROM a JOIN b ON a.x = b.x",
        "SELECT COUNT(*) FROM a JOIN b ON a.x = b.x JOIN c USING (x)",
        "SELECT COUNT(*) FROM a JOIN b ON a.x = b.x NATURAL JOIN c",
        "SELECT * FROM a t JOIN b T ON TRUE",
        "SELECT * FROM c, (a JOIN c ON TRUE)",
        "SELECT * FROM a JOIN a ON TRUE",
        "SELECT t.x_2 FROM (SELECT * FROM a, b) AS t",
        "SELECT COUNT(*) FROM a JOIN b ON c.x = a.x JOIN c ON TRUE",
        "SELECT COUNT(*) FROM a JOIN b",
        "SELECT COUNT(*) FROM a LEFT JOIN b",
        "SELECT COUNT(*) FROM a NATURAL JOIN (SELECT w FROM b) AS t",
        "SELECT COUNT(*) FROM a CROSS JOIN b ON TRUE",
        "SELECT COUNT(*) FROM a NATURAL JOIN b USING (x)",
        "SELECT COUNT(*) FROM (a, b)",
        "SELECT 1 t JOIN b USING (x)",
        "SELECT *",
    ],
)
def test_what_duckdb_refuses_is_refused(engine: duckdb.DuckDBPyConnection, sql: str) -> None:
    with pytest.raises(duckdb.Error):
        engine.execute(sql)
    with pytest.raises(Rejected) as caught:
        bound(sql)
    assert {d.code for d in caught.value.diagnostics} <= {"DP010", "DP101", "DP102", "DP103", "DP104", "DP116"}


def test_conditions_see_tables_before_the_comma(engine: duckdb.DuckDBPyConnection) -> None:
    """As in DuckDB: where the item itself has no such column."""
    for on in ("a.x = c.x", "z = c.v", "y = c.x"):
        sql = f"SELECT COUNT(*) FROM a, b JOIN c ON {on}"
        engine.execute(sql)
        (inner, cross) = joins(sql)
        assert inner.kind is JoinKind.INNER and cross.kind is JoinKind.CROSS
    (inner, cross) = joins("SELECT COUNT(*) FROM a, b JOIN c ON y = c.x")
    assert inner.equalities[0].left == cross.right.columns[2]  # type: ignore[union-attr]
    for kind in ("RIGHT", "FULL"):
        text = refused(f"SELECT COUNT(*) FROM a, b {kind} JOIN c ON a.x = c.x")
        assert text.startswith("DP102") and kind in text and "CROSS JOIN for the comma" in text


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "code", "repair"),
    [
        ("a JOIN b", "DP116", "CROSS JOIN"),
        ("a INNER JOIN b JOIN c USING (x)", "DP116", "CROSS JOIN"),
        ("a FULL JOIN b", "DP116", "FULL JOIN … ON"),
        ("a RIGHT JOIN b", "DP116", "RIGHT JOIN … ON"),
        ("a NATURAL LEFT JOIN s AS t(p, q)", "DP116", "ON"),
        ("a ASOF JOIN b ON a.x >= b.x", "DP118", "ON"),
        ("a ASOF LEFT JOIN b ON a.x >= b.x", "DP118", "ON"),
        ("a POSITIONAL JOIN b", "DP118", "ON"),
        ("a RIGHT SEMI JOIN b USING (x)", "DP118", "SEMI"),
        ("a FULL ANTI JOIN b USING (x)", "DP118", "ANTI"),
        ("a NATURAL CROSS JOIN b", "DP118", "CROSS"),
        ("LATERAL (SELECT 1 AS q) AS l", "DP118", "FROM t, LATERAL"),
        ("a LEFT JOIN LATERAL (SELECT a.x AS q) AS l ON TRUE", "DP111", "around"),
        ("a JOIN s USING (x)", "DP117", "same type"),
        ("a NATURAL JOIN s", "DP117", "same type"),
        ("a JOIN s ON a.x = s.x", "DP117", "same type"),
        ("a LEFT JOIN s ON a.z > 1 AND (s.label = a.y)", "DP117", "same type"),
        ("(a, b)", "DP101", "CROSS JOIN"),
        ("a TABLESAMPLE 10%", "DP101", "all rows"),
        ("a JOIN b USING (x) USING SAMPLE 3", "DP101", ""),
        ("read_csv('x')", "DP101", "VALUES"),
        ("'data.csv'", "DP102", ""),
        ("a JOIN b USING (q)", "DP103", ""),
        ("(a JOIN b USING (x)) AS t(p, q, r, s, u, v)", "DP101", "one name"),
    ],
)
def test_refused_by_name(source: str, code: str, repair: str) -> None:
    text = refused(f"SELECT COUNT(*) FROM {source}")
    assert text.startswith(code) and repair in text.partition("|")[2], text


def test_brackets_nest_to_any_depth() -> None:
    source = "a"
    for depth in range(20):
        source = f"({source} LEFT JOIN c AS c{depth} ON a.x = c{depth}.x)"
    assert len(joins(f"SELECT a.y FROM {source}")) == 20
    assert refused(f"SELECT COUNT(*) FROM {'(' * 300}a{')' * 300}").startswith("DP010")


def test_other_dialects_join_alike() -> None:
    for dialect, source in {
        "spark": "a LEFT SEMI JOIN b ON a.x = b.x",
        "postgres": "a LEFT OUTER JOIN b USING (x)",
        "snowflake": "a NATURAL RIGHT JOIN b",
        "bigquery": "a JOIN b USING (x)",
    }.items():
        assert bind(parse(Source(f"SELECT COUNT(*) FROM {source}"), dialect), public()).columns


# --- one plan for every spelling -------------------------------------------------------------------------------------

STAR = """
lines:
  unit: {rows: 1}
  columns: {orderkey: {type: bigint}, partkey: {type: bigint}, price: {type: double, bounds: [0, 100]}}
orders: {public: true, primary_key: [orderkey], columns: {orderkey: {type: bigint}, custkey: {type: bigint}}}
customer: {public: true, primary_key: [custkey], columns: {custkey: {type: bigint}, nationkey: {type: integer}}}
nation:
  public: true
  primary_key: [nationkey]
  columns: {nationkey: {type: integer}, regionkey: {type: integer}, name: {type: varchar}}
region: {public: true, primary_key: [regionkey], columns: {regionkey: {type: integer}, title: {type: varchar}}}
"""
FIVE = {
    "comma": """FROM lines l, orders o, customer c, nation n, region r
        WHERE l.orderkey = o.orderkey AND o.custkey = c.custkey AND c.nationkey = n.nationkey
          AND n.regionkey = r.regionkey AND title = 'ASIA'""",
    "comma, in another order": """FROM lines AS l, orders AS o, customer AS c, nation AS n, region AS r
        WHERE n.regionkey = r.regionkey AND title = 'ASIA' AND n.nationkey = c.nationkey AND o.custkey = c.custkey
          AND o.orderkey = l.orderkey""",
    "on": """FROM lines l JOIN orders o ON l.orderkey = o.orderkey INNER JOIN customer c ON c.custkey = o.custkey
        JOIN nation n ON c.nationkey = n.nationkey JOIN region r ON n.regionkey = r.regionkey WHERE title = 'ASIA'""",
    "using": """FROM lines JOIN orders USING (orderkey) JOIN customer USING (custkey) JOIN nation USING (nationkey)
        JOIN region USING (regionkey) WHERE title = 'ASIA'""",
    "natural": """FROM lines NATURAL JOIN orders NATURAL JOIN customer NATURAL JOIN nation NATURAL JOIN region
        WHERE title = 'ASIA'""",
    "brackets": """FROM (((lines JOIN orders USING (orderkey)) JOIN customer USING (custkey)) JOIN nation
        USING (nationkey)) JOIN region USING (regionkey) WHERE title = 'ASIA'""",
    "cross": """FROM lines l CROSS JOIN orders o CROSS JOIN customer c JOIN nation n ON c.nationkey = n.nationkey,
        region r
        WHERE n.regionkey = r.regionkey AND c.custkey = o.custkey AND title = 'ASIA' AND l.orderkey = o.orderkey""",
}


def test_five_tables_in_seven_spellings_are_one_plan() -> None:
    of = policy(STAR, head="")
    plans = {n: planned(f"SELECT SUM(price) AS s, COUNT(*) AS n {source}", of) for n, source in FIVE.items()}
    assert len({p.hash for p in plans.values()}) == 1
    assert all(p.tree.node == plans["on"].tree.node for p in plans.values())
    other = planned(f"SELECT SUM(price) AS s, COUNT(*) AS n {FIVE['on'].replace('c.nationkey', 'c.custkey')}", of)
    assert other.hash not in {p.hash for p in plans.values()}


def test_intervals_are_no_join_keys() -> None:
    spans = policy("spans: {public: true, columns: {x: {type: interval}}}\n", head="")
    for on in ("ON a.x = b.x", "USING (x)"):
        with pytest.raises(Rejected) as caught:
            bind(parse(Source(f"SELECT COUNT(*) FROM spans AS a JOIN spans AS b {on}")), spans)
        (found,) = caught.value.diagnostics
        assert (found.code, found.message) == ("DP117", "INTERVAL columns cannot be join keys")
