"""What one (id, group) adds is the weight of the definition times its partial, also where ids are corrected."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isqrt, prod

import duckdb
import pytest

from dpsql.core.ir.contributions import UnitTotal
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.dialects.duckdb import DuckDB
from dpsql.core.printing.forms.weights import (
    SMALL,
    WeightedTerm,
    divisors,
    of_unit,
    over_all_rows,
    over_groups,
    over_rows,
    over_total,
    scaled,
)
from dpsql.spelling.duckdb_functions import DUCKDB

Partial = tuple[int, int, int]
"""(id, rows, partial)"""
COUNTERS = [1, 2, 3, 4, 9, 10, 11, SMALL - 1, SMALL, SMALL + 1, 2**33, 2**40]


def toward_zero(a: int, b: int) -> int:
    return a // b if a >= 0 else -(-a // b)


@pytest.mark.parametrize("floors", [{"n": 10}, {"n": 5, "kk": 5}, {"nn": 1}, {"n": 2**20, "kk": 3}])
def test_narrow_and_wide_weights_are_the_exact_quotient(floors: dict[str, int]) -> None:
    rows = prod(floors.values())
    dice = random.Random(20)
    magnitude = min(2**30, 2**40 // (rows * 2**8)) or 1
    factor = 2**40 // (rows * magnitude) * rows
    cases = []
    for _ in range(600):
        values = [dice.choice(COUNTERS) for _ in floors]
        sign, edge = dice.choice([-1, 1]), dice.choice([0, 1, dice.randrange(1000)])
        cases.append((*values, sign * max(0, values[0] * magnitude - edge)))
    names = [*floors, "m"]
    listed = ", ".join(
        "(" + ", ".join(f"{v}::{'HUGEINT' if i == len(floors) else 'BIGINT'}" for i, v in enumerate(case)) + ")"
        for case in cases
    )
    found = duckdb.sql(
        f"SELECT {scaled(DUCKDB, 'm', factor, magnitude, floors)}, {', '.join(names)} "
        f"FROM (SELECT *, {', '.join(divisors(floors))} FROM (VALUES {listed}) t({', '.join(names)}))"
    ).fetchall()
    assert {all(v <= SMALL for v in row[1:-1]) for row in found} == {True, False}
    for result, *values, m in found:
        assert result == toward_zero(factor * m, prod(map(max, values, floors.values())))


def partials(magnitude: int, groups: int, seed: int = 3) -> list[Partial]:
    """Of ids in one to many groups, with few to very many rows, and partials up to the largest that they can have."""
    dice = random.Random(seed)
    found = []
    for unit in range(120):
        for _ in range(dice.choice([1, groups - 1, groups, groups + 1, 3 * groups])):
            n = dice.choice(COUNTERS if unit % 3 == 0 else COUNTERS[:7])
            edge = dice.choice([0, 1, dice.randrange(1000)])
            found.append((unit, n, dice.choice([-1, 1]) * max(0, n * magnitude - edge)))
    return found


class InWindows(DuckDB):
    weighs_in_windows = True


FORMS = pytest.mark.parametrize("d", [DUCKDB, InWindows(DUCKDB.spellings)], ids=["joined", "windows"])


def added(d: Dialect, term: WeightedTerm, rows: Sequence[Partial]) -> list[int]:
    """What each (id, group) adds, and what its id's correction adds."""
    listed = ", ".join(f"({at}, {u}, {n}::BIGINT, {m}::HUGEINT)" for at, (u, n, m) in enumerate(rows))
    held = ", ".join(f"{sql} AS {name}" for name, sql in term.columns.items())
    counted = ", ".join(f"{sql} AS {name}" for name, sql in term.per_id.items())
    both = ", ".join(["*", *term.shared])
    with duckdb.cursor() as connection:
        if d.weighs_in_windows:
            found = connection.execute(
                f"SELECT place, {term.chosen} FROM (SELECT {both} FROM (SELECT *, {counted}, {term.above} AS is_above "
                f"FROM (SELECT place, u, {held} FROM (VALUES {listed}) p(place, u, n, m0)))) ORDER BY 1"
            ).fetchall()
            return [int(value) for _, value in found]
        found = connection.execute(
            f"WITH q AS (SELECT place, u, {held} FROM (VALUES {listed}) p(place, u, n, m0)), "
            f"g AS (SELECT u, {counted} FROM q GROUP BY u HAVING {term.above}) "
            f"SELECT place, SUM(m) FROM (SELECT place, {term.within} AS m FROM q UNION ALL "
            f"SELECT place, {term.correction} FROM (SELECT {both} FROM q JOIN g USING (u))) GROUP BY 1 ORDER BY 1"
        ).fetchall()
    return [int(value) for _, value in found]


