"""What stands above the releases, cut into statements whose rows can be followed back to the noisy numbers.

A statement is all that works row by row: projections, conditions, joins, order and limits, UNION ALL. Its rows carry
along, in hidden columns, which rows of its inputs they are made of, and the values without noise that are computed
with. Windows and aggregates read several rows (`windows.py`): their input is a table of its own, or a release, whose
rows their hidden columns number. So nothing about the engine's order, ties or matches is assumed: it says itself what
it did.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.releases_of_plan import Releases
from dpsql.core.ir.conditions import conjunction, conjuncts
from dpsql.core.ir.expressions import Column, Expr, Literal, columns_of
from dpsql.core.ir.nodes import (
    Aggregate,
    Filter,
    Item,
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
    Unnest,
    Window,
    inputs,
    output_columns,
)
from dpsql.core.ir.types import BIGINT
from dpsql.core.ir.walk import Tagged, expressions, kinds, unused_numbers, with_inputs
from dpsql.core.release.planned import PlannedRelease
from dpsql.core.value_classes import replace
from dpsql.engines.scratch import Scratch
from dpsql.functions.expression_values import evaluate
from dpsql.planner.postprocessing.planning.cut_numbers import NO_CUTS, Cuts, lost_of
from dpsql.planner.postprocessing.planning.expressions import seen
from dpsql.planner.postprocessing.planning.forms import (
    EXACT,
    NOTHING,
    WHOLE,
    Form,
    Sources,
    either,
    finished,
    none,
    shown,
    taken,
    unsure,
)
from dpsql.planner.postprocessing.planning.parts import Columns, Hiding, StatementDraft, StatementPart
from dpsql.planner.postprocessing.planning.steps import Input, Selection, Step, printer
from dpsql.planner.postprocessing.planning.windows import Several, arguments


class Steps:
    """Cuts one plan, for the scratch database."""

    def __init__(self, root: Node, releases: Sequence[PlannedRelease], found: Releases, cuts: Cuts = NO_CUTS) -> None:
        self._releases, self._found, self._cuts = releases, found, cuts
        self._columns = Columns(unused_numbers(root))
        self._used: frozenset[int] = frozenset()
        self._steps: list[Step] = []

    def of(self, tree: Tagged[Facts], columns: Sequence[Column]) -> tuple[Step, ...]:
        """The statements in the order in which they run; the last one gives the answer's columns, then hidden ones."""
        self._used = frozenset(c.uid for c in columns).union(*map(columns_of, _read(tree.node)))
        statement = StatementDraft()
        part = self._part(tree, statement, padded=False)
        part.forms = {uid: finished(form) for uid, form in part.forms.items()}
        self._finish(part, statement, columns, None)
        return tuple(self._steps)

    # --- statements ------------------------------------------------------------------------------------------------

    def _finish(
        self, part: StatementPart, statement: StatementDraft, columns: Sequence[Column], table: str | None
    ) -> None:
        there = {c.uid for c in part.hidden}
        sql = printer().query(part.tree, [*columns, *(c for c in statement.hidden if c.uid in there)])
        hidden = tuple(f"c{c.uid}" if c.uid in there else None for c in statement.hidden)
        self._steps.append(
            Step(table, sql, hidden, tuple(statement.inputs), part.forms, tuple(statement.selections), part.chosen)
        )

    def _table(self, tree: Tagged[Facts], statement: StatementDraft) -> StatementPart:
        """The rows of a tree by a step of their own."""
        node, own = tree.node, StatementDraft()
        if isinstance(node, (Window, Aggregate)):
            (child,) = tree.inputs
            items = [self._columns.named(e, evaluate(e, child.fact.env)) for e in arguments(node)]
            below = self._alone(child, items, own)
            several = Several(self._columns, below, own, {i.expr: i.column for i in items}, self._kept(node))
            part = several.windowed(node, tree) if isinstance(node, Window) else several.aggregated(node, tree)
        else:
            part = self._part(tree, own, padded=False)
        at, columns = len(self._steps), self._kept(tree.node)
        self._finish(part, own, columns, f"s{at}")
        scan, row = self._scan(f"s{at}", [(c, c.uid) for c in columns], statement)
        number = len(statement.inputs)
        statement.inputs.append(Input(None, at, statement.hidden.index(row)))
        forms = {c.uid: taken(number, c.uid, part.forms[c.uid]) for c in columns}
        return StatementPart(Tagged(scan, self._columns.facts(tree.fact), ()), forms, [row], part.chosen, part.ordered)

    def _alone(self, tree: Tagged[Facts], more: Sequence[Item], statement: StatementDraft) -> StatementPart:
        """The rows of a tree, with further columns, as the only input of a statement."""
        if isinstance(tree.node, Release) and not more:
            return self._release(tree.node, tree.fact, statement)
        if more:
            self._used |= {i.column.uid for i in more}
            items = (*(Item(c, c) for c in self._kept(tree.node)), *more)
            tree = Tagged(Project(tree.node, items), self._columns.facts(tree.fact), (tree,))
        return self._table(tree, statement)

    def _kept(self, node: Node) -> list[Column]:
        """The columns that somebody reads: of public tables the others are not loaded."""
        return [c for c in output_columns(node) if c.uid in self._used]

    def _scan(
        self, table: str, columns: Sequence[tuple[Column, int]], statement: StatementDraft
    ) -> tuple[Scan, Column]:
        """A scratch table and its column of row numbers. columns: each with the number that names it there."""
        row = self._columns.hidden(BIGINT, statement, Scratch.row)
        return Scan(table, (*(Column(c.uid, f"c{number}", c.type) for c, number in columns), row), None), row

    # --- row by row ------------------------------------------------------------------------------------------------

    def _part(self, tree: Tagged[Facts], statement: StatementDraft, padded: bool) -> StatementPart:
        """padded: a row of the statement may have none of its rows, but NULL."""
        node = tree.node
        if Release not in kinds(node):
            return StatementPart(_loaded(tree), {c.uid: EXACT for c in output_columns(node)})
        match node:
            case Release():
                return self._release(node, tree.fact, statement)
            case Project() if not padded or all(isinstance(i.expr, Column) for i in node.items):
                return self._project(node, tree, statement, padded)
            case Filter():
                return self._filter(node, tree, statement, padded)
            case Sort():
                below = self._part(tree.inputs[0], statement, padded)
                keys = tuple(replace(k, expr=below.guarded(k.expr)) for k in node.keys)
                ordered = below.sources(*(k.expr for k in keys))
                return replace(self._onto(below, replace(node, keys=keys), tree.fact), ordered=ordered)
            case Limit():
                below = self._part(tree.inputs[0], statement, padded)
                return self._selected(self._onto(below, node, tree.fact), below.ordered, below.tree, statement)
            case Join():
                return self._join(node, tree, statement, padded)
            case SetOperation():
                return self._set_operation(node, tree, statement, padded)
            case Unnest():
                below = self._part(tree.inputs[0], statement, padded)
                sources = below.sources(node.list)
                found = self._onto(below, node, tree.fact)
                found.forms[node.column.uid] = none("it is an element of a noisy list", sources) if sources else EXACT
                return found
            case _:
                return self._table(tree, statement)

    def _onto(self, below: StatementPart, node: Node, fact: Facts) -> StatementPart:
        """The rows below another node."""
        return replace(below, tree=self._over(node, fact, below.tree))

    def _over(self, node: Node, fact: Facts, *below: Tagged[Facts]) -> Tagged[Facts]:
        """A node over the parts of a statement."""
        return Tagged(with_inputs(node, tuple(t.node for t in below)), self._columns.facts(fact), below)

    def _release(self, node: Release, fact: Facts, statement: StatementDraft) -> StatementPart:
        place = self._found.index[node]
        measured, equal = self._releases[place].measured, self._found.node(place)
        own, theirs = ([*n.keys, *(o.column for o in n.outputs)] for n in (node, equal))
        pairs = [(c, n.uid) for c, n in zip(own, theirs, strict=True)]
        scan, row = self._scan(self._releases[place].label, pairs, statement)
        number = len(statement.inputs)
        outputs = {o.column.uid: at for at, o in enumerate(node.outputs)}
        statement.inputs.append(Input(place, None, statement.hidden.index(row), outputs))
        forms = {k.uid: EXACT for k in node.keys}
        missing = self._cuts.get(place)
        for at, o in enumerate(node.outputs):
            read = measured.node.outputs[at].recipe.components
            noisy = frozenset((place, i) for i in read if measured.measurements[i].known is None)
            lost = WHOLE if missing is None else lost_of(o, node.components, missing)
            forms[o.column.uid] = taken(number, o.column.uid, shown(place, at, o, node.components, noisy, lost))
        threshold = measured.node.threshold
        chosen = NOTHING if threshold is None else frozenset({(place, threshold)})
        return StatementPart(Tagged(scan, self._columns.facts(fact), ()), forms, [row], chosen)

    def _project(self, node: Project, tree: Tagged[Facts], statement: StatementDraft, padded: bool) -> StatementPart:
        below = self._part(tree.inputs[0], statement, padded)
        hiding = Hiding(self._columns, below, statement)
        forms = {i.column.uid: below.form(i.expr, hiding) for i in node.items}
        items = [Item(i.column, below.guarded(i.expr)) for i in node.items]
        hidden = [*(Item(c, c) for c in below.hidden), *hiding.items]
        found = self._onto(below, replace(node, items=(*items, *hidden)), tree.fact)
        return replace(found, forms=forms, hidden=[i.column for i in hidden])

    def _filter(self, node: Filter, tree: Tagged[Facts], statement: StatementDraft, padded: bool) -> StatementPart:
        below = self._part(tree.inputs[0], statement, padded)
        terms = conjuncts(node.predicate)
        exact = conjunction(t for t in terms if not below.sources(t))
        before = below if exact is None else self._onto(below, replace(node, predicate=exact), tree.fact)
        found = self._onto(below, replace(node, predicate=below.guarded(node.predicate)), tree.fact)
        return self._selected(found, below.sources(node.predicate), before.tree, statement)

    def _selected(
        self, part: StatementPart, sources: Sources, before: Tagged[Facts], statement: StatementDraft
    ) -> StatementPart:
        """Rows that these noisy numbers, if any, chose among those of `before`."""
        if not sources:
            return part
        statement.selections.append(Selection(sources, part.tree, before))
        return replace(part, chosen=part.chosen | sources)

    def _join(self, node: Join, tree: Tagged[Facts], statement: StatementDraft, padded: bool) -> StatementPart:
        full = node.kind is JoinKind.FULL
        outer = full or node.kind is JoinKind.LEFT
        left = self._part(tree.inputs[0], statement, padded or full)
        right = self._part(tree.inputs[1], statement, padded or outer)
        facts = self._columns.facts(tree.fact, left.tree.fact, right.tree.fact)
        both = StatementPart(Tagged(node, facts, ()), left.forms | right.forms)
        equalities = tuple(replace(e, left=left.guarded(e.left), right=right.guarded(e.right)) for e in node.equalities)
        residual = None if node.residual is None else both.guarded(node.residual)
        compared = [e for pair in equalities for e in (pair.left, pair.right)]
        sources = both.sources(*compared, *([] if residual is None else [residual]))
        joined = replace(node, equalities=equalities, residual=residual)
        both.tree = self._over(joined, facts, left.tree, right.tree)
        both.hidden = [*left.hidden, *right.hidden]
        both.chosen = left.chosen | right.chosen
        if node.kind.filters:
            both.forms, both.hidden = left.forms, left.hidden
        if not outer:
            return self._selected(both, sources, left.tree, statement)
        both.chosen = left.chosen | (right.chosen if full else NOTHING)
        both.forms |= {uid: unsure(form, right.chosen | sources) for uid, form in right.forms.items()}
        if full:
            both.forms |= {uid: unsure(form, left.chosen | sources) for uid, form in left.forms.items()}
        return both

    def _set_operation(
        self, node: SetOperation, tree: Tagged[Facts], statement: StatementDraft, padded: bool
    ) -> StatementPart:
        left, right = sides = [self._part(t, statement, padded) for t in tree.inputs]
        hidings = [Hiding(self._columns, side, statement) for side in sides]
        columns = [replace(c, left=left.guarded(c.left), right=right.guarded(c.right)) for c in node.columns]
        chosen = left.chosen | right.chosen
        if node.kind is not SetKind.UNION or not node.all:
            read = {c.column.uid: left.sources(c.left) | right.sources(c.right) for c in node.columns}
            sources = NOTHING.union(*read.values())
            why = "equal rows are put together, and noisy numbers decide which are equal"
            forms = {uid: none(why, sources) if own else EXACT for uid, own in read.items()}
            over = self._over(replace(node, columns=tuple(columns)), tree.fact, left.tree, right.tree)
            return StatementPart(over, forms, [], chosen | sources)
        made = [(c.column.uid, *_side_by_side(c, sides, hidings)) for c in node.columns]
        side = self._columns.hidden(BIGINT, statement)
        columns.append(SetColumn(side, Literal(0, BIGINT), Literal(1, BIGINT)))
        hidden = [side]
        for place, (part, hiding) in enumerate(zip(sides, hidings, strict=True)):
            for item in (*(Item(c, c) for c in part.hidden), *hiding.items):
                pair = item.expr, Literal(None, item.column.type)
                columns.append(SetColumn(item.column, *(pair if place == 0 else pair[::-1])))
                hidden.append(item.column)
        forms = {uid: either(a, b, statement.hidden.index(side)) for uid, a, b in made}
        over = self._over(replace(node, columns=tuple(columns)), tree.fact, left.tree, right.tree)
        return StatementPart(over, forms, hidden, chosen)


def public_table(name: str) -> str:
    """The scratch name of a public table: never that of a release or a step."""
    return f"public {name}"


def _side_by_side(column: SetColumn, sides: list[StatementPart], hidings: list[Hiding]) -> tuple[Form, Form]:
    """A column of rows one below the other, on each side; values without noise beside noisy ones are needed."""
    exprs = [column.left, column.right]
    left, right = (s.form(e, h) for s, e, h in zip(sides, exprs, hidings, strict=True))
    if left.exact and right.exact:
        return left, right
    return seen(left, column.left, hidings[0]), seen(right, column.right, hidings[1])


def _read(node: Node) -> list[Expr]:
    """What is computed above the releases."""
    if isinstance(node, Release):
        return []
    return [*expressions(node), *(e for child in inputs(node) for e in _read(child))]


def _loaded(tree: Tagged[Facts]) -> Tagged[Facts]:
    """Public rows as they are read in the scratch database."""
    below = tuple(map(_loaded, tree.inputs))
    node = with_inputs(tree.node, tuple(t.node for t in below))
    return Tagged(replace(node, table=public_table(node.table)) if isinstance(node, Scan) else node, tree.fact, below)
