"""Random policies with random tiny databases, and every neighbour of a database in one connection.

All neighbours live in the same tables: column `dbs` of a stored row is a bit mask of the databases that hold it, and
what a plan reads instead of a private table are its rows of database number `$db`. So a plan is compiled once, and run
on every neighbour.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from dpsql.core.engine import RawTable, T
from dpsql.core.printing.dialects.duckdb import quoted
from dpsql.engines.duckdb.locked.optimizers import restrict
from dpsql.policy.policy import Policy
from dpsql.spelling.duckdb_functions import DUCKDB

Row = tuple[str, ...]
"""One row as SQL literals."""

NUMBERS = {
    "DOUBLE": ("0", "1.5", "-2.25", "3", "7.75", "1e308", "-1e308", "1e-320", "'nan'", "'inf'", "'-inf'", "-0.0"),
    "FLOAT": ("0", "1.5", "-2.25", "3", "7.75", "3e38", "-3e38", "'nan'", "'inf'", "'-inf'", "16777217"),
    "DECIMAL(9,2)": ("0", "1.25", "-3.10", "9999999.99", "-9999999.99", "0.01", "5.00"),
    "DECIMAL(38,10)": ("0", "1.25", "-3.1000000001", "9999999999999999999999999999.9999999999", "2.5"),
    "TINYINT": ("0", "1", "-1", "5", "127", "-128", "9"),
    "INTEGER": ("0", "1", "-1", "5", "2147483647", "-2147483648", "3", "9"),
    "BIGINT": ("0", "1", "-1", "5", "9223372036854775807", "-9223372036854775808", "4"),
    "HUGEINT": ("0", "1", "-7", "170141183460469231731687303715884105727", "-170141183460469231731687303715884105728"),
    "UBIGINT": ("0", "1", "5", "18446744073709551615", "3"),
}
BOUNDS = {
    "DOUBLE": ((-5, 10), (0, 5), (-10, -2), (0, "1e12"), ("-0.1", "0.3"), (1, 3), ("1e-6", "2e-6")),
    "FLOAT": ((-5, 10), (0, 5), (-4, "3.3"), (0, 1000000050)),
    "DECIMAL(9,2)": ((-5, 10), (0, "2.5"), (-100000, 100000), ("0.01", "9999999")),
    "DECIMAL(38,10)": ((-5, 10), (0, "2.5"), (0, 100000)),
    "TINYINT": ((0, 7), (-3, 4), (-128, 127), (-5, -1)),
    "INTEGER": ((0, 7), (-3, 4), (0, 2000000000), (-6, -2), (1, 4)),
    "BIGINT": ((0, 7), (-3, 4), (0, 10**15), (-(10**18), 5)),
    "HUGEINT": ((0, 7), (-3, 4), (0, 10**20)),
    "UBIGINT": ((0, 7), (1, 4), (2, 10**19)),
}
CITIES = ("'a'", "'b'", "'B'", "''", "'çé'", "'a '")
DAYS = ("DATE '2024-01-01'", "DATE '2024-02-29'", "DATE '2024-01-31'", "DATE '1999-12-31'", "DATE 'infinity'",
        "DATE '9999-12-31'", "DATE '-infinity'", "DATE '10000-01-01'")  # fmt: skip
STAMPS = ("TIMESTAMP '2024-01-01 10:00:00'", "TIMESTAMP '2024-03-01 23:59:59.999999'", "TIMESTAMP 'infinity'",
          "TIMESTAMP '9999-12-31 23:59:59.999999'", "TIMESTAMP '2024-01-01 00:00:00'")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a test table: its SQL type, the literals it may hold, and its entry in the policy."""

    name: str
    type: str
    pool: tuple[str, ...]
    policy: dict[str, Any] = field(default_factory=dict)

    @property
    def numeric(self) -> bool:
        return self.type in NUMBERS

    @property
    def bounded(self) -> bool:
        return "bounds" in self.policy

    @property
    def nullable(self) -> bool:
        return bool(self.policy.get("nullable", True))

    def value(self, rng: random.Random) -> str:
        if self.nullable and rng.random() < 0.15:
            return "NULL"
        return f"CAST({rng.choice(self.pool)} AS {self.type})"


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns, its entry in the policy beside them, and its rows with the databases that hold them."""

    name: str
    columns: tuple[Column, ...]
    policy: dict[str, Any]
    rows: tuple[tuple[Row, int], ...]

    @property
    def public(self) -> bool:
        return bool(self.policy.get("public"))

    @property
    def entry(self) -> dict[str, Any]:
        """The table in the policy's form."""
        return {**self.policy, "columns": {c.name: {"type": c.type, **c.policy} for c in self.columns}}

    def create(self) -> Iterator[str]:
        """SQL that makes the stored table."""
        fields = ", ".join(f"{quoted(c.name)} {c.type}" for c in self.columns)
        yield f"CREATE OR REPLACE TABLE {quoted(self.name)} ({fields}, dbs BIGINT)"
        if self.rows:
            values = ", ".join(f"({', '.join((*row, str(mask)))})" for row, mask in self.rows)
            yield f"INSERT INTO {quoted(self.name)} VALUES {values}"

    @property
    def shown(self) -> str:
        """The relation of one database's rows."""
        if self.public:
            return quoted(self.name)
        names = ", ".join(quoted(c.name) for c in self.columns)
        return f"(SELECT {names} FROM {quoted(self.name)} WHERE ((dbs >> CAST($db AS INTEGER)) & 1) = 1)"


