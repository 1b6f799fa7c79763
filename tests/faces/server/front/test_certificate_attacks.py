"""Certificates that an attacker could have, of an authority of the test's own: names that resemble, chains, times."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpsql.faces.server.front.listen import tls_context
from dpsql.faces.server.people.users import User, Users
from dpsql.faces.server.statements import Login
from tests.faces.server.front.test_certificates import TLS
from tests.support.answering import Answers
from tests.support.served import Served
from tests.support.wire_client import Client

pytest.importorskip("cryptography")
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAME = "ana@clinic"
NOW = dt.datetime.now(dt.UTC)
Signed = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def signed(
    name: x509.Name, by: Signed | None, *, is_authority: bool = False, days: tuple[int, int] = (-1, 30),
    usage: Any = ExtendedKeyUsageOID.CLIENT_AUTH, alternative: str = "",
) -> Signed:  # fmt: skip
    """A certificate and its key. by: who signs it; None: itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer, signer = (name, key) if by is None else (by[0].subject, by[1])
    builder = (
        x509.CertificateBuilder(issuer, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(NOW + dt.timedelta(days=days[0]))
        .not_valid_after(NOW + dt.timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if not is_authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    if alternative:
        names = x509.SubjectAlternativeName([x509.DNSName("clinic"), x509.RFC822Name(alternative)])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer, hashes.SHA256()), key


def named(*names: str, kind: x509.ObjectIdentifier = NameOID.COMMON_NAME) -> x509.Name:
    return x509.Name([x509.NameAttribute(kind, name) for name in names])


def written(path: Path, one: Signed, *chain: Signed) -> Path:
    parts = [each[0].public_bytes(serialization.Encoding.PEM) for each in (one, *chain)]
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    parts.append(one[1].private_bytes(serialization.Encoding.PEM, *form))
    path.write_bytes(b"".join(parts))
    return path


class Town:
    """A server that believes one authority, and those who try."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = signed(named("authority"), None, is_authority=True)
        written(folder / "ca.pem", self.authority)

    def served(self) -> Served:
        pair = str(TLS / "certificate.pem"), str(TLS / "key.pem")
        users = Users({"ana": User(None, Login("ana", "ana"), NAME)})
        return Served(Answers(), users, tls=tls_context(*pair), wire=tls_context(*pair, str(self.folder / "ca.pem")))

    def tried(self, server: Served, one: Signed, *chain: Signed) -> bool:
        """Whether somebody is let in as ana."""
        with server.raw() as connection:
            client = Client(connection)
            try:
                with client.secure(written(self.folder / "own.pem", one, *chain)):
                    return client.login("ana", "no password of hers")[-1].kind == "Z"
            except (ssl.SSLError, EOFError, ConnectionError):
                return False


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Town, Served]]:
    found = Town(tmp_path_factory.mktemp("town"))
    with found.served() as server:
        yield found, server


def of_another_client(town: Town) -> tuple[Signed, ...]:
    """Ben, whom the authority vouches for, signs a certificate for ana himself."""
    ben = signed(named("ben@clinic"), town.authority)
    return signed(named(NAME), ben), ben


def of_a_namesake(town: Town) -> tuple[Signed, ...]:
    """An authority of the same name, whose key is another."""
    other = signed(named("authority"), None, is_authority=True)
    return signed(named(NAME), other), other


ATTACKS: dict[str, Callable[[Town], tuple[Signed, ...]]] = {
    "another name": lambda t: (signed(named("ben@clinic"), t.authority),),
    "capitals": lambda t: (signed(named("ANA@CLINIC"), t.authority),),
    "a space behind": lambda t: (signed(named(f"{NAME} "), t.authority),),
    "a letter that looks alike": lambda t: (signed(named("аna@clinic"), t.authority),),
    "a name that goes on": lambda t: (signed(named(f"{NAME}\0.evil.example"), t.authority),),
    "a name within a name": lambda t: (signed(named(f"x/CN={NAME}"), t.authority),),
    "two names": lambda t: (signed(named("ben@clinic", NAME), t.authority),),
    "two names, the right one first": lambda t: (signed(named(NAME, "ben@clinic"), t.authority),),
    "an alternative name": lambda t: (signed(named("ben@clinic"), t.authority, alternative=NAME),),
    "an organization": lambda t: (signed(named(NAME, kind=NameOID.ORGANIZATION_NAME), t.authority),),
    "no name": lambda t: (signed(x509.Name([]), t.authority),),
    "over": lambda t: (signed(named(NAME), t.authority, days=(-30, -1)),),
    "not yet": lambda t: (signed(named(NAME), t.authority, days=(1, 30)),),
    "for servers": lambda t: (signed(named(NAME), t.authority, usage=ExtendedKeyUsageOID.SERVER_AUTH),),
    "for mail": lambda t: (signed(named(NAME), t.authority, usage=ExtendedKeyUsageOID.EMAIL_PROTECTION),),
    "by nobody": lambda t: (signed(named(NAME), None),),
    "by another client": of_another_client,
    "by a namesake": of_a_namesake,
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_nobody_is_let_in_by_a_certificate_that_is_not_hers(town: tuple[Town, Served], attack: str) -> None:
    own, server = town
    assert not own.tried(server, *ATTACKS[attack](own))


def test_ana_is_also_where_an_authority_between_vouches_for_her(town: tuple[Town, Served]) -> None:
    """Else the attacks would be refused for something else."""
    own, server = town
    assert own.tried(server, signed(named(NAME), own.authority))
    between = signed(named("department"), own.authority, is_authority=True)
    assert own.tried(server, signed(named(NAME), between), between)
