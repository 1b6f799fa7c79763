"""SCRAM-SHA-256: a client shows that he knows a password, and the server keeps nothing that would let it be used.

RFC 5802 and 7677, with RFC 4013's preparation of passwords. Secrets are written as PostgreSQL writes them in
`pg_authid.rolpassword`, so that either may be copied to the other.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from dataclasses import dataclass
from typing import Final

MECHANISM: Final = "SCRAM-SHA-256"
ITERATIONS: Final = 4096
"""Of new secrets: what PostgreSQL takes, too. It is paid by the client at each login."""
_MOST_ITERATIONS: Final = 10_000_000
_SALT_BYTES, _NONCE_BYTES, _HASH_BYTES = 16, 18, 32
_SECRET = re.compile(rf"{MECHANISM}\$([1-9][0-9]{{0,7}}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")
_FIRST = re.compile(r"([ny]),(a=[^,]*)?,(n=([^,]*),r=([\x21-\x2b\x2d-\x7e]+))(,.*)?", re.DOTALL)
_FINAL = re.compile(r"(c=([A-Za-z0-9+/=]+),r=([\x21-\x2b\x2d-\x7e]+)),p=([A-Za-z0-9+/=]+)")


class Failed(Exception):
    """The proof is none, or no message of SCRAM. `malformed` tells which; a client is told only that."""

    def __init__(self, malformed: bool) -> None:
        super().__init__("malformed SCRAM message" if malformed else "wrong proof")
        self.malformed = malformed


@dataclass(frozen=True, slots=True)
class Secret:
    """What a server keeps of a password. iterations: of PBKDF2. The keys are 32 bytes each."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        """As PostgreSQL writes it."""
        return f"{MECHANISM}${self.iterations}:{_b64(self.salt)}${_b64(self.stored_key)}:{_b64(self.server_key)}"

    def __repr__(self) -> str:
        return "<Secret>"  # a traceback or a log shows no keys


def read_secret(text: str) -> Secret | None:
    """A secret as PostgreSQL writes it; None if the text is none."""
    found = _SECRET.fullmatch(text)
    if found is None or int(found[1]) > _MOST_ITERATIONS:
        return None
    try:
        salt, stored, server = (base64.b64decode(part, validate=True) for part in found.groups()[1:])
    except binascii.Error:
        return None
    if len(stored) != _HASH_BYTES or len(server) != _HASH_BYTES or not salt:
        return None
    return Secret(int(found[1]), salt, stored, server)


def make_secret(password: str, salt: bytes | None = None, iterations: int = ITERATIONS) -> Secret:
    """The secret of a password. salt: None for a new one."""
    salt = secrets.token_bytes(_SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password).encode("utf-8", "surrogateescape"), salt, iterations)
    stored = hashlib.sha256(_hmac(salted, b"Client Key")).digest()
    return Secret(iterations, salt, stored, _hmac(salted, b"Server Key"))


def fits(secret: Secret, password: str) -> bool:
    """Whether this is the password of a secret: for doors at which the password itself comes, under TLS."""
    found = make_secret(password, secret.salt, secret.iterations)
    return hmac.compare_digest(found.stored_key, secret.stored_key)


def secret_of_nobody(name: str, like: Secret | None, key: bytes) -> Secret:
    """What an unknown name is answered with: the same salt each time, and no password that fits.

    like: a secret whose number of iterations and length of salt are taken. key: known to the server only.
    """
    salt = hmac.digest(key, b"salt " + name.encode("utf-8", "surrogateescape"), "sha256")
    length = _SALT_BYTES if like is None else len(like.salt)
    while len(salt) < length:
        salt += hmac.digest(key, salt, "sha256")
    nothing = secrets.token_bytes(_HASH_BYTES)  # the hash of no key that anybody could find
    return Secret(ITERATIONS if like is None else like.iterations, salt[:length], nothing, nothing)


def prepared(password: str) -> str:
    """The password after SASLprep (RFC 4013); as it stands where SASLprep does not allow it, as PostgreSQL does."""
    if password.isascii() and password.isprintable():
        return password
    mapped = (" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
    text = unicodedata.normalize("NFKC", "".join(mapped))
    if not text or any(_prohibited(c) for c in text):
        return password
    left_to_right = any(stringprep.in_table_d2(c) for c in text)
    if any(stringprep.in_table_d1(c) for c in text) and (
        left_to_right or not (stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1]))
    ):
        return password
    return text


_PROHIBITED = (
    stringprep.in_table_a1, stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3,
    stringprep.in_table_c4, stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7,
    stringprep.in_table_c8, stringprep.in_table_c9,
)  # fmt: skip


def _prohibited(character: str) -> bool:
    return any(table(character) for table in _PROHIBITED)


class Exchange:
    """The server's half of one login. Two messages come in, `first` and `final`, and two go out.

    The name in the client's message counts for nothing: whose secret it is was said when the connection was opened.
    """

    def __init__(self, secret: Secret, nonce: str | None = None) -> None:
        """nonce: of the server; None for a new one."""
        self._secret = secret
        self._own = nonce or _b64(secrets.token_bytes(_NONCE_BYTES))
        self._header = self._said = self._nonce = ""

    def first(self, message: bytes) -> bytes:
        """client-first → server-first. Raises Failed."""
        found = _FIRST.fullmatch(_decoded(message))
        if found is None or (found[6] is not None and not _extensions(found[6])):
            raise Failed(malformed=True)
        self._header = f"{found[1]},{found[2] or ''},"
        self._nonce = found[5] + self._own
        reply = f"r={self._nonce},s={_b64(self._secret.salt)},i={self._secret.iterations}"
        self._said = f"{found[3]}{found[6] or ''},{reply}"
        return reply.encode()

    def final(self, message: bytes) -> bytes:
        """client-final → server-final. Raises Failed: the proof is not that of the password."""
        found = _FINAL.fullmatch(_decoded(message))
        if found is None:
            raise Failed(malformed=True)
        try:
            bound, proof = (base64.b64decode(found[i], validate=True) for i in (2, 4))
        except binascii.Error:
            raise Failed(malformed=True) from None
        if bound != self._header.encode() or found[3] != self._nonce or len(proof) != _HASH_BYTES:
            raise Failed(malformed=True)
        said = f"{self._said},{found[1]}".encode()
        signature = _hmac(self._secret.stored_key, said)
        key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(key).digest(), self._secret.stored_key):
            raise Failed(malformed=False)
        return b"v=" + _b64(_hmac(self._secret.server_key, said)).encode()


def _extensions(text: str) -> bool:
    """Whether what follows the nonce are extensions that may be passed over: not `m=`, which must be understood."""
    return all(re.fullmatch(r"[A-Za-ln-z]=[^,\0]+", part) for part in text[1:].split(","))


def _decoded(message: bytes) -> str:
    try:
        return message.decode("utf-8")
    except UnicodeDecodeError:
        raise Failed(malformed=True) from None


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
