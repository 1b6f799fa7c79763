"""Conditions that no row satisfies together: pairs by hand, and random ones against the engine itself."""

from __future__ import annotations

from itertools import product

import pytest

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.nodes import Project, Scan
from dpsql.core.ir.types import BOOLEAN, DOUBLE
from dpsql.planner.exclusive_conditions import ANY, MOST_CASES, PossibleValues, are_disjoint, cases_of
from tests.support.planning import derived, policy

POOLS: dict[str, tuple[str, tuple[str, ...]]] = {
    "i": ("INTEGER", ("0", "1", "2", "5", "-1")),
    "k": ("BIGINT", ("0", "1", "2", "9223372036854775807", "-9223372036854775808", "9007199254740993")),
    "u": ("UBIGINT", ("0", "1", "2", "18446744073709551615")),
    "h": ("HUGEINT", ("0", "1", "170141183460469231731687303715884105727")),
    "s": ("VARCHAR", ("'a'", "'A'", "'b'", "''", "'a '", "'é'", "'ä'", "'a' || chr(0)", "'ﬀ'", "'😀'", "chr(65535)")),
    "b": ("BOOLEAN", ("true", "false")),
    "d": ("DATE", ("DATE '2024-01-01'", "DATE '2024-01-31'", "DATE '1999-12-31'", "DATE 'infinity'", "'-infinity'",
                   "DATE '294247-01-11'")),
    "t": ("TIMESTAMP", ("TIMESTAMP '2024-01-01'", "TIMESTAMP '2024-01-31 23:59:59.999999'", "TIMESTAMP 'infinity'",
                        "TIMESTAMP '1999-12-31 00:00:00'")),
    "x": ("DECIMAL(9,2)", ("0", "0.1", "2.5", "-1.25", "9999999.99")),
    "w": ("DECIMAL(38,10)", ("0", "0.1", "2.5", "2.4999999999", "9999999999999999999999999999.9999999999",
                             "9999999999999999999999999999.9999999998")),
    "f": ("DOUBLE", ("0", "-0.0", "1.5", "2.5", "'nan'", "'inf'", "1e300", "0.1")),
}  # fmt: skip
COLUMNS = "\n".join(f'    {name}: {{type: "{type_}"}}' for name, (type_, _) in POOLS.items())
POLICY = policy(f"t:\n  unit: {{rows: 1}}\n  columns:\n{COLUMNS}")


