"""Every promise kept, then broken one at a time by changing the data: the broken one is found, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import duckdb
import pytest

import dpsql
from dpsql.core.engine import RawTable, engine_failed
from dpsql.diagnostics.errors import CannotOpen, EngineError, Rejected
from dpsql.policy.issues import dotted
from dpsql.policy.load import load_policy, parse_policy
from dpsql.policy.policy import Policy
from dpsql.policy.tools.assumptions import Kind, promises
from dpsql.service.checks.declared import checks
from dpsql.service.checks.verify import Checked, Verification, verify, verify_policy
from tests.support.fake_engine import FakeEngine

ROOT = Path(__file__).resolve().parents[2]
POLICIES = [
    *sorted((ROOT / "tests" / "fixtures" / "policies").glob("*.yaml")),
    *sorted((ROOT / "examples").glob("*/[!.]*.yaml")),
    ROOT / "dpsql" / "faces" / "cli" / "demo_files" / "clinic.yaml",
]
TEXT = """\
version: 1
name: shop
units:
  buyer: {table: buyers, key: id}
tables:
  towns:
    public: true
    primary_key: [code]
    max_frequency: [{columns: [area], rows: 2, enforce: assume}]
    foreign_keys: [{columns: [area], references: areas(area)}]
    columns: {code: {type: varchar}, area: {type: varchar}}
  areas:
    public: true
    unique: [[area]]
  buyers:
    unit: {column: id}
    primary_key: [id]
    unique: [[mail], {columns: [id, town], enforce: drop}]
    foreign_keys: [{columns: [town], references: towns(code)}]
    columns:
      id:   {type: bigint}
      mail: {type: varchar}
      town: {type: varchar, domain: {table: towns, column: code}}
      kind: {type: varchar, domain: [private, "it's"], nullable: false}
      tags: {type: 'integer[]', max_length: 2}
      grade: {type: 'decimal(3,1)', domain: {values: [1, 2.5], null: true}}
  orders:
    unit: {column: buyer}
    unique: [[day, number], [id]]
    max_rows_per_unit: {rows: 3, enforce: assume}
    max_frequency:
      - {columns: [day], rows: 4, enforce: assume}
      - {columns: [buyer, number], rows: 9}
    foreign_keys:
      - {columns: [buyer], references: buyers(id)}
      - {columns: [buyer], references: buyers(id), enforce: assume}
    max_groups_per_unit: 5
    max_rows_per_group: 4
    columns:
      id:     {type: bigint}
      day:    {type: date}
      number: {type: integer}
      buyer:  {type: bigint}
  lines:
    unit: {path: [{columns: [day, number], references: "orders(day, number)"}]}
    max_rows_per_unit: {rows: 4, enforce: assume}
    unique: [[serial]]
    belongs_to_unit: [serial]
    columns: {day: {type: date}, number: {type: integer}, serial: {type: bigint}}
  returns:
    unit: {path: [{column: serial, references: lines(serial)}]}
    max_rows_per_unit: {rows: 2, enforce: assume}
    columns: {serial: {type: bigint}, why: {type: varchar}}
  waves:
    unit: {column: buyer}
    max_rows_per_unit: {rows: 2, nobody_has_more: true}
    columns: {buyer: {type: bigint}}
  sensors:
    unit: {rows: 1, neighbours: replace_one}
    size: {exact: 3}
    max_frequency: [{columns: [place], rows: 2, enforce: assume}]
    unique: [{columns: [place, hour], enforce: truncate}, [hour]]
    foreign_keys: [{columns: [place], references: towns(code)}]
    columns: {place: {type: varchar}, hour: {type: integer}}
