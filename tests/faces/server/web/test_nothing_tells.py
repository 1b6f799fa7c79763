"""What leaves a console or the API, and when, depends on texts, policy and released numbers alone."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb
import httpx

from dpsql.faces.server.statements import Login, StatementSettings
from tests.support.agent import Agent
from tests.support.canary import CANARY, MARKER, holds
from tests.support.served_shop import FINE, Standing, with_serve
from tests.support.served_web import ServedWeb, post, served_web, token_of
from tests.support.small_shop import COUNT, MEANS, PRICE, make_shop

SOME = (
    COUNT, "SELECT note, COUNT(*) FROM orders GROUP BY note", "SELECT MAX(amount) FROM orders",
    "SELECT CAST(note AS INTEGER), COUNT(*) FROM orders GROUP BY 1", "SHOW budget",
)  # fmt: skip


def nothing_that_leaves_holds_a_private_value(folder: Path, statements: Sequence[str], outcomes: int) -> None:
    """outcomes: how many different ones there are in the log, at least."""
    shop = with_serve(make_shop(folder / "shop", epsilon="1000"), f"{FINE}}}")
    with duckdb.connect(str(shop.folder / "shop.duckdb")) as connection:
        connection.execute(f"INSERT INTO orders VALUES ({CANARY}, 'Bonn', {CANARY}, '{CANARY}{MARKER}')")
    seen: list[bytes] = []
    with served_web(shop) as web:
        ana, carol, api = web.client("ana"), web.client("carol", custodian=True), web.api()
        for sql in statements:
            for path in ("/query/price", "/query/run"):
                seen.append(post(ana, path, sql=sql, epsilon="0.5", delta="1e-9").content)
            for name in ("query", "cost", "explain"):
                body = {"sql": sql, "settings": {"epsilon": "0.5", "delta": "1e-9"}}
                seen.append(api.post(f"/api/v1/{name}", json=body).content)
            seen.append(json.dumps(Agent(api).call("query", **body)).encode())
        seen += [ana.get(page).content for page in ("/", "/history", "/tables", "/connect", "/query")]
        seen += [
            carol.get(page).content
            for page in ("/", "/refusals", "/sessions", "/periods", "/ledger", "/policy", "/policy/report")
        ]
        seen += [api.get(f"/api/v1/{name}").content for name in ("budget", "tables", "openapi.json")]
        assert web.server.shop.spent() > 0 and len({e.outcome for e in web.log.events}) >= outcomes
        assert (
            web.refusals.by_code("shop")
            and not holds(repr(web.log.events))
            and not holds(repr(web.refusals.by_code("shop")))
        )
    assert len(seen) == 6 * len(statements) + 15 and not any(map(holds, seen))


def test_no_page_no_response_and_no_line_holds_a_private_value(tmp_path: Path) -> None:
    """More statements in tests/deep/faces/server/test_nothing_tells.py."""
    nothing_that_leaves_holds_a_private_value(tmp_path, SOME, 2)


def test_an_answer_leaves_at_its_moment_and_what_costs_nothing_at_once(tmp_path: Path) -> None:
    """The clock stands: what a run gives waits, on a page as in the API; prices, refusals and stored answers do not."""
    shop, clock = with_serve(make_shop(tmp_path / "shop"), "{answers_at: [1s, 5s], workers: 2}"), Standing()
    other = "SELECT COUNT(*) AS n FROM orders WHERE amount < 3"
    with served_web(shop, clock=clock) as web:
        ana, ben, api = web.client("ana"), web.client("ben"), web.api("ben")
        answers: dict[str, httpx.Response] = {}
        body = {"sql": other, "settings": {"epsilon": "0.1"}}

        def page() -> None:
            answers["page"] = post(ana, "/query/run", sql=COUNT, epsilon="0.1")

        def program() -> None:
            answers["api"] = api.post("/api/v1/query", json=body)

        first = threading.Thread(target=page, daemon=True)
        first.start()
        wait_for(web, 1)
        second = threading.Thread(target=program, daemon=True)
        second.start()
        wait_for(web, 2)
        assert "Pay ε 0.1" in post(ben, "/query/price", sql=COUNT, epsilon="0.1").text
        assert "DP103" in post(ben, "/query/price", sql="SELECT nothing_such FROM orders").text
        assert ben.get("/").status_code == 200 and web.client("carol", custodian=True).get("/").status_code == 200
        assert not answers
        lines = [e for e in web.log.events if e.price]
        assert not lines  # nothing is noted of what has not left
        web.server.do(clock_goes_on(clock))
        first.join(120)
        second.join(120)
        assert "Spent ε 0.1" in answers["page"].text and answers["api"].json()["spent"]["epsilon"] == 0.1
        assert [e.price for e in web.log.events if e.price] == ["ε 0.1"] * 2
    assert shop.spent() == 2 * PRICE


def clock_goes_on(clock: Standing):  # type: ignore[no-untyped-def]
    async def go() -> None:
        clock.goes_on.set()

    return go


def wait_for(web: ServedWeb, count: int) -> None:
    """Until so many statements have run and wait for their moment: what still runs when the clock goes on is late."""
    runs = web.server.gateway.pool._runs
    while sum(r.seat is not None and r.ask.id in r.seat.link.replied for r in list(runs.values())) < count:  # type: ignore[attr-defined]
        time.sleep(0.01)


def test_ceilings_and_defaults_of_a_login_hold_here(tmp_path: Path) -> None:
    from dpsql.faces.server.statements import Ceilings

    shop = with_serve(make_shop(tmp_path / "shop"), f"{FINE}}}")
    dora = Login(
        "dora", "dora", defaults=StatementSettings(epsilon="0.1"), ceilings=Ceilings(per_query="0.2", per_day="0.3")
    )
    with served_web(shop, dora=dora) as web:
        browser = web.client("dora")
        assert "at most ε 0.2 in one query" in browser.get("/").text
        assert "Pay ε 0.1 and run" in post(browser, "/query/price", sql=COUNT).text
        assert "DP413" in post(browser, "/query/run", sql=COUNT, epsilon="0.25").text
        for number in range(4):
            sql = f"SELECT COUNT(*) AS n FROM orders WHERE amount < {number}"
            said = post(browser, "/query/run", sql=sql).text
            assert ("Spent ε 0.1" in said) == (number < 3) and ("DP413" in said) == (number == 3)
        program = web.api("dora").post("/api/v1/query", json={"sql": MEANS})
        assert program.status_code == 403 and program.json()["code"] == "DP413"
    assert shop.spent() == 3 * PRICE


def test_so_many_statements_of_one_session_at_a_time(tmp_path: Path) -> None:
    shop = with_serve(make_shop(tmp_path / "shop"), "{answers_at: [1s], workers: 4}")
    clock = Standing()
    with served_web(shop, clock=clock) as web:
        ana = web.client("ana")
        token = token_of(ana.get("/query"))

        def run(number: int) -> httpx.Response:
            sql = f"SELECT COUNT(*) AS n FROM orders WHERE amount < {number}"
            data = {"token": token, "sql": sql, "epsilon": "0.1"}
            return httpx.post(f"{web.urls[0]}query/run", data=data, cookies=dict(ana.cookies), timeout=120)

        threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(4)]
        for thread in threads:
            thread.start()
        wait_for(web, 4)
        assert "DP414" in run(5).text
        web.server.do(clock_goes_on(clock))
        for thread in threads:
            thread.join(120)
    assert shop.spent() == 4 * PRICE


def test_what_is_not_foreseen_is_one_constant_error(tmp_path: Path) -> None:
    with served_web(with_serve(make_shop(tmp_path / "shop"), f"{FINE}}}")) as web:
        ana, api, pool = web.client("ana"), web.api(), web.server.gateway.pool
        token = token_of(ana.get("/query"))
        api.get("/api/v1/budget")

        async def fail(*_: object) -> None:
            raise KeyError(f"a value of a private row: {CANARY}")

        pool.look = fail  # type: ignore[method-assign,assignment]
        page = ana.post("/query/run", data={"token": token, "sql": COUNT, "epsilon": "0.1"})
        program = api.post("/api/v1/query", json={"sql": COUNT, "settings": {"epsilon": 0.1}})
        assert page.status_code == program.status_code == 500 and "dpsql itself failed" in page.text
        assert program.json()["code"] == "DP904" and program.json()["spent"] is None
        assert not holds(page.content) and not holds(program.content)
