"""What stands in front of every page and of the API: limits, and headers that keep a browser from helping an attacker.

*Claim.* What another site makes a browser send changes nothing and spends nothing; no path names a file; a request is
bounded in time and memory before anybody has logged in. *Why.* A POST whose browser says that it comes from elsewhere
is refused, before forms' tokens are looked at, and cookies are SameSite=strict; names other than this listener's are
refused on loopback, so that no foreign name leads here; X-Forwarded-For is read of declared proxies alone, and of it
what the first of them saw; a path holds words and single slashes, nothing escaped; the
body is read within a limit and a time. *When it would be false.* If a page were answered around it. *Tested by*
tests/faces/server/web/test_guard.py.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from dpsql.faces.server.front.patience import parsed_address

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

MOST_BODY: Final = 1024 * 1024
"""Bytes of a request's body."""
MOST_HEAD: Final = 16 * 1024
"""Bytes of its headers."""
BODY_SECONDS: Final = 30.0
SEND_SECONDS: Final = 60.0
"""A client that takes nothing for so long is let go."""
_PATH: Final = re.compile(r"/(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*(?:/(?!$)|$))*")
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "DELETE"})
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
)
"""Of each response, where it has none of its own."""
_STRICT: Final = (b"strict-transport-security", b"max-age=31536000")

MCP: Final = "/mcp"
"""Where agents ask."""
OF_PROGRAMS: Final = ("/api/", MCP)
"""Addresses below which errors are problems, and no pages."""

_log = logging.getLogger("dpsql.server")


class Guard:
    """An application behind these rules. secure: it is spoken to under TLS. is_proxy: whether who connects from an
    address says where his client comes from; nobody else's word is taken."""

    def __init__(self, app: App, secure: bool, is_proxy: Callable[[str], bool] = lambda address: False) -> None:
        self._app, self._secure, self._is_proxy = app, secure, is_proxy
        self._names: frozenset[str] | None = None

    def listens(self, host: str, port: int) -> None:
        """Tell where: on loopback, no other name is answered."""
        try:
            local = host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            local = False
        if local:
            own = {"localhost", "127.0.0.1", "[::1]", f"[{host}]" if ":" in host else host}
            self._names = frozenset({f"{name}:{port}" for name in own})

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = {name for name, _ in message["headers"]}
                extra = [*HEADERS, *([_STRICT] if self._secure else [])]
                extra = [(name, value) for name, value in extra if name not in own]
                if b"cache-control" not in own:
                    extra.append((b"cache-control", b"no-store"))
                message["headers"] = [*message["headers"], *extra]
            async with asyncio.timeout(SEND_SECONDS):
                await send(message)

        try:
            refusal = self._refusal(scope)
            if refusal is None:
                body = await _body(receive)
                if body is None:
                    refusal = (413, f"a request has at most {MOST_BODY:,} bytes")
                else:
                    await self._app(scope, _given(body, receive), guarded)
            if refusal is not None:
                await _plain(guarded, scope, *refusal)
        except TimeoutError:
            if not started:
                await _plain(guarded, scope, 408, "the request took too long")
            raise
        except _Left:
            await _plain(guarded, scope, 400, "the request was not finished")
        except Exception as error:
            _log.error("unforeseen %s", type(error).__name__)  # and nothing of its text
            if not started:
                await _plain(guarded, scope, 500, "dpsql itself failed; this is an error in dpsql")

    def _refusal(self, scope: Message) -> tuple[int, str] | None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEAD:
            return 431, "the headers are too long"
        path = scope["raw_path"].decode("latin-1")
        if not _PATH.fullmatch(path) or len(path) > 200:
            return 404, "there is nothing here"
        hosts = headers.get(b"host", [])
        host = hosts[0].decode("latin-1").lower() if len(hosts) == 1 else ""
        if not host or (self._names is not None and host not in self._names):
            return 421, "this server has another name"
        if scope["method"] not in _METHODS:
            return 405, "this is not done here"
        if any(len(headers.get(name, [])) > 1 for name in (b"authorization", b"cookie", b"origin", b"content-type")):
            return 400, "a header came twice"
        length = headers.get(b"content-length", [b"0"])[0]
        if not length.isdigit() or len(length) > 12 or int(length) > MOST_BODY:
            return 413, f"a request has at most {MOST_BODY:,} bytes"
        if scope["client"] is not None and self._is_proxy(scope["client"][0]):
            address = self._forwarded(headers.get(b"x-forwarded-for", []))
            if address is None:
                return 400, "the proxy did not say where its client comes from"
            scope["client"] = (address, 0)
        if scope["method"] in ("POST", "DELETE") and not self._is_from_here(headers, host):
            return 403, "a form of another site is not taken"
        return None

    def _forwarded(self, said: list[bytes]) -> str | None:
        """Who came to the first proxy that is believed: what stands before him may be his own invention."""
        for text in reversed(b",".join(said).decode("latin-1").split(",")):
            address = parsed_address(text.strip())
            if address is None:
                return None
            if not self._is_proxy(str(address)):
                return str(address)
        return None

    def _is_from_here(self, headers: dict[bytes, list[bytes]], host: str) -> bool:
        """Whether the browser says that a page of this listener sent it. What is no browser says nothing."""
        site = headers.get(b"sec-fetch-site")
        if site is not None:
            return site == [b"same-origin"]
        origin = headers.get(b"origin")
        return origin is None or origin[0].decode("latin-1").lower() == f"http{'s' * self._secure}://{host}"


class _Left(Exception):
    """The client left before its request was whole."""


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None for one that is too long. Raises TimeoutError."""
    found = bytearray()
    async with asyncio.timeout(BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Left
            found += message.get("body", b"")
            if len(found) > MOST_BODY:
                return None
            if not message.get("more_body", False):
                return bytes(found)


def _given(body: bytes, receive: Receive) -> Receive:
    """First the body, then what else comes: that the client left."""
    first = True

    async def again() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


async def _plain(send: Send, scope: Message, status: int, text: str) -> None:
    """A sentence; to programs as a problem (RFC 9457), of which nothing was charged."""
    kind, data = "text/plain; charset=utf-8", (text + "\n").encode()
    if scope["raw_path"].decode("latin-1").startswith(OF_PROGRAMS):
        nothing = {"epsilon": 0.0, "delta": 0.0, "rho": 0.0}
        said = {"type": "about:blank", "title": text, "status": status, "detail": text, "code": None, "span": None,
                "hint": None, "findings": [], "spent": None if status == 500 else nothing}  # fmt: skip
        kind, data = "application/problem+json", json.dumps(said).encode()
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(data)).encode())]
    if status in (408, 413):
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
