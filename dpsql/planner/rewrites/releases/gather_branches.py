"""Branches of a UNION that read the same rows under conditions that exclude each other: these rows are read once.

`σ_c(R) UNION ALL σ_d(R)` is `σ_(c OR d)(R)`, where each column is `CASE WHEN c THEN … ELSE … END` of the two. In the
plan that is left any row of R makes one row at most, whatever c and d are and mean, so that no price rests on them:
were both true of a row, it would count as one of the first. A UNION that is distinct leaves their distinct rows.

Rows are the same where the branches are but for projections and filters, those below joins among them. Where one
branch joins a public table to the rows of another, and nothing is grouped, both are their LEFT join, in which a row has
its partners or stands once, so that it changes no more rows than the larger of the two branches has of it. Whether
conditions exclude each other is a guess from their text (`planner/exclusive_conditions.py`).

Example:
    >>> from dpsql.planner.rewrites.releases.inline_projections import inline_projections
    >>> before_after(
    ...     inline_projections,
    ...     "SELECT SUM(x) FROM (SELECT age AS x FROM patients WHERE age < 9 "
    ...     "UNION ALL SELECT 2 * age FROM patients WHERE age >= 9)"
    ... )
    aggregate SUM(x)           →  aggregate SUM(CASE WHEN age < 9 THEN CAST(age AS BIGINT) ELSE 2 * age END)
    └─ union all                  └─ filter (age < 9) OR (age >= 9)
       ├─ project x                  └─ scan patients
       │  └─ filter age < 9
       │     └─ scan patients
       └─ project 2 * age
          └─ filter age >= 9
             └─ scan patients
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from dpsql.core.ir.conditions import conjunction, conjuncts
from dpsql.core.ir.expressions import MOST_NODES, Call, Column, Expr, Literal, columns_of, larger_than
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.ir.nodes import (
    Aggregate,
    Equality,
    Filter,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    SetColumn,
    SetKind,
    SetOperation,
    output_columns,
)
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.value_classes import replace
from dpsql.diagnostics.errors import too_large
from dpsql.planner.exclusive_conditions import ANY, Cases, are_disjoint, cases_of

_LONGEST = 1000
"""Nodes of a column that tells branches apart; with a longer one the UNION stays."""

Definitions = dict[int, Expr]


@dataclass(slots=True, eq=False)
class _Branch:
    """Columns of those rows of a relation that satisfy all terms. ordered: the rows, whichever side of a join was
    written first. cases: of the terms."""

    rows: Node
    ordered: Node
    terms: list[Expr]
    columns: list[Expr]
    cases: Cases = ANY


def gathered(
    node: SetOperation,
    inlined: Callable[[Node], tuple[Node, Definitions]],
    gathers: Callable[[Node], bool],
    numbers: Iterator[int],
    grouped: bool,
) -> tuple[Node, Definitions] | None:
    """A UNION with fewer branches, and what its columns are in terms of the new node's; None if it stays as it is.

    inlined: a branch without projections, and what its columns are. gathers: of which rows branches are looked for.
    numbers: unused, of columns. grouped: whether a column may be a group key; lists of keys are those of each branch.
    """
    if node.kind is not SetKind.UNION:
        return None
    branches = list(_branches(node, [c.column for c in node.columns], node.all, inlined))
    groups: list[list[_Branch]] = []
    alike: dict[str, list[list[_Branch]]] = {}
    for branch in branches:
        fits = []
        if branch.terms and gathers(branch.rows):
            known = alike.setdefault(fingerprint(branch.ordered, numbered=True), [])
            branch = _over(known[0][0], branch) if known else branch
            branch.cases = cases_of(conjunction(branch.terms))
            fits = [g for g in known if branch.cases != ANY and all(are_disjoint(branch.cases, b.cases) for b in g)]
            if not fits:
                known.append([])
                groups.append(known[-1])
        else:
            groups.append([])
        (fits[0] if fits else groups[-1]).append(branch)
    found = [_as_one(group) for group in groups]
    found = found if grouped else _with_partners(found, gathers)
    if len(found) == len(branches):
        return None
    if any(larger_than(e, _LONGEST) for one in found for e in one.columns):
        return None
    return _united(found, node, numbers)


def is_part(side: Node, of: SetOperation) -> bool:
    """Whether the branches of a side are looked at with those of the whole UNION."""
    side = side.input if isinstance(side, Project) else side
    unions = isinstance(side, SetOperation) and side.kind is SetKind.UNION and of.kind is SetKind.UNION
    return unions and (side.all or not of.all)  # type: ignore[union-attr]


def _branches(
    node: Node, columns: Sequence[Expr], every: bool, inlined: Callable[[Node], tuple[Node, Definitions]]
) -> Iterator[_Branch]:
    """The branches of a UNION and of those that it is made of. every: duplicates count, too."""
    match node:
        case SetOperation(kind=SetKind.UNION, all=all_rows) if all_rows or not every:
            for side, own in (
                (node.left, {c.column.uid: c.left for c in node.columns}),
                (node.right, {c.column.uid: c.right for c in node.columns}),
            ):
                yield from _branches(side, _in_terms_of(own, columns), every, inlined)
        case Project(input=SetOperation() as below, items=items):
            yield from _branches(below, _in_terms_of({i.column.uid: i.expr for i in items}, columns), every, inlined)
        case Aggregate(input=below, keys=keys, calls=(), inner=False) if not every and keys:
            yield from _branches(below, _in_terms_of({k.column.uid: k.expr for k in keys}, columns), every, inlined)
        case _:
            below, known = inlined(node)
            rows, terms = _unfiltered(below)
            yield _Branch(rows, _ordered(rows), terms, _in_terms_of(known, columns))


def _unfiltered(node: Node) -> tuple[Node, list[Expr]]:
    """Rows without the conditions that may as well be asked of the whole, and these."""
    match node:
        case Filter(input=below, predicate=predicate):
            rows, terms = _unfiltered(below)
            return rows, [*terms, *conjuncts(predicate)]
        case Join(kind=kind, left=left, right=right) if kind is not JoinKind.FULL:
            left, terms = _unfiltered(left)
            if kind in (JoinKind.INNER, JoinKind.CROSS) and not node.scalar:
                right, others = _unfiltered(right)
                terms = [*terms, *others]
            return (replace(node, left=left, right=right) if terms else node), terms
        case _:
            return node, []


def _ordered(node: Node) -> Node:
    """The same rows for both ways to write an inner join."""
    if not isinstance(node, Join) or node.scalar:
        return node
    left, right = _ordered(node.left), _ordered(node.right)
    turned = fingerprint(left, numbered=True) > fingerprint(right, numbered=True)
    if not turned or node.kind not in (JoinKind.INNER, JoinKind.CROSS):
        return replace(node, left=left, right=right)
    pairs = tuple(Equality(e.right, e.left) for e in node.equalities)
    return replace(node, left=right, right=left, equalities=pairs)


def _in_terms_of(known: Definitions, exprs: Sequence[Expr]) -> list[Expr]:
    return [written_out(e, known) for e in exprs]


def written_out(expr: Expr, known: Definitions) -> Expr:
    """The expression with columns as what they stand for."""

    def change(e: Expr) -> Expr:
        if isinstance(e, Column) and e.uid in known:
            found = known[e.uid]
            # Point at where the analyst used it: that is the text the message is about.
            return replace(found, span=e.span) if e.span is not None and isinstance(found, Column) else found
        return e

    found = transform_expr(expr, change)
    if found is not expr and larger_than(found, MOST_NODES):
        raise too_large(
            "the expression is too large", expr.span,
            "a column of a WITH query is written out wherever it is used: use it fewer times",
        )  # fmt: skip
    return found


def _over(first: _Branch, branch: _Branch) -> _Branch:
    """The same branch of the rows of another one, which are equal."""
    pairs = zip(output_columns(branch.ordered), output_columns(first.ordered), strict=True)
    known: Definitions = {old.uid: new for old, new in pairs}
    terms, columns = _in_terms_of(known, branch.terms), _in_terms_of(known, branch.columns)
    return _Branch(first.rows, first.ordered, terms, columns)


def _as_one(group: Sequence[_Branch]) -> _Branch:
    """One branch for those of a group. What all ask is asked once."""
    first, *others = group
    if not others:
        return first
    shared = [term for term in first.terms if all(term in b.terms for b in others)]
    own = [conjunction(term for term in b.terms if term not in shared) or Literal(True, BOOLEAN) for b in group]
    either = reduce(lambda a, b: Call("or", (a, b), BOOLEAN), own)
    columns = [_of_branches(own, [b.columns[at] for b in group]) for at in range(len(first.columns))]
    return _Branch(first.rows, first.ordered, [*shared, either], columns)


def _with_partners(branches: Sequence[_Branch], private: Callable[[Node], bool]) -> list[_Branch]:
    """With one branch for two of which one joins a public table to the rows of the other.

    private: whether rows are.
    """
    plain: dict[str, list[_Branch]] = {}
    for branch in branches:
        if branch.terms and private(branch.rows):
            plain.setdefault(fingerprint(branch.ordered, numbered=True), []).append(branch)
    taken, found = set[_Branch](), list[_Branch]()
    for branch in branches:
        for base, pairs, other in _lookups(branch.rows) if branch not in taken else ():
            alone = plain.get(fingerprint(_ordered(base), numbered=True), ()) if private(base) else ()
            fits = [b for b in alone if b not in taken and b is not branch and not private(other)]
            one = _padded(branch, base, pairs, other, fits[0]) if fits else None
            if one is not None:
                taken |= {branch, fits[0]}
                found.append(one)
                break
    return [*(b for b in branches if b not in taken), *found]


def _lookups(rows: Node) -> Iterator[tuple[Node, tuple[Equality, ...], Node]]:
    """Both ways to see an inner join as rows and the partners that are looked up for them."""
    if isinstance(rows, Join) and rows.kind is JoinKind.INNER and not rows.scalar:
        yield rows.left, rows.equalities, rows.right
        yield rows.right, tuple(Equality(e.right, e.left) for e in rows.equalities), rows.left


def _padded(branch: _Branch, base: Node, pairs: tuple[Equality, ...], other: Node, alone: _Branch) -> _Branch | None:
    """A branch with partners, and one of the same rows without, as their LEFT join; None if both may have a row."""
    assert isinstance(branch.rows, Join)
    mine = _over(_Branch(base, _ordered(base), [], []), alone)
    key = next((e.right for e in pairs if isinstance(e.right, Column)), None)
    cases = [cases_of(conjunction(b.terms)) for b in (branch, mine)]
    if key is None or ANY in cases or not are_disjoint(*cases):
        return None
    has_partner = Call("is_not_null", (key,), BOOLEAN)  # it equals a column of the rows
    on = conjunction([*([] if branch.rows.residual is None else [branch.rows.residual]), *branch.terms])
    rows = Join(JoinKind.LEFT, base, other, pairs, on, branch.rows.span)
    own = conjunction(mine.terms) or Literal(True, BOOLEAN)
    columns = [_of_branches([has_partner], [a, b]) for a, b in zip(branch.columns, mine.columns, strict=True)]
    return _Branch(rows, rows, [Call("or", (has_partner, own), BOOLEAN)], columns)


def _of_branches(conditions: Sequence[Expr], columns: Sequence[Expr]) -> Expr:
    """A column that is another one in each branch."""
    *before, last = columns
    if all(c == last for c in before):
        return columns[0]
    arms = [e for pair in zip(conditions, before, strict=False) for e in pair]
    return Call("case", (*arms, last), last.type)


def _united(branches: Sequence[_Branch], node: SetOperation, numbers: Iterator[int]) -> tuple[Node, Definitions]:
    """The UNION of these branches, under the names of the columns that it had."""
    made = [c.column for c in node.columns]
    rows, columns = _kept(branches[0]), branches[0].columns
    for at, branch in enumerate(branches[1:], 2):
        named = made if at == len(branches) else [replace(c, uid=next(numbers)) for c in made]
        pairs = zip(named, columns, branch.columns, strict=True)
        rows = replace(node, left=rows, right=_kept(branch), columns=tuple(SetColumn(*pair) for pair in pairs))
        columns = list(named)
    if len(branches) == 1 and not node.all:
        items = tuple(Item(c, e) for c, e in zip(made, columns, strict=True))
        return Aggregate(rows, items, (), node.span), {}
    return rows, {c.uid: e for c, e in zip(made, columns, strict=True) if c != e}


def _kept(branch: _Branch) -> Node:
    """The rows that satisfy its terms: each stands as low as it can."""
    rows, above = branch.rows, list[Expr]()
    for term in branch.terms:
        below = _lower(rows, term)
        if below is None:
            above.append(term)
        else:
            rows = below
    predicate = conjunction(above)
    return rows if predicate is None else Filter(rows, predicate)


def _lower(node: Node, term: Expr) -> Node | None:
    """A join with a term below it; None where it has to stand above."""
    if not isinstance(node, Join) or node.kind is JoinKind.FULL:
        return None
    if columns_of(term) <= {c.uid for c in output_columns(node.left)}:
        return replace(node, left=_lower(node.left, term) or Filter(node.left, term))
    inner = node.kind in (JoinKind.INNER, JoinKind.CROSS) and not node.scalar
    if inner and columns_of(term) <= {c.uid for c in output_columns(node.right)}:
        return replace(node, right=_lower(node.right, term) or Filter(node.right, term))
    return None
