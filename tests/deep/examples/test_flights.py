"""The flights example: every query runs as its file says, for both units, and means what is written here by hand."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from tests.support.bounded_truth import Count, Limits, Mean, Total, Truth, Units, agree, answer, base, connection

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "flights"
QUERIES = {path.stem: path for path in sorted((EXAMPLE / "queries").glob("*.sql"))}
REFUSED = {name: path for name, path in QUERIES.items() if "refused" in name}
LIMITS: dict[str, Limits | None] = {"flights": Limits(total=200, per_group=30, groups=4), "flights-rows": None}

ORIGINS = "SELECT unnest(['EWR', 'JFK', 'LGA']) AS origin"
DELAY, ARRIVAL = "clip(dep_delay, -30, 180)", "clip(arr_delay, -60, 180)"
MILES, MINUTES = "clip(distance, 0, 3000)", "clip(air_time, 0, 720)"
JULY = Truth(
    "SELECT tailnum AS u, * FROM flights WHERE month = 7",
    {"n": Count(), "d": Mean(DELAY, -30, 180)},
    ["origin"],
    ORIGINS,
    answer="FROM b ORDER BY n DESC",
)
TRUTHS = {
    "01-how-many": Truth("SELECT tailnum AS u FROM flights", {"flights": Count()}),
    "02-july-by-origin": JULY,
    "03-busiest-airlines": Truth(
        "SELECT tailnum AS u, airlines.name, arr_delay FROM flights, airlines "
        "WHERE flights.carrier = airlines.carrier AND month = 1",
        {"n": Count(), "late": Mean(ARRIVAL, -60, 180)},
        ["name"],
        "SELECT name FROM airlines",
        answer="FROM b WHERE n > 500 ORDER BY n DESC, name LIMIT 5",
    ),
    "04-late-and-cancelled": Truth(
        "SELECT tailnum AS u, * FROM flights WHERE month = 12",
        {"flights": Count(), "departed": Count("dep_time IS NOT NULL"), "late": Count("dep_delay > 60")},
        answer="SELECT *, 100.0 * late / departed FROM b",
    ),
    "05-time-of-day": Truth(
        "SELECT tailnum AS u, dep_delay, CASE WHEN hour < 12 THEN 'morning' WHEN hour < 18 THEN 'afternoon' "
        "ELSE 'evening' END AS part_of_day FROM flights WHERE month = 3",
        {"n": Count(), "delay": Mean(DELAY, -30, 180)},
        ["part_of_day"],
        "SELECT unnest(['afternoon', 'evening', 'morning']) AS part_of_day",
        answer="FROM b ORDER BY part_of_day",
    ),
    "06-short-and-long": Truth(
        f"SELECT tailnum AS u, {DELAY} - {ARRIVAL} AS won, distance > 1000 AS far FROM flights "
        "WHERE month = 5 AND day <= 15",
        {"minutes_won": Mean("won", -210, 240), "n": Count("won IS NOT NULL")},
        ["far"],
        "SELECT unnest([false, true]) AS far",
        answer="FROM b ORDER BY far",
    ),
    "07-aircraft-per-airline": Truth(
        "SELECT tailnum AS u, carrier FROM flights WHERE month = 7 AND day BETWEEN 1 AND 7",
        {"aircraft": Units()},
        ["carrier"],
        "SELECT carrier FROM airlines",
        answer="FROM b ORDER BY aircraft DESC, carrier",
    ),
    "08-destinations": Truth(
        "SELECT tailnum AS u, dest FROM flights WHERE month = 7",
        {"n": Count(), "aircraft": Units()},
        ["dest"],
    ),
    "09-by-month": Truth(
        "SELECT tailnum AS u, date_trunc('month', time_hour) AS month, distance FROM flights "
        "WHERE origin = 'LGA' AND time_hour >= '2013-04-01' AND time_hour < '2013-07-01'",
        {"n": Count(), "miles": Total(MILES, 0, 3000)},
        ["month"],
        "SELECT unnest([TIMESTAMP '2013-04-01', TIMESTAMP '2013-05-01', TIMESTAMP '2013-06-01']) AS month",
        answer="FROM b ORDER BY month",
    ),
    "10-rain": Truth(
        "SELECT tailnum AS u, precip > 0 AS rain, dep_delay FROM flights AS f, weather AS w "
        "WHERE f.origin = w.origin AND f.time_hour = w.time_hour AND f.month = 6 AND precip IS NOT NULL",
        {"n": Count(), "delay": Mean(DELAY, -30, 180)},
        ["rain"],
        "SELECT unnest([false, true]) AS rain",
        answer="FROM b ORDER BY rain",
    ),
    "11-seat-miles": Truth(
        f"SELECT f.tailnum AS u, origin, {MILES} AS miles, "
        f"clip({MILES} * clip(seats, 0, 500), 0, 500000) AS seat_miles "
        "FROM flights AS f, planes AS p WHERE f.tailnum = p.tailnum AND month = 9",
        {"seat_miles": Mean("seat_miles", 0, 500000), "s": Total("miles", 0, 3000)},
        ["origin"],
        ORIGINS,
        answer="SELECT origin, seat_miles, s / 1000 FROM b ORDER BY origin",
    ),
    "12-worst-airports": Truth(
        "SELECT tailnum AS u, * FROM flights WHERE month = 6",
        {"delay": Mean(DELAY, -30, 180), "n": Count()},
        ["origin"],
        ORIGINS,
        answer="SELECT origin, delay, delay > 15, if(n > 9000, 'large', 'small') FROM b ORDER BY delay DESC",
    ),
    "13-large-hubs": Truth(
        "SELECT tailnum AS u, dest, origin FROM flights WHERE dest IN ('ATL', 'ORD', 'LAX', 'BOS') AND month = 4",
        {"n": Count()},
        ["dest", "origin"],
        f"SELECT * FROM (SELECT unnest(['ATL', 'ORD', 'LAX', 'BOS']) AS dest), ({ORIGINS})",
        answer="FROM b ORDER BY dest, origin",
    ),
    "14-quarters": Truth(
        "SELECT tailnum AS u, (month + 2) // 3 AS quarter, * FROM flights "
        "WHERE air_time IS NOT NULL AND carrier IN ('B6', 'AA', 'DL')",
        {"miles": Total(MILES, 0, 3000), "minutes": Total(MINUTES, 0, 720)},
        ["quarter"],
        "SELECT unnest([1, 2, 3, 4]) AS quarter",
        answer="SELECT quarter, miles / minutes * 60 FROM b ORDER BY quarter",
    ),
    "15-engines": Truth(
        "SELECT f.tailnum AS u, engine FROM flights AS f, planes AS p WHERE f.tailnum = p.tailnum AND month <= 2",
        {"n": Count(), "aircraft": Units()},
        ["engine"],
        "SELECT DISTINCT engine FROM planes",
        groups_of_one=True,
        answer="FROM b ORDER BY engine",
    ),
    "16-three-of-each-airport": Truth(
        "SELECT tailnum AS u, origin, carrier FROM flights WHERE month = 10",
        {"n": Count()},
        ["origin", "carrier"],
        f"SELECT origin, carrier FROM ({ORIGINS}), airlines",
        answer="SELECT *, RANK() OVER (PARTITION BY origin ORDER BY n DESC) AS place FROM b QUALIFY place <= 3 "
        "ORDER BY origin, place",
    ),
    "17-month-by-month": Truth(
        "SELECT tailnum AS u, month FROM flights WHERE origin = 'JFK'",
        {"n": Count()},
        ["month"],
        "SELECT unnest(range(1, 13)) AS month",
        answer="SELECT month, n, n - LAG(n) OVER (ORDER BY month) FROM b ORDER BY month",
    ),
    "18-high-airports": Truth(
        "SELECT tailnum AS u, origin FROM flights AS f, airports AS a WHERE dest = faa AND alt > 4000 AND month = 2",
        {"n": Count()},
        ["origin"],
        ORIGINS,
        answer="FROM b ORDER BY origin",
    ),
    "19-share-of-the-day": Truth(  # on one day no limit binds, and the groups add up to all flights
        "SELECT tailnum AS u, origin FROM flights WHERE month = 7 AND day = 1",
        {"n": Count()},
        ["origin"],
        ORIGINS,
        answer="SELECT *, 100.0 * n / SUM(n) OVER () FROM b ORDER BY origin",
    ),
    "20-with-a-total": Truth(
        "SELECT tailnum AS u, origin FROM flights WHERE month = 7 AND day = 1",
        {"n": Count()},
        ["origin"],
        ORIGINS,
        answer="FROM b UNION ALL SELECT NULL, SUM(n) FROM b ORDER BY origin NULLS LAST",
    ),
}
answered = pytest.mark.parametrize("name", TRUTHS)
thresholds = pytest.mark.filterwarnings("ignore:.*are shown from:dpsql.UtilityWarning")
"""Of destinations at ε 0.1: airports with fewer flights are hidden, as the example says."""
units = pytest.mark.parametrize("unit", LIMITS)


@pytest.fixture(scope="module")
def sessions(flights_folder: Path) -> Iterator[dict[str, tuple[dpsql.Connection, MemoryLedger]]]:
    """policy name → session and its ledger."""
    found = {name: connection(flights_folder / f"{name}.yaml") for name in LIMITS}
    yield found
    for con, _ in found.values():
        con.close()


Sessions = dict[str, tuple[dpsql.Connection, MemoryLedger]]


def sql_of(name: str) -> str:
    return QUERIES[name].read_text(encoding="utf-8")


def test_every_query_has_a_truth_or_a_code() -> None:
    assert set(QUERIES) == set(TRUTHS) | set(REFUSED)
    assert len(TRUTHS) >= 12 and len(REFUSED) >= 4


@pytest.mark.sampled(3)
@units
@answered
def test_the_bounded_truth(name: str, unit: str, sessions: Sessions, flights_tables: duckdb.DuckDBPyConnection) -> None:
    """With next to no noise every query gives the truth that was written down independently, rows, order and all."""
    con, ledger = sessions[unit]
    truth = TRUTHS[name]
    if name == "08-destinations":  # the threshold for δ = 1e-7 without noise: two aircraft, or two flights
        deciding = "n" if LIMITS[unit] is None else "aircraft"
        truth = replace(truth, answer=f"SELECT dest, n FROM b WHERE {deciding} >= 2 ORDER BY n DESC, dest")
    found = con.sql(sql_of(name)).run(epsilon=10**9)
    assert agree(found, answer(flights_tables, truth, LIMITS[unit], ledger.salt))


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("01-how-many", Limits(201, 30, 4)),
        ("02-july-by-origin", Limits(200, 29, 4)),
        ("03-busiest-airlines", Limits(200, 31, 4)),
        ("09-by-month", Limits(200, 31, 4)),
        ("13-large-hubs", Limits(200, 30, 3)),
        ("15-engines", Limits(200, 30, 3)),
        ("02-july-by-origin", None),
    ],
)
def test_other_limits_are_seen(
    name: str, limits: Limits | None, sessions: Sessions, flights_tables: duckdb.DuckDBPyConnection
) -> None:
    """The comparison above is sharp: truths of slightly other limits do not pass for the policy's."""
    con, ledger = sessions["flights"]
    found = con.sql(sql_of(name)).run(epsilon=10**9)
    assert agree(found, answer(flights_tables, TRUTHS[name], LIMITS["flights"], ledger.salt))
    other = agree(found, answer(flights_tables, TRUTHS[name], limits, ledger.salt))
    assert other == (name == "15-engines")  # there the limit on groups has no say


