"""Budgets by period: what is charged where, what is refused, in which words, and what goes on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.core.ledger.closings import close
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen
from dpsql.faces.server.account_relations import RELATIONS
from dpsql.faces.server.web.pages.account import _by_period
from dpsql.faces.server.workers.own_account import rows_of
from dpsql.policy.load import load_policy, parse_policy
from dpsql.service.open_data import open_data
from dpsql.service.service import Service
from dpsql.service.session import Session

TRIPS = """
  trips:
    unit: {rows: 1}
    grows: {by: day, every: day, from: 2026-01-01}
    columns: {day: {type: date, nullable: false}, station: {type: bigint, domain: [1, 2], nullable: false}}
"""
PEOPLE = """
  people:
    unit: {column: person}
    max_rows_per_unit: 1
    columns: {person: {type: bigint, nullable: false}}
"""


def policy(budgets: str = "{each_period: {epsilon: 1}}", tables: str = TRIPS) -> str:
    return f"version: 1\nname: town\ndatabase: town.duckdb\nbudgets: {budgets}\ntables:{tables}"


def day(n: int) -> dt.date:
    return dt.date(2026, 1, n)


class Desk:
    """A service over ten closed days, and sessions of it."""

    def __init__(self, folder: Path, text: str) -> None:
        if not (folder / "town.duckdb").exists():
            with duckdb.connect(str(folder / "town.duckdb")) as con:
                con.execute(
                    "CREATE TABLE trips AS SELECT DATE '2026-01-01' + (i % 12)::INT AS day, i % 2 + 1 AS station "
                    "FROM range(240) t(i)"
                )
                con.execute("CREATE TABLE people AS SELECT i AS person FROM range(10) t(i)")
        (folder / "town.yaml").write_text(text)
        self.ledger = MemoryLedger("town", "approx_dp")
        self.open(folder)
        close(self.ledger, self.service.policy, self.service.policy.tables["trips"], day(10))

    def open(self, folder: Path) -> None:
        self.service = Service(*open_data(str(folder / "town.yaml"), None, None, None, None), self.ledger)

    def session(self, analyst: str | None = None) -> Session:
        return self.service.session(analyst)

    def spent(self, n: int, analyst: str | None = None) -> Fraction:
        return self.ledger.spent("trips", analyst, (day(n), day(n))).epsilon


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, policy())


COUNT = "SELECT COUNT(*) AS n FROM trips WHERE day "
ONE, HALF = Fraction(1), Fraction(1, 2)


def test_a_day_is_charged_by_what_reads_it(desk: Desk) -> None:
    session = desk.session()
    session.sql(f"{COUNT} BETWEEN DATE '2026-01-02' AND '2026-01-04'").run(epsilon="0.5")
    session.sql(f"{COUNT} = DATE '2026-01-04'").run(epsilon="0.25")
    session.sql("SELECT day, COUNT(*) AS n FROM trips WHERE day >= DATE '2026-01-09' GROUP BY day").run(epsilon="0.5")
    found = [desk.spent(n) for n in range(1, 13)]
    assert found == [0, HALF, HALF, Fraction(3, 4), 0, 0, 0, 0, HALF, HALF, 0, 0]
    assert desk.ledger.spent("trips").epsilon == Fraction(3, 4)
    assert desk.ledger.spent("trips", days=(day(11), None)).epsilon == 0


def test_days_that_lie_apart_and_scans_of_one_release_are_all_charged(desk: Desk) -> None:
    desk.session().sql(f"{COUNT} = DATE '2026-01-02' OR day = DATE '2026-01-04'").run(epsilon="0.5")
    assert [desk.spent(n) for n in (1, 2, 3, 4, 5)] == [0, HALF, 0, HALF, 0]
    days = ("DATE '2026-01-06', DATE '2026-01-07'", "DATE '2026-01-07', DATE '2026-01-08'")
    both = [f"SELECT station FROM trips WHERE day IN ({each})" for each in days]
    desk.session().sql(f"SELECT COUNT(*) AS n FROM ({' UNION ALL '.join(both)}) t").run(epsilon="0.5")
    assert [desk.spent(n) for n in (5, 6, 7, 8, 9)] == [0, HALF, HALF, HALF, 0]


def test_the_budget_goes_on_with_new_days(desk: Desk) -> None:
    """A query of every day at the whole budget: one total for ever would be used up by the first."""
    for n in range(1, 11):
        desk.session().sql(f"{COUNT} = DATE '{day(n)}'").run(epsilon=1)
    close(desk.ledger, desk.service.policy, desk.service.policy.tables["trips"], day(12))
    for n in (11, 12):
        ((found,),) = desk.session().sql(f"{COUNT} = last_closed('trips') - {12 - n}").run(epsilon=1)
        assert isinstance(found, int)
    assert [desk.spent(n) for n in range(1, 13)] == [1] * 12


def refused(desk: Desk, sql: str, epsilon: str, analyst: str | None = None) -> BudgetExceeded:
    before = len(desk.ledger.history())
    with pytest.raises(BudgetExceeded) as found:
        desk.session(analyst).sql(sql).run(epsilon=epsilon)
    assert len(desk.ledger.history()) == before
    return found.value


def test_a_refusal_names_the_days_and_the_condition_that_works(desk: Desk) -> None:
    desk.session().sql(f"{COUNT} BETWEEN DATE '2026-01-03' AND '2026-01-05'").run(epsilon="0.95")
    (found,) = refused(desk, "SELECT COUNT(*) AS n FROM trips", "0.1").diagnostics
    assert found.code == "DP403"
    assert found.message == ("budget of each period of unit 'trips', 2026-01-03 … 2026-01-05: ε 0.1 asked, 0.05 left")
    assert found.help[0] == "WHERE day >= DATE '2026-01-06': these have ε 1 left"
    assert any("epsilon = 0.05" in help for help in found.help)
    assert any("budgets.each_period" in help for help in found.help)
    desk.session().sql(f"{COUNT} >= DATE '2026-01-06'").run(epsilon="0.1")  # it works
    desk.session().sql("SELECT COUNT(*) AS n FROM trips").run(epsilon="0.05")  # so does this


def test_days_apart_that_are_used_up(desk: Desk) -> None:
    for n in (2, 8):
        desk.session().sql(f"{COUNT} = DATE '{day(n)}'").run(epsilon=1)
    (found,) = refused(desk, "SELECT COUNT(*) AS n FROM trips", "0.1").diagnostics
    assert "2026-01-02 … 2026-01-08 (some of them): ε 0.1 asked, 0 left" in found.message
    assert found.help[0] == "WHERE day >= DATE '2026-01-03' AND day <= DATE '2026-01-07': these have ε 1 left"


def test_what_is_stored_is_given_for_nothing_though_its_days_are_used_up(desk: Desk) -> None:
    sql = f"{COUNT} = DATE '2026-01-02'"
    first = desk.session().sql(sql).run(epsilon=1)
    assert desk.session().sql(sql).run(epsilon=1).rows == first.rows
    assert desk.spent(2) == 1


ANALYSTS = (
    "{each_period: {epsilon: 2}, analysts: {ann: {epsilon: 1, per_query: {max_epsilon: 0.5}}, bob: {epsilon: 1}}}"
)


def test_accounts_of_analysts_are_by_period_and_so_is_what_they_receive(tmp_path: Path) -> None:
    desk = Desk(tmp_path, policy(ANALYSTS))
    week = f"{COUNT} BETWEEN DATE '2026-01-02' AND '2026-01-04'"
    first = desk.session("bob").sql(week).run(epsilon="0.5")
    assert desk.session("ann").sql(week).run(epsilon="0.5").rows == first.rows
    assert [desk.spent(n) for n in (1, 2, 4, 5)] == [0, HALF, HALF, 0]  # once
    assert [desk.spent(n, "ann") for n in (1, 2, 4, 5)] == [0, HALF, HALF, 0]
    entry = desk.ledger.history()[-1].entry
    assert not entry.charges and [(s.first, s.last) for s in entry.received_regions["trips"]] == [(day(2), day(4))]
    desk.session("ann").sql(f"{COUNT} = DATE '2026-01-05'").run(epsilon="0.5")
    desk.session("ann").sql(f"{COUNT} IN (DATE '2026-01-05')").run(epsilon="0.5", fresh=True)
    (found,) = refused(desk, f"{COUNT} <= DATE '2026-01-05'", "0.1", "ann").diagnostics
    assert found.code == "DP404" and "2026-01-05: ε 0.1 asked, 0 left" in found.message
    (found,) = refused(desk, f"{COUNT} = DATE '2026-01-09'", "0.6", "ann").diagnostics
    assert found.code == "DP405"


def test_what_an_older_policy_charged_counts_in_every_period(tmp_path: Path) -> None:
    desk = Desk(tmp_path, policy("{total: {epsilon: 1}}"))
    desk.session().sql(f"{COUNT} = DATE '2026-01-02'").run(epsilon="0.75")
    assert [desk.spent(n) for n in (1, 2, 12)] == [Fraction(3, 4)] * 3  # a total is for ever
    assert not desk.ledger.history()[-1].entry.regions
    (tmp_path / "town.yaml").write_text(policy())
    desk.open(tmp_path)
    desk.session().sql(f"{COUNT} = DATE '2026-01-03'").run(epsilon="0.25")
    (found,) = refused(desk, f"{COUNT} = DATE '2026-01-03'  AND TRUE", "0.25").diagnostics
    assert "2026-01-03: ε 0.25 asked, 0 left" in found.message
    assert desk.session().sql(f"{COUNT} = DATE '2026-01-04'").run(epsilon="0.25").spent.epsilon == Fraction(1, 4)


def test_units_of_a_query_are_charged_each_by_itself(tmp_path: Path) -> None:
    desk = Desk(tmp_path, policy("{each_period: {epsilon: 1}, total: {epsilon: 3}}", TRIPS + PEOPLE))
    assert set(desk.service.policy.by_period) == {"trips"}
    desk.session().sql("SELECT COUNT(*) AS n FROM people").run(epsilon=1)
    desk.session().sql(
        f"{COUNT} = DATE '2026-01-02' UNION ALL SELECT COUNT(*) AS n FROM people WHERE person > 3"
    ).run(epsilon=1)  # fmt: skip
    assert desk.ledger.spent("people" if "people" in desk.service.policy.units else "unit").epsilon > 1
    assert desk.spent(3) == 0 < desk.spent(2) <= 1


def test_the_price_says_what_its_dearest_day_costs(desk: Desk) -> None:
    query = desk.session().sql(f"{COUNT} = DATE '2026-01-02'")
    assert query.cost(epsilon="0.5") == PrivacyLoss(HALF)
    assert "ε 0.5 of each trips" in query.explain(epsilon="0.5")


@pytest.mark.parametrize(
    ("budgets", "tables", "said"),
    [
        ("{each_period: {epsilon: 1}}", PEOPLE, "rows are those of an id"),
        ("{each_period: {epsilon: 1}}", TRIPS.replace("rows: 1", "rows: 2"), "2 rows, which may be of as many periods"),
        ("{each_period: {epsilon: 1}}", TRIPS.replace("rows: 1", "rows: 1, neighbours: replace_one"),
         "a row is replaced by another one"),
        ("{each_period: {epsilon: 1}}", TRIPS.replace("    grows: {by: day, every: day, from: 2026-01-01}\n", ""),
         "trips does not grow"),
        # a row that two tables read by different dates
        ("{each_period: {epsilon: 1}}", TRIPS.replace("rows: 1", "rows: 1, of: trip")
         + TRIPS.replace("trips:", "arrivals:").replace("rows: 1", "rows: 1, of: trip"),
         "a row that two of them read would have two periods"),
        ("{each_period: {epsilon: 1}}", TRIPS + PEOPLE, "is missing for units that have one account for ever"),
        ("{each_period: {epsilon: 1}, total: {epsilon: 9}}", TRIPS, "limits no unit"),
        ("{each_period: {epsilon: 0}}", TRIPS, "must be above 0"),
        ("{each_period: {rho: 1}}", TRIPS, "is not counted under approx_dp"),
    ],
)  # fmt: skip
def test_a_policy_that_means_something_else_is_refused(budgets: str, tables: str, said: str) -> None:
    with pytest.raises(CannotOpen, match=said):
        parse_policy(policy(budgets, tables), "town.yaml")


def test_more_may_be_given_to_one_unit(tmp_path: Path) -> None:
    text = policy("{each_period: {epsilon: 1}, units: {trips: {epsilon: 3}}}")
    caps = parse_policy(text, "t.yaml").caps_for()
    assert caps.total == {"trips": PrivacyLoss(Fraction(3))} and caps.by_period == {"trips"}
    assert load_policy is not None


def test_a_refusal_of_many_days_is_one(desk: Desk) -> None:
    desk.session().sql("SELECT COUNT(*) AS n FROM trips").run(epsilon="0.5")
    (found,) = refused(desk, f"{COUNT} IN (DATE '2026-01-01', DATE '2026-01-04', DATE '2026-01-08')", "0.6").diagnostics
    assert "2026-01-01 … 2026-01-08 (some of them): ε 0.6 asked, 0.5 left" in found.message
    (found,) = refused(desk, f"{COUNT} IN (DATE '2026-01-01', DATE '2026-01-04')", "1.5").diagnostics  # never
    assert not any(help.startswith("WHERE") for help in found.help)


class Told:
    """Spending as it is told where nobody asks for its course."""

    def told(self, told: Callable[[object], object]) -> object:
        return told(None)


def test_a_server_tells_each_account_what_its_days_have_lost(tmp_path: Path) -> None:
    desk = Desk(tmp_path, policy(ANALYSTS))
    desk.session("bob").sql(f"{COUNT} = DATE '2026-01-03'").run(epsilon="0.5")
    desk.session("ann").sql(f"{COUNT} BETWEEN DATE '2026-01-02' AND '2026-01-03'").run(epsilon="0.25")
    rows = rows_of(desk.session("ann"), ["periods"], Told())["periods"]  # type: ignore[arg-type]
    assert [(first, last, spent, left) for _, first, last, spent, left, *_ in rows] == [
        (day(1), day(1), 0, 1), (day(2), day(2), 0.25, 0.75), (day(3), day(3), 0.25, 0.75), (day(4), None, 0, 1),
    ]  # fmt: skip
    columns = RELATIONS["periods"]
    page = str(_by_period("trips", [dict(zip(columns, row, strict=True)) for row in rows]))
    assert "from 2026-01-04" in page and ">2026-01-02</td>" in page and "0.75" in page
    assert _by_period("people", []) is None
