"""Which ledger a session charges: the policy's, a named one, or one in memory that is forgotten with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

import dpsql
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.service.accounts.ledgers import FORGETS

COUNT = "SELECT COUNT(*) AS n FROM people"
FREE = PrivacyLoss()
PAID = PrivacyLoss(epsilon=1)
POLICY = """\
version: 1
name: club
{ledger}
budgets: {{total: {{epsilon: 2}}}}
tables:
  people:
    source: "read_csv('people.csv', auto_detect = false, header = true, columns = {{'id': 'BIGINT'}})"
    unit: {{column: id}}
    primary_key: [id]
    columns: {{id: {{type: bigint}}}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a policy and its data, in which nothing else may come to be."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    home = tmp_path / "club"
    home.mkdir()
    monkeypatch.chdir(home)
    (home / "people.csv").write_text("id\n1\n2\n")
    (home / "club.yaml").write_text(POLICY.format(ledger=""))
    return home


def made(folder: Path) -> set[str]:
    """What a session has left behind."""
    found = {str(p.relative_to(folder.parent)) for p in folder.parent.rglob("*") if p.is_file()}
    return found - {f"club/{name}" for name in ("people.csv", "club.yaml")}


def in_policy(folder: Path) -> dict[str, str]:
    (folder / "club.yaml").write_text(POLICY.format(ledger='ledger: ":memory:"'))
    return {}


@pytest.mark.parametrize("where", ["argument", "path", "policy"])
def test_a_ledger_in_memory_is_forgotten_with_its_session(folder: Path, where: str) -> None:
    named = Path(":memory:") if where == "path" else ":memory:"
    options = in_policy(folder) if where == "policy" else {"ledger": named}
    for _ in range(2):
        with dpsql.connect("club.yaml", **options) as con:  # type: ignore[arg-type]
            first = con.sql(COUNT).run(epsilon=1)
            assert first.spent == PAID and FORGETS in first.notes
            assert con.sql(COUNT).cost(epsilon=1) == FREE
            again = con.sql(COUNT).run(epsilon=1)
            assert again.spent == FREE and again.rows == first.rows and FORGETS in again.notes
            con.sql(COUNT).run(epsilon=1, fresh=True)
            with pytest.raises(dpsql.BudgetExceeded):
                con.sql(COUNT).run(epsilon=1, fresh=True)
            assert con.budget["unit"].total_spent == PrivacyLoss(epsilon=2)
    assert made(folder) == set()


def test_a_file_says_nothing_of_forgetting(folder: Path) -> None:
    with dpsql.connect("club.yaml", ledger="./:memory:") as con:
        assert FORGETS not in con.sql(COUNT).run(epsilon=1).notes
    with dpsql.connect("club.yaml", ledger=folder / ":memory:") as con:
        assert con.budget["unit"].total_spent == PAID
    assert "club/:memory:" in made(folder)


def test_a_named_file_is_stronger_than_memory_in_the_policy(folder: Path) -> None:
    in_policy(folder)
    for expected in (0, 1):
        with dpsql.connect("club.yaml", ledger="spent.sqlite") as con:
            assert con.budget["unit"].total_spent.epsilon == expected
            con.sql(COUNT).run(epsilon=1, fresh=True)


def test_the_policys_ledger_has_one_head_however_it_is_named(folder: Path) -> None:
    (folder / "club.yaml").write_text(POLICY.format(ledger="ledger: spent.sqlite\nledger_head: spent.head"))
    (folder.parent / "linked").symlink_to(folder)
    for named in (None, "spent.sqlite", folder / "spent.sqlite", folder.parent / "linked" / "spent.sqlite"):
        with dpsql.connect("club.yaml", ledger=named) as con:
            con.sql(COUNT).run(epsilon=1)
            assert con.budget["unit"].total_spent == PAID
    assert not (folder.parent / "state").exists()


def test_a_head_of_what_is_forgotten_is_a_mistake(folder: Path) -> None:
    (folder / "club.yaml").write_text(POLICY.format(ledger='ledger: ":memory:"\nledger_head: spent.head'))
    with pytest.raises(dpsql.CannotOpen, match="ledger_head is given, but the ledger is :memory:"):
        dpsql.connect("club.yaml")


def test_a_pool_shares_one(folder: Path) -> None:
    engine = create_engine("dpsql:///club.yaml?epsilon=1&ledger=:memory:")
    answers = []
    for _ in range(2):
        with engine.connect() as connection:
            answers.append(connection.execute(text(COUNT)).scalar())
    assert answers[0] == answers[1]
    engine.dispose()
    assert made(folder) == set()


def test_a_home_that_nobody_knows_is_missed_when_it_is_needed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a ledger in memory nor one of the caller's own has a head in the user's folder."""

    def unknown() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", unknown)
    with dpsql.connect("club.yaml", ledger=":memory:") as con:
        assert len(con.sql(COUNT).run(epsilon=1)) == 1
