"""Statements of two logins: columns, prices, refusals, speech, previews."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import gc
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsql.api.connection import connect
from dpsql.core.ir.types import BIGINT, DOUBLE, VARCHAR
from dpsql.faces.server import packed_rows
from dpsql.faces.server.account_relations import OF_CUSTODIANS, RELATIONS
from dpsql.faces.server.metrics import Spent
from dpsql.faces.server.previews import WHY_EMPTY
from dpsql.faces.server.statements import Ceilings, ChargedRun, DescribedStatement, Login, Refused, StatementSettings
from dpsql.faces.server.workers import answering
from dpsql.faces.server.workers.cut import TOO_MUCH
from dpsql.faces.server.workers.worker_messages import Ask, Reply
from dpsql.service.preparing.prepare import prepare
from tests.support.served_shop import ANA, BEN, FINE, TENTH, Served, Standing, inside, login, served, with_serve
from tests.support.small_shop import COUNT, MEANS, PRICE, Shop, make_shop

BI = Login("board", "board", kind="bi", defaults=StatementSettings(epsilon="0.1", delta="1e-9"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    shop = make_shop(tmp_path_factory.mktemp("shop"), epsilon="100")
    with_serve(shop, f"{FINE}, rows: 5}}")
    with served(shop, inside(shop)) as server:
        yield server


@pytest.fixture
def shop(server: Served) -> Shop:
    return server.shop


def an_ask(sql: str, epsilon: str) -> Ask:
    return Ask("one", "run", "ana", sql, (), StatementSettings(epsilon=epsilon), Ceilings(), dt.datetime.now(dt.UTC))


def codes(refusal: pytest.ExceptionInfo[Refused]) -> list[str]:
    return [d.code for d in refusal.value.diagnostics]


def test_a_query_is_paid_once_and_given_again(server: Served, shop: Shop) -> None:
    before = shop.spent()
    first = server.ask(MEANS)
    assert [c for c, _ in first.columns] == ["city", "twice"] and len(first.rows) == 3
    assert first.spent == "ε 0.1" and first.entry and first.plan and first.notices[0].startswith("charged ε 0.1; left")
    again = server.ask(MEANS)
    assert again.rows == first.rows and (again.spent, again.entry, again.plan) == ("", "", first.plan)
    assert shop.spent() == before + PRICE


def test_custodians_read_of_all_and_analysts_of_themselves(tmp_path: Path) -> None:
    shop = with_serve(make_shop(tmp_path / "shop"), f"{FINE}}}")
    with served(shop, inside(shop)) as server:
        read_by_roles(server)


def read_by_roles(server: Served) -> None:
    server.ask("SELECT COUNT(*) AS n FROM orders WHERE amount < 71", login=BEN)
    server.ask("SELECT COUNT(*) AS n FROM orders WHERE amount < 72")
    carol = Login("carol", "carol", "custodian")
    for name, columns in RELATIONS.items():
        answer = server.ask(f"SELECT * FROM dpsql.{name}", login=carol)
        assert dict(answer.columns) == dict(columns) and not answer.spent
        if name in OF_CUSTODIANS:
            with pytest.raises(Refused) as refusal:
                server.ask(f"SELECT 1 AS x FROM (SELECT * FROM DPSQL.{name.upper()}) AS y")
            assert codes(refusal) == ["DP102"]
    accounts = {row[1]: row[2] for row in server.ask("SELECT * FROM dpsql.accounts", login=carol).rows}
    assert accounts[None] == pytest.approx(accounts["ana"] + accounts["ben"]) and accounts["ben"] >= 0.1
    spending = server.ask("SELECT * FROM dpsql.spending_of_all", login=carol).rows
    assert {row[1] for row in spending} == {None, "ana", "ben"}
    assert max(row[3] for row in spending if row[1] == "ben") == accounts["ben"]
    own = server.ask("SELECT * FROM dpsql.spending", login=BEN).rows
    assert [row[2] for row in own] == sorted(row[3] for row in spending if row[1] == "ben")


def test_what_is_paid_is_given_while_every_worker_is_taken(tmp_path: Path) -> None:
    """The clock stands, so no answer of a run leaves, and no worker is free: nothing is told by their delay."""
    shop, clock = make_shop(tmp_path / "shop"), Standing()
    with connect(shop.policy, analyst="ana") as con:
        paid = con.execute(COUNT, epsilon="0.1").fetchall()
    with served(shop, inside(shop), clock) as server:

        async def both() -> list[object]:
            async def one(sql: str, settings: StatementSettings = TENTH) -> object:
                described = await server.gateway.describe(ANA, sql, settings)
                return await server.gateway.run(ANA, described, (), settings, f"{sql} {settings}")

            run = asyncio.create_task(one(MEANS))
            try:
                while server.gateway.pool._free:
                    await asyncio.sleep(0.01)
                given = await asyncio.wait_for(one(COUNT), 60)
                explained = await asyncio.wait_for(one(f"EXPLAIN {MEANS}"), 60)
                budget = await asyncio.wait_for(one("SHOW budget"), 60)
                with pytest.raises(Refused):
                    await asyncio.wait_for(one(COUNT, StatementSettings(epsilon="10000000")), 60)
                (seated,) = server.gateway.pool._runs.values()
                while seated.seat is None or seated.ask.id not in seated.seat.link.replied:  # type: ignore[attr-defined]
                    await asyncio.sleep(0.01)
                assert not run.done()
                # It is ready, and nobody is told: not by its price, nor by being given it on another connection.
                priced = await asyncio.wait_for(one(f"EXPLAIN (COST) {MEANS}"), 60)
                assert priced.rows[0][0] == "ε 0.1"  # type: ignore[attr-defined]
                again = asyncio.create_task(one(MEANS, replace(TENTH, notices=False)))
                while len(server.gateway.pool._runs) < 2:
                    await asyncio.sleep(0.01)
                assert not again.done()
                (waiting,) = (r for r in server.gateway.pool._runs.values() if r.seat is None)
                await server.gateway.stop(waiting.ask.id)
                with pytest.raises(Refused):
                    await again
            finally:
                clock.goes_on.set()
            return [given, explained, budget, await run]

        given, _, _, run = server.do(both)
    assert shop.spent() == 2 * PRICE
    assert [tuple(row) for row in given.rows] == paid and len(run.rows) == 3  # type: ignore[attr-defined]


def test_a_statement_that_is_stopped_while_it_is_looked_at_is_not_charged(server: Served, shop: Shop) -> None:
    before = shop.spent()
    pool = server.gateway.pool
    look = pool.look

    async def stopped_meanwhile(ask: Ask) -> Reply:
        found = await look(ask)
        await server.gateway.stop(ask.id)
        return found

    pool.look = stopped_meanwhile  # type: ignore[method-assign]
    try:
        with pytest.raises(Refused) as refusal:
            server.ask("SELECT COUNT(*) AS n FROM orders WHERE amount < 3")
    finally:
        pool.look = look  # type: ignore[method-assign]
    assert refusal.value.sqlstate == "57014" and shop.spent() == before


def test_prepared_tables_are_served(tmp_path: Path) -> None:
    """The policy that a worker reads by them has another hash than the file's."""
    shop = make_shop(tmp_path / "shop")
    head, _, rest = shop.policy.read_text().partition("  forever:\n")
    text = head.replace("max_rows_per_unit: 5\n", "max_rows_per_unit: 5\n    prepared: true\n")
    shop.policy.write_text(text + rest[rest.index("  cities:\n") :])
    prepare(shop.policy)
    with served(with_serve(shop, f"{FINE}}}"), inside(shop)) as server:
        answer = server.ask("SELECT COUNT(*) AS n FROM orders WHERE amount < 50")
        assert any("prepared" in notice for notice in answer.notices), answer.notices


