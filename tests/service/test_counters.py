"""Counters over real services: making, ticking, reading, receiving, dropping; what crashes and policies do to them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction as F
from pathlib import Path
from threading import Thread

import pytest

import dpsql
from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.core.ledger.ledger import EntryKind
from dpsql.core.ledger.losses.regions import dearest
from dpsql.core.numbers.counter_weights import error_of_window, squares, weights
from dpsql.faces.cli.commands.budgets.budget_plot import as_html
from dpsql.faces.report.spending import panels
from dpsql.policy.load import load_policy
from dpsql.service.accounts.spending_story import SpendingStory
from dpsql.service.counters import counter_store
from tests.support.counted_trips import EXACT, PER_DAY, RIDES, Trips, day, make_trips

MADE = RIDES.format(rho="0.02")
SILENT = RIDES.format(rho=EXACT)


@pytest.fixture
def trips(tmp_path: Path) -> Trips:
    return make_trips(tmp_path)


@pytest.fixture
def free(tmp_path: Path) -> Trips:
    """With room for a price at which there is no noise."""
    return make_trips(tmp_path, each="{rho: 1e15}")


@pytest.fixture
def connected(request: pytest.FixtureRequest, free: Trips) -> Iterator[dpsql.Connection]:
    with dpsql.connect(free.policy, analyst="ana") as con:
        yield con


def spent(con: dpsql.Connection, n: int, analyst: str | None = None) -> F:
    return con.ledger.spent("trips", analyst, (day(n), day(n))).rho


def rows(con: dpsql.Connection, sql: str = "SELECT * FROM dpsql.rides") -> tuple[tuple[object, ...], ...]:
    return con.sql(sql).run().rows


def test_it_is_charged_once_and_counts_every_closed_day(free: Trips, connected: dpsql.Connection) -> None:
    con, price = connected, F(EXACT.strip("'"))
    made = con.counter_of(SILENT).run()  # nothing is closed yet
    assert (made.spent.rho, made.ticked.through) == (price, None)
    assert [spent(con, n) for n in (1, 2, 3, 999)] == [0, price, price, price]
    assert rows(con) == ()
    free.close(4)
    assert con.tick_counter("rides").through == day(4)
    assert rows(con) == tuple(
        (day(n), station, times * PER_DAY, times * PER_DAY * minutes)
        for n in (2, 3, 4)
        for station, times, minutes in ((1, 1, 1), (2, 2, 10))
    )
    free.close(12)
    assert con.tick_counter("RIDES").through == day(12)
    assert [spent(con, n) for n in (1, 2, 12, 999)] == [0, price, price, price]
    assert con.tick_counter("rides").through == day(12)  # there is nothing to do
    kinds = [r.entry.kind for r in con.ledger.history()]
    assert kinds.count(EntryKind.TICK) == kinds.count(EntryKind.TICKED) == 11


def test_it_is_read_like_a_table_by_any_query_and_for_nothing(free: Trips, connected: dpsql.Connection) -> None:
    con = connected
    con.counter_of(SILENT).run()
    free.close(9)
    con.tick_counter("rides")
    before = spent(con, 5, "ana")
    assert rows(con, "SELECT SUM(n), MAX(day) FROM dpsql.rides AS r WHERE r.station = 2") == ((80, day(9)),)
    weekly = "SELECT station, SUM(n) AS n FROM dpsql.rides WHERE day BETWEEN DATE '2026-01-03' AND DATE '2026-01-09' "
    assert rows(con, weekly + "GROUP BY station ORDER BY n DESC") == ((2, 70), (1, 35))
    joined = "SELECT name, SUM(r.n) AS n FROM dpsql.rides r JOIN stations USING (station) GROUP BY name ORDER BY 1"
    assert rows(con, joined) == (("a", 40), ("b", 80))
    running = (
        "SELECT day, SUM(n) OVER (ORDER BY day) AS so_far "
        "FROM (SELECT day, SUM(n) AS n FROM dpsql.rides GROUP BY day) t"
    )
    assert rows(con, running)[-1] == (day(9), 120)
    window = "dpsql.rides_error(DATE '2026-01-02', DATE '2026-01-09')"
    with_query = f"WITH w AS (SELECT * FROM dpsql.rides) SELECT COUNT(*) FROM w, {window}"
    assert rows(con, with_query) == ((16,),)
    assert con.sql(weekly + "GROUP BY station").run().spent == dpsql.PrivacyLoss()
    assert spent(con, 5, "ana") == before


def test_the_day_may_be_selected_too(free: Trips, connected: dpsql.Connection) -> None:
    free.close(5)
    connected.counter_of(SILENT).run()
    said = SILENT.replace("COUNTER rides", "COUNTER daily").replace("SELECT station", "SELECT day, station")
    connected.counter_of(said.replace("GROUP BY station", "GROUP BY day, station")).run()
    assert said != SILENT and rows(connected, "SELECT * FROM dpsql.daily") == rows(connected)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT * FROM dpsql.nothing", "table dpsql.nothing does not exist"),
        ("SELECT m FROM dpsql.rides", "column m does not exist"),
        ("SELECT COUNT(*) FROM trips, dpsql.rides", "a query that reads a counter reads no private rows"),
        ("SELECT * FROM dpsql.rides_error(DATE '2026-01-01', DATE '2026-01-03')", "of two days that are counted"),
        ("SELECT * FROM dpsql.rides_error(DATE '2026-01-03', DATE '2026-01-02')", "of two days that are counted"),
        ("SELECT * FROM dpsql.rides_error(DATE '2026-01-03')", "of two days that are counted"),
        ("SELECT * FROM dpsql.rides_error", "table dpsql.rides_error does not exist"),
    ],
)
def test_what_of_it_is_refused(free: Trips, connected: dpsql.Connection, sql: str, why: str) -> None:
    free.close(5)
    connected.counter_of(SILENT).run()
    with pytest.raises(dpsql.Error, match=why):
        connected.sql(sql).run(rho=1)


def test_the_plus_minus_of_windows(trips: Trips) -> None:
    trips.close(9)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
        ((first, last, n, minutes),) = rows(
            con, "SELECT * FROM dpsql.rides_error(DATE '2026-01-03', DATE '2026-01-09')"
        )
        ((_, _, one, _),) = rows(con, "SELECT * FROM dpsql.rides_error(DATE '2026-01-09', DATE '2026-01-09')")
    assert (first, last) == (day(3), day(9))
    # Half of ρ for each: σ = √(1/2ρ) = 7.07 for one release, 1.96 σ; a count is off by its rounding besides.
    released = squares(15_000) ** 0.5 * error_of_window(15_000, 6, 7)
    assert one - 1 == pytest.approx(1.96 * 7.071 * released, rel=0.001) and 1.3 < released < 1.45
    assert n < 7**0.5 * one * 0.8 and minutes > 10 * n


def test_days_add_up_to_what_a_window_says(trips: Trips) -> None:
    """With noise: the sums of days differ from the differences of totals by nothing."""
    trips.close(12)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
        found = rows(con, "SELECT day, n FROM dpsql.rides WHERE station = 1 ORDER BY day")
        state = con.service.counters.states[0]
        counted = con.service.counters.counted(state, con.service.account("ana"))
    assert counted is not None and len({n for _, n in found}) > 1
    exact = [sum(x[0] for x in counted.estimates[0][: t + 1]) for t in range(11)]
    for t in range(11):
        assert abs(sum(n for _, n in found[: t + 1]) - F(exact[t], 2**20)) <= F(1, 2)  # type: ignore[misc]


def test_it_is_named_and_refused_by_what_it_is(trips: Trips) -> None:
    with dpsql.connect(trips.policy, analyst="ana") as con:
        for sql, why in {
            MADE.replace("station, COUNT", "COUNT"): "selects its keys",
            MADE.replace("COUNT(*) AS n", "AVG(minutes) AS n"): "this cannot be counted",
            MADE.replace("COUNT(*) AS n", "COUNT(*) / 2 AS n"): "column n is not a key, a count or a sum",
            MADE.replace("2026-01-02", "2025-12-31"): "begins no day of trips, which begins with 2026-01-01",
            MADE.replace("rides", "budget"): "dpsql.budget is the name of something else",
            MADE.replace("rides", "rides_error"): "is the name of something else",
            MADE.replace("GROUP BY station", "GROUP BY 1"): "the keys of a counter are named",
            MADE.replace("FROM trips", "FROM stations"): "a counter reads one growing table",
            MADE.replace(
                "FROM trips", "FROM trips t JOIN trips u ON t.day = u.day"
            ): "a counter reads one growing table",
            MADE.replace("GROUP BY", "ORDER BY"): "ORDER is none of a counter's clauses",
            MADE.replace("SUM(minutes)", "SUM(minute)"): "column minute does not exist",
            MADE.replace(" FROM DATE '2026-01-02'", ""): "FROM DATE '…' is missing",
            MADE.replace("rho = 0.02", "rho = 0.02, epsilon = 1"): "each say how much to spend",
            MADE.replace("rho = 0.02", "k = 2"): "an option of a counter is",
        }.items():
            with pytest.raises(dpsql.Error, match=why):
                con.counter_of(sql).cost()
        with pytest.raises(dpsql.Error, match="there is no counter 'rides'"):
            con.drop_counter("rides")
        assert con.counter_of(MADE).cost() == dpsql.PrivacyLoss(rho=F(1, 50))
        assert not con.ledger.history()


def test_a_ledger_that_counts_epsilon_alone_refuses_it_by_name(tmp_path: Path) -> None:
    trips = make_trips(tmp_path, accountant="pure_dp", each="{epsilon: 1}")
    with dpsql.connect(trips.policy) as con, pytest.raises(dpsql.Error) as why:
        con.counter_of(MADE.replace("rho = 0.02", "epsilon = 0.5")).cost()
    assert "a counter needs Gaussian noise, and the policy's accountant is pure_dp" in str(why.value)
    assert "nothing was spent" in str(why.value)


def test_under_epsilon_and_delta_its_rho_is_converted_once(tmp_path: Path) -> None:
    trips = make_trips(tmp_path, accountant="approx_dp", each="{epsilon: 1, delta: 1e-5}")
    trips.close(4)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        made = con.counter_of(MADE.replace("rho = 0.02", "epsilon = 0.5, delta = 1e-6")).run()
        assert F(49, 100) < made.spent.epsilon <= F(1, 2) and made.spent.delta == F(1, 10**6)
        assert made.ticked.through == day(4) and len(rows(con)) == 6


def test_another_account_pays_its_price_once_to_read_it(trips: Trips) -> None:
    trips.close(4)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
        told = rows(con)
    with dpsql.connect(trips.policy, analyst="ben") as con:
        with pytest.raises(dpsql.Error, match="this account has not got counter rides"):
            rows(con)
        assert [(c.name, c.held, c.analyst) for c in con.counters] == [("rides", False, "ana")]
        assert con.receive_counter("rides").rho == F(1, 50)
        assert con.receive_counter("rides") == dpsql.PrivacyLoss()
        assert rows(con) == told and spent(con, 3, "ben") == spent(con, 3) == F(1, 50)
        with pytest.raises(dpsql.Error, match="is of account ana"):
            con.drop_counter("rides")


def test_drop_gives_back_what_is_not_measured_yet(trips: Trips) -> None:
    trips.close(4)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
        con.drop_counter("rides")
        assert [spent(con, n) for n in (4, 5)] == [F(1, 50), 0] and not con.counters
        with pytest.raises(dpsql.Error, match="does not exist"):
            rows(con)
        con.counter_of(MADE).run()
        assert [spent(con, n) for n in (4, 5)] == [F(1, 25), F(1, 50)]


def test_what_is_told_of_spending_is_what_the_ledger_has_after_drop_too(trips: Trips) -> None:
    """The course over time, which pages draw, and what each day has lost."""
    trips.close(4)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
        con.sql("SELECT COUNT(*) AS n FROM trips WHERE day <= DATE '2026-01-03'").run(rho="0.1")
        con.drop_counter("rides")
        ledger, names = con.ledger, load_policy(trips.policy).unit_names
        story = SpendingStory.of(names, ledger.history())
        assert dearest(story.trail("trips", None).by_period).rho == F(3, 25)
        for who in (None, "ana"):
            trail = story.trail("trips", who)
            assert trail.by_period == ledger.by_period("trips", who) and trail.spent == ledger.spent("trips", who)
            assert len(trail.points()) == 3  # COUNTER, the query, and what DROP gave back
        assert story.charged("ana") == {"trips": ledger.charged("trips", "ana")}
        (panel,) = panels(con.policy, story, None)
        days = [(day(1), F(1, 10)), (day(2), F(3, 25)), (day(4), F(1, 50)), (day(5), F(0)), (day(6), F(0))]
        assert [list(line.periods) for line in panel.lines[:2]] == [days, days] and panel.every == "day"
        page = as_html("trips", [panel])
        assert "<h3>By day of the rows</h3>" in page and page.count("<svg") == 2 and ">2026-01-06</span>" in page


def test_what_a_tick_stores_is_never_called_older(trips: Trips) -> None:
    """A counter that is the first thing that this dpsql stores is of its own rules."""
    trips.close(4)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
        done = con.sql("SELECT COUNT(*) AS n FROM trips WHERE day <= DATE '2026-01-03'").run(rho="0.1")
        assert not any("older dpsql" in note for note in done.notes)


def test_a_price_that_does_not_fit_is_refused_and_nothing_is_spent(trips: Trips) -> None:
    with dpsql.connect(trips.policy, analyst="ana") as con, pytest.raises(dpsql.Error) as why:
        con.counter_of(RIDES.format(rho="1.5")).run()
    assert why.value.diagnostics[0].code in ("DP403", "DP404")
    with dpsql.connect(trips.policy) as con:
        assert not con.ledger.history()


def test_under_other_bounds_it_is_not_ticked_and_not_read(trips: Trips) -> None:
    trips.close(3)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
    trips.write(most=40)
    trips.close(5)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        found = con.tick_counter("rides")
        assert (found.through, found.lost) == (day(3), day(4)) and "measures it otherwise now" in found.why
        with pytest.raises(dpsql.Error, match="is measured otherwise now"):
            rows(con)
        assert con.counters[0].state != ""
    trips.write()
    with dpsql.connect(trips.policy, analyst="ana") as con:
        assert con.tick_counter("rides").through == day(5) and len(rows(con)) == 8


def test_who_waits_is_told_before_it_is_charged_drawn_and_seen(trips: Trips) -> None:
    """Beside TICK and TICKED: whether anything was asked of the data, and what is stored."""
    trips.close(3)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
        trips.close(5)
        told: list[tuple[str, list[EntryKind], int]] = []
        (state,), service = con.service.counters.states, con.service

        def note(step: str) -> None:
            kinds = [r.entry.kind for r in con.ledger.history()][7:]
            told.append((step, kinds, len(service.account("ana").store.find([counter_store.address(state, day(4))]))))

        def account_of(who: str) -> AnalystAccount:
            return service.account(
                who, lambda entry: note("charging"), leaving=lambda: note("leaving"), drawing=lambda: note("drawing")
            )

        (found,) = service.counters.tick("rides", most=1, account_of=account_of)
        note("over")
        assert found.through == day(4) and con.tick_counter("rides").through == day(5)
    tick, ticked = EntryKind.TICK, EntryKind.TICKED
    assert told == [
        ("charging", [], 0), ("drawing", [tick], 0), ("leaving", [tick], 0), ("over", [tick, ticked], 1),
    ]  # fmt: skip


# --- crashes ----------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone."""


