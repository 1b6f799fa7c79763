"""Agents over the Model Context Protocol: analysts with an account and ceilings, who hold no data."""

from __future__ import annotations

import base64
import json
from fractions import Fraction
from typing import Any

import jsonschema
import pytest

from dpsql.faces.server.web.mcp.tools import TOOLS
from tests.support.agent import CURRENT, Agent
from tests.support.served import PASSWORD
from tests.support.served_web import ServedWeb
from tests.support.small_shop import board

WRONG = "SELECT city, SUM(amounts) AS s FROM orders GROUP BY city"
QUARTER = {"epsilon": "0.25"}
OLD = "2025-11-25"


@pytest.fixture
def agent(web: ServedWeb) -> Agent:
    return Agent(web.api("robot"))


def test_an_agent_is_refused_repairs_pays_and_is_cut_off_at_its_ceiling(web: ServedWeb, agent: Agent) -> None:
    before, lines = web.server.shop.spent(), len(web.log.events)
    told = agent.ask("server/discover")
    assert CURRENT in told["supportedVersions"] and "Your budget is finite" in told["instructions"]
    assert "amount: DOUBLE, bounds [0, 100]" in agent.call("tables")["content"][0]["text"]

    refused = agent.call("query", sql=WRONG, settings=QUARTER)
    text, found = refused["content"][0]["text"], refused["structuredContent"]
    assert refused["isError"] and found["code"] == "DP103" and found["spent"]["epsilon"] == 0
    assert f"{WRONG}\n   | {' ' * WRONG.index('amounts')}^^^^^^^" in text and "nothing was spent" in text
    place, hint = found["span"], found["hint"].partition("\n")[0]
    right = WRONG[: place["start"]] + hint.removeprefix("did you mean ").rstrip("?") + WRONG[place["end"] :]

    unsaid = agent.call("query", sql=right)
    assert unsaid["isError"] and '"settings": {"epsilon": "0.5"}' in unsaid["content"][0]["text"]
    price = agent.call("cost", sql=right, settings=QUARTER)
    assert not price["isError"] and price["structuredContent"]["price"]["epsilon"] == 0.25
    assert web.server.shop.spent() == before

    paid = agent.call("query", sql=right, settings=QUARTER)
    assert not paid["isError"] and paid["structuredContent"]["spent"]["epsilon"] == 0.25
    assert "charged ε 0.25" in (shown := paid["content"][0]["text"]) and "s − " in shown and "(at least " in shown
    again = agent.call("query", sql=right, settings=QUARTER)
    assert again["structuredContent"]["rows"] == paid["structuredContent"]["rows"]
    assert "nothing was charged" in again["content"][0]["text"]

    more = "SELECT COUNT(*) AS n FROM orders WHERE amount < 17"
    cut = agent.call("query", sql=more, settings={"epsilon": "0.4"})
    assert cut["isError"] and cut["structuredContent"]["code"] == "DP413" and "0.25 left" in cut["content"][0]["text"]
    assert web.server.shop.spent() == before + Fraction(1, 4)
    left = agent.call("budget")
    assert left["structuredContent"]["ceilings"]["per_day"] == "0.5" and left["structuredContent"]["account"] == "robot"
    noted = [(e.name, e.outcome) for e in web.log.events[lines:] if e.what == "statement"]
    assert {name for name, _ in noted} == {"robot"} and {o for _, o in noted} == {"ok", "DP103", "DP401", "DP413"}


def test_a_batch_is_told_as_data_and_in_words(web: ServedWeb) -> None:
    agent, before = Agent(web.api("ana")), web.server.shop.spent()
    tenth = {"epsilon": "0.1"}
    price = agent.call("cost", sql=board(2), settings=tenth)
    assert price["structuredContent"]["price"]["epsilon"] == 0.1 and web.server.shop.spent() == before
    found = agent.call("query", sql=board(2), settings=tenth)
    assert [len(each["rows"]) for each in found["structuredContent"]["answers"]] == [3, 1]
    words = found["content"][0]["text"]
    assert words.startswith("city | n\nBonn | ") and "\n\nn | s\n" in words and "\n\nsource: charged ε 0.1" in words
    assert web.server.shop.spent() == before + Fraction(1, 10)