@dataclass(frozen=True, slots=True)
class World:
    """A policy and its databases: number 0, and its neighbours 1 … `neighbours`."""

    policy: Policy
    tables: tuple[Table, ...]
    neighbours: int
    description: str

    def table(self, name: str) -> Table:
        return next(t for t in self.tables if t.name == name)

    @property
    def private(self) -> tuple[Table, ...]:
        return tuple(t for t in self.tables if not t.public)


BUDGETS: dict[str, dict[str, float]] = {
    "pure_dp": {"epsilon": 10},
    "approx_dp": {"epsilon": 10, "delta": 1e-6},
    "zcdp": {"rho": 10, "delta": 1e-6},
}
OPTIMIZED = 8
"""Of so many databases one is read as DuckDB optimizes the statement, and the others as it stands, prepared once:
DuckDB optimizes anew for each execution, which takes thrice as long as all the rest. The integers are the same."""


class Store:
    """An engine over one in-memory DuckDB that shows one database of a world at a time. Errors are not hidden."""

    dialect, version, notes = DUCKDB, "0", ()

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": 1})
        restrict(self.connection)
        self._plain = self.connection.cursor()
        self._plain.execute("PRAGMA disable_optimizer")
        self.db = 0
        self._tables: dict[str, Table] = {}
        self._prepared: dict[str, str] = {}

    def load(self, world: World) -> None:
        """Hold this world instead of the last one."""
        for name in self._prepared.values():
            self._plain.execute(f"DEALLOCATE {name}")
        self._prepared.clear()
        for table in world.tables:
            for statement in table.create():
                self.connection.execute(statement)
        self._tables = {t.name: t for t in world.tables}

    def show(self, db: int) -> None:
        """Read database number `db` from now on."""
        self.db = db

    def fetch(self, sql: str) -> RawTable:
        if "$db" not in sql or self.db % OPTIMIZED == 0:
            found = self.connection.execute(sql.replace("$db", str(self.db)))
        else:
            if sql not in self._prepared:
                name = f"s{len(self._prepared)}"
                self._plain.execute(f"PREPARE {name} AS {sql}")
                self._prepared[sql] = name
            found = self._plain.execute(f"EXECUTE {self._prepared[sql]}(db := {self.db})")
        names = tuple(d[0] for d in found.description)
        rows = found.fetchall()
        return RawTable(names, tuple(map(list, zip(*rows, strict=True))) if rows else tuple([] for _ in names))

    def table_sql(self, name: str) -> str:
        return self._tables[name].shown

    def in_snapshot(self, action: Callable[[], T]) -> T:
        return action()

    def describe(self) -> Any:
        raise AssertionError

    def sibling(self) -> Store:
        return self

    def interrupt(self) -> None:
        raise AssertionError

    def close(self) -> None:
        self._plain.close()
        self.connection.close()


# --- columns ---------------------------------------------------------------------------------------------------------


def _number(rng: random.Random, name: str, type_: str) -> Column:
    lo, hi = rng.choice(BOUNDS[type_])
    policy: dict[str, Any] = {"bounds": [_end(lo), _end(hi)]}
    if rng.random() < 0.3:
        policy["nullable"] = False
    inside = (f"'{lo}'", f"'{hi}'")
    return Column(name, type_, NUMBERS[type_] + inside, policy)


def _end(x: int | str) -> int | float:
    return float(x) if isinstance(x, str) else x


