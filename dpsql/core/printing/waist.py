"""The waist: what a statement computes of an analyst's texts are columns of projections, and aggregates read these.

    e: texts: arguments, conditions, keys     i: integers, of columns of e     c: clipped integers, which are multiplied

*Claim.* No text that an analyst wrote stands in the SELECT that adds up: it reads columns, each with one value for each
row. *Why.* What is no bare column and no constant is asked for with the name of its projection, and the SELECT is
printed over their columns alone. Columns that a table holds, and constants, stay where they are: of them each mention
is the same value; a projection that would hold nothing else is left out. *When it would be false.* A text that is
spelled over the names of the SELECT instead of being asked for; an engine that merges projections and computes a text
at each place where its column is named: DuckDB does not (engines/duckdb/locked/optimizers.py), PostgreSQL not beyond an
OFFSET, and for Spark the forms name a column once (forms/clip.py). *Tested by* tests/core/printing/test_waist.py,
tests/engines_elsewhere/postgres/test_waist.py, tests/engines_elsewhere/spark/test_waist.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum

from dpsql.core.functions.value import Value
from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import VARCHAR
from dpsql.core.printing.block import Block
from dpsql.core.printing.expressions import Names, spell


class Level(IntEnum):
    """Projections from the outermost on. A text is at `TEXTS`, and so on."""

    CLIPPED = 0
    INTEGERS = 1
    TEXTS = 2


Listed = Callable[[Names], list[str]]

_COLUMN = re.compile(r'\w+\.(?:\w+|"(?:[^"]|"")*"|`(?:[^`]|``)*`)')


def waist(block: Block, listed: Listed) -> tuple[list[str], Block]:
    """What a SELECT lists, and the block that it reads: its rows, with the columns that the list asks for.

    listed: prints the list over these names, each time by the same expressions.
    """
    levels = tuple(Level)
    while True:
        projections, names = [], block.names
        for level in reversed(levels):
            projections.append(Projection(level, names))
            names = Names(projections[-1].columns, names.env, names.dialect, projections[-1])
        items = listed(names)
        needed = tuple(p.level for p in reversed(projections) if p.own)
        if needed == levels:
            break
        levels = needed
    for p in projections:
        source = f"(SELECT {', '.join(p.listed())}\n{block.clause()}{block.names.dialect.fence}) AS {p.alias}"
        block = Block(source, (), Names(p.columns, block.names.env, block.names.dialect))
    return items, block


def apart(names: Names, level: Level, print_: Callable[[Names], str]) -> str:
    """A column of the projection of this level, which holds what is printed over the names below it."""
    at = names.apart
    return print_(names) if at is None or at.level > level else at.column(level, print_)


def text(expr: Expr, names: Names) -> tuple[str, Value]:
    """An expression as `spell` has it; what is more than a column of a table, or a constant, as a column of texts."""
    at = names.apart
    return spell(expr, names) if at is None or isinstance(expr, Column) else at.text(expr)


class Projection:
    """The columns of one projection: they are collected while what reads them is printed."""

    def __init__(self, level: Level, below: Names) -> None:
        self.level, self.below, self.alias = level, below, "cie"[level]
        self.columns = _Columns(self)
        self.own = False
        self._names: dict[str, str] = {}
        self._spelled: dict[int, tuple[Expr, str, Value]] = {}

    def column(self, level: Level, print_: Callable[[Names], str]) -> str:
        """A column that holds what is printed below, there or further down."""
        if level == self.level:
            self.own = True
            return self._named(print_(self.below))
        return self._named(apart(self.below, level, print_))

    def text(self, expr: Expr) -> tuple[str, Value]:
        """A column that holds an expression; itself, if it is constant."""
        found = self._spelled.get(id(expr))
        if found is None:
            if self.level == Level.TEXTS or self.below.apart is None:
                sql, known = spell(expr, self.below)
                self.own = self.own or not known.is_constant
            else:
                sql, known = self.below.apart.text(expr)
            # It is held, so that no other expression gets its number.
            found = self._spelled[id(expr)] = expr, sql if known.is_constant else self._named(sql), known
        return found[1], found[2]

    def listed(self) -> list[str]:
        """What it selects."""
        take(1 + sum(map(len, self._names)) // 64)
        return [f"{sql} AS {name}" for sql, name in self._names.items()]

    def _named(self, sql: str) -> str:
        return f"{self.alias}.{self._names.setdefault(sql, f'a{len(self._names)}')}"

    def held(self, uid: int) -> str:
        """A column of the block, as the projection shows it."""
        sql = self.below.sql[uid]
        if self.below.apart is None and not _is_column(sql, self.below):
            self.own = True
        return self._named(sql)


class _Columns(dict[int, str]):
    """How the columns of the block are printed over a projection, which gets those that it is asked for."""

    def __init__(self, of: Projection) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, uid: int) -> str:
        found = self[uid] = self._of.held(uid)
        return found


def _is_column(sql: str, names: Names) -> bool:
    """Whether it is a column of a table or of a subquery, and nothing else."""
    found = _COLUMN.search(sql)
    return found is not None and sql in (found[0], names.dialect.column(found[0], VARCHAR))
