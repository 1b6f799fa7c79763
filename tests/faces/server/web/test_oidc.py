"""Somebody signs in to a console by an identity provider, which listens here; and all that may be false in it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.server.people.users import Provider, User, Users, load_users, parse_users
from dpsql.faces.server.statements import Login
from dpsql.faces.server.web import oidc
from dpsql.faces.server.web.oidc import SECONDS
from tests.support.identity import CLIENT, SECRET, Identity, identity
from tests.support.served import people
from tests.support.served_shop import FINE, with_serve
from tests.support.served_web import ServedWeb, served_web
from tests.support.small_shop import make_shop

pytest.importorskip("jwt")
pytest.importorskip("cryptography")


@pytest.fixture(scope="module")
def provider() -> Iterator[Identity]:
    with identity() as found:
        yield found


@pytest.fixture(scope="module")
def web(provider: Identity, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    known = {
        "ana": User(None, Login("ana", "ana"), subject="ana-8d5f"),
        "carol": User(people().secret_of("ana"), Login("carol", "carol", "custodian"), subject="carol-77"),
        "ben": User(people().secret_of("ana"), Login("ben", "ben")),
    }
    users = Users(known, Provider(provider.url, CLIENT, "sub", SECRET))
    shop = with_serve(make_shop(tmp_path_factory.mktemp("shop")), f"{FINE}}}")
    with served_web(shop, users=users) as found:
        yield found


@pytest.fixture(autouse=True)
def honest(provider: Identity) -> Iterator[None]:
    yield
    provider.who, provider.lies, provider.down = {"sub": "ana-8d5f"}, {}, False


def sent_away(browser: httpx.Client) -> httpx.Response:
    """The provider's answer to a browser that was sent to it."""
    away = browser.get("/login/provider")
    assert away.status_code == 303, away.text
    return httpx.get(away.headers["location"])


def signed_in(browser: httpx.Client) -> httpx.Response:
    back = sent_away(browser).headers["location"]
    return browser.get(back)


def test_whom_the_provider_vouches_for_is_let_in(web: ServedWeb, provider: Identity) -> None:
    browser = web.client()
    assert 'href="/login/provider"' in browser.get("/login").text
    away = browser.get("/login/provider")
    asked = {name: values[0] for name, values in parse_qs(urlsplit(away.headers["location"]).query).items()}
    assert asked["redirect_uri"] == f"{web.urls[0]}login/back" and asked["code_challenge_method"] == "S256"
    assert "SameSite=lax" in away.headers["set-cookie"] and "HttpOnly" in away.headers["set-cookie"]
    before = len(web.log.events)
    answer = signed_in(browser)
    assert answer.status_code == 200 and answer.headers["refresh"] == "0;url=/"
    assert any("SameSite=strict" in cookie for cookie in answer.headers.get_list("set-cookie"))
    assert "signed in as <strong>ana" in browser.get("/").text and "dpsql-analyst-try" not in browser.cookies
    assert [(e.what, e.name) for e in web.log.events[before:]] == [("login", "ana")]
    provider.who = {"sub": "carol-77"}
    assert signed_in(custodian := web.client(custodian=True)).status_code == 200
    assert custodian.get("/").status_code == 200


def test_who_is_not_listed_is_not_let_in(web: ServedWeb, provider: Identity) -> None:
    for who in ("somebody", "ana", "carol-77", "", "ANA-8D5F"):  # a name is none of them; carol is of another role
        provider.who = {"sub": who}
        before, browser = len(web.log.events), web.client()
        answer = signed_in(browser)
        assert answer.status_code == 403 and "not vouched for" in answer.text
        assert browser.get("/").status_code == 303
        assert [e.what for e in web.log.events[before:]] == ["refused login"]


