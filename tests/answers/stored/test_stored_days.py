"""A release by day is stored day by day: what is missing is drawn and charged, what is there is given, or added up."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.answers.results.answer import Release
from dpsql.core.ledger.closings import close, reopen
from tests.service.test_budgets_by_period import ANALYSTS, Desk, day, policy

BY_DAY = (
    "SELECT day, station, COUNT(*) AS n FROM trips WHERE day > last_closed('trips') - {} GROUP BY ALL ORDER BY 1, 2"
)
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, policy())


def spent(desk: Desk, analyst: str | None = None) -> list[Fraction]:
    return [desk.spent(n, analyst) for n in range(1, 13)]


def rows_of(answer: Release, days: set[dt.date]) -> list[tuple[object, ...]]:
    return [row for row in answer.rows if row[0] in days]


def test_only_missing_days_are_drawn_and_charged(desk: Desk) -> None:
    first = desk.session().sql(BY_DAY.format(3)).run(epsilon="0.25")
    then = desk.session().sql(BY_DAY.format(5)).run(epsilon="0.25")
    assert rows_of(then, {day(8), day(9), day(10)}) == list(first.rows) and len(then.rows) == 10
    assert spent(desk) == [0] * 5 + [QUARTER] * 5 + [0] * 2
    assert "3 stored days, cost 0; drawn: 2026-01-06 … 2026-01-07" in then.notes
    again = desk.session().sql(BY_DAY.format(5)).run(epsilon="0.25")
    assert again.rows == then.rows and "5 stored days, cost 0" in again.notes and again.spent.epsilon == 0
    assert spent(desk) == [0] * 5 + [QUARTER] * 5 + [0] * 2


def test_a_dashboard_of_many_days_pays_each_day_once(desk: Desk) -> None:
    """The query is the same text each day: the window moves, and one day is drawn."""
    policy_, table = desk.service.policy, desk.service.policy.tables["trips"]
    desk.session().sql(BY_DAY.format(4)).run(epsilon=1)
    for n in (11, 12):
        close(desk.ledger, policy_, table, day(n))
        found = desk.session().sql(BY_DAY.format(4)).run(epsilon=1)
        assert f"3 stored days, cost 0; drawn: {day(n)}" in found.notes
    assert spent(desk) == [0] * 6 + [1] * 6


def test_the_statement_asks_for_the_missing_days_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.session().sql(BY_DAY.format(3)).run(epsilon="0.25")
    asked, fetch = list[str](), desk.service.engine.fetch
    monkeypatch.setattr(desk.service.engine, "fetch", lambda sql, *more: (asked.append(sql), fetch(sql, *more))[1])
    desk.session().sql(BY_DAY.format(5)).run(epsilon="0.25")
    (statement,) = [sql for sql in asked if "COUNT(*)" in sql]
    assert "2026-01-06" in statement and "2026-01-07" in statement
    assert not any(f"2026-01-{n:02}" in statement for n in (8, 9, 10))


def test_a_day_alone_is_the_day_of_many(desk: Desk) -> None:
    many = desk.session().sql(BY_DAY.format(3)).run(epsilon="0.25")
    one = "SELECT station, COUNT(*) AS n FROM trips WHERE day = DATE '2026-01-09' GROUP BY station ORDER BY 1"
    alone = desk.session().sql(one).run(epsilon="0.25")
    assert [row[1:] for row in rows_of(many, {day(9)})] == list(alone.rows) and alone.spent.epsilon == 0
    other = one.replace("01-09", "01-07")
    alone = desk.session().sql(other).run(epsilon="0.25")
    then = desk.session().sql(BY_DAY.format(4)).run(epsilon="0.25")
    assert [row[1:] for row in rows_of(then, {day(7)})] == list(alone.rows) and then.spent.epsilon == 0


def test_a_more_accurate_day_is_given_and_a_less_accurate_one_is_not(desk: Desk) -> None:
    desk.session().sql(BY_DAY.format(1)).run(epsilon="0.5")
    desk.session().sql(BY_DAY.format(3)).run(epsilon="0.25")
    assert spent(desk)[7:10] == [QUARTER, QUARTER, HALF]
    mixed = desk.session().sql(BY_DAY.format(3)).run(epsilon="0.25")
    assert mixed.spent.epsilon == 0
    low, high = (mixed.intervals()[row]["n"] for row in (0, 5))
    assert low is not None and high is not None and low[1] - low[0] > high[1] - high[0]  # each its own ±
    desk.session().sql(BY_DAY.format(3)).run(epsilon="0.375")
    assert spent(desk)[7:10] == [QUARTER + Fraction(3, 8), QUARTER + Fraction(3, 8), HALF]


def test_another_measure_is_another_day(desk: Desk) -> None:
    desk.session().sql(BY_DAY.format(2)).run(epsilon="0.25")
    for other in ("COUNT(*) FILTER (WHERE station = 1)", "COUNT(*) FILTER (WHERE station > 1)"):
        before = spent(desk)[9]
        desk.session().sql(BY_DAY.format(2).replace("COUNT(*)", other)).run(epsilon="0.125")
        assert spent(desk)[9] == before + Fraction(1, 8)


def test_a_day_that_was_opened_again_is_drawn_again_and_stays_paid(desk: Desk) -> None:
    desk.session().sql(BY_DAY.format(3)).run(epsilon="0.25")
    reopen(desk.ledger, desk.service.policy, desk.service.policy.tables["trips"], (day(9), day(9)))
    found = desk.session().sql(BY_DAY.format(3)).run(epsilon="0.25")
    assert "2 stored days, cost 0; drawn: 2026-01-09" in found.notes
    assert spent(desk)[7:10] == [QUARTER, HALF, QUARTER]


def test_fresh_noise_is_paid_for_again(desk: Desk) -> None:
    first = desk.session().sql(BY_DAY.format(2)).run(epsilon="0.25")
    desk.session().sql(BY_DAY.format(2)).run(epsilon="0.25", fresh=True)
    assert spent(desk)[8:10] == [HALF, HALF] and len(first.rows) == 4


def test_others_pay_for_the_days_that_they_receive_and_no_more(tmp_path: Path) -> None:
    desk = Desk(tmp_path, policy(ANALYSTS))
    first = desk.session("bob").sql(BY_DAY.format(5)).run(epsilon="0.25")
    some = desk.session("ann").sql(BY_DAY.format(2)).run(epsilon="0.25")  # a part of one draw
    assert list(some.rows) == rows_of(first, {day(9), day(10)})
    assert spent(desk) == spent(desk, "bob") == [0] * 5 + [QUARTER] * 5 + [0] * 2
    assert spent(desk, "ann") == [0] * 8 + [QUARTER] * 2 + [0] * 2
    more = desk.session("ann").sql(BY_DAY.format(7)).run(epsilon="0.25")
    assert rows_of(more, {day(6), day(7), day(8)}) == rows_of(first, {day(6), day(7), day(8)})
    assert "5 stored days, 3 of them new to this account; drawn: 2026-01-04 … 2026-01-05" in more.notes
    assert spent(desk) == [0] * 3 + [QUARTER] * 7 + [0] * 2 == spent(desk, "ann")


def test_dearer_days_of_others_are_not_taken(tmp_path: Path) -> None:
    desk = Desk(tmp_path, policy(ANALYSTS))
    desk.session("bob").sql(BY_DAY.format(2)).run(epsilon="0.5")
    desk.session("ann").sql(BY_DAY.format(2)).run(epsilon="0.25")
    assert spent(desk, "ann")[8:10] == [QUARTER] * 2 and spent(desk)[8:10] == [HALF + QUARTER] * 2


SUM = "SELECT station, COUNT(*) AS n FROM trips WHERE day >= DATE '2026-01-08' GROUP BY station ORDER BY 1"


def test_a_range_is_the_sum_of_its_days_where_that_errs_less(desk: Desk) -> None:
    days = desk.session().sql(BY_DAY.format(3)).run(epsilon="0.5")
    found = desk.session().sql(SUM).run(epsilon="0.0625")
    sums = [sum(row[2] for row in days.rows if row[1] == station) for station in (1, 2)]  # type: ignore[misc]
    assert [row[1] for row in found.rows] == sums and found.spent.epsilon == 0
    assert any(note.startswith("sum of 3 stored days, ± ") and note.endswith(", cost 0") for note in found.notes)
    anew = desk.session().sql(SUM).run(epsilon="0.375")
    assert anew.spent.epsilon == Fraction(3, 8)
    assert any(note.startswith("the sum of 3 stored days would be ± ") for note in anew.notes)
    explained = str(desk.session().sql(SUM).explain(epsilon="0.03125"))
    assert "cost: nothing (asked: ε 0.03125" in explained


@pytest.mark.filterwarnings("ignore::dpsql.diagnostics.errors.UtilityWarning")
@pytest.mark.parametrize("measure", ["COUNT(DISTINCT station)", "MEDIAN(CLIP(station, 1, 9))", "MODE(station)"])
def test_what_does_not_add_up_is_not_added(desk: Desk, measure: str) -> None:
    sql = f"SELECT day, {measure} AS n FROM trips WHERE day >= DATE '2026-01-08' GROUP BY day"
    desk.session().sql(sql).run(epsilon="0.5")
    assert desk.session().sql(sql).run(epsilon="0.5").spent.epsilon == 0  # a day is given, whatever it is of
    whole = f"SELECT {measure} AS n FROM trips WHERE day >= DATE '2026-01-08'"
    assert desk.session().sql(whole).run(epsilon="0.0625").spent.epsilon == Fraction(1, 16)


def test_a_sum_of_days_has_the_interval_of_its_noise(desk: Desk) -> None:
    """Three days of Laplace noise of scale 2: ± as of their sum, neither of one nor three times that."""
    desk.session().sql(BY_DAY.format(3)).run(epsilon="0.5")
    found = desk.session().sql(SUM).run(epsilon="0.0625")
    (note,) = [note for note in found.notes if note.startswith("sum of")]
    assert 8 < float(note.partition("± ")[2].partition(",")[0]) < 14


def test_the_price_says_what_is_missing(desk: Desk) -> None:
    desk.session().sql(BY_DAY.format(3)).run(epsilon="0.25")
    query = desk.session().sql(BY_DAY.format(5))
    said = "cost: ε 0.25 of each trips of 2026-01-06 … 2026-01-07, nothing of other days"
    assert said in str(query.explain(epsilon="0.25"))
    assert query.cost(epsilon="0.25").epsilon == QUARTER
    assert desk.session().sql(BY_DAY.format(3)).cost(epsilon="0.25").epsilon == 0


def test_days_that_are_used_up_are_given_beside_new_ones(desk: Desk) -> None:
    """Their budget is spent, and the query needs none of it."""
    desk.session().sql(BY_DAY.format(3)).run(epsilon=1)
    found = desk.session().sql(BY_DAY.format(4)).run(epsilon=1)
    assert len(found.rows) == 8 and spent(desk)[6:10] == [1] * 4


def killed_after_charge(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(desk.service.engine, "fetch", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            desk.session().sql(BY_DAY.format(5)).run(epsilon="0.25")


def test_who_is_stopped_before_the_draw_pays_and_is_given_nothing_unpaid(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.session().sql(BY_DAY.format(3)).run(epsilon="0.25")
    killed_after_charge(desk, monkeypatch)
    assert spent(desk) == [0] * 5 + [QUARTER] * 5 + [0] * 2
    desk.session().sql(BY_DAY.format(5)).run(epsilon="0.25")
    assert spent(desk) == [0] * 5 + [HALF] * 2 + [QUARTER] * 3 + [0] * 2


SEARCHED = """
  trips:
    unit: {rows: 1}
    grows: {by: day, every: day, from: 2026-01-01}
    columns: {day: {type: date, nullable: false}, station: {type: bigint, nullable: false}}
