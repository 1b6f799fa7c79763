"""What the planner guesses, falsified at random: no price may rest on any of it.

Each guess is a name in GUESSES and a function that puts chance in its place. Facts about stored columns stay: they are
the policy's promises, or conditions that stand in the statement.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.analysis.facts import ColumnFact, Facts
from dpsql.core.analysis.rules import private_aggregate
from dpsql.core.ir.components import Component
from dpsql.core.ir.expressions import Column, Expr, Literal
from dpsql.core.ir.nodes import Release
from dpsql.core.ir.types import Kind
from dpsql.core.measures.all_measures import rule
from dpsql.core.numbers.interval import Interval, everything, interval
from dpsql.core.values.value import Value
from dpsql.planner.rewrites.bounds import bound_contributions, choose_grids, rows_that_count
from dpsql.planner.rewrites.releases import cut_slices

Falsified = Callable[[pytest.MonkeyPatch, random.Random], None]
ENDS = (-(10**6), -8, -2, -1, 0, 1, 2, 5, 10**6)


def _of_values(change: Callable[[Value, random.Random], Value]) -> Falsified:
    """What the analysis says of an expression that is more than a column or a literal, and of an aggregate of an id."""

    def falsify(m: pytest.MonkeyPatch, rng: random.Random) -> None:
        plain, called = Facts.value, private_aggregate._called

        def guessed(self: Facts, expr: Expr) -> Value:
            found = plain(self, expr)
            believed = isinstance(expr, Column | Literal) or found.is_constant or rng.random() < 0.5
            return found if believed else change(found, rng)

        def aggregated(*given: Any) -> ColumnFact:
            found = called(*given)
            return found if rng.random() < 0.5 else replace(found, value=change(found.value, rng))

        m.setattr(Facts, "value", guessed)
        m.setattr(private_aggregate, "_called", aggregated)

    return falsify


def _interval(known: Interval, rng: random.Random) -> Interval:
    """Another one: a part of it, its middle, or any."""
    low, high = sorted(rng.sample(ENDS, 2))
    if known.lo is not None and known.hi is not None and rng.random() < 0.7:
        middle = Fraction(known.lo + known.hi) // 2
        low, high = rng.choice(((known.lo, middle), (middle, known.hi), (middle, middle), (low, high)))
        low, high = min(low, high), max(low, high)
    return interval(low, high)


def _numbers(found: Value) -> bool:
    return found.type.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE)


def _intervals(found: Value, rng: random.Random) -> Value:
    return replace(found, interval=_interval(found.interval, rng)) if _numbers(found) else found


def _ranges(found: Value, rng: random.Random) -> Value:
    if not _numbers(found) or found.type.kind is Kind.DOUBLE:
        return found
    return replace(found, range=_interval(found.range, rng) if rng.random() < 0.8 else everything(), reach=None)


def _disjoint(m: pytest.MonkeyPatch, rng: random.Random) -> None:
    """Which conditions exclude each other."""
    m.setattr(cut_slices, "are_disjoint", lambda a, b: rng.random() < 0.8)
    m.setattr(cut_slices, "ANY", None)


def _values(m: pytest.MonkeyPatch, rng: random.Random) -> None:
    """V, and how many rows of an id there are."""
    m.setattr(choose_grids, "most_values", lambda *given: rng.choice((None, 1, 1, 2, 3)))


def _rows(m: pytest.MonkeyPatch, rng: random.Random) -> None:
    m.setattr(bound_contributions, "most_rows_of_an_id", lambda *given, **of: rng.choice((None, 1, 1, 2)))
    m.setattr(rows_that_count, "most_rows_of_an_id", lambda *given: rng.choice((None, 1, 2, 3)))


def _functions(m: pytest.MonkeyPatch, rng: random.Random) -> None:
    """Which columns are functions of the id."""

    def guessed(rows: Any) -> frozenset[int]:
        some = {uid for uid in rows.fact.columns if rng.random() < 0.5}
        return rows.fact.by_id | some if rows.fact.ids else rows.fact.by_id

    m.setattr(bound_contributions, "functions_of_the_id", guessed)
    m.setattr(cut_slices, "functions_of_the_id", guessed)


def _every_row(m: pytest.MonkeyPatch, rng: random.Random) -> None:
    """Whether each row has a value."""
    plain = choose_grids._counted

    def guessed(c: Component, node: Release, facts: Facts) -> Component:
        alone = not node.keys and c.filter is None and rule(c).counts == "rows" and not rule(c).chosen
        if facts.size is None or not facts.replaced_rows or not alone:
            return plain(c, node, facts)
        return replace(c, every_row=rng.random() < 0.5)

    m.setattr(choose_grids, "_counted", guessed)


GUESSES: dict[str, Falsified] = {
    "nullable": _of_values(lambda found, rng: replace(found, nullable=not found.nullable)),
    "finite": _of_values(lambda found, rng: replace(found, finite=not found.finite)),
    "intervals": _of_values(_intervals),
    "ranges": _of_values(_ranges),
    "disjoint": _disjoint,
    "values": _values,
    "rows": _rows,
    "functions of the id": _functions,
    "every row": _every_row,
}


def falsify(m: pytest.MonkeyPatch, seed: int, guesses: Collection[str] = GUESSES) -> None:
    """Put chance in the place of these guesses."""
    for name in guesses:
        GUESSES[name](m, random.Random(f"{name} {seed}"))
