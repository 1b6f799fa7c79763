"""Summaries: numbers of the queries themselves, who is charged what, what is refused, and what is left of a stop."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen, Rejected
from dpsql.service.summaries import summary as making
from tests.support.summary_board import CREATE, HUGE, POLICY, TILES, make_board

NOTHING = PrivacyLoss()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board of which ana has made the summary, at ε .5."""
    policy = make_board(tmp_path_factory.mktemp("board"))
    with dpsql.connect(policy, analyst="ana") as con:
        con.execute(CREATE)
    return policy.parent


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dpsql.Connection]:
    """The same at a huge ε, to look at."""
    with dpsql.connect(make_board(tmp_path_factory.mktemp("rich")), analyst="ana") as con:
        con.execute(CREATE, epsilon=HUGE)
        yield con


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return make_board(tmp_path)


@pytest.fixture
def con(policy: Path) -> Iterator[dpsql.Connection]:
    with dpsql.connect(policy, analyst="ana") as found:
        yield found


@pytest.fixture
def made(tmp_path: Path, template: Path) -> Iterator[dpsql.Connection]:
    """A copy of the board with its summary, to spend from."""
    shutil.copytree(template, tmp_path / "made")
    with dpsql.connect(tmp_path / "made" / "board.yaml", analyst="ana") as found:
        yield found


def truth(policy: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(policy.with_name("board.duckdb")), read_only=True) as db:
        return db.execute(sql).fetchall()


def from_summary(notes: tuple[str, ...]) -> list[str]:
    return [note for note in notes if note.startswith("from summary")]


# --- what it says -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", TILES)
def test_the_numbers_are_those_of_the_queries(rich: dpsql.Connection, sql: str) -> None:
    """At a huge ε: rows outside public lists and NULL count where a query alone counts them."""
    free = rich.sql(sql).run(epsilon=1000)
    alone = rich.sql(sql).run(epsilon=HUGE, fresh=True)
    assert free.spent == NOTHING and from_summary(free.notes) and alone.spent != NOTHING
    assert free.rows == alone.rows
    assert free.columns == alone.columns and free.types == alone.types


def test_ranges_beyond_the_list_count_what_the_query_counts(rich: dpsql.Connection, policy: Path) -> None:
    """Hours run from 3 to 11, the list from 5 to 9: below 5 and above 9 are classes of their own."""
    for condition in ("hour < 5", "hour > 9", "hour >= 6", "NOT hour <= 9", "hour < 5 OR month = 1", "carrier <> 'AA'"):
        sql = f"SELECT COUNT(*) AS n FROM flights WHERE {condition}"
        found = rich.sql(sql).run(epsilon=1)
        assert from_summary(found.notes) and list(found.rows) == truth(policy, sql), condition


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT COUNT(*) FROM flights WHERE hour > 10", "compares hour with values that are not listed"),
        ("SELECT COUNT(*) FROM flights WHERE carrier = 'ZZ'", "compares carrier with values that are not listed"),
        ("SELECT COUNT(*) FROM flights WHERE hour % 2 = 0", "hour may have values that are not listed"),
        ("SELECT COUNT(*) FROM flights WHERE dest = 'd1'", "reads dest, which is not in the summary"),
        (
            "SELECT month, origin, late, COUNT(*) FROM flights GROUP BY 1, 2, 3",
            "couples 3 columns (month, origin, late), and the summary has marginals of 2",
        ),
        ("SELECT COUNT(*) FROM flights WHERE month = 1 AND late AND hour < 7", "couples 3 columns (month, hour, late)"),
        ("SELECT AVG(month) FROM flights", "asks for more than counts and sums"),
        ("SELECT COUNT(DISTINCT dest) FROM flights WHERE dest IN ('d1', 'd2')", "reads dest"),
        ("SELECT SUM(CLIP(hour, 0, 12)) FROM flights", "hour may have values that are not listed"),
        ("SELECT SUM(hour + 1) FROM flights", "hour may have values that are not listed"),
        (
            "SELECT COUNT(*) FROM flights a JOIN wards ON a.origin = wards.ward",
            "reads other rows than those of the table",
        ),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT month FROM flights) t", "reads other rows than those of the table"),
        ("SELECT dest, COUNT(*) FROM flights GROUP BY dest", "its groups are private"),
        ("SELECT COUNT(*) FROM flights WHERE fare > 2", "reads fare, which is not in the summary"),
    ],
)
def test_what_it_does_not_tell_is_paid_for_and_said(rich: dpsql.Connection, sql: str, why: str) -> None:
    query = rich.sql(sql)
    text = query.explain(epsilon=0.01, delta=1e-9)
    assert "not from summary board: " in text and why in text
    assert query.cost(epsilon=0.01, delta=1e-9) != NOTHING
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert query.run(epsilon=0.01, delta=1e-9).spent != NOTHING


