"""What stands in front: paths, names, sizes, headers; ten thousand malformed requests; nothing is kept of them."""

from __future__ import annotations

import socket

import pytest

from dpsql.faces.server.web.guard import HEADERS, MOST_BODY
from tests.support.served_web import ServedWeb, post

PATHS = (
    "/../etc/passwd", "/..", "/.", "/./", "//", "//evil.example/", "/codes/../ledger", "/codes//DP201", "/%2e%2e/x",
    "/codes%2fDP201", "/codes/%44P201", "/style.css/", "/style.css%00", "/files/style.css", "/static/style.css", "\\",
    "/codes/..%5c", "/query;x", "/a\tb",
    "http://127.0.0.1/", "https://evil.example/query", "*", "evil.example:443", "?", "",
    "/ü", "/" + "a" * 300, "/codes/DP201/", "/api/v1/", "/api/v1/openapi.json/..", "/codes/.hidden", "/codes/a..b",
)  # fmt: skip


def request(web: ServedWeb, line: str, *headers: str, body: str = "", host: str = "") -> bytes:
    head = [line, f"Host: {host or f'127.0.0.1:{web.port}'}", "Connection: close", *headers]
    return web.raw("\r\n".join([*head, "", body]).encode())


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_elsewhere(web: ServedWeb, path: str) -> None:
    answer = request(web, f"GET {path} HTTP/1.1")
    assert status(answer) in (303, 400, 404), answer
    assert status(answer) != 303 or (path == "?" or path == "") or b"location: /login" in answer
    assert b"root:" not in answer and b"color-scheme: light dark" not in answer


def test_only_this_servers_names_are_answered(web: ServedWeb) -> None:
    for host in (
        "evil.example",
        f"evil.example:{web.port}",
        "127.0.0.1",
        "127.0.0.1:1",
        f"127.0.0.1:{web.port}.evil.example",
    ):
        assert status(request(web, "GET /login HTTP/1.1", host=host)) == 421, host
    assert status(request(web, "GET /login HTTP/1.1", host=f"LOCALHOST:{web.port}")) == 200
    two = request(web, "GET /login HTTP/1.1", f"Host: 127.0.0.1:{web.port}")
    assert status(two) in (400, 421)


def test_every_response_has_the_headers(web: ServedWeb) -> None:
    ana = web.client("ana")
    answers = [
        ana.get("/"), ana.get("/nowhere"), ana.get("/style.css"), web.client().get("/login"), ana.get("/api/v1/budget"),
        ana.get("/api/v1/nowhere"), ana.post("/nowhere"), ana.get("/%2e"), post(ana, "/query/price", sql="x"),
        ana.post("/query/run", data={}), ana.request("DELETE", "/"), ana.get("/api/v1/openapi.json"),
        ana.post("/login", content=b"x" * 10, headers={"content-type": "text/plain"}),
        ana.post("/login", content=b"%ff=%ff&a", headers={"content-type": "application/x-www-form-urlencoded"}),
    ]  # fmt: skip
    for answer in answers:
        for name, value in HEADERS:
            assert answer.headers.get_list(name.decode()) == [value.decode()], answer.url
        assert answer.headers["cache-control"] and "server" not in answer.headers and "date" not in answer.headers
    policy = dict(HEADERS)[b"content-security-policy"].decode()
    assert "default-src 'none'" in policy and "script" not in policy and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_what_is_too_long_is_refused_before_it_is_held(web: ServedWeb) -> None:
    form = "Content-Type: application/x-www-form-urlencoded"
    said = request(web, "POST /login HTTP/1.1", form, f"Content-Length: {MOST_BODY + 1}")
    assert status(said) == 413
    chunks = "".join("10000\r\n" + "a" * 65536 + "\r\n" for _ in range(MOST_BODY // 65536 + 1)) + "0\r\n\r\n"
    said = request(web, "POST /login HTTP/1.1", form, "Transfer-Encoding: chunked", body=chunks)
    assert not said or status(said) == 413  # it is closed with much of it unread, which may overtake the answer
    assert status(request(web, "GET /login HTTP/1.1", "X: " + "a" * 20_000)) == 431
    assert status(request(web, "GET /login HTTP/1.1", *(f"X{n}: {'a' * 100}" for n in range(300)))) in (400, 431)
    for wrong in ("-1", "1e3", "0x10", "9" * 30, "1, 1"):
        assert status(request(web, "POST /login HTTP/1.1", form, f"Content-Length: {wrong}") or b"- 400") in (
            400,
            413,
        ), wrong
    assert status(request(web, "TRACE / HTTP/1.1")) == 405 and status(request(web, "PUT / HTTP/1.1")) == 405


def test_a_request_that_never_ends_holds_nobody_up(web: ServedWeb) -> None:
    """Half of a request lies there; others are answered."""
    with socket.create_connection(("127.0.0.1", web.port), timeout=60) as slow:
        slow.sendall(b"POST /login HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 10\r\n\r\nabc" % web.port)
        assert web.client().get("/login").status_code == 200
