"""A table that a prepared copy carries is read in the copy's own rows, in place of the join.

Inner joins of a copy with a table that it carries, on the key by which it does, give the copy's rows that have a
partner. Other conditions between the two stay, as conditions of one row. The analysis judges what comes out like any
other plan, so that a wrong guess here can make an answer wrong, and never its price.

Example:
    >>> before_after(read_carried, "SELECT COUNT(*) FROM visits v JOIN icd10 i USING (code)", prepared=True)
    join inner code = code  →  filter "icd10.code" IS NOT NULL
    ├─ scan visits             └─ scan visits
    └─ scan icd10
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpsql.core.ir.conditions import conjunction
from dpsql.core.ir.expressions import Call, Column, Expr
from dpsql.core.ir.nodes import Filter, Join, JoinKind, Node, Scan, inputs
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.ir.walk import renumbered, with_inputs
from dpsql.core.policy.tables import Carried, Table
from dpsql.core.policy.units import IdUnit
from dpsql.planner.rewrites.joins.order_joins import flattened, in_cluster, named_at
from dpsql.planner.rewrites.joins.place_conditions import place_conditions
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def read_carried(root: Node, ctx: RewriteContext) -> Node:
    """Leave out every table that a copy beside it carries."""
    if not any(t.copied is not None and t.copied.carried for t in ctx.analysis.policy.tables.values()):
        return root
    while True:
        found = next((each for old in _clusters(root) for each in _left_out(root, old, ctx)), None)
        if found is None:
            return root
        root = found


def _clusters(node: Node) -> Iterator[Node]:
    """The inner joins that stand together, each with the conditions above them."""
    if in_cluster(node):
        yield node
        relations, _ = flattened(node)
    else:
        relations = [*inputs(node)]
    for each in relations:
        yield from _clusters(each)


def _left_out(root: Node, old: Node, ctx: RewriteContext) -> Iterator[Node]:
    """The plan without one of the joined tables, for each that may be left out."""
    relations, terms = flattened(old)
    scans = [(r, ctx.analysis.table(r.table)) for r in relations if isinstance(r, Scan)]
    for scan, table in sorted(scans, key=lambda each: -len(_carried(each[1]))):
        for carried in _carried(table):
            for other, of in scans:
                if of.name != carried.table or other is scan:
                    continue
                pair = _Pair(scan, table, other, of, carried)
                rest = pair.without(terms)
                if rest is None:
                    continue
                joined, *more = [r for r in relations if r is not other]
                for each in more:
                    joined = Join(JoinKind.CROSS, joined, each, span=named_at(each))
                predicate = conjunction(rest)
                assert predicate is not None
                found = pair.replaced(_with(root, old, Filter(joined, predicate)))
                if found is not None:
                    yield place_conditions(found, ctx)


def _carried(table: Table) -> Sequence[Carried]:
    return () if table.copied is None else table.copied.carried


def _with(node: Node, old: Node, new: Node) -> Node:
    return new if node is old else with_inputs(node, tuple(_with(child, old, new) for child in inputs(node)))


@dataclass(frozen=True, slots=True)
class _Pair:
    """A copy, and a table that it may carry for a join."""

    scan: Scan
    table: Table
    other: Scan
    of: Table
    carried: Carried

    def without(self, terms: Sequence[Expr]) -> list[Expr] | None:
        """The conditions that are left of a join by the key; None if it is another join."""
        own, others = _by_name(self.scan), _by_name(self.other)
        wanted = {(own[a].uid, others[b].uid) for a, b in zip(self.carried.links, self.carried.keys, strict=True)}
        if isinstance(self.table.protection, IdUnit) and isinstance(self.of.protection, IdUnit):
            # What is carried of the unit's own tables is its own.
            wanted.add((own[self.table.protection.column].uid, others[self.of.protection.column].uid))
        seen, rest = set(), [*terms]
        for term in terms:
            match term:
                case Call("eq", (Column(uid=a), Column(uid=b))):
                    pair = (a, b) if (a, b) in wanted else (b, a)
                    if pair in wanted:
                        seen.add(pair)
                        rest.remove(term)
        if wanted != seen:
            return None
        partner = own[self.carried.columns[self.carried.keys[0]].name]
        return [*rest, Call("is_not_null", (partner,), BOOLEAN)]

    def replaced(self, root: Node) -> Node | None:
        """The plan in which columns of the table are those of the copy; None if one that is read has none."""
        known, foreign = self.same(), {c.uid for c in self.other.columns}
        new, read = renumbered(root, lambda c: known.get(c.uid, c))
        return new if foreign & read.keys() <= known.keys() else None

    def same(self) -> Mapping[int, Column]:
        """Number of a column of the table → the copy's column that holds the same."""
        own = _by_name(self.scan)
        named = {name: own[c.name] for name, c in self.carried.columns.items()}
        if isinstance(self.table.protection, IdUnit) and isinstance(self.of.protection, IdUnit):
            named[self.of.protection.column] = own[self.table.protection.column]
        for theirs in _carried(self.of):
            links = tuple(named[c].name for c in theirs.links if c in named)
            for each in _carried(self.table):
                if each.table == theirs.table and each.links == links:
                    named |= {c.name: own[each.columns[name].name] for name, c in theirs.columns.items()}
        return {c.uid: named[c.name] for c in self.other.columns if c.name in named}


def _by_name(scan: Scan) -> dict[str, Column]:
    return {c.name: c for c in scan.columns}
