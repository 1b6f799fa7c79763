"""The database of the soundness checklist: four patients, one of them with HIV, one all NULL, and planted values."""

from __future__ import annotations

import io
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.api.connection import Connection
from dpsql.faces.cli.main import main
from tests.support.built_once import build
from tests.support.canary import CANARY, MARKER

DELTA = "1e-3"
LARGE = 1000
"""An ε at which the noise is almost surely 0 for counts, so that answers can be compared with the truth."""

SCHEMA = (
    "CREATE TABLE patients (pid BIGINT, name VARCHAR, diag VARCHAR, age INTEGER, zip VARCHAR, income DOUBLE, "
    "ts TIMESTAMP, big BIGINT, day DATE)",
    "CREATE TABLE visits (pid BIGINT, amt DOUBLE)",
    "CREATE TABLE pub (diag VARCHAR, cost DOUBLE)",
    "CREATE TABLE grid (diag VARCHAR, age INTEGER, label VARCHAR)",
    "CREATE TABLE events (kind VARCHAR, value DOUBLE, day DATE, clock TIME, seen TIMESTAMP)",
)
PUBLIC_ROWS = (
    "INSERT INTO pub VALUES ('flu', 1), ('flu', 2), ('rare', 3)",
    "INSERT INTO grid VALUES ('flu', 30, 'a'), ('flu', 40, 'b'), ('HIV', 50, 'a')",
)
PRIVATE_ROWS = (
    "INSERT INTO patients VALUES "
    "(1, 'alice', 'flu', 30, '12345', 50000, '2024-01-01', 1, '2024-01-01'), "
    f"(2, 'bob', 'HIV', 50, '{CANARY}{MARKER}', {CANARY}, '2024-02-02', {CANARY}, '2024-02-02'), "
    f"(3, 'carol{MARKER}', 'flu', 40, 'abc', 30000, '2024-03-03', 9223372036854775807, '9999-12-31'), "
    "(4, 'dave', NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    f"INSERT INTO visits VALUES (1, 10), (1, 20), (2, {CANARY}), (3, 5), (NULL, 7), (NULL, 9)",
    "INSERT INTO events VALUES ('a', 1, '2024-01-01', '01:00:00', '2024-01-01')",
    f"INSERT INTO events VALUES ('{MARKER}', {CANARY}, NULL, NULL, NULL)",
)

POLICY = """
version: 1
name: clinic
database: d.duckdb
ledger: spent.sqlite
ledger_head: spent.head
budgets: {total: {epsilon: 1000000000, delta: 0.9}}
tables:
  patients:
    unit: {column: pid}
    primary_key: [pid]
    columns:
      pid: {type: bigint, nullable: false}
      name: {type: varchar}
      diag: {type: varchar, domain: [flu, HIV, rare]}
      age: {type: integer, bounds: [0, 110]}
      zip: {type: varchar}
      income: {type: double, bounds: [0, 100000]}
      ts: {type: timestamp}
      big: {type: bigint}
      day: {type: date}
  visits:
    unit: {column: pid}
    max_rows_per_unit: 3
    columns:
      pid: {type: bigint}
      amt: {type: double, bounds: [0, 100]}
  events:
    unit: {rows: 1}
    columns:
      kind: {type: varchar}
      value: {type: double, bounds: [0, 10]}
      day: {type: date}
      clock: {type: time}
      seen: {type: timestamp}
  pub:
    public: true
    columns:
      diag: {type: varchar}
      cost: {type: double}
  grid:
    public: true
    columns:
      diag: {type: varchar}
      age: {type: integer}
      label: {type: varchar}
"""


@dataclass(frozen=True, slots=True)
class Clinic:
    """A policy on disk with its data; `connect` opens a session."""

    folder: Path

    @property
    def policy(self) -> Path:
        """The policy's path."""
        return self.folder / "clinic.yaml"

    def connect(self, **options: Any) -> Connection:
        """A session over the data file."""
        return dpsql.connect(self.policy, **options)

    def execute(self, *statements: str) -> None:
        """Change the data (no session may be open)."""
        with duckdb.connect(str(self.folder / "d.duckdb")) as con:
            for statement in statements:
                con.execute(statement)


