"""What fails in the engine counts, stops whoever has a name, and nothing else does either."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

import dpsql
from dpsql.core.engine import RawTable, engine_failed
from dpsql.core.ledger import failures
from dpsql.core.ledger.failures import look_at
from dpsql.diagnostics.errors import BudgetExceeded, EngineError
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.synthetic import SyntheticEngine
from dpsql.planner.stages.answering_rows import AnsweringRows
from dpsql.policy.load import load_policy
from dpsql.service.made_up.service import made_up
from dpsql.service.open_data import open_data
from dpsql.service.service import Service
from dpsql.service.session import Session
from dpsql.service.stages_of_a_run import StagesOfARun
from tests.support.small_shop import COUNT, MEANS, Shop, make_shop

BATCH = ["SELECT city, COUNT(*) AS n FROM orders GROUP BY city", "SELECT SUM(amount) AS s FROM orders"]
PUBLIC = "SELECT city FROM cities ORDER BY city"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = make_shop(tmp_path / "shop")
    made.policy.write_text(made.policy.read_text() + "failures: {most: 2, in_total: 3}\n")
    return made


class Broken:
    """An engine whose private tables fail while it is `on`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on, self.error = True, RuntimeError("could not convert 4711")
        fetch = DuckDBEngine.fetch

        def broken(engine: DuckDBEngine, sql: str) -> RawTable:
            if self.on and '"orders"' in sql:
                raise self.error
            return fetch(engine, sql)

        monkeypatch.setattr(DuckDBEngine, "fetch", broken)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Broken:
    return Broken(monkeypatch)


