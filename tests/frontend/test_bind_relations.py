"""What set operations, grouping sets and windows are bound to."""

from __future__ import annotations

import datetime as dt

import pytest

from dpsql.core.ir.expressions import Cast, Column, Literal
from dpsql.core.ir.expressions import walk as walk_expr
from dpsql.core.ir.nodes import (
    Aggregate,
    Filter,
    Frame,
    Limit,
    Node,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    Values,
    Window,
    inputs,
    output_columns,
)
from dpsql.core.ir.types import DATE, INTEGER
from dpsql.core.ir.walk import expressions, renumbered, walk
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.clauses import grouping_sets
from dpsql.frontend.bind.parameters import MOST_TABLES, Numbering
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse
from tests.support.planning import policy

PUBLIC = policy("""
t:
  public: true
  columns:
    a: {type: integer}
    b: {type: varchar}
    c: {type: bigint}
    d: {type: date}
""")


def root(sql: str) -> Node:
    return bind(parse(Source(sql)), PUBLIC).root


def codes(sql: str) -> list[str]:
    with pytest.raises(Rejected) as refusal:
        root(sql)
    return [d.code for d in refusal.value.diagnostics]


def the(kind: type, node: Node) -> list[Node]:
    return [n for n in walk(node) if isinstance(n, kind)]


def numbers(node: Node) -> list[int]:
    """The numbers of all columns that the nodes of a plan define."""
    found: set[int] = set()
    for n in walk(node):
        if isinstance(n, Scan | Aggregate | SetOperation | Window):
            own = {c.uid for c in output_columns(n)}
            found |= own
    return sorted(found)


# --- set operations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "kind", "every"),
    [
        ("UNION", SetKind.UNION, False),
        ("UNION DISTINCT", SetKind.UNION, False),
        ("UNION ALL", SetKind.UNION, True),
        ("INTERSECT", SetKind.INTERSECT, False),
        ("INTERSECT ALL", SetKind.INTERSECT, True),
        ("EXCEPT", SetKind.EXCEPT, False),
        ("EXCEPT ALL", SetKind.EXCEPT, True),
    ],
)
def test_kinds(words: str, kind: SetKind, every: bool) -> None:
    found = root(f"SELECT a FROM t {words} SELECT a FROM t")
    assert isinstance(found, SetOperation)
    assert (found.kind, found.all) == (kind, every)


def test_each_side_is_cast_to_the_common_type() -> None:
    found = root("SELECT a, c FROM t UNION SELECT c, a FROM t")
    assert isinstance(found, SetOperation)
    first, second = found.columns
    assert isinstance(first.left, Cast) and isinstance(first.right, Column)
    assert isinstance(second.left, Column) and isinstance(second.right, Cast)
    assert {first.column.type.name, second.column.type.name} == {"BIGINT"}
    assert all(c.left.type == c.right.type == c.column.type for c in found.columns)


def test_constants_take_the_type_of_the_other_side() -> None:
    found = root("SELECT '2024-01-31', NULL UNION SELECT d, a FROM t")
    assert isinstance(found, SetOperation)
    assert [c.column.type for c in found.columns] == [DATE, INTEGER]
    assert found.columns[0].left == Literal(dt.date(2024, 1, 31), DATE)
    assert found.columns[1].left == Literal(None, INTEGER)


def test_names_are_those_of_the_left_side() -> None:
    found = bind(parse(Source("SELECT a AS x, b FROM t UNION SELECT c AS y, b AS z FROM t")), PUBLIC)
    assert [c.name for c in found.columns] == ["x", "b"]


def test_by_name_fills_with_null() -> None:
    found = root("SELECT a, b FROM t UNION ALL BY NAME SELECT d, B FROM t")
    assert isinstance(found, SetOperation)
    assert [c.column.name for c in found.columns] == ["a", "b", "d"]
    assert [isinstance(c.left, Literal) for c in found.columns] == [False, False, True]
    assert [isinstance(c.right, Literal) for c in found.columns] == [True, False, False]