def test_settings_are_those_of_the_statement_and_stay_with_it(server: Served) -> None:
    sql = "SELECT COUNT(*) AS n FROM orders WHERE amount < 17"
    with pytest.raises(Refused) as refusal:
        server.ask(sql, settings=StatementSettings())
    assert codes(refusal) == ["DP401"]
    quiet = server.ask(sql, settings=replace(TENTH, notices=False, intervals=True))
    assert quiet.notices == () and quiet.columns == (("n", BIGINT), ("n_low", DOUBLE), ("n_high", DOUBLE))
    ((n, low, high),) = quiet.rows
    assert low < n and high is None  # a limit cuts it
    with pytest.raises(Refused):
        server.ask(sql + "0", settings=StatementSettings())


@pytest.mark.parametrize(
    "sql, names",
    [
        ("SELECT 1", ("1",)),
        ("SELECT city, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY city",
         ("city", "n", "s", "n_low", "n_high", "s_low", "s_high")),
        ("SELECT city, UPPER(city) AS u, n > 3 AS many, n "
         "FROM (SELECT city, COUNT(*) AS n FROM orders GROUP BY city) AS t",
         ("city", "u", "many", "n", "n_low", "n_high")),
    ],
)  # fmt: skip
def test_ends_of_intervals_leave_every_column_at_its_place(server: Served, sql: str, names: tuple[str, ...]) -> None:
    """A tool that reads by number would show the end of one number as the next one; what is no number has none."""
    found = server.ask(sql, settings=replace(TENTH, intervals=True))
    plain = server.ask(sql, settings=TENTH)
    assert tuple(name for name, _ in found.columns) == names
    assert [row[: len(plain.columns)] for row in found.rows] == [tuple(row) for row in plain.rows]
    assert {len(row) for row in found.rows} == {len(names)}


