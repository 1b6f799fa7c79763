"""The custodian's listener: what it answers, and what it does not take."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.faces.server import health
from dpsql.faces.server.health import Health, place
from dpsql.faces.server.metrics import Metrics, Spent
from tests.support.answering import Recorded

SPENT = [Spent("patient", "ana", 0.5, 0, 0, "clinic")]
Talk = Callable[[int], Awaitable[None]]


async def told() -> Sequence[Spent]:
    return SPENT


def listening(talk: Talk, found: Health | None = None) -> None:
    found = found or Health(Metrics(Recorded()), told)

    async def whole() -> None:
        try:
            await talk(await found.start("127.0.0.1", 0))
        finally:
            await found.stop()

    asyncio.run(asyncio.wait_for(whole(), 300))


async def said(port: int, request: bytes) -> tuple[str, str]:
    """The first line of a reply, and its body. The server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    lines = head.decode().split("\r\n")
    if body:
        assert f"Content-Length: {len(body)}" in lines
    assert "Connection: close" in lines
    return lines[0], body.decode()


def get(path: str, method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def test_a_server_whose_log_cannot_be_written_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError

    log = Recorded()
    monkeypatch.setattr(log, "require", full)

    async def talk(port: int) -> None:
        line, body = await said(port, get("/healthz"))
        assert (line, body) == ("HTTP/1.1 503 Service Unavailable", "the audit log cannot be written\n")

    listening(talk, Health(Metrics(log), told))


@pytest.mark.parametrize(
    ("request_", "line", "body"),
    [
        (get("/healthz"), "HTTP/1.1 200 OK", "ok\n"),
        (get("/healthz", "HEAD"), "HTTP/1.1 200 OK", ""),
        (get("/"), "HTTP/1.1 404 Not Found", "not found\n"),
        (get("/metrics?x=1"), "HTTP/1.1 404 Not Found", "not found\n"),
        (get("/metrics", "POST"), "HTTP/1.1 405 Method Not Allowed", "method not allowed\n"),
        (b"\r\n\r\n", "HTTP/1.1 400 Bad Request", "bad request\n"),
        (b"GET /healthz\r\n\r\n", "HTTP/1.1 400 Bad Request", "bad request\n"),
        (b"\x00" * 10_000, "HTTP/1.1 400 Bad Request", "bad request\n"),
    ],
)
def test_what_is_answered(request_: bytes, line: str, body: str) -> None:
    async def talk(port: int) -> None:
        assert await said(port, request_) == (line, body)

    listening(talk)


def test_metrics_are_told() -> None:
    async def talk(port: int) -> None:
        line, body = await said(port, get("/metrics"))
        spent = 'dpsql_spent{database="clinic",unit="patient",account="ana",part="epsilon"} 0.5\n'
        assert line == "HTTP/1.1 200 OK" and spent in body

    listening(talk)


def test_without_a_worker_it_is_not_healthy_and_what_is_known_is_told() -> None:
    async def nobody() -> None:
        return None

    async def talk(port: int) -> None:
        assert (await said(port, get("/healthz")))[0] == "HTTP/1.1 503 Service Unavailable"
        line, body = await said(port, get("/metrics"))
        assert line == "HTTP/1.1 200 OK" and "dpsql_connections gauge" in body and "dpsql_spent" not in body

    listening(talk, Health(Metrics(Recorded()), nobody))


def test_a_worker_is_asked_once_at_a_time_and_no_more_connections_are_taken_than_it_says() -> None:
    asked: list[int] = []
    go_on = asyncio.Event()

    async def slow() -> Sequence[Spent]:
        asked.append(1)
        await go_on.wait()
        return SPENT

    async def talk(port: int) -> None:
        waiting = [asyncio.create_task(said(port, get("/healthz"))) for _ in range(health._MOST)]
        while len(found._open) < health._MOST or not asked:
            await asyncio.sleep(0.001)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""  # closed at once
        writer.close()
        go_on.set()
        assert {line for line, _ in await asyncio.gather(*waiting)} == {"HTTP/1.1 200 OK"} and len(asked) == 1

    found = Health(Metrics(Recorded()), slow)
    listening(talk, found)


def test_who_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    async def talk(port: int) -> None:
        assert (await said(port, b"GET /hea"))[0] == "HTTP/1.1 408 Request Timeout"
        monkeypatch.setattr(health, "_SECONDS", 0.5)
        assert (await said(port, get("/healthz")))[0] == "HTTP/1.1 503 Service Unavailable"
        assert found._asking is not None
        found._asking.cancel()

    monkeypatch.setattr(health, "_SECONDS", 0.01)
    found = Health(Metrics(Recorded()), never)
    listening(talk, found)


def test_a_worker_that_is_busy_for_no_longer_than_it_may_is_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    async def talk(port: int) -> None:
        for patience, line in ((1e6, "HTTP/1.1 200 OK"), (0.0, "HTTP/1.1 503 Service Unavailable")):
            found._patience = patience
            assert (await said(port, get("/healthz")))[0] == line
        assert found._asking is not None
        found._asking.cancel()

    monkeypatch.setattr(health, "_SECONDS", 0.5)
    found = Health(Metrics(Recorded()), never)
    listening(talk, found)


@pytest.mark.parametrize(
    ("text", "found"),
    [("9187", ("127.0.0.1", 9187)), (":9187", ("127.0.0.1", 9187)), ("0.0.0.0:1", ("0.0.0.0", 1)),
     ("[::1]:9187", ("::1", 9187)), ("localhost:0", ("localhost", 0))],
)  # fmt: skip
def test_a_port_alone_is_of_this_machine(text: str, found: tuple[str, int]) -> None:
    assert place(text) == found


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", "localhost:x", "1:99999", "::1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(Rejected, match="DP903"):
        place(text)


def test_who_asks_gets_an_exit_code() -> None:
    async def talk(port: int) -> None:
        assert await asyncio.to_thread(health.main, [f"127.0.0.1:{port}"]) == 0
        free.append(port)

    free: list[int] = []
    listening(talk)
    assert health.main([f"127.0.0.1:{free[0]}"]) == 1
