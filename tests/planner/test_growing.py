"""Tables that grow: which days a query reads, how that is printed, and what is refused."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive
from dpsql.core.ir.nodes import Node, Scan
from dpsql.core.ir.periods import Closed, ReadPeriods, Span, beside, canonical, common, words
from dpsql.core.ir.public_facts import ClosedPeriods, PublicFacts
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.plan import Plan
from dpsql.service.checks.check import check
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.growing_town import FIRST, LAST, Town, region, town_policy
from tests.support.planning import policy
from tests.support.rider_town import RiderTown, rider_policy


def day(n: int) -> dt.date:
    return dt.date(2026, 1, n)


@pytest.fixture(scope="module")
def town() -> Town:
    return Town(closed=Closed(day(10)))


def days(town: Town, where: str) -> str:
    return words(region(town.plan(f"SELECT COUNT(*) FROM trips WHERE {where}")))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("TRUE", "2026-01-01 … 2026-01-10"),
        ("day = DATE '2026-01-03'", "2026-01-03"),
        ("DATE '2026-01-03' < day", "2026-01-04 … 2026-01-10"),
        ("day BETWEEN DATE '2026-01-03' AND '2026-01-05'", "2026-01-03 … 2026-01-05"),
        ("day IN (DATE '2026-01-03', DATE '2026-01-05', DATE '2026-01-04')", "2026-01-03 … 2026-01-05"),
        ("day = DATE '2026-01-03' OR day >= DATE '2026-01-09'", "2026-01-03, 2026-01-09 … 2026-01-10"),
        ("day = DATE '2026-01-03' OR minutes > 3", "2026-01-01 … 2026-01-10"),
        ("day <= DATE '2026-01-03' AND minutes > 3", "2026-01-01 … 2026-01-03"),
        ("date_trunc('month', day) = DATE '2026-01-01'", "2026-01-01 … 2026-01-10"),
        ("date_trunc('week', day) = DATE '2026-01-05'", "2026-01-05 … 2026-01-10"),
        ("NOT (day = DATE '2026-01-03')", "2026-01-01 … 2026-01-10"),
        ("day > last_closed('trips') - 3", "2026-01-08 … 2026-01-10"),
        ("day >= TIMESTAMP '2026-01-08 00:00:00'", "2026-01-08 … 2026-01-10"),
        ("day >= DATE '2025-12-01'", "2026-01-01 … 2026-01-10"),
    ],
)
def test_the_days_that_a_condition_leaves(town: Town, where: str, expected: str) -> None:
    assert days(town, where) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) FROM (SELECT DISTINCT day, station FROM trips) t WHERE day = DATE '2026-01-03'",
         "2026-01-01 … 2026-01-10"),
        ("SELECT COUNT(*) FROM (SELECT day AS d FROM trips) t WHERE d = DATE '2026-01-03'", "2026-01-03"),
        ("SELECT COUNT(t.day) FROM stations s LEFT JOIN trips t ON t.station = s.station WHERE t.day = DATE "
         "'2026-01-03'", "2026-01-01 … 2026-01-10"),
        ("SELECT COUNT(t.day) FROM stations s LEFT JOIN trips t ON t.station = s.station AND t.day = DATE "
         "'2026-01-03'", "2026-01-03"),
        ("SELECT COUNT(*) FROM trips WHERE day = DATE '2026-01-03' UNION ALL SELECT COUNT(*) FROM trips WHERE day = "
         "DATE '2026-01-07'", "2026-01-03, 2026-01-07"),
    ],
)  # fmt: skip
def test_nothing_is_inferred_through_other_operators(town: Town, sql: str, expected: str) -> None:
    assert words(region(town.plan(sql))) == expected


def test_what_is_true_of_a_day_is_true_of_the_day_that_it_equals() -> None:
    """Tables that are joined by their days: else the second one would be read, and charged, whole."""
    town = RiderTown(rider_policy())
    both = "FROM trips t {} walks w ON t.rider = w.rider AND t.day = w.on_day"

    def read(sql: str) -> list[str]:
        return [words(n.periods.days) for n in walk(town.plan(sql).tree.node) if isinstance(n, Scan) and n.periods]

    first, every = "2026-01-05", "2026-01-05 … 2026-01-07"
    for kind, where, expected in (
        ("JOIN", "t.day", [first, first]),
        ("JOIN", "w.on_day", [first, first]),
        ("LEFT JOIN", "t.day", [first, first]),
        ("LEFT JOIN", "w.on_day", [every, every]),
    ):
        assert read(f"SELECT COUNT(*) {both.format(kind)} WHERE {where} = DATE '2026-01-05'") == expected, (kind, where)
    exists = "SELECT COUNT(*) FROM trips t WHERE {} (SELECT 1 FROM walks w WHERE t.rider = w.rider AND t.day = w.on_day"
    for kind in ("EXISTS", "NOT EXISTS"):
        asked = exists.format(kind)
        assert read(f"{asked}) AND t.day = DATE '2026-01-05'") == [first, first]
        assert read(f"{asked} AND w.on_day = DATE '2026-01-05')")[1] == first
    town.close()


def test_a_self_join_reads_what_each_side_does(town: Town) -> None:
    """The other side's day is another one: all that is closed is read."""
    with pytest.raises(Rejected) as refused:
        town.plan("SELECT COUNT(*) FROM trips a JOIN trips b ON a.day = b.day - 1 WHERE a.day = DATE '2026-01-03'")
    assert {d.code for d in refused.value.diagnostics} <= {"DP210", "DP230"}


