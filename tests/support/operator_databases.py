"""Tiny databases for plans of all operators: two id units, paths of one and two hops, two row units, public tables.

One policy holds them all, and a neighbour differs in one unit only: all rows of one id (found through the paths, too),
or k rows of one table. Rows that are nobody's differ in every neighbour as they like. What the policy promises holds
for all rows of all databases together, so in each of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.support.random_databases import Column, Row, Table, World, world_of

PERSON, FIRM = "person", "firm"


@dataclass(frozen=True, slots=True)
class Changed:
    """What a neighbour differs in: its unit, and for ids the values that may differ."""

    unit: str
    ids: frozenset[Any] = frozenset()


@dataclass(frozen=True, slots=True)
class Databases:
    """A world and, for each neighbour (number 1 and up), what it differs in."""

    world: World
    changes: tuple[Changed, ...]
    replaced: bool

    def with_rows(self, rows: dict[str, Sequence[tuple[Row, int]]]) -> Databases:
        """The same policy over other rows."""
        tables = tuple(replace(t, rows=tuple(rows.get(t.name, t.rows))) for t in self.world.tables)
        return replace(self, world=replace(self.world, tables=tables))

    def shuffled(self, rng: random.Random) -> Databases:
        """The same rows, stored in another order."""
        return self.with_rows({t.name: rng.sample(t.rows, len(t.rows)) for t in self.world.tables})


CODES = ("1", "2", "3")
LISTS = ("[1, 2, 2]", "[]", "[NULL, 1]", "[3]", "[2, 2]")
DOUBLES = ("0.1", "0.2", "0.3", "0.7", "-0.0", "0", "'nan'", "'inf'", "1e300")


def operator_world(rng: random.Random, replaced: bool | None = None) -> Databases:
    """A random policy with its databases."""
    replaced = rng.random() < 0.2 if replaced is None else replaced
    return _Maker(rng, replaced).made()


class _Maker:
    def __init__(self, rng: random.Random, replaced: bool) -> None:
        self.rng, self.replaced = rng, replaced
        # What is replaced reaches a claim only where what goes and what comes are both at their limits: both often are.
        self.few = int(replaced and rng.random() < 0.7)
        self.ids = list(range(1, rng.randint(2, 3) + 1))
        self.extra = [77] if replaced else []
        self.k = {"log": rng.randint(1, 2), "notes": rng.randint(1, 2)}
        self.changes: list[Changed] = []
        self.firms = [11, 12]
        self.mask: dict[Any, int] = dict.fromkeys([*self.ids, *self.firms], 1) | dict.fromkeys([77, 88], 0)
        self.removed: dict[str, list[int]] = {"log": [], "notes": []}
        for gone in self.ids:
            for come in self.extra or [None]:
                self._add(Changed(PERSON, frozenset({gone} | ({come} if come else set()))), gone, come)
        for gone in self.firms:
            come = 88 if replaced else None
            self._add(Changed(FIRM, frozenset({gone} | ({come} if come else set()))), gone, come)
        for name in ("log", "notes"):
            for _ in range(3):
                self.removed[name].append(len(self.changes) + 1)
                self._add(Changed(name), None, None)
        self.sure_id, self.sure_key = rng.random() < 0.5, rng.random() < 0.6
        self.composite = rng.random() < 0.3
        self.codes = CODES[: rng.randint(1, 3)]

    def _jobs(self) -> Table:
        """Another unit: rows of firms, which name a person as well."""
        fid = Column("fid", "INTEGER", (), {"nullable": False} if self.sure_id else {})
        pid = Column("pid", "INTEGER", tuple(map(str, self.ids)), {})
        columns = (fid, pid, *map(self._column, ("code", "x")))
        unit: dict[str, Any] = {"of": FIRM, "column": "fid"}
        if self.replaced:
            unit["neighbours"] = "replace_one"
        policy: dict[str, Any] = {"unit": unit, **self._limits()}
        rows = [
            ((f"CAST({one} AS INTEGER)", *self._values(columns[1:])), self.mask[one])
            for one in (*self.firms, 88)
            for _ in range(self.rng.randint(self.few, 2))
        ]
        limit = policy.get("max_rows_per_unit")
        if isinstance(limit, dict):
            self._kept(rows, columns, ["fid"], limit["rows"])
        if not self.sure_id:
            rows += [(("NULL", *self._values(columns[1:])), self.anyhow)]
        self._promise_code(policy, rows, columns, ("assume",))
        return Table("jobs", columns, policy, tuple(rows))

    def _add(self, changed: Changed, gone: Any, come: Any) -> None:
        self.changes.append(changed)
        for one in self.mask:
            if one == come or (one in (*self.ids, *self.firms) and one != gone):
                self.mask[one] |= 1 << len(self.changes)

    @property
    def anyhow(self) -> int:
        """The databases of a row that is nobody's."""
        return self.rng.getrandbits(len(self.changes) + 1)

    def _column(self, name: str, nullable: float = 0.5) -> Column:
        sure: dict[str, Any] = {"nullable": False} if self.rng.random() > nullable else {}
        match name:
            case "code":
                return Column(name, "INTEGER", self.codes, sure)
            case "x":
                values = ("0", "9") if self.few else ("0", "1", "2", "9")
                return Column(name, "INTEGER", values, {**sure, "bounds": [0, 3]})
            case "d":
                return Column(name, "DOUBLE", DOUBLES, {**sure, "bounds": [-1, 1]})
            case "s":
                return Column(name, "VARCHAR", ("'a'", "'b'", "'B'"), sure)
            case "tags":
                return Column(name, "INTEGER[]", LISTS, {**sure, "max_length": self.rng.randint(1, 2)})
        raise AssertionError(name)

    def _values(self, columns: Iterable[Column]) -> Row:
        return tuple(c.value(self.rng) for c in columns)

    def _unit(self) -> dict[str, Any]:
        return {"of": PERSON, "column": "pid", **({"neighbours": "replace_one"} if self.replaced else {})}

    def _kept(self, rows: list[tuple[Row, int]], columns: Sequence[Column], names: Sequence[str], most: int) -> None:
        """Leave out rows that break a promise; NULL agrees with nothing."""
        places = [[c.name for c in columns].index(n) for n in names]
        seen: dict[tuple[str, ...], int] = {}
        for row in list(rows):
            key = tuple(row[0][i] for i in places)
            if "NULL" in key:
                continue
            seen[key] = seen.get(key, 0) + 1
            if seen[key] > most:
                rows.remove(row)

    def made(self) -> Databases:
        people, orders = self._people(), self._orders()
        items = self._referring("items", orders, ["shop", "oid"] if self.composite else ["oid"], ["code", "x", "tags"])
        parts = self._referring("parts", items, ["iid"], ["code", "d"])
        tables = [people, orders, items, parts, self._jobs(), self._rows("log"), self._rows("notes"), *self._public()]
        world = world_of(tables, len(self.changes), f"replaced={self.replaced}, k={self.k}, {self.changes}")
        return Databases(world, tuple(self.changes), self.replaced)

    def _people(self) -> Table:
        columns = (Column("pid", "INTEGER", (), {"nullable": False}), *map(self._column, ("code", "x", "s")))
        policy = {"unit": self._unit(), "primary_key": ["pid"], **self._limits(assumed=False)}
        rows = [
            ((f"CAST({one} AS INTEGER)", *self._values(columns[1:])), self.mask[one])
            for one in (*self.ids, *self.extra)
            if self.rng.random() < 0.8 or self.few
        ]
        return Table("people", columns, policy, tuple(rows))

    def _limits(self, assumed: bool = True) -> dict[str, Any]:
        found: dict[str, Any] = {}
        most = 1 if self.few else 3
        if assumed and self.rng.random() < 0.6:
            return {"max_rows_per_unit": {"rows": self.rng.randint(1, max(most, 2)), "enforce": "assume"}}
        if self.rng.random() < 0.7:
            found["max_rows_per_unit"] = self.rng.randint(1, most + 1)
        if self.rng.random() < 0.6 or not found:
            found |= {"max_groups_per_unit": self.rng.randint(1, most), "max_rows_per_group": self.rng.randint(1, most)}
        return found

    def _orders(self) -> Table:
        key: dict[str, Any] = {"nullable": False} if self.sure_key else {}
        columns = [Column("pid", "INTEGER", (), {"nullable": False} if self.sure_id else {})]
        if self.composite:
            columns.append(Column("shop", "INTEGER", ("1", "2"), key))
        columns += [Column("oid", "INTEGER", (), key), *map(self._column, ("code", "x", "d"))]
        policy: dict[str, Any] = {"unit": self._unit(), **self._limits()}
        referenced = ["shop", "oid"] if self.composite else ["oid"]
        policy["unique"] = [referenced]
        owners = [one for one in (*self.ids, *self.extra) for _ in range(self.rng.randint(self.few, 3))]
        owners += [] if self.sure_id else [None] * self.rng.randint(0, 2)
        rows = []
        for number, one in enumerate(owners):
            oid = self._maybe(number // 2 + 1 if self.composite else number + 1, not self.sure_key)
            shop = [self._maybe(number % 2 + 1, not self.sure_key)] if self.composite else []
            rest = self._values(columns[2 + len(shop) :])
            pid = "CAST(NULL AS INTEGER)" if one is None else f"CAST({one} AS INTEGER)"
            rows.append(((pid, *shop, oid, *rest), self.anyhow if one is None else self.mask[one]))
        limit = policy.get("max_rows_per_unit")
        if isinstance(limit, dict):
            known = [r for r in rows if "NULL" not in r[0][0]]
            nobody = [r for r in rows if "NULL" in r[0][0]]
            self._kept(known, columns, ["pid"], limit["rows"])
            rows = known + nobody
        self._promise_code(policy, rows, columns, ("assume",))
        return Table("orders", tuple(columns), policy, tuple(rows))

    def _maybe(self, number: int, nullable: bool) -> str:
        return "NULL" if nullable and self.rng.random() < 0.15 else f"CAST({number} AS INTEGER)"

    def _promise_code(
        self, policy: dict[str, Any], rows: list[tuple[Row, int]], columns: Sequence[Column], ways: Sequence[str]
    ) -> None:
        if self.rng.random() < 0.4:
            return
        how, most = self.rng.choice(ways), self.rng.randint(1, 2)
        name = self.rng.choice(("code", "code", "x")) if any(c.name == "x" for c in columns) else "code"
        if how == "assume":
            self._kept(rows, columns, [name], most)
        if most == 1:
            policy["unique"] = [*policy.get("unique", []), {"columns": [name], "enforce": how}]
        else:
            policy["max_frequency"] = [{"columns": [name], "rows": most, "enforce": how}]

    def _referring(self, name: str, parent: Table, hop: list[str], rest: list[str]) -> Table:
        """A table whose rows are owned by the rows of `parent` that they refer to."""
        keys = [Column(h, "INTEGER", (), {}) for h in hop]
        own = [Column("iid", "INTEGER", (), {})] if name == "items" else []
        columns = (*keys, *own, *map(self._column, rest))
        policy: dict[str, Any] = {
            "unit": {"path": [{"columns": hop, "references": f"{parent.name}({', '.join(hop)})"}]},
            **self._limits(assumed=False),
        }
        if own:
            policy["unique"] = [["iid"]]
        at = [[c.name for c in parent.columns].index(h) for h in hop]
        referred: list[tuple[Row, int]] = []
        for row, mask in parent.rows:
            key = tuple(row[i] for i in at)
            lost = "NULL" in key or "NULL" in row[0]
            referred += [(key, -1 if lost else mask)] * self.rng.randint(self.few, 2)
        nowhere = tuple("CAST(99 AS INTEGER)" for _ in hop)
        referred += [(nowhere, -1)] * self.rng.randint(0, 1)
        rows = []
        for number, (key, mask) in enumerate(referred):
            number_of = (self._maybe(number + 1, True),) if own else ()
            row = (*key, *number_of, *self._values(columns[len(key) + len(own) :]))
            rows.append((row, self.anyhow if mask == -1 else mask))
        self._promise_code(policy, rows, columns, ("assume",))
        return Table(name, tuple(columns), policy, tuple(rows))

    def _rows(self, name: str) -> Table:
        k = self.k[name]
        columns = (
            Column("rid", "INTEGER", (), {"nullable": False}),
            *map(self._column, ("code", "x", "d", "tags") if name == "log" else ("code", "x", "s")),
        )
        unit: dict[str, Any] = {"rows": k, "of": name}
        policy: dict[str, Any] = {"unit": unit}
        height = self.rng.randint(k, 5)
        plain = [((f"{i}", *self._values(columns[1:])), 0) for i in range(height + (k if self.replaced else 0))]
        self._promise_code(policy, plain, columns, ("assume", "truncate", "truncate", "drop"))
        rows = [row for row, _ in plain]
        if self.replaced:
            unit["neighbours"] = "replace_one"
            height = max(0, len(rows) - k)
            if height and self.rng.random() < 0.7:
                policy["size"] = {"exact": height}
        else:
            height = len(rows)
        masks = [1 if i < height else 0 for i in range(len(rows))]
        for db in range(1, len(self.changes) + 1):
            gone: set[int] = set()
            if db in self.removed[name]:
                gone = set(self.rng.sample(range(height), min(k, height)))
            for i in range(height):
                masks[i] |= (i not in gone) << db
            for i in range(height, min(len(rows), height + len(gone)) if self.replaced else height):
                masks[i] |= 1 << db
        if self.rng.random() < 0.4:
            policy["unique"] = [*policy.get("unique", []), ["rid"]]
        return Table(name, columns, policy, tuple(zip(rows, masks, strict=True)))

    def _public(self) -> list[Table]:
        columns = tuple(map(self._column, ("code", "x", "s")))
        codes = tuple((self._values(columns), -1) for _ in range(self.rng.randint(0, 5)))
        key = Column("code", "INTEGER", CODES, {"nullable": False})
        name = Column("s", "VARCHAR", ("'a'", "'b'"))
        kinds = tuple(((f"CAST({i} AS INTEGER)", name.value(self.rng)), -1) for i in range(1, self.rng.randint(2, 4)))
        return [
            Table("codes", columns, {"public": True}, codes),
            Table("kinds", (key, name), {"public": True, "unique": [["code"]]}, kinds),
        ]