"""


def test_a_searched_limit_of_a_growing_table_is_found_once(tmp_path: Path) -> None:
    """Of the first days that were asked for; later ones are answered under it, and pay for no search."""
    desk = Desk(tmp_path, policy("{each_period: {epsilon: 100}}", SEARCHED))
    sql = "SELECT day, SUM(station) AS n FROM trips WHERE day > last_closed('trips') - {} GROUP BY day ORDER BY day"
    first = desk.session().sql(sql.format(2)).run(epsilon=16, limits="search")
    assert first.spent.epsilon == 16
    then = desk.session().sql(sql.format(4)).run(epsilon=16, limits="search")
    assert rows_of(then, {day(9), day(10)}) == list(first.rows) and len(then.rows) == 4
    found = spent(desk)[6:10]
    assert found[2:] == [16, 16] and found[0] == found[1] and 8 <= found[0] <= 16
    close(desk.ledger, desk.service.policy, desk.service.policy.tables["trips"], day(11))
    desk.session().sql(sql.format(4)).run(epsilon=16, limits="search")
    assert spent(desk)[6:11] == [*found, found[0]]


def test_copies_of_one_id_do_not_hide_another_price(desk: Desk) -> None:
    """Each stored day has an id that says its own price, and is looked at by itself."""
    from dataclasses import replace

    from dpsql.answers.stored.analyst_account import answers_beside
    from dpsql.core.ledger.paid import paid

    desk.session().sql(BY_DAY.format(3)).run(epsilon="0.25")
    store = answers_beside(desk.ledger)
    answers = [a for own in store._answers.values() for a in own]  # type: ignore[attr-defined]
    assert len(answers) == 3 and len({a.id for a in answers}) == 3
    assert sorted(str(a.regions["trips"][0].first) for a in answers) == ["2026-01-08", "2026-01-09", "2026-01-10"]
    assert len(paid(desk.ledger, "*", answers).held) == 3
    moved = replace(answers[0], regions=answers[1].regions)
    with pytest.raises(AssertionError, match="price"):
        paid(desk.ledger, "*", [moved])


def test_months_of_a_table_that_grows_by_month(tmp_path: Path) -> None:
    tables = """
  trips:
    unit: {rows: 1}
    grows: {by: day, every: month, from: 2026-01-01}
    columns: {day: {type: date, nullable: false}, station: {type: bigint, domain: [1, 2], nullable: false}}
