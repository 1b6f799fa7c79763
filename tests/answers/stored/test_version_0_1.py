"""What dpsql 0.1 left behind: its ledgers open and keep their spending; what it answered is no answer to a new rule.

version_0_1/README.md says how the files were made.
"""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.answers.stored.store.sqlite import SqliteAnswers
from dpsql.core.ledger.ledger import Account
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.faces.cli.main import main
from tests.answers.stored.version_0_1 import make

MADE: dict[str, Any] = json.loads((make.HERE / "made.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Old:
    """A copy of one ledger with its answers, its policy and its data."""

    accountant: str
    folder: Path

    @property
    def made(self) -> dict[str, Any]:
        """What 0.1 said of it."""
        found: dict[str, Any] = MADE[self.accountant]
        return found

    @property
    def account(self) -> make.Account:
        return make.ACCOUNTS[self.accountant]

    def open(self) -> SqliteLedger:
        return SqliteLedger.open(self.folder / "ledger", self.folder / "head", "visits", self.accountant)

    def connect(self, ledger: SqliteLedger, analyst: str) -> dpsql.Connection:
        return dpsql.connect(make.policy(self.folder, self.accountant), ledger=ledger, analyst=analyst)

    def stored(self) -> list[tuple[str, str]]:
        """Id and address of each stored answer, oldest first."""
        with closing(sqlite3.connect(self.folder / "ledger.answers")) as connection:
            return connection.execute("SELECT id, address FROM answers ORDER BY number").fetchall()


@pytest.fixture(params=make.ACCOUNTS)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Old:
    make.fill(tmp_path)
    (tmp_path / "head").write_bytes((make.HERE / f"{request.param}.head").read_bytes())
    for end in ("", ".answers"):
        packed = (make.HERE / f"{request.param}.ledger{end}.gz").read_bytes()
        (tmp_path / f"ledger{end}").write_bytes(gzip.decompress(packed))
    return Old(request.param, tmp_path)


def spent(made: dict[str, Any]) -> list[Account]:
    return [
        Account(unit, analyst, PrivacyLoss(Fraction(epsilon), Fraction(delta), Fraction(rho)))
        for unit, analyst, epsilon, delta, rho in made["spent"]
    ]


def test_a_ledger_opens_and_keeps_its_spending(old: Old) -> None:
    ledger = old.open()
    assert ledger.verify() == old.made["entries"] == len(make.asked_by(old.account))
    assert ledger.history()[-1].hash == old.made["hash"]
    assert [(r.entry.analyst, r.entry.statement) for r in ledger.history()] == make.asked_by(old.account)
    assert str(ledger.salt) == old.made["salt"]
    assert ledger.accounts() == spent(old.made)
    assert {a.analyst for a in ledger.accounts()} == {None, "ana", "ben", "*"}
    assert any(r.entry.received for r in ledger.history())
    assert ledger.received() == {name for name, _ in old.stored()}
    ledger.close()


def test_new_charges_are_added_to_it(old: Old) -> None:
    ledger = old.open()
    before, history = ledger.accounts(), ledger.history()
    with old.connect(ledger, "ben") as con:
        cost = con.execute(make.BY_SIDE, fresh=True, **old.account.asked).spent
        assert cost != NO_LOSS
        ledger = old.open()
        assert ledger.verify() == old.made["entries"] + 1 and ledger.history()[:-1] == history
        for account in before:
            mine = account.unit == "person" and account.analyst in (None, "ben")
            assert ledger.spent(account.unit, account.analyst) == (account.spent + cost if mine else account.spent)
    ledger.close()


@pytest.mark.filterwarnings("ignore::dpsql.diagnostics.errors.UtilityWarning")  # of a count of few values
def test_its_answers_are_not_served(old: Old) -> None:
    """Neither where the rule has changed (which values and groups are kept) nor elsewhere: `RULES` is one for all."""
    ledger, known = old.open(), old.stored()
    answers = SqliteAnswers(old.folder / "ledger.answers")
    assert len(answers.find([address for _, address in known])) == len(known)  # the file is read, and whole
    for sql, analyst in {sql: analyst for analyst, sql in make.asked_by(old.account)}.items():
        before = old.stored()
        with old.connect(ledger, analyst) as con:
            answer = con.execute(sql, **old.account.asked)
            assert answer.spent != NO_LOSS and not [n for n in answer.notes if "answered from" in n], sql
            new = old.stored()[len(before) :]
            assert new and not {address for _, address in new} & {address for _, address in before}, sql
            again = con.execute(sql, **old.account.asked)
            assert again.spent == NO_LOSS and again.rows == answer.rows
        ledger = old.open()  # the session has closed it
    ledger.close()


@pytest.mark.filterwarnings("ignore::dpsql.diagnostics.errors.UtilityWarning")
def test_who_has_answers_of_it_is_told_once(old: Old) -> None:
    """In notes, whose they are; nobody else, and not at later runs, also of other processes."""
    by = Counter(analyst for analyst, _ in make.asked_by(old.account))
    for analyst in ("ana", "ben"):
        with old.connect(old.open(), analyst) as con:
            notes = [con.execute(make.TILLS, **old.account.asked).notes for _ in range(2)]
        told = [[n for n in each if "older dpsql" in n] for each in notes]
        assert len(told[0]) == 1 and by[analyst] and told[1] == []
        assert re.match(r"\d+ stored answers?, up to 2026-11-\d\d, w\w+ measured by an older dpsql", told[0][0])
        with old.connect(old.open(), analyst) as con:
            assert not any("older dpsql" in n for n in con.execute(make.COUNT, **old.account.asked).notes)
    new = old.folder / "new"
    new.mkdir()
    (new / "visits.duckdb").write_bytes((old.folder / "visits.duckdb").read_bytes())
    ledger = SqliteLedger.open(new / "ledger", new / "head", "visits", old.accountant)
    with dpsql.connect(make.policy(new, old.accountant), ledger=ledger, analyst="ana") as con:
        assert not any("older dpsql" in n for n in con.execute(make.COUNT, **old.account.asked).notes)


@pytest.mark.filterwarnings("ignore::dpsql.diagnostics.errors.UtilityWarning")
def test_the_command_line_and_the_shell_tell_it(
    old: Old, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Path(make.policy(old.folder, old.accountant))
    policy.write_text(f"{policy.read_text()}ledger: {old.folder / 'ledger'}\nledger_head: {old.folder / 'head'}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(old.folder))
    asked = [f for name, value in old.account.asked.items() for f in (f"--{name}", value)]

    def told(*arguments: object) -> int:
        assert main([str(a) for a in arguments]) == 0
        return "".join(capsys.readouterr()).count("measured by an older dpsql")

    assert told("budget", policy) == 0  # before the first run nobody knows of what version they are
    assert told("policy", "check", policy) == told("policy", "check", policy) == 1  # looking changes nothing
    query = ("query", policy, make.TILLS, "--analyst", "ana", *asked)
    assert [told(*query), told(*query)] == [1, 0]
    comment = f"/* dpsql: {', '.join(f'{name}={value}' for name, value in old.account.asked.items())} */"
    shell = ("shell", policy, "--analyst", "ben", "-c", f"{comment} {make.TILLS}")
    assert [told(*shell), told(*shell)] == [1, 0]
    assert told("budget", policy) == told("budget", policy) == 1
    assert told("policy", "check", policy) == 0  # since the first run analysts are told