def test_what_is_read_is_the_innermost_condition(town: Town) -> None:
    (statement,) = town.plan("SELECT COUNT(*) FROM trips WHERE day > DATE '2026-01-08'").releases[0].statements
    outer = statement.sql.rindex(") AS t")
    assert 0 < statement.sql.index("DATE '2026-01-09'") < outer < statement.sql.index("DATE '2026-01-08'")


def test_the_keys_of_the_day_are_the_days_that_are_read(town: Town) -> None:
    plan = town.plan("SELECT day, COUNT(*) FROM trips WHERE day > DATE '2026-01-07' GROUP BY day")
    town.put(7, [(None, 1, 1), (day(8), 1, 1), (day(11), 1, 1)])
    (found,) = town.integers(plan, 7)
    assert found == {(day(8),): [1], (day(9),): [0], (day(10),): [0]}


def test_weeks_and_months_are_read_whole() -> None:
    town = Town(town_policy(every="month"), Closed(dt.date(2026, 3, 31)))
    assert days(town, "day = DATE '2026-02-14'") == "2026-02-01 … 2026-02-28"
    town = Town(town_policy(every="month", keep=2), Closed(dt.date(2026, 3, 31)))
    assert days(town, "TRUE") == "2026-02-01 … 2026-03-31"
    town = Town(town_policy(every="month"), Closed(dt.date(2026, 3, 30)))  # a part of a month is not closed
    assert days(town, "TRUE") == "2026-01-01 … 2026-02-28"


@pytest.mark.parametrize(
    ("closed", "where", "message"),
    [
        (None, "TRUE", "trips: no period is closed yet"),
        (day(10), "day > DATE '2026-01-10'", "trips: the query reads no closed period"),
        (day(10), "day < DATE '2026-01-01'", "trips: the query reads no closed period"),
        (day(10), "day > DATE '2026-01-04' AND day < DATE '2026-01-04'", "trips: the query reads no closed period"),
    ],
)
def test_a_query_that_can_read_nothing_is_refused(closed: dt.date | None, where: str, message: str) -> None:
    with pytest.raises(Rejected) as refused:
        Town(closed=Closed(closed)).plan(f"SELECT COUNT(*) FROM trips WHERE {where}")
    (found,) = refused.value.diagnostics
    assert (found.code, found.message) == ("DP017", message) and found.help


CLOSED_ONLY = "what is later than 2026-01-10 is not closed: not read"
KEPT_ONLY = "what is earlier than 2026-01-08 is kept no longer: not read"
NOT_BEFORE = "what is earlier than 2026-01-01 is before the first period: not read"


