"""Prints what the planner claims of private rows as plans of Plan.v: a claim for each subtree below a release and unit.

Nothing of a fact is taken for granted: tables are printed from the policy, operators from the tree, and only the claim
itself from the fact. A bare column is printed as its position, everything else as a function with a number of its own.
The frequencies of a public table are those that were counted, or declared and counted again at the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil
from typing import assert_never

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.nodes import (
    Aggregate,
    BoundContributions,
    Filter,
    GroupKeys,
    Item,
    Join,
    JoinKind,
    Limit,
    Node,
    Project,
    Release,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    Truncate,
    Unnest,
    Values,
    Window,
    output_columns,
)
from dpsql.core.ir.public_facts import FrequencyOf, RowsOf
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import Tagged
from dpsql.core.numbers.cap import Finite
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table
from dpsql.core.policy.units import IdUnit, PathUnit, RowUnit

Numbers = Mapping[FrequencyOf | RowsOf, int]
Tree = Tagged[Facts]
MOST_WRITTEN = 4
"""Columns of VALUES of which each set is counted."""

KINDS = {
    JoinKind.INNER: "Inner", JoinKind.CROSS: "Inner", JoinKind.LEFT: "Left", JoinKind.FULL: "Full",
    JoinKind.SEMI: "Semi", JoinKind.ANTI: "Anti",
}  # fmt: skip
SETS = {SetKind.UNION: "Union", SetKind.INTERSECT: "Intersect", SetKind.EXCEPT: "Except"}


class NotPrintedError(Exception):
    """Why a subtree has no plan of Plan.v."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What is claimed of one subtree for one unit. text: for Coq. rule: the planner's; operator: the uppermost."""

    text: str
    rule: str
    operator: str


@dataclass(slots=True)
class Printed:
    """All claims of a set of plans. counts: how much was printed of each kind, so that less is noticed."""

    printer: type[Printer] | None = None
    claims: list[Claim] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, tree: Tree, policy: Policy, numbers: Numbers) -> None:
        """The claims of every private subtree, for each of its units."""
        for below in tree.walk():
            for unit in below.fact.stability:
                printer = (self.printer or Printer)(policy, unit, numbers)
                try:
                    claim = printer.claim(below)
                except NotPrintedError as why:
                    self.left_out[str(why)] += 1
                    continue
                self.claims.append(claim)
                self.counts.update(printer.counts)
                self.counts[f"claim {claim.text.rpartition(', ')[2].split()[0].strip('()')}"] += 1

    def add_releases(self, tree: Tree, policy: Policy, numbers: Numbers) -> None:
        """The claims of what lies below each release of a plan."""
        for found in tree.walk():
            if isinstance(found.node, Release):
                self.add(found.inputs[0], policy, numbers)


def listed(parts: Iterable[str]) -> str:
    """A list of Coq."""
    return "[" + "; ".join(parts) + "]"


