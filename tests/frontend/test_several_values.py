"""ANY and ALL of lists, and rows compared with rows, mean what SQL says of them, also of NULL."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import duckdb
import pytest

from dpsql.core.ir.fingerprint import fingerprint
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.service.checks.check import static_plan
from dpsql.service.planning.statement_signature import signature
from tests.support.planning import policy

POLICY = policy("""
t:
  public: true
  columns:
    i: {type: integer}
    a: {type: integer}
    s: {type: varchar}
p:
  unit: {rows: 1}
  columns:
    s: {type: varchar, domain: [a, b, c]}
    i: {type: integer, bounds: [0, 9]}
""")
Truth = bool | None
VALUES = (None, 1, 2, 3)
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute("CREATE TABLE t (i INTEGER, a INTEGER, s VARCHAR)")
        made.executemany("INSERT INTO t VALUES (?, ?, 's')", list(product(VALUES, VALUES)))
        yield made


def found(
    sql: str, connection: duckdb.DuckDBPyConnection, dialect: str = "postgres", parameters: Any = ()
) -> list[Any]:
    plan = static_plan(Source(sql), POLICY, parameters, dialect=dialect)
    return connection.execute(plan.post.sql).fetchall()


def compare(op: str, x: Any, y: Any) -> Truth:
    return None if x is None or y is None else OPERATORS[op](x, y)


def both(truths: list[Truth]) -> Truth:
    return False if False in truths else None if None in truths else True


def either(truths: list[Truth]) -> Truth:
    return True if True in truths else None if None in truths else False


def in_array(items: tuple[Any, ...]) -> str:
    return "{" + ",".join("NULL" if x is None else str(x) for x in items) + "}"


@pytest.mark.parametrize("items", [(), (1,), (None,), (1, 3), (2, None, 3)])
@pytest.mark.parametrize("op", OPERATORS)
def test_any_and_all_of_a_list(op: str, items: tuple[Any, ...], connection: duckdb.DuckDBPyConnection) -> None:
    """Given as a text, as an array, and as a parameter of either kind."""
    for word, joined in (("ANY", either), ("ALL", both)):
        array = f"ARRAY[{', '.join('NULL' if x is None else str(x) for x in items)}]"
        spelled: list[tuple[str, tuple[Any, ...]]] = [
            (f"'{in_array(items)}'", ()), (f"'{in_array(items)}'::int[]", ()), ("$1", (in_array(items),)),
            ("$1", (list(items),)), ("$1::int[]", (list(items),)),
        ]  # fmt: skip
        spelled += [(array, ())] if items else [("ARRAY[]::int[]", ())]
        for written, parameters in spelled:
            rows = found(f"SELECT i, i {op} {word}({written}) AS v FROM t", connection, parameters=parameters)
            assert len(rows) == 16
            for x, truth in rows:
                assert truth is joined([compare(op, x, y) for y in items]), (written, word, x)


def rows_compared(op: str, left: tuple[Any, ...], right: tuple[Any, ...]) -> Truth:
    """Rows by SQL's standard: by order, the first place that is not equal decides; NULL there is unknown."""
    if op in ("=", "<>"):
        same = both([compare("=", x, y) for x, y in zip(left, right, strict=True)])
        return same if op == "=" or same is None else not same
    for x, y in zip(left, right, strict=True):
        if (equal := compare("=", x, y)) is not True:
            return None if equal is None else compare(op, x, y)
    return compare(op, 0, 0)


@pytest.mark.parametrize("op", OPERATORS)
def test_rows_with_rows(op: str, connection: duckdb.DuckDBPyConnection) -> None:
    for right in product((None, 1, 2), (1, None, 3)):
        written = ", ".join("NULL" if x is None else str(x) for x in right)
        for i, a, truth in found(f"SELECT i, a, (i, a) {op} ({written}) AS v FROM t", connection):
            assert truth is rows_compared(op, (i, a), right), (op, i, a, right)


