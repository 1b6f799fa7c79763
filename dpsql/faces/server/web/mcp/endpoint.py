"""The address of agents. Each request shows its login, and is answered as the API would answer it.

*Claim.* An agent is an analyst: it has its login's account and ceilings, and what it holds are released numbers. *Why.*
A request is let in by the API's `Authorization`; its tools ask through the same `Asker`; nothing is kept between two
requests but the session of the login. *When it would be false.* If a tool took a name from its arguments, or asked
anybody but the `Asker`. *Tested by* tests/faces/server/web/test_mcp.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpsql.faces.server.web.api.routes import answered, body_of, known
from dpsql.faces.server.web.entrance import Entrance
from dpsql.faces.server.web.guard import MCP
from dpsql.faces.server.web.mcp.json_rpc import NOT_KEPT, PARAMS, RpcCall, RpcFault, discovered, read, welcome
from dpsql.faces.server.web.mcp.tools import TOOLS, ToolCall, call, instructions
from dpsql.faces.server.web.session_asking import Asker, WaitingClient
from dpsql.faces.server.web.sessions import WebSession
from dpsql.faces.server.web.site import House


class Agents:
    """For language-model agents."""

    def __init__(self, house: House, entrance: Entrance) -> None:
        self._house, self._entrance = house, entrance

    def routes(self) -> list[Route]:
        """The one address."""
        return [Route(MCP, known(self._house, self._entrance, self._take), methods=["POST"])]

    async def _take(self, request: Request, asker: Asker, session: WebSession) -> Response:
        try:
            asked = read(await body_of(request), request.headers)
            if asked is None:
                return Response(status_code=202)
            database, waiting = self._house.databases.of(session.login), WaitingClient(request.receive)
            result = await self._result(
                asked, ToolCall(asker, session.login, database.policy, waiting, database.made_up)
            )
        except RpcFault as fault:
            response = answered(fault.message())
            response.status_code = fault.status
            return response
        return await asyncio.to_thread(answered, asked.result(result))

    async def _result(self, asked: RpcCall, by: ToolCall) -> Mapping[str, Any]:
        """Raises Fault, Gone."""
        match asked.method:
            case "initialize" | "ping" if asked.current:
                raise asked.unknown()
            case "initialize":
                return welcome(asked.params.get("protocolVersion"), instructions(by))
            case "ping":
                return {}
            case "server/discover" if asked.current:
                return discovered(instructions(by))
            case "tools/list":
                return {"tools": [tool.listed(name) for name, tool in TOOLS.items()], **NOT_KEPT}
            case "tools/call":
                name = asked.params.get("name")
                tool = TOOLS.get(name) if isinstance(name, str) else None
                if tool is None:
                    raise asked.fault(PARAMS, f"there is no such tool; there are: {', '.join(TOOLS)}")
                return (await call(tool, by, asked.params.get("arguments"))).result()
            case _:
                raise asked.unknown()