"""
    with duckdb.connect(str(tmp_path / "town.duckdb")) as con:
        con.execute("CREATE TABLE trips AS SELECT DATE '2026-01-01' + (i % 90)::INT AS day, 1::BIGINT AS station "
                    "FROM range(900) t(i)")  # fmt: skip
        con.execute("CREATE TABLE people AS SELECT 1 AS person")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.service.test_budgets_by_period.close", lambda *_: None)
        desk = Desk(tmp_path, policy(tables=tables))
    table = desk.service.policy.tables["trips"]
    close(desk.ledger, desk.service.policy, table, dt.date(2026, 1, 31))
    sql = "SELECT date_trunc('month', day) AS m, COUNT(*) AS n FROM trips GROUP BY m ORDER BY m"
    first = desk.session().sql(sql).run(epsilon="0.5")
    close(desk.ledger, desk.service.policy, table, dt.date(2026, 2, 28))
    then = desk.session().sql(sql).run(epsilon="0.5")
    assert then.rows[0] == first.rows[0] and len(then.rows) == 2
    assert "1 stored month, cost 0; drawn: 2026-02-01 … 2026-02-28" in then.notes
    by_day = "SELECT day, COUNT(*) AS n FROM trips WHERE day < DATE '2026-02-01' GROUP BY day"
    days = desk.session().sql(by_day).run(epsilon="0.25")
    assert desk.session().sql(by_day).run(epsilon="0.25").rows == days.rows
    assert desk.ledger.spent("trips", None, (day(20), day(20))).epsilon == Fraction(3, 4)


RIDERS = """
  trips:
    unit: {of: rider_day, column: rider, per: period}
    grows: {by: day, every: day, from: 2026-01-01}
    max_rows_per_unit: 1
    columns:
      rider: {type: bigint}
      day: {type: date, nullable: false}
      station: {type: bigint, domain: [1, 2], nullable: false}
