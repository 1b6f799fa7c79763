"""Disjoint slices: branches of a UNION in which no row of one table has a part together.

Claim. Each row of a relation that has slices is made of one row of a slice's table, which satisfies the slice's
    condition, and of public rows; in a table of ids also of rows of the same id. Of each row of the table at most
    `most` are made.
    - In a set of slices of one table whose conditions are pairwise disjoint, a row of the table has a part in one slice
      at most. So k rows of it that differ change at most k·max(most) rows. [tight]
    - Rows that agree on columns that are the same bare columns of the table in all slices are at most as many as the
      table's, times max(most). [tight]
    - Several sets add up.
    - A SEMI or ANTI join of a table with itself, in which each equality compares a column with itself, and these
      columns have a promised frequency f: k·f rows change. [tight]
Why: filters and projections read one row. A look-up of public rows by a row gives at most m rows, whatever other rows
    there are. DISTINCT moves no two relations further from each other. A row that comes or goes can change, in a join
    of its table with itself on equal columns, only rows with its own values there, itself among them: at most f.
When it would be false:
    - a condition on a partner's column: one row satisfies it in one branch with one partner and in the other with
      another;
    - a limit that leaves out rows below the condition, in one branch only: what one branch gains the other loses;
    - partners that are private rows of somebody else; ids that differ, taken for rows;
    - a column that is another one of the table in each branch; an equality of two different columns;
    - a frequency made true by truncation.
Tested by: tests/deep/core/analysis/test_operator_tightness.py, tests/deep/core/analysis/test_broken_operator_rules.py,
    tests/deep/core/analysis/test_operators.py, tests/core/analysis/test_slices.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice, product

from dpsql.core.analysis.context import Derivation
from dpsql.core.analysis.disjoint_conditions import ANY, Cases, are_disjoint, both, cases_of
from dpsql.core.analysis.facts import Columns, Facts
from dpsql.core.analysis.rules.join_multiplicity import most_matches
from dpsql.core.analysis.rules.join_same_unit import joins_same_unit
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Column, Expr, columns_of, larger_than, transform
from dpsql.core.ir.nodes import Filter, Join, JoinKind, Node, Project, Scan, SetKind, SetOperation, Unnest
from dpsql.core.numbers.cap import ONE, Cap, Finite, add, finite, larger, times

MOST_NAMES = 64
"""Most new names that one column set is followed under; forgetting one only loses precision."""
_LONGEST = 1000
"""Nodes of an expression that is still followed."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows made of those rows of a private table that satisfy a condition.

    table: what the policy calls it. scan: facts of the table as it stands. cases: of which one holds for each of these
    rows, over columns that are numbered by their place in the table. columns: column of the relation → what it is in
    terms of these, where that is known. most: rows made of one row of the table. plain: by filters and projections.
    """

    table: str
    scan: Facts
    cases: Cases
    columns: Mapping[int, Expr]
    most: Cap = ONE
    plain: bool = True

    def of(self, expr: Expr) -> Expr | None:
        """The expression in terms of the table's columns; None if it is not known, or long."""
        if not columns_of(expr) <= self.columns.keys():
            return None
        found = transform(expr, lambda e: self.columns[e.uid] if isinstance(e, Column) else e)
        return None if larger_than(found, _LONGEST) else found

    def where(self, condition: Expr) -> Slice:
        """Those of the rows that satisfy a condition, too; what is not about the table's columns says nothing."""
        whole = self.of(condition)
        known = map(self.of, conjuncts(condition)) if whole is None else [whole]
        terms = [term for term in known if term is not None]
        stored = range(len(self.scan.columns))  # these are numbered by their places in the table
        return replace(self, cases=reduce(both, [cases_of(term, stored) for term in terms], self.cases))

    def renamed(self, items: Sequence[tuple[Column, Expr]]) -> Slice:
        """With other columns."""
        return replace(self, columns={c.uid: found for c, e in items if (found := self.of(e)) is not None})

    def times(self, most: Cap) -> Slice:
        """With more rows made of each."""
        return replace(self, most=times(self.most, most), plain=False)


Slices = tuple[tuple[Slice, ...], ...]
"""Sets of slices of one table that are pairwise disjoint."""


def slices_of(node: Node, ctx: Derivation) -> Slices | None:
    """What the rows of a private relation are made of; None if it is not known. The facts below must be known."""
    if node not in ctx.slices:
        ctx.slices[node] = _found(node, ctx)
    return ctx.slices[node]


