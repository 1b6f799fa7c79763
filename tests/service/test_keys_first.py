"""Keys first: private groups in two releases, when it is done, what it costs, and what of it is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.api.connection import Connection
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.charge import Charged
from dpsql.core.release.noisy import NoisyRelease
from dpsql.diagnostics.errors import Rejected, UtilityWarning
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service import stages_of_a_run
from dpsql.service.planning import searches
from dpsql.service.service import Service
from dpsql.service.session import Session
from tests.support.built_once import build
from tests.support.opened_once import opened
from tests.support.planning import planned as static
from tests.support.planning import policy

POLICY = """\
version: 1
name: talk
database: talk.duckdb
search: auto
units: {person: {}}
ACCOUNTS
tables:
  said:
    unit: {column: id, of: person}
    LIMITS
    columns:
      id:   {type: bigint, nullable: false}
      word: {type: varchar}
      mood: {type: varchar, domain: [good, bad], nullable: false}
      loud: {type: integer, bounds: [0, 9], nullable: false}
"""
EPSILON = "budgets: {total: {epsilon: 100000000, delta: 0.001}}"
RHO = "privacy: {accountant: zcdp}\nbudgets: {total: {rho: 100000000, delta: 0.001}}"
DATA = """\
CREATE TABLE said AS
SELECT CAST(i % 400 AS BIGINT) AS id, nullif('w' || (i % 400 + i // 400) % 10, 'w9') AS word, 'good' AS mood,
  CAST(3 AS INTEGER) AS loud FROM range(3200) t(i)
UNION ALL SELECT 400, 'alone', 'bad', 3 FROM range(8)
"""
"""400 people say eight of ten words once, one of which is NULL, and one says a word of his own."""
WORDS = "SELECT word, COUNT(*) AS n FROM said GROUP BY word"
SURE: dict[str, Any] = {"epsilon": 400_000, "delta": "1e-6"}
ROWS = [(f"w{i}", 320) for i in range(9)] + [(None, 320)]


def folder(at: Path, accounts: str = EPSILON, limits: str = "", data: str = DATA) -> Path:
    at.mkdir(exist_ok=True)
    build(at / "talk.duckdb", data)
    text = POLICY.replace("ACCOUNTS\n", f"{accounts}\n").replace("    LIMITS\n", f"    {limits}\n" if limits else "")
    (at / "talk.yaml").write_text(text, encoding="utf-8")
    return at


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("talk"))


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger("talk")


@pytest.fixture
def con(talk: Path, ledger: MemoryLedger) -> Iterator[Connection]:
    with Connection(*opened(talk / "talk.yaml"), ledger=ledger) as found:
        yield found


def session(con: Connection, **settings: Any) -> Session:
    return Session(con.service, "*", QuerySettings(**settings))


def planned(con: Connection, sql: str = WORDS, **asked: Any) -> Plan:
    return session(con).sql(sql).plan(**{"epsilon": 1, "delta": "1e-6", **asked})


# --- when ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "first"),
    [
        ("", True),
        ("max_groups_per_unit: 5", True),
        ("max_groups_per_unit: 10, max_rows_per_group: 4", True),
        ("max_groups_per_unit: 1, max_rows_per_group: 4", False),
        ("max_groups_per_unit: 2, max_rows_per_group: 4", False),
        ("max_rows_per_unit: 2", False),
        ("max_rows_per_unit: 12", True),
    ],
)
def test_where_keys_need_fewer_units(tmp_path: Path, limits: str, first: bool) -> None:
    own = folder(tmp_path / "own", limits=limits.replace(", ", "\n    "))
    with Connection(*opened(own / "talk.yaml"), ledger=MemoryLedger("talk")) as con:
        assert (planned(con).keys_first is not None) is first


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("SELECT mood, COUNT(*) AS n FROM said GROUP BY mood", {}),
        ("SELECT COUNT(*) AS n FROM said", {}),
        (f"SELECT w.word, n, m FROM ({WORDS}) w JOIN (SELECT word, SUM(loud) AS m FROM said GROUP BY word) s "
         "ON w.word = s.word", {}),
        (WORDS, {"limits": "search"}),
        (WORDS, {"coverage": True}),
        # Whom the group belongs to, the rows of one person decide: he is in one.
        ("SELECT n, COUNT(*) AS c FROM (SELECT id, COUNT(*) AS n FROM said GROUP BY id) GROUP BY n", {}),
    ],
)  # fmt: skip
def test_where_it_is_not_done(con: Connection, sql: str, asked: dict[str, Any]) -> None:
    try:
        assert planned(con, sql, **asked).keys_first is None
    except Rejected as refused:
        assert {d.code for d in refused.diagnostics} <= {"DP211", "DP110", "DP406"}, refused


def test_declared_limits_and_other_policies_are_as_they_were(tmp_path: Path) -> None:
    own = folder(tmp_path / "own", limits="max_groups_per_unit: 5\n    max_rows_per_group: 4")
    with Connection(*opened(own / "talk.yaml"), ledger=MemoryLedger("talk")) as con:
        plan = planned(con, limits="declared")
        assert plan.keys_first is None and plan.releases[0].measured.threshold is not None
        allowed = replace(con.service.policy, search="allow")
    with Connection(allowed, con.service.engine, ledger=MemoryLedger("talk")) as other:
        assert planned(other).keys_first is None


# --- what it answers, and costs ---------------------------------------------------------------------------------------


def test_the_answer_and_its_price(con: Connection, ledger: MemoryLedger) -> None:
    query = session(con).sql(f"{WORDS} ORDER BY word NULLS LAST")
    price = query.cost(**SURE)
    answer = query.run(**SURE)
    assert list(answer.rows) == ROWS, "every word but the one of one person, and every row of it"
    assert answer.spent == price == ledger.spent("person")
    assert Fraction(399_999) < price.epsilon <= 400_000 and 0 < price.delta <= Fraction(1, 10**6)
    charges = [receipt.entry.charges for receipt in ledger.history()]
    assert len(charges) == 3 and not charges[1] and not charges[2], (
        "keys, octaves, numbers: charged before any is drawn"
    )
    assert any(note.startswith("groups of word beside the 10 shown are left out") for note in answer.notes)
    assert not any("groups of each person" in note for note in answer.notes), "no limit on groups"


def test_under_rho_too(tmp_path: Path) -> None:
    own, ledger = folder(tmp_path / "own", RHO), MemoryLedger("talk", "zcdp")
    with Connection(*opened(own / "talk.yaml"), ledger=ledger) as con:
        query = session(con).sql(f"{WORDS} ORDER BY word NULLS LAST")
        asked: dict[str, Any] = {"rho": 1_000_000, "delta": "1e-6"}
        (keys,) = query.plan(**asked).keys_first.releases  # type: ignore[union-attr]
        assert keys.measured.measurements[0].loss.rho == 437_500, "half of what the search leaves"
        answer = query.run(**asked)
        assert list(answer.rows) == ROWS and ledger.spent("person").rho == 1_000_000
        assert query.run(fresh=True, **asked).spent == PrivacyLoss(rho=437_500), "keys that were shown stay"


def test_keys_alone_get_all_of_it(con: Connection, ledger: MemoryLedger) -> None:
    query = session(con).sql("SELECT word FROM said GROUP BY word ORDER BY word NULLS LAST")
    plan = query.plan(**SURE)
    (release,) = plan.releases
    assert plan.finding is None and [c.kind for c in release.measured.node.components] == ["shared_units"]
    assert [word for (word,) in query.run(**SURE).rows] == [word for word, _ in ROWS]
    assert len(ledger.history()) == 1


def test_numbers_beside_each_other(con: Connection) -> None:
    query = session(con).sql(
        "SELECT word, COUNT(DISTINCT id) AS u, AVG(loud) AS a, SUM(loud) AS s, MEDIAN(loud) AS m FROM said "
        "GROUP BY word HAVING COUNT(*) > 100 ORDER BY word NULLS LAST"
    )
    rows = query.run(**SURE).rows
    assert [(word, u, round(a, 1), s) for word, u, a, s, _ in rows] == [(w, n, 3.0, 3 * n) for w, n in ROWS]


def test_a_key_that_no_text_of_sql_can_name_is_left_out(tmp_path: Path) -> None:
    data = """CREATE TABLE said AS SELECT CAST(i AS BIGINT) AS id, w AS word, 'good' AS mood, CAST(3 AS INTEGER) AS loud
      FROM range(300) t(i), (VALUES ('a' || chr(0)), (chr(0)), ('c')) v(w)"""
    own = folder(tmp_path / "own", data=data)
    with Connection(*opened(own / "talk.yaml"), ledger=MemoryLedger("talk")) as con:
        assert session(con).sql(WORDS).run(**SURE).rows == (("c", 300),)


def test_a_release_that_is_read_twice(con: Connection) -> None:
    sql = f"WITH w AS ({WORDS}) SELECT a.word, a.n + b.n AS m FROM w a JOIN w b ON a.word = b.word ORDER BY a.word"
    assert planned(con, sql).keys_first is not None
    assert list(session(con).sql(sql).run(**SURE).rows) == [(f"w{i}", 640) for i in range(9)]


def test_no_key_is_shown(con: Connection, ledger: MemoryLedger) -> None:
    """All of it is charged all the same."""
    query = session(con).sql(WORDS)
    with pytest.warns(UtilityWarning, match=r"shown from 52,\d+ units on"):
        answer = query.run(epsilon="0.001", delta="1e-9")
    assert answer.rows == () and answer.spent == ledger.spent("person")
    assert answer.spent.epsilon > Fraction("0.00099")
    assert query.cost(epsilon="0.001", delta="1e-9") == PrivacyLoss()


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_the_same_question_is_free_and_a_larger_epsilon_draws_new_keys(con: Connection) -> None:
    query = session(con).sql(f"{WORDS} ORDER BY word NULLS LAST")
    first = query.run(**SURE)
    again = query.run(**SURE)
    assert again.rows == first.rows and again.spent == PrivacyLoss() == query.cost(**SURE)
    assert query.cost(epsilon=200_000, delta="1e-6") == PrivacyLoss(), "what is more accurate will do"
    more = query.plan(epsilon=800_000, delta="1e-6")
    assert more.keys_first is not None, "keys and numbers are drawn anew"
    # Other numbers of the same groups have the keys already, and pay for themselves alone.
    other = session(con).sql("SELECT word, SUM(loud) AS s FROM said GROUP BY word")
    assert other.plan(**SURE).keys_first is None and Fraction(0) < other.cost(**SURE).epsilon < 300_000
    assert sorted(s for _, s in other.run(**SURE).rows) == [960] * 10


def test_killed_between_keys_and_numbers(
    con: Connection, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = session(con).sql(f"{WORDS} ORDER BY word NULLS LAST")
    price = query.cost(**SURE)
    with monkeypatch.context() as patched:
        patched.setattr(stages_of_a_run, "with_keys", _killed)
        with pytest.raises(KeyboardInterrupt):
            query.run(**SURE)
    assert ledger.spent("person") == price, "all of it, before anything was asked"
    less = query.cost(**SURE)
    assert Fraction(0) < less.epsilon < price.epsilon, "the keys are stored"
    assert list(query.run(**SURE).rows) == ROWS
    assert ledger.spent("person").epsilon == price.epsilon + less.epsilon


def _killed(service: Service, plan: Plan, noisy: Sequence[NoisyRelease], charged: Charged, spent: PrivacyLoss) -> Plan:
    raise KeyboardInterrupt


def test_numbers_that_cost_more_than_was_reserved_are_not_drawn(
    con: Connection, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = searches.with_keys

    def dearer(
        service: Service, plan: Plan, noisy: Sequence[NoisyRelease], charged: Charged, spent: PrivacyLoss
    ) -> Plan:
        keys = plan.keys_first
        assert keys is not None
        changed = replace(keys, settings=replace(keys.settings, epsilon=keys.settings.epsilon * 2))  # type: ignore[operator]
        return original(service, replace(plan, stages=(changed, *plan.stages[1:])), noisy, charged, spent)

    monkeypatch.setattr(stages_of_a_run, "with_keys", dearer)
    with pytest.raises(AssertionError, match="cost more than was reserved"):
        session(con).sql(WORDS).run(**SURE)
    assert len(ledger.history()) == 1


# --- what is said -----------------------------------------------------------------------------------------------------


def test_explained(con: Connection) -> None:
    query = session(con).sql(WORDS)
    text = query.explain(epsilon=1, delta="1e-6", engine_sql=True)
    assert "release 1 · unit person · shows the keys, shown from a noisy count of 46 on" in text
    assert "release 2 · unit person · search of the limit of COUNT(*)" in text
    assert "release 3 · unit person · limit 2^k from release 2 · keys: keys shown first\n" in text
    assert "COUNT(DISTINCT person), weighed by its groups" in text
    assert "note: half of the price shows the keys of the groups; the rest is spent on the numbers" in text
    assert "where a unit in K groups counts as 1/√K in each: less with more ε, none with a public list" in text
    assert "-- keys r0: two-level, truncated groups, weights per id" in text and "WHEN kk <= 2 THEN 724" in text
    found = json.loads(query.explain(epsilon=1, delta="1e-6", format="json"))
    assert found["keys_first"]["threshold"] == 46 and found["keys_first"]["name"] == "k0"
    assert found["keys_first"]["components"][0]["aggregate"] == "shared_units"
    assert found["cost"]["person"] == found["asked"]["person"]


def test_a_threshold_that_nobody_can_reach_is_refused() -> None:
    of = policy(
        "said:\n  unit: {column: id, of: person}\n"
        "  columns: {id: {type: bigint, bounds: [1, 30]}, word: {type: varchar}}",
        "search: auto\nunits: {person: {}}\n",
    )
    sql = "SELECT word, COUNT(*) AS n FROM said GROUP BY word"
    with pytest.raises(Rejected, match=r"shown from \d+ units on, and none can have over 30") as refused:
        static(sql, of)
    assert [d.code for d in refused.value.diagnostics] == ["DP305"]
    assert static(f"/* dpsql: anyway=on */ {sql}", of).keys_first is not None
    assert "use an ε of " in refused.value.diagnostics[0].help[0]


def test_a_declared_minimum_of_units(tmp_path: Path) -> None:
    own = folder(tmp_path / "own", f"{EPSILON}\ndefaults: {{min_units: 330}}")
    with Connection(*opened(own / "talk.yaml"), ledger=MemoryLedger("talk")) as con:
        (keys,) = planned(con, **SURE).keys_first.releases  # type: ignore[union-attr]
        assert keys.measured.shown_from == 330 and keys.measured.threshold.threshold == 330 * 1024  # type: ignore[union-attr]
        assert session(con).sql(WORDS).run(**SURE).rows == ()