@pytest.mark.parametrize(
    ("keep", "where", "read", "missing"),
    [
        (None, "day >= DATE '2026-01-08'", "2026-01-08 … 2026-01-10", [CLOSED_ONLY]),
        (None, "day BETWEEN DATE '2026-01-08' AND '2026-01-11'", "2026-01-08 … 2026-01-10", [CLOSED_ONLY]),
        (None, "day BETWEEN DATE '2026-01-08' AND '2026-01-10'", "2026-01-08 … 2026-01-10", []),
        (None, "day = DATE '2026-01-08'", "2026-01-08", []),
        (None, "day = DATE '2026-01-08' OR day > DATE '2026-02-01'", "2026-01-08", [CLOSED_ONLY]),
        (None, "day > last_closed('trips') - 2", "2026-01-09 … 2026-01-10", [CLOSED_ONLY]),
        (None, "day <= last_closed('trips')", "2026-01-01 … 2026-01-10", []),
        (None, "day BETWEEN DATE '2025-12-24' AND '2026-01-02'", "2026-01-01 … 2026-01-02", [NOT_BEFORE]),
        (3, "TRUE", "2026-01-08 … 2026-01-10", [KEPT_ONLY, CLOSED_ONLY]),
        (3, "day >= DATE '2026-01-05' AND day < DATE '2026-01-10'", "2026-01-08 … 2026-01-09", [KEPT_ONLY]),
        (3, "day >= DATE '2026-01-08' AND day < DATE '2026-01-10'", "2026-01-08 … 2026-01-09", []),
    ],
)
def test_a_note_says_which_of_the_days_that_are_asked_for_are_missing(
    keep: int | None, where: str, read: str, missing: list[str]
) -> None:
    plan = Town(town_policy(keep=keep), Closed(day(10))).plan(f"SELECT COUNT(*) FROM trips WHERE {where}")
    assert [n for n in plan.notes if n.startswith("of trips")] == ["; ".join([f"of trips {read} is read", *missing])]


def test_a_note_says_so_of_a_month_of_which_a_part_is_closed() -> None:
    months = Town(town_policy(every="month"), Closed(dt.date(2026, 3, 30)))
    (said,) = [n for n in months.plan("SELECT COUNT(*) FROM trips").notes if n.startswith("of trips")]
    assert said == "of trips 2026-01-01 … 2026-02-28 is read; what is later than 2026-02-28 is not closed: not read"


def test_a_check_says_what_it_does_not_know() -> None:
    from dpsql.diagnostics.diagnostic import Source
    from dpsql.service.checks.check import static_plan

    for sql in (
        "SELECT COUNT(*) AS n FROM trips WHERE day > last_closed('trips') - 7",
        "SELECT day, COUNT(*) AS n FROM trips GROUP BY day",
    ):
        assert check(sql, town_policy()) == []
        plan = static_plan(Source(sql), town_policy())
        assert not plan.basis.complete and region(plan)[0][1] is None
        assert "trips: which periods are closed is not known here; only these are read" in plan.notes
    public = PublicFacts()
    assert public.closed("trips") is None and public.missing == {ClosedPeriods("trips")}


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT COUNT(*) FROM trips WHERE day > last_closed('trip')", "DP102"),
        ("SELECT COUNT(*) FROM trips WHERE day > last_closed('stations')", "DP106"),
        ("SELECT COUNT(*) FROM trips WHERE day > last_closed(day)", "DP115"),
        ("SELECT COUNT(*) FROM trips WHERE day > last_closed()", "DP115"),
    ],
)
def test_last_closed_is_of_a_table_that_grows(town: Town, sql: str, code: str) -> None:
    with pytest.raises(Rejected) as refused:
        town.plan(sql)
    assert [d.code for d in refused.value.diagnostics] == [code]


def _scan(plan: Plan) -> Scan:
    return next(n for n in walk(plan.tree.node) if isinstance(n, Scan))


@pytest.mark.parametrize(
    "periods",
    [
        None,
        ReadPeriods("day", ()),
        ReadPeriods("day", ((FIRST, None),)),
        ReadPeriods("day", ((FIRST, day(11)),)),
        ReadPeriods("day", ((dt.date(2025, 12, 31), day(3)),)),
        ReadPeriods("station", ((FIRST, day(3)),)),
        ReadPeriods("day", ((day(4), day(5)), (FIRST, day(2)))),
        ReadPeriods("day", ((FIRST, day(2)), (day(3), day(5)))),
    ],
)
def test_whoever_made_the_plan_its_periods_are_looked_at_again(periods: ReadPeriods | None) -> None:
    """A scan that says nothing, or what is not closed, has no facts: so it is neither printed nor priced."""
    town = Town(closed=Closed(day(10)))
    scan: Node = replace(_scan(town.plan("SELECT COUNT(*) FROM trips")), periods=periods)
    public = PublicFacts(periods={"trips": Closed(day(10))})
    with pytest.raises(AssertionError):
        derive(scan, Context(town.policy, public))


