"""A listener of the web: uvicorn's HTTP/1.1 over h11, in the loop of the server, with limits of its own.

What uvicorn leaves open is closed here: how long the head of a request may take, how many connections there are in all
and from one address, and what is logged, which is nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from dpsql.faces.server.front.listen import require_tls
from dpsql.faces.server.front.patience import network
from dpsql.faces.server.front.slow_readers import UnreadBytes
from dpsql.faces.server.web.guard import MOST_HEAD, Guard

HEAD_SECONDS: Final = 15.0
"""For a request's head, and between two requests of one connection."""
UNREAD_SECONDS: Final = 20.0
"""A client that takes nothing for so long, or for twice as long, is let go, whatever uvicorn still wants to send."""
_LAST_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class WebLimits:
    """Connections in all, and from one address (of IPv6, from one network)."""

    connections: int = 100
    from_one_address: int = 50


class _Protocol(H11Protocol):
    """One connection."""

    limits = WebLimits()
    shared: Callable[[str], bool] = staticmethod(lambda address: False)
    """Whether many come from an address: of a proxy, which has no limit of its own."""
    _deadline: asyncio.TimerHandle | None = None
    _numbers: ClassVar = itertools.count()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._number, self._gives_way = next(self._numbers), False
        self._unread = UnreadBytes(lambda: transport, UNREAD_SECONDS)
        if self._has_place():
            self._await_head()
        else:
            self._gives_way = True
            transport.abort()

    def _has_place(self) -> bool:
        """Whether there is one. Who does not read, or asks nothing, gives his to somebody new: the one who has been
        there longest, of the network that has most of them."""
        while True:
            there = [c for c in self.connections if isinstance(c, _Protocol) and not c._gives_way]
            of = Counter(_network(c) for c in there)
            own = of[_network(self)] > self.limits.from_one_address and not self._is_shared
            if not own and len(there) <= self.limits.connections:
                return True
            may_go = [c for c in there if c is not self and c._is_idle and (not own or _network(c) == _network(self))]
            if not may_go:
                return False
            first = min(may_go, key=lambda c: (-of[_network(c)], not c._unread.waits, c._number))
            first._gives_way = True
            first.transport.abort()

    @property
    def _is_shared(self) -> bool:
        return self.client is not None and self.shared(self.client[0])

    @property
    def _is_idle(self) -> bool:
        return self._unread.waits or not self._is_answering

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread.full()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread.room()

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
        self._unread.ended()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _network(connection: H11Protocol) -> str:
    return network(connection.client[0]) if connection.client else ""


class Listener:
    """Listens for one application."""

    def __init__(
        self,
        app: Guard,
        tls: ssl.SSLContext | None,
        limits: WebLimits | None = None,
        shared: Callable[[str], bool] = lambda address: False,
    ) -> None:
        """shared: whether many come from an address, which has no limit of its own then."""
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)  # a request's own bytes would stand in the log
        self._app, self._tls = app, tls
        self._state = ServerState()
        self._state.default_headers = []
        self._config = Config(
            app, http=_Protocol, ws="none", lifespan="off", log_config=None, access_log=False, proxy_headers=False,
            server_header=False, date_header=False, h11_max_incomplete_event_size=MOST_HEAD,
            timeout_keep_alive=int(HEAD_SECONDS),
        )  # fmt: skip
        self._protocol: Any = type(
            "_Limited", (_Protocol,), {"limits": limits or WebLimits(), "shared": staticmethod(shared)}
        )
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
