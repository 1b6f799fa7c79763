"""OpenID Connect: an identity provider vouches for whoever opens a console (authorization code flow with PKCE).

*Claim.* Who is let in is whom the provider has vouched for, to this server, for this very try of this very browser; and
whom the file of users lists. *Why.* State, nonce and verifier follow from a random value in the browser's own cookie
and a key of this process: a code that somebody else was given fits none of them. The token's signature is by a key that
the provider publishes, of kinds that have a private half; its issuer, audience, expiry and nonce are compared. *When it
would be false.* If a claim could be chosen by its subject (an address that was not verified); if the provider's keys
were fetched without TLS. *Tested by* tests/faces/server/web/test_oidc.py.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from dpsql.faces.server.people.users import Provider

SECONDS: Final = 600
"""How long somebody may take at the provider."""
LEEWAY: Final = 60
"""Seconds by which the two clocks may differ."""
_KEPT_SECONDS: Final = 3600.0
_AGAIN_SECONDS: Final = 60.0
_PATIENCE: Final = 10.0
_MOST: Final = 1024 * 1024
_KINDS: Final = ("RS256", "PS256", "ES256", "ES384", "EdDSA")
_UNNAMED: Final = "\0"
"""In place of a key's id, where a token has none: no key is called so, and they are looked at anew now and then."""
_NEEDED: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class Unreachable(Exception):
    """The provider does not answer, or not as one."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What the provider has published. keys: by id. at: when."""

    places: Mapping[str, str]
    keys: Mapping[str, Any]
    at: float


class Vouching:
    """Asks one provider. back: the path that it sends browsers back to."""

    def __init__(self, provider: Provider, back: str) -> None:
        self._provider, self._back = provider, back
        self._key = secrets.token_bytes(32)
        self._known: _Known | None = None
        self._looking: asyncio.Task[_Known] | None = None
        self._asking = ThreadPoolExecutor(2, "provider")
        """Of its own: a provider that hangs keeps nothing else from being answered."""

    async def begun(self, origin: str) -> tuple[str, str]:
        """(where to send a browser, what its cookie has to hold). origin: of the console. Raises Unreachable."""
        known = await self._published()
        mark = f"{int(time.time())}.{secrets.token_urlsafe(24)}"
        challenge = _base64(hashlib.sha256(self._of(mark, "verifier").encode()).digest())
        asked = {
            "response_type": "code", "client_id": self._provider.client, "redirect_uri": origin + self._back,
            "scope": "openid email" if self._provider.claim.startswith("email") else "openid profile",
            "state": self._of(mark, "state"), "nonce": self._of(mark, "nonce"),
            "code_challenge": challenge, "code_challenge_method": "S256",
        }  # fmt: skip
        place = known.places["authorization_endpoint"]
        return f"{place}{'&' if '?' in place else '?'}{urlencode(asked)}", mark

    async def subject(self, given: Mapping[str, str], mark: str, origin: str) -> str | None:
        """Whom the provider vouches for; None where it vouches for nobody, or not for this try. Raises Unreachable.

        given: what it sent the browser back with. mark: the browser's cookie.
        """
        begun = mark.partition(".")[0]
        state = hmac.compare_digest(given.get("state", "").encode(), self._of(mark, "state").encode())
        young = begun.isascii() and begun.isdigit() and len(begun) < 15 and 0 <= time.time() - int(begun) <= SECONDS
        if not state or not young or given.get("iss", self._provider.issuer).rstrip("/") != self._provider.issuer:
            return None
        if "code" not in given:
            return None
        known = await self._published()
        sent = {
            "grant_type": "authorization_code", "code": given["code"], "redirect_uri": origin + self._back,
            "client_id": self._provider.client, "code_verifier": self._of(mark, "verifier"),
        }  # fmt: skip
        fetch = partial(_fetch, known.places["token_endpoint"], sent, self._provider)
        answer = await asyncio.get_running_loop().run_in_executor(self._asking, fetch)
        token = answer.get("id_token")
        return None if not isinstance(token, str) else await self._vouched(token, self._of(mark, "nonce"))

    async def _vouched(self, token: str, nonce: str) -> str | None:
        """The claim of a token that is of this provider, for this server, and for this try."""
        import jwt

        provider = self._provider
        try:
            head = jwt.get_unverified_header(token)
            key = _key_of(head, (await self._published(head.get("kid") or _UNNAMED)).keys)
            if key is None or head.get("alg") not in _KINDS or key.algorithm_name != head["alg"]:
                return None
            claims = jwt.decode(
                token, key.key, algorithms=[head["alg"]], audience=provider.client, leeway=LEEWAY,
                options={"require": ["iss", "aud", "exp", "iat", "sub"]},
            )  # fmt: skip
        except (jwt.PyJWTError, TypeError, ValueError):
            return None
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        found = claims.get(provider.claim)
        right = (
            str(claims["iss"]).rstrip("/") == provider.issuer
            and hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode())
            and claims.get("azp", None if several else provider.client) == provider.client
            and (provider.claim != "email" or claims.get("email_verified") is True)
        )
        return found if right and isinstance(found, str) and found else None

    async def _published(self, key: str = "") -> _Known:
        """What the provider publishes; anew after an hour, or for a key that is not known yet. Raises Unreachable."""
        known, now = self._known, time.monotonic()
        age = _KEPT_SECONDS if known is None else now - known.at
        if known is None or age >= _KEPT_SECONDS or (key and key not in known.keys and age >= _AGAIN_SECONDS):
            if self._looking is None or self._looking.done():  # one look, however many wait for it
                self._looking = asyncio.ensure_future(self._looked_up())
            known = await asyncio.shield(self._looking)
        return known

    async def _looked_up(self) -> _Known:
        looking = asyncio.get_running_loop().run_in_executor(self._asking, _looked_up, self._provider.issuer)
        self._known = known = await looking
        return known

    def _of(self, mark: str, what: str) -> str:
        return _base64(hmac.digest(self._key, f"{what} {mark}".encode("utf-8", "replace"), "sha256"))


