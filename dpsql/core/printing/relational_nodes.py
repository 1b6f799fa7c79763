"""Relational nodes → SELECT. One block holds a FROM clause and its conditions; grouping and order close a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Column, Expr, Literal, columns_of
from dpsql.core.ir.nodes import (
    Aggregate,
    BoundContributions,
    Filter,
    GroupKeys,
    Join,
    JoinKind,
    Limit,
    Node,
    Project,
    Release,
    Scan,
    SetColumn,
    SetKind,
    SetOperation,
    Sort,
    SortKey,
    Truncate,
    Unnest,
    Values,
    Window,
    output_columns,
)
from dpsql.core.ir.periods import ReadPeriods
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import BOOLEAN, Kind
from dpsql.core.ir.walk import Tagged
from dpsql.core.printing.conversions import as_type, calendar_ends
from dpsql.core.printing.dialect import CannotSpell, Dialect
from dpsql.core.printing.expressions import Aliases, Block, Names, TableNames, cannot_compute, condition, spell
from dpsql.core.printing.forms.kept_first import first
from dpsql.core.printing.forms.key_lists import OfGroups, member
from dpsql.core.printing.group_by import grouped
from dpsql.core.printing.windows import private_order, sort_term, spell_window
from dpsql.core.value_classes import replace
from dpsql.core.values.value import Value

_KINDS = {
    JoinKind.INNER: "JOIN",
    JoinKind.CROSS: "JOIN",
    JoinKind.LEFT: "LEFT JOIN",
}

MOST_REPEATED = 5_000
"""Longest subquery, in characters, that is written three times: nested ones must not multiply without end."""


@dataclass(slots=True)
class Emitter:
    """Prints the nodes of one statement.

    released: number (`id`) of each release → the table that holds its noisy rows.
    """

    dialect: Dialect
    tables: TableNames
    released: Mapping[Node, str]
    aliases: Aliases

    def block(self, tagged: Tagged[Facts]) -> Block:
        """A node as a FROM clause."""
        node, env = tagged.node, tagged.fact.env
        match node:
            case Scan(table=table, columns=columns):
                alias = self.aliases.table()
                sql = self._stored(alias, columns)
                source = self.tables(table) if node.periods is None else self._of_periods(node, node.periods, env)
                return Block(f"{source} AS {alias}", (), self._names(sql, env))
            case Filter(predicate=predicate):
                below = self.block(tagged.inputs[0])
                return below.filtered(condition(predicate, below.names))
            case Join():
                return self._join(node, tagged)
            case Unnest():
                return self._unnest(node, tagged)
            case GroupKeys():
                return self.keyed(node, tagged)
            case BoundContributions():  # the release above prints its weights: shapes/weighted.py
                return self.block(tagged.inputs[0])
            case Release(keys=keys, outputs=outputs):
                alias = self.aliases.table()
                sql = {c.uid: f"{alias}.c{c.uid}" for c in (*keys, *(o.column for o in outputs))}
                return Block(f"{self.released[node]} AS {alias}", (), self._names(sql, env))
            case _:
                alias = self.aliases.table()
                inner = self.query(tagged)
                sql = {c.uid: f"{alias}.c{c.uid}" for c in output_columns(node)}
                return Block(f"({inner}) AS {alias}", (), self._names(sql, env))

    def _stored(self, alias: str, columns: Sequence[Column]) -> dict[int, str]:
        return {c.uid: self.dialect.column(f"{alias}.{self.dialect.identifier(c.name)}", c.type) for c in columns}

    def _of_periods(self, node: Scan, read: ReadPeriods, env: Mapping[int, Value]) -> str:
        """The rows of a growing table that are read, as a table: nothing of the query stands below its condition."""
        alias = self.aliases.table()
        listed = ", ".join(f"{alias}.{self.dialect.identifier(c.name)}" for c in node.columns)
        kept = condition(read.condition(node.columns), self._names(self._stored(alias, node.columns), env))
        return f"(SELECT {listed} FROM {self.tables(node.table)} AS {alias} WHERE {kept})"

    def _names(self, sql: Mapping[int, str], env: Mapping[int, Value]) -> Names:
        return Names(sql, env, self.dialect)

    def _of_both(self, left: Block, right: Block) -> Names:
        return self._names({**right.names.sql, **left.names.sql}, {**left.names.env, **right.names.env})

    def _join(self, node: Join, tagged: Tagged[Facts]) -> Block:
        left, right = (self.block(t) for t in tagged.inputs)
        if right.lateral or (node.kind is JoinKind.FULL and right.where):
            right = self._closed(right, tagged.inputs[1])
        if node.kind is JoinKind.FULL and left.where:
            left = self._closed(left, tagged.inputs[0])
        both = {**right.names.sql, **left.names.sql}
        compared = _not_in(node)
        if compared is not None and len(right.clause()) <= MOST_REPEATED:
            return self._none_equal(left, right, compared, self._of_both(left, right), tagged)
        if node.kind.filters and not _compares_sides(node, left, right):
            return self._if_any(node, left, right, self._of_both(left, right), tagged)
        on = [f"{spell(e.left, left.names)[0]} = {spell(e.right, right.names)[0]}" for e in node.equalities]
        if node.residual is not None:
            on.append(condition(node.residual, self._of_both(left, right)))
        where = left.where + right.where
        if node.kind is JoinKind.LEFT or node.kind.filters:  # the right side is filtered before it is joined
            on, where = on + list(right.where), left.where
        other, terms = right.source if right.simple else f"({right.source})", " AND ".join(on) or "TRUE"
        if node.kind.filters:
            source, more = self.dialect.half_join(left.source, other, terms, node.kind is JoinKind.ANTI)
            where += more
        elif node.kind is JoinKind.FULL:
            source = self._full(node, left, other, terms)
        else:
            source = f"{left.source}\n{_KINDS[node.kind]} {other} ON {terms}"
        kept = left.names.sql if node.kind.filters else both
        return Block(source, where, self._names(kept, tagged.fact.env), simple=False, lateral=left.lateral)

    def _full(self, node: Join, left: Block, other: str, terms: str) -> str:
        equal = any(
            columns_of(e.left) and columns_of(e.right) and e.left.type.kind is e.right.type.kind
            for e in node.equalities
        )
        try:
            return self.dialect.full_join(left.source, other, terms, equal)
        except CannotSpell as refusal:
            raise cannot_compute("FULL JOIN", self.dialect, node.span, str(refusal)) from None

    def _if_any(self, node: Join, left: Block, right: Block, names: Names, tagged: Tagged[Facts]) -> Block:
        """A SEMI or ANTI join of which no condition compares the two sides: whether there is any row at all.

        Counted, because DuckDB 2.0 was seen to give a row once for each match of a SEMI JOIN … ON TRUE.
        """
        terms: list[Expr] = [Call("eq", (e.left, e.right), BOOLEAN) for e in node.equalities]
        terms += [] if node.residual is None else conjuncts(node.residual)
        own = [condition(t, names) for t in terms if not columns_of(t) & right.names.sql.keys()]
        theirs = [condition(t, names) for t in terms if columns_of(t) & right.names.sql.keys()]
        alias = self.aliases.table()
        some, none = f"{alias}.n > 0", f"{alias}.n = 0"
        if node.kind is JoinKind.SEMI:
            on = " AND ".join([some, *own])
        else:
            on = " OR ".join([none, *(f"({term}) IS NOT TRUE" for term in own)])
        source = f"{left.source}\nJOIN (SELECT COUNT(*) AS n\n{right.filtered(*theirs).clause()}) AS {alias} ON {on}"
        kept = self._names(left.names.sql, tagged.fact.env)
        return Block(source, left.where, kept, simple=False, lateral=left.lateral)

    def _none_equal(
        self, left: Block, right: Block, compared: tuple[Call, Expr, Expr], names: Names, tagged: Tagged[Facts]
    ) -> Block:
        """x NOT IN (c, …) where either may be NULL: no c equals x, no c is NULL, and x is not, unless there is no c.

        As three joins instead of one on `coalesce(x = c, true)`, which DuckDB answers by comparing all pairs.
        """
        equal, outer, inner = compared
        absent, every = self.aliases.table(), self.aliases.table()
        other = right.source if right.simple else f"({right.source})"
        on = " AND ".join((condition(equal, names), *right.where))
        nulls = right.filtered(f"{spell(inner, names)[0]} IS NULL")
        source, more = self.dialect.half_join(left.source, other, on, anti=True)
        source = (
            f"{source}\nJOIN (SELECT COUNT(*) AS n {nulls.clause()}) AS {absent} ON {absent}.n = 0"
            f"\nJOIN (SELECT COUNT(*) AS n {right.clause()}) AS {every} "
            f"ON {every}.n = 0 OR {spell(outer, names)[0]} IS NOT NULL"
        )
        kept = self._names(left.names.sql, tagged.fact.env)
        return Block(source, left.where + more, kept, simple=False, lateral=left.lateral)

    def _closed(self, block: Block, tagged: Tagged[Facts]) -> Block:
        """The same rows as a derived table."""
        alias = self.aliases.table()
        columns = [c for c in output_columns(tagged.node) if c.uid in block.names.sql]
        listed = ", ".join(f"{block.names.sql[c.uid]} AS c{c.uid}" for c in columns) or "NULL AS nothing"
        sql = {c.uid: f"{alias}.c{c.uid}" for c in columns}
        return Block(f"(SELECT {listed}\n{block.clause()}) AS {alias}", (), self._names(sql, block.names.env))

    def _unnest(self, node: Unnest, tagged: Tagged[Facts]) -> Block:
        """One row per element of the list, which is cut to its declared length first."""
        below = self.block(tagged.inputs[0])
        alias = self.aliases.table()
        source = f"{below.source}\n{self.dialect.unnest(spell(node.list, below.names)[0], node.most, alias)}"
        sql = {**below.names.sql, node.column.uid: f"{alias}.element"}
        return Block(source, below.where, self._names(sql, tagged.fact.env), simple=False, lateral=True)

    def _truncated(self, node: Truncate, tagged: Tagged[Facts]) -> str:
        """Which rows of a key stay is decided by the rows themselves, by all of their declared columns."""
        below = self.block(tagged.inputs[0])
        columns = output_columns(node)
        listed = ", ".join(f"{below.names.sql[c.uid]} AS c{c.uid}" for c in columns)
        keys = ", ".join(below.names.sql[c.uid] for c in node.columns)
        if node.drop:
            kept = f"COUNT(*) OVER (PARTITION BY {keys}) <= {node.rows}"
        else:
            kept = first(self.dialect, node.rows, keys, [(below.names.sql[c.uid], c.type) for c in columns], texts=True)
        unmatched = " OR ".join(f"{below.names.sql[c.uid]} IS NULL" for c in node.columns)
        return self.dialect.first_rows(f"SELECT {listed}", f"\n{below.clause()}\n", f"{kept} OR {unmatched}")

    def keyed(self, node: GroupKeys, tagged: Tagged[Facts], asked: list[OfGroups] | None = None) -> Block:
        """Adds the key columns; rows outside the public lists are dropped, unless the list covers every row.

        So are rows whose date or time lies outside of what a key can be: a condition on the row alone, like the lists.
        asked: gets what the groups are asked in place of the rows: lists of the texts of a column.
        """
        below, lists = self.block(tagged.inputs[0]), node.sources or node.within
        sql, conditions = dict(below.names.sql), []
        for item in node.items:
            sql[item.column.uid] = spell(item.expr, below.names)[0]
        listed = {at for source in lists if not source.covers for at in source.positions}
        for at, item in enumerate(node.items):
            # Other dates are no keys that Python can hold: they would arrive as text, or (`infinity`) as a key that is
            # taken already.
            ends = calendar_ends(self.dialect, item.column.type)
            if at not in listed and ends is not None:
                key = sql[item.column.uid]
                conditions.append(f"({key} BETWEEN {ends[0]} AND {ends[1]} OR {key} IS NULL)")
        for source in lists:
            for place, position in enumerate(source.positions if not source.covers else ()):
                item = node.items[position]
                key, type_ = sql[item.column.uid], item.column.type
                later = OfGroups(item.column, source, place)
                if asked is not None and isinstance(item.expr, Column) and later.may_wait(self.dialect):
                    asked.append(later)
                else:
                    conditions.append(member(self.dialect, key, type_, source, place))
        return replace(below, names=self._names(sql, tagged.fact.env)).filtered(*conditions)

    def query(self, tagged: Tagged[Facts], columns: Sequence[Column] | None = None) -> str:
        """A node as a complete SELECT whose columns are named c<number>: all of them, or those listed, in order."""
        node, order, limit = tagged.node, "", ""
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
        if not keys and not limit and items is None:
            match node:
                case Aggregate():
                    return grouped(node, self.block(tagged.inputs[0]), columns, private=not tagged.fact.public)
                case SetOperation():
                    return self._set_operation(node, tagged, columns)
                case Truncate():
                    return self._truncated(node, tagged)
        match node:
            case Values():
                sql = {c.uid: f"v.c{c.uid}" for c in node.columns}
                block = Block(_values(self.dialect, node), (), self._names(sql, tagged.fact.env))
            case Window(calls=calls):
                below = self.block(tagged.inputs[0])
                ties = () if tagged.fact.public else private_order(below.names, output_columns(node.input))
                windows = {w.column.uid: spell_window(w, below.names, ties) for w in calls}
                block = replace(below, names=self._names({**below.names.sql, **windows}, tagged.fact.env))
            case _:
                block = self.block(tagged)
        if items is None:
            printed = {c.uid: block.names.sql[c.uid] for c in output_columns(node)}
        else:
            printed = {i.column.uid: spell(i.expr, block.names)[0] for i in items}
        chosen = list(printed) if columns is None else [c.uid for c in columns]
        take(1 + len(chosen) + sum(map(len, printed.values())) // 16)
        listed = [f"{printed[uid]} AS c{uid}" for uid in chosen]
        if keys:
            order = f"\nORDER BY {', '.join(sort_term(k, block.names) for k in keys)}"
        return f"SELECT {', '.join(listed) or 'NULL'}\n{block.clause()}{order}{limit}"

    def _set_operation(self, node: SetOperation, tagged: Tagged[Facts], columns: Sequence[Column] | None) -> str:
        """Both sides by position. Columns are chosen around it: leaving one out would change which rows are equal."""
        sides = []
        for child, side in zip(tagged.inputs, ("left", "right"), strict=True):
            block = self.block(child)
            listed = [f"{self._side(c, side, block.names, node)} AS c{c.column.uid}" for c in node.columns]
            sides.append(f"SELECT {', '.join(listed)}\n{block.clause()}")
        both = f"({sides[0]})\n{node.kind.value.upper()}{' ALL' if node.all else ''}\n({sides[1]})"
        if columns is None:
            return both
        alias = self.aliases.table()
        chosen = [f"{alias}.c{c.uid}" for c in columns]
        return f"SELECT {', '.join(chosen) or 'NULL'}\nFROM ({both}) AS {alias}"

    def _side(self, c: SetColumn, side: str, names: Names, node: SetOperation) -> str:
        expr = c.left if side == "left" else c.right
        sql, value = spell(expr, names)
        sql = as_type(self.dialect, sql, value, c.column.type)
        if c.column.type.kind is Kind.DOUBLE and not (node.all and node.kind is SetKind.UNION):
            return self.dialect.positive_zero(sql, c.column.type)
        return sql


def _not_in(node: Join) -> tuple[Call, Expr, Expr] | None:
    """The comparison `x = c` of an anti join on `coalesce(x = c, true)` alone, then its left and its right side."""
    match node:
        case Join(
            kind=JoinKind.ANTI,
            equalities=(),
            residual=Call(function="coalesce", args=(Call(function="eq", args=(a, b)) as equal, Literal(value=True))),
        ):
            left, right = (frozenset(c.uid for c in output_columns(side)) for side in (node.left, node.right))
            for outer, inner in ((a, b), (b, a)):
                if columns_of(outer) <= left and columns_of(inner) and columns_of(inner) <= right:
                    return equal, outer, inner
    return None


def _compares_sides(node: Join, left: Block, right: Block) -> bool:
    """Whether some condition reads columns of both sides."""
    terms = [columns_of(e.left) | columns_of(e.right) for e in node.equalities]
    terms += [] if node.residual is None else [columns_of(t) for t in conjuncts(node.residual)]
    return any(read & left.names.sql.keys() and read & right.names.sql.keys() for read in terms)


def _values(d: Dialect, node: Values) -> str:
    if not node.rows:
        nothing = ", ".join(f"{d.constant(None, c.type)} AS c{c.uid}" for c in node.columns) or "NULL AS nothing"
        return f"(SELECT {nothing} WHERE FALSE) AS v"
    names = [f"c{c.uid}" for c in node.columns]
    if (many := d.many_values(names, [c.type for c in node.columns], node.rows, "v")) is not None:
        return many
    rows = [
        ", ".join(d.constant(v, c.type) for v, c in zip(row, node.columns, strict=True)) or "NULL" for row in node.rows
    ]
    return d.values(rows, names or ["nothing"], "v")