def test_order_and_limit_stand_above_the_set_operation() -> None:
    found = root("SELECT a FROM t UNION SELECT c FROM t ORDER BY a DESC LIMIT 3")
    assert isinstance(found, Limit) and isinstance(found.input, Sort) and isinstance(found.input.input, SetOperation)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM t UNION SELECT a, b FROM t", ["DP106"]),
        ("SELECT a FROM t UNION SELECT b FROM t", ["DP106"]),
        ("SELECT a, d FROM t UNION SELECT b, c FROM t", ["DP106"]),  # one place: the word UNION
        ("SELECT a FROM t UNION SELECT 'x'", ["DP106"]),
        ("SELECT e FROM t UNION SELECT f FROM t", ["DP103", "DP103"]),
        ("SELECT a FROM t UNION SELECT a FROM t ORDER BY COUNT(*)", ["DP108"]),
        ("SELECT a FROM t UNION SELECT a FROM t ORDER BY RANK() OVER ()", ["DP101"]),
        ("SELECT a FROM t EXCEPT BY NAME SELECT a FROM t", ["DP101"]),
    ],
)
def test_refused_set_operations(sql: str, expected: list[str]) -> None:
    assert codes(sql) == expected


# --- grouping sets ---------------------------------------------------------------------------------------------------


def sets(clause: str) -> list[list[str]]:
    """The names of the keys of each aggregate, in the order of the sets."""
    node = root(f"SELECT COUNT(*) FROM t GROUP BY {clause}")
    return [[k.column.name for k in n.keys] for n in the(Aggregate, node) if isinstance(n, Aggregate)]


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("ROLLUP (a, b)", ["ab", "a", ""]),
        ("CUBE (a, b)", ["ab", "a", "b", ""]),
        ("CUBE ((a, b), c)", ["abc", "ab", "c", ""]),
        ("GROUPING SETS ((a, b), c, ())", ["ab", "c", ""]),
        ("GROUPING SETS (ROLLUP (a), CUBE (b))", ["a", "", "b", ""]),
        ("a, ROLLUP (b)", ["ab", "a"]),
        ("ROLLUP (a), ROLLUP (b)", ["ab", "a", "b", ""]),
        ("GROUPING SETS (a, a)", ["a", "a"]),
        ("a, b WITH ROLLUP", ["ab", "a", ""]),
        ("(a, b)", ["ab"]),
        ("a, GROUPING SETS (a, b)", ["a", "ab"]),
    ],
)
def test_sets(clause: str, expected: list[str]) -> None:
    assert ["".join(sorted(s)) for s in sets(clause)] == expected


def test_each_set_reads_the_rows_afresh() -> None:
    node = root("SELECT a, b, COUNT(*) FROM t WHERE c > 1 GROUP BY CUBE (a, b)")
    assert len(the(Scan, node)) == len(the(Filter, node)) == 4
    defined = [c.uid for n in the(Scan, node) for c in output_columns(n)]
    assert len(defined) == len(set(defined))
    for n in walk(node):  # and every expression reads what its own input has
        known = {c.uid for child in inputs(n) for c in output_columns(child)}
        read = {e.uid for x in expressions(n) for e in _columns(x)}
        assert read <= known, n


def _columns(e: object) -> list[Column]:
    return [c for c in walk_expr(e) if isinstance(c, Column)]  # type: ignore[arg-type]


def test_grouping_counts_the_last_argument_lowest() -> None:
    node = root("SELECT GROUPING(a, b) AS g, COUNT(*) FROM t GROUP BY GROUPING SETS ((a), (b), (a, b), ())")
    found = [n for n in the(SetOperation, node) if isinstance(n, SetOperation)]
    bits = [c.right.value for n in found for c in n.columns if c.column.name == "grouping" and _is(c.right)]
    bits += [c.left.value for n in found for c in n.columns if c.column.name == "grouping" and _is(c.left)]
    assert sorted(bits) == [0, 1, 2, 3]


def _is(e: object) -> bool:
    return isinstance(e, Literal)


