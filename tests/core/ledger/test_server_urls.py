"""URLs of databases on servers in policies and options: which they are, whether they tell a password, and where a
gateway keeps its head. Neither a client nor a server is needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dpsql.core.policy.policy import default_head_path
from dpsql.core.policy.server_address import ServerError, names_server, parse_server
from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.cli.main import main
from dpsql.policy.load import load_policy
from dpsql.service.accounts.ledgers import LedgerPlace, ServerPlace, place_of, shown

POLICY = """\
version: 1
name: clinic
database: clinic.duckdb
ledger: LEDGER
budgets: {total: {epsilon: 1}}
tables:
  t: {unit: {column: id}, max_rows_per_unit: 1, columns: {id: {type: bigint}}}
"""
URL = "postgresql://gateway@db.internal/spent"
SECRETS = (
    "postgresql://u:SECRET@h/db",
    "postgresql://u:@h/db",
    "postgres://u:SECRET@h1:1,h2:2/db",
    "postgresql://u:SECRET@[::1]:5432/db?sslmode=require",
    "postgresql://u:SEC%2FRET@h",
    "postgresql://u:SEC@RET@h",
    "postgresql://h/db?password=SECRET",
    "postgresql://h/db?sslmode=require&password=SECRET",
    "postgresql://h?password=SECRET",
    "postgresql://?password=SECRET",
    "postgresql:///?pass%77ord=SECRET",
    "postgresql:///?PASSWORD=SECRET",
    "postgresql:///?sslpassword=SECRET",
    "postgresql://h?application_name=u:SECRET@h2",
    "postgresql://u:SECRET/SECRET@h/db",
    "postgresql://u:SECRET?SECRET@h/db",
    "postgresql://u:SECRET/S?SECRET@h/db",
    "postgresql://u@x:SECRET@h/db",
)
OPEN = (
    URL,
    "postgresql://",
    "postgresql:///?service=spent",
    "postgresql:///spent?host=/run/postgresql",
    "postgresql://u@h:5432/db",
    "postgresql://[::1]:5432/db",
    "postgresql://h1:5432,h2:5433/db?target_session_attrs=read-write",
    "postgresql://u@h:5432/db?passfile=/etc/dpsql/pgpass&application_name=a:b%40c",
    "postgresql://u@h/db@other",
)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


def written(policy: Path, ledger: str) -> Path:
    policy.write_text(POLICY.replace("LEDGER", json.dumps(ledger)))
    return policy


@pytest.mark.parametrize("url", SECRETS)
def test_a_policy_with_a_password_is_refused_and_does_not_show_it(
    policy: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ServerError):
        parse_server(url)
    with pytest.raises(CannotOpen) as refusal:
        load_policy(written(policy, url))
    (diagnostic,) = refusal.value.diagnostics
    assert diagnostic.code == "DP003" and "ledger" in diagnostic.message and "password" in diagnostic.message
    assert any(".pgpass" in text for text in diagnostic.help) and any("service" in text for text in diagnostic.help)
    for command in (["policy", "show", str(policy)], ["policy", "audit", str(policy)], ["budget", str(policy)]):
        assert main(command) != 0
        told = capsys.readouterr()
        assert "password" in told.out + told.err
        assert not any(part in told.out + told.err for part in ("SECRET", "SEC%2F", "SEC@"))


@pytest.mark.parametrize("url", SECRETS)
def test_nor_is_a_named_one_shown(policy: Path, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    written(policy, "l.sqlite")
    assert main(["budget", str(policy), "--ledger", url]) == 2
    told = capsys.readouterr()
    assert "password" in told.err and not any(part in told.out + told.err for part in ("SECRET", "SEC%2F", "SEC@"))
    with pytest.raises(CannotOpen):
        place_of(load_policy(policy), url)


@pytest.mark.parametrize("url", OPEN)
def test_a_url_without_a_password_is_a_place(policy: Path, url: str) -> None:
    assert names_server(url) and parse_server(f" {url} ").text == url
    loaded = load_policy(written(policy, url))
    assert loaded.ledger_url == url and loaded.ledger_path is None
    place = place_of(loaded)
    assert place == place_of(loaded, url) == ServerPlace(url, default_head_path(url, "clinic"))
    assert shown(place) == url


def test_the_head_is_where_the_policy_says_for_its_own_ledger_alone(policy: Path) -> None:
    loaded = load_policy(written(policy, URL))
    policy.write_text(policy.read_text() + "ledger_head: state/head\n")
    stated = load_policy(policy)
    assert place_of(stated) == place_of(stated, URL) == ServerPlace(URL, policy.parent / "state" / "head")
    other = f"{URL}2"
    assert place_of(stated, other) == ServerPlace(other, default_head_path(other, "clinic"))
    assert place_of(stated, "l.sqlite") == LedgerPlace(Path("l.sqlite"), default_head_path(Path("l.sqlite"), "clinic"))
    assert len({default_head_path(url, "clinic") for url in OPEN}) == len(OPEN)
    assert place_of(loaded) != place_of(stated)


def test_what_only_looks_like_a_url_is_a_file(policy: Path) -> None:
    for name in ("postgresql:/x", "postgresql", "./postgresql://x"):
        assert not names_server(name)
        place = place_of(load_policy(written(policy, name)))
        assert isinstance(place, LedgerPlace) and place.path.is_absolute()


def test_checking_and_showing_need_no_client(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    written(policy, URL)
    assert main(["policy", "audit", str(policy)]) == 0
    assert main(["policy", "show", str(policy)]) == 0
    query = policy.with_name("q.sql")
    query.write_text("SELECT COUNT(*) FROM t;")
    assert main(["check", str(query), "--policy", str(policy)]) == 0


def test_without_the_client_the_budget_says_what_to_install(
    policy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert main(["budget", str(written(policy, URL))]) == 2
    assert "pip install 'dpsql[postgres]'" in capsys.readouterr().err
