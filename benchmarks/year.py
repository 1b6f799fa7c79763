"""A dashboard that is refreshed every day for a simulated year: how far its numbers err at one total.

    python -m benchmarks.year [--size short] [--folder DIR] [--json FILE]

Ten stations with 20 to 2,000 rows a day, ten measures of each, shown for the last day, 7 and 28 days, and in all. What
a row loses in the year is (1, 10⁻⁶) in each column. *Total*: one budget for ever, divided among all that is asked, as
(ε, δ) or as ρ. *Days*: `budgets: {each_period: …}`; each day is asked once, at the whole ε, and wider numbers are sums
of the stored days. Shown is the root of the mean square error in rows, over all days, stations and measures.
"""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import duckdb

from benchmarks.frame import Figures, Settings, command, table
from dpsql.core.ledger.closings import close
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.policy.units import Accountant
from dpsql.service.open_data import open_data
from dpsql.service.service import Service

TITLE = "A dashboard for a year"
FIRST, STATIONS, MEASURES = dt.date(2025, 1, 1), 10, 10
WINDOWS = {"day": 1, "7 days": 7, "28 days": 28, "running total": None}
EPSILON, DELTA = 1, "1e-6"
_FLAGS = [f"m{i}" for i in range(1, MEASURES)]
_SHOWN = ", ".join(["COUNT(*) AS m0", *(f"SUM({flag}) AS {flag}" for flag in _FLAGS)])
Numbers = dict[int, tuple[int, ...]]
"""Station → its measures."""


def _policy(accountant: Accountant, budgets: str) -> str:
    flags = ", ".join(f"{flag}: {{type: bigint, bounds: [0, 1], nullable: false}}" for flag in _FLAGS)
    return (
        f"version: 1\nname: town\ndatabase: town.duckdb\nprivacy: {{accountant: {accountant}}}\nbudgets: {budgets}\n"
        f"tables:\n  trips:\n    unit: {{rows: 1}}\n    grows: {{by: day, every: day, from: {FIRST}}}\n    columns: "
        f"{{day: {{type: date, nullable: false}}, station: {{type: bigint, domain: "
        f"{list(range(STATIONS))}, nullable: false}}, {flags}}}\n"
    )


def _make(file: Path, days: int) -> None:
    """Rows by station: 20, 33, … 2,000 a day; a flag is set for every second, third, … of them."""
    flags = ", ".join(f"(n % {i + 1} = 0)::BIGINT AS {flag}" for i, flag in enumerate(_FLAGS, 1))
    with duckdb.connect(str(file)) as con:
        con.execute(
            f"CREATE TABLE trips AS SELECT DATE '{FIRST}' + d::INT AS day, s AS station, {flags} "
            f"FROM range({days}) t(d), range({STATIONS}) u(s), range(2000) v(n) "
            f"WHERE n < 20 * pow(100, s / {STATIONS - 1}.0)"
        )


def _true(file: Path) -> list[Numbers]:
    """Day by day."""
    with duckdb.connect(str(file), read_only=True) as con:
        rows = con.execute(f"SELECT day, station, {_SHOWN} FROM trips GROUP BY day, station").fetchall()
    found: dict[dt.date, Numbers] = {}
    for day, station, *numbers in rows:
        found.setdefault(day, {})[station] = tuple(map(int, numbers))
    return [found[day] for day in sorted(found)]


def _last(days: Sequence[Numbers], window: int | None) -> Numbers:
    """The sum of the last days."""
    part = days if window is None else days[-window:]
    return {s: tuple(sum(day[s][i] for day in part) for i in range(MEASURES)) for s in range(STATIONS)}


def _service(folder: Path, accountant: Accountant, budgets: str) -> Service:
    (folder / "town.yaml").write_text(_policy(accountant, budgets), encoding="utf-8")
    return Service(*open_data(str(folder / "town.yaml"), None, None, None, None), MemoryLedger("town", accountant))


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


def _of_one_total(folder: Path, accountant: Accountant, true: Sequence[Numbers]) -> dict[str, float]:
    """Each window is asked anew each day, at its share of what may be lost."""
    asked, errors = len(WINDOWS) * len(true), _Errors()
    rho = (math.sqrt(EPSILON - math.log(float(DELTA))) - math.sqrt(-math.log(float(DELTA)))) ** 2
    cap = f"{{rho: {rho:.9f}, delta: {DELTA}}}" if accountant == "zcdp" else f"{{epsilon: {EPSILON}, delta: {DELTA}}}"
    service = _service(folder, accountant, f"{{total: {cap}}}")
    share = {"rho": f"{rho / asked * 0.999:.12f}"} if accountant == "zcdp" else {"epsilon": f"{EPSILON / asked:.9f}"}
    session = service.session()
    for at in range(len(true)):
        close(service.ledger, service.policy, service.policy.tables["trips"], FIRST + dt.timedelta(days=at))
        for name, window in WINDOWS.items():
            where = "" if window is None else f" WHERE day > last_closed('trips') - {window}"
            query = session.sql(f"SELECT station, {_SHOWN} FROM trips{where} GROUP BY station")
            errors.add(name, _released(query.run(**share, fresh=True, anyway=True).rows), _last(true[: at + 1], window))
    service.close()
    return errors.roots


def _of_stored_days(folder: Path, true: Sequence[Numbers]) -> dict[str, float]:
    """Each day is asked once, at the whole ε."""
    errors, days = _Errors(), list[Numbers]()
    service = _service(folder, "approx_dp", f"{{each_period: {{epsilon: {EPSILON}, delta: {DELTA}}}}}")
    query = f"SELECT station, {_SHOWN} FROM trips WHERE day = last_closed('trips') GROUP BY station"
    for at in range(len(true)):
        close(service.ledger, service.policy, service.policy.tables["trips"], FIRST + dt.timedelta(days=at))
        days.append(_released(service.session().sql(query).run(epsilon=EPSILON).rows))
        for name, window in WINDOWS.items():
            errors.add(name, _last(days, window), _last(true[: at + 1], window))
    service.close()
    return errors.roots


def run(settings: Settings) -> Figures:
    """Measure."""
    days = settings.pick(10, 365, 365)
    with tempfile.TemporaryDirectory(dir=settings.folder) as made:
        folder = Path(made)
        _make(folder / "town.duckdb", days)
        true = _true(folder / "town.duckdb")
        columns: Mapping[str, dict[str, float]] = {
            "total, ε and δ": _of_one_total(folder, "approx_dp", true),
            "total, ρ": _of_one_total(folder, "zcdp", true),
            "days": _of_stored_days(folder, true),
        }
    return {"days": days, "root mean square error": columns}


def markdown(figures: Figures) -> str:
    """Show."""
    columns = figures["root mean square error"]
    rows = [[name, *(f"{found[name]:,.1f}" for found in columns.values())] for name in WINDOWS]
    return f"{figures['days']} days, error in rows.\n\n{table(['', *columns], rows)}"


if __name__ == "__main__":
    command(__doc__, "year", run, markdown)
