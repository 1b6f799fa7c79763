"""SCRAM-SHA-256: the example of RFC 7677, PostgreSQL's form of a secret, and proofs that are none."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.faces.server.wire.scram import Exchange, Failed, Secret, make_secret, prepared, read_secret, secret_of_nobody
from tests.support.wire_client import proof_of

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="


def exchange() -> Exchange:
    found = Exchange(make_secret("pencil", SALT), NONCE)
    found.first(FIRST)
    return found


def test_the_example_of_rfc_7677() -> None:
    found = Exchange(make_secret("pencil", SALT), NONCE)
    assert found.first(FIRST) == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert found.final(FINAL) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_secret_is_written_as_postgresql_writes_it() -> None:
    written = (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
        "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )
    assert str(make_secret("pencil", SALT)) == written and read_secret(written) == make_secret("pencil", SALT)
    assert "WG5d" not in repr(make_secret("pencil", SALT))


@pytest.mark.parametrize(
    "text",
    ["", "hunter2", "md5" + "0" * 32, "SCRAM-SHA-256$4096:W22Z$AA==:AA==", "SCRAM-SHA-256$0:AA==$AA==:AA==",
     "SCRAM-SHA-256$99999999:AA==$AA==:AA=="],
)  # fmt: skip
def test_what_is_no_secret_is_none(text: str) -> None:
    assert read_secret(text) is None


@given(st.integers(0, len(FINAL) - 1), st.integers(1, 255))
def test_a_changed_proof_is_refused(at: int, by: int) -> None:
    changed = bytearray(FINAL)
    changed[at] ^= by
    with pytest.raises(Failed):
        exchange().final(bytes(changed))


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_and_nothing_else(data: bytes) -> None:
    with pytest.raises(Failed) as refused:
        exchange().final(data)
    assert refused.value.malformed
    with pytest.raises(Failed):
        Exchange(make_secret("pencil", SALT, 1), NONCE).first(b"p=tls-unique," + data)


@pytest.mark.parametrize(
    "first",
    [b"p=tls-server-end-point,,n=,r=abc", b"n,,n=,r=", b"n,,m=x,n=,r=abc", b"n,,n=,r=abc,m=x", b"x,,n=,r=abc",
     b"n,,n=,r=a\xff", b"n,,n=,r=abc,"],
)  # fmt: skip
def test_a_first_message_of_another_kind_is_refused(first: bytes) -> None:
    with pytest.raises(Failed) as refused:
        Exchange(make_secret("pencil", SALT, 1)).first(first)
    assert refused.value.malformed


@given(
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12),
    st.sampled_from(["n,,", "y,,", "n,a=x,"]),
)
def test_who_knows_the_password_is_let_in_and_knows_the_server(password: str, header: str) -> None:
    secret = make_secret(password, b"salt", 2)
    found = Exchange(secret)
    reply = found.first(f"{header}n=,r=abc".encode()).decode()
    final, expected = proof_of(password, header, "n=,r=abc", reply)
    assert found.final(final) == expected
    other = Exchange(make_secret(password + "x", b"salt", 2))
    reply = other.first(f"{header}n=,r=abc".encode()).decode()
    with pytest.raises(Failed):
        other.final(proof_of(password, header, "n=,r=abc", reply)[0])


def test_two_logins_have_two_nonces() -> None:
    secret = make_secret("pencil", SALT, 1)
    assert Exchange(secret).first(FIRST) != Exchange(secret).first(FIRST)


def test_nobody_has_a_salt_that_stays_and_a_secret_that_fits_nothing() -> None:
    like = make_secret("pencil", SALT, 5000)
    one, again, other = (secret_of_nobody(name, like, b"key") for name in ("eve", "eve", "mallory"))
    assert one.salt == again.salt != other.salt and len(one.salt) == len(SALT) and one.iterations == 5000
    assert one.stored_key != again.stored_key
    assert len(secret_of_nobody("eve", Secret(1, b"x" * 50, b"", b""), b"key").salt) == 50
    assert len(secret_of_nobody("eve", None, b"key").salt) == 16


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [("I\u00adX", "IX"), ("user", "user"), ("\u00aa", "a"), ("\u2168", "IX"), ("\u00a0", " "), ("a\u0007", "a\u0007"),
     ("\u0627\u0031", "\u0627\u0031"), ("\u0627\u0031\u0628", "\u0627\u0031\u0628")],
)  # fmt: skip
def test_passwords_are_prepared_as_rfc_4013_says(given_text: str, expected: str) -> None:
    """What it prohibits, as the last but one, stays as it is."""
    assert prepared(given_text) == expected


def test_the_hash_of_a_secret_is_that_of_the_standard() -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
    assert (
        make_secret("pencil", SALT).stored_key == hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    )