def _found(node: Node, ctx: Derivation) -> Slices | None:
    match node:
        case Scan(table=name, columns=columns):
            known = ctx.fact(node)
            own = {c.uid: Column(at, c.name, c.type) for at, c in enumerate(columns)}
            return None if known.public else ((Slice(name, known, ANY, own),),)
        case Filter(input=child, predicate=predicate):
            return _each(slices_of(child, ctx), lambda s: s.where(predicate))
        case Project(input=child, items=items):
            return _each(slices_of(child, ctx), lambda s: s.renamed([(item.column, item.expr) for item in items]))
        case Unnest(input=child, most=most):
            return _each(slices_of(child, ctx), lambda s: s.times(finite(most)))
        case Join():
            return _joined(node, ctx)
        case SetOperation(kind=SetKind.UNION, left=left, right=right, columns=columns):
            a = _each(slices_of(left, ctx), lambda s: s.renamed([(c.column, c.left) for c in columns]))
            b = _each(slices_of(right, ctx), lambda s: s.renamed([(c.column, c.right) for c in columns]))
            return None if a is None or b is None else _each(_together(a, b), lambda s: replace(s, plain=False))
        case _:
            return None


def _each(found: Slices | None, change: Callable[[Slice], Slice]) -> Slices | None:
    return None if found is None else tuple(tuple(map(change, members)) for members in found)


def _together(a: Slices, b: Slices) -> Slices:
    """Each slice of the second joins the first set that it can."""
    found = list(map(list, a))
    for one in (s for members in b for s in members):
        for others in found:
            if others[0].table == one.table and all(are_disjoint(one.cases, other.cases) for other in others):
                others.append(one)
                break
        else:
            found.append([one])
    return tuple(map(tuple, found))


def _joined(node: Join, ctx: Derivation) -> Slices | None:
    """Of a join that looks partners up; rows that are padded on the side of the table are not made of its rows."""
    left, right = ctx.fact(node.left), ctx.fact(node.right)
    owner = not left.public and not right.public
    if (left.public and right.public) or (owner and not joins_same_unit(node, left, right)):
        return None
    if node.kind.filters:
        return None if left.public else slices_of(node.left, ctx)
    inner = node.kind in (JoinKind.INNER, JoinKind.CROSS)
    if not inner and (node.kind is not JoinKind.LEFT or left.public):
        return None
    m_left = most_matches(node.left, left, tuple(e.left for e in node.equalities), node, ctx)
    m_right = most_matches(node.right, right, tuple(e.right for e in node.equalities), node, ctx)
    if left.public or (owner and inner and m_left == ONE != m_right):  # the left side is what is looked up
        return _each(slices_of(node.right, ctx), lambda s: s.times(m_left))
    most = m_right if inner else larger(ONE, m_right)
    return _each(slices_of(node.left, ctx), lambda s: s.times(most))


def of_one_table(slices: Slices | None) -> bool:
    """Whether all of it is made of one table, and no row of that has a part in two slices."""
    return slices is not None and len(slices) == 1


def changed_rows(slices: Slices | None, *, replaced: bool = False) -> dict[str, Cap]:
    """Unit → rows of the relation that change (replaced: that are replaced one by one); nothing where it is not known.

    Ids are no rows: nothing is said of tables of an id unit.
    """
    total: dict[str, Cap] = {}
    for members in slices or ():
        scan = members[0].scan
        own = scan.replaced_rows if replaced else scan.stability
        if own is None or scan.ids or scan.hops:
            return {}
        most = reduce(larger, (s.most for s in members))
        for unit, cap in own.items():
            total[unit] = add(total[unit], times(cap, most)) if unit in total else times(cap, most)
    return total


def frequencies(slices: Slices | None) -> dict[Columns, Cap]:
    """Column set of the relation → most rows that agree on it under `=`."""
    found: dict[Columns, Cap] | None = None
    for members in slices or ():
        own = dict(_frequencies(members))
        found = own if found is None else {c: add(found[c], own[c]) for c in found.keys() & own.keys()}
    return found or {}


def _frequencies(members: Sequence[Slice]) -> Iterator[tuple[Columns, Cap]]:
    first, scan = members[0], members[0].scan
    places = {uid: at for at, uid in enumerate(scan.columns)}
    most = reduce(larger, (s.most for s in members))
    names: dict[int, list[int]] = {}
    for uid, expr in first.columns.items():
        if isinstance(expr, Column) and all(s.columns.get(uid) == expr for s in members):
            names.setdefault(expr.uid, []).append(uid)
    for known in (*scan.frequency, *scan.keys):
        cap = scan.most_rows(known)
        assert cap is not None
        for choice in islice(product(*(names.get(places[uid], []) for uid in sorted(known))), MOST_NAMES):
            yield frozenset(choice), times(cap, most)


def self_join_frequency(node: Join, ctx: Derivation) -> Cap | None:
    """f of a join that compares columns of a table with themselves: most rows of it that agree on these columns."""
    match slices_of(node.left, ctx), slices_of(node.right, ctx):
        case ((one,),), ((other,),) if one.plain and other.plain and one.table == other.table:
            pass
        case _:
            return None
    columns = list(one.scan.columns)
    compared = set()
    for pair in node.equalities:
        a, b = one.of(pair.left), other.of(pair.right)
        if not isinstance(a, Column) or a != b:
            return None
        compared.add(columns[a.uid])
    found = one.scan.most_rows(frozenset(compared)) if compared else None
    return found if isinstance(found, Finite) else None
