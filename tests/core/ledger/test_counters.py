"""Counters in the ledger: which entries it takes, what they charge, and what DROP gives back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction as F
from pathlib import Path

import pytest

from dpsql.core.ledger.chain.acceptance import accepting
from dpsql.core.ledger.counters import (
    CounterRefused,
    CounterState,
    Frozen,
    created,
    dropped,
    hash_of_numbers,
    holding,
    read_frozen,
    received,
    statement_words,
    tick,
    ticked,
)
from dpsql.core.ledger.ledger import Caps, Entry, EntryKind, Ledger
from dpsql.core.ledger.losses.regions import LossSpan
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.core.numbers.counter_weights import squares, weights
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded

FIRST = dt.date(2026, 1, 1)
RHO = F(1, 100)


def day(n: int) -> dt.date:
    return FIRST + dt.timedelta(days=n)


def frozen(length: int = 40, name: str = "rides", every: str = "day", first: dt.date = FIRST) -> Frozen:
    whole = squares(length)
    return Frozen(
        name, "SELECT COUNT(*) AS n FROM trips", "trips", "day", every, first, length,  # type: ignore[arg-type]
        (whole / (2 * RHO),), ({"trip": F(1)},), {"trip": RHO}, F(0), 1, "rests",
    )  # fmt: skip


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    if request.param == "memory":
        yield MemoryLedger("t", "zcdp")
    else:
        with SqliteLedger.open(tmp_path / "l.sqlite", tmp_path / "head.json", "t", "zcdp") as found:
            yield found


def made(ledger: Ledger, own: Frozen | None = None, id: str = "c") -> CounterState:
    ledger.reserve(created(id, "ana", own or frozen(), "zcdp", "plan", "policy"), Caps())
    return state(ledger, id)


def state(ledger: Ledger, id: str = "c") -> CounterState:
    return next(s for s in ledger.counters() if s.id == id)


def draw(ledger: Ledger, n: int, name: str, id: str = "c", caps: Caps | None = None) -> None:
    ledger.reserve(tick(state(ledger, id), day(n), [name], "zcdp", "policy"), caps or Caps())


def give(ledger: Ledger, n: int, name: str, numbers: str = "h", id: str = "c") -> None:
    ledger.reserve(ticked(state(ledger, id), day(n), [name], numbers, "policy"), Caps())


def spent(ledger: Ledger, n: int, analyst: str | None = None) -> F:
    return ledger.spent("trip", analyst, (day(n), day(n))).rho


def test_it_is_charged_once_to_every_period_from_its_first_day_on(ledger: Ledger) -> None:
    made(ledger)
    assert [spent(ledger, n) for n in (-1, 0, 1, 10_000)] == [0, RHO, RHO, RHO]
    for n in range(5):
        draw(ledger, n, f"a{n}")
        give(ledger, n, f"a{n}")
    assert [spent(ledger, n) for n in (-1, 0, 4, 5)] == [0, RHO, RHO, RHO]
    assert spent(ledger, 3, "ana") == RHO and spent(ledger, 3, "ben") == 0
    assert holding("c") in ledger.received("ana") and {f"a{n}" for n in range(5)} <= ledger.received("ana")
    assert set(state(ledger).given) == {day(n) for n in range(5)} and state(ledger).numbers(day(2)) == "h"


def test_a_number_is_held_once_ticked_names_it_and_not_before(ledger: Ledger) -> None:
    made(ledger)
    draw(ledger, 0, "a")
    assert "a" not in ledger.received() and not state(ledger).given
    give(ledger, 0, "a")
    assert "a" in ledger.received("ana")


def test_what_is_drawn_again_is_charged_what_one_tick_loses(ledger: Ledger) -> None:
    made(ledger)
    r, whole = weights(40), squares(40)
    for n in range(3):
        draw(ledger, n, f"a{n}")
        give(ledger, n, f"a{n}")
    draw(ledger, 3, "lost")
    before = [spent(ledger, n) for n in range(5)]
    draw(ledger, 3, "again")
    for n in range(4):
        assert spent(ledger, n) - before[n] == PrivacyLoss(rho=RHO * F(r[3 - n] ** 2, whole)).on_grid().rho
    assert spent(ledger, 4) == before[4]
    give(ledger, 3, "again")
    with pytest.raises(CounterRefused, match="ticked elsewhere"):
        draw(ledger, 3, "third")


def test_old_periods_are_charged_in_stretches_and_never_too_little() -> None:
    own = frozen(1000)
    found = own.redrawn("zcdp", day(999))["trip"]
    assert len(found) < 50 and (found[0].first, found[-1].last) == (FIRST, day(999))
    r, whole = weights(1000), squares(1000)
    charged = {
        n: span.loss.rho for span in found for n in range((span.first - FIRST).days, (span.last - FIRST).days + 1)
    }  # type: ignore[operator]
    for n in range(1000):
        due = RHO * F(r[999 - n] ** 2, whole)
        assert charged[n] >= due and (n < 968 or charged[n] == PrivacyLoss(rho=due).on_grid().rho)


def test_a_redraw_that_does_not_fit_is_refused_and_nothing_of_it_is_drawn(ledger: Ledger) -> None:
    made(ledger)
    caps = Caps({"trip": PrivacyLoss(rho=RHO)}, by_period=frozenset({"trip"}))
    draw(ledger, 0, "a", caps=caps)
    with pytest.raises(BudgetExceeded):
        draw(ledger, 0, "b", caps=caps)
    assert state(ledger).drawn[day(0)] == (("a",),)


def test_of_two_who_tick_at_once_one_is_given(ledger: Ledger) -> None:
    made(ledger)
    seen = state(ledger)  # as the slower one saw it
    draw(ledger, 0, "a")
    with pytest.raises((CounterRefused, ValueError)):
        ledger.reserve(tick(seen, day(0), ["b"], "zcdp", "policy"), Caps())  # it would be free
    draw(ledger, 0, "b")  # charged
    give(ledger, 0, "b", "numbers of b")
    with pytest.raises((CounterRefused, ValueError)):
        give(ledger, 0, "a", "numbers of a")
    assert state(ledger).numbers(day(0)) == "numbers of b"
    assert "a" not in ledger.received()


def test_drop_gives_back_what_nobody_will_measure(ledger: Ledger) -> None:
    counter = made(ledger)
    ledger.reserve(received("r", "ben", counter, "policy"), Caps())
    draw(ledger, 0, "a")
    give(ledger, 0, "a")
    draw(ledger, 1, "b")  # measured, though never given
    ledger.reserve(dropped(state(ledger), "ana", "policy"), Caps())
    assert [spent(ledger, n) for n in (0, 1, 2, 99)] == [RHO, RHO, 0, 0]
    for who in ("ana", "ben"):
        assert [spent(ledger, n, who) for n in (0, 1, 2)] == [RHO, RHO, 0]
    assert ledger.spent("trip").rho == RHO and state(ledger).dropped
    for after in (lambda: draw(ledger, 2, "c"), lambda: give(ledger, 1, "b")):
        with pytest.raises(CounterRefused, match="it was dropped"):
            after()
    with pytest.raises((CounterRefused, ValueError)):
        ledger.reserve(dropped(state(ledger), "bob", "policy"), Caps())
    made(ledger, id="d")  # its name is free
    assert [spent(ledger, n) for n in (0, 1, 2)] == [2 * RHO, 2 * RHO, RHO]


def test_what_was_dropped_before_its_first_tick_costs_nothing(ledger: Ledger) -> None:
    counter = made(ledger)
    ledger.reserve(dropped(counter, "ana", "policy"), Caps())
    assert ledger.spent("trip") == NO_LOSS == ledger.spent("trip", "ana") and ledger.accounts() == []


def test_another_account_receives_all_of_it_at_its_price(ledger: Ledger) -> None:
    counter = made(ledger)
    ledger.reserve(received("r", "ben", counter, "policy"), Caps())
    assert spent(ledger, 5, "ben") == RHO and spent(ledger, 5) == RHO  # the total is not charged again
    assert holding("c") in ledger.received("ben")
    cheaper = replace(received("s", "bob", counter, "policy"), received={}, received_regions={})
    with pytest.raises(ValueError, match="at its price"):
        ledger.reserve(cheaper, Caps())
    with pytest.raises(ValueError, match="something else"):
        ledger.reserve(replace(received("s", "bob", counter, "policy"), answers=(holding("c"), "x")), Caps())


def test_after_an_older_ledger_was_accepted_no_counter_ticks_and_drop_gives_nothing_back(ledger: Ledger) -> None:
    made(ledger)
    draw(ledger, 0, "a")
    last = ledger.history()[-1]
    ledger.reserve(accepting(type("P", (), {"hash": last.hash, "sequence": last.sequence})(), "why"), Caps())  # type: ignore[arg-type]
    for refused in (lambda: draw(ledger, 1, "b"), lambda: give(ledger, 0, "a")):
        with pytest.raises(CounterRefused, match="older state"):
            refused()
    ledger.reserve(dropped(state(ledger), "ana", "policy"), Caps())
    assert [spent(ledger, n) for n in (0, 1, 99)] == [RHO, RHO, RHO]


def wrong(counter: CounterState) -> Iterator[tuple[str, Entry]]:
    own = tick(counter, day(0), ["x"], "zcdp", "policy")
    yield "of no period", replace(own, statement=own.statement.replace("2026-01-01", "2025-12-31"))
    yield "without noise", replace(own, statement=own.statement.replace('["x"]', "[]"))
    yield "noise of another tick", tick(counter, day(1), ["a"], "zcdp", "policy")
    yield "of no counter", replace(own, statement=own.statement.replace('"counter": "c"', '"counter": "d"'))
    yield "charged", replace(own, charges={"trip": PrivacyLoss(rho=RHO)})
    yield "numbers that no TICK names", ticked(counter, day(0), ["x"], "h", "policy")
    new = created("d", "ana", frozen(name="other"), "zcdp", "", "policy")
    yield "too cheap", replace(new, charges={"trip": PrivacyLoss(rho=RHO / 2)}, regions={
        "trip": (LossSpan(FIRST, None, PrivacyLoss(rho=RHO / 2)),)
    })  # fmt: skip
    yield "not for ever", replace(new, regions={"trip": (LossSpan(FIRST, day(9), PrivacyLoss(rho=RHO)),)})
    yield "held by name only", replace(new, answers=(holding("c"),))
    yield "no counter", replace(new, statement="CREATE DP COUNTER {}")
    yield "received besides", replace(new, received={"trip": PrivacyLoss(rho=RHO)})


def test_what_no_caller_should_make_is_not_taken(ledger: Ledger) -> None:
    made(ledger)
    draw(ledger, 2, "a")
    for what, each in wrong(state(ledger)):
        with pytest.raises((ValueError, CounterRefused)):
            ledger.reserve(each, Caps())
        assert len(ledger.history()) == 2, what


def test_a_redraw_for_nothing_or_for_less_is_not_taken(ledger: Ledger) -> None:
    made(ledger)
    draw(ledger, 5, "a")
    again = tick(state(ledger), day(5), ["b"], "zcdp", "policy")
    half = {"trip": tuple(replace(s, loss=PrivacyLoss(rho=s.loss.rho / 2)) for s in again.regions["trip"])}
    cheaper = replace(again, charges={"trip": PrivacyLoss(rho=again.charges["trip"].rho / 2)}, regions=half)
    for each in (replace(again, charges={}, regions={}), cheaper, replace(again, regions={})):
        with pytest.raises(ValueError, match="charged what it loses"):
            ledger.reserve(each, Caps())


def test_a_name_stands_for_one_counter(ledger: Ledger) -> None:
    made(ledger)
    with pytest.raises(CounterRefused, match="there is a counter Rides already"):
        made(ledger, frozen(name="Rides"), "d")


def test_a_pure_ledger_has_none() -> None:
    with pytest.raises(BudgetExceeded, match="Gaussian noise"):
        created("c", "ana", frozen(), "pure_dp", "", "")


def test_under_approximate_accounting_rho_is_converted_once() -> None:
    own = replace(frozen(), conversion=F(1, 10**6))
    ledger = MemoryLedger("t", "approx_dp")
    ledger.reserve(created("c", "ana", own, "approx_dp", "", ""), Caps())
    charged = ledger.spent("trip", None, (day(9), day(9)))
    assert charged.delta == F(1, 10**6) and charged.rho == 0 < charged.epsilon
    ledger.reserve(tick(ledger.counters()[0], day(0), ["a"], "approx_dp", ""), Caps())
    ledger.reserve(tick(ledger.counters()[0], day(0), ["b"], "approx_dp", ""), Caps())
    again = ledger.spent("trip", None, (day(0), day(0)))
    assert charged.epsilon < again.epsilon < 2 * charged.epsilon and again.delta == F(2, 10**6)


@pytest.mark.parametrize(
    ("every", "first", "ends"),
    [
        ("week", dt.date(2026, 1, 5), [dt.date(2026, 1, 11), dt.date(2026, 1, 18)]),
        ("month", dt.date(2026, 1, 1), [dt.date(2026, 1, 31), dt.date(2026, 2, 28), dt.date(2026, 3, 31)]),
    ],
)
def test_periods_of_weeks_and_months(every: str, first: dt.date, ends: list[dt.date]) -> None:
    own = frozen(every=every, first=first)
    assert [own.ends(n) for n in range(len(ends))] == ends
    assert [own.place(each) for each in ends] == list(range(len(ends)))
    found = own.redrawn("zcdp", ends[-1])["trip"]
    assert [(s.first, s.last) for s in found] == list(zip([own.begins(n) for n in range(len(ends))], ends, strict=True))


def test_what_is_frozen_is_read_as_it_was_written() -> None:
    own = frozen()
    assert read_frozen(own.written()) == own
    for text in ("CREATE DP COUNTER []", "CREATE DP COUNTER {", 'CREATE DP COUNTER {"name": 1}'):
        with pytest.raises(ValueError, match="not a counter"):
            read_frozen(text)


def test_the_history_says_what_each_entry_did(ledger: Ledger) -> None:
    made(ledger)
    draw(ledger, 0, "a")
    give(ledger, 0, "a", hash_of_numbers([[1, 2]]))
    ledger.reserve(dropped(state(ledger), "ana", "policy"), Caps())
    kinds = [(r.entry.kind, statement_words(r.entry)) for r in ledger.history()]
    assert kinds == [
        (EntryKind.COUNTER, "CREATE DP COUNTER rides AS SELECT COUNT(*) AS n FROM trips FROM DATE '2026-01-01'"),
        (EntryKind.TICK, "TICK 2026-01-01 of counter c"),
        (EntryKind.TICKED, "TICKED 2026-01-01 of counter c"),
        (EntryKind.DROP, "DROP DP COUNTER rides"),
    ]


def test_a_ledger_that_is_opened_again_knows_them(tmp_path: Path) -> None:
    place = (tmp_path / "l.sqlite", tmp_path / "head.json", "t", "zcdp")
    with SqliteLedger.open(*place) as first, SqliteLedger.open(*place) as second:
        made(first)
        draw(second, 0, "a")
        give(first, 0, "a")
        assert second.counters() == first.counters()
    with SqliteLedger.open(*place) as third:
        assert third.verify() == 3 and set(state(third).given) == {day(0)}
        with pytest.raises(CounterRefused):
            draw(third, 0, "b")
