"""Users and certificates read anew: who is gone or has changed is let go, and what is broken changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpsql.faces.server.people.users import load_users
from dpsql.faces.server.reload import Files, reload
from dpsql.faces.server.wire.scram import make_secret
from tests.support.answering import Answers
from tests.support.served import DATABASE, PASSWORD, Served
from tests.support.wire_client import Client, shape

OTHER = "another long password"


def users(path: Path, **passwords: str) -> None:
    path.write_text(
        "\n".join(["users:", *(f"  {name}: {{secret: '{SECRETS[p]}'}}" for name, p in passwords.items()), ""])
    )


SECRETS = {p: make_secret(p, b"0123456789abcdef", 4096) for p in (PASSWORD, OTHER)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "users.yaml"
    users(found, ana=PASSWORD, ben=PASSWORD, cleo=PASSWORD)
    return found


def test_who_is_gone_or_changed_is_let_go_and_the_others_stay(path: Path) -> None:
    with Served(Answers(), load_users(path)) as served:
        with served.raw() as a, served.raw() as b, served.raw() as c:
            ana, ben, cleo = (Client(x) for x in (a, b, c))
            for name, client in (("ana", ana), ("ben", ben), ("cleo", cleo)):
                client.login(name, PASSWORD)
            users(path, ana=PASSWORD, ben=OTHER)

            async def anew() -> list[str]:
                return reload(served.door, Files(path, {DATABASE: DATABASE}), [served.front])

            (said,) = served.call(anew())
            assert said == "the file of users was read anew: 2 users; changed or gone: ben, cleo"
            for gone in (b, c):
                assert b"57P01" in b"".join(iter(lambda s=gone: s.recv(4096), b""))  # type: ignore[misc]
            assert "C(SELECT 1)" in shape(ana.query("SELECT n"))
        for name, password, kind in (("ben", PASSWORD, "28P01"), ("cleo", PASSWORD, "28P01"), ("ben", OTHER, "ZI")):
            with served.raw() as connection:
                assert kind in shape(Client(connection).login(name, password))


def test_whose_databases_have_changed_is_let_go(path: Path) -> None:
    server = {DATABASE: DATABASE, "market": "market"}
    own = {
        name: f"  {name}: {{secret: '{SECRETS[PASSWORD]}', databases: [{DATABASE}, market]}}" for name in ("ana", "ben")
    }

    def write(**other: str) -> None:
        path.write_text("\n".join(["users:", *(own | other).values(), ""]))

    write()
    with Served(Answers(), load_users(path), databases=server) as served:
        with served.raw() as a, served.raw() as b:
            ana, ben = Client(a), Client(b)
            ana.login("ana", PASSWORD, DATABASE), ben.login("ben", PASSWORD, DATABASE)

            async def anew() -> list[str]:
                return reload(served.door, Files(path, server), [served.front])

            write(ben=own["ben"].replace("market", "nowhere"))
            (said,) = served.call(anew())
            assert "old users stay" in said and "no database 'nowhere'" in said
            assert "C(SELECT 1)" in shape(ben.query("SELECT n"))
            write(ben=own["ben"].replace(f"{DATABASE}, ", ""))
            assert served.call(anew()) == ["the file of users was read anew: 2 users; changed or gone: ben"]
            assert b"57P01" in b"".join(iter(lambda: b.recv(4096), b""))
            assert "C(SELECT 1)" in shape(ana.query("SELECT n"))
        for database, kind in ((DATABASE, "3D000"), ("market", "ZI")):
            with served.raw() as connection:
                assert kind in shape(Client(connection).login("ben", PASSWORD, database))


def test_what_is_broken_changes_nothing(path: Path) -> None:
    with Served(Answers(), load_users(path)) as served:
        before = served.door.users.by_name
        for text in ("users: {ana: {secret: hunter2}}", "\0", "users: {}"):
            path.write_text(text)
            (said,) = reload(served.door, Files(path, {DATABASE: DATABASE}), [served.front])
            assert said.startswith("the file of users is not read anew, and the old users stay: ")
            assert "hunter2" not in said and served.door.users.by_name is before


@pytest.mark.skipif(os.name == "nt", reason="no such rights")
def test_secrets_that_all_can_read_are_told(path: Path) -> None:
    path.chmod(0o640)
    assert not list(Files(path, {DATABASE: DATABASE}).exposed())
    path.chmod(0o644)
    assert [said.endswith(f"chmod o= {path}") for said in Files(path, {DATABASE: DATABASE}).exposed()] == [True]