budgets: {total: {epsilon: 1}}
"""
DATA = """\
CREATE TABLE areas AS FROM (VALUES ('north'), ('south'), (NULL), (NULL)) t(area);
CREATE TABLE towns AS FROM (VALUES ('A', 'north'), ('B', 'north'), ('C', NULL), ('D', NULL), ('E', NULL)) t(code, area);
CREATE TABLE buyers (id BIGINT, mail VARCHAR, town VARCHAR, kind VARCHAR, tags INTEGER[], grade DECIMAL(3,1));
INSERT INTO buyers VALUES (1, NULL, 'A', 'private', [1, 2], 1), (2, NULL, NULL, 'it''s', NULL, 2.5),
  (3, 'c', 'B', 'private', [], NULL);
CREATE TABLE orders (id BIGINT, day DATE, number INTEGER, buyer BIGINT);
INSERT INTO orders VALUES (1, '2024-01-01', 1, 1), (2, '2024-01-01', 2, 1), (3, '2024-01-01', 3, 1),
  (4, '2024-01-01', 4, 2), (5, NULL, 1, NULL), (NULL, NULL, 1, NULL), (NULL, NULL, NULL, NULL), (6, NULL, NULL, NULL);
CREATE TABLE lines (day DATE, number INTEGER, serial BIGINT);
INSERT INTO lines VALUES ('2024-01-01', 1, 11), ('2024-01-01', 1, 12), ('2024-01-01', 2, 13), ('2024-01-01', 3, NULL),
  ('2024-01-01', 4, NULL);