def test_what_is_a_sum_of_functions_of_two_columns_is_told(rich: dpsql.Connection, policy: Path) -> None:
    """It reads three, and couples two at most."""
    sql = (
        "SELECT SUM(CASE WHEN month = 1 THEN 1 WHEN month = 2 THEN 1 ELSE 0 END) AS s, "
        "COUNT(*) FILTER (WHERE (month = 1 AND hour < 7) OR (late AND origin = 'JFK' AND FALSE)) AS n FROM flights"
    )
    found = rich.sql(sql).run(epsilon=1)
    assert from_summary(found.notes) and list(found.rows) == truth(policy, sql)


def test_intervals_of_ratios_follow_the_noise_that_both_share(con: dpsql.Connection) -> None:
    con.execute(CREATE, epsilon=1)
    found = con.sql(
        "SELECT 1.0 * COUNT(*) / COUNT(*) AS one, COUNT(*) - COUNT(*) FILTER (WHERE month = 1) AS rest, "
        "COUNT(*) FILTER (WHERE month <> 1) AS same FROM flights"
    ).run(epsilon=0.001)
    (row,), (ends,) = found.rows, found.intervals()
    assert ends["one"] == pytest.approx((1, 1)) and row[0] == pytest.approx(1)
    assert ends["rest"] is not None and ends["same"] is not None
    assert ends["rest"] == pytest.approx(ends["same"], rel=1e-6)  # one number, written in two ways
    assert row[1] == pytest.approx(row[2], abs=1)


def test_sums_of_listed_numbers_are_those_of_the_query(rich: dpsql.Connection, policy: Path) -> None:
    """Hours that are not listed count as the nearest that is, as they do in the query."""
    found = rich.sql("SELECT late, SUM(hour) AS s, SUM(month) AS m FROM flights GROUP BY late").run(epsilon=1)
    wanted = truth(
        policy, "SELECT late, SUM(GREATEST(5, LEAST(9, hour))) FILTER (WHERE hour IS NOT NULL), SUM(month) "
        "FROM flights WHERE late IS NOT NULL "
        "GROUP BY late ORDER BY late"
    )  # fmt: skip
    assert from_summary(found.notes) and list(found.rows)[:2] == wanted


# --- what it costs ----------------------------------------------------------------------------------------------------


def test_a_board_of_one_price(con: dpsql.Connection) -> None:
    """ε .5 once; every tile is free, also the second time, and equal; each number has its interval."""
    assert con.execute("EXPLAIN " + CREATE).fetchall()[-1] == ("cost: ε 0.5",)
    assert con.execute(CREATE).fetchall() == [("board", "ε 0.5")]
    before = con.budget.spent
    assert before.epsilon == Fraction(1, 2)
    for sql in TILES:
        first, second = (con.sql(sql).run(epsilon=0.001) for _ in range(2))
        assert first.rows == second.rows and first.intervals() == second.intervals()
        assert first.spent == second.spent == NOTHING
        for ends, gaps in zip(first.intervals(), first.gaps(), strict=True):
            assert all(ends[name] is not None or gaps[name] == "denominator may be 0" for name in ends)
        assert "from summary board of " in con.sql(sql).explain(epsilon=0.001)
    assert con.budget.spent == before