LIES: dict[str, dict[str, Any]] = {
    "issuer": {"iss": "https://other.example"}, "audience": {"aud": "another client"}, "no audience": {"aud": None},
    "audiences": {"aud": [CLIENT, "another"]}, "party": {"aud": [CLIENT, "another"], "azp": "another"},
    "nonce": {"nonce": "another"}, "no nonce": {"nonce": None}, "expired": {"exp": 1_000_000_000},
    "no end": {"exp": None}, "not yet": {"nbf": 10**11}, "of the future": {"iat": 10**11}, "a number": {"sub": 7},
    "unsigned": {"alg": "none", "key": None}, "shared": {"alg": "HS256", "key": "secret", "kid": "shared"},
    "another kind": {"alg": "HS256", "key": "secret"}, "unknown key": {"kid": "k9"},
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.filterwarnings("ignore::Warning")  # of short keys, at the provider
def test_a_token_that_is_not_right_lets_nobody_in(web: ServedWeb, provider: Identity, lie: str) -> None:
    provider.lies = LIES[lie]
    browser = web.client()
    assert signed_in(browser).status_code == 403 and browser.get("/").status_code == 303


def test_a_token_of_another_key_lets_nobody_in(web: ServedWeb, provider: Identity) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec

    provider.lies = {"key": ec.derive_private_key(7, ec.SECP256R1())}
    assert signed_in(web.client()).status_code == 403
    provider.lies = {"aud": [CLIENT, "another"], "azp": CLIENT}
    assert signed_in(web.client()).status_code == 200


def test_a_code_is_good_for_the_browser_that_asked_and_once(web: ServedWeb, provider: Identity) -> None:
    victim, attacker = web.client(), web.client()
    back = sent_away(attacker).headers["location"]
    assert victim.get(back).status_code == 403  # without a try of his own
    victim.get("/login/provider")
    assert victim.get(back).status_code == 403  # whose state is another
    asked = provider.asked.get("/token", 0)
    assert provider.codes and victim.get(f"{back}x").status_code == 403 and provider.asked.get("/token", 0) == asked
    again = {"cookie": f"dpsql-analyst-try={attacker.cookies['dpsql-analyst-try']}"}
    assert attacker.get(back).status_code == 200
    assert web.client().get(back, headers=again).status_code == 403  # the provider gives a code away once
    for given in ("", "?state=", "?code=x", "?error=access_denied", f"{urlsplit(back).query}&iss=https://other"):
        assert web.client().get(f"/login/back{given}").status_code in (403, 404)


def test_a_try_ends_after_a_while(web: ServedWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = web.client()
    back = sent_away(browser).headers["location"]
    now = time.time()
    monkeypatch.setattr("dpsql.faces.server.web.oidc.time.time", lambda: now + SECONDS + 2)
    assert browser.get(back).status_code == 403


def test_keys_that_changed_are_looked_up_again_but_not_for_every_token(web: ServedWeb, provider: Identity) -> None:
    vouching = web.web._console._vouching
    assert vouching is not None and vouching._known is not None
    provider.kid = "k2"
    try:
        before = provider.asked["/keys"]
        assert signed_in(web.client()).status_code == 403 and provider.asked["/keys"] == before
        object.__setattr__(vouching._known, "at", vouching._known.at - 61)
        assert signed_in(web.client()).status_code == 200 and provider.asked["/keys"] == before + 1
    finally:
        provider.kid = "k1"
        vouching._known = None


def test_a_token_need_not_name_the_only_key_of_its_provider(
    web: ServedWeb, provider: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several it has to, and one with a shared secret is none."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from jwt.algorithms import ECAlgorithm

    provider.lies = {"kid": None}
    assert signed_in(web.client()).status_code == 200
    provider.lies = {"kid": None, "key": ec.derive_private_key(7, ec.SECP256R1())}
    assert signed_in(web.client()).status_code == 403
    another = json.loads(ECAlgorithm.to_jwk(ec.derive_private_key(8, ec.SECP256R1()).public_key()))
    provider.lies, provider.keys = {"kid": None}, [{**another, "kid": "k7"}]
    monkeypatch.setattr(oidc, "_AGAIN_SECONDS", 0.0)
    try:
        assert signed_in(web.client()).status_code == 403
    finally:
        provider.keys = []
        signed_in(web.client())


@pytest.mark.parametrize(
    "said", [{"issuer": "https://other.example"}, {"token_endpoint": 7}, {"jwks_uri": "http://a.example"}]
)
def test_a_provider_that_is_not_one(web: ServedWeb, provider: Identity, said: dict[str, Any]) -> None:
    vouching = web.web._console._vouching
    assert vouching is not None
    vouching._known, provider.says = None, said
    try:
        answer = web.client().get("/login/provider")
        assert answer.status_code == 503 and "does not answer" in answer.text
    finally:
        provider.says = {}


def test_without_the_provider_passwords_still_let_in(web: ServedWeb, provider: Identity) -> None:
    browser = web.client()
    back = sent_away(browser).headers["location"]
    provider.down = True
    assert browser.get(back).status_code == 503
    assert web.client("ben").get("/").status_code == 200
    ana = web.client().post("/login", data={"name": "ana", "password": "correct horse battery"})
    assert ana.status_code == 403  # she has none


SAID = "users: {ana: {subject: a}}\noidc: {issuer: 'https://login.example', client: dpsql"


def test_what_the_file_of_users_says(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    (tmp_path / "users.yaml").write_text(f"{SAID}, secret_file: secret, claim: email}}")
    users = load_users(tmp_path / "users.yaml")
    assert users.provider == Provider("https://login.example", "dpsql", "email", "s3cret")
    assert "s3cret" not in repr(users) and users.by_certificate("ana", None) is None
    wrong = {
        f"{SAID}, secret_file: nowhere}}": "secret_file of oidc cannot be read",
        f"{SAID}, scope: all}}": "scope is not a key",
        f"{SAID}}}".replace("https", "http"): "must be an address https",
        "users: {ana: {subject: a}}": "needs oidc:",
        f"{SAID}}}".replace("subject: a", "subject: a, certificate: a"): "lets nobody in who has to show a certificate",
        f"{SAID}}}".replace("{ana:", "{ben: {subject: a}, ana:"): "one subject to two logins",
    }
    for text, said in wrong.items():
        with pytest.raises(CannotOpen, match=said):
            parse_users(text)