def filters(*conditions: str) -> tuple[list[Expr], Facts]:
    """The conditions as a plan has them, and the facts of the rows that they are about."""
    listed = ", ".join(f"{c} AS c{i}" for i, c in enumerate(conditions))
    tree = derived(f"SELECT {listed} FROM t", POLICY)
    project = next(t for t in tree.walk() if isinstance(t.node, Project) and isinstance(t.inputs[0].node, Scan))
    assert isinstance(project.node, Project)
    return [item.expr for item in project.node.items], project.inputs[0].fact


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s = 'a'", "s = 'b'"),
        ("'a' = s", "s IN ('b', 'c')"),
        ("s IN ('a', 'b')", "s IN ('c', 'd')"),
        ("s IN ('a', 'b')", "s NOT IN ('a', 'b', 'c')"),
        ("s = 'a'", "s <> 'a'"),
        ("s = 'a'", "s IS NULL"),
        ("s <> 'a'", "s IS NULL"),
        ("s LIKE 'a%'", "NOT s LIKE 'a%'"),
        ("s IS NULL", "s IS NOT NULL"),
        ("s IS NOT DISTINCT FROM 'a'", "s IS DISTINCT FROM 'a'"),
        ("s IS NOT DISTINCT FROM NULL", "s >= ''"),
        ("b", "NOT b"),
        ("b = true", "NOT b"),
        ("b IS TRUE", "b = false"),
        ("b", "b IS NULL"),
        ("i < 3", "i >= 3"),
        ("i < 3", "i > 3"),
        ("i <= 3", "i > 3"),
        ("i BETWEEN 1 AND 2", "i BETWEEN 3 AND 4"),
        ("i NOT BETWEEN 1 AND 2", "i = 1"),
        ("3 > i", "i BETWEEN 3 AND 4"),
        ("i = 3 AND b", "i = 4 AND b"),
        ("i = 3 AND s = 'a'", "s = 'b' AND k = 2"),
        ("i = 1 OR i = 2", "i = 3 OR i > 4"),
        ("NOT (i = 1 OR s = 'a')", "i = 1"),
        ("(i = 1 AND s = 'a') OR (i = 2 AND s = 'b')", "(i = 1 AND s = 'b') OR (i = 2 AND s = 'a')"),
        ("i IN (1, 2) AND i <> 2", "i = 2"),
        ("i < 3 AND i > 1", "i <= 1"),
        ("d >= '2024-01-01' AND d < '2024-02-01'", "d >= '2024-02-01'"),
        ("t < DATE '2024-01-01'", "t >= TIMESTAMP '2024-01-01 00:00:00'"),
        ("year(d) = 2023", "year(d) = 2024"),
        ("upper(s) = 'A'", "upper(s) = 'B'"),
        ("x = 2.5", "x = 2"),
        ("x < 2.5", "x >= 2.50"),
        ("f < 1", "f >= 1"),
        ("f = 0.5", "f <> 0.5"),
        ("i < k", "i >= k"),
        ("i > k", "NOT (k < i)"),
        ("k = 9223372036854775807", "k = 9223372036854775806"),
        ("false", "i = 1"),
        ("i = NULL", "i = 1"),
        ("i NOT IN (1, NULL)", "i = 1"),
        ("i = 1 AND i = 2", "s = 'a'"),
        ("s = 'a'", "(s = 'a') IS NOT TRUE"),
        ("s LIKE 'a%'", "(s LIKE 'a%') IS NOT TRUE"),
        ("s LIKE 'a%'", "(s LIKE 'a%') IS NULL"),
        ("b", "b IS NOT TRUE"),
        ("NOT b", "b IS NOT FALSE"),
        ("i = 1 AND s = 'a'", "(i = 1 AND s = 'a') IS NOT TRUE"),
        ("d >= '2024-01-01' AND d < '2024-02-01'", "(d >= '2024-01-01' AND d < '2024-02-01') IS NOT TRUE"),
        ("NOT (i = 1 OR s = 'a')", "(i = 1 OR s = 'a') IS NOT FALSE"),
        ("i = 2", "(i = 1 OR i = 2 OR i < k) IS NOT TRUE"),
        ("i = 2 OR s = 'a'", "((i = 2 OR s = 'a') OR i IN (3, 4)) IS NOT TRUE"),
        ("i = 2 AND b", "((i = 2 AND b) OR (i = 3 AND b) OR (i = 4 AND b)) IS NOT TRUE"),
        ("(NOT b) IS NOT TRUE", "NOT b"),
        ("(i = 1) IS FALSE", "i = 1"),
    ],
)
def test_pairs_that_exclude_each_other(one: str, other: str) -> None:
    (a, b), _ = filters(one, other)
    assert are_disjoint(cases_of(a), cases_of(b)) and are_disjoint(cases_of(b), cases_of(a))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s IN ('a', 'b')", "s IN ('b', 'c')"),
        ("s = 'a'", "i = 1"),
        ("s = 'a'", "s >= 'a'"),
        ("s = 'a'", "upper(s) = 'B'"),
        ("i <= 3", "i >= 3"),
        ("i BETWEEN 1 AND 3", "i BETWEEN 3 AND 5"),
        ("i < 4", "i > 3"),  # no integer lies between, which is not looked for
        ("s <> 'a'", "s <> 'b'"),
        ("s IS DISTINCT FROM 'a'", "s IS NULL"),
        ("b IS NOT TRUE", "b IS NULL"),
        ("b IS NOT FALSE", "b"),
        ("i = 3 OR s = 'a'", "i = 4"),
        ("f = 0.0", "f = -0.0"),
        ("f = 0.1", "f = 0.2"),  # DOUBLEs are never compared here
        ("k = 9007199254740993.0", "k = 9007199254740992.0"),  # in DECIMAL or DOUBLE
        ("w = 0.1", "w = 0.2"),
        ("s = upper(s)", "s = 'a'"),
        ("i = 1", "k = 2"),
        ("NOT (i = 1 AND s = 'a')", "i = 1"),
        ("s = 'a'", "(s = 'b') IS NOT TRUE"),
        ("i IN (1, NULL)", "(i IN (2, NULL)) IS NOT FALSE"),
        ("i = 2", "(i IN (1, NULL)) IS NOT FALSE"),
        ("i = 2", "(i = NULL) IS NOT FALSE"),
        ("d <> DATE '2024-01-01'", "(d <> TIMESTAMP '2024-01-01 00:00:00') IS NOT TRUE"),  # no TIMESTAMP for some
        ("i IS NULL", "(i = 1) IS NOT TRUE"),
        ("i IS NULL", "(i = 1 AND s = 'a') IS NOT TRUE"),
        ("i = 1", "(i = 1 AND s = 'a') IS NOT TRUE"),
        ("NOT b", "b IS NOT TRUE"),
    ],
)
def test_pairs_that_do_not(one: str, other: str) -> None:
    (a, b), _ = filters(one, other)
    assert not are_disjoint(cases_of(a), cases_of(b)) and not are_disjoint(cases_of(b), cases_of(a))


