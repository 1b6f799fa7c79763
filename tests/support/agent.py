"""An agent's side of the Model Context Protocol, of the current revision, without its packages."""

from __future__ import annotations

from itertools import count
from typing import Any

import httpx

CURRENT = "2026-07-28"
_META = "io.modelcontextprotocol/"


class Agent:
    """Asks as a program that has logged in."""

    def __init__(self, program: httpx.Client, address: str = "/mcp") -> None:
        self._program, self._address, self._numbers = program, address, count(1)

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request. Asserts that it is one."""
        answer = self.post(method, params)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert found["id"] == answer.extensions["number"] and found["result"]["resultType"] == "complete"
        return found["result"]

    def post(self, method: str, params: Any, **headers: str | None) -> httpx.Response:
        """What comes back of a request whose headers are right but for these; None: it is left out."""
        number = next(self._numbers)
        own = {f"{_META}protocolVersion": CURRENT, f"{_META}clientCapabilities": {}}
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": {"_meta": own, **params}}
        said = {"mcp-protocol-version": CURRENT, "mcp-method": method, "mcp-name": params.get("name")}
        said |= {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self._program.post(self._address, json=body, headers={n: v for n, v in said.items() if v is not None})
        answer.extensions["number"] = number
        return answer

    def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool answers."""
        return self.ask("tools/call", name=tool, arguments=arguments)