CALLS: dict[str, dict[str, Any]] = {
    "tables": {}, "budget": {}, "rule": {"code": "201"},
    "cost": {"sql": "SELECT COUNT(*) AS n FROM orders WHERE city = $1", "parameters": ["Bonn"], "settings": QUARTER},
    "explain": {"sql": "SELECT COUNT(*) AS n FROM orders", "settings": {"epsilon": 0.25}},
    "cost_of_all": {"queries": [{"sql": "SELECT COUNT(*) AS n FROM orders"}, {"sql": WRONG}]},
    "query": {"sql": "SELECT city, country FROM cities ORDER BY city"},
}  # fmt: skip


def test_tools_answer_as_their_schemas_say(agent: Agent) -> None:
    listed = {tool["name"]: tool for tool in agent.ask("tools/list")["tools"]}
    assert list(listed) == list(TOOLS) == sorted(TOOLS, key=list(TOOLS).index) and set(CALLS) == set(TOOLS)
    assert [name for name, tool in listed.items() if not tool["annotations"]["readOnlyHint"]] == ["query"]
    for name, arguments in CALLS.items():
        for schema in (listed[name]["inputSchema"], listed[name]["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        jsonschema.validate(arguments, listed[name]["inputSchema"])
        answer = agent.call(name, **arguments)
        assert not answer["isError"] and answer["content"][0]["text"], answer
        jsonschema.validate(answer["structuredContent"], listed[name]["outputSchema"])


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("query", {"sql": 1}, "/sql"), ("query", {}, "/sql"), ("query", {"sql": "x", "account": "ben"}, "account"),
        ("tables", {"of": "ben"}, "/of"), ("rule", {"code": "../x"}, "no diagnostic code"),
        ("budget", [], "dictionary"),
        ("cost", {"sql": "SHOW budget"}, "only a query has a price"),
        ("query", {"sql": "SELECT * FROM dpsql.accounts"}, "DP102"),
    ],
)  # fmt: skip
def test_what_a_tool_does_not_take_is_said_to_the_agent(agent: Agent, tool: str, arguments: Any, said: str) -> None:
    answer = agent.ask("tools/call", name=tool, arguments=arguments)
    assert answer["isError"] and said in answer["content"][0]["text"] and answer["structuredContent"]["spent"]


def test_headers_say_what_the_body_says(agent: Agent) -> None:
    call = {"name": "tables", "arguments": {}}
    named = f"=?base64?{base64.b64encode(b'tables').decode()}?="
    assert agent.post("tools/call", call, mcp_name=named).status_code == 200
    wrong: list[tuple[dict[str, str | None], int]] = [
        ({"mcp_name": "query"}, -32020), ({"mcp_name": None}, -32020), ({"mcp_name": "=?base64?!?="}, -32020),
        ({"mcp_method": "tools/list"}, -32020), ({"mcp_method": None}, -32020), ({"mcp_protocol_version": OLD}, -32020),
        ({"mcp_protocol_version": None}, -32020),
    ]  # fmt: skip
    for headers, code in wrong:
        answer = agent.post("tools/call", call, **headers)
        assert answer.status_code == 400 and answer.json()["error"]["code"] == code, headers
        assert answer.json()["id"] == answer.extensions["number"]
    meta = {"io.modelcontextprotocol/protocolVersion": "1900-01-01", "io.modelcontextprotocol/clientCapabilities": {}}
    unknown = agent.post("tools/list", {"_meta": meta}, mcp_protocol_version="1900-01-01").json()["error"]
    assert unknown["code"] == -32022 and unknown["data"]["supported"][0] == CURRENT
    del meta["io.modelcontextprotocol/clientCapabilities"]
    meta["io.modelcontextprotocol/protocolVersion"] = CURRENT
    assert agent.post("tools/list", {"_meta": meta}).json()["error"]["code"] == -32602
    for method in ("initialize", "resources/list", "ping"):
        answer = agent.post(method, {})
        assert answer.status_code == 404 and answer.json()["error"]["code"] == -32601
    nothing = agent.post("tools/call", {"name": "drop", "arguments": {}})
    assert nothing.status_code == 400 and "there are: tables" in nothing.json()["error"]["message"]


