"""The policy of the documentation loads with every field as it says."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import pytest

from dpsql.core.ir import types
from dpsql.core.policy.tables import ForeignKey, Frequency, Key, RowLimit, TableDomain, ValuesDomain
from dpsql.core.policy.units import Hop, IdUnit, PathUnit, RowUnit
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.policy.load import load_policy, parse_policy
from dpsql.policy.policy import Policy
from tests.policy.policies import SAMPLES, good


@pytest.fixture(scope="module")
def clinic() -> Policy:
    return load_policy(SAMPLES / "clinic.yaml")


def test_top(clinic: Policy) -> None:
    assert (clinic.version, clinic.name, clinic.data_version, clinic.noise) == (1, "clinic", "2026-11", "exact")
    assert (clinic.privacy.neighbours, clinic.privacy.accountant) == ("add_remove", "approx_dp")
    assert clinic.defaults.epsilon == Fraction(1, 5)
    assert clinic.defaults.delta == Fraction(1, 10**9)
    assert (clinic.defaults.max_keys, clinic.defaults.min_units) == (100_000, 1)
    assert list(clinic.tables) == ["icd10", "patients", "visits", "prescriptions", "orders", "sensor_log"]


def test_public_table(clinic: Policy) -> None:
    table = clinic.tables["icd10"]
    assert table.public and table.protection is None and table.unit is None
    assert table.source is not None and table.source.paths == ("ref/icd10.parquet",)
    assert table.unique == (Key(("code",), "assume"),)
    assert not table.columns


def test_id_table(clinic: Policy) -> None:
    table = clinic.tables["patients"]
    assert table.protection == IdUnit("patient", "patient_id", "add_remove")
    assert table.primary_key == Key(("patient_id",), "assume") and table.keys == (table.primary_key,)
    age, region = table.columns["age"], table.columns["region"]
    assert (age.type, age.sql_type, age.bounds, age.nullable) == ("integer", types.INTEGER, (0, 110), False)
    assert region.domain == ValuesDomain(("north", "south", "east", "west"), null=True) and region.is_nullable
    assert table.id_column is table.columns["patient_id"] and table.by_id and not table.by_rows


def test_visits(clinic: Policy) -> None:
    table = clinic.tables["visits"]
    assert table.max_rows_per_unit == RowLimit(20, "truncate") and not table.max_rows_per_unit.assumed
    assert (table.max_groups_per_unit, table.max_rows_per_group) == (5, 4)
    assert table.foreign_keys == (ForeignKey(("patient_id",), "patients", ("patient_id",)),)
    assert table.columns["cost"].bounds == (Fraction(0), Fraction(5000))
    assert table.columns["code"].domain == TableDomain("icd10", "code", null=True)
    assert table.columns["day"].bounds == (dt.date(2024, 1, 1), dt.date(2024, 12, 31))


def test_path_rows_and_size(clinic: Policy) -> None:
    hop = Hop(("visit_id",), "visits", ("visit_id",))
    assert clinic.tables["prescriptions"].protection == PathUnit("patient", (hop,), "patient_id", "add_remove")
    assert clinic.tables["orders"].protection == RowUnit("orders", 1, "add_remove")
    assert clinic.tables["orders"].max_frequency == (Frequency(("customer_id",), 100, "truncate"),)
    assert clinic.tables["sensor_log"].protection == RowUnit("sensor_log", 3, "replace_one")
    assert clinic.tables["sensor_log"].size == 1_000_000


def test_units(clinic: Policy) -> None:
    assert {u.name: (u.kind, u.neighbours, u.tables) for u in clinic.units.values()} == {
        "patient": ("id", "add_remove", ("patients", "visits", "prescriptions")),
        "orders": ("rows", "add_remove", ("orders",)),
        "sensor_log": ("rows", "replace_one", ("sensor_log",)),
    }
    assert (clinic.units["patient"].table, clinic.units["patient"].key) == ("patients", "patient_id")


def test_budgets(clinic: Policy) -> None:
    total = PrivacyLoss(Fraction(10), Fraction(1, 10**6))
    caps = clinic.caps_for("ana")
    assert caps.total == {"patient": total, "orders": total, "sensor_log": total}
    assert caps.analyst["patient"] == PrivacyLoss(Fraction(3), Fraction(1, 10**7))
    assert caps.per_query == PrivacyLoss(Fraction(1, 2), Fraction(1))
    shared = clinic.caps_for("somebody")
    assert shared == clinic.caps_for(None) == clinic.caps_for("*")
    assert shared.analyst["orders"] == PrivacyLoss(Fraction(1, 2), Fraction(1, 10**8)) and shared.per_query is None
    assert (clinic.account("ana"), clinic.account("somebody"), clinic.account(None)) == ("ana", "*", "*")


def test_paths(clinic: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert clinic.path == SAMPLES / "clinic.yaml" and clinic.directory == SAMPLES
    assert clinic.database_path == SAMPLES / "clinic.duckdb"
    assert clinic.ledger_path == SAMPLES / "clinic.ledger.sqlite"
    assert str(clinic.ledger_head_path).startswith("/state/dpsql/clinic-")
    text = "ledger: /var/l.sqlite\nledger_head: heads/h\nversion: 1\nname: a\ntables: {}\n"
    other = parse_policy(text, "a.yaml", "/policies")
    assert str(other.ledger_path) == "/var/l.sqlite" and str(other.ledger_head_path) == "/policies/heads/h"
    assert other.database_path is None and parse_policy(text, "a", "/b").ledger_head_path != other.ledger_head_path
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert clinic.ledger_head_path.parent.parts[-3:] == (".local", "state", "dpsql")


def test_source_paths_are_made_absolute(clinic: Policy) -> None:
    source = clinic.tables["visits"].source
    assert source is not None
    assert source.absolute(clinic.directory).paths == (f"{SAMPLES}/data/visits/*.parquet",)


def test_places(clinic: Policy) -> None:
    place = clinic.place("tables", "visits", "columns", "cost", "bounds")
    assert place is not None
    source, span = place
    assert source.text[span.start : span.end] == "[0, 5000]" and "cost:" in source.line(source.position(span.start)[0])
    fallback = clinic.place("tables", "visits", "columns", "visit_id", "bounds")
    assert fallback is not None and source.text[fallback[1].start : fallback[1].end] == "visit_id"
    assert clinic.file.endswith("clinic.yaml")


def test_names_are_found_whatever_their_case(clinic: Policy) -> None:
    table = clinic.table("VISITS")
    assert table is clinic.tables["visits"] and table.column("Cost") is table.columns["cost"]
    assert clinic.table("visit") is None and table.column("costs") is None


@pytest.mark.parametrize("name", ["clinic", "shop", "flights"])
def test_samples_survive_their_own_document(name: str) -> None:
    policy = load_policy(SAMPLES / f"{name}.yaml")
    again = Policy.model_validate(policy.document)
    assert again.hash == policy.hash and again == policy and dict(again.tables) == dict(policy.tables)


def test_hash_ignores_comments_order_spelling_and_place() -> None:
    plain = good()
    lines = plain.places.source.text.splitlines() if plain.places.source else []
    moved = "\n".join([lines[-1], "# a comment", *lines[:-1]])
    assert parse_policy(moved, "elsewhere.yaml", "/tmp").hash == plain.hash
    assert good("epsilon: 10,", "epsilon: 1.0e+1,").hash == plain.hash
    assert good("unique: [[code]]", "unique: [{columns: [code], enforce: assume}]").hash == plain.hash
    assert good("[0, 99.5]", "[0, 99.50]").hash == plain.hash


@pytest.mark.parametrize(
    ("old", "new"),
    [("epsilon: 10,", "epsilon: 11,"), ("[0, 99.5]", "[0, 99.4]"), ("rows: 2", "rows: 3"), ("[1, 2, 3]", "[1, 3, 2]")],
)
def test_hash_sees_every_change_of_meaning(old: str, new: str) -> None:
    assert good(old, new).hash != good().hash


def test_numbers_are_exact() -> None:
    text = "version: 1\nname: a\ntables: {}\ndefaults: {epsilon: 0.1, delta: 1e-6}\nbudgets: {total: {epsilon: 1.3}}"
    policy = parse_policy(text, "a.yaml")
    assert policy.defaults.epsilon == Fraction(1, 10) and policy.defaults.delta == Fraction(1, 10**6)
    assert policy.budgets.total == PrivacyLoss(Fraction(13, 10))
    built = Policy.model_validate({"version": 1, "name": "a", "tables": {}, "defaults": {"epsilon": 0.1}})
    assert built.defaults.epsilon == Fraction(1, 10) != Fraction(0.1)
