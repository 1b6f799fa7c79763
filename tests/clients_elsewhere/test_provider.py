"""Signing in to a console by a provider of OpenID Connect that others wrote, and what an attacker tries there."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from dpsql.faces.server.people.users import Provider, User, Users
from dpsql.faces.server.statements import Login
from tests.support.served_shop import FINE, with_serve
from tests.support.served_web import ServedWeb, served_web
from tests.support.small_shop import make_shop

pytest.importorskip("jwt")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the provider's own, in this process
CLIENT, SECRET = "dpsql", "a secret of the client's"


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """Its address."""
    mock = pytest.importorskip("oidc_provider_mock")
    with mock.run_server_in_thread(require_nonce=True) as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture(scope="module")
def web(provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    known = {
        "ana": User(None, Login("ana", "ana"), subject="ana-8d5f"),
        "carol": User(None, Login("carol", "carol", "custodian"), subject="carol-77"),
    }
    users = Users(known, Provider(provider, CLIENT, "sub", SECRET))
    shop = with_serve(make_shop(tmp_path_factory.mktemp("shop")), f"{FINE}}}")
    with served_web(shop, users=users) as found:
        yield found


def vouched(browser: httpx.Client, who: str, **changed: str) -> str:
    """Where the provider sends a browser back to, for which somebody signs in. changed: of what the server asked."""
    place = urlsplit(browser.get("/login/provider").headers["location"])
    asked = {name: values[0] for name, values in parse_qs(place.query).items()} | changed
    url = f"{place.scheme}://{place.netloc}{place.path}?{urlencode(asked)}"
    assert httpx.get(url).status_code == 200, "the provider shows a form"
    back = httpx.post(url, data={"sub": who})
    assert back.status_code == 302, back.text
    return back.headers["location"]


@pytest.mark.parametrize(("who", "custodian", "status"), [
    ("ana-8d5f", False, 200), ("carol-77", True, 200), ("carol-77", False, 403), ("ana-8d5f", True, 403),
    ("somebody", False, 403), ("ana", False, 403), ("ANA-8D5F", False, 403),
])  # fmt: skip
def test_whom_it_vouches_for_is_let_in_if_he_is_listed(web: ServedWeb, who: str, custodian: bool, status: int) -> None:
    browser = web.client(custodian=custodian)
    assert browser.get(vouched(browser, who)).status_code == status
    assert browser.get("/").status_code == (200 if status == 200 else 303)


def test_who_refuses_there_is_not_let_in(web: ServedWeb) -> None:
    browser = web.client()
    place = browser.get("/login/provider").headers["location"]
    back = httpx.post(place, data={"action": "deny"}).headers["location"]
    assert "error=access_denied" in back and browser.get(back).status_code == 403


@pytest.mark.parametrize("attack", ["another browser", "again", "another nonce", "another state"])
def test_a_code_is_good_once_and_in_the_browser_that_asked_for_it(web: ServedWeb, attack: str) -> None:
    """Of an attacker's own code, or of one that he has seen: nobody is let in by it."""
    browser, other, logins = web.client(), web.client(), len(web.log.events)
    changed = {
        "another nonce": {"nonce": "x" * 43}, "another state": {"state": "x" * 43},
    }  # fmt: skip
    back = vouched(browser, "ana-8d5f", **changed.get(attack, {}))
    if attack == "another browser":
        other.get("/login/provider")
        browser = other
    elif attack == "again":
        assert browser.get(back).status_code == 200
        browser.cookies.clear()
        logins = len(web.log.events)
    assert browser.get(back).status_code == 403 and browser.get("/").status_code == 303
    assert all(event.what != "login" for event in web.log.events[logins:])
