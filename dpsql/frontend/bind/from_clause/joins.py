"""Joins: which kind is written, what ON, USING and NATURAL mean, and which names are visible afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dpsql.core.ir.conditions import conjunction, conjuncts, equality_between
from dpsql.core.ir.expressions import Column, Expr, Literal
from dpsql.core.ir.nodes import Equality, Item, Join, JoinKind, Node, Project, output_columns
from dpsql.core.value_classes import value
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.together import Together
from dpsql.frontend.bind.expressions.expressions import ExprBinder, condition
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.parameters import Numbering
from dpsql.frontend.bind.scope import BoundRelation, VisibleColumn, find, has
from dpsql.frontend.text.spans import span_of

Entries = tuple[VisibleColumn, ...]

_EXAMPLE = "JOIN … ON a.x = b.y"


@value(frozen=True, slots=True)
class WrittenJoin:
    """A join as it stands in FROM. `mirrored`: a RIGHT join, which is a LEFT join of the sides exchanged.

    on, using: the condition, if it has one; a NATURAL join has neither.
    """

    kind: JoinKind
    item: exp.Expr
    span: Span
    mirrored: bool = False
    natural: bool = False
    on: exp.Expr | None = None
    using: tuple[exp.Expr, ...] | None = None

    @property
    def name(self) -> str:
        """As users call it: RIGHT JOIN."""
        return f"{'NATURAL ' if self.natural else ''}{'RIGHT' if self.mirrored else self.kind.name} JOIN"

    @property
    def keeps_right(self) -> bool:
        """True if rows of the right side appear without a partner."""
        return self.mirrored or self.kind is JoinKind.FULL


def is_comma(node: exp.Join) -> bool:
    """Whether FROM items stand side by side: `parse` calls every JOIN without another word an INNER JOIN."""
    return not any(node.args.get(name) for name in ("kind", "side", "method", "on", "using"))


def written(node: exp.Join, source: Source) -> WrittenJoin:
    """What a JOIN says. Raises Rejected: DP116 (no condition, or one too many), DP118 (a kind without a meaning)."""
    args = checked(node, source, "this", "on", "using", "kind", "method", "side")
    kind, side, method = (str(args.get(name) or "").upper() for name in ("kind", "side", "method"))
    at = span_of(node, source.text)
    if method not in ("", "NATURAL"):
        raise reject(
            "DP118", f"{method} JOIN is not supported", span=at, label="pairs rows by their order",
            help=[f"say which rows belong together:  {_EXAMPLE}"],
        )  # fmt: skip
    chosen = _KINDS.get((side, kind))
    if chosen is None or (method and kind == "CROSS"):
        raise reject(
            "DP118", f"{' '.join(w for w in (method, side, kind) if w)} JOIN is not supported", span=at,
            help=["use [INNER], LEFT, RIGHT, FULL, CROSS, SEMI or ANTI JOIN"],
        )  # fmt: skip
    on, using = args.get("on"), args.get("using")
    given = on is not None or using is not None
    if given and (method or chosen is JoinKind.CROSS):
        raise reject(
            "DP116", f"a {method or kind} JOIN takes no condition", span=span_of(on or node, source.text),
            help=["use JOIN … ON or JOIN … USING"],
        )  # fmt: skip
    found = WrittenJoin(
        chosen, args["this"], at, side == "RIGHT", bool(method), on, None if using is None else tuple(using)
    )
    if not given and not method and chosen is not JoinKind.CROSS:
        name = "JOIN" if chosen is JoinKind.INNER else found.name
        if isinstance(args["this"], exp.Lateral):
            raise reject(
                "DP116", f"this {name} LATERAL has no condition", span=at,
                help=["write  ON TRUE  behind it: its own WHERE says which rows belong together"],
            )  # fmt: skip
        raise reject(
            "DP116", f"this {name} has no condition", span=at, label="which rows belong together?",
            help=[f"write {name} … ON a.x = b.y, or CROSS JOIN if every pair is meant"],
        )  # fmt: skip
    return found


_KINDS: dict[tuple[str, str], JoinKind] = {
    ("", "INNER"): JoinKind.INNER,
    ("", ""): JoinKind.INNER,
    ("", "CROSS"): JoinKind.CROSS,
    **{(side, outer): JoinKind.LEFT for side in ("LEFT", "RIGHT") for outer in ("", "OUTER")},
    **{("FULL", outer): JoinKind.FULL for outer in ("", "OUTER")},
    **{(side, "SEMI"): JoinKind.SEMI for side in ("", "LEFT")},
    **{(side, "ANTI"): JoinKind.ANTI for side in ("", "LEFT")},
}
"""(side, kind) → kind. LEFT SEMI is how Spark spells SEMI."""


def join_on(kind: JoinKind, left: Node, right: Node, terms: Sequence[Expr], span: Span | None) -> Join:
    """A join: plain equalities between the two sides apart, all other terms together as residual.

    Also a term that reads one side only stays: in an outer join it decides about partners, not about rows.
    """
    terms = [t for t in terms if not (isinstance(t, Literal) and t.value is True)]
    lefts, rights = (frozenset(c.uid for c in output_columns(n)) for n in (left, right))
    pairs = [(t, equality_between(t, lefts, rights)) for t in terms]
    equalities = tuple(Equality(*pair) for _, pair in pairs if pair is not None)
    residual = conjunction(t for t, pair in pairs if pair is None)
    if kind is JoinKind.INNER and not equalities and residual is None:
        kind = JoinKind.CROSS
    return Join(kind, left, right, equalities, residual, span)


def bind_join(
    join: WrittenJoin, left: Node, entries: Entries, right: BoundRelation, binder: ExprBinder
) -> BoundRelation:
    """The joined rows and what names mean in them.

    left: rows of everything joined so far; entries: which of their columns ON and USING see.
    binder: sees the columns of both sides. Raises Rejected: DP103, DP104, DP106, DP116, DP117.
    """
    if join.natural or join.using is not None:
        return _join_using(join, left, entries, right, binder)
    visible = entries if join.kind.filters else entries + right.entries
    if join.on is None:
        return BoundRelation(Join(JoinKind.CROSS, left, right.node, span=join.span), visible)
    try:
        terms = conjuncts(condition(binder, join.on))
    except Rejected as refusal:
        together = Together()
        _require_one_type(join.on, binder, together)
        with together.attempt():
            raise refusal
        together.settle()
        raise
    a, b = (right.node, left) if join.mirrored else (left, right.node)
    return BoundRelation(join_on(join.kind, a, b, terms, join.span), visible)


def _require_one_type(node: exp.Expr, binder: ExprBinder, together: Together) -> None:
    """Refuse `a.id = b.name` as join keys of different types (DP117), not as a comparison that fails.

    For a condition that was refused: one that is bound compares nothing else.
    """
    if isinstance(node, (exp.And, exp.Paren)):
        for part in (node.this, node.args.get("expression")):
            if isinstance(part, exp.Expr):
                _require_one_type(part, binder, together)
    elif isinstance(node, exp.EQ) and all(isinstance(e, exp.Column) for e in (node.this, node.expression)):
        with together.attempt():
            a, b = binder.bind(node.this), binder.bind(node.expression)
            if isinstance(a, Column) and isinstance(b, Column):
                _compared(a, b, binder.span(node), binder)


def _compared(a: Column, b: Column, at: Span, binder: ExprBinder) -> None:
    try:
        binder.call("eq", (a, b), at)
    except Rejected:
        if a.type == b.type:
            raise reject(
                "DP117", f"{a.type} columns cannot be join keys", span=at,
                help=["join on an integer, text or date column"],
            ) from None  # fmt: skip
        raise reject(
            "DP117", f"join keys have different types: {a.type} and {b.type}", span=at,
            help=["join columns of the same type, or convert one in a subquery:  SELECT CAST(x AS BIGINT) AS x …"],
        ) from None  # fmt: skip


def _join_using(
    join: WrittenJoin, left: Node, entries: Entries, right: BoundRelation, binder: ExprBinder
) -> BoundRelation:
    if join.using is None:
        left_names = dict.fromkeys(e.name for e in entries if not e.merged)
        names = [(n, join.span) for n in left_names if has(right.entries, n)]
        if not names:
            raise reject(
                "DP116", "NATURAL JOIN finds no common column", span=join.span,
                help=[f"say how the tables belong together:  {_EXAMPLE}"],
            )  # fmt: skip
    else:
        names = list({u.name.lower(): (u.name, binder.span(u)) for u in reversed(join.using)}.values())[::-1]
    pairs = []
    for name, at in names:
        pair = find(entries, name, None, at), find(right.entries, name, None, at)
        _compared(*pair, at, binder)
        pairs.append(pair)
    if join.mirrored:
        node = Join(join.kind, right.node, left, tuple(Equality(b, a) for a, b in pairs), span=join.span)
    else:
        node = Join(join.kind, left, right.node, tuple(Equality(a, b) for a, b in pairs), span=join.span)
    if join.kind.filters:
        return BoundRelation(node, entries)
    hidden = {b.uid for _, b in pairs}
    both = entries + tuple(replace(e, merged=True) if e.column.uid in hidden else e for e in right.entries)
    if join.kind is JoinKind.FULL:
        return _coalesced(node, both, pairs, binder)
    return BoundRelation(node, _merged(both, {a.uid: b for a, b in pairs}) if join.mirrored else both)


def _merged(entries: Entries, meant: dict[int, Column]) -> Entries:
    """Where a shared name means another column than the left one: that column without a qualified name, in its place.

    The left column itself stays reachable as `relation.name`.
    """
    found: list[VisibleColumn] = []
    for e in entries:
        if e.merged or e.column.uid not in meant:
            found.append(e)
            continue
        found.append(VisibleColumn("", e.name, meant[e.column.uid]))
        if e.relation:
            found.append(replace(e, merged=True))
    return tuple(found)


def _coalesced(
    node: Join, entries: Entries, pairs: Sequence[tuple[Column, Column]], binder: ExprBinder
) -> BoundRelation:
    """FULL JOIN … USING (x): the shared column is COALESCE(left, right)."""
    numbering: Numbering = binder.numbering
    items = [Item(numbering.column(c.name, c.type), replace(c, span=None)) for c in output_columns(node)]
    place = {i.expr.uid: i.column for i in items if isinstance(i.expr, Column)}
    meant: dict[int, Column] = {}
    for a, b in pairs:
        either = binder.call("coalesce", (a, b), a.span or Span(0, 1))
        items.append(Item(numbering.column(a.name, either.type), either))
        meant[place[a.uid].uid] = items[-1].column
    moved = tuple(replace(e, column=place[e.column.uid]) for e in entries)
    return BoundRelation(Project(node, tuple(items), node.span), _merged(moved, meant))
