"""A counter's ticks: what may be counted, the order of charge, draw and show, and who is given what."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.ledger.counters import CounterRefused, CounterState, created
from dpsql.core.ledger.ledger import Caps, EntryKind
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.paid import unchanged
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.numbers.counter_weights import squares
from dpsql.core.release.counting import (
    NotCounted,
    TickRequest,
    charge_tick,
    counted_by,
    draw_tick,
    frozen,
    give,
    terms_of_tick,
)
from dpsql.planner.settings.query_settings import QuerySettings
from tests.support.counted_town import COUNTED, SETTINGS, counted, frozen_of, town
from tests.support.growing_town import DAYS, FIRST, Town

SILENT = QuerySettings(rho=Fraction(10**13), family="gaussian")
"""At this price no noise is ever seen."""


@pytest.fixture
def own() -> Any:
    found = town(4)
    found.put(0, [(FIRST, 1, 5), (DAYS[3], 1, 7), (DAYS[3], 4, 7), (DAYS[0], 1, 1), (None, 1, 1)])
    found.show(0)
    yield found
    found.close()


def made(own: Town, ledger: MemoryLedger, settings: QuerySettings = SETTINGS) -> CounterState:
    from dpsql.core.release.counting import AskedCounter

    fixed = frozen(counted(own, FIRST, settings=settings), own.policy, AskedCounter("rides", COUNTED, FIRST, ""))
    ledger.reserve(created("c", "ana", fixed, "zcdp", "", own.policy.hash), Caps())
    return ledger.counters()[0]


def request(own: Town) -> TickRequest:
    return TickRequest(Caps(), own.policy, 0)


def ticked(own: Town, ledger: MemoryLedger, planned: Any, last: dt.date) -> tuple[Any, Any]:
    """The ids and terms of a tick, and its numbers."""
    charged = charge_tick(ledger, request(own), ledger.counters()[0], planned, last)
    return charged.names, draw_tick(charged, request(own), own)


def stored(names: Any, numbers: Any) -> list[StoredAnswer]:
    now = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
    return [
        StoredAnswer(id, "a", list(own), t.mechanism, t.parameter, t.losses, t.conversion, now, None, t.regions)
        for (id, t), own in zip(names, numbers, strict=True)
    ]


def test_a_tick_is_charged_drawn_and_given_in_this_order(own: Town) -> None:
    ledger = MemoryLedger("town", "zcdp")
    counter, seen = made(own, ledger, SILENT), list[EntryKind]()
    fetch = own.fetch
    own.fetch = lambda sql: (seen.append(ledger.history()[-1].entry.kind), fetch(sql))[1]  # type: ignore[method-assign]
    names, numbers = ticked(own, ledger, counted(own, FIRST), FIRST)
    assert seen == [EntryKind.TICK]
    assert numbers == ([1024, 0, 0], [1024 * (5 - 10), 0, 0])  # a sum is of what is above 10
    assert {id for id, _ in names}.isdisjoint(ledger.received())
    answers = stored(names, numbers)
    assert all(map(unchanged, answers))
    give(ledger, request(own), counter, FIRST, answers)
    assert {id for id, _ in names} <= ledger.received("ana")
    with pytest.raises(CounterRefused):
        give(ledger, request(own), counter, FIRST, [replace(a, values=[0, 0, 0]) for a in answers])
    _, second = ticked(own, ledger, counted(own, DAYS[3]), DAYS[3])
    assert second == ([1024 + 384, 0, 0], [1024 * -3 + 384 * -5, 0, 0])


def test_the_noise_of_a_tick_is_that_of_the_price(own: Town) -> None:
    fixed = frozen_of(own)
    assert fixed.rho == {"trips": SETTINGS.rho}
    whole = squares(4)
    assert fixed.variances == (whole * 1 / (2 * Fraction(1, 100)), whole * 100 / (2 * Fraction(1, 100)))
    for terms in terms_of_tick(fixed):
        assert terms.losses["trips"].rho == Fraction(1, 100)
        assert [(s.first, s.last) for s in terms.regions["trips"]] == [(FIRST, None)]


def test_where_a_policy_fixes_no_length_every_period_counts_for_15000() -> None:
    own = town()
    assert frozen_of(own).length == 15_000
    own.close()


def test_a_tick_before_its_price_is_another_one_is_refused_and_nothing_runs(own: Town) -> None:
    ledger = MemoryLedger("town", "zcdp")
    made(own, ledger)
    own.fetch = lambda sql: 1 / 0  # type: ignore[method-assign,assignment]
    later = counted(own, DAYS[4])
    other = counted(own, FIRST, COUNTED.replace("SUM(minutes)", "SUM(minutes * minutes)"))
    fewer = counted(own, FIRST, COUNTED.replace(", SUM(minutes) AS m", ""))
    for planned, last in ((later, FIRST), (later, DAYS[5]), (other, FIRST), (fewer, FIRST)):
        with pytest.raises(CounterRefused, match="measured otherwise now"):
            ticked(own, ledger, planned, last)
    assert [r.entry.kind for r in ledger.history()] == [EntryKind.COUNTER]


NOT_COUNTED = {
    "SELECT station, COUNT(*) FROM trips WHERE {} GROUP BY station": "the day of trips is none of its group keys",
    "SELECT day + 1 AS day, COUNT(*) FROM trips WHERE {} AND day + 1 IN (DATE '2026-01-01', DATE '2026-01-02') "
    "GROUP BY 1": "the day of trips is none",
    "SELECT day, COUNT(DISTINCT station) FROM trips WHERE {} GROUP BY day": "it counts rows, and adds values",
    "SELECT day, AVG(minutes), STDDEV(minutes) FROM trips WHERE {} GROUP BY day": "it counts rows, and adds values",
    "SELECT day, COUNT(*) FROM (SELECT DISTINCT day, station FROM trips WHERE {}) t GROUP BY day":
        "the rows of one growing table by themselves",
    "SELECT day, COUNT(*) FROM (SELECT day FROM trips WHERE {} UNION ALL SELECT day FROM trips) t GROUP BY day":
        "the rows of one growing table by themselves",
    "SELECT day, COUNT(*) FILTER (WHERE station = 1), COUNT(*) FILTER (WHERE station = 2) FROM trips WHERE {} "
    "GROUP BY day": "conditions of FILTER that exclude each other",
}  # fmt: skip


@pytest.mark.parametrize("sql", NOT_COUNTED)
def test_what_no_counter_counts(own: Town, sql: str) -> None:
    with pytest.raises(NotCounted, match=NOT_COUNTED[sql]):
        counted_by(counted(own, DAYS[5], sql).measured, own.policy)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT day, COUNT(*) FROM trips WHERE {} AND minutes > 3 GROUP BY day",
        "SELECT station, day, COUNT(minutes) FROM (SELECT station, day, minutes FROM trips) t WHERE {} GROUP BY 1, 2",
        "SELECT day, name, COUNT(*) FROM trips JOIN stations USING (station) WHERE {} GROUP BY day, name",
        "SELECT s.name, t.day, SUM(minutes) FROM trips t LEFT JOIN stations s ON t.station = s.station WHERE {} "
        "AND s.name IN ('a', 'b') GROUP BY 1, 2",
    ],
)
def test_what_a_counter_counts(own: Town, sql: str) -> None:
    scan, at = counted_by(counted(own, DAYS[5], sql).measured, own.policy)
    assert scan.table == "trips" and counted(own, DAYS[5], sql).measured.node.keys[at].name == "day"


def test_a_unit_with_one_account_for_ever_has_none() -> None:
    own = town(4, budgets="privacy: {accountant: zcdp}\nbudgets: {total: {rho: 1}}")
    with pytest.raises(NotCounted, match="one account for ever"):
        frozen_of(own)
    own.close()


def test_laplace_noise_is_no_counters(own: Town) -> None:
    planned = counted(own, FIRST, settings=QuerySettings(rho=Fraction(1, 50), family="laplace"))
    with pytest.raises(NotCounted, match="its noise is Gaussian"):
        counted_by(planned.measured, own.policy)