CREATE TABLE returns AS FROM (VALUES (11, 'small'), (11, 'late'), (NULL, 'x')) t(serial, why);
ALTER TABLE returns ALTER serial TYPE BIGINT;
CREATE TABLE waves (buyer BIGINT);
INSERT INTO waves VALUES (1), (1), (2);
CREATE TABLE sensors (place VARCHAR, hour INTEGER);
INSERT INTO sensors VALUES ('A', 1), ('A', NULL), (NULL, NULL);
"""


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(DATA)
        yield connection


@pytest.fixture(scope="module")
def shop() -> Policy:
    return parse_policy(TEXT, "shop.yaml")


def run(con: duckdb.DuckDBPyConnection, policy: Policy) -> Verification:
    return verify_policy(con, policy=policy, optimizers="ours")


def named(found: tuple[Checked, ...]) -> dict[tuple[str, str], int | None]:
    return {(c.kind, c.where): c.measured for c in found}


def test_what_holds(con: duckdb.DuckDBPyConnection, shop: Policy) -> None:
    """Among it what NULLs must not break: keys, references and frequencies compare with `=`."""
    found = run(con, shop)
    assert found.holds and found.broken == () and found.policy == "shop"
    assert sum(c.status == "ok" for c in found.checks) == 27
    tight = {c.where for c in found.checks if c.status == "ok" and c.measured == c.promised}
    assert {
        "tables.towns.max_frequency[0]", "tables.orders.max_rows_per_unit", "tables.orders.max_frequency[0]",
        "tables.lines.max_rows_per_unit", "tables.returns.max_rows_per_unit", "tables.sensors.size",
        "tables.waves.max_rows_per_unit.nobody_has_more",
    } <= tight  # fmt: skip
    assert {c.where for c in found.checks if c.status == "enforced"} == {
        "tables.buyers.unique[1]", "tables.orders.max_frequency[1]",
        "tables.orders.max_groups_per_unit", "tables.orders.max_rows_per_group", "tables.sensors.unique[0]",
        "tables.waves.max_rows_per_unit",
    }  # fmt: skip
    assert all((c.measured is None) == (c.status in ("enforced", "untestable")) for c in found.checks)
    assert all(c.claim and c.line and c.file == "shop.yaml" for c in found.checks)
    assert all(bool(c.when_false) and bool(c.repair) == (c.status == "broken") for c in found.checks if c.comparison)
    place = {c.where: c.line for c in found.checks}
    lines = TEXT.splitlines()
    assert "kind:" in lines[(place["tables.buyers.columns.kind.nullable"] or 0) - 1]
    assert "[day, number], [id]" in lines[(place["tables.orders.unique[1]"] or 0) - 1]


def test_what_answers_leave_out_is_information(con: duckdb.DuckDBPyConnection, shop: Policy) -> None:
    con.execute("INSERT INTO lines VALUES ('2025-01-01', 1, 99), (NULL, 1, 98), (NULL, NULL, NULL)")
    con.execute("INSERT INTO returns VALUES (98, 'its line leads nowhere')")
    con.execute("UPDATE buyers SET tags = [1, 2, 3], grade = 9, kind = 'other', town = NULL WHERE id <= 2")
    found = run(con, shop)
    assert found.holds
    assert {key: n for key, n in named(found.checks).items() if key[0] in ("no_id", "domain", "max_length")} == {
        ("no_id", "tables.buyers.unit"): 0,
        ("domain", "tables.buyers.columns.town.domain"): 0,  # the column may be NULL, so NULL is in its domain
        ("domain", "tables.buyers.columns.kind.domain"): 2,
        ("max_length", "tables.buyers.columns.tags.max_length"): 2,
        ("domain", "tables.buyers.columns.grade.domain"): 2,
        ("no_id", "tables.orders.unit"): 4,
        ("no_id", "tables.lines.unit"): 3,
        ("no_id", "tables.returns.unit"): 2,
        ("no_id", "tables.waves.unit"): 0,
    }


BROKEN = [
    ("INSERT INTO towns VALUES ('A', 'south')", {("primary_key", "tables.towns.primary_key"): 2}),
    ("INSERT INTO towns VALUES (NULL, NULL)", {("not_null", "tables.towns.columns.code.nullable"): 1}),
    ("INSERT INTO towns VALUES ('F', 'north')", {("max_frequency", "tables.towns.max_frequency[0]"): 3}),
    ("INSERT INTO towns VALUES ('F', 'east')", {("foreign_key", "tables.towns.foreign_keys[0]"): 1}),
    ("INSERT INTO areas VALUES ('south'), ('south')", {("unique", "tables.areas.unique[0]"): 3}),
    ("INSERT INTO buyers VALUES (1, 'd', 'A', 'private', NULL, 1)", {("primary_key", "tables.buyers.primary_key"): 2}),
    (
        "INSERT INTO buyers VALUES (NULL, 'd', 'A', 'private', NULL, 1), (NULL, 'e', 'A', 'private', NULL, 1)",
        {("not_null", "tables.buyers.columns.id.nullable"): 2},
    ),
    ("INSERT INTO buyers VALUES (4, 'c', 'A', 'private', NULL, 1)", {("unique", "tables.buyers.unique[0]"): 2}),
    (
        "INSERT INTO buyers VALUES (4, 'd', 'Z', 'private', NULL, 1)",
        {("foreign_key", "tables.buyers.foreign_keys[0]"): 1},
    ),
    (
        "INSERT INTO buyers VALUES (4, 'd', 'A', NULL, NULL, 1)",
        {("not_null", "tables.buyers.columns.kind.nullable"): 1},
    ),
    (
        "INSERT INTO orders VALUES (7, '2024-01-02', 9, 3), (8, '2024-01-02', 9, 3), (9, '2024-01-02', 9, 3)",
        {("unique", "tables.orders.unique[0]"): 3, ("path", "tables.lines.unit.path[0].references"): 3},
    ),
    ("INSERT INTO orders VALUES (1, '2024-01-02', 9, 3)", {("unique", "tables.orders.unique[1]"): 2}),
    (
        "INSERT INTO orders VALUES (7, '2024-01-02', 9, 1)",
        {("max_rows_per_unit", "tables.orders.max_rows_per_unit"): 4},
    ),
    ("INSERT INTO orders VALUES (7, '2024-01-01', 9, 3)", {("max_frequency", "tables.orders.max_frequency[0]"): 5}),
    (
        "INSERT INTO orders VALUES (7, '2024-01-02', 9, 4)",
        {("foreign_key", f"tables.orders.foreign_keys[{i}]"): 1 for i in (0, 1)},
    ),
    (
        "INSERT INTO lines VALUES ('2024-01-01', 2, NULL)",
        {("max_rows_per_unit", "tables.lines.max_rows_per_unit"): 5},
    ),
    (
        "INSERT INTO lines VALUES ('2024-01-01', 4, 11)",
        {
            ("unique", "tables.lines.unique[0]"): 2,
            ("belongs_to_unit", "tables.lines.belongs_to_unit[0]"): 1,
            ("path", "tables.returns.unit.path[0].references"): 2,
        },
    ),
    ("INSERT INTO returns VALUES (13, 'late')", {("max_rows_per_unit", "tables.returns.max_rows_per_unit"): 3}),
    ("INSERT INTO waves VALUES (1)", {("nobody_has_more", "tables.waves.max_rows_per_unit.nobody_has_more"): 3}),
    ("INSERT INTO sensors VALUES ('B', 2)", {("size", "tables.sensors.size"): 4}),
    ("DELETE FROM sensors WHERE hour = 1", {("size", "tables.sensors.size"): 2}),
    ("UPDATE sensors SET place = 'A'", {("max_frequency", "tables.sensors.max_frequency[0]"): 3}),
    ("UPDATE sensors SET hour = 1", {("unique", "tables.sensors.unique[1]"): 3}),
    ("UPDATE sensors SET place = 'Z'  WHERE hour = 1", {("foreign_key", "tables.sensors.foreign_keys[0]"): 1}),
]


def test_every_testable_promise_is_broken_above(con: duckdb.DuckDBPyConnection, shop: Policy) -> None:
    tested = {(c.kind, c.where) for c in run(con, shop).checks if c.status == "ok"}
    assert {key for _, expected in BROKEN for key in expected} == tested


def test_empty_tables_keep_everything_but_a_size(con: duckdb.DuckDBPyConnection, shop: Policy) -> None:
    for table in shop.tables:
        con.execute(f"DELETE FROM {table}")
    found = run(con, shop)
    assert named(found.broken) == {("size", "tables.sensors.size"): 0}
    assert {c.measured for c in found.checks} == {0, None}


@pytest.mark.parametrize("file", POLICIES, ids=lambda p: p.name)
def test_the_audit_and_the_verification_agree(file: Path) -> None:
    """Each promise that the audit lists is tested, or said to be untestable; what else is tested is no such promise."""
    policy = load_policy(file)
    listed = {(p.kind, p.where) for p in promises(policy)}
    found = list(checks(policy))
    measured = {(c.kind, dotted(c.loc)) for c in found if c.measure is not None and c.promised is not None}
    untestable = {(c.kind, dotted(c.loc)) for c in found if c.measure is None and not c.enforced}
    assert listed == untestable | {p for p in listed if p in measured}
    assert {kind for kind, _ in untestable} <= {"public", "unit"}
    for kind, where in measured - listed:
        assert policy.tables[where.split(".")[1]].public or kind == "path", (kind, where)
    assert not listed & {(c.kind, dotted(c.loc)) for c in found if c.enforced}


def test_no_kind_of_promise_escapes(shop: Policy) -> None:
    assert {p.kind for p in promises(shop)} == set(get_args(Kind))


def test_repairs_only_name_what_the_policy_accepts(con: duckdb.DuckDBPyConnection, shop: Policy) -> None:
    """`enforce` is offered where it loads: never for public tables, paths, referenced keys, or without the id."""
    for statement in [change for change, _ in BROKEN] + ["INSERT INTO orders VALUES (70, '2024-01-02', 90, 77)"]:
        con.execute(statement)
    said = {c.where: c.repair or "" for c in run(con, shop).broken}
    assert {where for where, repair in said.items() if "enforce" in repair} == {
        "tables.buyers.primary_key",
        "tables.sensors.max_frequency[0]", "tables.sensors.unique[1]", "tables.lines.unit.path[0].references",
        "tables.returns.unit.path[0].references",
    }  # fmt: skip
    assert "cannot be enforced" in said["tables.lines.unit.path[0].references"]
    changed = TEXT.replace("primary_key: [id]", "primary_key: {columns: [id], enforce: truncate}")
    changed = changed.replace("[hour]]", "{columns: [hour], enforce: truncate}]")
    assert parse_policy(changed).tables["sensors"].unique[1].enforce == "truncate"


def test_a_key_that_a_path_refers_to_stays_a_promise(con: duckdb.DuckDBPyConnection) -> None:
    """The policy refuses to enforce it, so the repair must not say so."""
    hint = (
        "  hints:\n    unit: {path: [{column: buyer, references: buyers(id)}]}\n    columns: {buyer: {type: bigint}}\n"
    )
    text = TEXT.replace("budgets:", hint + "budgets:")
    con.execute("CREATE TABLE hints (buyer BIGINT)")
    con.execute("INSERT INTO buyers VALUES (1, 'd', 'A', 'private', NULL, 1)")
    said = {c.where: c.repair or "" for c in run(con, parse_policy(text)).broken}
    assert set(said) == {"tables.buyers.primary_key", "tables.hints.unit.path[0].references"}
    assert "enforce: truncate" not in said["tables.buyers.primary_key"]
    with pytest.raises(CannotOpen):
        parse_policy(text.replace("primary_key: [id]", "primary_key: {columns: [id], enforce: truncate}"))


def test_the_numbers_come_from_one_snapshot(shop: Policy) -> None:
    engine = FakeEngine(lambda sql: RawTable(("n",), ([0],)), tables=list(shop.tables))
    found = verify(shop, engine)
    assert found.checks and engine.snapshots and all(engine.snapshots)


def test_what_cannot_be_opened(con: duckdb.DuckDBPyConnection, shop: Policy, tmp_path: Path) -> None:
    with pytest.raises(CannotOpen):
        verify_policy(tmp_path / "none.yaml")
    con.execute("DROP TABLE returns")
    with pytest.raises(CannotOpen) as caught:
        run(con, shop)
    assert {d.code for d in caught.value.diagnostics} == {"DP004"}
    with pytest.raises(Rejected):
        verify_policy(con)
    with pytest.raises(EngineError):
        verify(shop, FakeEngine(lambda sql: engine_failed(), tables=list(shop.tables)))


def test_it_is_found_by_its_name() -> None:
    assert dpsql.verify_policy is verify_policy and dpsql.Verification is Verification


TAKEN = """\
version: 1
name: taken
units: {buyer: {}}
tables:
  buyers:
    unit: {column: id}
    primary_key: [id]
    columns: {id: {type: bigint}, born: {type: date, bounds: [1900-01-01, 2020-12-31]}}
  orders:
    unit: {column: buyer}
    max_rows_per_unit: 3
    unique: [[number]]
    columns:
      buyer: {type: bigint}
      number: {type: integer, bounds: [0, null]}
      price: {type: double, bounds: [0.1, 20]}
      fee: {type: 'decimal(6,2)', bounds: [0, 2.5]}
  lines:
    unit: {path: [{column: number, references: orders(number)}]}
    max_groups_per_unit: 2
    max_rows_per_group: 1
    columns: {number: {type: integer}}