def test_the_price_is_that_of_the_noise(made: dpsql.Connection) -> None:
    """Recomputed from the scale of every stored marginal: Σ 1/scale, each row being in one cell of each."""
    service = made.service
    account = service.account("ana")
    (definition,) = making.definitions(account.ledger).values()
    summary = service.summaries.summary(definition, account)
    assert summary is not None
    assert sum(Fraction(1) / a.parameter for a in summary.answers) <= Fraction(1, 2)
    assert sum(Fraction(1) / a.parameter for a in summary.answers) > Fraction(49, 100)
    assert {a.mechanism for a in summary.answers} == {"laplace"}
    assert sum((a.losses["flight"] for a in summary.answers), NOTHING).epsilon == made.budget.spent.epsilon


def test_another_account_is_charged_all_of_it_at_its_first_answer(made: dpsql.Connection) -> None:
    total = made.budget["flight"].total_spent
    bob = made.service.session("bob")
    query = bob.sql(TILES[0])
    assert query.cost(epsilon=0.05) == PrivacyLoss(epsilon=Fraction(1, 20))  # dearer ones are not allowed
    assert "first receipt ε 0.5, more than is asked for, or left" in query.explain(epsilon=0.05)
    assert query.cost(epsilon=0.05, allow_dearer=True).epsilon == Fraction(1, 2)
    text = query.explain(epsilon=0.05, allow_dearer=True)
    assert "from summary board of " in text and "first receipt ε 0.5, and the total budget nothing" in text
    first = query.run(epsilon=0.05, allow_dearer=True)
    assert first.spent.epsilon == Fraction(1, 2)
    assert bob.budget["flight"].total_spent == total
    assert bob.sql(TILES[1]).run(epsilon=0.001).spent == NOTHING
    assert bob.sql(TILES[0]).run(epsilon=0.001).rows == first.rows == made.sql(TILES[0]).run(epsilon=0.001).rows


def test_who_makes_the_same_summary_receives_it(made: dpsql.Connection) -> None:
    total, bob = made.budget["flight"].total_spent, made.service.session("bob")
    query = bob.summary("board", "flights", ["month", "origin", "carrier", "hour", "late"])
    assert query.cost(epsilon=0.5).epsilon == Fraction(1, 2)
    assert query.run(epsilon=0.5).spent.epsilon == Fraction(1, 2)
    assert bob.budget["flight"].total_spent == total and bob.budget.spent.epsilon == Fraction(1, 2)
    assert query.cost(epsilon=0.5) == NOTHING


def test_less_accurate_ones_are_not_taken_but_named(made: dpsql.Connection) -> None:
    query = made.sql("SELECT COUNT(*) AS n FROM flights")
    assert "from summary board it would be ± " in query.explain(epsilon=0.5)
    assert query.cost(epsilon=0.5).epsilon == Fraction(1, 2)


def test_it_answers_what_the_budget_does_not_pay_for(con: dpsql.Connection) -> None:
    poor = con.service.session("poor")
    poor.summary("board", "flights", ["month", "late"]).run(epsilon=0.1)
    with pytest.raises(BudgetExceeded):
        poor.sql("SELECT COUNT(*) AS n FROM flights WHERE dest = 'd1'").run(epsilon=0.05)
    found = poor.sql("SELECT COUNT(*) AS n FROM flights WHERE late").run(epsilon=5)
    assert found.spent == NOTHING and from_summary(found.notes)


def test_without_an_epsilon_it_answers_for_nothing_or_not_at_all(made: dpsql.Connection) -> None:
    found = made.sql(TILES[0]).run()
    assert found.spent == NOTHING and from_summary(found.notes)
    for sql in ("SELECT COUNT(*) FROM flights WHERE dest = 'd1'", "SELECT COUNT(*) FROM visits"):
        with pytest.raises(Rejected, match="no epsilon"):
            made.sql(sql).run()
    bob = made.service.session("bob")
    with pytest.raises(Rejected, match="no epsilon"):
        bob.sql(TILES[0]).run()
    plan = made.sql(TILES[0]).plan()
    with pytest.raises(Rejected, match="no epsilon"):
        bob.run(plan)
    with pytest.raises(Rejected, match="no epsilon"):
        made.run(plan, fresh=True)
    assert made.budget.spent.epsilon == Fraction(1, 2) and bob.budget.spent == NOTHING


