"""Several databases of one server: who may ask which, that none is named before, and that each is asked by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.server.databases import Database, Databases, NoDatabase, require_distinct
from dpsql.faces.server.statements import Login, StatementSettings
from dpsql.policy.load import load_policy
from tests.support.answering import Answers
from tests.support.served import NAME, PASSWORD, Served, people
from tests.support.wire_client import Client, rows, shape

NAMES = {"clinic": "clinic", "shop": "shop", "clinic_made_up": "clinic"}
BOTH = replace(Login(NAME, NAME), databases=("clinic", "shop", "clinic_made_up"))
LOGINS = {
    NAME: Login(NAME, NAME, databases=("clinic", "shop")),
    "ben": Login("ben", "ben", databases=("shop",)),
    "student": Login("student", "student", databases=("clinic_made_up",)),
}


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Databases:
    place = tmp_path_factory.mktemp("policies") / "p.yaml"
    place.write_text("version: 1\nname: clinic\ntables: {icd10: {public: true}}\n")
    policy = load_policy(place)
    return Databases([Database(replace(policy, name=n), Answers(), n != own) for n, own in NAMES.items()])


@pytest.fixture
def served(databases: Databases) -> Iterator[Served]:
    with Served(databases, people(**LOGINS), databases=NAMES) as found:
        yield found


def asked(databases: Databases, name: str) -> list[str]:
    answering = databases.by_name[name].answering
    assert isinstance(answering, Answers)
    return [sql for _, sql, *_ in answering.asked]


def tried(served: Served, name: str, database: str, password: str = PASSWORD) -> dict[str, str]:
    """The error that a login ends with; {} if it is let in."""
    with served.raw() as connection:
        last = Client(connection).login(name, password, database)[-1]
        return last.fields if last.kind == "E" else {}


def test_a_login_asks_the_database_that_it_is_in(served: Served, databases: Databases) -> None:
    for name in ("clinic", "shop"):
        with served.raw() as connection:
            client = Client(connection)
            assert client.login(NAME, PASSWORD, name)[-1].kind == "Z"
            assert rows(client.query(f"SELECT n FROM numbers(1) WHERE x = {len(name)}")) == [("42",)]
            assert shape(client.query(f"SELECT n FROM {name}_alone")) == "E(42P01) ZI"
    assert [sql[-1] for sql in asked(databases, "clinic")] == ["6"] and len(asked(databases, "shop")) == 1
    told = [(e.what, e.database) for e in served.log.events]
    assert told.count(("statement", "clinic")) == told.count(("statement", "shop")) == 2
    assert {("login", "clinic"), ("login", "shop"), ("end", "clinic")} <= set(told)


def test_databases_of_others_are_not_there(served: Served) -> None:
    others, nobodys = tried(served, "ben", "clinic"), tried(served, "ben", "clinik")
    assert others["C"] == nobodys["C"] == "3D000"
    assert others["M"].replace("clinic", "X") == nobodys["M"].replace("clinik", "X")
    assert others["H"] == nobodys["H"] == "connect to  shop"
    refused = [e for e in served.log.events if e.outcome == "3D000"]
    assert [(e.what, e.name, e.database) for e in refused][-1] == ("refused login", "ben", "clinik")


def test_before_the_login_no_database_is_named(served: Served) -> None:
    assert tried(served, NAME, "clinic", "wrong wrong") == tried(served, NAME, "nowhere", "wrong wrong")
    assert tried(served, NAME, "nowhere", "wrong wrong")["C"] == "28P01"


def test_who_may_ask_a_database_may_ask_what_is_made_up_of_it(served: Served) -> None:
    assert tried(served, NAME, "clinic_made_up") == {} == tried(served, "student", "clinic_made_up")
    assert tried(served, "student", "clinic")["H"] == "connect to  clinic_made_up"
    assert tried(served, "ben", "clinic_made_up")["C"] == "3D000"


def test_where_a_tool_says_no_database(databases: Databases) -> None:
    one = replace(BOTH, databases=("clinic", "clinic_made_up"))
    assert databases.entered(one, "").database == "clinic" == databases.entered(BOTH, "", first=True).database
    assert databases.entered(replace(one, databases=("clinic_made_up",)), "").database == "clinic_made_up"
    for login, name in ((BOTH, ""), (one, "shop"), (Login("eve", "eve"), "")):
        with pytest.raises(NoDatabase) as wrong:
            databases.entered(login, name)
        assert wrong.value.known == login.databases
    with pytest.raises(KeyError):
        asyncio.run(databases.describe(Login(NAME, NAME), "SELECT n", StatementSettings()))


def test_two_databases_of_one_name_are_refused() -> None:
    require_distinct(["clinic", "Clinic", "shop"], "")
    with pytest.raises(CannotOpen, match="would be called 'shop'"):
        require_distinct(["clinic", "shop", "shop"], "name:  in one of the policies")
