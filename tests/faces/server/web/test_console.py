"""The consoles' pages: what they show, to whom, and what a form may do."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest

from dpsql.faces.server.statements import Refused
from tests.support.served_shop import TENTH, login
from tests.support.served_web import ServedWeb, post, served_web, token_of
from tests.support.small_shop import COUNT, ENDLESS, MEANS, PRICE, board, make_shop

PAGES = ("/", "/query", "/history", "/tables", "/connect", "/codes/DP201")
CUSTODIANS = ("/", "/refusals", "/sessions", "/periods", "/ledger", "/policy")


def test_pages_ask_who_is_there(web: ServedWeb) -> None:
    for custodian, pages in ((False, PAGES), (True, CUSTODIANS)):
        nobody = web.client(custodian=custodian)
        for page in pages:
            answer = nobody.get(page)
            assert (answer.status_code, answer.headers["location"]) == (303, "/login"), page
    carol, ana = web.client("carol", custodian=True), web.client("ana")
    assert [carol.get(page).status_code for page in CUSTODIANS] == [200] * len(CUSTODIANS)
    assert [ana.get(page).status_code for page in PAGES] == [200] * len(PAGES)


def test_what_is_left_is_rounded_down_and_what_is_too_dear_has_no_button(tmp_path: Path) -> None:
    with served_web(make_shop(tmp_path / "shop", epsilon="0.30014225")) as web:
        ana = web.client("ana")
        priced = post(ana, "/query/price", sql=COUNT, epsilon="0.1")
        assert "<dd>ε 0.300142 δ" in priced.text and "Pay ε 0.1 and run" in priced.text
        dear = post(ana, "/query/price", sql=COUNT, epsilon="0.5").text
        assert "Pay ε" not in dear and "Write at most 0.300142 into the field ε." in dear
        private = "SELECT note, COUNT(*) AS n FROM orders GROUP BY note"
        deep = post(ana, "/query/price", sql=private, epsilon="0.1", delta="1e-5").text
        assert "Pay ε" not in deep and "Too little δ is left" in deep and "into the field δ" in deep
        assert web.server.shop.spent() == 0


def test_a_price_is_looked_at_then_paid_then_free(web: ServedWeb) -> None:
    ana, shop = web.client("ana"), web.server.shop
    before = shop.spent()
    priced = post(ana, "/query/price", sql=MEANS, epsilon="0.1")
    assert priced.status_code == 200 and "Pay ε 0.1 and run" in priced.text and shop.spent() == before
    assert "scan orders" in priced.text and '<li class="bias">' in priced.text
    assert "What other prices would give" in post(ana, "/query/price", sql=COUNT, epsilon="0.1").text
    paid = post(ana, "/query/run", sql=MEANS, epsilon="0.1")
    assert "Spent ε 0.1" in paid.text and "Bonn" in paid.text and "± " in paid.text and shop.spent() == before + PRICE
    assert "; left ε " in paid.text and "charged ε" not in paid.text and '<li class="bias">' in paid.text
    again = post(ana, "/query/run", sql=MEANS, epsilon="0.1")
    assert "Spent nothing" in again.text and shop.spent() == before + PRICE
    assert "Run it, for nothing" in post(ana, "/query/price", sql=MEANS, epsilon="0.1").text
    history = ana.get("/history").text
    assert "2 * SUM(amount)" in history and "ε 0.1" in history
    line = [e for e in web.log.events if e.statement == MEANS][-2]
    assert (line.what, line.name, line.price, line.outcome) == ("statement", "ana", "ε 0.1", "ok") and line.entry


def test_a_batch_is_looked_at_then_paid_and_shown_one_table_after_another(web: ServedWeb) -> None:
    ana, shop = web.client("ana"), web.server.shop
    before = shop.spent()
    priced = post(ana, "/query/price", sql=board(3), epsilon="0.1").text
    assert "Pay ε 0.1 and run" in priced and "batch of 2 queries" in priced and "at most ±" in priced
    assert "Say how much to spend" in post(ana, "/query/price", sql=board(3)).text and shop.spent() == before
    paid = post(ana, "/query/run", sql=board(3), epsilon="0.1").text
    assert "Spent ε 0.1" in paid and "Answer 1" in paid and "Answer 2" in paid and "Bonn" in paid
    assert "The rows of answer 2" in paid and paid.count('class="width"') == 5
    assert shop.spent() == before + PRICE
    assert "Run it, for nothing" in post(ana, "/query/price", sql=board(3), epsilon="0.1").text


def test_a_summary_is_looked_at_then_paid_then_dropped(web: ServedWeb) -> None:
    maker, shop = web.client("maker"), web.server.shop
    made = "CREATE DP SUMMARY cities ON orders (city) WITH (epsilon = 0.2)"
    entries = shop.entries()
    priced = post(maker, "/query/price", sql=made).text
    assert "Pay ε 0.2 and run" in priced and "<code>city</code>" in priced and "σ of a cell" in priced
    assert "What other prices would give" not in priced and shop.entries() == entries
    assert "DP903" in post(web.client("ana"), "/query/price", sql=made).text
    assert "Spent ε 0.2" in post(maker, "/query/run", sql=made).text and shop.entries() > entries
    entries = shop.entries()
    asked = post(maker, "/query/price", sql="DROP DP SUMMARY cities").text
    assert "Drop it" in asked and "Nobody is charged" in asked and shop.entries() == entries
    assert "cities" in post(maker, "/query/price", sql="SHOW dpsql.summaries").text.partition("caption")[2]
    assert "Spent nothing" in post(maker, "/query/run", sql="DROP DP SUMMARY cities").text
    assert shop.entries() == entries + 1


def test_a_refusal_has_its_place_and_its_repair(web: ServedWeb) -> None:
    sql = "SELECT city,\r\n  SUM(note) AS s FROM orders GROUP BY city"
    page = post(web.client("ana"), "/query/price", sql=sql, epsilon="0.1").text
    assert '<span class="caret">' in page and "nothing was spent" in page and "/codes/DP" in page
    assert "  SUM(note) AS s FROM orders GROUP BY city\n" in page  # the line alone, as it was typed
    asked = post(web.client("ana"), "/query/price", sql=COUNT, epsilon="").text
    assert "Say how much to spend" in asked and 'class="main pay"' not in asked
    unsaid = post(web.client("ana"), "/query/run", sql=COUNT, epsilon="").text
    assert "DP401" in unsaid and "write 0.5 into the field ε" in unsaid
    for wrong in ("-1", "nan", "1e999999", "ε"):
        assert "DP406" in post(web.client("ana"), "/query/run", sql=COUNT, epsilon=wrong).text


def test_what_costs_nothing_is_shown_at_once(web: ServedWeb) -> None:
    assert "epsilon_left" in post(web.client("ana"), "/query/price", sql="SHOW budget").text
    assert "scan orders" in post(web.client("ana"), "/query/price", sql=f"EXPLAIN {MEANS}", epsilon="1").text
    assert (
        "DP013"
        in post(web.client("ana"), "/query/price", sql="SELECT COUNT(*) AS n FROM orders WHERE amount < $1").text
    )


def test_text_is_text(web: ServedWeb) -> None:
    evil = "<script>alert(1)</script>\"'><b onclick=x>\u202e\0</textarea>"
    page = post(web.client("ana"), "/query/price", sql=evil, epsilon=evil, delta=evil).text
    assert "<script" not in page and "<b " not in page and "\u202e" not in page and "\0" not in page
    assert page.count("</textarea>") == 1 and "&lt;script&gt;" in page
    carol = web.client("carol", custodian=True).get("/refusals").text
    assert "<script" not in carol


@pytest.mark.parametrize("token", ["", "x", "ä"])
def test_a_form_without_its_token_changes_nothing(web: ServedWeb, token: str) -> None:
    ana, before = web.client("ana"), web.server.shop.spent()
    sql = "SELECT COUNT(*) AS n FROM orders WHERE amount < 41"
    for path in ("/query/run", "/query/price", "/logout"):
        assert ana.post(path, data={"token": token, "sql": sql, "epsilon": "0.1"}).status_code == 403
    of_ben = token_of(web.client("ben").get("/query"))
    assert ana.post("/query/run", data={"token": of_ben, "sql": sql, "epsilon": "0.1"}).status_code == 403
    assert web.server.shop.spent() == before and ana.get("/").status_code == 200


def test_a_form_of_another_site_changes_nothing(web: ServedWeb) -> None:
    ana, before = web.client("ana"), web.server.shop.spent()
    data = {"token": token_of(ana.get("/query")), "sql": "SELECT COUNT(*) AS n FROM orders", "epsilon": "0.2"}
    elsewhere = (
        {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"sec-fetch-site": "none"},
        {"origin": "https://evil.example"}, {"origin": "null"}, {"origin": web.urls[1].rstrip("/")},
        {"origin": f"https://127.0.0.1:{web.port}"},
    )  # fmt: skip
    for headers in elsewhere:
        assert ana.post("/query/run", data=data, headers=headers).status_code == 403, headers
    login_form = {"name": "ana", "password": "correct horse battery"}
    assert web.client().post("/login", data=login_form, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert web.server.shop.spent() == before
    here = {"origin": web.urls[0].rstrip("/"), "sec-fetch-site": "same-origin"}
    assert ana.post("/query/price", data=data, headers=here).status_code == 200


def test_each_sees_his_own(web: ServedWeb) -> None:
    sql = "SELECT COUNT(*) AS of_ana FROM orders WHERE amount < 77"
    post(web.client("ana"), "/query/run", sql=sql, epsilon="0.1")
    ben = web.client("ben")
    for page in ("/", "/history", "/history?page=2&account=ana&name=ana", "/query?analyst=ana"):
        assert "of_ana" not in ben.get(page).text
    assert "Nothing was spent yet" in ben.get("/").text
    assert "of_ana" in web.client("ana").get("/history").text
    for relation in ("accounts", "spending_of_all", "ledger", "report"):
        page = post(ben, "/query/price", sql=f"SELECT * FROM dpsql.{relation}").text
        assert "DP102" in page and "for logins of the role custodian" in page
        with pytest.raises(Refused):
            web.server.ask(f"SELECT * FROM dpsql.{relation}")
    cookies = dict(ben.cookies)
    other = httpx.Client(base_url=web.urls[1], cookies=cookies)
    assert other.get("/").status_code == 303  # a session of one console is none at the other
    other.close()


def test_a_custodian_sees_all_accounts_refusals_and_the_ledger(web: ServedWeb) -> None:
    post(web.client("ben"), "/query/run", sql="SELECT COUNT(*) AS n FROM orders WHERE amount < 7", epsilon="0.3")
    post(web.client("ben"), "/query/price", sql="SELECT nothing_such FROM orders")
    carol = web.client("carol", custodian=True)
    accounts = carol.get("/").text
    assert " ben</span>" in accounts and "all together" in accounts and "0.3" in accounts
    refusals = carol.get("/refusals").text
    assert "SELECT nothing_such FROM orders" in refusals and "from ben" in refusals and "DP103" in refusals
    ledger = carol.get("/ledger").text
    assert "shop.ledger.sqlite" in ledger and "head.json" in ledger and "in order" in ledger
    assert web.server.gateway.policy.hash[:12] in carol.get("/policy").text


def test_a_custodian_reads_the_report_on_the_policy(web: ServedWeb) -> None:
    carol = web.client("carol", custodian=True)
    assert 'href="/policy/report"' in carol.get("/policy").text
    before, answer = web.server.shop.spent(), carol.get("/policy/report")
    assert "<h2>Promises to sign</h2>" in answer.text and "who sees answers" in answer.text
    assert web.server.gateway.policy.hash[:16] in answer.text and web.server.shop.spent() == before
    rules = answer.headers.get_list("content-security-policy")
    assert len(rules) == 1 and rules[0].startswith("sandbox; default-src 'none'; style-src 'unsafe-inline'; ")
    assert "script" not in rules[0] and "<script" not in answer.text and answer.headers["x-frame-options"] == "DENY"
    assert web.client(custodian=True).get("/policy/report").status_code == 303
    assert web.client("ana").get("/policy/report").status_code == 404


def test_a_custodian_stops_a_statement_and_ends_a_session(web: ServedWeb) -> None:
    ben, carol = web.client("ben"), web.client("carol", custodian=True)
    answers: list[httpx.Response] = []
    pool = web.server.gateway.pool
    held = threading.Event()
    seats: list[object] = []

    async def take() -> None:
        seats.append(pool._free.pop())

    web.server.do(take)  # no worker is free, so the statement waits
    try:
        sql = "SELECT COUNT(*) AS held FROM orders WHERE amount < 33"
        asking = threading.Thread(
            daemon=True, target=lambda: (answers.append(post(ben, "/query/run", sql=sql, epsilon="0.1")), held.set())
        )
        asking.start()
        while "AS held" not in (page := carol.get("/sessions").text):
            pass
        assert "Stop" in page
        key = next(v.key for v in web.web._console.sessions.visitors() if "AS held" in v.running)
        said = post(carol, "/sessions", "/sessions", door="1", key=key, do="stop").text
        assert ">stopped<" in said
        asking.join(120)
    finally:
        pool._free.append(seats[0])  # type: ignore[arg-type]
    assert "was stopped" in answers[0].text and ben.get("/").status_code == 200
    ended = post(carol, "/sessions", "/sessions", door="1", key=key, do="end").text
    assert ">ended<" in ended and "SIGHUP" in ended and "start the server" not in ended
    assert ben.get("/").status_code == 303
    noted = [(e.what, e.statement) for e in web.log.events if e.name == "carol" and e.what == "stop"]
    assert noted == [("stop", "the statement of ben"), ("stop", "the session of ben")]
    for door, number in (("1", key), ("7", "1"), ("-1", "1"), ("", ""), ("0", "12")):
        assert "nobody is there" in post(carol, "/sessions", "/sessions", door=door, key=number, do="end").text


def test_ceilings_hold_here(web: ServedWeb) -> None:
    """The interface is the wire's: what it refuses, the console refuses."""
    with pytest.raises(Refused) as refusal:
        web.server.ask(COUNT, login=login("dora", per_query="0.05"), settings=TENTH)
    assert refusal.value.diagnostics[0].code == "DP413"


