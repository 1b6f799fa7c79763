"""Counters over a growing town: the real planner's releases, what COUNTER fixes of them, and the integers of ticks."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

from dpsql.core.ir.periods import Closed
from dpsql.core.ledger.counters import Frozen
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.policy.policy import Policy
from dpsql.core.release.counting import AskedCounter, CounterTick, counted_by, frozen
from dpsql.core.release.drawing import EngineAsk
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.compile import compile_query
from dpsql.planner.settings.query_settings import QuerySettings
from tests.support.growing_town import FIRST, Town, town_policy

BY_PERIOD = "privacy: {accountant: zcdp}\nbudgets: {each_period: {rho: 1}}"
COUNTED = "SELECT day, station, COUNT(*) AS n, SUM(minutes) AS m FROM trips WHERE {} GROUP BY day, station"
SETTINGS = QuerySettings(rho=Fraction(1, 50), family="gaussian")


def town(keep: int | None = None, every: str = "day", budgets: str = BY_PERIOD, first: dt.date = FIRST) -> Town:
    return Town(town_policy(budgets, every, first, keep))


def counted(
    own: Town, last: dt.date, sql: str = COUNTED, policy: Policy | None = None, first: dt.date = FIRST,
    settings: QuerySettings = SETTINGS,
) -> PlannedRelease:  # fmt: skip
    """The release of a counter whose last closed period ends on a day."""
    text = sql.format(f"day >= DATE '{first}' AND day <= DATE '{last}'")
    own.closed = Closed(last)
    own.facts.look_at_periods()
    plan = own.facts.compile(
        lambda public: compile_query(Source(text), policy or own.policy, public, settings, (), own.table_sql)
    )
    (release,) = plan.releases
    return release


def frozen_of(own: Town, sql: str = COUNTED) -> Frozen:
    grows = own.policy.tables["trips"].grows
    assert grows is not None
    first = grows.first
    return frozen(counted(own, grows.ends(first), sql, first=first), own.policy, AskedCounter("rides", sql, first, ""))


def integers(own: Town, made: Frozen, last: dt.date, db: int, sql: str = COUNTED) -> tuple[tuple[int, ...], ...]:
    """What noise is added to in the tick of a period, component by component."""
    oldest = max(made.begins(max(0, made.place(last) - made.length + 1)), made.first)
    planned = counted(own, last, sql, first=oldest)
    tick = CounterTick(planned, made, last, counted_by(planned.measured, own.policy)[1])
    own.show(db)
    return tuple(tuple(each) for each in tick.draw(EngineAsk(own, 0), cast(Any, _silent)))


def _silent(_: int, exact: Integers) -> SimpleNamespace:
    return SimpleNamespace(integers=exact)


def lost(made: Frozen, some: tuple[tuple[int, ...], ...], others: tuple[tuple[int, ...], ...]) -> Fraction:
    """ρ of a tick whose integers are either of these, as a part of what COUNTER charges."""
    moved = [sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for x, y in zip(some, others, strict=True)]
    rho = sum((m / (2 * v) for m, v in zip(moved, made.variances, strict=True)), Fraction(0))
    return rho / made.rho["trips"]