def test_no_condition_excludes_nothing() -> None:
    (a,), _ = filters("s = 'a'")
    assert cases_of(None) == ANY and not are_disjoint(cases_of(None), cases_of(a)) and not are_disjoint(ANY, ANY)


def test_zeros_of_two_signs_are_two_arguments() -> None:
    """-0.0 = 0.0, in Python too, but atan2 tells them apart."""

    def negative(zero: float) -> Expr:
        return Call("lt", (Call("atan2", (Column(1, "f", DOUBLE), Literal(zero, DOUBLE)), DOUBLE),) * 2, BOOLEAN)

    assert negative(0.0) == negative(-0.0)
    yes, no = cases_of(negative(0.0)), cases_of(negative(-0.0), False)
    assert not are_disjoint(yes, no) and are_disjoint(yes, cases_of(negative(0.0), False))


def test_long_conditions_are_cut_short_and_stay_true() -> None:
    many = " OR ".join(f"(i = {n} AND s = '{n}')" for n in range(MOST_CASES + 1))
    (a, b, c, d), _ = filters(many, "i = 99", f"({many}) AND i = 1", "i = 2")
    assert cases_of(a) == ANY and not are_disjoint(cases_of(a), cases_of(b))
    assert are_disjoint(cases_of(c), cases_of(d))


def test_both_ways_of_meeting_agree() -> None:
    """`excludes` says what `meet` finds, over all pairs of small sets; and a value that both hold is never lost."""
    ends = [None, *((n, out) for n in (1, 2) for out in (False, True))]
    ranges = [
        PossibleValues(null, None, low, high, without)
        for null, low, high, without in product(
            (False, True), ends, ends, (frozenset(), frozenset({1}), frozenset({2}))
        )
    ]
    listed = [PossibleValues(null, frozenset(v)) for null in (False, True) for v in ((), (1,), (2,), (1, 2), (0, 3))]
    every = [*ranges, *listed]
    for a, b in product(every, every):
        found = a.meet(b)
        assert a.excludes(b) == found.nothing
        for value in (0, 1, 2, 3):
            inside = [p._holds(value) and (p.values is None or value in p.values) for p in (a, b, found)]
            assert inside[2] == (inside[0] and inside[1])
            assert not (inside[2] and found.nothing)
        assert found.null == (a.null and b.null) and not (found.null and found.nothing)
