"""Counters and periods at a server: closing, prices before paying, tick by tick, reading, rights and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.core.ledger.ledger import EntryKind
from dpsql.faces.server.front.commands.commands import CloseCursor, QueryCommand, Write
from dpsql.faces.server.front.commands.read_command import command
from dpsql.faces.server.statements import Login, Refused, StatementSettings
from dpsql.faces.server.workers.worker_messages import Ask, Reply
from dpsql.faces.server.workers.worker_pool import Pool
from tests.support.counted_trips import EXACT, PER_DAY, RIDES, day, make_trips
from tests.support.served_shop import FINE, Served, inside, served, with_serve
from tests.support.small_shop import Shop

MADE = RIDES.format(rho=EXACT)
PLAIN = StatementSettings()
ANA = Login("ana", "ana", address="127.0.0.1", may=("counters",))
BEN = Login("ben", "ben", address="127.0.0.1", may=("counters",))
VIEWER = Login("bea", "ben", address="127.0.0.1")
CUSTODIAN = Login("eve", "*", role="custodian", address="127.0.0.1", may=("periods",))


def town(folder: Path, **said: str) -> Shop:
    trips = make_trips(folder, each="{rho: 1e15}", **said)
    Path(trips.policy).rename(folder / "shop.yaml")
    return with_serve(Shop(folder), f"{FINE}}}")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    shop = town(tmp_path)
    with served(shop, inside(shop)) as server:
        yield server


def entries(server: Served) -> int:
    """How many its ledger has."""
    with dpsql.connect(server.shop.policy) as con:
        return len(con.ledger.history()) if con.has_ledger else 0


def close(server: Served, n: int) -> list[tuple[object, ...]]:
    return list(server.ask(f"CLOSE DP PERIODS OF trips THROUGH DATE '{day(n)}'", login=CUSTODIAN, settings=PLAIN).rows)


def refused(server: Served, sql: str, login: Login = ANA) -> Refused:
    with pytest.raises(Refused) as refusal:
        server.ask(sql, login=login, settings=PLAIN)
    return refusal.value


def test_a_counter_is_priced_made_ticked_at_closing_and_read_by_any_query(server: Served) -> None:
    assert close(server, 3) == [("trips", day(1), day(3), "queries read 2026-01-01 … 2026-01-03")]
    before = entries(server)
    costs = list(server.ask(f"EXPLAIN (COST) {MADE}", login=ANA, settings=PLAIN).rows)
    assert [row[:2] for row in costs] == [("ρ 100000000000000", "n"), ("ρ 100000000000000", "minutes")]
    lines = [line for (line,) in server.ask(f"EXPLAIN {MADE}", login=ANA, settings=PLAIN).rows]
    assert lines[-1].startswith("cost: ρ 100000000000000 of each row of trips from 2026-01-02 on")  # type: ignore[union-attr]
    assert entries(server) == before

    made = server.ask(MADE, login=ANA, settings=PLAIN)
    assert list(made.rows) == [("rides", "ρ 100000000000000", day(3), "counted through 2026-01-03")]
    assert made.command == "CREATE DP COUNTER" and any(n.startswith("charged ρ") for n in made.notices)
    assert close(server, 5)[1:] == [("rides", day(2), day(5), "counter: counted through 2026-01-05")]

    for _ in range(2):
        answer = server.ask("SELECT * FROM dpsql.rides", login=ANA, settings=PLAIN)
        assert list(answer.rows) == [
            (day(n), station, times * PER_DAY, times * PER_DAY * minutes)
            for n in (2, 3, 4, 5)
            for station, times, minutes in ((1, 1, 1), (2, 2, 10))
        ]
        assert answer.spent == "" and [name for name, _ in answer.columns] == ["day", "station", "n", "minutes"]
    found = server.ask("SELECT SUM(n) FROM dpsql.rides WHERE day > $1", day(3), login=ANA, settings=PLAIN)
    assert list(found.rows) == [(30,)]
    joined = "SELECT name, SUM(r.n) FROM dpsql.rides r JOIN stations USING (station) GROUP BY name ORDER BY 1"
    assert list(server.ask(joined, login=ANA, settings=PLAIN).rows) == [("a", 20), ("b", 40)]
    window = "SELECT n < 9, minutes < 99 FROM dpsql.rides_error(DATE '2026-01-03', DATE '2026-01-05')"
    assert list(server.ask(window, login=ANA, settings=PLAIN).rows) == [(True, True)]
    mixed = "SELECT (SELECT COUNT(*) FROM dpsql.counters), COUNT(*) FROM dpsql.rides"
    assert list(server.ask(mixed, login=ANA, settings=PLAIN).rows) == [(1, 8)]


def test_a_front_without_data_describes_what_the_ledger_alone_knows(server: Served) -> None:
    """It plans before any period is closed, and for ever; whoever asks is told by a worker, which looks each time."""
    sql = "SELECT day, COUNT(*) AS n FROM trips WHERE day > last_closed('trips') - 2 GROUP BY day ORDER BY day"
    shape = server.do(lambda: server.gateway.describe(ANA, sql, PLAIN))
    assert [name for name, _ in shape.columns or ()] == ["day", "n"]
    spending = replace(PLAIN, rho="0.5")
    with pytest.raises(Refused, match="no period is closed yet"):
        server.ask(sql, login=ANA, settings=spending)
    for n in (3, 5):  # the same text, of other days
        close(server, n)
        answer = server.ask(sql, login=ANA, settings=spending)
        assert [row[0] for row in answer.rows] == [day(n - 1), day(n)]
        told = [str(note) for note in answer.notices]
        assert f"last_closed('trips') is {day(n)}: a constant of this query" in told
        assert any(f"what is later than {day(n)} is not closed: not read" in each for each in told)
        assert not any("not known here" in each for each in told)


def test_each_tick_is_a_run_of_its_own(server: Served) -> None:
    """TICK stands before its TICKED, one after the other: no second one is charged while the first is not given."""
    server.ask(MADE, login=ANA, settings=PLAIN)
    runs, pool = list[str](), server.gateway.pool

    async def noted(ask: Ask, entry: Any = None) -> Reply:
        runs.append(ask.form)
        return await Pool.run(pool, ask, entry)

    pool.run = noted  # type: ignore[method-assign]
    close(server, 6)
    assert runs == ["0", "1", "2", "3", "4"]
    with dpsql.connect(server.shop.policy, analyst="ana") as con:
        kinds = [r.entry.kind for r in con.ledger.history() if r.entry.kind in (EntryKind.TICK, EntryKind.TICKED)]
    assert kinds == [EntryKind.TICK, EntryKind.TICKED] * 5
    history = server.ask("SELECT statement FROM dpsql.history", login=ANA, settings=PLAIN)
    assert len(history.rows) == 1  # no tick stands there: when it was drawn would be told


def test_another_account_pays_its_price_first(server: Served) -> None:
    close(server, 4)
    server.ask(MADE, login=ANA, settings=PLAIN)
    assert "has not got counter rides" in str(refused(server, "SELECT * FROM dpsql.rides", VIEWER))
    (cost,) = server.ask("EXPLAIN (COST) RECEIVE DP COUNTER rides", login=VIEWER, settings=PLAIN).rows
    assert cost[0] == "ρ 100000000000000"
    got = server.ask("RECEIVE DP COUNTER rides", login=VIEWER, settings=PLAIN)
    assert list(got.rows) == [("rides", "ρ 100000000000000", None, "read it:  SELECT * FROM dpsql.rides")]
    assert len(server.ask("SELECT * FROM dpsql.rides", login=VIEWER, settings=PLAIN).rows) == 6
    again = server.ask("RECEIVE DP COUNTER rides", login=VIEWER, settings=PLAIN)
    assert again.spent == "" and next(iter(again.rows))[1] == ""
    (listed,) = server.ask("SHOW dpsql.counters", login=VIEWER, settings=PLAIN).rows
    assert listed[:5] == ("rides", "trips", day(2), day(4), "ana") and listed[6:8] == (True, "goes on")
    assert "is of account ana" in str(refused(server, "DROP DP COUNTER rides", BEN))
    dropped = server.ask("DROP DP COUNTER rides", login=ANA, settings=PLAIN)
    assert dropped.command == "DROP DP COUNTER" and next(iter(dropped.rows))[0] == "rides"
    assert "does not exist" in str(refused(server, "SELECT * FROM dpsql.rides"))


def test_what_was_lost_is_priced_and_drawn_again_for_who_made_it(server: Served) -> None:
    shop = server.shop
    close(server, 2)
    server.ask(MADE, login=ANA, settings=PLAIN)
    with dpsql.connect(shop.policy, analyst="ana") as con:  # a gateway that dies behind its TICK
        con.service.counters.tick()
        from dpsql.core.ledger import closings
        from dpsql.core.ledger.counters import tick
        from dpsql.core.ledger.ledger import Caps

        closings.close(con.ledger, con.policy, con.policy.tables["trips"], day(3))
        entry = tick(con.ledger.counters()[0], day(3), ["lost"], "zcdp", con.policy.hash)
        con.ledger.reserve(entry, Caps())
    assert close(server, 4)[1] == (
        "rides", day(2), day(2), f"counter: {day(3)} is not counted: its numbers were lost: to draw them again is "
        "charged",
    )  # fmt: skip
    (cost,) = server.ask("EXPLAIN (COST) TICK DP COUNTER rides", login=ANA, settings=PLAIN).rows
    assert str(cost[0]).startswith("ρ 5")  # 59 % of what it has cost
    assert not server.ask("TICK DP COUNTER rides", login=BEN, settings=PLAIN).spent
    ticked = server.ask("TICK DP COUNTER rides", login=ANA, settings=PLAIN)
    assert list(ticked.rows) == [("rides", cost[0], day(4), "counted through 2026-01-04")]
    assert ticked.spent == cost[0] and len(server.ask("SELECT * FROM dpsql.rides", login=ANA).rows) == 6


@pytest.mark.parametrize(
    ("sql", "code", "says"),
    [
        ("CLOSE DP PERIODS OF stations THROUGH DATE '2026-01-03'", "DP903", "stations does not grow"),
        ("CLOSE DP PERIODS OF nobody THROUGH DATE '2026-01-03'", "DP903", "the policy has no table 'nobody'"),
        ("CLOSE DP PERIODS THROUGH DATE '2025-12-31'", "DP903", "ends no day of trips, which begins with 2026-01-01"),
        ("CLOSE DP PERIODS THROUGH yesterday", "DP010", "DATE is missing here"),
        ("CLOSE DP PERIODS THROUGH DATE '2026-02-30'", "DP010", "a day is missing here"),
        ("REOPEN DP PERIODS FROM DATE '2026-01-01' THROUGH DATE '2026-01-09'", "DP903", "are not closed days of trips"),
        ("EXPLAIN CLOSE DP PERIODS THROUGH DATE '2026-01-03'", "DP012", "closing periods is free"),
    ],
)
def test_what_of_periods_is_refused(server: Served, sql: str, code: str, says: str) -> None:
    before = entries(server)
    (found, *_) = refused(server, sql, CUSTODIAN).diagnostics
    assert found.code == code and says in found.message and found.help
    assert entries(server) == before


@pytest.mark.parametrize(
    ("sql", "code", "says"),
    [
        (MADE.replace("COUNT(*)", "COUNT(DISTINCT minutes)"), "DP903", "it counts rows, and adds values"),
        (MADE.replace("FROM trips", "FROM stations"), "DP903", ""),
        (MADE.replace("2026-01-02", "2025-12-02"), "DP903", "begins no day of trips"),
        (MADE.replace("station, COUNT", "nobody, COUNT").replace("BY station", "BY nobody"), "DP103", "nobody"),
        (MADE.replace("COUNTER rides", "COUNTER budget"), "DP903", "is the name of something else"),
        (RIDES.format(rho="1e16"), "DP404", "ρ 1e16 asked"),
        (MADE.partition(" WITH")[0], "DP401", "no epsilon was given"),
        (MADE[:-30] + " WITH (rho", "DP010", "cannot be read"),
        ("DROP DP COUNTER nothing", "DP903", "there is no counter 'nothing'"),
        ("TICK DP COUNTER nothing", "DP903", "there is no counter 'nothing'"),
        ("RECEIVE DP COUNTER nothing", "DP903", "there is no counter 'nothing'"),
        ("EXPLAIN DROP DP COUNTER nothing", "DP012", "is free"),
        (f"EXPLAIN (FORMAT JSON) {MADE}", "DP903", "a counter is explained as text"),
        ("SELECT * FROM dpsql.nothing", "DP102", "table dpsql.nothing does not exist"),
    ],
)
def test_what_of_counters_is_refused(server: Served, sql: str, code: str, says: str) -> None:
    close(server, 3)
    before = entries(server)
    (found, *_) = refused(server, sql).diagnostics
    assert found.code == code and says in found.message
    assert entries(server) == before


@pytest.mark.parametrize(
    ("sql", "right"),
    [
        (MADE, "counters"),
        (f"EXPLAIN (COST) {MADE}", "counters"),
        ("DROP DP COUNTER rides", "counters"),
        ("TICK DP COUNTER rides", "counters"),
        ("CLOSE DP PERIODS THROUGH DATE '2026-01-03'", "periods"),
        ("REOPEN DP PERIODS FROM DATE '2026-01-01' THROUGH DATE '2026-01-02'", "periods"),
    ],
)
def test_without_its_right_it_is_refused_as_a_write(server: Served, sql: str, right: str) -> None:
    others = {"counters": "periods", "periods": "counters"}[right]
    for login in (VIEWER, replace(VIEWER, role="custodian"), replace(VIEWER, may=("summaries", others))):
        found = refused(server, sql, login)
        assert found.sqlstate == "25006" and found.diagnostics[0].help == (
            f"custodian: give it the right, in the file of users:  may: [{right}]",
        )
    assert not entries(server)


def test_a_day_that_is_opened_again_is_drawn_again(server: Served) -> None:
    close(server, 4)
    ask = "SELECT COUNT(*) FROM trips WHERE day = DATE '2026-01-02'"
    paid = replace(PLAIN, rho="0.5")
    assert server.ask(ask, login=ANA, settings=paid).spent and not server.ask(ask, login=ANA, settings=paid).spent
    reopened = server.ask(
        "REOPEN DP PERIODS OF trips FROM DATE '2026-01-02' THROUGH DATE '2026-01-02'", login=CUSTODIAN, settings=PLAIN
    )
    (row,) = reopened.rows
    assert reopened.command == "REOPEN DP PERIODS" and "is served no longer" in str(row[3])
    assert server.ask(ask, login=ANA, settings=paid).spent


def test_what_is_closed_and_spent_stands_in_relations(server: Served) -> None:
    assert list(server.ask("SELECT * FROM dpsql.closed_periods", login=ANA, settings=PLAIN).rows) == [
        ("trips", "day", "day", None, None)
    ]
    close(server, 4)
    server.ask("SELECT COUNT(*) FROM trips", login=ANA, settings=replace(PLAIN, rho="0.5"))
    assert list(server.ask("SELECT first_day, last_day FROM dpsql.closed_periods", login=ANA, settings=PLAIN).rows) == [
        (day(1), day(4))
    ]
    own = list(server.ask("SHOW dpsql.periods", login=ANA, settings=PLAIN).rows)
    assert [row[:3] for row in own] == [("trips", day(1), day(4)), ("trips", day(5), None)]
    every = "SELECT account, first_day, rho_spent FROM dpsql.periods_of_all"
    assert "for logins of the role custodian" in str(refused(server, every))
    found = sorted(server.ask(every, login=CUSTODIAN, settings=PLAIN).rows, key=repr)
    assert ("ana", day(1), 0.5) in found and (None, day(1), 0.5) in found and (None, day(5), 0.0) in found


def test_the_front_hands_them_on() -> None:
    for sql in (MADE, "drop dp counter x", "TICK DP COUNTER x", "RECEIVE DP COUNTER x", "close dp periods through x"):
        assert isinstance(command(sql), QueryCommand)
    assert isinstance(command("CLOSE dp"), CloseCursor) and isinstance(command("CREATE DP COUNT x"), Write)
