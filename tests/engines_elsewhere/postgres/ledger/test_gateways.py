"""Sessions, the command line and stored answers over one ledger in PostgreSQL: a shop with several gateways."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

import dpsql
from dpsql.core.ledger.postgres import PostgresLedger
from dpsql.faces.cli.main import main
from tests.engines_elsewhere.postgres.ledger.conftest import Database
from tests.support.small_shop import COUNT, MEANS, PRICE, Nursery, Shop, answers, make_shop

pytestmark = pytest.mark.processes


@dataclass(frozen=True)
class Branch(Shop):
    """A gateway of the shop: the same data and ledger, and a head of its own."""

    database: Database

    def ledger(self, timeout: float = 600) -> PostgresLedger:  # type: ignore[override]
        """The ledger, opened anew: its chain is verified."""
        return PostgresLedger.open(
            self.database.url, self.folder / "state" / "head.json", "shop", "approx_dp", timeout=timeout
        )


def opened(database: Database, folder: Path, epsilon: str = "1000000") -> Branch:
    shop = make_shop(folder, epsilon)
    shop.policy.write_text(shop.policy.read_text().replace("ledger: shop.ledger.sqlite", f"ledger: {database.url}"))
    return Branch(folder, database)


@pytest.fixture
def shop(database: Database, tmp_path: Path) -> Branch:
    return opened(database, tmp_path / "one")


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    found = Nursery(tmp_path / "nursery")
    yield found
    found.close()


PATIENT = """
from dpsql.core.ledger import postgres
from dpsql.answers.stored.store.postgres import PostgresAnswers
from dpsql.core.ledger.chain.head import Head
from dpsql.core.ledger.postgres import PostgresLedger
PostgresLedger.open.__func__.__kwdefaults__["timeout"] = 600
PostgresAnswers.__init__.__kwdefaults__["patience"] = 3600
"""


def lines(outputs: list[Path]) -> list[str]:
    return [line for output in outputs for line in output.read_text().splitlines()]


def errors(outputs: list[Path]) -> str:
    return "".join(o.with_suffix(".txt.err").read_text() for o in outputs)


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_two_gateways_share_budget_and_answers(database: Database, tmp_path: Path) -> None:
    one, two = opened(database, tmp_path / "one", "0.35"), opened(database, tmp_path / "two", "0.35")
    with dpsql.connect(one.policy) as first, dpsql.connect(two.policy) as second:
        assert first.budget.spent == second.budget.spent
        bought = first.execute(MEANS, epsilon="0.1")
        given = second.execute(MEANS, epsilon="0.1")
        assert given.rows == bought.rows and given.spent.epsilon == 0
        second.execute(COUNT, epsilon="0.2")
        assert first.budget.spent.epsilon == Fraction(3, 10)
        with pytest.raises(dpsql.BudgetExceeded):
            first.execute(COUNT, epsilon="0.1", fresh=True)
        first.execute(COUNT, epsilon="0.05", fresh=True)
    assert one.entries() == 3 and one.spent() == Fraction(35, 100)
    assert not (one.folder / "shop.ledger.sqlite").exists()


def test_the_ledger_may_be_named_by_the_caller(
    database: Database, shop: Branch, capsys: pytest.CaptureFixture[str]
) -> None:
    named = shop.policy.read_text().replace(f"ledger: {database.url}", "ledger: elsewhere.sqlite")
    shop.policy.write_text(named)
    with dpsql.connect(shop.policy, ledger=database.url) as con:
        con.execute(COUNT, epsilon="0.1")
    command = [str(shop.policy), "--ledger", database.url]
    assert main(["budget", *command, "--format", "json", "--history"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ledger"] == database.url and found["queries"] == 1 and len(found["history"]) == 1
    assert main(["query", str(shop.policy), COUNT, "--epsilon", "0.1", "--ledger", database.url]) == 0
    assert main(["budget", *command]) == 0
    assert f"(1 query charged)  shop, approx_dp, {database.url}" in capsys.readouterr().out
    assert main(["explain", str(shop.policy), COUNT, "--epsilon", "0.1", "--ledger", database.url]) == 0
    assert not (shop.folder / "elsewhere.sqlite").exists()


def test_a_gateway_that_is_new_is_accepted_by_the_command_line(
    database: Database, shop: Branch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with dpsql.connect(shop.policy) as con:
        con.execute(COUNT, epsilon="0.1")
    new = opened(database, tmp_path / "new")
    assert main(["budget", str(new.policy)]) == 2
    assert "this gateway has not seen it before" in capsys.readouterr().err
    assert main(["budget", str(new.policy), "--accept-head"]) == 0
    shown = capsys.readouterr()
    assert f"{database.url} is accepted as it stands" in shown.err and "ε 0.1" in shown.out
    new.serves()


def test_looking_makes_no_ledger(database: Database, shop: Branch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["budget", str(shop.policy)]) == 0
    assert main(["policy", "show", str(shop.policy)]) == 0
    assert f"ledger       {database.url}" in capsys.readouterr().out
    with dpsql.connect(shop.policy) as con:
        con.sql(COUNT).explain(epsilon="0.1")
        assert con.sql(COUNT).cost(epsilon="0.1").epsilon == PRICE
    assert database.run("SELECT count(*) FROM pg_namespace WHERE nspname = 'dpsql'") == [(0,)]


def test_private_data_is_read_after_the_receipt_and_never_before(shop: Branch) -> None:
    with shop.watched() as (con, events):
        con.execute(MEANS, epsilon="0.1")
        assert events[events.index("reserve") :] == ["reserve", "private"]
        assert set(events[: events.index("reserve")]) <= {"public"}


def test_a_server_that_is_gone_is_a_refusal_and_nothing_runs(database: Database, shop: Branch) -> None:
    with shop.watched(shop.ledger(timeout=1)) as (con, events):
        con.execute(COUNT, epsilon="0.1")
        del events[:]
        database.cluster.run(f"ALTER DATABASE {database.name} ALLOW_CONNECTIONS false")
        cut = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'dpsql'"
        database.cluster.run(cut)
        with pytest.raises(dpsql.CannotOpen) as refusal:
            con.execute(MEANS, epsilon="0.1")
        assert "nothing was run and nothing was spent" in str(refusal.value) and "private" not in events
        database.cluster.run(f"ALTER DATABASE {database.name} ALLOW_CONNECTIONS true")
        assert len(con.execute(MEANS, epsilon="0.1").rows) == 3
    assert shop.spent() == 2 * PRICE


def test_the_data_may_be_on_the_same_server_and_not_in_the_same_database(database: Database, tmp_path: Path) -> None:
    policy, data = tmp_path / "shop.yaml", f"{database.name}_data"
    database.cluster.run(f"CREATE DATABASE {data} TEMPLATE template0 LOCALE 'C.UTF-8'")
    try:
        database.cluster.run(
            "CREATE TABLE orders AS SELECT i AS customer FROM generate_series(1, 500) AS g(i)", database=data
        )
        policy.write_text(
            f"version: 1\nname: shop\ndatabase: {database.cluster.url(data)}\nledger: {database.url}\n"
            "tables: {orders: {unit: {column: customer}, max_rows_per_unit: 1, columns: {customer: {type: integer}}}}\n"
            "budgets: {total: {epsilon: 5}}\n"
        )
        with dpsql.connect(policy) as con:
            assert abs(int(con.execute("SELECT COUNT(*) FROM orders", epsilon=1).rows[0][0]) - 500) < 100
            assert con.budget.spent.epsilon == 1
        with (
            dpsql.connect(policy, ledger=database.cluster.url(data)) as con,
            pytest.raises(dpsql.CannotOpen, match="this is the database that holds the data"),
        ):
            con.execute("SELECT COUNT(*) FROM orders", epsilon=1)
    finally:
        database.cluster.run(f"DROP DATABASE {data} WITH (FORCE)")


# --- processes --------------------------------------------------------------------------------------------------------


def test_gateways_in_processes_get_exactly_as_many_answers_as_the_budget_holds(
    nursery: Nursery, database: Database, tmp_path: Path
) -> None:
    shop = opened(database, tmp_path / "one", epsilon="1.05")
    _, outputs = nursery.start(shop, 4, sql=MEANS, copies=5, prepare=PATIENT)
    assert nursery.wait() == [0] * 5, errors(outputs)
    assert answers(outputs) == [PRICE] * 10 and lines(outputs).count("refused DP403") == 10
    assert shop.entries() == 10 and shop.spent() == 1


def test_the_same_question_at_one_time_is_paid_for_once(nursery: Nursery, shop: Branch) -> None:
    _, outputs = nursery.start(shop, 2, sql=MEANS, copies=6, fresh=False, prepare=PATIENT)
    assert nursery.wait() == [0] * 6, errors(outputs)
    assert sorted(answers(outputs)) == [0] * 11 + [PRICE]
    assert len({line.split(maxsplit=1)[1] for line in lines(outputs)}) == 1
    assert shop.entries() == 1


def test_who_has_lost_his_name_meanwhile_pays_like_everybody(nursery: Nursery, shop: Branch) -> None:
    """The connection that held it dies while the run goes on: two draws, and two entries that pay for them."""
    cut = (
        PATIENT
        + """