def test_parameters_have_types_before_they_have_values(server: Served) -> None:
    sql = "SELECT COUNT(*) AS n FROM orders WHERE amount < $1 AND city = $2 LIMIT $3"
    described = server.do(lambda: server.gateway.describe(ANA, sql, TENTH))
    assert described.parameters == (DOUBLE, VARCHAR, BIGINT) and described.columns == (("n", BIGINT),)
    assert len(server.ask(sql, 40.5, "Bonn", 1).rows) == 1
    wide = "SELECT 2 * $1 AS x"
    assert server.ask(wide, 5).rows == [(10,)]
    with pytest.raises(Refused) as refusal:
        server.ask(wide, 10**12)
    assert codes(refusal) == ["DP013"] and refusal.value.sqlstate == "0A000"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT nothing FROM orders", "DP103"),
        ("SELECT * FROM orders", "DP110"),
        ("SELECT 1 FROM nobody", "DP102"),
        ("SELECT SUM(customer) FROM orders", "DP201"),
        ("EXPLAIN ANALYZE SELECT COUNT(*) FROM orders", "DP906"),
        ("EXPLAIN (BUFFERS) SELECT COUNT(*) FROM orders", "DP903"),
        ("EXPLAIN SELECT nothing FROM orders", "DP103"),
        ("SELECT nothing FROM dpsql.budget", "DP103"),
        ("DELETE FROM orders", "DP012"),
    ],
)
def test_what_the_text_decides_is_refused_without_a_worker(server: Served, sql: str, code: str) -> None:
    """In the text's own places."""
    looked: list[object] = []
    look = server.gateway.pool.look
    server.gateway.pool.look = looked.append  # type: ignore[method-assign,assignment]
    try:
        with pytest.raises(Refused) as refusal:
            server.ask(sql)
    finally:
        server.gateway.pool.look = look  # type: ignore[method-assign]
    first = refusal.value.diagnostics[0]
    assert first.code == code and looked == []
    assert first.source is None or first.source.text == sql
    if "nothing" in sql:
        assert first.span is not None and sql[first.span.start : first.span.end] == "nothing"


def test_the_account_is_the_logins(server: Served) -> None:
    """What one has paid is in his history and nobody else's; the other one pays for what he receives."""
    sql = "SELECT COUNT(*) AS n FROM orders WHERE amount < 23"
    mine = server.ask(sql)
    history = "SELECT statement, epsilon FROM dpsql.history WHERE statement LIKE '%< 23%'"
    assert server.ask(history).rows == [(sql, 0.1)]
    assert server.ask(history, login=BEN).rows == []
    theirs = server.ask(sql, login=BEN)
    assert theirs.rows == mine.rows and theirs.spent == "ε 0.1"
    assert server.ask(history, login=BEN).rows == [(sql, 0.1)]


@pytest.mark.parametrize(
    "sql",
    [
        "SET analyst = 'ben'; SELECT 1",
        "SELECT COUNT(*) AS n FROM orders /* dpsql: analyst=ben */ WHERE amount < 29",
        "SELECT * FROM ben.history",
        "SELECT * FROM dpsql.history AS h WHERE h.analyst = 'ben'",
    ],
)
def test_no_statement_names_another_account(server: Served, sql: str) -> None:
    before = server.ask("SELECT COUNT(*) AS n FROM dpsql.history", login=BEN).rows
    with contextlib.suppress(Refused):
        server.ask(sql)
    assert server.ask("SELECT COUNT(*) AS n FROM dpsql.history", login=BEN).rows == before


