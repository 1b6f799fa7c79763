"""Intervals of numbers that decided whether their group is shown: exactly, over all noise."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import duckdb
import numpy as np
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.core.noise.mechanisms.mechanism import Additive
from dpsql.frontend.aggregates import numbers_that_chose

BITS = 256


def held(noise: Additive, threshold: int, n: int, outside: Fraction, plain: bool) -> float:
    """P(the interval holds n | the group is shown), summed over all noisy numbers; `plain`: of value ± w."""

    @cache
    def tail(t: int) -> float:
        return float(noise.upper_tail(t, BITS) if t > 0 else 1 - noise.upper_tail(1 - t, BITS))

    width = noise.half_width(1 - 2 * outside)
    begin, ends, beyond = numbers_that_chose._ends(noise, threshold, outside)
    found = 0.0
    for y in range(threshold, max(threshold, n) + 12 * int(noise.scale) + 12):
        low = y - width
        if y < beyond and not plain:
            low = min(low, int(ends[np.searchsorted(begin, y, side="right") - 1]))
        found += (tail(y - n) - tail(y - n + 1)) * (low <= n <= y + width)
    return found / tail(threshold - n)


@pytest.mark.parametrize("level", [Fraction(95, 100), Fraction(8, 10)])
@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(Fraction(1)), DiscreteLaplace(Fraction(17, 2)), DiscreteGaussian(Fraction(9))], ids=str
)
def test_whatever_the_number_is(noise: Additive, level: Fraction) -> None:
    """Of each number the interval holds at least the level of those that are shown; its twin, ± w, of some none."""
    threshold = int(12 * noise.scale)
    asked = [*range(0, threshold + int(8 * noise.scale), max(1, int(noise.scale) // 2)), 40 * threshold]
    outside = (1 - level) / 2
    assert min(held(noise, threshold, n, outside, plain=False) for n in asked) >= float(level) - 1e-9
    assert min(held(noise, threshold, n, outside, plain=True) for n in asked) < 0.01


@pytest.fixture(scope="module")
def con() -> dpsql.Connection:
    """3,000 towns of 12 each, of which chance shows some, and one of 1,000."""
    data = duckdb.connect()
    town = "IF(i < 36000, 'town ' || i % 3000, 'large') AS town"
    data.execute(f"CREATE TABLE people AS SELECT i AS id, {town} FROM range(37000) AS t(i)")
    text = {"type": "varchar", "nullable": False}
    policy = dpsql.Policy.from_dict({
        "version": 1, "name": "towns", "units": {"person": {}},
        "tables": {"people": {"unit": {"column": "id"}, "primary_key": ["id"],
                              "columns": {"id": {"type": "bigint", "nullable": False}, "town": text}}},
        "budgets": {"total": {"epsilon": 10_000, "delta": 0.5}},
    })  # fmt: skip
    return dpsql.connect(data, policy=policy, ledger=MemoryLedger("towns"), optimizers="ours")


def test_groups_that_chance_has_shown(con: dpsql.Connection) -> None:
    """P(over a fifth of some 540 are missed | 5 % are) < 1e-20; value ± 3 misses over a third, those from T + 1 on."""
    shown = inside = 0
    ends = "DP_INTERVAL_LOW(COUNT(*)) AS low, DP_INTERVAL_HIGH(n) AS high"
    sql = f"SELECT town, COUNT(*) AS n, {ends} FROM people GROUP BY town"
    for run in range(5):  # shown from 15 on
        answer = con.sql(f"{sql} -- {run}").run(epsilon=1, delta=Fraction(1, 10**6), fresh=True)
        for (town, n, low, high), told in zip(answer.rows, answer.intervals(), strict=True):
            assert told["n"] == (low, high)
            if town == "large":
                assert n - low == high - n
            else:
                shown, inside = shown + 1, inside + (low <= 12 <= high)
    assert shown > 300 and inside > shown * 0.8
    assert not any("chose" in note for note in answer.notes)
    computed = con.sql("SELECT town, COUNT(*) * 2 AS m FROM people GROUP BY town").run(
        epsilon=1, delta=Fraction(1, 10**6)
    )
    assert any(note.startswith("the ± of m leaves out that this very number chose") for note in computed.notes)