@pytest.mark.parametrize(
    "condition",
    [
        "(i, a) = (i, a)", "(i, a) = (1, NULL)", "(i, a) IN ((1, NULL))", "(i, a) = (1, 2)", "(i, a) <> (1, 2)",
        "(i, a) IN ((1, 2), (3, 3))", "(i, a) NOT IN ((1, 2), (3, 3))",
    ],
)  # fmt: skip
def test_in_duckdbs_dialect_rows_mean_what_duckdb_says(condition: str, connection: duckdb.DuckDBPyConnection) -> None:
    """A NULL in a row is equal to NULL there, so that a comparison is never NULL."""
    for sql in (
        f"SELECT i, a, {condition} AS v FROM t ORDER BY i, a",
        f"SELECT i, a FROM t WHERE {condition} ORDER BY i, a",
    ):
        assert found(sql, connection, "duckdb") == connection.execute(sql).fetchall()


def test_a_list_of_keys_narrows_the_groups_as_in_does() -> None:
    texts = ("s = ANY('{a,b}')", "s = ANY($1)", "s IN ('a', 'b')")
    plans = [
        static_plan(Source(f"SELECT s, COUNT(*) AS n FROM p WHERE {text} GROUP BY s"), POLICY,
                    [["a", "b"]] if "$1" in text else [], dialect="postgres")
        for text in texts
    ]  # fmt: skip
    assert len({fingerprint(plan.tree.node) for plan in plans}) == 1


def test_parameters_side_by_side() -> None:
    """`$1,$2` is no dollar quote, whose name begins with no digit; what is quoted so stays."""
    for dialect in ("duckdb", "postgres", "snowflake"):
        assert static_plan(
            Source("SELECT COUNT(*) AS n FROM p WHERE s IN ($1,$2,$3)"), POLICY, list("abc"), dialect=dialect
        )
    plan = static_plan(
        Source("SELECT $a$ $1,$2 $$$a$ AS x, '$1,$2' AS y, $1 AS z -- $1,$2"), POLICY, [7], dialect="postgres"
    )
    with duckdb.connect() as plain:
        assert plain.execute(plan.post.sql).fetchall() == [(" $1,$2 $$", "$1,$2", 7)]


def test_what_a_statement_takes_is_told_before_values_are_known() -> None:
    def takes(sql: str) -> list[str]:
        return [t.name for t in signature(Source(sql), POLICY, dialect="postgres").parameters]

    assert takes("SELECT COUNT(*) FROM p WHERE s = ANY($1)") == ["VARCHAR[]"]
    assert takes("SELECT COUNT(*) FROM p WHERE i <> ALL($1) AND s IN ($2,$3)") == ["INTEGER[]", "VARCHAR", "VARCHAR"]
    assert takes("SELECT COUNT(*) FROM p WHERE i = ANY($1::bigint[])") == ["BIGINT[]"]


def test_a_list_that_is_null_compares_as_null(connection: duckdb.DuckDBPyConnection) -> None:
    for condition in ("i = ANY($1)", "i <> ALL($1)"):
        rows = found(f"SELECT {condition} AS v FROM t", connection, parameters=[None])
        assert {truth for (truth,) in rows} == {None}


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("s = ANY(1)", "DP111"), ("s = ANY('a,b')", "DP106"), ("s = ANY('{{a},{b}}')", "DP111"),
        ("i = ANY('{a}')", "DP106"),
        ("(i, a) = (1, 2, 3)", "DP106"), ("(i, a) IN (1, 2)", "DP106"), ("i = ANY($1)", "DP111"),
        ("i = ANY($2)", "DP013"),
        ("s = E'\\x41'", "DP101"), ("i << 40 = 1", "DP119"), ("i >> 32 = 1", "DP106"), ("s & 1 = 1", "DP106"),
    ],
)  # fmt: skip
def test_what_is_no_list_is_refused(condition: str, code: str) -> None:
    with pytest.raises(Rejected) as refusal:
        static_plan(Source(f"SELECT COUNT(*) AS n FROM t WHERE {condition}"), POLICY, [5], dialect="postgres")
    first = refusal.value.diagnostics[0]
    assert first.code == code and first.help, first.message