import psycopg
def cut():
    with psycopg.connect(URL, autocommit=True) as connection:
        held = "FROM pg_locks WHERE locktype = 'advisory' AND granted"
        connection.execute(f"SELECT pg_terminate_backend(pid, 60000) {held}")
    open(job["policy"] + ".cut", "w").close()
def wait():
    while not os.path.exists(job["policy"] + ".done"): time.sleep(0.01)
wrap(dpsql.service.pipeline.AnalystAccount, "charge", before=cut)
wrap(PostgresAnswers, "add", before=wait)
"""
    )
    prepare = f"URL = {shop.database.url!r}\n{cut}"
    _, first = nursery.start(shop, 1, sql=MEANS, fresh=False, prepare=prepare)
    while not Path(f"{shop.policy}.cut").exists():
        pass
    with dpsql.connect(shop.policy) as con:
        second = con.execute(MEANS, epsilon="0.1")
    Path(f"{shop.policy}.done").touch()
    assert nursery.wait() == [0], errors(first)
    assert second.spent.epsilon == PRICE and answers(first) == [PRICE]
    assert shop.entries() == 2 and shop.spent() == 2 * PRICE


# Where the victim kills itself; how many entries there are then, and whether asking again is free.
STEPS = {
    "before it looks": ("wrap(PostgresAnswers, 'find', before=die)", 0, False),
    "while it waits its turn": ("wrap(PostgresAnswers, 'alone', before=die)", 0, False),
    "holding the names": ("wrap(dpsql.service.pipeline.AnalystAccount, 'charge', before=die)", 0, False),
    "with the lock": ("wrap(postgres.StoredEntries, 'take_turn', after=die)", 0, False),
    "after the entry is added": ("wrap(postgres.StoredEntries, 'add', after=die)", 0, False),
    "after the commit, before the head": (
        "wrap(postgres.StoredEntries, 'add', after=lambda: wrap(Head, 'advance', before=die))", 1, False,
    ),
    "after the reservation": ("wrap(PostgresLedger, 'reserve', after=die)", 1, False),
    "after the fetch, before the noise": ("wrap(dpsql.core.release.noisy, '_fetch', after=die)", 1, False),
    "before the answer is stored": ("wrap(PostgresAnswers, 'add', before=die)", 1, False),
    "after the answer is stored": ("wrap(PostgresAnswers, 'add', after=die)", 1, True),
    "letting go": ("wrap(AnsweringRows, 'handed_on', after=die)", 1, True),
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step(nursery: Nursery, shop: Branch, step: str) -> None:
    prepare, entries, stored = STEPS[step]
    _, outputs = nursery.start(shop, 1, sql=MEANS, prepare=PATIENT + prepare, fresh=False)
    assert nursery.wait() == [-signal.SIGKILL], errors(outputs)
    assert answers(outputs) == [] and shop.entries() == entries
    _, outputs = nursery.start(shop, 2, sql=MEANS, prepare=PATIENT, fresh=False)
    assert nursery.wait() == [0], errors(outputs)
    assert answers(outputs) == ([0, 0] if stored else [PRICE, 0])
    assert shop.entries() == entries + (not stored)
