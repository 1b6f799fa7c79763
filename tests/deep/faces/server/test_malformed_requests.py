"""Ten thousand malformed requests at a console and its API: nothing is spent, nothing is noted, no memory is kept."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

from tests.support.served_shop import FINE, with_serve
from tests.support.served_web import ServedWeb, post, served_web
from tests.support.small_shop import COUNT, make_shop


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def malformed(chance: random.Random, port: int) -> Iterator[bytes]:
    """Requests of which something is wrong, each another way."""
    good = (
        f"POST /query/run HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        "Content-Length: 24\r\nCookie: dpsql-analyst=x\r\nConnection: close\r\n\r\nsql=SELECT+1&token=abcdef"
    ).encode()
    api = (
        f"POST /api/v1/query HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        'Authorization: Bearer x\r\nContent-Length: 19\r\nConnection: close\r\n\r\n{"sql": "SELECT 1"}'
    ).encode()
    while True:
        data = bytearray(chance.choice((good, api)))
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    del data[at : at + chance.randint(1, 20)]
                case 2:
                    data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 20)))
                case _:
                    data[at:at] = data[chance.randrange(len(data)) :][:60]
        yield bytes(data)


def test_ten_thousand_malformed_requests_change_nothing(tmp_path: Path) -> None:
    with served_web(with_serve(make_shop(tmp_path / "shop"), f"{FINE}}}")) as web:
        attacked(web)


def attacked(web: ServedWeb) -> None:
    shop, before = web.server.shop, web.server.shop.spent()
    events = len(web.log.events)
    requests = malformed(random.Random(7), web.port)

    def send(count: int) -> None:
        for _, data in zip(range(count), requests, strict=False):
            found = web.raw(data)
            assert not found or status(found) in range(200, 500), (data, found)
            assert b"Traceback" not in found

    send(500)  # what is loaded on first use is loaded
    gc.collect()
    tracemalloc.start()
    try:
        held, _ = tracemalloc.get_traced_memory()
        send(9_500)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - held
    finally:
        tracemalloc.stop()
    assert grown < 2_000_000, grown
    assert shop.spent() == before and not any(e.what == "statement" for e in web.log.events[events:])
    assert web.client("ana").get("/").status_code == 200
    assert "Spent" in post(web.client("ana"), "/query/run", sql=COUNT, epsilon="0.1").text