@thresholds
@units
@answered
def test_intervals_hold_the_truth(
    name: str, unit: str, sessions: Sessions, flights_tables: duckdb.DuckDBPyConnection
) -> None:
    """At the policy's own ε, intervals at a level of 1 - 1e-15 hold the bounded truth of the same groups."""
    con, ledger = sessions[unit]
    truth = TRUTHS[name]
    found = con.sql(sql_of(name)).run(fresh=True)
    asked = con.policy.defaults.epsilon
    # Of Gaussian noise it is a hair less.
    assert asked is not None and asked * (1 - Fraction(1, 10**9)) < found.spent.epsilon <= asked
    assert found.spent.delta > 0 if name == "08-destinations" else found.spent.delta == 0
    b = base(flights_tables, truth, LIMITS[unit], ledger.salt)
    if name == "20-with-a-total":
        b = b.query("b", truth.answer)
    at = {tuple(row[: len(truth.keys)]): dict(zip(b.columns, row, strict=True)) for row in b.fetchall()}
    places = [found.columns.index(k) for k in truth.keys]
    computed = {}  # of the rows that are there without noise, too
    if not set(found.columns) <= set(b.columns):
        whole = b.query("b", truth.answer).fetchall()
        computed = {tuple(row[i] for i in places): dict(zip(found.columns, row, strict=True)) for row in whole}
    seen = 0
    for row, intervals in zip(found, found.intervals(Fraction(10**15 - 1, 10**15), bounded=True), strict=True):
        key = tuple(row[i] for i in places)
        true = {**computed.get(key, {}), **at[key]}
        for column, bounds in intervals.items():
            if bounds is not None and column in true:
                assert bounds[0] - 0.51 <= true[column] <= bounds[1] + 0.51
                assert all(map(math.isfinite, bounds))
                seen += 1
    assert seen >= len(found) or name == "14-quarters"


