"""A listener of the web: uvicorn's HTTP/1.1 over h11, in the loop of the server, with limits of its own.

What uvicorn leaves open is closed here: how long the head of a request may take, how many connections there are in all
and from one address, and what is logged, which is nothing.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from dpsql.faces.server.front.listen import require_tls
from dpsql.faces.server.web.guard import MOST_HEAD, Guard

HEAD_SECONDS: Final = 15.0
"""For a request's head, and between two requests of one connection."""
_LAST_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class WebLimits:
    """Connections in all, and from one address."""

    connections: int = 100
    from_one_address: int = 50


class _Protocol(H11Protocol):
    """One connection."""

    limits = WebLimits()
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        same = sum(isinstance(c, H11Protocol) and _address(c) == _address(self) for c in self.connections)
        if len(self.connections) > self.limits.connections or same > self.limits.from_one_address:
            transport.abort()
        else:
            self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering:
            self._forget_deadline()
        elif self._deadline is None:
            self._await_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_answering:
            self._forget_deadline()
            self._await_head()

    @property
    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, whatever its type says
        return cycle is not None and not cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _address(connection: H11Protocol) -> str:
    return connection.client[0] if connection.client else ""


class Listener:
    """Listens for one application."""

    def __init__(self, app: Guard, tls: ssl.SSLContext | None, limits: WebLimits | None = None) -> None:
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)  # a request's own bytes would stand in the log
        self._app, self._tls = app, tls
        self._state = ServerState()
        self._state.default_headers = []
        self._config = Config(
            app, http=_Protocol, ws="none", lifespan="off", log_config=None, access_log=False, proxy_headers=False,
            server_header=False, date_header=False, h11_max_incomplete_event_size=MOST_HEAD,
            timeout_keep_alive=int(HEAD_SECONDS),
        )  # fmt: skip
        self._protocol: Any = type("_Limited", (_Protocol,), {"limits": limits or WebLimits()})
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, which was chosen if 0 was given. Raises Rejected DP903, OSError."""
        require_tls(host, self._tls)
        self._config.load()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: self._protocol(self._config, self._state, {}, loop), host, port, ssl=self._tls, backlog=128,
            ssl_handshake_timeout=HEAD_SECONDS if self._tls is not None else None,
        )  # fmt: skip
        found: int = self._server.sockets[0].getsockname()[1]
        self._app.listens(host, found)
        return found

    async def stop(self, seconds: float | None = None) -> None:
        """No new requests; those that run come to their end, and their answers leave.

        seconds: after which nobody is waited for.
        """
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(set(self._state.tasks), timeout=seconds)
        for connection in list(self._state.connections):
            asyncio.get_running_loop().call_later(_LAST_SECONDS, connection.transport.abort)
        await self._server.wait_closed()
