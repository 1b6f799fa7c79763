"""Relational nodes → SELECT. One block holds a FROM clause and its conditions; grouping and order close a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dpsql.analysis.facts import Facts
from dpsql.plan.expr import Column, LiteralValue
from dpsql.plan.nodes import (
    Aggregate,
    AggregateCall,
    BoundContributions,
    Filter,
    GroupKeys,
    Join,
    Limit,
    Node,
    Project,
    Release,
    Scan,
    Sort,
    SortKey,
    Values,
    output_columns,
)
from dpsql.plan.walk import Tagged
from dpsql.sql.emit import Aliases, Names, TableNames, condition, constant, identifier, spell
from dpsql.types import Kind

_REACH = {
    Kind.DATE: ("DATE '0001-01-01'", "DATE '9999-12-31'"),
    Kind.TIMESTAMP: ("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"),
    Kind.TIME: ("TIME '00:00:00'", "TIME '23:59:59.999999'"),
}
"""Group keys that Python can hold. Others would arrive as text, or (`infinity`) as a key that is taken already."""

ROW = 0
"""Number of the column that carries a released row's position; plan columns are numbered from 1."""


@dataclass(frozen=True, slots=True)
class Block:
    """`FROM source WHERE where`, and how its columns are printed. `simple`: source needs no parentheses in a join."""

    source: str
    where: tuple[str, ...]
    names: Names
    simple: bool = True

    def clause(self) -> str:
        """FROM … WHERE …"""
        where = f"\nWHERE {' AND '.join(self.where)}" if self.where else ""
        return f"FROM {self.source}{where}"

    def filtered(self, *conditions: str) -> Block:
        """The same rows under further conditions."""
        return replace(self, where=(*self.where, *conditions))


@dataclass(slots=True)
class Emitter:
    """Prints the nodes of one statement. `released` names the table that holds each release's noisy rows."""

    tables: TableNames
    released: Mapping[int, str]
    aliases: Aliases

    def block(self, tagged: Tagged[Facts]) -> Block:
        """A node as a FROM clause."""
        node, env = tagged.node, tagged.fact.env
        match node:
            case Scan(table=table, columns=columns):
                alias = self.aliases.table()
                sql = {c.uid: f"{alias}.{identifier(c.name)}" for c in columns}
                return Block(f"{self.tables(table)} AS {alias}", (), Names(sql, env))
            case Filter(predicate=predicate):
                below = self.block(tagged.inputs[0])
                return below.filtered(condition(predicate, below.names))
            case Join():
                return self._join(node, tagged)
            case GroupKeys():
                return self._keyed(node, tagged)
            case BoundContributions():
                return self.block(tagged.inputs[0])
            case Release(keys=keys, outputs=outputs):
                alias = self.aliases.table()
                sql = {c.uid: f"{alias}.c{c.uid}" for c in (*keys, *(o.column for o in outputs))}
                sql[ROW] = f"{alias}.c{ROW}"
                return Block(f"{self.released[id(node)]} AS {alias}", (), Names(sql, env))
            case _:
                alias = self.aliases.table()
                inner = self.query(tagged)
                sql = {c.uid: f"{alias}.c{c.uid}" for c in output_columns(node)}
                if self.traced(node):
                    sql[ROW] = f"{alias}.c{ROW}"
                return Block(f"({inner}) AS {alias}", (), Names(sql, env))

    def _join(self, node: Join, tagged: Tagged[Facts]) -> Block:
        left, right = (self.block(t) for t in tagged.inputs)
        names = Names({**left.names.sql, **right.names.sql}, tagged.fact.env)
        on = [f"{spell(e.left, names)[0]} = {spell(e.right, names)[0]}" for e in node.equalities]
        if node.residual is not None:
            on.append(condition(node.residual, names))
        other = right.source if right.simple else f"({right.source})"
        source = f"{left.source}\nJOIN {other} ON {' AND '.join(on) or 'TRUE'}"
        return Block(source, left.where + right.where, names, simple=False)

    def _keyed(self, node: GroupKeys, tagged: Tagged[Facts]) -> Block:
        """Adds the key columns; rows outside the public lists are dropped, unless the list covers every row.

        So are rows whose date or time lies outside of what a key can be: a condition on the row alone, like the lists.
        """
        below = self.block(tagged.inputs[0])
        sql, conditions = dict(below.names.sql), []
        for item in node.items:
            sql[item.column.uid] = spell(item.expr, below.names)[0]
        listed = {at for source in node.sources or () if not source.covers for at in source.positions}
        for at, item in enumerate(node.items):
            if at not in listed and item.column.type.kind in _REACH:
                key, (first, last) = sql[item.column.uid], _REACH[item.column.type.kind]
                conditions.append(f"({key} BETWEEN {first} AND {last} OR {key} IS NULL)")
        for source in node.sources or ():
            if source.covers:
                continue
            for place, position in enumerate(source.positions):
                column = node.items[position].column
                values = [k[place] for k in source.keys]
                conditions.append(_member(sql[column.uid], column, values))
        return replace(below, names=Names(sql, tagged.fact.env)).filtered(*conditions)

    def traced(self, node: Node) -> bool:
        """Whether each row comes from one row of one release, so that its number can be carried along."""
        match node:
            case Release():
                return bool(self.released)
            case Project(input=child) | Filter(input=child) | Sort(input=child) | Limit(input=child):
                return self.traced(child)
            case _:
                return False

    def query(self, tagged: Tagged[Facts], columns: Sequence[Column] | None = None) -> str:
        """A node as a complete SELECT whose columns are named c<number>: all of them, or those listed, in order.

        Where rows can be traced to a release's rows, column c0 is the number of that row.
        """
        node, order, limit = tagged.node, "", ""
        traced = self.traced(node)
        items = None
        if isinstance(node, Project):
            items, tagged = node.items, tagged.inputs[0]
            node = tagged.node
        if isinstance(node, Limit):
            limit = ("" if node.count is None else f"\nLIMIT {node.count}") + (
                f"\nOFFSET {node.offset}" if node.offset else ""
            )
            tagged = tagged.inputs[0]
            node = tagged.node
        keys: tuple[SortKey, ...] = ()
        if isinstance(node, Sort):
            keys, tagged = node.keys, tagged.inputs[0]
            node = tagged.node
        if isinstance(node, Aggregate) and not keys and not limit and items is None:
            return self._aggregate(node, tagged, columns)
        if isinstance(node, Values):
            block = Block(_values(node), (), Names({c.uid: f"v.c{c.uid}" for c in node.columns}, tagged.fact.env))
        else:
            block = self.block(tagged)
        if items is None:
            printed = {c.uid: block.names.sql[c.uid] for c in output_columns(node)}
        else:
            printed = {i.column.uid: spell(i.expr, block.names)[0] for i in items}
        chosen = list(printed) if columns is None else [c.uid for c in columns]
        listed = [f"{printed[uid]} AS c{uid}" for uid in chosen]
        if traced:
            listed.append(f"{block.names.sql[ROW]} AS c{ROW}")
        if keys:
            terms = [
                f"{spell(k.expr, block.names)[0]}{' DESC' if k.descending else ''}"
                f"{' NULLS FIRST' if k.nulls_first else ' NULLS LAST'}"
                for k in keys
            ]
            order = f"\nORDER BY {', '.join(terms)}"
        return f"SELECT {', '.join(listed) or 'NULL'}\n{block.clause()}{order}{limit}"

    def _aggregate(self, node: Aggregate, tagged: Tagged[Facts], columns: Sequence[Column] | None) -> str:
        """An aggregate over public rows: plain SQL, in the order of its keys."""
        block = self.block(tagged.inputs[0])
        keys = [(spell(k.expr, block.names)[0], k.column) for k in node.keys]
        printed = {c.uid: sql for sql, c in keys}
        printed.update({c.column.uid: _plain_call(c, block.names) for c in node.calls})
        chosen = list(printed) if columns is None else [c.uid for c in columns]
        listed = [f"{printed[uid]} AS c{uid}" for uid in chosen]
        terms = ", ".join(sql for sql, _ in keys)
        group = f"\nGROUP BY {terms}" if keys else ""
        order = f"\nORDER BY {terms}" if keys else ""
        return f"SELECT {', '.join(listed) or 'NULL'}\n{block.clause()}{group}{order}"