def test_the_set_of_all_rows_without_calls_is_one_row() -> None:
    assert len(the(Values, root("SELECT a FROM t GROUP BY ROLLUP (a)"))) == 1
    assert the(Scan, root("SELECT 1 FROM t GROUP BY ()")) == []


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("CUBE (a, b, c, d, a + 1, a + 2, a + 3)", "DP101"),
        ("CUBE (a, b, c), CUBE (d, a + 1, a + 2), ROLLUP (a + 3)", "DP101"),
        ("GROUPING SETS (" + ", ".join(["a"] * 65) + ")", "DP101"),
        ("ROLLUP (a, COUNT(*))", "DP108"),
        ("ROLLUP (a, RANK() OVER ())", "DP101"),
        ("ROLLUP ('x')", "DP101"),
        ("ROLLUP ()", "DP010"),
        ("a, CUBE ()", "DP010"),
        ("ROLLUP (7)", "DP101"),
        ("ROLLUP (e)", "DP103"),
        ("ALL, a", "DP101"),
    ],
)
def test_refused_sets(clause: str, expected: str) -> None:
    assert codes(f"SELECT COUNT(*) FROM t GROUP BY {clause}") == [expected]


def test_as_many_sets_as_allowed() -> None:
    clause = ", ".join(["a"] * grouping_sets.MOST_SETS)
    assert len(sets(f"GROUPING SETS ({clause})")) == grouping_sets.MOST_SETS


def test_sets_read_tables_and_their_number_is_capped() -> None:
    tables = ", ".join(f"t AS t{i}" for i in range(MOST_TABLES // 8))
    assert codes(f"SELECT COUNT(*) FROM {tables} GROUP BY CUBE (t0.a, t0.b, t0.c)") == ["DP101"]


def test_a_renumbered_plan_is_the_same_plan() -> None:
    node = root("SELECT a, COUNT(*) FILTER (WHERE b = 'x') AS n FROM t WHERE c > 1 GROUP BY a HAVING n > 1")
    numbering = Numbering()
    for _ in range(1_000):
        numbering.column("x", INTEGER)
    copy, new = renumbered(node, lambda c: numbering.column(c.name, c.type, c.span))
    assert set(numbers(node)).isdisjoint(numbers(copy))
    assert len({c.uid for c in new.values()}) == len(new)
    back, _ = renumbered(copy, lambda c: next(old for old in _all(node) if new[old.uid].uid == c.uid))
    assert back == node


def _all(node: Node) -> list[Column]:
    return [c for n in walk(node) for c in output_columns(n)]


# --- windows ---------------------------------------------------------------------------------------------------------


def window(call: str) -> Window:
    (found,) = the(Window, root(f"SELECT {call} FROM t WINDOW w AS (PARTITION BY b), v AS (w ORDER BY a)"))
    assert isinstance(found, Window)
    return found


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("ROWS 2 PRECEDING", Frame("ROWS", -2, 0)),
        ("ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", Frame("ROWS", None, 0)),
        ("RANGE BETWEEN 1 PRECEDING AND 3 FOLLOWING", Frame("RANGE", -1, 3)),
        ("GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", Frame("GROUPS", 0, None)),
        ("ROWS BETWEEN 2 FOLLOWING AND 1 FOLLOWING", Frame("ROWS", 2, 1)),
        ("ROWS UNBOUNDED PRECEDING", Frame("ROWS", None, 0)),
        ("ROWS BETWEEN UNBOUNDED PRECEDING AND 3 PRECEDING", Frame("ROWS", None, -3)),
    ],
)
def test_frames(frame: str, expected: Frame) -> None:
    (call,) = window(f"SUM(a) OVER (ORDER BY c {frame})").calls
    assert call.frame == expected


def test_named_windows_build_on_each_other() -> None:
    (call,) = window("SUM(a) OVER (v ROWS 1 PRECEDING)").calls
    assert len(call.partition) == len(call.order) == 1
    assert call.frame == Frame("ROWS", -1, 0)


def test_equal_calls_are_one() -> None:
    assert len(window("RANK() OVER v + RANK() OVER (PARTITION BY b ORDER BY a)").calls) == 1