@units
@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str, unit: str, sessions: Sessions) -> None:
    """Refused with the code that the file's first line announces, a place and a repair; nothing is spent."""
    con, ledger = sessions[unit]
    announced = re.match(r"-- refused: (DP\d{3})", sql_of(name))
    assert announced
    (protected,) = con.policy.units
    before = ledger.spent(protected)
    with pytest.raises(dpsql.Rejected) as caught:
        con.sql(sql_of(name)).run()
    (found,) = caught.value.diagnostics
    assert found.code == announced[1]
    assert found.span is not None and found.help
    assert ledger.spent(protected) == before


def test_three_rows_near_the_truth(sessions: Sessions, flights_tables: duckdb.DuckDBPyConnection) -> None:
    """The question of the README, an aircraft as the unit, ε = 1: three airports in order of their noisy counts."""
    con, _ = sessions["flights"]
    found = con.sql(sql_of("02-july-by-origin")).run(epsilon=1, fresh=True)
    assert [n for _, n, _ in found] == sorted((n for _, n, _ in found), reverse=True)
    exact = dict(flights_tables.sql("SELECT origin, COUNT(*) FROM flights WHERE month = 7 GROUP BY 1").fetchall())
    assert {origin for origin, *_ in found} == set(exact)
    for origin, n, delay in found:
        # 30 flights a month and aircraft lose 3 % of all; noise of scale 270 passes 8000 once in 1e12 times.
        assert abs(n - exact[origin]) < 0.1 * exact[origin] + 8000
        assert -30 <= delay <= 180
    assert set(found.notes) >= {
        "at most 30 rows per aircraft and group counted",
        "dep_delay is clipped to [-30, 180]",
        "rows with another origin than these 3 are left out",
        "what lies beyond these bounds is missing: a bias, which no ± holds",
    }