def _columns(rng: random.Random) -> list[Column]:
    """What every private table has beside its id and keys."""
    kinds = list(NUMBERS)
    flag: dict[str, Any] = {"nullable": False} if rng.random() < 0.5 else {}
    city: dict[str, Any] = {"domain": ["a", "b", "zzz"]} if rng.random() < 0.6 else {}
    if city and rng.random() < 0.5:
        city = {"domain": {"values": ["a", "b"], "null": True}}
    small = rng.choice(([0, 1], [0, 2], [-1, 3]))
    return [
        _number(rng, "x", rng.choice(kinds)),
        _number(rng, "y", rng.choice(kinds)),
        _number(rng, "w", rng.choice(("DOUBLE", "INTEGER", "DECIMAL(9,2)"))),
        Column("age", "INTEGER", ("0", "1", "2", "3", "-1", "99"), {"bounds": small}),
        Column("city", "VARCHAR", CITIES, city),
        Column("flag", "BOOLEAN", ("true", "false"), flag),
        Column("day", "DATE", DAYS, {"bounds": ["2024-01-01", "2024-03-31"]} if rng.random() < 0.7 else {}),
        Column("at", "TIMESTAMP", STAMPS, {}),
        Column("code", "INTEGER", ("1", "2", "3", "4"), {"nullable": False} if rng.random() < 0.3 else {}),
    ]


def _public_tables(rng: random.Random) -> list[Table]:
    code = Column("code", "INTEGER", ("1", "2", "3"))
    label = Column("label", "VARCHAR", ("'p'", "'q'", "'r'"))
    rank = Column("rank", "INTEGER", ("0", "1", "2", "9"), {"bounds": [0, 5]})
    codes = Table(
        "codes", (code, label, rank), {"public": True}, _anywhere(rng, (code, label, rank), rng.randint(0, 6))
    )
    town = Column("city", "VARCHAR", CITIES[:4])
    zone = Column("zone", "VARCHAR", ("'n'", "'s'"))
    towns = Table("towns", (town, zone), {"public": True}, _anywhere(rng, (town, zone), rng.randint(1, 5)))
    key = Column("code", "INTEGER", ("1",), {"nullable": False})
    name = Column("title", "VARCHAR", ("'u'", "'v'"))
    rows = tuple(((f"{i}", f"{name.value(rng)}"), -1) for i in range(1, rng.randint(2, 4)))
    kinds = Table("kinds", (key, name), {"public": True, "unique": [["code"]]}, rows)
    return [codes, towns, kinds]


def _anywhere(rng: random.Random, columns: Sequence[Column], height: int) -> tuple[tuple[Row, int], ...]:
    return tuple((tuple(c.value(rng) for c in columns), -1) for _ in range(height))


# --- worlds ----------------------------------------------------------------------------------------------------------


def id_world(rng: random.Random, *, replace_one: bool | None = None) -> World:
    """Two tables whose unit is an id: `people` (mostly one row per id) and `visits` (many)."""
    replaced = rng.random() < 0.25 if replace_one is None else replace_one
    promised = rng.random() < 0.3
    most = rng.randint(1, 3)
    limits: dict[str, Any] = {}
    if promised:
        limits["max_rows_per_unit"] = {"rows": most, "enforce": "assume"}
    elif rng.random() < 0.6:
        limits["max_rows_per_unit"] = rng.randint(1, 5)
    if rng.random() < 0.6 or not limits:
        limits["max_groups_per_unit"] = rng.randint(1, 4)
        limits["max_rows_per_group"] = rng.randint(1, 4)
    unit: dict[str, Any] = {"of": "person", "column": "pid"}
    if replaced:
        unit["neighbours"] = "replace_one"
    id_type = rng.choice(("BIGINT", "VARCHAR", "INTEGER"))
    # Sometimes no id has two visits with one flag: then M is 1 where the query groups by it.
    paired = rng.random() < 0.2
    sure = rng.random() < 0.4
    columns = [c if not (paired and c.name == "flag") else _required(c) for c in _columns(rng)]
    visit_columns = (Column("pid", id_type, ("0",), {"nullable": False} if sure else {}), *columns)
    if paired:
        limits["unique"] = [["pid", "flag"]]
    person_columns = (
        Column("pid", id_type, ("0",), {"nullable": False}),
        Column("sex", "VARCHAR", ("'f'", "'m'", "'x'"), {"domain": ["f", "m"]}),
        *_columns(rng),
    )
    keyed = rng.random() < 0.7
    people_policy: dict[str, Any] = {"unit": dict(unit)}
    if keyed:
        people_policy["primary_key"] = ["pid"]
    else:
        people_policy["max_rows_per_unit"] = rng.randint(1, 2)
    ids = [f"CAST('{i}' AS {id_type})" for i in range(1, rng.randint(3, 6))]
    extra = [f"CAST('{i}' AS {id_type})" for i in (77, 78)] if replaced else []
    base, masks = _id_databases(ids, extra)
    visits: list[tuple[Row, int]] = []
    people: list[tuple[Row, int]] = []
    for one in (*ids, *extra):
        height = rng.randint(0, most) if promised else rng.choice((0, 1, 2, 3, 7))
        rows = _alike(rng, columns, height)
        if paired:
            at = [c.name for c in columns].index("flag")
            rows = list({row[at]: row for row in rows}.values())
        visits += [((one, *row), masks[one]) for row in rows]
        height = rng.randint(0, 1) if keyed else rng.randint(0, 3)
        people += [((one, *row), masks[one]) for row in _alike(rng, person_columns[1:], height)]
    if not sure:
        # Rows without an id are nobody's: the answer must not depend on them at all.
        nobody = _alike(rng, columns, rng.randint(0, 3))
        visits += [(("NULL", *row), rng.getrandbits(base + 1)) for row in nobody]
    tables = [
        Table("visits", visit_columns, {"unit": dict(unit), **limits}, tuple(visits)),
        Table("people", person_columns, people_policy, tuple(people)),
        *_public_tables(rng),
    ]
    return world_of(tables, base, f"id unit, replaced={replaced}, limits={limits}")