@dataclass(slots=True)
class Printer:
    """One subtree, for one unit: the tables of all others do not change."""

    policy: Policy
    unit: str
    numbers: Numbers
    counts: Counter[str] = field(default_factory=Counter)
    tables: dict[object, tuple[int, str]] = field(default_factory=dict)
    made: list[int] = field(default_factory=list)
    functions: int = 0

    def claim(self, tree: Tree) -> Claim:
        """Raises NotPrintedError."""
        plan, fact = self.plan(tree), self.fact(tree)
        tables = listed(text for _, text in self.tables.values())
        text = f"({tables}, {listed(map(str, self.made))}, {plan}, {fact})"
        return Claim(text, tree.fact.rule.split(" ×")[0], type(tree.node).__name__)

    # --- what is claimed ---------------------------------------------------------------------------------------------

    def fact(self, tree: Tree) -> str:
        """What the planner says of a subtree."""
        facts = tree.fact
        most = facts.stability[self.unit]
        if facts.ids:
            places = self.places(tree.node)
            return f"Ids {listed(str(places[uid]) for uid in sorted(facts.ids) if uid in places)}"
        if facts.hops or not isinstance(most, Finite):
            raise NotPrintedError("owners found through foreign keys")
        # Where ids are replaced one goes and one comes: `replaced_ids` doubles what is derived of one.
        rows = most.value / 2 if self.replaces_ids() else most.value
        return f"Rows {int(rows) if self.replaces_ids() else ceil(rows)}"

    def replaces_ids(self) -> bool:
        """Whether neighbours exchange one id of this unit for another."""
        units = {t.protection.neighbours for t in self.policy.tables.values() if self._owns(t, IdUnit)}  # type: ignore[union-attr]
        return "replace_one" in units

    def _owns(self, table: Table, kind: type[IdUnit] | type[RowUnit] | type[PathUnit]) -> bool:
        return isinstance(table.protection, kind) and table.protection.name == self.unit

    # --- expressions -------------------------------------------------------------------------------------------------

    def places(self, node: Node) -> dict[int, int]:
        """Where each column of a node's rows stands."""
        return {c.uid: i for i, c in enumerate(output_columns(node))}

    def function(self) -> int:
        """A number that no other expression has: nothing is known of what it stands for."""
        self.functions += 1
        return self.functions

    def expr(self, expr: Expr, places: Mapping[int, int], column: Column | None = None) -> str:
        """column: what it becomes. Of another type, a column is converted, and a conversion may merge values."""
        if isinstance(expr, Column) and (column is None or column.type == expr.type):
            return f"Col {places[expr.uid]}"
        self.counts["converted column"] += isinstance(expr, Column)
        return f"Fun {self.function()}"

    def items(self, items: Sequence[Item], places: Mapping[int, int]) -> str:
        """Columns that a projection or GROUP BY makes."""
        return listed(self.expr(i.expr, places, i.column) for i in items)

    # --- operators ---------------------------------------------------------------------------------------------------

    def owned(self, tree: Tree) -> bool:
        """Whether the planner says that rows of this subtree carry the unit's id."""
        return self.unit in tree.fact.stability and bool(tree.fact.ids)

    def below(self, tree: Tree, which: int = 0) -> str:
        """An input; its rows are counted one by one where those above no longer carry the id."""
        child = tree.inputs[which]
        text = self.plan(child)
        if self.owned(tree) or not self.owned(child):
            return text
        places, facts = self.places(child.node), child.fact
        most = facts.rows_of_an_id(every_row=True)
        if most is None:
            raise NotPrintedError("rows without an id, and no limit on them")
        column = next(uid for uid in sorted(facts.ids) if facts.most_rows(frozenset({uid})) == most)
        return f"(ByRows {places[column]} {text})"

    def plan(self, tree: Tree) -> str:
        """The subtree as a plan of Plan.v. Raises NotPrintedError."""
        node = tree.node
        self.counts[type(node).__name__] += 1
        match node:
            case Scan():
                return self.scan(node)
            case Values():
                return self.table(id(node), len(node.columns), "Unchanged", written(node))
            case Filter(predicate=predicate):
                return self.filter(predicate, self.places(node.input), self.below(tree))
            case Project(items=items):
                return f"(Project {self.items(items, self.places(node.input))} {self.below(tree)})"
            case GroupKeys(items=items):
                places = self.places(node.input)
                kept = [f"Col {i}" for i in range(len(places))] + [self.expr(i.expr, places, i.column) for i in items]
                return f"(Filter {self.function()} [] (Project {listed(kept)} {self.below(tree)}))"
            case BoundContributions():
                return self.below(tree)
            case Unnest(most=most):
                return f"(Unnest {self.function()} {most} {self.below(tree)})"
            case Join():
                return self.join(node, tree)
            case SetOperation():
                return self.set_operation(node, tree)
            case Truncate(columns=columns, rows=rows, drop=drop):
                places = self.places(node.input)
                cut = listed(str(places[c.uid]) for c in columns)
                return f"(Truncate {cut} {rows} {'true' if drop else 'false'} {self.below(tree)})"
            case Aggregate():
                return self.aggregate(node, tree)
            case Window(calls=calls):
                places, text = self.places(node.input), self.below(tree)
                for call in calls:
                    own = listed(self.expr(e, places) for e in call.partition)
                    text = f"(Window {own} {self.function()} {text})"
                return text
            case Sort() if tree.fact.public:  # the same rows, in another order
                return self.below(tree)
            case Sort() | Limit():
                if not tree.fact.public:
                    raise NotPrintedError("ORDER BY or LIMIT of private rows, of which there are none")
                return self.table(id(node), len(output_columns(node)), "Unchanged", self.kept(node))
            case Release(keys=keys):  # what was released is known, and the same in both databases
                unique = [(list(range(len(keys))), 1)]
                return self.table(id(node), len(output_columns(node)), "Unchanged", unique)
            case _:
                assert_never(node)

    def filter(self, predicate: Expr, places: Mapping[int, int], below: str) -> str:
        """A filter; equalities of a whole number with a whole column are kept, the others are a function."""
        pins = []
        for term in conjuncts(predicate):
            match term:
                case Call(function="eq", args=(Column(uid=uid, type=type_), Literal(value=int(number)))) if (
                    type_.kind is Kind.INTEGER and not isinstance(number, bool)
                ):
                    pins.append(f"({places[uid]}, ({number})%Z)")
        self.counts["pin"] += len(pins)
        return f"(Filter {self.function()} {listed(pins)} {below})"

    def join(self, node: Join, tree: Tree) -> str:
        """Any join."""
        left, right = self.places(node.left), self.places(node.right)
        pairs = [f"({self.expr(e.left, left)}, {self.expr(e.right, right)})" for e in node.equalities]
        self.counts.update({"equality": len(pairs), f"{node.kind.value} join": 1})
        rest = "None" if node.residual is None else f"(Some {self.function()})"
        return f"(Join {KINDS[node.kind]} {listed(pairs)} {rest} {self.below(tree)} {self.below(tree, 1)})"

    def set_operation(self, node: SetOperation, tree: Tree) -> str:
        """Both sides as projections: by position, and converted where types differ."""
        sides = []
        for which, side in enumerate((node.left, node.right)):
            places = self.places(side)
            columns = (self.expr(c.right if which else c.left, places, c.column) for c in node.columns)
            sides.append(f"(Project {listed(columns)} {self.below(tree, which)})")
        self.counts[node.kind.value] += 1
        return f"(SetOp {SETS[node.kind]}{'All' if node.all else ''} {sides[0]} {sides[1]})"

    def aggregate(self, node: Aggregate, tree: Tree) -> str:
        """DISTINCT, totals, or groups."""
        keys, below = self.items(node.keys, self.places(node.input)), self.below(tree)
        if not node.calls:
            return f"(Distinct (Project {keys} {below}))"
        self.made.append(len(node.calls))
        number = len(self.made) - 1
        return f"(Group {keys} {number} {below})" if node.keys else f"(Total {number} {below})"

    # --- tables ------------------------------------------------------------------------------------------------------

    def scan(self, node: Scan) -> str:
        """A table of the policy; of one that grows, some of its rows."""
        table = self.policy.table(node.table)
        assert table is not None
        names = {c.name.lower(): i for i, c in enumerate(node.columns)}
        found = self.table(node.table, len(names), self.protection(table, names), self.promises(table, names))
        return found if node.periods is None else f"(Filter {self.function()} [] {found})"

    def protection(self, table: Table, names: Mapping[str, int]) -> str:
        """What of a table changes between neighbours."""
        match table.protection:
            case RowUnit(name=self.unit, rows=rows, neighbours=neighbours):
                return f"RowUnit {2 * rows if neighbours == 'replace_one' else rows}"
            case IdUnit(name=self.unit, column=column):
                return f"IdUnit {names[column.lower()]}"
            case PathUnit(name=self.unit):
                raise NotPrintedError("owners found through foreign keys")
        return "Unchanged"

    def promises(self, table: Table, names: Mapping[str, int]) -> list[tuple[tuple[int, ...], int]]:
        """Columns and most rows that agree on them: what the policy promises, or what was counted."""
        given = [(key.columns, 1) for key in table.keys if key.assumed or table.public]
        given += [(limit.columns, limit.rows) for limit in table.max_frequency if limit.assumed or table.public]
        limit = table.max_rows_per_unit
        if isinstance(table.protection, IdUnit) and limit is not None and limit.assumed:
            given.append(((table.protection.column,), limit.rows))
        for request, number in sorted(self.numbers.items(), key=repr):
            if table.public and request.table == table.name:
                given.append((request.columns if isinstance(request, FrequencyOf) else (), number))
        placed = [(tuple(names.get(c.lower(), -1) for c in columns), rows) for columns, rows in given]
        return list(dict.fromkeys(each for each in placed if -1 not in each[0]))

    def kept(self, node: Node) -> list[tuple[tuple[int, ...], int]]:
        """What is promised of some rows of a public table, and how many a LIMIT leaves."""
        match node:
            case Limit(input=below, count=count):
                return [*([] if count is None else [((), count)]), *self.kept(below)]
            case Sort(input=below) | Filter(input=below):
                return self.kept(below)
            case Scan(table=name, columns=columns):
                table = self.policy.table(name)
                assert table is not None
                return self.promises(table, {c.name.lower(): i for i, c in enumerate(columns)})
        return []

    def table(self, key: object, width: int, changes: str, promises: Iterable[tuple[Sequence[int], int]]) -> str:
        """A reference to a table that is printed once."""
        if key not in self.tables:
            self.counts[f"table {changes.split()[0]}"] += 1
            kept = listed(f"({listed(map(str, columns))}, {most})" for columns, most in promises)
            self.tables[key] = len(self.tables), f"({width}, {changes}, {kept})"
        return f"(Scan {self.tables[key][0]})"


def written(node: Values) -> Iterator[tuple[list[int], int]]:
    """How often values repeat among rows written in the query, for each set of columns."""
    width = range(len(node.columns))
    sets = (
        [columns for size in width for columns in combinations(width, size + 1)] if len(width) <= MOST_WRITTEN else []
    )
    yield [], len(node.rows)
    for columns in sets:
        values = [tuple(row[i] for i in columns) for row in node.rows]
        told = Counter(each for each in values if None not in each)
        yield list(columns), max(told.values(), default=0)