def test_budgets_and_tables_are_relations(server: Served) -> None:
    (row,) = server.ask("SHOW budget").rows
    for shown in ("SHOW history", "show dpsql . budget;", "SHOW dpsql.tables"):
        assert server.do(lambda text=shown: server.gateway.describe(ANA, text, TENTH)).command == "SHOW"
    assert row[0] == "customer" and server.ask('SELECT * FROM "dpsql"."budget"').rows == [row]
    left = server.ask("SELECT b.epsilon_left + b.epsilon_spent AS x FROM dpsql.budget AS b WHERE unit = $1", "customer")
    assert left.rows[0][0] <= 100  # others have spent of the total, too
    tables = server.ask("SELECT table_name, column_name FROM dpsql.tables WHERE declared LIKE '%bounds%'").rows
    assert tables == [("orders", "amount")]
    assert server.ask("SELECT COUNT(*) AS n FROM dpsql.history", login=Login("new", "new")).rows == [(0,)]
    said = "/* dpsql: epsilon=0.1 */"  # as dbt writes it before all that it asks
    assert server.ask(f"{said}\nSELECT COUNT(*) AS n FROM dpsql.history", login=Login("new", "new")).rows == [(0,)]


def test_explain_says_what_a_run_would_cost(server: Served, shop: Shop) -> None:
    before = shop.spent()
    sql = "SELECT COUNT(*) AS n FROM orders WHERE amount < 31"
    lines = [line for (line,) in server.ask(f"EXPLAIN {sql}").rows]
    assert any("cost: ε 0.1" in line for line in lines)
    ((text,),) = server.ask(f"EXPLAIN (FORMAT JSON) {sql}").rows
    assert '"releases"' in text
    ((price, column, error, left, times),) = server.ask(f"EXPLAIN (COST) {sql}").rows
    assert (price, column) == ("ε 0.1", "n") and error > 0 and left.startswith("ε ") and 0 < times <= 1000
    assert shop.spent() == before
    server.ask(sql)
    ((price, _, _, _, times),) = server.ask(f"EXPLAIN (COST) {sql}").rows
    assert (price, times) == ("ε 0", None)


def test_what_could_show_no_group_runs_if_that_is_said(tmp_path: Path) -> None:
    """By a setting, for the texts of cursors, copies and prepared statements come without their comments."""
    shop = make_shop(tmp_path / "shop")
    few = shop.policy.read_text().replace("customer: {type: bigint}", "customer: {type: bigint, bounds: [0, 9]}")
    with_serve(shop, f"{FINE}}}").policy.write_text(few)
    settings = StatementSettings(epsilon="0.1", delta="1e-9")
    sql = "SELECT note, COUNT(*) AS n FROM orders GROUP BY note"
    with served(shop, inside(shop)) as server:
        for text in (sql, f"EXPLAIN {sql}", f"/* dpsql: anyway=off */ {sql}"):
            with pytest.raises(Refused) as refusal:
                server.ask(text, settings=settings)
            assert codes(refusal) == ["DP305"] and not shop.spent()
        assert server.ask(f"EXPLAIN {sql}", settings=replace(settings, anyway=True)).rows
        for text, said in ((sql, True), (f"/* dpsql: anyway=on */ {sql}", False)):
            assert server.ask(text, settings=replace(settings, anyway=said)).rows == []
    assert 0 < shop.spent() <= PRICE  # once


def test_a_tools_preview_of_rows_has_columns_and_a_warning(server: Served, shop: Shop) -> None:
    before = shop.spent()
    for sql in ("SELECT * FROM orders", "SELECT city, amount FROM orders LIMIT 100"):
        with pytest.raises(Refused):
            server.ask(sql)
        preview = server.ask(sql, login=BI)
        assert [d.code for d in preview.warnings] in (["DP110"], ["DP112"], ["DP110"] * 2)
        assert {d.severity for d in preview.warnings} == {"warning"} and preview.columns[-1][1] in (VARCHAR, DOUBLE)
        assert [[value for value in row if value is not None] for row in preview.rows] == [[WHY_EMPTY]]
    for sql in ("SELECT * FROM orders LIMIT 0", "SELECT * FROM orders WHERE 1 = 0", "SELECT amount FROM orders",
                "SELECT * FROM (SELECT * FROM orders) t WHERE amount > 1 AND FALSE"):  # fmt: skip
        assert list(server.ask(sql, login=BI).rows) == []
    with pytest.raises(Refused):
        server.ask("SELECT SUM(customer) FROM orders", login=BI)
    assert shop.spent() == before
    paid = server.ask("SELECT COUNT(*) AS n FROM orders WHERE amount < 37", login=BI, settings=StatementSettings())
    assert paid.spent == "ε 0.1"