def test_a_client_that_leaves_stops_what_it_asked(web: ServedWeb) -> None:
    ana, pool, before = web.client("ana"), web.server.gateway.pool, web.server.shop.spent()
    sql = ENDLESS.replace("COUNT(*)", "COUNT(*) AS abandoned")
    body = urlencode({"token": token_of(ana.get("/query")), "sql": sql, "epsilon": "0.1"})
    head = (
        "POST /query/run HTTP/1.1", f"Host: 127.0.0.1:{web.port}", "Content-Type: application/x-www-form-urlencoded",
        f"Content-Length: {len(body)}", f"Cookie: dpsql-analyst={ana.cookies['dpsql-analyst']}",
    )  # fmt: skip
    seats: list[object] = []

    async def take() -> None:
        seats.append(pool._free.pop())

    def runs() -> bool:
        return any("AS abandoned" in v.running for v in web.web._console.sessions.visitors())

    web.server.do(take)  # no worker is free, so the statement waits
    try:
        with socket.create_connection(("127.0.0.1", web.port), timeout=120) as connection:
            connection.sendall("\r\n".join([*head, "", body]).encode())
            while not runs():
                time.sleep(0.01)
        while runs():
            time.sleep(0.01)
    finally:
        pool._free.append(seats[0])  # type: ignore[arg-type]
    assert "AS abandoned" not in ana.get("/history").text and web.server.shop.spent() == before