def fails(con: dpsql.Connection, sql: str = COUNT, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(EngineError, match="DP901"):
            con.execute(sql, epsilon="0.1", fresh=True)


def refused(con: dpsql.Connection, sql: str = COUNT) -> str:
    before = str(con.budget)
    with pytest.raises(BudgetExceeded) as refusal:
        con.execute(sql, epsilon="0.1", fresh=True)
    (found,) = refusal.value.diagnostics
    assert (
        str(con.budget) == before
        and found.code == "DP416"
        and found.notes == ("nothing was run and nothing was spent",)
    )
    assert "dpsql budget POLICY --failures --clear" in found.help[0] and "4711" not in str(refusal.value)
    return found.message


def test_a_named_analyst_is_refused_after_so_many_and_others_are_not(shop: Shop, engine: Broken) -> None:
    with dpsql.connect(shop.policy, analyst="ana") as ana, dpsql.connect(shop.policy, analyst="ben") as ben:
        fails(ana, times=2)
        assert refused(ana).startswith("2 statements of account 'ana' failed")
        assert shop.failures() == [("ana", "failed")] * 2
        engine.on = False
        refused(ana)
        assert ben.execute(COUNT, epsilon="0.1").rows
        engine.on = True
        fails(ben)
        assert "3 statements of all accounts together" in refused(ben)


def test_it_survives_a_restart_and_ends_when_a_custodian_looked(shop: Shop, engine: Broken) -> None:
    with dpsql.connect(shop.policy, analyst="ana") as con:
        fails(con, times=2)
    engine.on = False
    with dpsql.connect(shop.policy, analyst="ana") as con:
        refused(con)
        with shop.ledger() as ledger:
            look_at(ledger, "zoe", "memory")
        assert con.execute(COUNT, epsilon="0.1").rows


@pytest.mark.parametrize(("days", "stops"), [(29, True), (31, False)])
def test_they_count_for_the_time_that_the_policy_says(
    shop: Shop, engine: Broken, monkeypatch: pytest.MonkeyPatch, days: int, stops: bool
) -> None:
    then = dt.datetime.now(dt.UTC) - dt.timedelta(days=days)
    with dpsql.connect(shop.policy, analyst="ana") as con:
        monkeypatch.setattr(failures, "_now", then.isoformat)
        fails(con, times=2)
        engine.on = False
        if stops:
            refused(con)
        else:
            assert con.execute(COUNT, epsilon="0.1").rows


def test_what_needs_no_private_row_goes_on(shop: Shop, engine: Broken) -> None:
    engine.on = False
    with dpsql.connect(shop.policy, analyst="ana") as con:
        paid = con.execute(MEANS, epsilon="0.1").rows
        engine.on = True
        fails(con, times=2)
        assert con.execute(MEANS, epsilon="0.1").rows == paid
        assert con.execute(PUBLIC).rows
        assert "cost" in con.sql(COUNT).explain(epsilon="0.1")
        assert con.sql(COUNT).cost(epsilon="0.1")
        refused(con)
    with Service(*open_data(shop.policy, None, None, None, None)) as service:  # as a server looks before it runs
        session = service.session("ana")
        with pytest.raises(BudgetExceeded, match="DP416"):
            session.looked_up(session.plan("SELECT COUNT(*) FROM orders WHERE amount > 3", epsilon="0.1"))


def test_without_a_name_it_is_told_and_not_refused(shop: Shop, engine: Broken) -> None:
    with dpsql.connect(shop.policy) as con:
        fails(con, times=2)
        engine.on = False
        told = [n for n in con.execute(COUNT, epsilon="0.1").notes if "failed in the engine" in n]
        assert len(told) == 1 and "--failures --clear" in told[0]
        assert not [n for n in con.execute(COUNT, epsilon="0.1").notes if "failed in the engine" in n]  # it is stored
    with dpsql.connect(shop.policy, analyst="ana") as con:
        assert not [n for n in con.execute(MEANS, epsilon="0.1").notes if "failed in the engine" in n]


def test_a_batch_and_a_part_of_a_summary_fail_once(shop: Shop, engine: Broken) -> None:
    with dpsql.connect(shop.policy, analyst="ana") as con:
        with pytest.raises(EngineError):
            con.batch(BATCH).run(epsilon="0.1")
        assert shop.failures() == [("ana", "failed")]
        with pytest.raises(EngineError):
            con.execute("CREATE DP SUMMARY s ON orders (city) WITH (k = 1, epsilon = 0.1)")
        assert shop.failures() == [("ana", "failed")] * 2
        with pytest.raises(BudgetExceeded, match="DP416"):
            con.batch(BATCH).run(epsilon="0.1")
        with pytest.raises(BudgetExceeded, match="DP416"):
            con.execute("CREATE DP SUMMARY s ON orders (city) WITH (k = 1, epsilon = 0.1)")


def test_a_search_and_its_query_fail_once(shop: Shop, engine: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.on, drawn = False, StagesOfARun._noisy
    calls = list[int]()

    def second_fails(*arguments: object) -> object:
        calls.append(1)
        engine.on = len(calls) == 2
        return drawn(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(StagesOfARun, "_noisy", second_fails)
    with dpsql.connect(shop.policy, analyst="ana") as con, pytest.raises(EngineError):
        con.execute(COUNT, epsilon="1", limits="search")
    assert len(calls) == 2 and shop.failures() == [("ana", "failed")]


def test_a_stop_by_the_caller_is_no_failure(shop: Shop, engine: Broken) -> None:
    engine.error = KeyboardInterrupt()  # type: ignore[assignment]
    with dpsql.connect(shop.policy, analyst="ana") as con:
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                con.execute(COUNT, epsilon="0.1", fresh=True)
    with dpsql.connect(shop.policy, analyst="ana") as con:
        assert con.budget.spent.epsilon == shop.spent() > 0
    assert shop.failures() == [] and not list(shop.folder.glob("state/*runs-*"))


def test_what_fails_uncharged_is_no_failure(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor what fails on noisy numbers and public tables: of these nothing is private."""

    def fail(*_: object) -> object:
        raise EngineError([])

    with dpsql.connect(shop.policy, analyst="ana") as con:
        monkeypatch.setattr(AnsweringRows, "handed_on", fail)
        with pytest.raises(EngineError):
            con.execute(COUNT, epsilon="0.1")
        with pytest.raises(EngineError):
            con.execute(PUBLIC)
    assert shop.failures() == [] and shop.spent() > 0


def test_made_up_rows_do_not_count(shop: Shop, engine: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    service, _ = made_up(load_policy(shop.policy))
    fetch = SyntheticEngine.fetch

    def broken(made: SyntheticEngine, sql: str) -> RawTable:
        if engine.on:
            raise engine_failed()
        return fetch(made, sql)

    monkeypatch.setattr(SyntheticEngine, "fetch", broken)
    with service:
        session: Session = service.session("ana")
        for _ in range(4):
            with pytest.raises(EngineError):
                session.run(session.plan(COUNT, epsilon="0.1"), fresh=True)
        engine.on = False
        assert session.run(session.plan(COUNT, epsilon="0.1")).rows
    assert not (shop.folder / "shop.ledger.sqlite").exists()
