"""The official package of the Model Context Protocol as an agent's machine has it: both kinds of revision."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpsql.faces.server.statements import Ceilings, Login
from tests.support.served import PASSWORD
from tests.support.served_shop import FINE, with_serve
from tests.support.served_web import ServedWeb, served_web
from tests.support.small_shop import make_shop

mcp = pytest.importorskip("mcp")
pytestmark = pytest.mark.filterwarnings("ignore")
HOWTO = Path(__file__).parents[2] / "docs" / "howto" / "agents.md"
SHOWN = "https://gateway.example.org:8080/mcp"
BASIC = f"Basic {base64.b64encode(f'robot:{PASSWORD}'.encode()).decode()}"
WRONG = "SELECT city, SUM(amounts) AS s FROM orders GROUP BY city"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    shop = with_serve(make_shop(tmp_path_factory.mktemp("shop"), epsilon="100"), f"{FINE}}}")
    robot = Login("robot", "robot", ceilings=Ceilings(per_day="0.5"))
    with served_web(shop, robot=robot) as found:
        yield found


def test_a_session_in_the_revision_that_both_speak(web: ServedWeb) -> None:
    for mode, version in (("auto", "2026-07-28"), ("legacy", "2025-11-25")):
        asyncio.run(session(web, mode, version))


async def session(web: ServedWeb, mode: Any, version: str) -> None:
    """The package checks each answer against the tool's own schema."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    before, quarter = web.server.shop.spent(), {"epsilon": "0.25"}
    async with (
        httpx2.AsyncClient(headers={"authorization": BASIC}, timeout=120) as http,
        mcp.Client(streamable_http_client(f"{web.urls[0]}mcp", http_client=http), mode=mode) as agent,
    ):
        assert agent.protocol_version == version and "Your budget is finite" in agent.instructions
        names = [tool.name for tool in (await agent.list_tools()).tools]
        assert names == ["tables", "budget", "cost", "explain", "cost_of_all", "query", "rule"]
        refused = await agent.call_tool("query", {"sql": WRONG, "settings": quarter})
        assert refused.is_error and "^^^^^^^" in refused.content[0].text
        right = WRONG.replace("amounts", refused.structured_content["hint"].split()[3].rstrip("?"))
        for tool, said in (("cost", "s ± "), ("explain", "s ± "), ("query", " (at least ")):  # what a limit cuts
            answer = await agent.call_tool(tool, {"sql": right, "settings": quarter})
            assert not answer.is_error and said in answer.content[0].text
        cut = await agent.call_tool("query", {"sql": f"{right} HAVING 1 = 1", "settings": {"epsilon": "0.4"}})
        assert cut.is_error and cut.structured_content["code"] == "DP413"
    assert web.server.shop.spent() - before <= 0.25


def test_the_program_of_the_documentation(web: ServedWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    program = HOWTO.read_text(encoding="utf-8").partition("```python skip: needs a server\n")[2].partition("```")[0]
    assert SHOWN in program
    monkeypatch.setenv("DPSQL_AUTHORIZATION", BASIC)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(program.replace(SHOWN, f"{web.urls[0]}mcp"), {})
    assert "amount: DOUBLE, bounds [0, 100]" in printed.getvalue()