def _made(folder: Path, policy: str, *statements: str) -> Clinic:
    found = Clinic(folder)
    found.policy.write_text(policy)
    build(folder / "d.duckdb", ";\n".join([*SCHEMA, *PUBLIC_ROWS, *statements]))
    return found


@pytest.fixture
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Clinic]:
    """Builds a clinic: with its private rows or without, with other SQL after that, with another policy."""

    def made(*statements: str, private: bool = True, policy: str = POLICY) -> Clinic:
        folder = tmp_path_factory.mktemp("clinic")
        return _made(folder, policy, *(PRIVATE_ROWS if private else ()), *statements)

    return made


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Clinic:
    """The clinic with its rows, shared by the tests of one file; nobody may change it."""
    return _made(tmp_path_factory.mktemp("clinic"), POLICY, *PRIVATE_ROWS)


@pytest.fixture(scope="module")
def con(clinic: Clinic) -> Iterator[Connection]:
    """A session of that clinic."""
    with clinic.connect() as opened:
        yield opened


@dataclass(frozen=True, slots=True)
class Attack:
    """What tests do with hostile queries, with the traces they must not leave."""

    con: Connection

    def refused(self, sql: str, *codes: str, **options: Any) -> dpsql.Rejected:
        """The query is refused while it is planned, with one of the codes; nothing is charged; nothing leaks."""
        before = self.spent
        with pytest.raises(dpsql.Rejected) as caught:
            self.con.sql(sql, **options).run(epsilon=LARGE, delta=DELTA)
        found = {d.code for d in caught.value.diagnostics}
        assert found & set(codes), f"{sql}: {caught.value}"
        if found != {"DP903"}:  # an unknown dialect is no mistake of the text
            assert_points_into(caught.value, sql)
        assert self.spent == before, sql
        assert_silent(caught.value)
        return caught.value

    def answer(self, sql: str, **options: Any) -> list[tuple[Any, ...]]:
        """The rows of an answered query, at an ε that makes counts exact almost surely."""
        return self.con.sql(sql, **options).run(epsilon=LARGE, delta=DELTA).fetchall()

    def sensitivities(self, sql: str) -> list[tuple[int, int]]:
        """(l1, l∞) of every measured component, in integer units divided by the weight and the grid."""
        plan = self.con.sql(sql).plan(epsilon=1, delta=DELTA)
        return [
            (int(m.sensitivity.l1 * m.unit), int(m.sensitivity.linf * m.unit))
            for r in plan.releases
            for m in r.measured.measurements
        ]

    @property
    def spent(self) -> object:
        """What all units have spent so far."""
        return str(self.con.budget)


@pytest.fixture
def attack(con: Connection) -> Attack:
    """Helpers over the shared session."""
    return Attack(con)


def assert_points_into(error: dpsql.Error, sql: str) -> None:
    """The first finding names a place in the text, and is printed with its code and a caret under that place."""
    first = error.diagnostics[0]
    assert first.span is not None and first.source is not None, error
    assert first.source.text == sql and 0 <= first.span.start < first.span.end <= max(len(sql), 1), error
    shown = str(error)
    assert f"error[{first.code}]: " in shown and re.search(r"^ *\|.*\^", shown, re.MULTILINE), shown


def assert_silent(error: BaseException) -> None:
    """Neither canary nor marker anywhere in what an exception shows or holds on to."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        at = todo.pop()
        if at is None or id(at) in seen:
            continue
        seen.add(id(at))
        printed = io.StringIO()
        traceback.print_exception(at, file=printed)
        shown = [str(at), repr(at), repr(at.args), printed.getvalue(), repr(getattr(at, "diagnostics", ""))]
        for text in shown:
            assert CANARY not in text and MARKER not in text, text
        todo += [at.__cause__, at.__context__]


@dataclass(frozen=True, slots=True)
class Call:
    """What one call of the command line left behind."""

    status: int
    out: str
    err: str


@pytest.fixture
def dpsql_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Call]:
    """`dpsql …` in this process: status and both streams, which never hold a planted value or a traceback."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def call(*arguments: str | Path) -> Call:
        capsys.readouterr()
        status = main([str(a) for a in arguments])
        shown = capsys.readouterr()
        for text in (shown.out, shown.err):
            assert CANARY not in text and MARKER not in text, text
            assert "Traceback" not in text and "DP904" not in text, text
        return Call(status, shown.out, shown.err)

    return call
