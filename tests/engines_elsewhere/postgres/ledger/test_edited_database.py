"""A database that was edited, restored, moved or made by somebody else, as for files of SQLite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from dpsql.core.ledger.chain.hash_chain import Identity, LedgerRow, Point
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.postgres import PostgresLedger, accept_head, is_founded
from dpsql.diagnostics.errors import CannotOpen
from dpsql.diagnostics.note import NOTHING_RAN
from tests.engines_elsewhere.postgres.ledger.conftest import Database

Charge = Callable[[object], Entry]

EDITS = {
    "a lower charge": "UPDATE dpsql.entries SET charges = replace(charges, '1/10', '1/1000') WHERE sequence = 2",
    "another statement": "UPDATE dpsql.entries SET statement = 'SELECT 2' WHERE sequence = 2",
    "another account": "UPDATE dpsql.entries SET analyst = 'ben' WHERE sequence = 1",
    "another time": "UPDATE dpsql.entries SET reserved_at = 'never' WHERE sequence = 3",
    "no last entry": "DELETE FROM dpsql.entries WHERE sequence = 3",
    "no first entry": "DELETE FROM dpsql.entries WHERE sequence = 1",
    "no entries": "DELETE FROM dpsql.entries",
    "no entries, and a row that says so": "DELETE FROM dpsql.entries; UPDATE dpsql.head SET last_sequence = 0",
    "a shorter chain, and a row that says so": (
        "DELETE FROM dpsql.entries WHERE sequence = 3; UPDATE dpsql.head SET last_sequence = 2, "
        "last_hash = (SELECT hash FROM dpsql.entries WHERE sequence = 2)"
    ),
    "another end": "UPDATE dpsql.head SET last_sequence = 2",
    "another last hash": "UPDATE dpsql.head SET last_hash = 'x'",
    "another salt": "UPDATE dpsql.head SET salt = 5",
    "no row of its own": "DELETE FROM dpsql.head",
    "another accountant": "UPDATE dpsql.head SET accountant = 'zcdp'",
    "an unknown accountant": "UPDATE dpsql.head SET accountant = 'renyi'",
    "a later format": "UPDATE dpsql.head SET format = 99",
    "an earlier format": "UPDATE dpsql.head SET format = 1",
    "a gap": "UPDATE dpsql.entries SET sequence = 7 WHERE sequence = 3; UPDATE dpsql.head SET last_sequence = 7",
    "a copy of an entry": (
        "INSERT INTO dpsql.entries SELECT 4, 'd', analyst, charges, plan_hash, policy_hash, statement, reserved_at, "
        "hash, received, answers FROM dpsql.entries WHERE sequence = 3; UPDATE dpsql.head SET last_sequence = 4"
    ),
    "damage that cannot be read": "UPDATE dpsql.entries SET charges = '[[[' WHERE sequence = 3",
}
SHAPES = {
    "a table that a crash empties": "ALTER TABLE dpsql.entries SET UNLOGGED",
    "a trigger that undoes": (
        "CREATE FUNCTION dpsql.no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
        "CREATE TRIGGER no BEFORE INSERT ON dpsql.entries FOR EACH ROW EXECUTE FUNCTION dpsql.no()"
    ),
    "a rule that undoes": "CREATE RULE no AS ON INSERT TO dpsql.entries DO INSTEAD NOTHING",
    "rows that are hidden": "ALTER TABLE dpsql.entries ENABLE ROW LEVEL SECURITY",
    "a view": "ALTER TABLE dpsql.entries RENAME TO e; CREATE VIEW dpsql.entries AS SELECT * FROM dpsql.e",
    "ids that may come twice": "ALTER TABLE dpsql.entries DROP CONSTRAINT entries_id_key",
    "ids that come twice until the commit": (
        "ALTER TABLE dpsql.entries DROP CONSTRAINT entries_id_key, ADD UNIQUE (id) DEFERRABLE INITIALLY DEFERRED"
    ),
    "numbers that may come twice": "ALTER TABLE dpsql.entries DROP CONSTRAINT entries_pkey",
    "several rows of its own": "ALTER TABLE dpsql.head DROP CONSTRAINT head_pkey, DROP CONSTRAINT head_one_check",
    "another order of letters": 'ALTER TABLE dpsql.entries ALTER COLUMN id TYPE text COLLATE "C.utf8"',
    "another column": "ALTER TABLE dpsql.entries ADD COLUMN more text",
    "one column less": "ALTER TABLE dpsql.entries DROP COLUMN answers",
    "another type": "ALTER TABLE dpsql.entries ALTER COLUMN sequence TYPE integer",
    "no answers": "DROP TABLE dpsql.answers",
    "another table": "CREATE TABLE dpsql.more (x integer)",
}


@pytest.fixture
def charged(database: Database, charge: Charge) -> Database:
    """With three entries, and nobody connected."""
    with database.open() as ledger:
        for name in "abc":
            ledger.reserve(charge(name), Caps())
    return database


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_ledger_is_refused(charged: Database, edit: str) -> None:
    charged.run(EDITS[edit])
    with pytest.raises(CannotOpen) as refusal:
        charged.open()
    (diagnostic,) = refusal.value.diagnostics
    assert diagnostic.code == "DP407" and diagnostic.help and diagnostic.notes == (NOTHING_RAN,)


@pytest.mark.parametrize(
    "edit", ["no last entry", "no entries", "another end", "another last hash", "no row of its own"]
)
def test_an_edit_is_noticed_by_whoever_has_it_open(charged: Database, charge: Charge, edit: str) -> None:
    with charged.open() as ledger:
        charged.run(EDITS[edit])
        with pytest.raises(CannotOpen):
            ledger.reserve(charge("d"), Caps())
        with pytest.raises(CannotOpen):
            ledger.spent("patient")


@pytest.mark.parametrize("edit", ["a lower charge", "another account", "no first entry"])
def test_an_edit_before_the_last_entry_is_noticed_by_looking_again(charged: Database, edit: str) -> None:
    with charged.open() as ledger:
        charged.run(EDITS[edit])
        with pytest.raises(CannotOpen, match=r"entry [12] "):
            ledger.verify()
        with pytest.raises(CannotOpen):
            ledger.history()


@pytest.mark.parametrize("shape", SHAPES)
def test_tables_that_could_lose_or_hide_an_entry_are_refused(charged: Database, shape: str) -> None:
    charged.run(SHAPES[shape])
    with pytest.raises(CannotOpen, match="its tables in the schema dpsql are not as dpsql makes them"):
        charged.open()


def test_an_undone_insert_is_no_charge(charged: Database, charge: Charge) -> None:
    """Whoever has it open does not look at the tables each time; he sees that nothing was added."""
    with charged.open() as ledger:
        charged.run(SHAPES["a trigger that undoes"])
        with pytest.raises(CannotOpen, match="could not be added") as refusal:
            ledger.reserve(charge("d"), Caps())
        assert refusal.value.diagnostics[0].notes == (NOTHING_RAN,)
    assert charged.run("SELECT count(*) FROM dpsql.entries") == [(3,)]


def test_a_whole_chain_in_place_of_another_is_refused(charged: Database) -> None:
    """With right hashes from the first entry on: the chain has no key, and this gateway's head knows better."""
    ((_, dataset, accountant, salt, nonce),) = charged.run(
        "SELECT format, dataset, accountant, salt, nonce FROM dpsql.head"
    )
    identity = Identity(dataset, accountant, salt, nonce)
    with charged.open() as ledger:
        originals = [receipt.entry for receipt in ledger.history()]
    last: Point = identity.origin
    statements = ["DELETE FROM dpsql.entries"]
    for original in originals:
        row = LedgerRow.after(last, Entry(original.id, "eve", {}, "plan", "policy", "SELECT 1"), "now")
        values = ", ".join(str(v) if isinstance(v, int) else f"'{v}'" for v in row)
        statements.append(
            "INSERT INTO dpsql.entries (sequence, id, analyst, charges, plan_hash, policy_hash, statement, "
            f"reserved_at, hash, received, answers, kind, about) VALUES ({values})"
        )
        last = row.point
    charged.run(*statements, f"UPDATE dpsql.head SET last_hash = '{last.hash}'")
    with pytest.raises(CannotOpen, match="entry 3 is not the one that was written"):
        charged.open()
    with pytest.raises(CannotOpen, match="has not seen it before"):
        charged.open(gateway="two")


