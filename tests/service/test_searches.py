"""Limits that a part of ε finds: the chain of search and query, what it costs, and what is told of it to whom."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.api.connection import Connection, connect
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.mechanisms.laplace import DiscreteLaplace
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.charge import Charged
from dpsql.core.release.noisy import NoisyRelease
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.errors import NothingFound, Rejected, reject
from dpsql.planner.costs.privacy_cost import cost_of
from dpsql.planner.plan import Plan
from dpsql.planner.searches.limits_to_search import Rule, SearchedLimit
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service import pipeline, stages_of_a_run
from dpsql.service.checks.check import check
from dpsql.service.planning import searches
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.service import Service
from dpsql.service.session import Session
from tests.support.built_once import build
from tests.support.opened_once import opened

POLICY = """\
version: 1
name: walks
database: walks.duckdb
units: {walker: {}}
ACCOUNTS
tables:
  walks:
    unit: {column: id, of: walker}
    columns:
      id:    {type: bigint, nullable: false}
      place: {type: varchar, domain: [hill, lake, wood], nullable: false}
      hours: {type: integer, bounds: [0, 9], nullable: false}
      steps: {type: bigint, nullable: false}
      cost:  {type: 'decimal(8,2)', nullable: false}
      km:    {type: double, nullable: false}
      tag:   {type: varchar, nullable: false}
"""
EPSILON = """\
privacy: {accountant: approx_dp}
budgets:
  total: {epsilon: 100000000, delta: 1e-3}
  analysts: {"*": {epsilon: 1e8, delta: 1e-4}, ana: {epsilon: 1e8, delta: 1e-4}, ben: {epsilon: 1e8, delta: 1e-4}}