def _key_of(head: Mapping[str, Any], keys: Mapping[str, Any]) -> Any:
    """What a token says that it is signed with: it need not where the provider has one key (OpenID Connect Core, 10.1).

    None if there is none.
    """
    own = [key for key in keys.values() if key.algorithm_name in _KINDS]
    named = head.get("kid")
    return keys.get(named) if named else own[0] if len(own) == 1 else None


def _looked_up(issuer: str) -> _Known:
    from jwt import PyJWK, PyJWTError

    told = _fetch(f"{issuer}/.well-known/openid-configuration")
    places = {name: told.get(name) for name in _NEEDED}
    if str(told.get("issuer", "")).rstrip("/") != issuer or not all(isinstance(p, str) for p in places.values()):
        raise Unreachable("it names another issuer, or leaves something out")
    for place in places.values():
        _require_tls(str(place))
    listed, keys = _fetch(str(places["jwks_uri"])).get("keys"), {}
    for data in listed if isinstance(listed, list) else []:
        with contextlib.suppress(PyJWTError, ValueError, TypeError):  # of a kind that is not known here
            if isinstance(data, dict) and data.get("use", "sig") == "sig":
                keys[str(data.get("kid", ""))] = PyJWK(data)
    return _Known({name: str(place) for name, place in places.items()}, keys, time.monotonic())


def _require_tls(url: str) -> None:
    """Raises Unreachable for an address that is neither under TLS nor on this machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in ("127.0.0.1", "::1", "localhost")):
        raise Unreachable("an address of it is not under TLS")


class _Stays(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_opener: Final = urllib.request.build_opener(_Stays)


def _fetch(url: str, form: Mapping[str, str] | None = None, provider: Provider | None = None) -> dict[str, Any]:
    """An object of JSON. form: to be posted, by the provider's client. Raises Unreachable."""
    request = urllib.request.Request(url, None if form is None else urlencode(form).encode())
    request.add_header("Accept", "application/json")
    if provider is not None and provider.secret is not None:
        pair = f"{quote(provider.client, safe='')}:{quote(provider.secret, safe='')}"
        request.add_header("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
    try:
        with _opener.open(request, timeout=_PATIENCE) as answer:
            found = json.loads(answer.read(_MOST))
    except urllib.error.HTTPError as error:
        error.close()
        if form is not None and error.code in (400, 401, 403):
            return {}  # it does not take this code
        raise Unreachable(f"it answers {error.code}") from None
    except (OSError, HTTPException, ValueError, RecursionError):
        raise Unreachable("it does not answer in JSON") from None
    if not isinstance(found, dict):
        raise Unreachable("it does not answer in JSON")
    return found


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
