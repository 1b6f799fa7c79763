"""The waist: what a statement computes of an analyst's texts are columns of projections, and aggregates read these.

    o: parts of texts that are read twice (repeated_parts.py)     e: texts: arguments, conditions, keys
    i: integers, of columns of e     c: clipped integers, which are multiplied

*Claim.* No text that an analyst wrote stands in the SELECT that adds up: it reads columns, each with one value for each
row. *Why.* What is no bare column and no constant is asked for with the name of its projection, and the SELECT is
printed over their columns alone. Columns that a table holds, and constants, stay where they are: of them each mention
is the same value; a projection that would hold nothing else is left out. *When it would be false.* A text that is
spelled over the names of the SELECT instead of being asked for; an engine that merges projections and computes a text
at each place where its column is named: DuckDB does not (engines/duckdb/locked/optimizers.py), PostgreSQL not beyond an
OFFSET, and for Spark the forms name a column once (forms/clip.py). *Tested by* tests/core/printing/test_waist.py,
tests/engines_elsewhere/postgres/test_waist.py, tests/engines_elsewhere/spark/test_waist.py. Example: `SELECT
SUM(CASE WHEN i.a0 < 0 THEN 0 …) FROM (SELECT CAST(… e.a0 …) AS a0 FROM (SELECT x * 2 AS a0 FROM t) AS e) AS i`.

What reads a projection is printed once, with a mark in place of each column's name: which projections there are, and
so what their columns are called, is known afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum

from dpsql.core.ir.components import Component
from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import VARCHAR
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import Block, Names, spell
from dpsql.core.printing.repeated_parts import RepeatedParts
from dpsql.core.values.value import Value


class Level(IntEnum):
    """Projections from the outermost on. A text is at `TEXTS`, and so on."""

    CLIPPED = 0
    INTEGERS = 1
    TEXTS = 2


Listed = Callable[[Names], list[str]]

_ALIASES = "cie"
_MARK = re.compile("(\0[012]:\\d+\0)")
"""A NUL cannot occur in any literal."""
_COLUMN = re.compile(r'\w+\.(?:\w+|"(?:[^"]|"")*"|`(?:[^`]|``)*`)')


def waist(block: Block, listed: Listed) -> tuple[list[str], Block]:
    """What a SELECT lists, and the block that it reads: its rows, with the columns that the list asks for."""
    columns = WaistColumns(block)
    return columns.placed(listed(Names(columns, block.names.env, block.names.dialect, columns)))


def apart(names: Names, level: Level, sql: str) -> str:
    """A column of the projection of this level, which holds what is printed of columns of lower ones."""
    return sql if names.apart is None else names.apart.column(level, sql)


def text(expr: Expr, names: Names) -> tuple[str, Value]:
    """An expression as `spell` has it; what is more than a column of a table, or a constant, as a column of texts."""
    return spell(expr, names) if names.apart is None or type(expr) is Column else names.apart.text(expr)


def conditions(c: Component, names: Names) -> list[str]:
    """Which rows count in a component, as columns."""
    return [] if c.filter is None else [text(c.filter, names)[0]]


class WaistColumns(dict[int, str]):
    """Columns of the projections, by their marks, and among them those of the block, by their numbers."""

    def __init__(self, block: Block) -> None:
        super().__init__()
        names = block.names
        self.block = block
        self.parts = RepeatedParts(names.sql) if names.dialect.computes_apart else None
        self.below = names if self.parts is None else Names(self.parts, names.env, names.dialect, parts=self.parts)
        self._marks: tuple[dict[str, str], ...] = ({}, {}, {})
        self._texts: dict[str, str] = {}
        self._spelled: dict[int, tuple[Expr, str, Value]] = {}
        self._needed: set[int] = set()
        self.near: dict[tuple[object, ...], str] = {}  # columns of integers, of grid_integers.py

    def __missing__(self, uid: int) -> str:
        names = self.block.names
        own = not _is_column(names.sql[uid], names.dialect)
        found = self[uid] = self.column(Level.TEXTS, self.below.sql[uid], own)
        return found

    def column(self, level: Level, sql: str, own: bool = True) -> str:
        """The mark of a column. own: whether there has to be a projection for it."""
        marks = self._marks[level]
        mark = marks.get(sql)
        if mark is None:
            mark = marks[sql] = f"\0{level}:{len(marks)}\0"
            self._texts[mark] = sql
        if own:
            self._needed.add(level)
        return mark

    def text(self, expr: Expr) -> tuple[str, Value]:
        """A column that holds an expression; itself, if it is constant."""
        found = self._spelled.get(id(expr))
        if found is None:
            sql, known = spell(expr, self.below)
            # It is held, so that no other expression gets its number.
            mark = sql if known.is_constant else self.column(Level.TEXTS, sql)
            found = self._spelled[id(expr)] = expr, mark, known
        return found[1:]

    def placed(self, items: list[str]) -> tuple[list[str], Block]:
        """The items with names of columns, and the block with the projections that are needed."""
        lists, names = [items], []
        for level in sorted(self._needed):
            alias, shown = _ALIASES[level], dict[str, str]()
            lists[-1] = [_named(sql, shown, alias) if "\0" in sql else sql for sql in lists[-1]]
            lists.append([self._texts[m] if m[1] == str(int(level)) else m for m in shown])
            names.append((alias, shown))
        lists[-1] = [_named(sql, self._texts) if "\0" in sql else sql for sql in lists[-1]]
        block = self.block
        if self.parts is not None:
            lists[-1], block = self.parts.placed(lists[-1], block)
        for (alias, shown), texts in zip(reversed(names), reversed(lists), strict=False):
            take(1 + sum(map(len, texts)) // 64)
            columns = [f"{sql} AS {name}" for sql, name in zip(texts, shown.values(), strict=True)]
            source = f"(SELECT {', '.join(columns)}\n{block.clause()}{block.names.dialect.barrier}) AS {alias}"
            own = {uid: f"{alias}.{shown[mark]}" for uid, mark in self.items() if mark in shown}
            block = Block(source, (), Names(own, block.names.env, block.names.dialect))
        return lists[0], block


def _named(sql: str, shown: dict[str, str], alias: str = "") -> str:
    """With the name of a column for each mark, which becomes one of those shown; without an alias with their texts."""
    pieces = _MARK.split(sql)
    for i in range(1, len(pieces), 2):
        name = shown.setdefault(pieces[i], f"a{len(shown)}")
        pieces[i] = f"{alias}.{name}" if alias else name
    return "".join(pieces)


def _is_column(sql: str, d: Dialect) -> bool:
    """Whether it is a column of a table or of a subquery, and nothing else."""
    found = _COLUMN.search(sql)
    return found is not None and (sql == found[0] or sql == d.column(found[0], VARCHAR))