def test_aggregates_stand_below_windows_and_qualify_above() -> None:
    node = root("SELECT b, SUM(COUNT(*)) OVER () AS s FROM t GROUP BY b HAVING COUNT(*) > 1 QUALIFY s > 2")
    kinds = [type(n).__name__ for n in walk(node)]
    assert kinds == ["Project", "Filter", "Window", "Filter", "Aggregate", "Scan"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM t WHERE RANK() OVER () = 1", ["DP101"]),
        ("SELECT COUNT(*) FROM t GROUP BY a HAVING RANK() OVER () = 1", ["DP101"]),
        ("SELECT SUM(RANK() OVER ()) FROM t", ["DP101"]),
        ("SELECT SUM(SUM(a) OVER ()) OVER () FROM t", ["DP101"]),
        ("SELECT RANK() OVER () AS r, SUM(r) OVER () FROM t", ["DP101"]),
        ("SELECT a FROM t QUALIFY a = 1", ["DP101"]),
        ("SELECT RANK() FROM t", ["DP105"]),
        ("SELECT MEDIAN(a) OVER () FROM t", ["DP105"]),
        ("SELECT NTILE(0) OVER () FROM t", ["DP115"]),
        ("SELECT NTILE(a) OVER () FROM t", ["DP115"]),
        ("SELECT NTH_VALUE(a, 0) OVER () FROM t", ["DP115"]),
        ("SELECT LAG(a, c) OVER () FROM t", ["DP115"]),
        ("SELECT LAG(a, 1, 'x') OVER () FROM t", ["DP106"]),
        ("SELECT RANK() OVER w FROM t", ["DP103"]),
        ("SELECT RANK() OVER w FROM t WINDOW w AS (v), v AS (w)", ["DP103"]),
        ("SELECT SUM(a) OVER (ORDER BY b RANGE 1 PRECEDING) FROM t", ["DP101"]),
        ("SELECT SUM(a) OVER (PARTITION BY b GROUPS 1 PRECEDING) FROM t", ["DP101"]),
        ("SELECT SUM(a) OVER (ROWS BETWEEN CURRENT ROW AND UNBOUNDED PRECEDING) FROM t", ["DP101"]),
        ("SELECT SUM(a) OVER (ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) FROM t", ["DP101"]),
        ("SELECT SUM(a) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM t", ["DP101"]),
        ("SELECT SUM(a) OVER (ROWS 1 FOLLOWING) FROM t", ["DP101"]),
        ("SELECT SUM(a) OVER (ROWS -1 PRECEDING) FROM t", ["DP115"]),
        ("SELECT a, RANK() OVER (ORDER BY c) FROM t GROUP BY a", ["DP109"]),
        ("SELECT e, RANK() OVER (ORDER BY f) FROM t QUALIFY g = 1", ["DP103", "DP103", "DP103"]),
        ("SELECT e AS x, RANK() OVER (ORDER BY x) AS y FROM t QUALIFY y = 1 ORDER BY x, 2", ["DP103"]),
    ],
)
def test_refused_windows(sql: str, expected: list[str]) -> None:
    assert codes(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM (SELECT a, NULL AS k FROM t)",
        "SELECT x AS k FROM (SELECT a, NULL FROM t) AS s(y, x)",
        "WITH s AS (SELECT NULL AS k FROM t) SELECT k FROM s",
        "SELECT k FROM (SELECT NULL AS k UNION ALL SELECT NULL)",
        "SELECT k FROM (SELECT a FROM t) JOIN (SELECT NULL AS k, a FROM t) USING (a)",
        "SELECT k FROM (SELECT k, a FROM (SELECT NULL AS k, a FROM t))",
    ],
)
def test_nulls_of_a_query_in_from_are_integers(sql: str) -> None:
    (column,) = output_columns(root(sql))
    assert column.type == INTEGER


def test_nulls_beside_another_type_have_that_type() -> None:
    for sql in ("SELECT NULL AS k UNION ALL SELECT d FROM t", "SELECT d FROM t UNION SELECT NULL"):
        (column,) = output_columns(root(f"SELECT * FROM ({sql})"))
        assert column.type == DATE


def test_distinct_on_keeps_the_first_row_of_each_combination() -> None:
    by_name, by_place = (bind(parse(Source(f"SELECT DISTINCT ON ({e}) b, a FROM t ORDER BY a")), PUBLIC) for e in "b1")
    assert by_name.root == by_place.root
    with pytest.raises(Rejected) as refusal:
        bind(parse(Source("SELECT DISTINCT ON () a FROM t")), PUBLIC)
    assert refusal.value.diagnostics[0].code == "DP010"
