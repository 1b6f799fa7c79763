"""The file of users: what it says, every mistake in it, and no secret in any message."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.faces.cli.main import main
from dpsql.faces.server.people.lines import lines_for
from dpsql.faces.server.people.users import _Ceilings, _Defaults, _User, load_users, parse_users
from dpsql.faces.server.statements import Ceilings, StatementSettings
from dpsql.faces.server.wire.scram import make_secret

SECRET = str(make_secret("correct horse battery", b"0123456789abcdef", 4096))

WHOLE = f"""
users:
  ana:
    secret: {SECRET}
    defaults: {{epsilon: 0.1, delta: 1e-9}}
    ceilings: {{per_query: {{epsilon: 0.5}}, per_day: {{epsilon: 2}}}}
  powerbi:
    secret: {SECRET}
    account: dashboards
    kind: bi
  carl: {{secret: "{SECRET}", role: custodian}}
"""


def test_everything_that_may_be_said() -> None:
    users = parse_users(WHOLE)
    ana, powerbi, carl = (users.login(name) for name in ("ana", "powerbi", "carl"))
    assert ana is not None and powerbi is not None and carl is not None
    assert (ana.account, ana.role, ana.kind) == ("ana", "analyst", "person")
    assert ana.defaults == StatementSettings(epsilon="0.1", delta="1e-9")
    assert ana.ceilings == Ceilings("0.5", None, "2")
    assert (powerbi.account, powerbi.kind, carl.role) == ("dashboards", "bi", "custodian")
    assert str(users.secret_of("ana")) == SECRET
    assert users.login("eve") is None and users.login("Ana") is None


def test_nobody_has_a_secret_that_depends_on_the_file() -> None:
    one, other = (
        parse_users(WHOLE),
        parse_users(WHOLE.replace(SECRET, str(make_secret("another one", iterations=5000)))),
    )
    assert one.secret_of("eve").salt == one.secret_of("eve").salt != other.secret_of("eve").salt
    assert other.secret_of("eve").iterations == 5000


BAD = {
    "users: {ana: {secret: hunter2pass}}": "secret is no secret as PostgreSQL writes it",
    "users: {ana: {password: hunter2pass}}": "is not a key of a file of users",
    "users: {ana: {}}": "secret is missing",
    "users: {}": "users names nobody",
    "users: [ana]": "must be a mapping",
    "people: {}": "is not a key of a file of users",
    f"users: {{ana: {{secret: '{SECRET}', role: admin}}}}": "role",
    f"users: {{ana: {{secret: '{SECRET}', kind: robot}}}}": "kind",
    f"users: {{ana: {{secret: '{SECRET}', defaults: {{epsilon: 0}}}}}}": "epsilon must be a number above 0",
    f"users: {{ana: {{secret: '{SECRET}', defaults: {{epsilon: 1, rho: 1}}}}}}": "give epsilon and rho",
    f"users: {{ana: {{secret: '{SECRET}', ceilings: {{per_day: {{delta: 1}}}}}}}}": "epsilon is missing",
    f"users: {{ana: {{secret: '{SECRET}', ceilings: {{per_week: {{epsilon: 1}}}}}}}}": "per_week is not a key",
    f"users: {{'{'x' * 64}': {{secret: '{SECRET}'}}}}": "at most 63 bytes",
}


@pytest.mark.parametrize("text", BAD)
def test_mistakes_are_refused_and_secrets_not_shown(text: str) -> None:
    with pytest.raises(CannotOpen) as refused:
        parse_users(text)
    assert BAD[text] in " ".join(d.message for d in refused.value.diagnostics)
    assert {d.code for d in refused.value.diagnostics} == {"DP009"}
    assert "hunter2pass" not in str(refused.value) and SECRET not in str(refused.value)
    assert "<users>:1: " in str(refused.value)


@pytest.mark.parametrize("text", ["users: {ana: {secret: 'hunter2pass}}", "users: !x hunter2pass", "a: b: hunter2pass"])
def test_what_is_no_yaml_is_not_shown_either(text: str) -> None:
    with pytest.raises(CannotOpen) as refused:
        parse_users(text)
    assert "hunter2pass" not in str(refused.value)


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(CannotOpen) as refused:
        parse_users(f"users:\n  a: {{secret: x}}\n  b: {{secret: '{SECRET}', nonsense: 1}}\n")
    assert len(refused.value.diagnostics) == 2


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "missing.yaml", tmp_path, tmp_path / "bytes"):
        with pytest.raises(CannotOpen) as refused:
            load_users(path)
        assert refused.value.diagnostics[0].code == "DP009"


def test_lines_of_a_new_user_are_read_again(tmp_path: Path) -> None:
    for name in ("ana", "o'brien", "1", "null", "a: b", "é"):
        lines = lines_for(name, "correct horse battery", "the account", "custodian", "bi")
        (tmp_path / "users.yaml").write_text(f"users:\n{lines}\n", encoding="utf-8")
        try:
            login = load_users(tmp_path / "users.yaml").login(name)
        except CannotOpen as refused:
            assert "account" in refused.diagnostics[0].message  # a policy's names have no spaces
            continue
        assert login is not None
    lines = lines_for("ana", "correct horse battery", "b")
    assert "correct" not in lines and (login := parse_users(f"users:\n{lines}").login("ana")) is not None
    assert login.account == "b"


@pytest.mark.parametrize(("name", "password"), [("", "long enough"), ("a\nb", "long enough"), ("x" * 64, "long enough"),
                                                ("ana", "short"), ("ana", "nul\0nul\0nul")])  # fmt: skip
def test_what_cannot_be_a_user_is_refused(name: str, password: str) -> None:
    with pytest.raises(Rejected):
        lines_for(name, password)


def test_the_command_reads_a_password_and_prints_a_secret(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
    assert main(["user", "add", "ana", "--role", "custodian"]) == 0
    printed = capsys.readouterr().out
    assert "horse" not in printed
    (tmp_path / "users.yaml").write_text(f"users:\n{printed}", encoding="utf-8")
    assert main(["user", "check", str(tmp_path / "users.yaml")]) == 0
    assert "ana: custodian, account ana" in capsys.readouterr().out
    assert main(["user", "check", str(tmp_path / "none.yaml")]) == 2
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    assert main(["user", "add", "ana"]) == 1


def users_of(**databases: str) -> str:
    return "users:\n" + "".join(f"  {n}: {{secret: '{SECRET}'{more}}}\n" for n, more in databases.items())


def test_a_server_of_one_policy_is_open_to_who_names_no_database() -> None:
    users = parse_users(users_of(ana="")).admitted({"clinic": "clinic", "clinic_made_up": "clinic"})
    assert users.by_name["ana"].login.databases == ("clinic", "clinic_made_up")


def test_databases_are_given_by_name() -> None:
    server = {"clinic": "clinic", "shop": "shop", "shop_made_up": "shop"}
    text = users_of(ana=", databases: [shop]", ben=", databases: [shop_made_up, clinic]")
    assert 'databases: [shop, "a b"]' in lines_for("ana", "long enough", databases=["shop", "a b"])
    users = parse_users(text).admitted(server)
    assert [u.login.databases for u in users.by_name.values()] == [("shop", "shop_made_up"), ("clinic", "shop_made_up")]
    with pytest.raises(CannotOpen) as refusal:
        parse_users(users_of(ana="", ben=", databases: [shopp]")).admitted(server)
    assert [d.code for d in refusal.value.diagnostics] == ["DP009", "DP009"]
    assert "users.ana.databases is missing" in str(refusal.value) and "did you mean `shop`?" in str(refusal.value)
    for wrong in ("shop", "[]", "[1]", "{}"):
        with pytest.raises(CannotOpen, match="must be a list of databases"):
            parse_users(users_of(ana=f", databases: {wrong}"))


def test_a_check_tells_all_that_a_login_may(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "users.yaml"
    path.write_text(WHOLE.replace("kind: bi", "kind: bi\n    may: [summaries]"))
    assert main(["user", "check", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "ana: analyst, account ana; defaults ε 0.1 δ 1e-9; at most ε 0.5 a query, ε 2 a day",
        "powerbi: analyst, account dashboards; kind bi; may make summaries",
        "carl: custodian, account carl",
    ]


def test_the_reference_has_every_key() -> None:
    """Keys of the tables of the page are those of the parser, and no others."""
    page = (Path(__file__).parents[4] / "docs" / "reference" / "users.md").read_text(encoding="utf-8")
    told = {found for line in page.splitlines() if line.startswith("| `") for found in re.findall(r"`([a-z_]+):", line)}
    known = {key for model in (_User, _Defaults, _Ceilings) for key in model.model_fields}
    assert told == known
    example = page.split("```yaml")[1].split("\n", 1)[1].split("```")[0]
    assert parse_users(example.replace("SCRAM-SHA-256$4096:…", SECRET)).login("powerbi") is not None


def test_a_new_file_begins_with_users_and_others_go_on(tmp_path: Path) -> None:
    file = tmp_path / "users.yaml"
    for name in ("ana", "carl"):
        with file.open("a", encoding="utf-8") as out:
            added = [sys.executable, "-m", "dpsql", "user", "add", name]
            subprocess.run(added, input=b"correct horse\n", stdout=out, check=True)
    assert set(load_users(str(file)).by_name) == {"ana", "carl"}
