"""Windows and aggregates above the releases: hidden columns that say which rows of the input a row stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.conditions import conjunction
from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.nodes import Aggregate, AggregateCall, Frame, Item, Project, Window, WindowCall
from dpsql.core.ir.types import BIGINT, BOOLEAN, NULL, list_of
from dpsql.core.ir.walk import Tagged
from dpsql.planner.postprocessing.planning.forms import (
    EXACT,
    NOTHING,
    Constant,
    Fixed,
    Form,
    Framed,
    Grouped,
    IntervalMethod,
    Sources,
    moved,
    none,
    over,
)
from dpsql.planner.postprocessing.planning.parts import Columns, StatementDraft, StatementPart

_CHOSEN = "the rows that it is made of were chosen by the same noisy numbers"
_READ = "noisy numbers chose the rows that it reads"
_NULLS = "noise decides which of the numbers are NULL"
_ALL = Frame("ROWS", None, None)
_ELSEWHERE = ("lag", "lead", "first_value", "last_value", "nth_value")


def arguments(node: Window | Aggregate) -> list[Expr]:
    """What calls compute before they read several rows: it has to be a column of the input."""
    args = [a for c in node.calls for a in (c.args[:1] if isinstance(c, WindowCall) else (c.arg,))]
    return list(dict.fromkeys(a for a in args if a is not None and not isinstance(a, (Column, Literal))))


@dataclass(slots=True)
class Several:
    """One statement over the rows of one input.

    part: these rows; its only hidden column has their numbers. names: the columns that stand for arguments. kept: those
    that somebody reads.
    """

    columns: Columns
    part: StatementPart
    statement: StatementDraft
    names: Mapping[Expr, Column]
    kept: Sequence[Column]

    @property
    def _row(self) -> Column:
        (row,) = self.part.hidden
        return row

    def _named(self, expr: Expr) -> Expr:
        return self.names.get(expr, expr)

    # --- windows ---------------------------------------------------------------------------------------------------

    def windowed(self, node: Window, tree: Tagged[Facts]) -> StatementPart:
        """The rows with the window functions' columns."""
        traces: list[WindowCall] = []
        items: list[Item] = []
        forms = dict(self.part.forms)
        calls = [replace(c, args=(*map(self._named, c.args[:1]), *c.args[1:])) for c in node.calls]
        for call in calls:
            forms[call.column.uid] = self._call(call, calls, traces, items)
        calls = [
            replace(
                c, partition=tuple(map(self.part.guarded, c.partition)),
                order=tuple(replace(k, expr=self.part.guarded(k.expr)) for k in c.order),
            )
            for c in calls
        ]  # fmt: skip
        window = replace(node, input=self.part.tree.node, calls=(*calls, *traces))
        facts = self.columns.facts(tree.fact, self.part.tree.fact)
        inner = Tagged(window, facts, (self.part.tree,))
        kept = [Item(c, c) for c in (*self.kept, self._row, *(c.column for c in traces))]
        project = Project(window, (*kept, *items))
        tree = Tagged(project, facts, (inner,))
        return replace(self.part, tree=tree, forms=forms, hidden=list(self.statement.hidden))

    def _call(self, call: WindowCall, calls: Sequence[WindowCall], traces: list[WindowCall], items: list[Item]) -> Form:
        part = self.part
        keys = [*call.partition, *(k.expr for k in call.order)]
        args = [part.form(a) for a in call.args]
        sources = NOTHING.union(*(a.sources for a in args))
        if around := part.sources(*keys):
            return none("noisy numbers decide the order or the partitions of the rows", sources | around)
        if (refusal := self._refused(sources)) is not None:
            return refusal
        name, _, ignoring = call.function.partition(" ")
        if not sources or (name == "count" and args[0].settled):
            return EXACT
        if args[0].exact:
            return none("its default has noise", sources)
        if name not in _ELSEWHERE:
            return over(name, args[0], self._framed(call, calls, traces))
        if ignoring and not args[0].settled:
            return none(_NULLS, sources)
        row: Expr = self._row
        if ignoring:
            row = Call("case", (Call("is_not_null", (call.args[0],), BOOLEAN), row, Literal(None, NULL)), BIGINT)
        at = self._trace(replace(call, args=(row, *call.args[1:2])), traces)
        default = args[2] if len(args) > 2 else None
        if default is not None and default.exact and not isinstance(default.maker, Constant):
            default = Form(IntervalMethod.EXACT, Fixed(self._item(call.args[2], default, items)))
        return moved(args[0], at, default)

    def _framed(self, call: WindowCall, calls: Sequence[WindowCall], traces: list[WindowCall]) -> Framed:
        """Where the order of rows does not matter it is that of another call, so that both read one sequence."""
        everything = not call.order and call.frame in (None, _ALL)
        if everything and not call.partition:
            other = next((c for c in calls if c.order or c.partition), call)
        elif everything:
            other = next((c for c in calls if c.partition == call.partition and c.order), call)
        else:
            other = call
        window = replace(other, args=(self._row,), frame=_ALL if everything else call.frame)
        place = replace(other, function="row_number", args=(), frame=None)
        partition = replace(other, function="min", args=(self._row,), order=(), frame=None)
        ends = None
        if not everything or call.partition:
            first, last = (self._trace(replace(window, function=f"{end}_value"), traces) for end in ("first", "last"))
            ends = first, last
        own = self.statement.hidden.index(self._row)
        return Framed(own, self._trace(partition, traces), self._trace(place, traces), ends)

    def _trace(self, wanted: WindowCall, traces: list[WindowCall]) -> int:
        """The hidden column of a window function over the rows' numbers."""
        for known in traces:
            if replace(wanted, column=known.column) == known:
                return self.statement.hidden.index(known.column)
        column = self.columns.hidden(BIGINT, self.statement)
        traces.append(replace(wanted, column=column))
        return self.statement.hidden.index(column)

    def _item(self, expr: Expr, form: Form, items: list[Item]) -> int:
        """The hidden column of an expression over single rows."""
        for known in items:
            if known.expr == expr:
                return self.statement.hidden.index(known.column)
        item = Item(self.columns.hidden(expr.type, self.statement), expr)
        items.append(item)
        return self.statement.hidden.index(item.column)

    # --- aggregates ------------------------------------------------------------------------------------------------

    def aggregated(self, node: Aggregate, tree: Tagged[Facts]) -> StatementPart:
        """The groups. A row of them stands for several of the input's."""
        part, row = self.part, self._row
        self.statement.hidden.remove(row)
        self.statement.inputs = [replace(i, row=None) for i in self.statement.inputs]
        forms = {k.column.uid: part.form(k.expr) for k in node.keys}
        grouping = NOTHING.union(*(f.sources for f in forms.values()))
        why = "noisy numbers group the rows"
        forms = {uid: none(why, grouping) if form.sources else EXACT for uid, form in forms.items()}
        calls: list[AggregateCall] = []
        lists: list[AggregateCall] = []
        for call in node.calls:
            call = replace(call, arg=None if call.arg is None else self._named(call.arg))
            forms[call.column.uid] = self._aggregate(call, grouping, row, lists)
            calls.append(call if call.filter is None else replace(call, filter=part.guarded(call.filter)))
        keys = tuple(replace(k, expr=part.guarded(k.expr)) for k in node.keys)
        grouped = replace(node, input=part.tree.node, keys=keys, calls=(*calls, *lists))
        found = Tagged(grouped, self.columns.facts(tree.fact, part.tree.fact), (part.tree,))
        return StatementPart(found, forms, list(self.statement.hidden), part.chosen | grouping)

    def _aggregate(self, call: AggregateCall, grouping: Sources, row: Column, lists: list[AggregateCall]) -> Form:
        form = EXACT if call.arg is None else self.part.form(call.arg)
        filtering = NOTHING if call.filter is None else self.part.sources(call.filter)
        sources = form.sources | grouping | filtering
        if grouping:
            return none("noisy numbers group the rows", sources)
        if filtering:
            return none("noisy numbers choose the rows of its FILTER", sources)
        if (refusal := self._refused(sources)) is not None:
            return refusal
        if not sources or (call.function == "count" and form.settled and not call.distinct):
            return EXACT
        if call.distinct and call.function not in ("min", "max"):
            return none("noisy numbers decide which of them are equal", sources)
        assert call.arg is not None
        present = Call("is_not_null", (call.arg,), BOOLEAN)
        chosen = conjunction([present] if call.filter is None else [call.filter, present])
        listed = self.columns.hidden(list_of(BIGINT), self.statement)
        lists.append(AggregateCall("list", row, listed, filter=chosen))
        return over(call.function, form, Grouped(self.statement.hidden.index(listed)))

    def _refused(self, sources: Sources) -> Form | None:
        """Numbers over several rows of which noise decided that they are there."""
        chosen = self.part.chosen
        if not chosen or (sources and not chosen & sources):
            return None
        return none(_CHOSEN if sources else _READ, sources | chosen)