"""
RHO = "privacy: {accountant: zcdp}\nbudgets: {total: {rho: 1000000000000, delta: 1e-3}}\n"
DATA = """\
CREATE TABLE walks AS SELECT
  i % 1000 AS id, ['hill', 'lake', 'wood'][1 + (i // 1000) % 3] AS place, CAST(5 AS INTEGER) AS hours,
  CAST(300 AS BIGINT) AS steps, CAST(1.25 AS DECIMAL(8,2)) AS cost, CAST(0.5 AS DOUBLE) AS km,
  't' || (i // 1000) % 3 AS tag
FROM range(6000) t(i)
"""
"""1,000 walkers, all alike: six walks each, two in each place. At a huge ε the octaves, and so the limits, are sure."""
SURE = 400_000
COUNT = "SELECT COUNT(*) AS n FROM walks"
BY_PLACE = "SELECT place, COUNT(*) AS n FROM walks GROUP BY place"


def folder(at: Path, accounts: str = EPSILON, data: str = DATA) -> Path:
    at.mkdir(exist_ok=True)
    build(at / "walks.duckdb", data)
    (at / "walks.yaml").write_text(POLICY.replace("ACCOUNTS\n", accounts), encoding="utf-8")
    return at


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("walks"))


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger("walks")


@pytest.fixture
def con(walks: Path, ledger: MemoryLedger) -> Iterator[Connection]:
    with Connection(*opened(walks / "walks.yaml"), ledger=ledger) as found:
        yield found


def session(con: Connection, analyst: str = "ana") -> Session:
    """One that searches limits."""
    return Session(con.service, analyst, QuerySettings(search=True))


COARSE = "1e-3"


@contextmanager
def nothing_seen() -> Iterator[str]:
    """An ε at which no octave holds enough units to be seen. No noise is drawn: one search in 500 would see some."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiscreteLaplace, "add_noise", lambda self, values, backend=None: Integers.of(values))
        yield COARSE


# --- what is found ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "rows", "limits"),
    [
        (COUNT, [(6000,)], [8]),
        (BY_PLACE, [("hill", 2000), ("lake", 2000), ("wood", 2000)], [8]),
        ("SELECT SUM(hours) AS s FROM walks", [(30_000,)], [32]),
        ("SELECT SUM(steps) AS s FROM walks", [(1_800_000,)], [2048]),
        ("SELECT SUM(cost) AS s FROM walks", [(7500,)], [1024]),
        ("SELECT SUM(km) AS s FROM walks", [(3000,)], [2**22]),
        ("SELECT SUM(-steps) AS s FROM walks", [(-1_800_000,)], [2048]),
        (
            "SELECT place, SUM(steps) AS s, COUNT(*) AS n FROM walks GROUP BY place",
            [("hill", 600_000, 2000), ("lake", 600_000, 2000), ("wood", 600_000, 2000)],
            [2048, 8],
        ),
        ("SELECT COUNT(*) FILTER (WHERE place = 'hill') AS n FROM walks", [(2000,)], [2]),
        ("SELECT COUNT(DISTINCT hours) AS n FROM walks", [(1,)], [1]),
        ("SELECT COUNT(DISTINCT id) AS n, COUNT(*) AS m FROM walks", [(1000, 6000)], [8]),
        (
            "SELECT place, COUNT(DISTINCT id) AS n FROM walks GROUP BY place",
            [("hill", 1000), ("lake", 1000), ("wood", 1000)],
            [3],
        ),
        ("SELECT AVG(hours) AS a FROM walks", [(5,)], [8]),
        ("SELECT AVG(hours) AS a, COUNT(*) AS n FROM walks", [(5, 6000)], [8, 8]),
    ],
)
def test_limits_are_found_and_the_answer_is_made_with_them(
    con: Connection, sql: str, rows: list[tuple[object, ...]], limits: list[int]
) -> None:
    answer = session(con).sql(sql).run(epsilon=SURE)
    assert [tuple(round(v) if isinstance(v, float) else v for v in row) for row in answer.rows] == rows
    assert [found.limit for found in answer.plan.found] == limits
    assert answer.spent == PrivacyLoss(Fraction(SURE))


def test_under_gaussian_noise_the_root_of_squares_is_found_and_held(tmp_path: Path) -> None:
    """Two walks in each of three places: √12, where the sum is 6."""
    with connect(folder(tmp_path, RHO) / "walks.yaml", ledger=":memory:") as con:
        query = Session(con.service, None, QuerySettings(search=True)).sql(BY_PLACE)
        answer = query.run(epsilon=SURE)
        assert answer.rows == (("hill", 2000), ("lake", 2000), ("wood", 2000))
        (found,) = answer.plan.found
        assert (found.limit, found.octaves.roots) == (4, True) and found.octaves.counts[2] == 1000
        assert query.cost(epsilon=2 * SURE).rho <= 2 * SURE**2 * Fraction(3, 4), "the octaves are held"
        limited = query.plan(max_error={"n": 1})
        assert limited.searches is None and [f.limit for f in limited.found] == [4]
        assert query.accuracy(epsilon=1)["n"] is not None
        alone = Session(con.service, None, QuerySettings(search=True)).sql(COUNT).run(epsilon=SURE)
        assert [(f.limit, f.octaves.roots) for f in alone.plan.found] == [(8, False)]


def test_private_keys_have_a_limit_on_groups_too(con: Connection) -> None:
    query = session(con).sql("SELECT tag, COUNT(*) AS n, SUM(steps) AS s FROM walks GROUP BY tag ORDER BY tag")
    plan = query.plan(epsilon=SURE, delta="1e-7")
    assert plan.searches is not None and [s.limit.what for s in plan.searches.limits][-1] == "groups"
    assert plan.loss == PrivacyLoss(Fraction(SURE), Fraction("1e-7")), "δ is reserved whole: thresholds round it"
    answer = query.run(epsilon=SURE, delta="1e-7")
    assert [(tag, n) for tag, n, _ in answer.rows] == [("t0", 2000), ("t1", 2000), ("t2", 2000)]
    assert [found.limit for found in answer.plan.found] == [8, 2048, 4]


PART = "(SELECT COUNT(*) / 3000 FROM walks)"
"""2 of 6,000 walks."""
IN_ROUNDS = [
    (f"SELECT COUNT(*) AS n FROM walks WHERE hours > {PART}", [(6000,)], [8, 8], [1, 2]),
    (f"SELECT SUM(steps) AS s FROM walks WHERE hours > {PART}", [(1_800_000,)], [8, 2048], [1, 2]),
    (f"SELECT AVG(hours) AS a FROM walks WHERE hours > {PART}", [(5,)], [8, 8], [1, 2]),
    (f"SELECT SUM(CLIP(steps, AUTO)) AS s FROM walks WHERE hours > {PART}", [(1_800_000,)], [8, 2048], [1, 2]),
    (
        "SELECT place, COUNT(*) AS n FROM walks JOIN (SELECT place, COUNT(*) / 1000 AS m FROM walks GROUP BY place) p "
        "USING (place) WHERE hours > m GROUP BY place ORDER BY place",
        [("hill", 2000), ("lake", 2000), ("wood", 2000)],
        [8, 8],
        [1, 2],
    ),
    (
        f"SELECT COUNT(*) AS n FROM walks WHERE hours > (SELECT COUNT(*) / 3000 FROM walks WHERE hours > {PART})",
        [(6000,)],
        [8, 8, 8],
        [1, 2, 3],
    ),
    (
        "SELECT COUNT(*) AS n FROM walks WHERE hours > (SELECT COUNT(DISTINCT id) / 1000 FROM walks)",
        [(6000,)],
        [8],
        [2],
    ),
]
"""The answer, the limits in the order in which they are found, and how many releases each round draws."""


@pytest.mark.parametrize(("sql", "rows", "limits", "asked"), IN_ROUNDS)
def test_what_reads_another_release_is_searched_once_that_is_drawn(
    con: Connection, ledger: MemoryLedger, sql: str, rows: list[tuple[object, ...]], limits: list[int], asked: list[int]
) -> None:
    """All rounds are reserved before the first, and the query's own numbers come last."""
    query = session(con).sql(sql)
    plan = query.plan(epsilon=SURE)
    assert plan.searches is not None and [len(each.releases) for each in plan.searches.plans] == asked
    assert plan.cost == {"walker": PrivacyLoss(Fraction(SURE))}
    answer = query.run(epsilon=SURE)
    assert [tuple(round(v) if isinstance(v, float) else v for v in row) for row in answer.rows] == rows
    assert [found.limit for found in answer.plan.found] == limits
    assert ledger.spent("walker") == PrivacyLoss(Fraction(SURE)) == answer.spent
    assert len(ledger.history()) == 1 + len(asked), "an entry names the noise of each round, and of the answer"
    assert query.cost(epsilon=SURE) == PrivacyLoss() and query.run(epsilon=SURE).rows == answer.rows
    assert ledger.spent("walker") == PrivacyLoss(Fraction(SURE))


@pytest.mark.parametrize("sql", [sql for sql, _, _, asked in IN_ROUNDS if len(asked) == 2])
def test_whatever_a_round_finds_the_rest_costs_what_was_reserved(con: Connection, sql: str) -> None:
    for accounts in (1, 3):
        settings = QuerySettings(epsilon=Fraction(accounts), search=True)
        plan = pipeline.compile(con.service, WrittenQuery(sql), settings)
        for k in (0, 1, 20, 62):
            at, price = plan, [r.measured for r in plan.first.releases]
            while at.searches is not None:
                limits = {s.limit.label: _found(s, k) for s in at.searches.limits}
                settings = replace(at.searches.settings, found={**at.searches.settings.found, **limits})
                at = pipeline.compile(con.service, WrittenQuery(sql), settings)
                price += [r.measured for r in at.first.releases]
            assert cost_of(price, con.service.policy) == plan.cost


def test_killed_between_two_rounds_everything_is_paid_and_what_was_found_stays(
    con: Connection, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, original = session(con).sql(IN_ROUNDS[0][0]), searches.with_limits

    def killed(
        service: Service, plan: Plan, noisy: Sequence[NoisyRelease], charged: Charged, spent: PrivacyLoss
    ) -> Plan:
        assert plan.searches is not None
        return (original if plan.searches.following else _killed)(service, plan, noisy, charged, spent)

    with monkeypatch.context() as patched:
        patched.setattr(stages_of_a_run, "with_limits", killed)
        with pytest.raises(KeyboardInterrupt):
            query.run(epsilon=SURE)
    assert ledger.spent("walker") == PrivacyLoss(Fraction(SURE)), "all of it, before anything was asked"
    assert query.cost(epsilon=SURE) == PrivacyLoss(Fraction(SURE * 3, 4)), "both searches are held"
    assert [found.limit for found in query.run(epsilon=SURE).plan.found] == [8, 8]


def test_a_second_round_that_finds_nothing_tells_what_the_whole_has_cost(con: Connection, ledger: MemoryLedger) -> None:
    with pytest.raises(NothingFound, match=f"ε {SURE} was charged"):
        session(con).sql(f"SELECT COUNT(*) AS n FROM walks WHERE hours < {PART}").run(epsilon=SURE)
    assert ledger.spent("walker") == PrivacyLoss(Fraction(SURE))


def test_how_much_is_cut_of_rows_that_read_another_number_nobody_says(con: Connection) -> None:
    """The search has drawn the inner number for itself: its octaves are of other rows than those of the answer."""
    query = session(con).sql(IN_ROUNDS[0][0])
    assert any(note.endswith("comes on top, and stays unknown") for note in query.plan(epsilon=SURE).notes)
    answer = query.run(epsilon=SURE)
    assert answer.intervals() == [{"n": None}]
    assert len(answer.plan.found) == 2 and len(answer.plan.found_of_own_rows) == len(answer.coverage) == 1
    assert "another draw of the number" in " ".join(answer.notes)
    plain = session(con).sql(COUNT).run(epsilon=SURE)
    assert plain.intervals() == [{"n": (6000, 6000)}] and "another draw" not in " ".join(plain.notes)


def test_a_round_that_was_not_reserved_is_not_drawn(
    con: Connection, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken twin, which forgets the second round until its turn comes."""
    later = Plan.later.fget  # type: ignore[attr-defined]

    def forgetful(plan: Plan) -> tuple[PlannedRelease, ...]:
        return plan.releases if plan.searches is not None and plan.searches.following else later(plan)  # type: ignore[no-any-return]

    monkeypatch.setattr(Plan, "later", property(forgetful))
    with pytest.raises(AssertionError, match="cost more than was reserved"):
        session(con).sql(IN_ROUNDS[0][0]).run(epsilon=SURE)
    assert len(ledger.history()) == 1 and ledger.spent("walker").epsilon < SURE


@pytest.mark.parametrize("what", ["AVG(steps)", "AVG(CLIP(steps, AUTO))", "MEDIAN(steps)"])
def test_bounds_of_values_are_not_searched_where_rows_read_another_release(con: Connection, what: str) -> None:
    with pytest.raises(Rejected, match=r"DP(201|211|101)") as refused:
        session(con).plan(f"SELECT {what} FROM walks WHERE hours > {PART}", epsilon=1)
    assert "depend on numbers of another aggregate" in str(refused.value)


@pytest.mark.parametrize("what", ["COUNT(*)", "SUM(steps)", "COUNT(DISTINCT hours)", "SUM(CLIP(steps, 0, AUTO))"])
def test_of_no_rows_any_limit_will_do(con: Connection, what: str) -> None:
    query = session(con).sql(f"SELECT {what} AS n FROM walks WHERE FALSE")
    plan = query.plan(epsilon=1)
    assert plan.searches is None and plan.known and query.run(epsilon=1).rows == ((0,),)
    beside = session(con).sql(f"SELECT {what} AS n FROM walks WHERE FALSE UNION ALL SELECT COUNT(*) FROM walks")
    searches = beside.plan(epsilon=SURE).searches
    assert searches is not None and [s.limit.what for s in searches.limits] == ["COUNT(*)"]
    assert sorted(beside.run(epsilon=SURE).rows) == [(0,), (6000,)]


def test_totals_of_doubles_by_id_are_searched(con: Connection) -> None:
    """The sum of an id that stays private has its grid before its octaves are counted."""
    per_id = "SELECT id, SUM(CLIP(km, 0, 1)) AS s FROM walks GROUP BY id"
    for what, rows in (("SUM(s)", 3000), ("AVG(s)", 3), ("SUM(CLIP(s, AUTO))", 3000)):
        answer = session(con).sql(f"SELECT {what} AS s FROM ({per_id})").run(epsilon=SURE)
        assert answer.rows[0][0] == pytest.approx(rows, rel=0.01)


@pytest.mark.parametrize(
    ("sql", "mean", "limits"),
    [
        ("SELECT AVG(steps) AS a FROM walks", 300, [(256, 512), 8]),
        ("SELECT AVG(-steps) AS a FROM walks", -300, [(-512, -256), 8]),
        ("SELECT AVG(cost) AS a FROM walks", 1.25, [(64, 128), 8]),
        ("SELECT AVG(km) AS a FROM walks", 0.5, [(2**18, 2**19), 8]),
        ("SELECT AVG(CLIP(steps, 0, AUTO)) AS a FROM walks", 300, [(256, 512), 8]),
        ("SELECT AVG(CLIP(steps, AUTO, 400)) AS a FROM walks", 300, [(256, 400), 8]),
        ("SELECT AVG(steps - 300) AS a FROM walks", 0, [(0, 1), 8]),
        ("SELECT VAR_POP(steps) AS a FROM walks", 0, [(256, 512), 8]),
        ("SELECT SUM(CLIP(steps, AUTO)) / 6000 AS a FROM walks", 300, [2048]),
    ],
)
def test_bounds_of_values_are_found_where_averages_need_them(
    con: Connection, sql: str, mean: float, limits: list[object]
) -> None:
    query = session(con).sql(sql)
    plan = query.plan(epsilon=SURE)
    assert plan.searches is not None and plan.loss == PrivacyLoss(Fraction(SURE))
    if len(limits) == 2:
        shares = [r.measured.losses("walker") for r in plan.first.releases]
        assert shares == [(PrivacyLoss(Fraction(SURE, 5)),), (PrivacyLoss(Fraction(SURE, 10)),)]
    assert set(query.accuracy(epsilon=SURE).values()) <= {None}
    answer = query.run(epsilon=SURE)
    assert [found.limit for found in answer.plan.found] == limits
    assert answer.rows[0][0] == pytest.approx(mean, abs=0.3)
    assert query.cost(epsilon=SURE) == PrivacyLoss()


def test_rows_that_are_units_have_bounds_found(tmp_path: Path) -> None:
    """Nothing limits an id there: the octaves are of values, and each row is in one of them."""
    by_rows = POLICY.replace("unit: {column: id, of: walker}", "unit: {rows: 3}").replace("units: {walker: {}}\n", "")
    at = folder(tmp_path)
    (at / "walks.yaml").write_text(by_rows.replace("ACCOUNTS\n", EPSILON), encoding="utf-8")
    with connect(at / "walks.yaml", ledger=":memory:") as con:
        query = session(con).sql("SELECT SUM(steps) AS s, AVG(km) AS a FROM walks")
        plan = query.plan(epsilon=SURE)
        assert plan.searches is not None
        assert [r.measured.measurements[0].sensitivity.l1 for r in plan.first.releases] == [3, 3]
        answer = query.run(epsilon=SURE)
        assert [found.limit for found in answer.plan.found] == [(256, 512), (2**18, 2**19)]
        assert answer.rows[0][0] == pytest.approx(1_800_000, abs=50) and answer.rows[0][1] == pytest.approx(0.5)


# --- what it costs ---------------------------------------------------------------------------------------------------


def test_the_whole_is_charged_before_anything_is_asked_and_then_named_for_nothing(
    con: Connection, ledger: MemoryLedger
) -> None:
    query = session(con).sql(BY_PLACE)
    assert query.cost(epsilon=SURE) == PrivacyLoss(Fraction(SURE))
    query.run(epsilon=SURE)
    first, second = (receipt.entry for receipt in ledger.history())
    assert first.charges == {"walker": PrivacyLoss(Fraction(SURE))} and len(first.answers) == 1
    assert not second.charges and not second.received and len(second.answers) == 1
    assert ledger.spent("walker") == PrivacyLoss(Fraction(SURE))


def test_a_quarter_searches_and_the_rest_is_spent_at_the_limit(con: Connection) -> None:
    plan = session(con).plan("SELECT COUNT(*) AS n, SUM(steps) AS s FROM walks", epsilon="0.8")
    assert plan.searches is not None
    assert [r.measured.losses("walker") for r in plan.searches.plan.releases] == [(PrivacyLoss(Fraction(1, 10)),)] * 2
    (release,) = plan.releases
    assert release.measured.losses("walker") == (PrivacyLoss(Fraction(3, 10)),) * 2
    assert plan.loss == PrivacyLoss(Fraction(4, 5))


def test_what_was_found_is_used_again_for_nothing(con: Connection, ledger: MemoryLedger) -> None:
    first = session(con).sql(COUNT).run(epsilon=SURE)
    again = session(con).sql(COUNT)
    assert again.cost(epsilon=SURE) == PrivacyLoss(), "the very same numbers"
    assert again.run(epsilon=SURE).rows == first.rows
    # With another ε the octaves are the same, and the rest keeps its share: less accurate octaves do, too.
    assert again.cost(epsilon=SURE // 2) == PrivacyLoss(), "stored numbers are more accurate"
    assert again.cost(epsilon=SURE * 2) == PrivacyLoss(Fraction(SURE * 3, 2))
    assert again.accuracy(epsilon=SURE * 2)["n"] is not None
    spent = ledger.spent("walker")
    answer = again.run(epsilon=SURE * 2)
    assert answer.plan.found[0].limit == 8
    assert ledger.spent("walker") == spent + PrivacyLoss(Fraction(SURE * 3, 2))


def test_an_error_is_planned_once_the_limits_are_held(con: Connection) -> None:
    query = session(con).sql(COUNT)
    with pytest.raises(Rejected, match="DP411"):
        query.cost(max_error={"n": 100})
    query.run(epsilon=SURE)
    assert query.cost(max_error={"n": Fraction(1, 10)}) == PrivacyLoss()
    limited = query.plan(max_error={"n": 100})
    assert limited.searches is None and 0 < limited.loss.epsilon < 1
    assert query.accuracy(max_error={"n": 100})["n"] == pytest.approx(100, rel=0.02)


def test_what_another_account_found_is_received_at_its_price_and_tells_nothing_before(
    con: Connection, ledger: MemoryLedger
) -> None:
    before = session(con, "ben").sql(COUNT).explain(epsilon=SURE)
    session(con).sql(COUNT).run(epsilon=SURE)
    query = session(con, "ben").sql(COUNT)
    told = query.explain(epsilon=SURE)
    assert "2^k" in told and [*told.splitlines()[:14]] == [*before.splitlines()[:14]], "octaves are not his yet"
    assert query.accuracy(epsilon=SURE) == {"n": (0.0, None)}  # at such an ε the least is nothing
    assert query.cost(epsilon=SURE) == PrivacyLoss(Fraction(SURE))
    total = ledger.spent("walker")
    answer = query.run(epsilon=SURE)
    assert answer.plan.found[0].limit == 8
    assert answer.spent == PrivacyLoss(Fraction(SURE)), "the octaves at their stored loss, and new noise for the rest"
    assert ledger.spent("walker") == total + PrivacyLoss(Fraction(SURE * 3, 4))
    assert session(con, "ben").sql(COUNT).cost(epsilon=SURE) == PrivacyLoss()


def test_previews_do_not_depend_on_octaves_that_are_not_held(tmp_path: Path) -> None:
    told = []
    for name, data in (("a", DATA), ("b", DATA.replace("range(6000)", "range(48000)"))):
        with connect(folder(tmp_path / name, data=data) / "walks.yaml", ledger=":memory:") as con:
            session(con).sql(COUNT).run(epsilon=SURE)
            query = session(con, "ben").sql(COUNT)
            told.append(
                [query.explain(epsilon=SURE), query.explain(epsilon=SURE, format="json"), query.cost(epsilon=SURE)]
            )
    assert told[0] == told[1]


def test_what_is_refused_after_the_charge_says_what_was_charged(
    con: Connection, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(*args: object, **options: object) -> Plan:
        raise reject("DP409", "a public table has changed")

    monkeypatch.setattr(searches, "_compiled", changed)
    with pytest.raises(NothingFound) as refused:
        session(con).sql(COUNT).run(epsilon=SURE)
    assert ledger.spent("walker") == PrivacyLoss(Fraction(SURE))
    text = str(refused.value)
    assert text.startswith("error[DP409]") and "nothing was spent" not in text
    assert f"ε {SURE} was charged; the noisy octaves are kept" in text


# --- nothing found ---------------------------------------------------------------------------------------------------


NOBODY = DATA.replace("range(6000)", "range(0)")


def test_nothing_found_is_charged_and_told_and_drawn_anew(tmp_path: Path) -> None:
    with connect(folder(tmp_path, data=NOBODY) / "walks.yaml", ledger=(ledger := MemoryLedger("walks"))) as con:
        query = session(con).sql(COUNT)
        for times in (1, 2):
            assert query.cost(epsilon=SURE) == PrivacyLoss(Fraction(SURE)), "octaves of no use are drawn anew"
            with pytest.raises(NothingFound) as refused:
                query.run(epsilon=SURE)
            (found,) = refused.value.diagnostics
            assert found.code == "DP212" and "1 walker unit that the search can see" in found.message
            assert f"ε {SURE} was charged; the noisy octaves are kept" in found.notes[0]
            assert found.notes[1].endswith(": " + ", ".join(["0"] * 63))
            assert ledger.spent("walker") == PrivacyLoss(Fraction(times * SURE)), "the whole, each time"


def test_a_declared_limit_is_the_most_and_stands_where_nothing_is_found(tmp_path: Path) -> None:
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 5) COUNT(*) AS n FROM walks"
    for name, data, rows, limit in (("none", NOBODY, 0, 5), ("all", DATA, 5000, 5), ("one", FEW, 1000, 1)):
        with connect(folder(tmp_path / name, data=data) / "walks.yaml", ledger=":memory:") as con:
            query = session(con).sql(sql)
            plan = query.plan(epsilon=SURE)
            assert plan.searches is not None and plan.searches.cells == 63, "also those beyond the cap"
            answer = query.run(epsilon=SURE)
            assert (answer.rows[0][0], answer.plan.found[0].limit) == (rows, limit)


FEW = DATA.replace("range(6000)", "range(1000)")


# --- what is told ----------------------------------------------------------------------------------------------------


def test_explain_shows_the_search_and_multiples_of_its_limit(con: Connection) -> None:
    text = session(con).sql("SELECT SUM(steps) AS s FROM walks").explain(epsilon="0.8")
    assert "release 1 · unit walker · search of the limit of SUM(steps) · keys: octaves 0…62" in text
    assert "  COUNT(*)    1   1   1    laplace      5  0.2      15" in text
    assert "release 2 · unit walker · limit 2^k from release 1 · keys: none, one row" in text
    assert "  SUM(steps)  2^k  2^k  2^k    laplace  1.66667·2^k  0.6   5·2^k" in text
    assert "  SUM(steps): k = 9: ± 2,560; k = 12: ± 20,480" in text
    assert "cost: ε 0.8 of each walker" in text and "≤ 1 rows" not in text


def test_json_says_which_numbers_are_multiples(con: Connection) -> None:
    query = session(con).sql("SELECT SUM(steps) AS s, COUNT(DISTINCT id) AS n FROM walks")
    told = json.loads(query.explain(epsilon="0.8", format="json"))
    (search,) = told["searches"]
    assert (search["name"], search["finds"]) == ("s0", [{"limit": "SUM(steps)", "rule": "sum", "at_most": None}])
    assert search["components"][0]["l1"] == 1
    total, units = told["releases"][0]["components"]
    assert total["l1"] == {"limit": "found", "factor": 1, "search": "s0"} and units["l1"] == 1
    assert [o["expected_error"] is None for o in told["releases"][0]["outputs"]] == [True, False]
    assert told["cost"] == {"walker": {"epsilon": 0.8, "delta": 0.0, "rho": 0.0}}
    query.run(epsilon=SURE)
    after = json.loads(query.explain(epsilon=SURE, format="json"))
    assert "searches" not in after and after["releases"][0]["components"][0]["l1"] == 2048


def test_of_accuracy_the_least_alone_is_known_until_the_limit_is(con: Connection) -> None:
    query = session(con).sql("SELECT COUNT(*) AS n, COUNT(DISTINCT id) AS units FROM walks")
    before = query.accuracy(epsilon=1)
    assert isinstance(before["n"], tuple) and before["n"][1] is None and isinstance(before["units"], float)
    query.run(epsilon=SURE)
    assert isinstance(query.accuracy(epsilon=1)["n"], float)


def test_the_answer_tells_the_limit_and_its_octaves(con: Connection) -> None:
    answer = session(con).sql(COUNT).run(epsilon=SURE)
    (found,) = answer.plan.found
    assert found.octaves.counts == (0, 0, 0, 1000) + (0,) * 59 and found.loss == PrivacyLoss(Fraction(SURE, 4))
    assert any(note.startswith("limit of COUNT(*) found: 8 per walker") for note in answer.notes)
    again = session(con).sql(COUNT).run(epsilon=SURE)
    assert again.plan.found == answer.plan.found, "for nothing, too"


# --- reservations ----------------------------------------------------------------------------------------------------


QUERIES = (
    COUNT,
    "SELECT place, COUNT(*) AS n, SUM(steps) AS s, SUM(km) AS k FROM walks GROUP BY place",
    "SELECT place, COUNT(DISTINCT hours) AS n, COUNT(DISTINCT id) AS u FROM walks GROUP BY place",
    "SELECT place, AVG(hours) AS a, COUNT(*) AS n FROM walks GROUP BY place",
    "SELECT tag, AVG(hours) AS a, SUM(steps) AS n FROM walks GROUP BY tag",
    "SELECT place, AVG(steps) AS a, VAR_POP(km) AS v FROM walks GROUP BY place",
)


SMALL = [Fraction(1, 2**k) for k in (8, 12, 13, 14, 15, 18, 22, 26, 30, 34, 38, 46, 54)]
WIDE = (
    *QUERIES,
    "SELECT place, SUM(cost) AS c, SUM(hours) AS h FROM walks GROUP BY place",
    "SELECT AVG(CLIP(steps, AUTO)) AS a, SUM(CLIP(cost, 0, AUTO)) AS c FROM walks",
    "SELECT AVG(CLIP(steps, AUTO) * 1000) AS a FROM walks",
    "SELECT SUM(n) AS s FROM (SELECT id, COUNT(*) AS n FROM walks GROUP BY id)",
    "SELECT place, COUNT(*) AS n, AVG(CLIP(km, 0, 1e9)) AS a FROM walks GROUP BY ROLLUP (place)",
)


def test_no_limit_that_is_found_ends_in_a_refusal(tmp_path: Path) -> None:
    """Some of what tests/deep/service/test_found_limits.py tries."""
    has_a_plan(folder(tmp_path), False, (COUNT, *WIDE[-5:-2]), SMALL[1:10:2], (0, 9, 12, 44, 62))


def has_a_plan(
    at: Path, is_pure: bool, queries: Sequence[str], epsilons: Sequence[Fraction], found: Sequence[int]
) -> None:
    """However small ε is: whatever can be found has a plan, or the query was refused before anything was charged."""
    with connect(at / "walks.yaml", ledger=":memory:") as con:
        own, refused, planned = Session(con.service, None, QuerySettings(search=True)), 0, 0
        for sql in queries:
            if "tag" in sql and is_pure:
                continue  # private keys need a δ
            for epsilon in epsilons:
                try:
                    plan = own.plan(sql, epsilon=epsilon, delta="1e-60")
                except Rejected as refusal:
                    assert [d.code for d in refusal.diagnostics] == ["DP410"]
                    refused += 1
                    continue
                assert plan.searches is not None
                for k in found:
                    limits = {s.limit.label: _found(s, k) for s in plan.searches.limits}
                    limited = pipeline.compile(
                        con.service, WrittenQuery(sql), replace(plan.searches.settings, found=limits)
                    )
                    assert limited.searches is None
                    planned += 1
        assert refused and planned


def _found(searched: SearchedLimit, k: int) -> int | tuple[int, int]:
    if searched.limit.rule is Rule.RANGE:
        return -(2**k), 2**k
    return 2 ** min(k, searched.largest)


def test_a_release_that_costs_more_than_was_reserved_is_not_drawn(
    con: Connection, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain that went on at another ε, or at the noise of half the limit, finds no entry that pays for it."""
    query = session(con).sql(COUNT)
    original = searches.with_limits

    def dearer(
        service: Service, plan: Plan, noisy: Sequence[NoisyRelease], charged: Charged, spent: PrivacyLoss
    ) -> Plan:
        assert plan.searches is not None
        settings = replace(plan.searches.settings, epsilon=Fraction(2 * SURE))
        changed = replace(plan, stages=(replace(plan.searches, settings=settings), *plan.stages[1:]))
        return original(service, changed, noisy, charged, spent)

    monkeypatch.setattr(stages_of_a_run, "with_limits", dearer)
    with pytest.raises(AssertionError, match="cost more than was reserved"):
        query.run(epsilon=SURE)
    assert ledger.spent("walker") == PrivacyLoss(Fraction(SURE)) and len(ledger.history()) == 1


def test_killed_between_the_two_releases_everything_is_paid_and_the_limit_stays(
    con: Connection, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = session(con).sql(BY_PLACE)
    with monkeypatch.context() as patched:
        patched.setattr(stages_of_a_run, "with_limits", _killed)
        with pytest.raises(KeyboardInterrupt):
            query.run(epsilon=SURE)
    assert ledger.spent("walker") == PrivacyLoss(Fraction(SURE)), "all of it, before anything was asked"
    assert query.cost(epsilon=SURE) == PrivacyLoss(Fraction(SURE * 3, 4)), "the octaves are stored"
    answer = query.run(epsilon=SURE)
    assert answer.plan.found[0].limit == 8 and [n for _, n in answer.rows] == [2000] * 3
    assert ledger.spent("walker") == PrivacyLoss(Fraction(SURE * 7, 4))


def _killed(service: Service, plan: Plan, noisy: Sequence[NoisyRelease], charged: Charged, spent: PrivacyLoss) -> Plan:
    raise KeyboardInterrupt


def test_fresh_keeps_what_held_octaves_have_found(con: Connection, ledger: MemoryLedger) -> None:
    query = session(con).sql(COUNT)
    query.run(epsilon=SURE)
    query.run(epsilon=SURE, fresh=True)
    assert ledger.spent("walker") == PrivacyLoss(Fraction(SURE * 7, 4)), "octaves that are held are not bought again"


def test_a_cap_that_stands_because_nothing_was_seen_gives_way_to_finer_octaves(
    con: Connection, ledger: MemoryLedger
) -> None:
    capped = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1000) COUNT(*) AS n FROM walks"
    query = session(con).sql(capped)
    with nothing_seen() as epsilon:
        assert query.run(epsilon=epsilon).bounds[0].limit == 1000
    before = ledger.spent("walker")
    assert query.cost(epsilon=COARSE) == PrivacyLoss(), "as coarse as it was: nothing new would be seen"
    assert query.cost(epsilon=SURE) == PrivacyLoss(Fraction(SURE))
    answer = query.run(epsilon=SURE)
    assert answer.bounds[0].limit == 8 and answer.spent == PrivacyLoss(Fraction(SURE))
    assert ledger.spent("walker") == before + answer.spent
    assert query.cost(epsilon=SURE) == PrivacyLoss()


@pytest.mark.parametrize(
    ("sql", "help"),
    [
        ("SELECT COUNT(*) AS n FROM walks", "max_rows_per_unit: {search: true, at_most: 1000}"),
        (
            "SELECT SUM(steps) AS s FROM walks",
            "bounds: {search: true, within: [0, 100]}  and  max_rows_per_unit: {search: true, at_most: 1000}",
        ),
        ("SELECT AVG(CLIP(steps, AUTO)) AS m FROM walks", "bounds: {search: true, within: [0, 100]}"),
    ],
)
def test_the_repair_of_a_search_that_found_nothing_is_one_that_helps(con: Connection, sql: str, help: str) -> None:
    with pytest.raises(NothingFound) as refused, nothing_seen() as epsilon:
        session(con).sql(sql).run(epsilon=epsilon)
    (found,) = refused.value.diagnostics
    assert f"custodian: what holds where nothing is found:  {help}" in found.help


def test_a_check_accepts_with_a_warning_that_can_be_forbidden(walks: Path) -> None:
    found = check("SELECT COUNT(*), SUM(steps) FROM walks", walks / "walks.yaml", limits="search")
    assert [(f.code, f.severity) for f in found] == [("DP506", "warning")]
    assert found[0].message.startswith("the limit of COUNT(*) and of SUM(steps) is found when the query runs")
    assert {f.code for f in check("SELECT COUNT(*), SUM(steps) FROM walks", walks / "walks.yaml")} == {"DP201"}


def test_coverage_is_what_the_octaves_tell(con: Connection) -> None:
    answer = session(con).sql(COUNT).run(epsilon=SURE, coverage=True)
    assert answer.spent == PrivacyLoss(Fraction(SURE)) and len(answer.plan.releases) == 1
    assert not any("no limit takes anything away" in note for note in answer.notes)
    (found,) = answer.coverage
    assert [(cell.above, cell.number) for cell in found.cells] == [((True,), 0), ((False,), 1000)]


def test_one_group_is_one(tmp_path: Path) -> None:
    with connect(folder(tmp_path, data=FEW) / "walks.yaml", ledger=":memory:") as con:
        answer = session(con).sql("SELECT place, COUNT(DISTINCT id) AS n FROM walks GROUP BY place").run(epsilon=SURE)
        assert [found.limit for found in answer.plan.found] == [1]
        assert "at most 1 group per walker counted" in answer.notes


def test_whether_another_found_the_same_limit_is_told_to_nobody(walks: Path, ledger: MemoryLedger) -> None:
    """A cap that stands because nothing was found is a guess that costs next to nothing: no price may confirm it."""
    capped = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 8) COUNT(*) AS n FROM walks"
    with (
        connect(str(walks / "walks.yaml"), ledger=ledger, analyst="ana") as ana,
        connect(str(walks / "walks.yaml"), ledger=ledger, analyst="ben") as ben,
    ):
        others = ben.execute(COUNT, epsilon=SURE, limits="search")
        with nothing_seen() as epsilon:
            own = ana.execute(capped, epsilon=epsilon, limits="search")
        assert own.bounds[0].limit == others.bounds[0].limit == 8
        charge = session(ana).charge(session(ana).plan(capped, epsilon=SURE, limits="search"))
        counts = [answer.plan.releases[0].measured.node.components[0] for answer in (own, others)]
        places = [
            session(ana).service.account("ana").addresses(answer.plan).of(0).address(count)
            for answer, count in zip((own, others), counts, strict=True)
        ]
    assert charge.notes == ()
    assert counts[0] == counts[1] and places[0] != places[1]  # one count under one limit, of two searches


def test_a_declared_limit_does_not_guess_what_another_found(walks: Path, ledger: MemoryLedger) -> None:
    mean = "SELECT AVG(CLIP(hours, 0, 9)) AS m FROM walks"
    declared = mean.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 8)")
    with (
        connect(str(walks / "walks.yaml"), ledger=ledger, analyst="ana") as ana,
        connect(str(walks / "walks.yaml"), ledger=ledger, analyst="ben") as ben,
    ):
        assert ben.execute(mean, epsilon=SURE, limits="search").bounds[0].limit == 8
        plan = ana.plan(declared, epsilon=Fraction(SURE * 3, 4))
        assert ana.charge(plan).notes == ()