# --- copies, heads and gateways ---------------------------------------------------------------------------------------


def test_a_restored_copy_is_refused_by_every_gateway_that_has_seen_more(charged: Database, charge: Charge) -> None:
    accept_head(charged.url, charged.head("two"))
    copy = charged.copy(f"{charged.name}_copy")
    try:
        with charged.open() as ledger, charged.open(gateway="two"):
            ledger.reserve(charge("d"), Caps())
        with copy.open(gateway="two"):  # it has seen four, and cannot know better
            pass
        with pytest.raises(CannotOpen, match="it ends at entry 4, but had 5: this is an older copy") as refusal:
            copy.open()
        assert "--accept-head" in str(refusal.value)
        with copy.open(gateway="two") as two:
            two.reserve(charge("other"), Caps())
        with pytest.raises(CannotOpen, match="entry 5 is not the one that was written: this is another ledger"):
            copy.open()
        accept_head(copy.url, copy.head())
        with copy.open() as ledger:
            assert ledger.verify() == 6
    finally:
        copy.cluster.run(f"DROP DATABASE {copy.name} WITH (FORCE)")


def test_a_gateway_that_is_new_is_accepted_first(charged: Database, charge: Charge) -> None:
    with pytest.raises(CannotOpen, match="this gateway has not seen it before") as refusal:
        charged.open(gateway="two")
    assert "dpsql budget POLICY --accept-head" in str(refusal.value)
    accept_head(charged.url, charged.head("two"))
    with charged.open(gateway="two") as two, charged.open(gateway="one") as one:
        assert two.reserve(charge("d"), Caps()).sequence == 5
        assert one.reserve(charge("e"), Caps()).sequence == 6
        assert two.spent("patient") == one.spent("patient")