def test_older_revisions_begin_with_a_handshake(web: ServedWeb) -> None:
    program = web.api("robot")

    def send(message: dict[str, Any], version: str | None = OLD) -> Any:
        headers = {} if version is None else {"mcp-protocol-version": version}
        return program.post("/mcp", json={"jsonrpc": "2.0", **message}, headers=headers)

    for asked, spoken in ((OLD, OLD), ("2025-06-18", "2025-06-18"), ("2024-11-05", OLD), (None, OLD)):
        begun = send({"id": "a", "method": "initialize", "params": {"protocolVersion": asked}}, None)
        assert begun.json()["result"]["protocolVersion"] == spoken and "mcp-session-id" not in begun.headers
    done = send({"method": "notifications/initialized"})
    assert done.status_code == 202 and done.content == b""
    assert send({"id": 2, "method": "ping"}).json() == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert len(send({"id": 3, "method": "tools/list"}).json()["result"]["tools"]) == len(TOOLS)
    answer = send({"id": 4, "method": "tools/call", "params": {"name": "tables"}}).json()["result"]
    assert "resultType" not in answer and answer["structuredContent"]["tables"]
    missing = send({"id": 5, "method": "server/discover"})
    assert missing.status_code == 200 and missing.json()["error"]["code"] == -32601  # 404 would end its session
    assert send({"id": 6, "method": "tools/list"}, "2024-11-05").json()["error"]["code"] == -32022
    assert send({"id": 7, "method": "tools/list"}, None).json()["error"]["code"] == -32020


BROKEN = (
    b"", b"{", b"[]", b"null", b'{"jsonrpc": "2.0", "id": 1}', b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}',
    b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', b'{"jsonrpc": "2.0", "id": null, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": 1}', b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}',
    b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', b"\xff", b"[" * 100_000,
    b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
)  # fmt: skip


@pytest.mark.parametrize("body", BROKEN, ids=range(len(BROKEN)))
def test_what_is_no_request(web: ServedWeb, body: bytes) -> None:
    headers = {"content-type": "application/json", "mcp-protocol-version": OLD}
    answer = web.api("robot").post("/mcp", content=body, headers=headers)
    assert answer.status_code == 400 and answer.json()["error"]["code"] in (-32700, -32600)
    assert web.api("robot").post("/mcp", content=body).status_code == 400  # of another kind


def test_an_agent_comes_in_by_its_login_and_no_page_sends_it(web: ServedWeb) -> None:
    listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    old = {"mcp-protocol-version": OLD}
    nobody = web.client().post("/mcp", json=listed, headers=old)
    assert nobody.status_code == 401 and nobody.headers["www-authenticate"].startswith("Basic")
    assert web.client().post("/mcp", json=listed, headers=old, auth=("carol", PASSWORD)).status_code == 401
    assert web.client("ana").post("/mcp", json=listed, headers=old).status_code == 401  # a console's cookie
    token = web.api("robot").post("/api/v1/session").json()["token"]
    bearer = {"authorization": f"Bearer {token}", **old}
    assert web.client().post("/mcp", json=listed, headers=bearer).status_code == 200
    for foreign in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        assert web.api("robot").post("/mcp", json=listed, headers={**old, **foreign}).status_code == 403
    large = {**listed, "params": {"x": "y" * 1_100_000}}
    assert web.api("robot").post("/mcp", json=large, headers=old).status_code == 413
    for method in ("GET", "DELETE"):
        answer = web.api("robot").request(method, "/mcp")
        assert answer.status_code == 405 and json.loads(answer.content)["status"] == 405
    assert web.client(custodian=True).post("/mcp", json=listed, headers=old).status_code == 404