def test_the_custodian_is_told_what_every_account_has_spent(server: Served, shop: Shop) -> None:
    server.ask("SELECT COUNT(*) AS n FROM orders WHERE amount < 97", login=login("zoe"))
    spent = server.do(server.gateway.spent)
    assert spent is not None
    assert Spent("customer", "zoe", 0.1, 0.0, 0.0, "shop") in spent
    total, budget, left = (s for s in spent if not s.account)
    assert total.epsilon == float(shop.spent()) >= 0.1 and (budget.what, budget.epsilon) == ("budget", 100.0)
    assert (left.what, left.epsilon) == ("left", float(100 - shop.spent()))


def test_without_workers_that_run_the_custodian_is_told_nothing(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is how /healthz learns of it."""
    monkeypatch.setattr(server.gateway.pool, "_missing", server.gateway.pool.size)
    assert server.do(server.gateway.spent) is None


def test_a_ceiling_per_day_holds_over_statements(server: Served) -> None:
    poor = login("poor", per_day="0.15")
    server.ask("SELECT COUNT(*) AS n FROM orders WHERE amount < 41", login=poor)
    with pytest.raises(Refused) as refusal:
        server.ask("SELECT COUNT(*) AS n FROM orders WHERE amount < 43", login=poor)
    assert codes(refusal) == ["DP413"]
    assert "0.05" in refusal.value.diagnostics[0].help[0]
    server.ask("SELECT COUNT(*) AS n FROM orders WHERE amount < 41", login=poor)  # what he has costs nothing
    server.ask(
        "SELECT COUNT(*) AS n FROM orders WHERE amount < 43", login=poor, settings=StatementSettings(epsilon="0.05")
    )


def test_the_same_ceiling_holds_for_statements_at_one_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that each fit, and do not fit together, neither of which goes on before both have looked: one is refused."""
    shop = with_serve(make_shop(tmp_path / "shop"), f"{FINE}, workers: 2}}")
    twin = login("twin", per_hour="0.15")
    both_looked = threading.Barrier(2, timeout=120)
    look = answering.ceilings_now

    def together(*of: Any) -> Any:
        found = look(*of)
        if all_run.is_set():
            both_looked.wait()
        return found

    monkeypatch.setattr(answering, "ceilings_now", together)
    all_run = threading.Event()
    with served(shop, inside(shop)) as server:
        pool = server.gateway.pool
        pool._at_once["twin"] = 1  # each in a round of its own, so in a worker of its own
        run = pool.run
        here, all_here = list[str](), asyncio.Event()

        async def both_run(ask: Ask, entry: asyncio.Future[str] | None = None) -> Reply:
            here.append(ask.id)
            if len(here) == 2:
                all_run.set()
                all_here.set()
            await all_here.wait()
            return await run(ask, entry)

        pool.run = both_run  # type: ignore[method-assign]

        async def both() -> list[object]:
            async def one(limit: int) -> object:
                sql = f"SELECT COUNT(*) AS n FROM orders WHERE amount < {limit}"
                described = await server.gateway.describe(twin, sql, TENTH)
                return await server.gateway.run(twin, described, (), TENTH, f"twin{limit}")

            return await asyncio.gather(one(47), one(53), return_exceptions=True)

        found = server.do(both)
    assert sorted(type(x).__name__ for x in found) == ["Answer", "Refused"]
    assert shop.spent() == PRICE


def test_more_rows_than_the_server_gives_are_paid_and_stored(server: Served, shop: Shop) -> None:
    sql = "SELECT city, amount > 50 AS dear, COUNT(*) AS n FROM orders GROUP BY city, dear HAVING COUNT(*) > -1000000"
    before, entries = shop.spent(), shop.entries()
    with pytest.raises(Refused) as refusal:
        server.ask(sql)
    assert codes(refusal) == ["DP415"]
    paid = shop.spent()
    assert paid == before + PRICE
    assert (server.charge_of(refusal.value)[0], shop.entries()) == ("ε 0.1", entries + 1)
    assert len(server.ask(sql + " ORDER BY 1, 2 LIMIT 5").rows) == 5
    with pytest.raises(Refused) as refusal:
        server.ask(sql)  # stored by now
    assert refusal.value.charge is None and "charged" not in refusal.value.diagnostics[0].notes[0]
    assert shop.spent() == paid


def test_more_bytes_than_the_server_gives_are_paid_and_stored(
    server: Served, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT city, COUNT(*) AS n FROM orders WHERE amount < 12.5 GROUP BY city"
    before = shop.spent()
    with monkeypatch.context() as patched, pytest.raises(Refused) as refusal:
        patched.setattr(packed_rows, "MOST_BYTES", 20)
        server.ask(sql)
    assert codes(refusal) == ["DP415"] and "bytes" in refusal.value.diagnostics[0].message
    assert shop.spent() == before + PRICE and server.charge_of(refusal.value)[0] == "ε 0.1"
    monkeypatch.setattr(packed_rows, "FEW", 1)
    found = server.ask(sql)
    assert isinstance(found.rows, packed_rows.PackedRows) and len(list(found.rows)) == len(found.rows) > 1
    assert shop.spent() == before + PRICE


def test_who_holds_many_bytes_is_given_no_further_answer(server: Served, shop: Shop) -> None:
    before = shop.spent()
    held = packed_rows.Pieces([(1, b"x" * (packed_rows.MOST_OF_ACCOUNT + 1))], "ana")
    with pytest.raises(Refused) as refusal:
        server.ask("SELECT COUNT(*) AS n FROM orders WHERE amount < 13.5")
    assert codes(refusal) == ["DP414"] and refusal.value.charge is None and shop.spent() == before
    del held
    server.ask("SELECT COUNT(*) AS n FROM orders WHERE amount < 13.5")


@pytest.mark.parametrize("is_paid", [False, True])
def test_statements_that_were_asked_at_one_time_hold_no_more_together_than_they_may(
    server: Served, shop: Shop, monkeypatch: pytest.MonkeyPatch, is_paid: bool
) -> None:
    """When each was asked there was room for it; when its answer comes there is none."""
    monkeypatch.setattr(packed_rows, "FEW", 0)
    monkeypatch.setattr(packed_rows, "MOST_OF_ACCOUNT", 100)
    sql = "SELECT city, COUNT(*) AS n FROM orders WHERE amount < {} GROUP BY city"
    texts = [sql.format(f"{is_paid:d}7.{n}5") for n in range(4)]
    for text in [] if is_paid else texts:
        assert len(server.ask(text).rows) == 3
    gc.collect()
    pool, before = server.gateway.pool, shop.spent()
    asked, all_asked = list[str](), asyncio.Event()
    look = pool.look

    async def together(ask: Ask) -> Reply:
        asked.append(ask.id)
        if len(asked) == len(texts):
            all_asked.set()
        await all_asked.wait()
        return await look(ask)

    monkeypatch.setattr(pool, "look", together)

    async def all_of_them() -> list[object]:
        async def one(text: str) -> object:
            described = await server.gateway.describe(ANA, text, TENTH)
            return await server.gateway.run(ANA, described, (), TENTH, f"held {text}")

        return await asyncio.gather(*map(one, texts), return_exceptions=True)

    found = server.do(all_of_them)
    held = [answer.rows.pieces.held for answer in found if not isinstance(answer, Refused)]  # type: ignore[attr-defined]
    refused = [refusal for refusal in found if isinstance(refusal, Refused)]
    assert held and sum(held) <= 100 and {d.code for refusal in refused for d in refusal.diagnostics} == {"DP414"}
    assert len(held) + len(refused) == len(texts) and shop.spent() == before + is_paid * len(texts) * PRICE
    for refusal in refused:
        assert (refusal.charge is not None) == is_paid and ("stored" in refusal.diagnostics[0].notes[0]) == is_paid
        assert not is_paid or server.charge_of(refusal)[0] == "ε 0.1"


def test_more_rows_of_public_keys_than_the_server_gives_are_refused_unpaid(server: Served, shop: Shop) -> None:
    sql = "SELECT city, amount > 51 AS dear, COUNT(*) AS n FROM orders GROUP BY city, dear"
    before = shop.spent()
    for more in ("", " ORDER BY n DESC", " LIMIT 6"):
        with pytest.raises(Refused) as refusal:
            server.ask(sql + more)
        assert codes(refusal) == ["DP415"] and refusal.value.charge is None
    assert shop.spent() == before
    assert len(server.ask(sql + " ORDER BY 1, 2 LIMIT 5").rows) == 5


def test_a_run_that_the_budget_refuses_has_no_charge(server: Served) -> None:
    with pytest.raises(Refused) as refusal:
        server.do(lambda: server.gateway._paid(an_ask(COUNT, "1000"), DescribedStatement(COUNT)))
    assert codes(refusal) == ["DP403"] and server.charge_of(refusal.value) == ChargedRun()


def test_the_budget_refuses_at_once(server: Served) -> None:
    with pytest.raises(Refused) as refusal:
        server.ask(COUNT, settings=StatementSettings(epsilon="1000"))
    assert codes(refusal) == ["DP403"]


def test_a_login_is_held_to_so_many_statements_an_hour_and_to_an_epsilon_that_is_worth_a_seat(tmp_path: Path) -> None:
    """Of what is charged: what was paid for is given again, and prices are told."""
    shop = with_serve(make_shop(tmp_path / "shop"), f"{FINE}}}")
    ana = replace(ANA, ceilings=Ceilings(statements=2, least_epsilon="0.05"))
    one, two, three = (f"SELECT COUNT(*) AS n FROM orders WHERE amount < {n}" for n in (31, 32, 33))
    with served(shop, inside(shop)) as server:
        with pytest.raises(Refused) as refusal:
            server.ask(one, login=ana, settings=StatementSettings(epsilon="0.0000001"))
        assert codes(refusal) == ["DP413"] and shop.spent() == 0
        for sql in (one, two):
            server.ask(sql, login=ana)
        assert not server.ask(one, login=ana).spent and server.ask(f"EXPLAIN (COST) {three}", login=ana).rows
        with pytest.raises(Refused) as refusal:
            server.ask(three, login=ana)
        assert codes(refusal) == ["DP413"] and shop.spent() == 2 * PRICE
        server.ask(three, login=BEN)


def test_charts_that_are_asked_at_once_are_charged_once_and_each_is_its_own(tmp_path: Path) -> None:
    """Two that measure the same groups of the same rows, and one that is asked twice, wait for each other's moment."""
    shop = with_serve(make_shop(tmp_path / "shop"), "{answers_at: [1s, 60s]}")
    charts = [f"SELECT COUNT(*) AS n FROM orders WHERE amount < {n}" for n in (41, 42, 43, 43)]
    with served(shop, inside(shop)) as server:

        async def all_of_them() -> list[Any]:
            async def one(number: int, sql: str) -> object:
                described = await server.gateway.describe(ANA, sql, TENTH)
                return await server.gateway.run(ANA, described, (), TENTH, f"chart {number}")

            return await asyncio.gather(*(one(*chart) for chart in enumerate(charts)))

        given = server.do(all_of_them)
    assert [answer.spent for answer in given[:3]].count("ε 0.1") >= 2 and shop.spent() == 3 * PRICE
    assert given[2].rows == given[3].rows and len({answer.entry for answer in given if answer.entry}) == 3


def test_what_computes_for_long_is_stopped_and_an_equal_look_at_little_is_not(tmp_path: Path) -> None:
    shop = with_serve(make_shop(tmp_path / "shop"), f"{FINE}}}")
    long = "SELECT COUNT(*) AS n FROM " + ", ".join(
        f"(VALUES {', '.join(f'({n})' for n in range(200))}) AS {name}(x)" for name in "abcdef"
    )
    with served(shop, inside(shop)) as server:
        with pytest.raises(Refused) as refusal:
            server.ask(long)
        assert refusal.value.diagnostics[0] == TOO_MUCH and shop.spent() == 0
        assert server.ask("SELECT COUNT(*) AS n FROM (VALUES (1), (2)) AS a(x)").rows == [(2,)]