def test_without_an_epsilon_the_better_of_what_the_account_has(made: dpsql.Connection) -> None:
    """Also where that is an answer of the query by itself, which was bought."""
    bought = made.sql(TILES[0]).run(epsilon=2, fresh=True)
    again = made.sql(TILES[0]).run()
    assert again.spent == NOTHING and again.rows == bought.rows and not from_summary(again.notes)


def test_a_limit_per_query_holds_for_the_whole_summary(con: dpsql.Connection) -> None:
    careful = con.service.session("careful")
    query = careful.summary("board", "flights", ["month", "origin", "carrier", "hour", "late"])  # no part is above it
    with pytest.raises(BudgetExceeded, match="DP405"):
        query.run(epsilon=0.3)  # no part of it costs as much as .2
    assert careful.budget.spent == NOTHING and careful.budget["flight"].total_spent == NOTHING
    assert query.run(epsilon=0.2).spent.epsilon == Fraction(1, 5)


def test_fresh_noise_is_paid_for(made: dpsql.Connection) -> None:
    assert made.sql(TILES[0]).run(epsilon=0.001, fresh=True).spent.epsilon == Fraction(1, 1000)


def test_a_summary_is_measured_and_not_computed_of_another(made: dpsql.Connection) -> None:
    """Marginals of a second one would fit the first; estimates are no measurements."""
    small = made.summary("small", "flights", ["month", "late"], k=1).run(epsilon=0.01)
    assert small.spent.epsilon == Fraction(1, 100)
    batch = made.batch(["SELECT month, COUNT(*) AS n FROM flights GROUP BY month"]).run(epsilon=0.01)
    assert batch.spent.epsilon == Fraction(1, 100)


def test_the_components_are_those_that_were_stored(made: dpsql.Connection) -> None:
    """What made the numbers: the noise of the marginals, and not that of a plan whose noise was never drawn."""
    account = made.service.account("ana")
    (definition,) = making.definitions(account.ledger).values()
    summary = made.service.summaries.summary(definition, account)
    assert summary is not None
    shown = made.sql(TILES[0]).run(epsilon=0.001).components
    assert [c["scale"] for c in shown] == [float(a.parameter) for a in summary.answers]


# --- names, ends, damage ----------------------------------------------------------------------------------------------


def test_a_name_stands_for_one_summary(made: dpsql.Connection) -> None:
    for other in (
        "CREATE DP SUMMARY Board ON flights (month) WITH (epsilon = 0.5)",
        CREATE.replace("k = 2", "k = 1"),
        CREATE.replace("0.5", "0.25"),
    ):
        with pytest.raises(Rejected, match="there is a summary board already"):
            made.execute(other)
    assert made.budget.spent.epsilon == Fraction(1, 2)
    assert made.execute(CREATE).fetchall() == [("board", "ε 0.5")] and made.budget.spent.epsilon == Fraction(1, 2)
    assert made.execute("DROP DP SUMMARY BOARD").fetchall() == [("BOARD",)]
    assert made.summaries == () and not from_summary(made.sql(TILES[0]).run(epsilon=0.001).notes)
    with pytest.raises(Rejected, match="there is no summary 'board'"):
        made.drop_summary("board")
    assert made.execute(CREATE).fetchall() == [("board", "ε 0.5")]  # what was paid for is stored
    assert made.budget.spent.epsilon == Fraction(501, 1000)


