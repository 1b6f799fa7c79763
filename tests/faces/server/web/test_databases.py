"""Consoles and the API of a server with several databases: one at a time, and none is named before the login."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpsql.faces.server.statements import Login
from tests.support.agent import Agent
from tests.support.served_shop import FINE, with_serve
from tests.support.served_web import ServedWeb, post, served_web, token_of
from tests.support.small_shop import COUNT, make_shop

OTHER = "shop_made_up"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    shop = with_serve(make_shop(tmp_path_factory.mktemp("two"), epsilon="100"), f"{FINE}}}")
    dan = Login("dan", "dan", "custodian", databases=(OTHER,))
    with served_web(shop, second=OTHER, dan=dan, eve=Login("eve", "eve", databases=(OTHER,))) as found:
        yield found


def test_no_database_is_named_before_the_login(two: ServedWeb) -> None:
    for custodian in (False, True):
        nobody = two.client(custodian=custodian)
        for path in ("/login", "/nowhere"):
            assert "shop" not in nobody.get(path).text
    assert "shop" not in two.client().get("/api/v1/openapi.json").text


def test_a_console_goes_on_in_another_database(two: ServedWeb) -> None:
    ana = two.client("ana")
    page = ana.get("/")
    assert "<title>Your budget · shop</title>" in page.text and "is made up" not in page.text
    earlier, before = token_of(ana.get("/query")), two.server.shop.spent()
    assert ana.post("/database", data={"token": token_of(page), "database": OTHER}).status_code == 303
    changed = ana.get("/query").text
    assert f"<title>Try a query · {OTHER}</title>" in changed and "The data of this database is made up" in changed
    stale = ana.post("/query/run", data={"token": earlier, "sql": COUNT, "epsilon": "0.1"})
    assert stale.status_code == 403 and "of another database" in stale.text and two.server.shop.spent() == before
    post(ana, "/query/run", sql="SELECT 1 AS one", epsilon="0.1")
    assert [e.database for e in two.log.events if e.statement == "SELECT 1 AS one"] == [OTHER]
    assert f"dbname={OTHER}" in ana.get("/connect").text


def test_a_database_of_others_is_not_there(two: ServedWeb) -> None:
    eve = two.client("eve")
    page = eve.get("/")
    assert f"· {OTHER}</title>" in page.text and "/database" not in page.text  # there is nothing to choose
    assert eve.post("/database", data={"token": token_of(page), "database": "shop"}).status_code == 404
    assert f"· {OTHER}</title>" in eve.get("/").text


def test_the_api_takes_the_database(two: ServedWeb) -> None:
    api = two.api("ana")
    assert api.get("/api/v1/budget").json()["database"] == "shop"
    assert api.get("/api/v1/tables", params={"database": OTHER}).json()["database"] == OTHER
    wrong = two.api("eve").get("/api/v1/budget", params={"database": "shop"})
    assert wrong.status_code == 404 and OTHER in wrong.json()["detail"]
    begun = api.post("/api/v1/session", params={"database": OTHER}).json()
    assert begun["database"] == OTHER
    bearer = {"authorization": f"Bearer {begun['token']}"}
    program = two.client()
    assert program.get("/api/v1/budget", headers=bearer).json()["database"] == OTHER
    assert program.get("/api/v1/budget", headers=bearer, params={"database": "shop"}).status_code == 404


def test_an_agent_asks_the_database_of_its_address_or_token(two: ServedWeb) -> None:
    api, there = two.api("ana"), f"/mcp?database={OTHER}"
    for agent, database in ((Agent(api), "shop"), (Agent(api, there), OTHER), (Agent(two.api("eve")), OTHER)):
        told = agent.ask("server/discover")["instructions"]
        assert f"“{database}”" in told and ("are made up" in told) == (database == OTHER)
        for tool in ("tables", "budget"):
            assert agent.call(tool)["structuredContent"]["database"] == database
    Agent(api, there).call("query", sql="SELECT 2 AS two")
    assert [e.database for e in two.log.events if e.statement == "SELECT 2 AS two"] == [OTHER]
    assert Agent(two.api("eve"), "/mcp?database=shop").post("server/discover", {}).status_code == 404
    token = api.post("/api/v1/session", params={"database": OTHER}).json()["token"]
    program = two.client(headers={"authorization": f"Bearer {token}"})
    assert Agent(program).call("budget")["structuredContent"]["database"] == OTHER
    assert Agent(program, "/mcp?database=shop").post("server/discover", {}).status_code == 404


def test_a_custodian_sees_who_is_in_his_database(two: ServedWeb) -> None:
    two.client("ben")
    assert two.api("eve").post("/api/v1/query", json={"sql": "SELECT nothing FROM nowhere"}).status_code == 422
    dan, carol = two.client("dan", custodian=True), two.client("carol", custodian=True)
    assert ">eve<" in dan.get("/sessions").text and ">ben<" not in dan.get("/sessions").text
    assert ">ben<" in carol.get("/sessions").text and ">eve<" not in carol.get("/sessions").text
    assert "nothing FROM nowhere" in dan.get("/refusals").text
    assert "nothing FROM nowhere" not in carol.get("/refusals").text