def _plain_call(c: AggregateCall, names: Names) -> str:
    arg = "*" if c.arg is None else spell(c.arg, names)[0]
    where = "" if c.filter is None else f" FILTER (WHERE {condition(c.filter, names)})"
    return f"CAST({c.function}({'DISTINCT ' if c.distinct else ''}{arg}){where} AS {c.column.type})"


def _values(node: Values) -> str:
    rows = ", ".join(
        "(" + (", ".join(constant(v, c.type) for v, c in zip(row, node.columns, strict=True)) or "NULL") + ")"
        for row in node.rows
    )
    names = ", ".join(f"c{c.uid}" for c in node.columns) or "nothing"
    return f"(VALUES {rows}) AS v({names})"


def _member(sql: str, column: Column, values: Sequence[LiteralValue]) -> str:
    """Membership in a public key list, NULL included where it is a key."""
    held = [v for v in values if v is not None]
    null = f"{sql} IS NULL"
    if not held:
        return f"({null})" if None in values else "FALSE"
    if _is_run(held):
        member = f"{sql} BETWEEN {constant(held[0], column.type)} AND {constant(held[-1], column.type)}"
    else:
        # Without IS TRUE, DuckDB turns the list into a chain of comparisons per row and loses the dictionary of the
        # column: measured at three times the whole query (benchmarks/README.md).
        member = f"({sql} IN ({', '.join(constant(v, column.type) for v in held)})) IS TRUE"
    return f"({member} OR {null})" if None in values else f"({member})"


def _is_run(values: Sequence[LiteralValue]) -> bool:
    """True for consecutive integers: a range is shorter to print and faster to check."""
    first = values[0]
    if not isinstance(first, int) or isinstance(first, bool):
        return False
    return len(values) > 3 and all(v == first + i for i, v in enumerate(values))
