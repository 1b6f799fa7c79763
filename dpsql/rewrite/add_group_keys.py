"""Which keys a release shows: a public list if every group column has one, else private keys above a threshold.

Public lists come from declared domains, booleans, bounded integers and dates, IN-lists, functions of these with a
finite image, and columns of public tables joined. The query's own conditions shorten the lists (semantics.md §7).
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from dpsql.analysis.derive import derive
from dpsql.analysis.facts import Facts, Hint
from dpsql.analysis.values import evaluate
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.functions.domains import ENUMERABLE, TimestampRange, midnight
from dpsql.functions.registry import literal
from dpsql.functions.value import Domain, Value
from dpsql.plan.expr import Call, Column, Expr, Literal, LiteralValue, columns_of
from dpsql.plan.expr import transform as transform_expr
from dpsql.plan.logic import conjuncts
from dpsql.plan.nodes import Component, Filter, GroupKeys, Item, Join, KeySource, Measure, Node, Release, Scan
from dpsql.plan.public import KeysOf
from dpsql.plan.walk import transform, walk
from dpsql.policy.tables import TableDomain
from dpsql.rewrite.context import RewriteContext
from dpsql.types import Kind

_KEY_KINDS = frozenset(
    {Kind.BOOLEAN, Kind.INTEGER, Kind.DECIMAL, Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP, Kind.UUID, Kind.TIME}
)


def add_group_keys(root: Node, ctx: RewriteContext) -> Node:
    """Give every release its public key lists, or the component that decides which private keys are shown."""

    def change(node: Node) -> Node:
        return _with_keys(node, ctx) if isinstance(node, Release) else node

    return transform(root, change)


def _with_keys(node: Release, ctx: RewriteContext) -> Release:
    assert isinstance(node.input, GroupKeys)
    facts = derive(node.input.input, ctx.analysis).fact
    items = node.input.items
    for item in items:
        _check_kind(item, facts)
    if not items:
        return replace(node, input=replace(node.input, sources=()))
    sources = _sources(items, node.input.input, facts, ctx)
    if sources is not None:
        size = 1
        for source in sources:
            size *= max(1, len(source.keys))  # no list may be written out that is too long by itself
        if size > ctx.analysis.max_keys:
            raise reject(
                "DP302", f"{size:,} groups are possible; at most {ctx.analysis.max_keys:,} are released",
                span=items[0].column.span,
                help=["group by fewer or coarser columns, or restrict them in WHERE", "custodian: defaults.max_keys"],
            )  # fmt: skip
        return replace(node, input=replace(node.input, sources=sources))
    # Private keys: the number of units per key decides, and is a component like any other (shared if it is COUNT(*)).
    deciding = Component(Measure.COUNT if not facts.ids or facts.one_row_per_id else Measure.UNITS)
    components = node.components if deciding in node.components else (*node.components, deciding)
    return replace(node, components=components, threshold=components.index(deciding), min_units=ctx.limits.min_units)


def _check_kind(item: Item, facts: Facts) -> None:
    kind = evaluate(item.expr, facts.env).type.kind
    if kind not in _KEY_KINDS:
        advice = {
            Kind.DOUBLE: "round it to whole numbers:  CAST(floor(x) AS INTEGER), or use CASE",
            Kind.TIMESTAMPTZ: "convert it:  x AT TIME ZONE 'UTC'",
        }.get(kind, "group by a number, text, date or boolean")
        raise reject(
            "DP301", f"{item.column.name} cannot be a group key: it is {item.column.type}",
            span=item.expr.span or item.column.span, help=[advice],
        )  # fmt: skip
    if facts.ids and columns_of(item.expr) & facts.ids:
        raise reject(
            "DP301",
            f"{item.column.name} is {'' if isinstance(item.expr, Column) else 'made from '}the id of the privacy unit: "
            f"one group per {facts.units[0]} would show everybody",
            span=item.expr.span or item.column.span, help=["group by something that many share"],
        )  # fmt: skip


def _sources(items: Sequence[Item], node: Node, facts: Facts, ctx: RewriteContext) -> tuple[KeySource, ...] | None:
    """Key lists that together cover all group columns, or None if one has none."""
    terms = [t for n in walk(node) if isinstance(n, Filter | Join) for t in _terms(n)]
    by_scan: dict[int, list[int]] = {}
    found: list[KeySource] = []
    equal = _equal_public_columns(node, facts)
    items = [replace(i, expr=_substitute(i.expr, equal)) for i in items]
    read = {uid for item in items for uid in columns_of(item.expr)}
    env = {uid: _restricted(uid, v, terms) if uid in read else v for uid, v in facts.key_env.items()}
    for at, item in enumerate(items):
        table = _public_scan(item.expr, facts)
        if table is not None:
            by_scan.setdefault(table.scan, []).append(at)
            continue
        domain = evaluate(item.expr, env).domain
        if domain is not None:
            found.append(KeySource((at,), LazyKeys(domain), _origin(item, facts)))
        elif _is_unread_list(item, facts, ctx):
            found.append(KeySource((at,), (), _origin(item, facts)))
        else:
            return None
    for positions in by_scan.values():
        source = _from_public_table([items[i] for i in positions], tuple(positions), node, terms, facts, ctx)
        if source is None:
            return None
        found.append(source)
    return tuple(sorted(found, key=lambda s: s.positions))


def _is_unread_list(item: Item, facts: Facts, ctx: RewriteContext) -> bool:
    """Whether the domain is a column of a public table that has not been read: the static check plans without it."""
    hint = facts.columns[item.expr.uid].hint if isinstance(item.expr, Column) else None
    declared = None if hint is None or not hint.table else ctx.analysis.table(hint.table).column(hint.column)
    if declared is None or not isinstance(declared.domain, TableDomain):
        return False
    listed = KeysOf(declared.domain.table, (declared.domain.column,), ctx.analysis.max_keys)
    return not ctx.analysis.public.knows(listed)


def _equal_public_columns(node: Node, facts: Facts) -> dict[int, Column]:
    """Private columns that an inner join equates with a bare column of a public table: both have the same keys."""
    found: dict[int, Column] = {}
    for join in walk(node):
        for pair in join.equalities if isinstance(join, Join) else ():
            for a, b in ((pair.left, pair.right), (pair.right, pair.left)):
                if not (isinstance(a, Column) and isinstance(b, Column) and a.type == b.type):
                    continue
                own, other = facts.columns[a.uid].hint, facts.columns[b.uid].hint
                if own is not None and not own.public and other is not None and other.public:
                    found[a.uid] = b
    return found


def _substitute(expr: Expr, equal: dict[int, Column]) -> Expr:
    return transform_expr(expr, lambda e: equal.get(e.uid, e) if isinstance(e, Column) else e)


class LazyKeys(Sequence[tuple[LiteralValue, ...]]):
    """A domain as one-column keys, without writing it out."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def __len__(self) -> int:
        return min(self.domain.size, sys.maxsize)  # far above any cap on keys

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        if isinstance(at, slice):
            return tuple(islice(self, *at.indices(len(self))))
        if at < 0:
            at += len(self)
        return (None,) if self.domain.null and at == len(self.domain.values) else (self.domain.values[at],)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazyKeys) and self.domain == other.domain

    def __hash__(self) -> int:
        return hash((len(self), self.domain.null))

    def __repr__(self) -> str:
        return f"LazyKeys({self.domain!r})"


