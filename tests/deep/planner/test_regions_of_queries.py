"""Growing tables, attacked: no row outside of what a plan says that it reads moves an integer of it.

And no condition loses a row: with the printed periods, answers are those of all closed ones.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from dpsql.core.ir.expressions import Call, Column, Expr
from dpsql.core.ir.periods import Closed, Span, common, covers
from dpsql.core.policy.growing import Growth
from dpsql.core.printing.relational_nodes import Emitter
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.rewrites.joins import read_periods
from tests.support.growing_town import DAYS, LAST, Town, query, reads, region, some_trips, town_policy, trip


@dataclass
class Seen:
    plans: int = 0
    outside: int = 0
    moved: int = 0
    inside: int = 0


def attack(seeds: range, town: Callable[[], Town] = Town) -> Seen:
    """Add a row on each day to a random database, and look which integers move."""
    seen = Seen()
    for seed in seeds:
        draw = random.Random(seed)
        shown = town()
        rows = some_trips(draw)
        shown.put(0, rows)
        more = [*DAYS, None]
        for db, day in enumerate(more, 1):
            shown.put(db, [*rows, trip(draw, day)])
        for _ in range(6):
            try:
                plan = shown.plan(query(draw))
            except Rejected:
                continue
            seen.plans += 1
            first, days = shown.integers(plan, 0), region(plan)
            for db, day in enumerate(more, 1):
                differs = shown.integers(plan, db) != first
                if day is not None and reads(days, day):
                    seen.inside += differs
                else:
                    seen.outside += 1
                    seen.moved += differs
        shown.close()
    return seen


@pytest.mark.parametrize("part", range(2))
def test_no_row_outside_the_region_moves_an_integer(part: int) -> None:
    seen = attack(range(part * 15, part * 15 + 15))
    assert seen.moved == 0
    assert seen.outside > 500 and seen.inside > 80 and seen.plans > 50


@pytest.mark.parametrize(("every", "keep"), [("day", 4), ("week", None), ("month", None), ("week", 1)])
def test_nor_where_periods_are_longer_or_are_not_kept(every: str, keep: int | None) -> None:
    first = {"day": dt.date(2026, 1, 1), "week": dt.date(2025, 12, 29), "month": dt.date(2026, 1, 1)}[every]
    closed = {"day": LAST, "week": dt.date(2026, 1, 11), "month": dt.date(2026, 1, 31)}[every]
    policy = town_policy(every=every, first=first, keep=keep)
    seen = attack(range(6), lambda: Town(policy, Closed(closed)))
    assert seen.moved == 0 and seen.outside > 50 and seen.inside > 10


def test_a_scan_whose_periods_are_not_printed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Emitter, "_of_periods", lambda self, node, read, env: self.tables(node.table))
    assert attack(range(6)).moved > 15


def answers(seeds: range) -> tuple[int, int]:
    """Of how many plans the integers are those of all closed rows, and of how many they are not."""
    same = other = 0
    for seed in seeds:
        draw = random.Random(seed)
        town = Town()
        town.put(0, some_trips(draw, 60))
        for _ in range(10):
            sql = query(draw)
            try:
                plan = town.plan(sql)
                with pytest.MonkeyPatch.context() as patched:
                    patched.setattr(read_periods, "_possible", lambda term, day: read_periods.PossibleDays())
                    whole = town.plan(sql)
            except Rejected:
                continue
            assert covers(region(whole), region(plan))
            # Of a list of days there are fewer keys; all that are left out count nothing.
            found, all_found = ([{k: v for k, v in each.items() if any(v)} for each in town.integers(p, 0)]
                                for p in (plan, whole))  # fmt: skip
            same, other = same + (found == all_found), other + (found != all_found)
        town.close()
    return same, other


def test_the_guess_loses_no_row() -> None:
    same, other = answers(range(16))
    assert other == 0 and same > 70


def test_a_guess_from_both_sides_of_an_or_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    true = read_periods._possible

    def wrong(term: Expr, day: Column) -> object:
        if isinstance(term, Call) and term.function == "or":
            found = read_periods.ALL
            for arg in term.args:
                found = common(found, true(arg, day).days)
            return read_periods.PossibleDays(found)
        return true(term, day)

    monkeypatch.setattr(read_periods, "_possible", wrong)
    assert answers(range(20))[1] > 2


def test_periods_are_whole() -> None:
    """The days of a period are read together or not at all, of each kind of period."""
    draw = random.Random(1)
    for every in ("day", "week", "month"):
        growth = Growth("day", every, dt.date(2025, 12, 1))  # type: ignore[arg-type]
        for _ in range(300):
            day = dt.date(2025, 12, 1) + dt.timedelta(days=draw.randint(0, 800))
            first, last = growth.begins(day), growth.ends(day)
            assert first <= day <= last and growth.begins(last) == first and growth.ends(first) == last
            assert growth.begins(last + dt.timedelta(days=1)) == last + dt.timedelta(days=1)
            whole: tuple[Span, ...] = growth.whole(((day, day),))
            assert whole == ((first, last),)