@thresholds
@units
def test_the_examples_own_budget(unit: str, flights_folder: Path) -> None:
    """The policies as they are: all queries fit into the declared budget, once."""
    with dpsql.connect(flights_folder / f"{unit}.yaml", ledger=MemoryLedger()) as con:
        for name in TRUTHS:
            con.sql(sql_of(name)).run()
        (left,) = con.budget.values()
    assert left.total_remaining is not None and left.total_remaining.epsilon >= 0


def test_medians_by_month_of_aircraft(flights_folder: Path, flights_tables: duckdb.DuckDBPyConnection) -> None:
    """At an ε at which chance has no part: within two minutes of the true medians, which count all flights of an
    aircraft alike, and each at the rank that the limits give it."""
    sql = (
        "SELECT month, MEDIAN(dep_delay) AS middle, QUANTILE_DISC(dep_delay, 0.9) AS late, COUNT(dep_delay) AS n "
        "FROM flights GROUP BY month ORDER BY month"
    )
    open_ended = (
        (flights_folder / "flights.yaml").read_text(encoding="utf-8").replace("{epsilon: 30", "{epsilon: 300000")
    )
    (flights_folder / "open_ended.yaml").write_text(open_ended, encoding="utf-8")
    with dpsql.connect(flights_folder / "open_ended.yaml", ledger=MemoryLedger()) as con:
        told = con.sql(sql).explain(epsilon=3)
        assert (
            told.count(" rows\n") == 2 and "  QUANTILE(dep_delay, 0.9): the middle of one of 211 cells 1 wide" in told
        )
        cost = con.sql(sql).cost(epsilon=10**5)
        answer = con.sql(sql).run(epsilon=10**5)
        assert cost == answer.spent == con.budget.spent and Fraction(99_999) < cost.epsilon <= 10**5
    n, k = "COUNT(*) OVER (PARTITION BY tailnum, month)", "COUNT(DISTINCT month) OVER (PARTITION BY tailnum)"
    true = flights_tables.execute(
        f"""WITH rows AS (SELECT month, {DELAY} AS x, 30 * 4 / (greatest({n}, 30) * greatest({k}, 4)) AS w
              FROM flights WHERE tailnum IS NOT NULL),
            there AS (SELECT month, x, SUM(w) AS w FROM rows WHERE x IS NOT NULL GROUP BY ALL),
            ranks AS (SELECT *, SUM(w) OVER (PARTITION BY month ORDER BY x) AS le, SUM(w) OVER (PARTITION BY month) AS n
              FROM there)
            SELECT month, MIN(x) FILTER (le > 0.5 * n), MIN(x) FILTER (le > 0.9 * n), MAX(n), (
              SELECT MEDIAN(dep_delay) FROM flights f WHERE f.month = ranks.month AND tailnum IS NOT NULL
            ) FROM ranks GROUP BY month ORDER BY month"""
    ).fetchall()
    rows = answer.fetchall()
    assert [month for month, *_ in rows] == list(range(1, 13))
    for (_, middle, late, counted), (_, half, ninth, weight, plain) in zip(rows, true, strict=True):
        assert abs(middle - half) <= 1 and abs(late - ninth) <= 1 and abs(middle - plain) <= 2
        assert counted == pytest.approx(weight, rel=0.01)
