"""Passwords that come as they are: one patience with the wire, one refusal for all that is wrong; and sessions."""

from __future__ import annotations

import base64

import pytest

from dpsql.faces.server.front.listen import tls_context
from dpsql.faces.server.statements import Login
from dpsql.faces.server.web.sessions import IDLE, LONGEST, MOST_RUNNING, Sessions
from dpsql.faces.server.wire.scram import fits, make_secret
from tests.faces.server.front.test_opening import TLS
from tests.support.answering import Recorded
from tests.support.served import PASSWORD
from tests.support.served_shop import FINE, with_serve
from tests.support.served_web import ServedWeb, served_web
from tests.support.small_shop import make_shop

ANA, BEN = Login("ana", "ana"), Login("ben", "ben")


@pytest.mark.parametrize("password", ["correct horse", "Ünïcode ½", "\u00ad\u00a0x" * 3, "a" * 2000])
def test_a_password_fits_its_secret_alone(password: str) -> None:
    secret = make_secret(password, iterations=3)
    assert fits(secret, password) and not fits(secret, password + "x") and not fits(secret, "")
    assert not fits(make_secret(password, iterations=4, salt=b"other"), password + " ")


def test_wrong_names_passwords_and_roles_look_alike(web: ServedWeb) -> None:
    before = len(web.log.events)
    pairs = (("ana", "wrong wrong"), ("nobody", PASSWORD), ("carol", PASSWORD), ("", ""), ("ana", "x" * 5000))
    pages = []
    for name, password in pairs:
        answer = web.client().post("/login", data={"name": name, "password": password})
        assert answer.status_code == 403 and "set-cookie" not in answer.headers
        pages.append(answer.text)
    assert len(set(pages)) == 1 and "Name or password is wrong." in pages[0]
    events = web.log.events[before:]
    assert [(e.what, e.name, e.outcome) for e in events] == [("refused login", n, "28P01") for n, _ in pairs]
    assert web.client(custodian=True).post("/login", data={"name": "ana", "password": PASSWORD}).status_code == 403


def test_guesses_wait_longer_and_longer_and_the_wire_counts_with_them(tmp_path_factory: pytest.TempPathFactory) -> None:
    shop = with_serve(make_shop(tmp_path_factory.mktemp("shop")), f"{FINE}}}")
    with served_web(shop) as web:
        client = web.client()
        for _ in range(8):
            client.post("/login", data={"name": "ana", "password": "wrong wrong"})
        assert web.waits == [0, 0, 0, 0, 0, 1, 2, 4]
        client.get("/api/v1/budget", auth=("ana", "wrong wrong"))
        assert web.waits[8:] == [8]
        assert web.web._house.door.patience.try_begins("ana", "127.0.0.1") == 16
        client.post("/login", data={"name": "ana", "password": PASSWORD})
        client.post("/login", data={"name": "ana", "password": PASSWORD})
        assert web.waits[9:] == [30, 0]


def test_the_cookie_is_for_this_site_alone(web: ServedWeb) -> None:
    answer = web.client().post("/login", data={"name": "ana", "password": PASSWORD})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie and "Domain" not in cookie
    assert "Max-Age" not in cookie and "Secure" not in cookie
    token = cookie.partition("=")[2].partition(";")[0]
    assert len(token) >= 43
    client = web.client()
    client.cookies.set("dpsql-analyst", token)
    assert client.get("/").status_code == 200
    assert token not in client.get("/").text and token not in repr(web.log.events)
    for wrong in ("", token[:-1], token + "x", "ä"):
        assert web.client().get("/", headers={"cookie": f"dpsql-analyst={wrong}".encode()}).status_code == 303


def test_under_tls_the_cookie_is_secure(tmp_path_factory: pytest.TempPathFactory) -> None:
    shop = with_serve(make_shop(tmp_path_factory.mktemp("shop")), f"{FINE}}}")
    context = tls_context(str(TLS / "certificate.pem"), str(TLS / "key.pem"))
    with served_web(shop, tls=context) as web:
        assert web.urls[0].startswith("https://")
        client = web.client("ana", verify=False)
        page = client.get("/")
        assert page.status_code == 200 and "max-age" in page.headers["strict-transport-security"]
        answer = client.post("/login", data={"name": "ana", "password": PASSWORD})
        assert (
            answer.headers["set-cookie"].startswith("__Host-dpsql-analyst=")
            and "Secure" in answer.headers["set-cookie"]
        )
        assert (
            client.post("/login", data={}, headers={"origin": web.urls[0].replace("https", "http")[:-1]}).status_code
            == 403
        )


def test_who_signs_out_or_in_again_has_no_old_session(web: ServedWeb) -> None:
    ana = web.client("ana")
    old = dict(ana.cookies)
    token = ana.get("/").text.partition('name="token" value="')[2].partition('"')[0]
    assert ana.post("/logout", data={"token": token}).headers["location"] == "/login"
    again = web.client()
    again.cookies.update(old)
    assert again.get("/").status_code == 303
    ben = web.client("ben")
    first = dict(ben.cookies)
    ben.post("/login", data={"name": "ben", "password": PASSWORD})
    assert dict(ben.cookies) != first
    again = web.client()
    again.cookies.update(first)
    assert again.get("/").status_code == 303


def test_sessions_end_by_themselves() -> None:
    now, log = [0.0], Recorded()
    sessions = Sessions(log, 3, lambda: now[0])
    token, session = sessions.begin(ANA, "console")
    assert sessions.find(token, "console") is session and sessions.find(token, "API") is None
    now[0] += IDLE
    assert sessions.find(token, "console") is session
    now[0] += IDLE + 1
    assert not sessions.lasts(token) and sessions.find(token, "console") is None and sessions.visitors() == []
    token, _ = sessions.begin(ANA, "console")
    for _ in range(int(LONGEST / IDLE)):
        now[0] += IDLE
        assert sessions.find(token, "console")
    now[0] += 1
    assert sessions.find(token, "console") is None
    assert [e.what for e in log.events] == ["end", "end"]


def test_one_user_has_so_many_sessions_and_the_oldest_gives_way() -> None:
    now = [0.0]
    sessions = Sessions(Recorded(), 2, lambda: now[0], most=4)
    tokens = []
    for name in (ANA, ANA, BEN, ANA):
        now[0] += 1
        tokens.append(sessions.begin(name, "console")[0])
    assert [sessions.lasts(t) for t in tokens] == [False, True, True, True]
    for number in range(10):
        sessions.begin(Login(f"u{number}", "u"), "API")
    assert len(sessions.visitors()) == 4
    assert MOST_RUNNING > 0


def test_basic_is_checked_once_while_its_session_lasts(web: ServedWeb) -> None:
    before = sum(e.what == "login" for e in web.log.events)
    api = web.api("ben")
    for _ in range(8):
        assert api.get("/api/v1/budget").status_code == 200
    assert sum(e.what == "login" for e in web.log.events) == before + 1
    pairs = ("Basic " + base64.b64encode(pair).decode() for pair in (b"ben", b"\xff:x", b"ben:wrong wrong"))
    broken = ("Basic", "Basic !", "Bearer x", "Digest x", *pairs)
    for header in broken:
        answer = web.client().get("/api/v1/budget", headers={"authorization": header})
        assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Basic"), header
    assert web.client().get("/api/v1/budget", auth=("carol", PASSWORD)).status_code == 401