def _origin(item: Item, facts: Facts) -> str:
    if isinstance(item.expr, Column):
        hint = facts.columns[item.expr.uid].hint
        if hint is not None:
            return f"domain of {hint.table}.{hint.column}"
    return f"image of {item.column.name}"


def _terms(node: Filter | Join) -> list[Expr]:
    condition = node.predicate if isinstance(node, Filter) else node.residual
    return [] if condition is None else conjuncts(condition)


def _restricted(uid: int, value: Value, terms: Sequence[Expr]) -> Value:
    """The column's domain, shortened to the keys that the query's conditions on this column alone let through."""
    own = [t for t in terms if columns_of(t) == {uid}]
    domain = value.domain
    for term in own:
        listed = _listed(term, uid) if domain is None or domain.size > ENUMERABLE else None
        if listed is not None:
            domain = Domain(listed)
    if domain is not None and isinstance(domain.values, TimestampRange):
        within = _within(domain.values, own, uid)
        if within != domain.values:  # a comparison holds for no NULL
            return replace(value, domain=Domain(within), nullable=False)
    if domain is None or domain.size > ENUMERABLE or not own:
        return replace(value, domain=domain)
    kept = [k for k in list(domain.keys()) if all(_may_hold(t, {uid: literal(k, value.type)}) for t in own)]
    return replace(value, domain=Domain(tuple(k for k in kept if k is not None), None in kept))