budgets: {total: {epsilon: 1}}
"""
TAKEN_DATA = """\
CREATE TABLE buyers AS SELECT i AS id, DATE '1899-12-31' + CAST(i AS INTEGER) AS born FROM range(4) t(i);
CREATE TABLE orders (buyer BIGINT, number INTEGER, price DOUBLE, fee DECIMAL(6,2));
INSERT INTO orders VALUES (1, 1, 0.1, 2.5), (1, 2, 20, 0), (1, 3, 'nan', NULL), (1, 4, 'inf', 2.51),
  (1, 5, 0.0999, -1), (2, -6, NULL, 1), (NULL, 7, 5, 1);
CREATE TABLE lines AS FROM (VALUES (1), (1), (2), (-6), (-6), (7), (99)) t(number);
"""


def test_what_limits_and_bounds_take_away() -> None:
    """Units above a limit and their rows; values that are clipped. NULL and NaN are clipped to nothing."""
    with duckdb.connect() as con:
        con.execute(TAKEN_DATA)
        found = run(con, parse_policy(TAKEN, "taken.yaml"))
    numbers = {(c.kind, c.where): (c.measured, c.of) for c in found.checks if c.of is not None}
    assert numbers == {
        ("clipped", "tables.buyers.columns.born.bounds"): (1, 4),
        ("above_limit", "tables.orders.max_rows_per_unit"): (1, 2),
        ("rows_above_limit", "tables.orders.max_rows_per_unit"): (2, 6),
        ("clipped", "tables.orders.columns.number.bounds"): (1, 7),
        ("clipped", "tables.orders.columns.price.bounds"): (2, 6),
        ("clipped", "tables.orders.columns.fee.bounds"): (2, 6),
        ("above_limit", "tables.lines.max_rows_per_group"): (1, 2),
        ("rows_above_limit", "tables.lines.max_rows_per_group"): (1, 5),
    }
    assert {c.status for c in found.checks if c.of is not None} == {"info"} and found.holds


HOSPITAL = """version: 1
name: h
budgets: {total: {epsilon: 1}}
units: {patient: {table: patients, key: patient_id}}
tables:
  patients: {unit: {column: patient_id}, primary_key: [patient_id], columns: {patient_id: {type: integer}}}
  visits:
    unit: {column: UNIT}
    max_rows_per_unit: 12
    columns: {visit_id: {type: integer}, patient_id: {type: integer}}