"""


def test_days_of_one_riders_day_are_stored_under_its_limit_and_added_up(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "town.duckdb")) as con:
        con.execute(
            "CREATE TABLE trips AS SELECT i // 24 AS rider, DATE '2026-01-01' + (i % 12)::INT AS day, i % 2 + 1 AS "
            "station FROM range(240) t(i)"
        )
        con.execute("CREATE TABLE people AS SELECT i AS person FROM range(10) t(i)")
    desk = Desk(tmp_path, policy(tables=RIDERS))

    def lost() -> list[Fraction]:
        return [desk.ledger.spent("rider_day", None, (day(n), day(n))).epsilon for n in range(4, 12)]

    days = desk.session().sql(BY_DAY.format(3)).run(epsilon="0.5")
    more = desk.session().sql(BY_DAY.format(5)).run(epsilon="0.5")
    assert lost() == [0, 0] + [HALF] * 5 + [0]
    assert "3 stored days, cost 0; drawn: 2026-01-06 … 2026-01-07" in more.notes
    assert rows_of(more, {day(8), day(9), day(10)}) == list(days.rows)
    alone = SUM.replace("day >= DATE '2026-01-08'", "day = DATE '2026-01-09'")
    assert [row[1] for row in desk.session().sql(alone).run(epsilon="0.5").rows] == [
        row[2] for row in days.rows if row[0] == day(9)
    ]
    found = desk.session().sql(SUM).run(epsilon="0.0625")
    sums = [sum(row[2] for row in days.rows if row[1] == station) for station in (1, 2)]  # type: ignore[misc]
    for row, total in zip(found.rows, sums, strict=True):  # halves are rounded where they are shown
        assert abs(row[1] - total) <= 2  # type: ignore[operator]
    assert lost() == [0, 0] + [HALF] * 5 + [0]
    assert any(note.startswith("sum of 3 stored days, ± ") for note in found.notes)
    riders = "SELECT day, COUNT(DISTINCT rider) AS n FROM trips WHERE day >= DATE '2026-01-0{}' GROUP BY day"
    for n in (9, 8):
        desk.session().sql(riders.format(n)).run(epsilon="0.25")
    assert lost() == [0, 0, HALF, HALF] + [HALF + QUARTER] * 3 + [0]
