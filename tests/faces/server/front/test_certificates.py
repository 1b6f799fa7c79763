"""Certificates of clients: with a password, or instead of it, as the file of users says; and never for another name."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.faces.cli.commands.servers import serve
from dpsql.faces.server.front.listen import tls_context
from dpsql.faces.server.people.users import User, Users
from dpsql.faces.server.reload import Files, reload
from dpsql.faces.server.statements import Login
from tests.support.answering import Answers
from tests.support.served import DATABASE, PASSWORD, Served, people
from tests.support.small_shop import make_shop
from tests.support.wire_client import Client, shape

TLS = Path(__file__).resolve().parents[3] / "fixtures" / "tls"
CLIENTS = TLS / "clients"
"""Each with the common name ana@clinic but ben, and twice, which bears both; stranger is of another authority, lost was
revoked, server is a server's."""
SECRET = people().secret_of("ana")
USERS = Users({
    "alone": User(None, Login("alone", "a"), "ana@clinic"),
    "both": User(SECRET, Login("both", "b"), "ana@clinic"),
    "ben": User(SECRET, Login("ben", "ben")),
})  # fmt: skip


def context(authorities: str = "ca-and-revoked.pem") -> ssl.SSLContext:
    return tls_context(str(TLS / "certificate.pem"), str(TLS / "key.pem"), str(CLIENTS / authorities))


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    plain = tls_context(str(TLS / "certificate.pem"), str(TLS / "key.pem"))
    with Served(Answers(), USERS, tls=plain, wire=context()) as found:
        yield found


def tried(server: Served, name: str, certificate: str, password: str = PASSWORD) -> str:
    """What comes back: the kinds of messages, the code of an error, or that the connection ends in its handshake."""
    with server.raw() as connection:
        client = Client(connection)
        try:
            with client.secure(CLIENTS / f"{certificate}.pem" if certificate else None):
                found = client.login(name, password)
        except (ssl.SSLError, EOFError, ConnectionError):
            return "no handshake"
        return found[-1].fields["C"] if found[-1].kind == "E" else shape(found)


def test_a_certificate_is_enough_where_no_password_is_wanted(server: Served) -> None:
    before = len(server.log.events)
    assert tried(server, "alone", "ana", "") == "R K ZI"
    assert (server.log.events[before].what, server.log.events[before].name) == ("login", "alone")
    for wrong in ("", "ben", "twice"):
        assert tried(server, "alone", wrong) == "28P01"


def test_both_are_wanted_where_both_are_given(server: Served) -> None:
    assert tried(server, "both", "ana").endswith("ZI")
    assert tried(server, "both", "ana", "wrong wrong") == "28P01"
    for wrong in ("", "ben", "twice"):
        assert tried(server, "both", wrong) == "28P01"
    assert USERS.login("both") is None  # so the consoles, which see none, let nobody in by the password alone


def test_a_certificate_says_nothing_for_those_who_need_none(server: Served) -> None:
    for certificate in ("", "ana", "ben"):
        assert tried(server, "ben", certificate).endswith("ZI")
    assert tried(server, "ben", "ben", "wrong wrong") == "28P01"
    assert tried(server, "nobody", "ana") == "28P01"


@pytest.mark.parametrize("certificate", ["stranger", "lost", "server"])
def test_what_the_authority_does_not_vouch_for_ends_the_handshake(server: Served, certificate: str) -> None:
    for name in ("alone", "ben"):
        assert tried(server, name, certificate) == "no handshake"


def test_without_tls_there_is_no_certificate(server: Served) -> None:
    with server.raw() as connection:
        assert Client(connection).login("alone", PASSWORD)[-1].fields["C"] == "28P01"
    with server.raw() as connection:
        assert Client(connection).login("both", PASSWORD)[-1].fields["C"] == "28P01"


def test_who_needs_none_is_not_told_from_who_is_not_there(server: Served) -> None:
    """A name whose certificate was not shown is asked for a password, as an unknown one is."""

    def demand(name: str) -> tuple[list[str], str]:
        with server.raw() as connection:
            client = Client(connection)
            with client.secure():
                client.login(name, "wrong wrong wrong")
        said = client.replies[1].body[4:].decode().split(",")
        return [r.kind for r in client.replies], said[2]

    assert demand("alone") == demand("nobody")


def test_what_is_no_authority(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("")
    only_revoked = tmp_path / "revoked.pem"
    text = (CLIENTS / "ca-and-revoked.pem").read_text()
    only_revoked.write_text(text[text.index("-----BEGIN X509 CRL") :])
    for file in (nothing, only_revoked, tmp_path / "missing.pem", CLIENTS / "ben.pem"):
        with pytest.raises(Rejected, match="authorities of clients' certificates cannot be read"):
            context(str(file))
    assert context("ca.pem").verify_mode == ssl.CERT_OPTIONAL


@pytest.mark.parametrize("ca", [None, str(CLIENTS / "ca.pem")])
def test_a_server_that_could_verify_none_does_not_start(tmp_path: Path, ca: str | None) -> None:
    shop = make_shop(tmp_path / "shop")
    shop.policy.with_name("users.yaml").write_text("users: {ana: {certificate: ana@clinic}}")
    said = "no authority is named" if ca is None else "under TLS alone"
    with pytest.raises(Rejected, match=said):
        serve.run([str(shop.policy)], None, "127.0.0.1", 0, None, None, ca, None, (), None, None, None, "none")


def test_files_that_are_read_anew_are_believed_alone(tmp_path: Path) -> None:
    """What an authority has revoked since, and an authority that is another now; each with its connection as before."""
    given = tmp_path / "ca.pem"
    (tmp_path / "users.yaml").write_text("users: {alone: {certificate: ana@clinic}}")
    files = Files(
        tmp_path / "users.yaml", {DATABASE: DATABASE}, str(TLS / "certificate.pem"), str(TLS / "key.pem"), str(given)
    )
    given.write_bytes((CLIENTS / "ca.pem").read_bytes())
    with Served(Answers(), files.read_users(), tls=files.tls(), wire=files.wire()) as server:

        async def anew() -> list[str]:
            return reload(server.door, files, [server.front])

        assert [tried(server, "alone", each, "") for each in ("ana", "lost")] == ["R K ZI", "R K ZI"]
        given.write_bytes((CLIENTS / "ca-and-revoked.pem").read_bytes())
        assert any("read anew" in line for line in server.call(anew()))
        assert [tried(server, "alone", each, "") for each in ("ana", "lost")] == ["R K ZI", "no handshake"]
        given.write_bytes((TLS / "certificate.pem").read_bytes())
        server.call(anew())
        assert tried(server, "alone", "ana", "") == "no handshake"
