"""Logins: whoever knows the secret is let in under the name's account, and nobody is told which names there are."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from dpsql.faces.server.front.listen import ConnectionLimits
from dpsql.faces.server.front.patience import FREE
from dpsql.faces.server.statements import AuditEvent, Login, StatementSettings
from tests.faces.server.front.test_opening import TLS
from tests.support.answering import Answers
from tests.support.served import DATABASE, NAME, PASSWORD, Served, people
from tests.support.wire_client import Client, Reply, packet, rows, shape, startup


def tried(served: Served, name: str, password: str, **more: str) -> list[Reply]:
    with served.raw() as connection:
        return Client(connection).login(name, password, **more)


def test_a_login_is_told_what_holds(client: Client) -> None:
    assert client.status["server_encoding"] == "UTF8" and client.status["session_authorization"] == NAME
    assert client.status["default_transaction_read_only"] == "on" and len(client.key) == 8


def test_the_account_is_that_of_the_file() -> None:
    bi = Login("powerbi", "dashboards", kind="bi", defaults=StatementSettings(epsilon="0.1", delta="1e-9"))
    with Served(Answers(), people(powerbi=bi)) as served, served.raw() as connection:
        client = Client(connection)
        client.login("powerbi", PASSWORD, options="-c epsilon=0.2")
        client.query("SELECT n; RESET epsilon; SELECT n; SET epsilon = 3; DISCARD ALL; SELECT n")
        assert isinstance(served.answering, Answers)
        asked = served.answering.asked
    assert {login for login, *_ in asked} == {
        replace(bi, address="127.0.0.1", databases=(DATABASE,), database=DATABASE)
    }
    assert [settings.epsilon for *_, settings in asked] == ["0.2"] * 3
    assert {settings.delta for *_, settings in asked} == {"1e-9"}


def test_a_wrong_password_and_an_unknown_name_are_answered_alike(served: Served) -> None:
    def conversation(name: str) -> tuple[list[str], list[str]]:
        with served.raw() as connection:
            client = Client(connection)
            replies = client.login(name, "wrong wrong wrong")
            said = client.replies[1].body[4:].decode().split(",")
        assert [sorted(r.fields) for r in replies] == [["C", "M", "S", "V"]]
        return [r.kind for r in client.replies], [replies[0].fields["C"], said[2], str(len(said[0])), said[1]]

    (known, wrong), (unknown, nobody) = conversation(NAME), conversation("eve")
    assert known == unknown == ["R", "R", "E"] and wrong[:3] == nobody[:3] and wrong[0] == "28P01"
    assert conversation("eve")[1][3] == nobody[3] != conversation("mallory")[1][3]
    assert {e.what for e in served.log.events} == {"refused login"}


def test_an_unknown_name_is_not_let_in_with_a_password_that_somebody_has(served: Served) -> None:
    assert tried(served, "eve", PASSWORD)[0].fields["C"] == "28P01"
    assert tried(served, NAME.upper(), PASSWORD)[0].fields["C"] == "28P01"


def test_failures_wait_before_they_are_judged(served: Served) -> None:
    for _ in range(FREE):
        tried(served, NAME, "wrong wrong wrong")
    assert served.waits == []
    tried(served, NAME, "wrong wrong wrong")
    assert shape(tried(served, NAME, PASSWORD)).endswith("ZI")
    assert served.waits == [1, 2]
    tried(served, NAME, "wrong wrong wrong")
    assert served.waits == [1, 2]


@pytest.mark.parametrize(
    ("more", "sqlstate"),
    [({"database": "other"}, "3D000"), ({"options": "-x"}, "42601"), ({"options": "-c epsilon=0"}, "22023"),
     ({"options": "-c role=bob"}, "42501"), ({"account": "bob"}, "42501"), ({"no_such": "1"}, "42704"),
     ({"client_encoding": "LATIN1"}, "22023"), ({"replication": "database"}, "0A000")],
)  # fmt: skip
def test_what_a_connection_may_not_begin_with(served: Served, more: dict[str, str], sqlstate: str) -> None:
    (error,) = [r for r in tried(served, NAME, PASSWORD, **more) if r.kind == "E"]
    assert error.fields["C"] == sqlstate and error.fields["S"] == "FATAL"
    assert [(e.what, e.outcome) for e in served.log.events] == [("refused login", sqlstate)]


def test_who_has_too_many_connections_is_noted_as_refused() -> None:
    with Served(Answers(), limits=ConnectionLimits(of_one_user=1)) as served, served.raw() as connection:
        Client(connection).login(NAME, PASSWORD)
        assert tried(served, NAME, PASSWORD)[-1].fields["C"] == "53300"
        assert [(e.what, e.outcome) for e in served.log.events] == [("login", "ok"), ("refused login", "53300")]


def test_nobody_is_let_in_where_that_cannot_be_noted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(event: AuditEvent) -> None:
        raise OSError

    monkeypatch.setattr(served.log, "record", full)
    assert tried(served, NAME, PASSWORD)[-1].fields["C"] == "58030"


def test_where_tls_is_required_nobody_comes_without_it() -> None:
    with Served(Answers(), tls=TLS, tls_only=True) as served:
        assert tried(served, NAME, PASSWORD)[-1].fields["C"] == "28000"


def test_what_drivers_begin_with_is_accepted(served: Served) -> None:
    with served.raw() as connection:
        client = Client(connection)
        client.login(
            NAME, PASSWORD, application_name="x", client_encoding="UTF8", DateStyle="ISO", TimeZone="Europe/Berlin",
            extra_float_digits="2", **{"dpsql.epsilon": "0.5"},
        )  # fmt: skip
        assert client.status["application_name"] == "x" and rows(client.query("SHOW epsilon")) == [("0.5",)]


def test_newer_minor_versions_are_negotiated(served: Served) -> None:
    with served.raw() as connection:
        client = Client(connection)
        client.send(startup(3 << 16 | 2, user=NAME, database="clinic", **{"_pq_.fast": "1"}))
        assert client.receive().body == struct.pack("!II", 0, 1) + b"_pq_.fast\0"
        assert shape(client.prove(PASSWORD)).endswith("ZI")


def test_no_name_is_no_login(served: Served) -> None:
    with served.raw() as connection:
        client = Client(connection)
        client.send(startup(database="clinic"))
        assert client.receive().fields["C"] == "28000"


@pytest.mark.parametrize(
    "message",
    [b"", b"SCRAM-SHA-256", b"SCRAM-SHA-256\0\0\0\0\x0an,,n=,r=a", b"SCRAM-SHA-256-PLUS\0\0\0\0\x0bn,,n=,r=abc",
     b"SCRAM-SHA-256\0\0\0\0\x04p=x,", b"correct horse battery\0"],
)  # fmt: skip
def test_what_is_no_scram_is_refused(served: Served, message: bytes) -> None:
    with served.raw() as connection:
        client = Client(connection)
        client.send(startup(user=NAME, database="clinic"))
        client.receive()
        client.send(packet(b"p", message))
        assert client.receive().fields["C"] == "08P01"
    assert served.log.events[-1].what == "refused login"


def test_the_log_says_who_came_from_where_and_nothing_else(client: Client, served: Served) -> None:
    client.query("SELECT n; SELECT x FROM nowhere")
    login, statement, refused = served.log.events
    assert (login.what, login.name, login.address) == ("login", NAME, "127.0.0.1")
    assert (statement.statement, statement.outcome, statement.price, statement.entry) == (
        "SELECT n",
        "ok",
        "ε 0.5",
        "id",
    )
    assert (refused.statement.strip(), refused.outcome) == ("SELECT x FROM nowhere", "DP102")