def _required(c: Column) -> Column:
    """The column declared NOT NULL."""
    return Column(c.name, c.type, c.pool, {**c.policy, "nullable": False})


def _alike(rng: random.Random, columns: Sequence[Column], height: int) -> list[Row]:
    """Rows of which some agree in many columns: only together do they reach a limit."""
    common = [c.value(rng) for c in columns]
    found = []
    for _ in range(height):
        share = rng.choice((0, 0.5, 0.9, 1))
        found.append(tuple(a if rng.random() < share else c.value(rng) for a, c in zip(common, columns, strict=True)))
    return found


def _id_databases(ids: Sequence[str], extra: Sequence[str]) -> tuple[int, dict[str, int]]:
    """(number of neighbours, id → bit mask). Neighbour i lacks ids[i-1]; where ids are replaced, it has extra ones."""
    count = 0
    members: dict[str, set[int]] = {i: {0} for i in ids} | {e: set() for e in extra}
    for gone in ids:
        for come in extra or [None]:
            count += 1
            for i in ids:
                if i != gone:
                    members[i].add(count)
            if come is not None:
                members[come].add(count)
    return count, {i: sum(1 << db for db in dbs) for i, dbs in members.items()}


def row_world(rng: random.Random, *, replace_one: bool | None = None) -> World:
    """One table whose unit is k rows."""
    replaced = rng.random() < 0.25 if replace_one is None else replace_one
    k = rng.randint(1, 3)
    unit: dict[str, Any] = {"rows": k}
    if replaced:
        unit["neighbours"] = "replace_one"
    columns = (
        Column("rid", "INTEGER", ("0",), {"nullable": False}),
        Column("pid", "BIGINT", ("1", "2", "3"), {}),
        *_columns(rng),
    )
    height = rng.randint(k, 9)
    rows = [(f"{i}", *row) for i, row in enumerate(_alike(rng, columns[1:], height + (k if replaced else 0)))]
    members: list[set[int]] = [{0} if i < height else set() for i in range(len(rows))]
    neighbours = rng.randint(3, 6)
    for db in range(1, neighbours + 1):
        gone = set(rng.sample(range(height), min(height, rng.randint(1, k) if rng.random() < 0.3 else k)))
        for i in range(height):
            if i not in gone:
                members[i].add(db)
        for i in range(height, height + (len(gone) if replaced else 0)):
            members[i].add(db)
    stored = tuple((row, sum(1 << db for db in dbs)) for row, dbs in zip(rows, members, strict=True))
    policy: dict[str, Any] = {"unit": unit}
    if rng.random() < 0.3:
        policy["unique"] = [["rid"]]
    return world_of(
        [Table("log", columns, policy, stored), *_public_tables(rng)], neighbours, f"rows k={k}, replaced={replaced}"
    )


def world_of(
    tables: Sequence[Table], neighbours: int, description: str, accountant: str = "approx_dp", **defaults: Any
) -> World:
    """The world of these tables. defaults: of the policy."""
    policy = Policy.model_validate(
        {
            "version": 1,
            "name": "random",
            "privacy": {"accountant": accountant},
            "tables": {t.name: t.entry for t in tables},
            "defaults": {"max_keys": 10_000, **defaults},
            "budgets": {"total": BUDGETS[accountant]},
        }
    )
    return World(policy, tuple(tables), neighbours, description)


def random_world(rng: random.Random) -> World:
    """Either kind."""
    return id_world(rng) if rng.random() < 0.7 else row_world(rng)