"""


@pytest.mark.parametrize("unit", ["visit_id", "patient_id"])
def test_a_visit_that_is_called_a_patient_is_in_doubt(unit: str) -> None:
    """By both signs: its ids are nobody's, and never repeat."""
    with duckdb.connect() as con:
        con.execute("CREATE TABLE patients AS SELECT i::INTEGER AS patient_id FROM range(20) t(i)")
        con.execute(
            "CREATE TABLE visits AS SELECT (1000+i)::INTEGER visit_id, (i%20)::INTEGER patient_id FROM range(60) t(i)"
        )
        found = verify_policy(con, policy=parse_policy(HOSPITAL.replace("UNIT", unit), "h.yaml"), optimizers="ours")
    assert not found.broken and found.holds == (unit == "patient_id")
    if unit == "visit_id":
        strange, single = found.doubtful
        assert {strange.where, single.where} == {"tables.visits.unit"}
        assert (strange.measured, strange.of, single.measured, single.of) == (60, 60, 60, 60)
        assert "unit: {column: patient_id}" in str(strange.repair) and "n·ε only" in str(strange.when_false)


def test_what_limits_on_groups_take_away_is_counted_by_each_listed_column() -> None:
    """Patient 0 has 5 visits in ward a and one each in b and c; of 8 rows two are above 3 a group."""
    text = HOSPITAL.replace("UNIT", "patient_id").replace(
        "max_rows_per_unit: 12", "max_rows_per_group: 3\n    max_groups_per_unit: 2"
    )
    text = text.replace("visit_id: {type: integer}", "ward: {type: varchar, domain: [a, b, c]}")
    with duckdb.connect() as con:
        con.execute("CREATE TABLE patients AS SELECT i::INTEGER AS patient_id FROM range(2) t(i)")
        rows = ", ".join(["(0, 'a')"] * 5 + ["(0, 'b')", "(0, 'c')", "(1, 'a')"])
        con.execute(f"CREATE TABLE visits AS SELECT i::INTEGER patient_id, w ward FROM (VALUES {rows}) t(i, w)")
        found = {c.kind: c for c in verify_policy(con, policy=parse_policy(text, "h.yaml"), optimizers="ours").checks}
    groups, above = found["above_groups"], found["rows_above_group"]
    assert (groups.measured, groups.of) == (1, 2) and groups.where == "tables.visits.max_groups_per_unit"
    assert (above.measured, above.of) == (2, 8) and "in a group of ward" in str(above.measures)