def stop(*_: object, **__: object) -> None:
    raise Killed


STEPS = {
    "before TICK": ("charge_tick", True),
    "drawn, and not stored": ("_stored_answer", True),
    "stored, and not given": ("give", True),
    "given, and not finished": ("give", False),
}


@pytest.mark.parametrize("step", STEPS)
def test_whatever_is_killed_nothing_unpaid_is_shown(trips: Trips, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trips.close(3)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
        told = rows(con)
    trips.close(4)
    name, before = STEPS[step]
    own = getattr(counter_store, name)

    def dies(*args: object, **named: object) -> object:
        if not before:
            own(*args, **named)
        return stop()

    with dpsql.connect(trips.policy, analyst="ana") as con, monkeypatch.context() as patched:
        patched.setattr(counter_store, name, dies)
        with pytest.raises(Killed):
            con.tick_counter("rides")
    with dpsql.connect(trips.policy, analyst="ana") as con:
        given = step == "given, and not finished"
        assert rows(con)[:4] == told and len(rows(con)) == (6 if given else 4)
        charged = spent(con, 4)
        automatic = con.service.counters.tick()  # as at a closing: nothing is charged
        assert spent(con, 4) == charged == F(1, 50)
        if step == "drawn, and not stored":
            assert automatic[0].lost == day(4) and "numbers were lost" in automatic[0].why
            assert con.tick_counter("rides").through == day(4)
            again = F(1, 50) * weights(15_000)[0] ** 2 / squares(15_000)
            assert F(1, 50) + again <= spent(con, 4) < F(1, 50) + again + F(1, 10**30)
        else:
            assert automatic[0].through == day(4)
            assert spent(con, 4) == F(1, 50)
        assert rows(con)[:4] == told and len(rows(con)) == 6


def test_where_its_numbers_are_gone_it_is_not_ticked_on(trips: Trips) -> None:
    trips.close(3)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
    for file in trips.folder.glob("l.sqlite.answers*"):
        file.unlink()
    trips.close(4)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        found = con.tick_counter("rides")
        assert found.lost == day(4) and "are gone" in found.why
        assert rows(con) == ()


@pytest.mark.parametrize("locked", [True, False])
def test_of_gateways_that_tick_at_once_one_is_given(
    trips: Trips, locked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the name that they hold, too: then what was drawn besides is charged, or refused."""
    from dpsql.answers.stored.store import sqlite

    trips.close(3)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
    trips.close(8)
    if not locked:
        monkeypatch.setattr(sqlite, "alone", lambda *given: given[-1]())
    told: list[object] = []

    def gateway() -> None:
        with dpsql.connect(trips.policy, analyst="ana") as con:
            for _ in range(20):
                if con.tick_counter("rides").through == day(8):
                    break
            told.append(rows(con))

    threads = [Thread(target=gateway) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 3 and told.count(told[0]) == 3 and len(told[0]) == 14  # type: ignore[arg-type]
    with dpsql.connect(trips.policy, analyst="ana") as con:
        entries = [r.entry for r in con.ledger.history()]
        ticks = [e for e in entries if e.kind is EntryKind.TICK]
        assert len([e for e in entries if e.kind is EntryKind.TICKED]) == 7
        free_ones = [e for e in ticks if not e.charges]
        assert len(free_ones) == 7 and (locked is False or len(ticks) == 7)


def test_a_closing_of_before_its_first_day_is_no_tick(trips: Trips) -> None:
    trips.close(1)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        assert con.counter_of(MADE).run().ticked == dpsql.service.counters.counter_store.Ticked("rides", None)


def test_the_price_and_the_errors_are_told_before_paying(trips: Trips) -> None:
    with dpsql.connect(trips.policy, analyst="ana") as con:
        told = con.counter_of(MADE).explain()
        assert "cost: ρ 0.02 of each row of trips from 2026-01-02 on" in told and "± of" in told
        assert not con.ledger.history()


def test_days_that_come_later_are_read_by_no_earlier_tick(trips: Trips) -> None:
    """A row that is there already, of a day that is not closed."""
    trips.close(2)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
        assert {d for d, *_ in rows(con)} == {day(2)}
        assert dt.date(2026, 1, 3) not in {d for d, *_ in rows(con)}


def test_numbers_that_are_not_those_of_ticked_are_not_shown(trips: Trips, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody has changed the store of answers."""
    trips.close(3)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
        assert len(rows(con)) == 4
    own = counter_store._those_of

    def changed(*given: object) -> object:
        found = own(*given)  # type: ignore[arg-type]
        return None if found is None else [replace(a, values=[v + 1 for v in a.values]) for a in found]

    with dpsql.connect(trips.policy, analyst="ana") as con, monkeypatch.context() as patched:
        patched.setattr(counter_store, "_those_of", changed)
        assert rows(con) == ()