def test_a_part_of_a_period_is_not_read() -> None:
    months = Town(town_policy(every="month"), Closed(dt.date(2026, 2, 28)))
    scan = replace(_scan(months.plan("SELECT COUNT(*) FROM trips")), periods=ReadPeriods("day", ((FIRST, day(15)),)))
    with pytest.raises(AssertionError):
        derive(scan, Context(months.policy, PublicFacts(periods={"trips": Closed(dt.date(2026, 2, 28))})))


def test_a_table_that_does_not_grow_says_nothing_of_periods() -> None:
    still = policy("t:\n  unit: {rows: 1}\n  columns: {day: {type: date}}")
    from tests.support.planning import planned

    scan = _scan(planned("SELECT COUNT(*) FROM t", still))
    assert scan.periods is None
    with pytest.raises(AssertionError):
        derive(replace(scan, periods=ReadPeriods("day", ((FIRST, LAST),))), Context(still, PublicFacts()))


def test_facts_of_what_is_read(town: Town) -> None:
    """Its day is never NULL, though the column may be."""
    plan = town.plan("SELECT COUNT(*), COUNT(day) FROM trips WHERE day < DATE '2026-01-03'")
    scan = next(t for t in plan.tree.walk() if isinstance(t.node, Scan))
    fact = next(f for c, f in scan.fact.columns.items() if scan.node.columns[0].uid == c)  # type: ignore[union-attr]
    assert not fact.value.nullable and fact.value.domain is not None and fact.value.domain.size == 2


def test_spans_in_one_form() -> None:
    assert canonical([(day(5), day(6)), (day(1), day(2)), (day(3), day(4))]) == ((day(1), day(6)),)
    assert canonical([(day(1), None), (day(3), day(4))]) == ((day(1), None),)
    assert common(((day(1), day(4)), (day(6), None)), ((day(3), day(8)),)) == ((day(3), day(4)), (day(6), day(8)))
    assert Closed(day(9), ((day(2), day(3)), (day(3), day(5)))).times(((day(3), day(3)),)) == 2


@pytest.mark.parametrize("seed", range(40))
def test_spans_are_sets_of_days(seed: int) -> None:
    draw, days = random.Random(seed), [day(n) for n in range(1, 32)]

    def spans() -> list[Span]:
        ends = [sorted(draw.choices(days, k=2)) for _ in range(draw.randint(0, 4))]
        return [(first, draw.choice([last, last, last, None])) for first, last in ends]

    def has(of: Sequence[Span], at: dt.date) -> bool:
        return any(first <= at and (last is None or at <= last) for first, last in of)

    some, others = spans(), spans()
    for at in (dt.date.min, *days, dt.date.max):
        assert has(common(some, others), at) == (has(some, at) and has(others, at))
        assert has(beside(some, others), at) == (has(some, at) and not has(others, at))


def test_days_apart_are_one_flat_condition(town: Town) -> None:
    """Some hundred of them are no expression that is nested some hundred times."""
    town = Town(closed=Closed(FIRST + dt.timedelta(days=800)))
    listed = ", ".join(f"DATE '{FIRST + dt.timedelta(days=2 * n)}'" for n in range(300))
    plan = town.plan(f"SELECT COUNT(*) FROM trips WHERE day IN ({listed})")
    assert len(region(plan)) == 300
    town.put(0, [(FIRST, 1, 1), (FIRST + dt.timedelta(days=1), 1, 1), (FIRST + dt.timedelta(days=598), 1, 1)])
    assert town.integers(plan, 0) == [{(): [2]}]


@pytest.mark.parametrize("dialect", ["postgres", "spark"])
def test_other_dialects_print_the_same(town: Town, dialect: str) -> None:
    from dpsql.diagnostics.diagnostic import Source
    from dpsql.planner.compile import compile_query
    from dpsql.planner.settings.query_settings import QuerySettings
    from dpsql.spelling.postgres_functions import POSTGRES
    from dpsql.spelling.spark_functions import SPARK

    other = {"postgres": POSTGRES, "spark": SPARK}[dialect]
    public = PublicFacts(periods={"trips": Closed(day(10))})
    source = Source("SELECT COUNT(*) FROM trips WHERE day > DATE '2026-01-08'")
    plan = compile_query(source, town.policy, public, QuerySettings(1), (), None, other)  # type: ignore[arg-type]
    (statement,) = plan.releases[0].statements
    inner = statement.sql[statement.sql.index("(SELECT") : statement.sql.index(") AS t")]
    assert "2026-01-09" in inner and "2026-01-10" in inner and "2026-01-08" not in inner
    assert DUCKDB is not other
