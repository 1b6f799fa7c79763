"""Messages of the Model Context Protocol over its streamable HTTP: JSON-RPC 2.0, a request for each POST.

*Claim.* A request means what its headers say that it means. *Why.* Of the current revision, 2026-07-28, the version,
the method and the tool's name stand in headers as well as in the body, and a request in which they differ is refused,
so that nothing in front of a server is told otherwise than the server itself. *When it would be false.* If a request
were read before its headers were compared. *Tested by* tests/faces/server/web/test_mcp.py.

The revisions before it, whose sessions begin with `initialize`, are answered too: there is no state between requests
in either, so that their sessions have no name, and a client's own login is all that is known of it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.datastructures import Headers

from dpsql import __version__
from dpsql.faces.server.web.api.bodies import MalformedBody, data_of

CURRENT: Final = "2026-07-28"
WITH_SESSIONS: Final = ("2025-11-25", "2025-06-18")
"""Revisions that begin with `initialize`, the newest first."""
_META: Final = "io.modelcontextprotocol/"
_SERVER: Final = {"name": "dpsql", "version": __version__}
_PARSE, _REQUEST, _METHOD, PARAMS, _MISMATCH, _VERSION = -32700, -32600, -32601, -32602, -32020, -32022
_BASE64: Final = ("=?base64?", "?=")


class RpcFault(Exception):
    """A message that is not answered by a result. status: HTTP's; 200 where an older revision wants it so."""

    def __init__(self, code: int, message: str, status: int = 400, id: int | str | None = None, data: Any = None):
        super().__init__(message)
        self.code, self.status, self.id, self.data = code, status, id, data

    def message(self) -> Mapping[str, Any]:
        """As it is sent."""
        error = {"code": self.code, "message": str(self)} | ({} if self.data is None else {"data": self.data})
        return {"jsonrpc": "2.0"} | ({} if self.id is None else {"id": self.id}) | {"error": error}


@dataclass(frozen=True, slots=True)
class RpcCall:
    """A request. current: whether it is of the current revision."""

    id: int | str
    method: str
    params: Mapping[str, Any]
    current: bool

    def result(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """The message that answers it."""
        own = {"resultType": "complete", "_meta": {f"{_META}serverInfo": _SERVER}} if self.current else {}
        return {"jsonrpc": "2.0", "id": self.id, "result": {**data, **own}}

    def fault(self, code: int, message: str) -> RpcFault:
        """The error that answers it."""
        status = (404 if code == _METHOD else 400) if self.current else 200
        return RpcFault(code, message, status, self.id)

    def unknown(self) -> RpcFault:
        """There is no such method."""
        return self.fault(_METHOD, "there is no such method")


def read(body: bytes, headers: Headers) -> RpcCall | None:
    """What a POST asks; None for a notification, of which none has to be heeded here. Raises Fault."""
    try:
        data = data_of(body)
    except MalformedBody as error:
        raise RpcFault(_PARSE, str(error)) from None
    if not isinstance(data, dict) or data.get("jsonrpc") != "2.0" or not isinstance(data.get("method"), str):
        raise RpcFault(_REQUEST, "the body is not one request of JSON-RPC 2.0")
    id, method, params = data.get("id"), data["method"], data.get("params", {})
    if "id" not in data:
        return None
    if isinstance(id, bool) or not isinstance(id, int | str):
        raise RpcFault(_REQUEST, "the id of a request is a whole number or a text")
    if not isinstance(params, dict):
        raise RpcFault(_REQUEST, "params is an object", id=id)
    return RpcCall(id, method, params, current=_is_current(id, method, params, headers))


def _is_current(id: int | str, method: str, params: Mapping[str, Any], headers: Headers) -> bool:
    """Whether a request is of the current revision, or of an older one that is known. Raises Fault."""
    version, meta = _one(headers, "mcp-protocol-version"), params.get("_meta")
    said = meta.get(f"{_META}protocolVersion") if isinstance(meta, dict) else None
    if said is None and (method == "initialize" or version in WITH_SESSIONS):
        return False
    if version is None or (said is not None and said != version):
        raise _mismatch("MCP-Protocol-Version", id)
    if version != CURRENT:
        known = {"supported": [CURRENT, *WITH_SESSIONS], "requested": version[:100]}
        raise RpcFault(_VERSION, "this revision of the protocol is not spoken here", id=id, data=known)
    if said is None or not isinstance(meta, dict) or not isinstance(meta.get(f"{_META}clientCapabilities"), dict):
        raise RpcFault(PARAMS, f"_meta needs {_META}protocolVersion and {_META}clientCapabilities", id=id)
    if _one(headers, "mcp-method") != method:
        raise _mismatch("Mcp-Method", id)
    if method == "tools/call" and _plain(_one(headers, "mcp-name")) != params.get("name"):
        raise _mismatch("Mcp-Name", id)
    return True


def _mismatch(header: str, id: int | str) -> RpcFault:
    return RpcFault(_MISMATCH, f"the header {header} is missing, or says something else than the body", id=id)


def _one(headers: Headers, name: str) -> str | None:
    found = headers.getlist(name)
    return found[0] if len(found) == 1 else None


def _plain(text: str | None) -> str | None:
    """A header's value, which may be written in base64."""
    begin, end = _BASE64
    if text is None or not (text.startswith(begin) and text.endswith(end) and len(text) >= len(begin) + len(end)):
        return text
    try:
        return base64.b64decode(text[len(begin) : -len(end)], validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def welcome(asked: object, instructions: str) -> Mapping[str, Any]:
    """The result of `initialize`. asked: the revision that the client would speak."""
    version = asked if asked in WITH_SESSIONS else WITH_SESSIONS[0]
    return {
        "protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": _SERVER, "instructions": instructions,
    }  # fmt: skip


def discovered(instructions: str) -> Mapping[str, Any]:
    """The result of `server/discover`."""
    return {
        "supportedVersions": [CURRENT, *WITH_SESSIONS], "capabilities": {"tools": {}}, "instructions": instructions,
        **NOT_KEPT,
    }  # fmt: skip


NOT_KEPT: Final = {"ttlMs": 0, "cacheScope": "private"}
"""What is said to those who would keep a list of tools: policies change with a restart."""
