"""Random queries over a world's tables, most of them inside the accepted SQL."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.random_databases import NUMBERS, World

CLIPS = ("-1000, 2.5", "-3, 7", "0, 7", "0, 1000000000", "-1000, 1000", "0.1, 0.7", "2.5, 2.50001", "-0.5, 1.25")


@dataclass(frozen=True, slots=True)
class Name:
    """A visible column: how to write it, its SQL type, whether it has bounds, and which kind of table it is from."""

    sql: str
    type: str
    bounded: bool
    private: bool

    @property
    def numeric(self) -> bool:
        return self.type in NUMBERS


def random_query(rng: random.Random, world: World) -> str:
    """One query with at least one aggregate."""
    with_, source, names = _from(rng, world)
    where = f" WHERE {condition(rng, names)}" if rng.random() < 0.4 else ""
    keys = [key(rng, names) for _ in range(rng.choice((0, 0, 1, 1, 1, 2)))]
    calls = [aggregate(rng, names) for _ in range(rng.choice((1, 1, 2, 3)))]
    listed = [f"{k} AS k{i}" for i, k in enumerate(keys)] + [f"{c} AS a{i}" for i, c in enumerate(calls)]
    group = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
    return f"{with_}SELECT {', '.join(listed)} FROM {source}{where}{group}"


# --- FROM ------------------------------------------------------------------------------------------------------------


def _from(rng: random.Random, world: World) -> tuple[str, str, list[Name]]:
    """(WITH …, FROM …, visible columns)."""
    table = rng.choice(world.private)
    with_, source, names = _private(rng, world, table.name, "t")
    joins = rng.choice((0, 0, 0, 1, 1, 2))
    used = {"t"}
    for _ in range(joins):
        kind = rng.choice(["public", "public", "cross", *(["private"] if table.name in ("visits", "people") else [])])
        alias = "jkl"[len(used) - 1]
        used.add(alias)
        if kind == "private":
            other = rng.choice([t.name for t in world.private])
            _, right, found = _private(rng, world, other, alias, simple=True)
            on = f"t.pid = {alias}.pid"
            if rng.random() < 0.2:
                on += f" AND {comparison(rng, [*names, *found])}"
            source += f" JOIN {right} ON {on}"
        elif kind == "cross":
            found = names_of(world, rng.choice(("towns", "kinds")), alias)
            source += f" CROSS JOIN {_public_name(found, alias, world)}"
        else:
            name = rng.choice(("codes", "codes", "towns", "kinds"))
            found = names_of(world, name, alias)
            column = "city" if name == "towns" else "code"
            on = f"{alias}.{column} = t.{column}" if rng.random() < 0.5 else f"t.{column} = {alias}.{column}"
            if rng.random() < 0.2:
                on += f" AND {condition(rng, [*names, *found])}"
            shape = rng.random()
            if shape < 0.7:
                source += f" JOIN {name} AS {alias} ON {on}"
            elif shape < 0.85 and " JOIN " not in source:
                source = f"{name} AS {alias} JOIN {source} ON {on}"
            else:
                where = f" WHERE {comparison(rng, found_plain(found))}" if rng.random() < 0.5 else ""
                source += f" JOIN (SELECT * FROM {name} AS {alias}{where}) AS {alias} ON {on}"
        names = [*names, *found]
    return with_, source, names


def found_plain(names: Sequence[Name]) -> list[Name]:
    """The columns of a list, for a condition inside a derived table."""
    return list(names)


def _public_name(found: Sequence[Name], alias: str, world: World) -> str:
    columns = {n.sql.partition(".")[2] for n in found}
    name = next(t.name for t in world.tables if t.public and {c.name for c in t.columns} == columns)
    return f"{name} AS {alias}"


def names_of(world: World, table: str, alias: str) -> list[Name]:
    found = world.table(table)
    return [Name(f"{alias}.{c.name}", c.type, c.bounded, not found.public) for c in found.columns]


def _private(
    rng: random.Random, world: World, table: str, alias: str, simple: bool = False
) -> tuple[str, str, list[Name]]:
    """A private table, bare or inside a derived table or CTE that computes columns."""
    names = names_of(world, table, alias)
    shape = 1.0 if simple else rng.random()
    if shape > 0.25:
        return "", f"{table} AS {alias}", names
    inner = [Name(n.sql.partition(".")[2], n.type, n.bounded, True) for n in names]
    where = f" WHERE {condition(rng, inner)}" if rng.random() < 0.5 else ""
    extra = number(rng, inner, 2)
    body = f"SELECT *, {extra} AS z FROM {table}{where}"
    names = [*names, Name(f"{alias}.z", "DOUBLE", True, True)]
    if shape > 0.12:
        return "", f"({body}) AS {alias}", names
    return f"WITH q AS ({body}) ", f"q AS {alias}", names


# --- expressions -----------------------------------------------------------------------------------------------------


def number(rng: random.Random, names: Sequence[Name], depth: int = 2) -> str:
    """A numeric expression that is likely to have bounds."""
    columns = [n for n in names if n.numeric and n.bounded]
    if depth <= 0 or rng.random() < 0.35:
        return rng.choice(columns).sql if columns and rng.random() < 0.9 else rng.choice(("1", "-2", "0.5", "0"))
    a = number(rng, names, depth - 1)
    b = number(rng, names, depth - 1)
    unbounded = [n.sql for n in names if n.numeric] or ["1"]
    return rng.choice(
        (
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} * 2)",
            f"(-({a}))",
            f"ABS({a})",
            f"CASE WHEN {condition(rng, names, 1)} THEN {a} ELSE {b} END",
            f"CASE WHEN {condition(rng, names, 1)} THEN {a} END",
            f"COALESCE({a}, {b})",
            f"CLIP({rng.choice(unbounded)}, {rng.choice(CLIPS)})",
            f"LEAST(GREATEST({rng.choice(unbounded)}, -2), 6)",
            f"LEAST({a}, {b})",
            f"GREATEST({a}, {b})",
            f"NULLIF({a}, {b})",
            f"FLOOR({a})",
            f"ROUND({a})",
            f"ROUND({a}, 1)",
            f"CAST({a} AS DOUBLE)",
            f"CAST({a} AS INTEGER)",
            f"CAST({a} AS DECIMAL(18,3))",
            f"SQRT(ABS({a}))",
            f"SIGN({a})",
            f"({a} / 3)",
            f"({a} / {b})",
            f"CAST({_flag(rng, names)} AS INTEGER)",
        )
    )


def _flag(rng: random.Random, names: Sequence[Name]) -> str:
    flags = [n.sql for n in names if n.type == "BOOLEAN"]
    return rng.choice(flags) if flags else condition(rng, names, 0)


def condition(rng: random.Random, names: Sequence[Name], depth: int = 2) -> str:
    """A boolean expression; predicates may read unbounded columns."""
    if depth > 0 and rng.random() < 0.3:
        a, b = condition(rng, names, depth - 1), condition(rng, names, depth - 1)
        return rng.choice((f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})"))
    return comparison(rng, names)


def comparison(rng: random.Random, names: Sequence[Name]) -> str:
    """One comparison."""
    n = rng.choice(names)
    if rng.random() < 0.15:
        return f"{n.sql} IS {rng.choice(('NULL', 'NOT NULL'))}"
    op = rng.choice(("=", "<>", "<", "<=", ">", ">="))
    if n.numeric:
        return rng.choice(
            (f"{n.sql} {op} {rng.choice(('0', '1', '2.5', '-1'))}", f"{n.sql} BETWEEN 0 AND 3", f"{n.sql} IN (0, 1, 5)")
        )
    match n.type:
        case "VARCHAR":
            return rng.choice((f"{n.sql} {op} 'a'", f"{n.sql} IN ('a', 'b', 'f')", f"{n.sql} LIKE 'a%'"))
        case "BOOLEAN":
            return rng.choice((n.sql, f"NOT {n.sql}", f"{n.sql} IS NOT DISTINCT FROM true"))
        case "DATE":
            return f"{n.sql} {op} DATE '2024-01-31'"
        case _:
            return f"{n.sql} IS NOT NULL"


def key(rng: random.Random, names: Sequence[Name]) -> str:
    """A group key: public or private."""
    n = rng.choice([n for n in names if n.type not in ("DOUBLE", "FLOAT") and not n.sql.endswith(".pid")])
    if rng.random() < 0.2:
        return (
            f"CASE WHEN {condition(rng, names, 1)} THEN 'in' WHEN {condition(rng, names, 1)} THEN 'mid' ELSE 'out' END"
        )
    if rng.random() < 0.25:
        match n.type:
            case "INTEGER":
                return rng.choice((f"{n.sql} % 2", f"{n.sql} + 1", f"ABS({n.sql})", f"{n.sql} // 2"))
            case "VARCHAR":
                return rng.choice((f"UPPER({n.sql})", f"LENGTH({n.sql})", f"{n.sql} = 'a'", f"COALESCE({n.sql}, 'b')"))
            case "DATE":
                return rng.choice((f"MONTH({n.sql})", f"date_trunc('month', {n.sql})", f"YEAR({n.sql})"))
            case "TIMESTAMP":
                return rng.choice((f"HOUR({n.sql})", f"CAST({n.sql} AS DATE)"))
            case _:
                return n.sql
    return n.sql


def aggregate(rng: random.Random, names: Sequence[Name]) -> str:
    """One aggregate call."""
    x = rng.choice(names).sql
    ids = [n.sql for n in names if n.sql.endswith(".pid")]
    call = rng.choice(
        (
            "COUNT(*)",
            f"COUNT({x})",
            f"COUNT(DISTINCT {x})",
            f"COUNT(DISTINCT {rng.choice(ids)})" if ids else "COUNT(*)",
            f"SUM({number(rng, names)})",
            f"SUM({number(rng, names)})",
            f"AVG({number(rng, names)})",
            f"AVG({number(rng, names)})",
            f"COUNT({number(rng, names)})",
            f"{rng.choice(('VAR_POP', 'VAR_SAMP', 'STDDEV_POP', 'STDDEV'))}({number(rng, names)})",
        )
    )
    return f"{call} FILTER (WHERE {condition(rng, names, 1)})" if rng.random() < 0.2 else call
