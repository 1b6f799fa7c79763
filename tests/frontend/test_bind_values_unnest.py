"""VALUES and UNNEST in FROM: what they become, and what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import pytest

from dpsql.core.ir.nodes import Filter, Join, Unnest, Values
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.diagnostic import Source
from dpsql.frontend.bind.from_clause.values import MOST_ROWS
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse
from dpsql.policy.policy import Policy
from tests.frontend.test_bind_from import refused
from tests.support.planning import below_release, planned, policy

LISTS = """
posts:
  unit: {of: person, column: author}
  max_rows_per_unit: 10
  columns:
    author: {type: bigint, nullable: false}
    tags: {type: 'varchar[]', max_length: 3}
    likes: {type: 'bigint[]'}
    title: {type: varchar}
log:
  unit: {rows: 2}
  columns:
    kind: {type: varchar, domain: [a, b]}
    sizes: {type: 'integer[]', max_length: 5}
words: {public: true, unique: [[word]], columns: {word: {type: varchar}, topic: {type: varchar}}}
"""


@cache
def lists() -> Policy:
    return policy(LISTS)


def values_of(sql: str, parameters: Any = ()) -> Values:
    root = bind(parse(Source(sql)), lists(), parameters).root
    return next(n for n in walk(root) if isinstance(n, Values))


@pytest.mark.parametrize(
    ("rows", "types", "expected"),
    [
        ("(1, 'a'), (2, 'b')", ["INTEGER", "VARCHAR"], [(1, "a"), (2, "b")]),
        ("(1), (NULL)", ["INTEGER"], [(1,), (None,)]),
        ("(NULL), (TRUE)", ["BOOLEAN"], [(None,), (True,)]),
        ("(CAST(NULL AS DATE))", ["DATE"], [(None,)]),
        ("(-1), (+2), (1 + 2 * 3)", ["INTEGER"], [(-1,), (2,), (7,)]),
        ("(1), (3000000000)", ["BIGINT"], [(1,), (3000000000,)]),
        ("(1.5), (2)", ["DECIMAL(2,1)"], [(Decimal("1.5"),), (Decimal("2.0"),)]),
        ("(1.5), (2e0)", ["DOUBLE"], [(1.5,), (2.0,)]),
        ("(1), ('2')", ["INTEGER"], [(1,), (2,)]),
        ("(DATE '2024-01-01'), ('2024-02-29')", ["DATE"], [(dt.date(2024, 1, 1),), (dt.date(2024, 2, 29),)]),
        (
            "(DATE '2024-01-01'), (TIMESTAMP '2024-02-29 10:00:00')",
            ["TIMESTAMP"],
            [(dt.datetime(2024, 1, 1),), (dt.datetime(2024, 2, 29, 10),)],
        ),
        ("(CAST(1 AS TINYINT)), (CAST('7' AS BIGINT))", ["INTEGER"], [(1,), (7,)]),  # all that is needed
        ("($1), ($2)", ["VARCHAR"], [("x",), (None,)]),
    ],
)
def test_values_have_one_type_for_each_column(rows: str, types: list[str], expected: list[tuple[Any, ...]]) -> None:
    sql = f"SELECT * FROM (VALUES {rows}) AS v"
    parameters = ["x", None] if "$" in rows else []
    node = values_of(sql, parameters)
    assert [str(c.type) for c in node.columns] == types and list(node.rows) == expected
    if not any(isinstance(v, bool) for row in expected for v in row):
        with duckdb.cursor() as engine:
            assert engine.execute(sql, parameters).fetchall() == expected


def test_values_may_stand_wherever_a_table_may() -> None:
    for sql in (
        "SELECT k FROM (VALUES (1)) AS v(k)",
        "SELECT v.k FROM VALUES (1) AS v(k)",
        "WITH v(k) AS (VALUES (1)) SELECT k FROM v",
        "WITH v AS (VALUES (1)) SELECT col0 FROM v",
        "SELECT k FROM ((VALUES (1)) AS v(k) JOIN words ON TRUE)",
        "SELECT k FROM words LEFT JOIN (VALUES (1)) AS v(k) ON TRUE",
        "SELECT * FROM ((VALUES (1))) AS v(k)",
    ):
        assert values_of(sql).rows == ((1,),), sql


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM (VALUES (1), ('x')) AS v", "DP106"),
        ("SELECT * FROM (VALUES (1), (TRUE)) AS v", "DP106"),
        ("SELECT * FROM (VALUES (NULL), (NULL)) AS v", "DP106"),
        ("SELECT * FROM (VALUES (INTERVAL 1 DAY)) AS v", "DP106"),
        ("SELECT * FROM (VALUES ([1, 2])) AS v", "DP105"),
        ("SELECT * FROM (VALUES (1), (2, 3)) AS v", "DP101"),
        ("SELECT * FROM (VALUES (1, 2)) AS v(a, b, c)", "DP101"),
        ("SELECT * FROM (VALUES (title)) AS v, posts", "DP103"),
        ("SELECT * FROM posts, (VALUES (posts.title)) AS v", "DP102"),
        ("SELECT * FROM (VALUES (COUNT(*))) AS v", "DP108"),
        ("SELECT * FROM (VALUES (random())) AS v", "DP114"),
        ("SELECT * FROM (VALUES (CAST('x' AS INTEGER))) AS v", "DP115"),
        (f"SELECT * FROM (VALUES {', '.join(['(1)'] * (MOST_ROWS + 1))}) AS v", "DP101"),
    ],
)
def test_values_refused_by_name(sql: str, code: str) -> None:
    assert refused(sql, lists()).startswith(code)


# --- UNNEST ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "selected", "most"),
    [
        ("posts, UNNEST(posts.tags) AS u(tag)", "tag, u.tag", 3),
        ("posts AS p CROSS JOIN UNNEST(p.tags) AS u(tag)", "tag", 3),
        ("posts JOIN UNNEST(tags) AS u(tag) ON TRUE", "u.tag", 3),
        ("posts, UNNEST(tags)", "unnest, unnest.unnest", 3),
        ("posts, UNNEST(tags) AS tag", "tag, tag.tag, tag.unnest, unnest", 3),
        ("posts CROSS JOIN LATERAL UNNEST(tags) AS u(tag)", "tag", 3),
        ("posts, words, UNNEST(posts.tags) AS u(tag)", "tag", 3),
        ("posts, words CROSS JOIN UNNEST(posts.tags) AS u(tag)", "tag, word", 3),
        ("(SELECT tags AS t, title FROM posts) AS q, UNNEST(t) AS u(tag)", "tag", 3),
        ("(SELECT * FROM posts WHERE title = 'x') AS q, UNNEST(tags) AS u(tag)", "tag", 3),
        ("(posts JOIN words ON title = word), UNNEST(tags) AS u(tag)", "tag", 3),
        ("(posts CROSS JOIN UNNEST(tags) AS u(tag)) AS q JOIN words ON q.tag = word", "q.tag, topic", 3),
        ("log, UNNEST(sizes) AS u(size) LEFT JOIN words ON size = 1", "size + 1", 5),
    ],
)
def test_unnest_is_cut_to_the_declared_length(source: str, selected: str, most: int) -> None:
    root = bind(parse(Source(f"SELECT {selected} FROM {source}")), lists()).root
    (node,) = [n for n in walk(root) if isinstance(n, Unnest)]
    assert node.most == most and node.column.type == node.list.type.item


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT unnest(tags) AS tag, author FROM posts",
        "SELECT author, unnest(p.tags) FROM posts AS p WHERE title = 'x' ORDER BY 2",
        "SELECT unnest(tags) AS tag, COUNT(*) AS n FROM posts GROUP BY tag HAVING COUNT(*) > 1",
        "SELECT DISTINCT unnest(tags) AS tag, upper(tag) FROM posts JOIN words ON title = word",
        "SELECT tag FROM (SELECT unnest(tags) AS tag FROM posts) AS u WHERE tag = 'a'",
    ],
)
def test_unnest_in_a_select_list_is_one_in_from(sql: str) -> None:
    root = bind(parse(Source(sql)), lists()).root
    (node,) = [n for n in walk(root) if isinstance(n, Unnest)]
    assert node.most == 3
    assert [c.name for c in bind(parse(Source(f"SELECT * FROM ({sql}) AS q")), lists()).columns] == [
        c.name for c in bind(parse(Source(sql)), lists()).columns
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT unnest(tags), unnest(tags) FROM posts",
        "SELECT unnest(sizes) + 1 FROM log",
        "SELECT SUM(unnest(sizes)) FROM log",
        "SELECT unnest(tags), COUNT(*) OVER () FROM posts",
        "SELECT unnest(tags) FROM posts GROUP BY unnest(tags)",
        "SELECT unnest(tags) FROM posts ORDER BY unnest(tags)",
        "SELECT author FROM posts WHERE unnest(tags) = 'a'",
        "SELECT unnest(tags, recursive := true) FROM posts",
        "SELECT unnest([1, 2])",
        "SELECT unnest([1, 2]) FROM posts",
    ],
)
def test_unnest_elsewhere_in_a_select_is_refused_by_name(sql: str) -> None:
    text = refused(sql, lists())
    assert text.startswith("DP101") and "FROM t, UNNEST(t.tags)" in text, text


def test_a_condition_of_unnest_is_a_filter() -> None:
    root = bind(parse(Source("SELECT tag FROM posts JOIN UNNEST(tags) AS u(tag) ON tag = title")), lists()).root
    assert [type(n) for n in walk(root)][1:3] == [Filter, Unnest]
    two = bind(parse(Source("SELECT 1 FROM posts, UNNEST(tags) u(a), UNNEST(tags) v(b)")), lists()).root
    assert sum(isinstance(n, Unnest) for n in walk(two)) == 2 and not any(isinstance(n, Join) for n in walk(two))


@pytest.mark.parametrize(
    ("source", "code", "repair"),
    [
        ("posts, UNNEST(likes) AS u(n)", "DP210", "max_length"),
        ("posts, UNNEST(title) AS u(n)", "DP106", "list column"),
        ("posts, UNNEST([1, 2]) AS u(n)", "DP101", "list column"),
        ("posts, UNNEST(range(3)) AS u(n)", "DP101", "list column"),
        ("UNNEST([1, 2]) AS u(n)", "DP101", "VALUES"),
        ("posts, UNNEST(tags, likes) AS u(n)", "DP101", "one list"),
        ("posts, UNNEST(tags) WITH ORDINALITY AS u(tag, n)", "DP101", "leave it out"),
        ("posts, UNNEST(tags) AS u(tag, n)", "DP101", "one column"),
        ("posts LEFT JOIN UNNEST(tags) AS u(tag) ON TRUE", "DP118", "CROSS JOIN UNNEST"),
        ("posts SEMI JOIN UNNEST(tags) AS u(tag) ON tag = 'x'", "DP118", "CROSS JOIN UNNEST"),
        ("posts NATURAL JOIN UNNEST(tags) AS u(title)", "DP118", "CROSS JOIN UNNEST"),
        ("posts, UNNEST(tags) AS u(tag) RIGHT JOIN words ON tag = word", "DP118", "last"),
        ("posts, UNNEST(tags), UNNEST(tags)", "DP104", "alias"),
        ("posts, UNNEST(nothing) AS u(n)", "DP103", ""),
        ("(SELECT COALESCE(tags, tags) AS t FROM posts) AS q, UNNEST(t) AS u(n)", "DP1", ""),
    ],
)
def test_unnest_refused_by_name(source: str, code: str, repair: str) -> None:
    text = refused(f"SELECT COUNT(*) FROM {source}", lists())
    assert text.startswith(code) and repair in text.partition("|")[2], text


def test_rows_of_a_unit_multiply_by_the_length() -> None:
    by_row = planned("SELECT COUNT(*) FROM log, UNNEST(sizes) AS u(size)", lists())
    assert [str(c) for c in below_release(by_row).stability.values()] == ["10"]
    by_id = planned(
        "SELECT tag, COUNT(*) FROM posts, UNNEST(tags) AS u(tag) JOIN words ON tag = word GROUP BY 1", lists()
    )
    assert [str(c) for c in below_release(by_id).stability.values()] == ["1"]


def test_names_of_columns_need_the_name_of_a_relation() -> None:
    """Else a missing comma would leave a row out."""
    assert "write a comma between rows" in refused("(VALUES (1,) (2))")