def _listed(term: Expr, uid: int) -> tuple[LiteralValue, ...] | None:
    """The values of a top-level `x IN (…)` or `x = …` on the bare column."""
    match term:
        case Call(function="in" | "eq", args=(Column(uid=found, type=own), *rest)) if found == uid:
            values = [r.value for r in rest if isinstance(r, Literal) and r.type.kind is own.kind]
            if len(values) == len(rest):
                return tuple(dict.fromkeys(v for v in values if v is not None))
    return None


_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _within(times: TimestampRange, own: Sequence[Expr], uid: int) -> TimestampRange:
    """The instants between the ends that comparisons of the bare column with constants set; more where none is."""
    first, last = times.first, times.last
    for term in own:
        match term:
            case Call(function=function, args=(Column(uid=found), Literal(value=dt.date() as end))) if found == uid:
                pass
            case Call(function=flipped, args=(Literal(value=dt.date() as end), Column(uid=found))) if found == uid:
                function = _FLIPPED.get(flipped, "")
            case _:
                continue
        instant = end if isinstance(end, dt.datetime) else midnight(end)
        match function:
            case "ge":
                first = max(first, instant)
            case "gt" if first <= instant < last:
                first = instant + times.step
            case "le":
                last = min(last, instant)
            case "lt" if first < instant <= last:
                last = instant - times.step
    return TimestampRange(first, last, times.step) if first <= last else times


def _may_hold(term: Expr, env: dict[int, Value]) -> bool:
    """False only if the condition is certainly not true for these constants."""
    try:
        value = evaluate(term, env)
    except Rejected:
        return True
    return not value.is_constant or value.constant is True


def _public_scan(expr: Expr, facts: Facts) -> Hint | None:
    """The one public scan an expression reads from, if it reads from nothing else."""
    hints = [facts.columns[uid].hint for uid in columns_of(expr)]
    first = hints[0] if hints else None
    if first is None or not first.public:
        return None
    return first if all(h is not None and h.public and h.scan == first.scan for h in hints) else None


def _from_public_table(
    items: Sequence[Item],
    positions: tuple[int, ...],
    node: Node,
    terms: Sequence[Expr],
    facts: Facts,
    ctx: RewriteContext,
) -> KeySource | None:
    """The distinct key tuples that rows of a joined public table can give."""
    uids = sorted({uid for item in items for uid in columns_of(item.expr)})
    hints = [facts.columns[uid].hint for uid in uids]
    table = next(h.table for h in hints if h is not None)
    scan = next(n for n in walk(node) if isinstance(n, Scan) and n.columns and _scan_of(hints) == n.columns[0].uid)
    here = {c.uid for c in scan.columns}
    own = [t for t in terms if columns_of(t) and columns_of(t) <= here]
    read = sorted({*uids, *(uid for t in own for uid in columns_of(t))})
    request = KeysOf(table, tuple(facts.columns[uid].hint.column for uid in read), ctx.analysis.max_keys)  # type: ignore[union-attr]
    rows = ctx.analysis.public.key_list(request)
    origin = ", ".join(f"{table}.{i.column.name}" for i in items)
    if rows is None:
        if ctx.analysis.public.knows(request):
            raise reject(
                "DP302", f"{table} has more than {ctx.analysis.max_keys:,} keys", span=items[0].column.span,
                help=["group by a coarser column, or restrict it in WHERE"],
            )  # fmt: skip
        return KeySource(positions, (), origin, covers=True)
    keys: dict[tuple[LiteralValue, ...], None] = {}
    for row in rows:
        env = {uid: literal(v, facts.columns[uid].value.type) for uid, v in zip(read, row, strict=True)}
        if not all(_may_hold(t, env) for t in own):
            continue
        values = [evaluate(item.expr, env) for item in items]
        if not all(v.is_constant for v in values):
            return None
        keys[tuple(v.constant for v in values)] = None  # type: ignore[misc]
    return KeySource(positions, tuple(keys), origin, covers=True)


def _scan_of(hints: Sequence[Hint | None]) -> int:
    return next(h.scan for h in hints if h is not None)