def test_the_list_says_what_there_is(made: dpsql.Connection) -> None:
    (own,) = made.summaries
    assert (own.name, own.table, own.k, own.analyst, own.held, own.state) == ("board", "flights", 2, "ana", True, "")
    assert own.statement == CREATE and own.receipt == NOTHING and own.made is not None
    (theirs,) = made.service.session("bob").summaries
    assert not theirs.held and theirs.receipt.epsilon == Fraction(1, 2)
    names = [c[0] for c in made.execute("SHOW dpsql.summaries").description or ()]
    assert names == ["name", "on_table", "columns", "k", "made_by", "made", "held", "first_receipt", "state"]


def test_it_lasts_and_an_unfinished_one_goes_on(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped before its name: what was paid for is free, in another process too."""
    whole = making.SummaryMaking.defined
    monkeypatch.setattr(making.SummaryMaking, "defined", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    with dpsql.connect(policy, analyst="ana") as con, pytest.raises(KeyboardInterrupt):
        con.execute(CREATE)
    monkeypatch.setattr(making.SummaryMaking, "defined", whole)
    with dpsql.connect(policy, analyst="ana") as con:
        assert con.summaries == () and con.budget.spent.epsilon == Fraction(1, 2)
        assert con.summary_of(CREATE).cost() == NOTHING
        assert con.summary_of(CREATE).run().spent == NOTHING
        rows = con.sql(TILES[1]).run(epsilon=0.001).rows
    with dpsql.connect(policy, analyst="ana") as con:
        assert con.sql(TILES[1]).run(epsilon=0.001).rows == rows
        assert con.summaries[0].held


def test_one_that_is_half_made_costs_what_is_missing(con: dpsql.Connection) -> None:
    begun = con.summary_of(CREATE).begun()
    first = next(iter(begun.plans.values()))
    part = con.run(first).spent.epsilon
    assert con.summary_of(CREATE).cost().epsilon == Fraction(1, 2) - part
    assert con.summary_of(CREATE).run().spent.epsilon == Fraction(1, 2) - part


def test_a_changed_policy_or_version_finds_nothing_and_says_so(made: dpsql.Connection) -> None:
    policy = made.policy.directory / "board.yaml"
    made.close()
    policy.write_text(POLICY.replace('data_version: "1"', 'data_version: "2"'), encoding="utf-8")
    with dpsql.connect(policy, analyst="ana") as con:
        query = con.sql(TILES[0])
        assert "summary board was made under another policy or data version: it is not used" in query.explain(epsilon=1)
        assert query.run(epsilon=0.001).spent.epsilon == Fraction(1, 1000)
        assert con.summaries[0].state == "of another policy or data version"
        assert con.execute(CREATE.replace("month, origin", "origin, month")).fetchall() == [("board", "ε 0.5")]
        assert con.summaries[0].state == "" and con.budget.spent.epsilon > 1


def test_a_policy_that_says_the_same_of_its_columns_has_it_still_and_its_name_is_taken(made: dpsql.Connection) -> None:
    policy = made.policy.directory / "board.yaml"
    rows = made.sql(TILES[1]).run(epsilon=0.001).rows
    made.close()
    changed = POLICY.replace("bounds: [2025-01-01, 2025-01-09]", "bounds: [2025-01-01, 2025-01-19]")
    assert changed != POLICY
    policy.write_text(changed.replace("poor: {epsilon: 0.1", "poor: {epsilon: 0.2"), encoding="utf-8")
    with dpsql.connect(policy, analyst="ana") as con:
        again = con.sql(TILES[1]).run(epsilon=0.001)
        assert again.rows == rows and again.spent == NOTHING
        assert con.summaries[0].state == "" and con.summaries[0].held
        with pytest.raises(dpsql.Rejected, match="there is a summary board already"):
            con.execute(CREATE.replace("month, origin", "origin, month"))
        assert con.summary_of(CREATE).run().spent == NOTHING


def test_answers_that_are_gone_are_missed(made: dpsql.Connection) -> None:
    policy = made.policy.directory / "board.yaml"
    made.close()
    policy.with_name("board.sqlite.answers").unlink()
    for rest in ("-wal", "-shm"):
        policy.with_name(f"board.sqlite.answers{rest}").unlink(missing_ok=True)
    with dpsql.connect(policy, analyst="ana") as con:
        query = con.sql(TILES[0])
        assert "the stored answers of summary board are gone: it is not used" in query.explain(epsilon=0.001)
        assert query.cost(epsilon=0.001).epsilon == Fraction(1, 1000)
        assert con.execute(CREATE).fetchall() == [("board", "ε 0.5")]  # measured anew, and paid for
        assert con.budget.spent.epsilon == 1 and con.summaries[0].held


def test_a_damaged_store_is_refused(policy: Path, con: dpsql.Connection) -> None:
    import sqlite3

    con.execute(CREATE)
    con.close()
    with sqlite3.connect(policy.with_name("board.sqlite.answers")) as db:
        db.execute("UPDATE answers SET numbers = replace(numbers, '1', '2')")
    with dpsql.connect(policy, analyst="ana") as con, pytest.raises(CannotOpen, match="damaged"):
        con.sql(TILES[0]).run(epsilon=0.001)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("CREATE DP SUMMARY s ON tours (ward) WITH (epsilon = 1)", "weigh a row by its groups"),
        ("CREATE DP SUMMARY s ON flights (dest) WITH (epsilon = 1)", "public list of the values of dest"),
        ("CREATE DP SUMMARY s ON flights (nothing) WITH (epsilon = 1)", "column nothing does not exist"),
        ("CREATE DP SUMMARY s ON nowhere (month) WITH (epsilon = 1)", "nowhere"),
        ("CREATE DP SUMMARY s ON wards (ward) WITH (epsilon = 1)", "private table"),
        ("CREATE DP SUMMARY s ON flights (month)", "no epsilon was given"),
        ("CREATE DP SUMMARY s ON flights (month, month) WITH (epsilon = 1)", "named twice"),
        ("CREATE DP SUMMARY s ON flights () WITH (epsilon = 1)", "a name is missing"),
        ("CREATE DP SUMMARY s ON flights (month) WITH (k = 9, epsilon = 1)", "k is a whole number"),
        ("CREATE DP SUMMARY s ON flights (month) WITH (epsilon = 1, rho = 1)", "each say how much"),
        ("CREATE DP SUMMARY s ON flights (month) WITH (epsilon = 1); DROP DP SUMMARY s", "ends before this"),
        ("CREATE DP SUMMARY s ON flights (month) WITH (rho = 1)", "only a zCDP ledger"),
        ("CREATE DP SUMMARY s ON flights (month) WITH (epsilon = -1)", "a number is missing"),
        ("CREATE DP SUMMARY s ON flights (month) WITH (epsilon = 0)", "0"),
    ],
)
def test_refused_by_name_and_nothing_is_spent(con: dpsql.Connection, sql: str, why: str) -> None:
    with pytest.raises(Rejected, match="(?s)" + why):
        con.execute(sql)
    assert con.budget.spent == NOTHING and con.summaries == ()


def test_limits_of_rows_count_over_the_whole_table(con: dpsql.Connection, policy: Path) -> None:
    """One ward, at most 3 rows of a person: a row weighs what it does over the whole table, and a note says so."""
    con.execute("CREATE DP SUMMARY v ON visits (ward, day) WITH (epsilon = 1000000)")
    found = con.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward").run(epsilon=100)
    scaled = truth(
        policy, "WITH c AS (SELECT id, GREATEST(COUNT(*), 3) m FROM visits GROUP BY id) SELECT ward, SUM(3.0 / m) "
        "FROM visits JOIN c USING (id) WHERE ward <> 'z' GROUP BY ward ORDER BY ward",
    )  # fmt: skip
    assert found.spent == NOTHING and found.rows[:2] == tuple((w, round(float(n))) for w, n in scaled)  # type: ignore[arg-type]
    filtered = con.sql("SELECT COUNT(*) AS n FROM visits WHERE ward = 'a'").run(epsilon=100)
    assert filtered.rows[0][0] == found.rows[0][1]
    assert "summary v: a limit of rows counts over the whole table, whatever is filtered" in filtered.notes
