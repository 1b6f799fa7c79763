"""Conditions that exclude each other, against rows of every kind."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from typing import Any

import duckdb
import pytest

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Call, Column, Expr, Literal, walk
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.printing.expressions import Names, condition
from dpsql.planner import exclusive_conditions as exclusive
from dpsql.planner.exclusive_conditions import PossibleValues, are_disjoint, cases_of
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.planner.test_exclusive_conditions import POOLS, filters

LITERALS: dict[str, tuple[str, ...]] = {
    "i": ("0", "1", "2", "5", "2.5", "1.0", "9223372036854775807"),
    "k": ("0", "1", "2", "9223372036854775807", "9223372036854775806", "9007199254740993", "9007199254740992.0", "1.5"),
    "u": ("0", "1", "18446744073709551615", "18446744073709551614"),
    "h": ("0", "1", "170141183460469231731687303715884105727", "170141183460469231731687303715884105726"),
    "s": ("'a'", "'A'", "'b'", "''", "'a '", "'é'", "'ä'", "'ff'", "'ﬀ'", "'😀'"),
    "b": ("true", "false"),
    "d": ("DATE '2024-01-01'", "DATE '2024-01-31'", "'1999-12-31'", "TIMESTAMP '2024-01-01 00:00:01'",
          "TIMESTAMP '2024-01-01 00:00:00'"),
    "t": ("TIMESTAMP '2024-01-01'", "DATE '2024-01-01'", "TIMESTAMP '2024-01-31 23:59:59.999999'", "DATE '2024-01-31'"),
    "x": ("0", "0.1", "0.10", "2.5", "2", "0.1e0", "0.10000000000000000001", "2.499999999999999999999",
          "CAST(0.1 AS DECIMAL(9,2))"),
    "w": ("0", "0.1", "2.5", "2.4999999999", "2.5000000000000000001", "2.4999999999999999999",
          "CAST(2.5 AS DECIMAL(38,10))", "CAST(2.4999999999 AS DECIMAL(38,10))",
          "9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999998"),
    "f": ("0", "-0.0", "1.5", "2.5", "0.1", "1e300"),
}  # fmt: skip


# --- against the engine -----------------------------------------------------------------------------------------------


def term(rng: random.Random, column: str) -> str:
    """One condition on a column."""
    value, other, third = (rng.choice(LITERALS[column]) for _ in range(3))
    if rng.random() < 0.12:
        return rng.choice((f"{column} IS NULL", f"{column} IS NOT NULL"))
    if column == "b" and rng.random() < 0.6:
        return rng.choice(("b", "NOT b", "b IS TRUE", "b IS NOT TRUE", "b IS FALSE", "b IS NOT FALSE", "b = false"))
    if column == "s" and rng.random() < 0.2:
        return rng.choice(("upper(s) = 'A'", "upper(s) = 'B'", "s LIKE 'a%'", "length(s) = 1", "length(s) = 2"))
    shape = rng.random()
    if shape < 0.3:
        return f"{column} {'NOT ' if rng.random() < 0.3 else ''}IN ({value}, {other}{', NULL' * (rng.random() < 0.1)})"
    if shape < 0.4:
        return f"{column} {'NOT ' if rng.random() < 0.3 else ''}BETWEEN {value} AND {other}"
    sign = rng.choice(("=", "=", "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
    return f"{third} {sign} {column}" if rng.random() < 0.2 else f"{column} {sign} {value}"


def sentence(rng: random.Random, columns: tuple[str, ...], depth: int = 2) -> str:
    if depth and rng.random() < 0.4:
        a, b = sentence(rng, columns, depth - 1), sentence(rng, columns, depth - 1)
        whole = rng.choice(("NOT TRUE", "NOT TRUE", "TRUE", "FALSE", "NOT FALSE", "NULL"))
        ways = f"({a} AND {b})", f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})", f"({a}) IS {whole}"
        return rng.choice(ways)
    return term(rng, rng.choice(columns))


def truths(
    store: duckdb.DuckDBPyConnection, columns: tuple[str, ...], conditions: list[Expr], facts: Facts
) -> list[Any]:
    """For every row over the columns' pools the truth of every condition, as the engine evaluates what is emitted."""
    used = {e.uid: DUCKDB.identifier(e.name) for where in conditions for e in walk(where) if isinstance(e, Column)}
    printed = [condition(where, Names(used, facts.env, DUCKDB)) for where in conditions]
    pools = [
        "(SELECT * FROM (VALUES "
        + ", ".join(f"(CAST({v} AS {POOLS[c][0]}))" for v in (*POOLS[c][1], "NULL"))
        + f") AS _({DUCKDB.identifier(c)}))"
        for c in columns
    ]
    return store.execute(f"SELECT {', '.join(printed)} FROM {' CROSS JOIN '.join(pools)}").fetchall()


