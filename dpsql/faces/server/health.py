"""The custodian's listener: `/healthz` for what watches a service, `/metrics` for Prometheus. HTTP/1.1, GET alone.

    python -m dpsql.faces.server.health 127.0.0.1:9187      # for Docker: exits with 0 if it is healthy

*Claim.* Nothing is told but that the server answers, and can note it, and what `metrics.py` counts. *Why.* A request is
its first line; the reply is made of those alone. *When it would be false.* If who may not see prices and accounts can
reach the port: there is no login, so it is open to this machine alone, unless another address is named. *Tested by*
tests/faces/server/test_health.py.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from dpsql.diagnostics.errors import reject
from dpsql.faces.server.metrics import Metrics, Spent, exposition

_LONGEST: Final = 4_096
"""Bytes of a request."""
_SECONDS: Final = 10.0
"""For a request to come, a worker to answer, and a reply to be taken, each."""
_MOST: Final = 16
"""Connections at one time."""
_REASONS: Final = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed",
                   408: "Request Timeout", 503: "Service Unavailable"}  # fmt: skip


def place(text: str) -> tuple[str, int]:
    """`HOST:PORT`, `[::1]:PORT`, or a port of this machine alone. Raises Rejected DP903."""
    host, _, port = text.rpartition(":")
    is_host = ":" not in host or (host[0], host[-1]) == ("[", "]")
    if not is_host or not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise reject("DP903", f"--health {text[:100]!r} is no address with a port", help=["--health 127.0.0.1:9187"])
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


class Health:
    """The listener. ask: what the ledger says that was spent, by a worker; None if no worker answers.

    A worker is asked once at a time, however many want to know. patience: seconds that it may be busy for, and healthy.
    """

    def __init__(
        self, metrics: Metrics, ask: Callable[[], Awaitable[Sequence[Spent] | None]], patience: float = 0.0
    ) -> None:
        self._metrics, self._ask, self._patience = metrics, ask, patience
        self._asking: asyncio.Task[Sequence[Spent] | None] | None = None
        self._asked_at = 0.0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, which was chosen if 0 was given. Raises OSError."""
        self._server = await asyncio.start_server(self._see, host, port, limit=_LONGEST, backlog=_MOST)
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def stop(self) -> None:
        """No connection is answered any more."""
        if self._server is not None:
            self._server.close()
        for task in list(self._open):
            task.cancel()
        if self._asking is not None:
            await asyncio.wait({self._asking})

    async def _see(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            if len(self._open) < _MOST:
                self._open.add(task)
                with contextlib.suppress(OSError, asyncio.TimeoutError):
                    writer.write(await self._replied(reader))
                    async with asyncio.timeout(_SECONDS):
                        await writer.drain()
                        writer.write_eof()
        except asyncio.CancelledError:
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _replied(self, reader: asyncio.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            return _reply(408)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return _reply(400)
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _reply(400)
        method, path, _ = words
        if path not in (b"/healthz", b"/metrics"):
            return _reply(404)
        if method not in (b"GET", b"HEAD"):
            return _reply(405)
        spent = await self._spent()
        if path == b"/healthz":
            found = _healthy(self._is_logging(), spent is not None or self._is_busy())
        else:
            kind = "text/plain; version=0.0.4; charset=utf-8"
            found = _reply(200, exposition(self._metrics.families(spent)), kind)
        return found if method == b"GET" else found[: found.index(b"\r\n\r\n") + 4]

    def _is_logging(self) -> bool:
        try:
            self._metrics.require()
        except OSError:
            return False
        return True

    async def _spent(self) -> Sequence[Spent] | None:
        """Of a worker's answer that is on its way, or of the next one; None if it takes too long."""
        if self._asking is None or self._asking.done():
            self._asking, self._asked_at = asyncio.ensure_future(self._ask()), time.monotonic()
        done, _ = await asyncio.wait({self._asking}, timeout=_SECONDS)
        return self._asking.result() if done else None

    def _is_busy(self) -> bool:
        """Whether a worker does what may last so long, and is asked for no longer."""
        pending = self._asking is not None and not self._asking.done()
        return pending and time.monotonic() - self._asked_at < self._patience


def _healthy(is_logging: bool, answers: bool) -> bytes:
    if not is_logging:
        return _reply(503, "the audit log cannot be written\n")
    return _reply(200, "ok\n") if answers else _reply(503, "no worker answers\n")


def _reply(status: int, body: str = "", kind: str = "text/plain; charset=utf-8") -> bytes:
    data = (body or f"{_REASONS[status].lower()}\n").encode()
    lines = [
        f"HTTP/1.1 {status} {_REASONS[status]}", f"Content-Type: {kind}", f"Content-Length: {len(data)}",
        "Cache-Control: no-store", "X-Content-Type-Options: nosniff", "Connection: close",
        *(["Allow: GET, HEAD"] if status == 405 else []),
    ]  # fmt: skip
    return "\r\n".join([*lines, "", ""]).encode("ascii") + data


# --- who asks ---------------------------------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Whether a server is healthy, as an exit code."""
    parser = argparse.ArgumentParser(prog="dpsql-health", description="Exits with 0 if a server is healthy, else 1.")
    parser.add_argument("address", help="HOST:PORT, as the server was given it with --health")
    given = parser.parse_args(arguments)
    return 0 if _is_healthy(*place(given.address)) else 1


def _is_healthy(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=2 * _SECONDS)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