def test_gateways_that_begin_together_need_not_be_accepted(database: Database, charge: Charge) -> None:
    with database.open(gateway="one") as one, database.open(gateway="two") as two:
        assert one.salt == two.salt
        assert one.reserve(charge("a"), Caps()).sequence == 1
    with database.open(gateway="two") as two:
        assert two.reserve(charge("b"), Caps()).sequence == 2


def test_an_empty_database_in_place_of_a_ledger_is_refused(charged: Database) -> None:
    charged.run("DROP SCHEMA dpsql CASCADE")
    with pytest.raises(CannotOpen, match="it is empty, but had 3 entries"):
        charged.open()
    with pytest.raises(CannotOpen):
        PostgresLedger.look(charged.url, charged.head(), "clinic", "approx_dp")
    assert not is_founded(charged.url)
    accept_head(charged.url, charged.head())
    with charged.open() as ledger:
        assert ledger.verify() == 0


def test_entries_without_the_row_that_says_whose_they_are_are_refused(charged: Database) -> None:
    charged.run("DELETE FROM dpsql.head")
    charged.head().unlink()
    with pytest.raises(CannotOpen, match="the row that says whose they are is missing"):
        charged.open()


@pytest.mark.parametrize(("dataset", "accountant"), [("other", "approx_dp"), ("clinic", "zcdp")])
def test_it_belongs_to_one_policy_and_one_accountant(charged: Database, dataset: str, accountant: str) -> None:
    with pytest.raises(CannotOpen, match=r"belongs to the policy 'clinic'|counts in approx_dp"):
        charged.open(dataset, accountant)


def test_looking_makes_nothing_and_needs_no_right_to_write(database: Database, charge: Charge, tmp_path: Path) -> None:
    def look(gateway: str = "one") -> PostgresLedger | None:
        return PostgresLedger.look(database.url, database.head(gateway), "clinic", "approx_dp")

    assert look() is None and not list(tmp_path.glob("*.head")) and not is_founded(database.url)
    assert database.run("SELECT count(*) FROM pg_namespace WHERE nspname = 'dpsql'") == [(0,)]
    with database.open() as ledger:
        ledger.reserve(charge("a"), Caps())
    database.run("ALTER DATABASE " + database.name + " SET default_transaction_read_only = on")
    with look() as found:  # type: ignore[union-attr]
        assert [asdict(r) for r in found.history()] and found.accounts()
    with pytest.raises(CannotOpen, match="has not seen it before"):
        look("two")
    assert not database.head("two").exists()