def contradictions(seeds: range, first: bool = False) -> tuple[list[str], int, int]:
    """(pairs that are claimed and that a row satisfies both, claimed pairs, pairs that no row satisfies).

    first: stop where one is found.
    """
    store, found, claimed, true = duckdb.connect(config={"threads": 1}), [], 0, 0
    for seed in seeds:
        if first and found:
            break
        rng = random.Random(seed)
        columns = tuple(rng.sample(list(POOLS), rng.choice((1, 1, 2))))
        texts = [sentence(rng, columns) for _ in range(30)]
        conditions, facts = filters(*texts)
        rows = truths(store, columns, conditions, facts)
        cases = [cases_of(where) for where in conditions]
        for a, b in combinations(range(len(texts)), 2):
            never = not any(row[a] and row[b] for row in rows)
            true += never
            if are_disjoint(cases[a], cases[b]):
                claimed += 1
                if not never:
                    found.append(f"seed {seed}: {texts[a]}  |  {texts[b]}")
    store.close()
    return found, claimed, true


def test_no_row_satisfies_two_conditions_that_are_claimed_to_exclude_each_other() -> None:
    found, claimed, true = contradictions(range(120))
    assert not found, found[:5]
    assert claimed > 5_000 and claimed > 0.25 * true, (claimed, true)


@pytest.mark.exhaustive
def test_no_row_satisfies_two_conditions_thoroughly() -> None:
    found, claimed, _ = contradictions(range(10_000, 11_200))
    assert not found and claimed > 48_000


def _unlike(self: PossibleValues, other: PossibleValues) -> bool:
    return self != other and self.values is not None and other.values is not None


def _touching(real: Callable[..., Any]) -> Callable[..., Any]:
    def compared(term: Call, name: str, *rest: Any) -> Any:
        return real(term, {"le": "lt", "ge": "gt"}.get(name, name), *rest)

    return compared


def _coarse(type_: Any, literal: Literal) -> bool:
    return True


def _two_valued(real: Callable[..., Any]) -> Callable[..., Any]:
    """NOT t as if t were never NULL: `x IS NULL` would exclude `NOT (x = 1)` rightly, `(x = 1) IS NOT TRUE` wrongly."""

    def cases(where: Expr | None, truth: bool = True) -> Any:
        if isinstance(where, Call) and where.function in ("is_not_true", "is_not_false"):
            return real(where.args[0], (where.function == "is_not_false") is truth)
        if isinstance(where, Call) and where.function == "not" and isinstance(where.args[0], Call):
            inner = where.args[0]
            if inner.function == "is_not_distinct_from" and inner.args[1:] == (Literal(True, BOOLEAN),):
                return real(inner.args[0], not truth)
        return real(where, truth)

    return cases


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "lists that share a value": lambda m: m.setattr(PossibleValues, "excludes", _unlike),
    "<= against >=": lambda m: m.setattr(exclusive, "_compared", _touching(exclusive._compared)),
    "decimals in DOUBLE": lambda m: m.setattr(exclusive, "_exact", _coarse),
    "NULL with its argument only": lambda m: m.setattr(
        exclusive, "_null_with_its_argument", lambda term: isinstance(term, Call)
    ),
    "two-valued logic": lambda m: m.setattr(exclusive, "cases_of", _two_valued(exclusive.cases_of)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    monkeypatch.setitem(globals(), "cases_of", exclusive.cases_of)
    assert contradictions(range(400), first=True)[0]