def sums(rows: Sequence[Partial], of: Callable[[int, int], int]) -> Mapping[int, int]:
    found: Counter[int] = Counter()
    for unit, n, m in rows:
        found[unit] += of(n, m)
    return found


@pytest.mark.parametrize(("partial", "magnitude"), [("n", 1), ("m0", 1), ("m0", 2**18)])
@pytest.mark.parametrize("most", [1, 3, 10])
def test_over_rows(partial: str, magnitude: int, most: int) -> None:
    rows = partials(magnitude, 2)
    factor = 2**40 // (most * magnitude)
    sql = over_rows(DUCKDB, partial, factor, magnitude, most)
    listed = ", ".join(f"({n}::BIGINT, {m}::HUGEINT)" for _, n, m in rows)
    found = duckdb.sql(f"SELECT n, m0, {sql} FROM (VALUES {listed}) p(n, m0)").fetchall()
    for n, m, result in found:
        assert result == toward_zero(factor * most * (n if partial == "n" else m), max(n, most))


@FORMS
@pytest.mark.parametrize(("groups", "per_group"), [(1, 1), (2, 3), (5, 5)])
def test_over_groups(d: Dialect, groups: int, per_group: int) -> None:
    """The quotient of a quotient is the quotient by the product."""
    rows, B = partials(1000, groups), 1000
    factor = 2**40 // (groups * per_group * B)
    of = sums(rows, lambda n, m: 1)
    term = over_groups(d, 0, over_rows(d, "m0", factor * groups, B, per_group), groups)
    assert added(d, term, rows) == [
        toward_zero(factor * per_group * groups * m, max(n, per_group) * max(of[u], groups)) for u, n, m in rows
    ]


@FORMS
@pytest.mark.parametrize("most", [1, 4, 11])
def test_over_all_rows(d: Dialect, most: int) -> None:
    rows, B = partials(500, 3), 500
    factor, of = 2**40 // (most * B), sums(rows, lambda n, m: n)
    term = over_all_rows(d, "m0", factor, B, most)
    assert added(d, term, rows) == [toward_zero(factor * most * m, max(of[u], most)) for u, n, m in rows]


@FORMS
@pytest.mark.parametrize("most", [1, 2, 3000, 9 * 2**30])
def test_over_total(d: Dialect, most: int) -> None:
    rows, factor = partials(2**20, 3), 64
    rows += [(1000, 1, most), (1001, 1, most), (1001, 1, -1), (1002, 1, 1 - most), (1002, 1, 1)]
    of = sums(rows, lambda n, m: abs(m))
    assert added(d, over_total(d, 0, "m0", factor, most), rows) == [
        toward_zero(factor * most * m, max(of[u], most)) for u, n, m in rows
    ]


@FORMS
@pytest.mark.parametrize("most", [1, 2, 3, 5, 3000, 2**30, 2**56])
def test_a_root_is_corrected_wherever_it_is_above_the_limit(d: Dialect, most: int) -> None:
    """The integer root may exceed Σ|total|; ids that `above` leaves out are those of which it is within the limit."""
    dice, factor = random.Random(most), 16
    sizes = [0, 1, 2, most // 2, most // 2 + 1, max(0, most - 1), most, most + 1, 3 * most, 2**60]
    rows = [(unit, 1, dice.choice([-1, 1]) * dice.choice(sizes)) for unit in range(300) for _ in range(1 + unit % 3)]
    squares = sums(rows, lambda n, m: m * m)
    term = of_unit(d, 0, "m0", factor, UnitTotal(most, "l2"))
    found = added(d, term, rows)
    assert found == added(d, replace(term, above="TRUE"), rows)
    reached: dict[int, int] = defaultdict(int)
    for (unit, _, m), result in zip(rows, found, strict=True):
        root = isqrt(squares[unit]) + (isqrt(squares[unit]) ** 2 < squares[unit])
        assert abs(result) <= toward_zero(factor * most * abs(m), max(root, most))
        reached[unit] += result**2
    assert max(reached.values()) <= (factor * most) ** 2
    assert max(reached.values()) > (factor * most) ** 2 * 9 // 10
