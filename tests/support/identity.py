"""An identity provider of OpenID Connect on this machine: it vouches for whom a test names, truly or not."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

CLIENT, SECRET = "dpsql at the clinic", "s+cret/of:client"


@dataclass
class Identity:
    """What it says. who: claims of whoever comes next. lies: claims in a token that are not so; of `alg`, `key` and
    `kid` what it is signed with. asked: how often each path was asked for."""

    url: str
    who: dict[str, Any] = field(default_factory=lambda: {"sub": "ana-8d5f"})
    lies: dict[str, Any] = field(default_factory=dict)
    says: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    kid: str = "k1"
    keys: list[Any] = field(default_factory=list)
    """Further ones that it publishes."""
    shows: bool = False
    """Whether it shows a page first, which somebody has to click through."""
    down: bool = False

    def __post_init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self.key = ec.derive_private_key(20261128, ec.SECP256R1())

    def answer(self, path: str, query: dict[str, str], form: dict[str, str], authorization: str) -> tuple[int, Any]:
        """Status, and JSON, or an address to go on at."""
        self.asked[path] = self.asked.get(path, 0) + 1
        if self.down:
            return 503, {}
        match path:
            case "/.well-known/openid-configuration":
                places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
                return 200, {"issuer": self.url, **{n: f"{self.url}/{p}" for n, p in places.items()}, **self.says}
            case "/keys":
                from jwt.algorithms import ECAlgorithm

                own = json.loads(ECAlgorithm.to_jwk(self.key.public_key()))
                shared = {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"}
                return 200, {"keys": [{**own, "kid": self.kid, "use": "sig"}, shared, {"kty": "?"}, 7, *self.keys]}
            case "/authorize":
                code = f"code-{len(self.codes)}"
                self.codes[code] = query
                back = f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"
                return 200 if self.shows else 303, back
            case "/token":
                return self._token(form, authorization)
        return 404, {}

    def _token(self, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        asked = self.codes.pop(form["code"], None)
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        right = (
            asked is not None
            and pair == "dpsql%20at%20the%20clinic:s%2Bcret%2Fof%3Aclient"
            and asked["code_challenge"].encode() == challenge
            and asked["redirect_uri"] == form["redirect_uri"]
        )
        if not right or asked is None:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"], **self.who}
        return 200, {"token_type": "Bearer", "id_token": self._signed({**claims, **self.lies})}

    def _signed(self, claims: dict[str, Any]) -> str:
        import jwt

        kind, kid, key = claims.pop("alg", "ES256"), claims.pop("kid", self.kid), claims.pop("key", self.key)
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(claims, key, algorithm=kind, headers={} if kid is None else {"kid": kid})


@contextmanager
def identity() -> Iterator[Identity]:
    """One that listens."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self._answer(dict(parse_qsl(body)))

        def _answer(self, form: dict[str, str]) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            status, said = found.answer(parts.path, query, form, self.headers.get("authorization", ""))
            data = json.dumps(said).encode()
            self.send_response(status)
            if isinstance(said, str):
                self.send_header("location", said)
                self.send_header("content-type", "text/html")
                data = f'<a href="{said.replace("&", "&amp;")}">It is me</a>'.encode()
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Identity(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
