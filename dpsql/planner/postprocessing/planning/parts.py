"""Parts of the statements above the releases while they are cut (`cut_statements.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dpsql.core.analysis.facts import ColumnFact, Facts
from dpsql.core.ir.expressions import Column, Expr, columns_of
from dpsql.core.ir.nodes import Item
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import SqlType
from dpsql.core.ir.walk import Tagged
from dpsql.core.values.value import Value
from dpsql.functions.expression_values import evaluate
from dpsql.planner.postprocessing.planning.expressions import Hide, form_of, guarded
from dpsql.planner.postprocessing.planning.forms import EXACT, NOTHING, Fixed, Form, IntervalMethod, Sources
from dpsql.planner.postprocessing.planning.steps import Input, Selection


@dataclass(slots=True)
class StatementPart:
    """A part of a statement.

    forms: of its columns, by number. hidden: the hidden columns that its rows have. chosen: the noisy numbers that
    decided which rows there are; ordered: in which order.
    """

    tree: Tagged[Facts]
    forms: dict[int, Form]
    hidden: list[Column] = field(default_factory=list)
    chosen: Sources = NOTHING
    ordered: Sources = NOTHING

    def sources(self, *exprs: Expr) -> Sources:
        """The noisy numbers that expressions over these rows depend on."""
        read = {uid for e in exprs for uid in columns_of(e)}
        return NOTHING.union(*[self.forms[uid].sources for uid in read if uid in self.forms])

    def form(self, expr: Expr, hide: Hide = lambda expr: EXACT) -> Form:
        """How an expression over these rows is made."""
        return form_of(expr, self.forms, self.tree.fact.env, hide)

    def guarded(self, expr: Expr) -> Expr:
        """The expression as it is to be computed."""
        return guarded(expr, self.form) if self.sources(expr) else expr


@dataclass(slots=True)
class StatementDraft:
    """What one statement has collected: its inputs and its hidden columns, which forms know by their places here."""

    inputs: list[Input] = field(default_factory=list)
    hidden: list[Column] = field(default_factory=list)
    selections: list[Selection] = field(default_factory=list)


@dataclass(slots=True)
class Columns:
    """Makes new columns, and knows what is known of their values. numbers: that no column of the plan has."""

    numbers: Iterator[int]
    known: dict[int, ColumnFact] = field(default_factory=dict)

    def named(self, expr: Expr, value: Value) -> Item:
        """A column for an expression of which this is known."""
        uid = next(self.numbers)
        self.known[uid] = ColumnFact(value)
        return Item(Column(uid, f"c{uid}", value.type), expr)

    def hidden(self, type_: SqlType, statement: StatementDraft, name: str = "") -> Column:
        """A hidden column of a statement. name: in the table that it comes from, if it does."""
        uid = next(self.numbers)
        column = Column(uid, name or f"c{uid}", type_)
        self.known[uid] = ColumnFact(Value(type_))
        statement.hidden.append(column)
        return column

    def facts(self, *parts: Facts) -> Facts:
        """Of rows with all these columns, and the new ones."""
        columns: dict[int, ColumnFact] = {}
        for part in parts:
            take(len(part.columns) // 16)
            columns.update(part.columns)
        return Facts({**columns, **self.known})


@dataclass(slots=True)
class Hiding:
    """Puts values without noise that are computed with into hidden columns; equal ones into one."""

    columns: Columns
    part: StatementPart
    statement: StatementDraft
    items: list[Item] = field(default_factory=list)

    def __call__(self, expr: Expr) -> Form:
        """How such a value is made."""
        expr = self.part.guarded(expr)
        item = next((i for i in self.items if i.expr == expr), None)
        if item is None:
            value = evaluate(expr, self.part.tree.fact.env)
            item = Item(self.columns.hidden(value.type, self.statement), expr)
            self.items.append(item)
        return Form(IntervalMethod.EXACT, Fixed(self.statement.hidden.index(item.column)))
