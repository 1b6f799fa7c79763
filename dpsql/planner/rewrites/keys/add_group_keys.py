"""Group-by keys of a release: a public list if every group column has one, else private keys by partition selection.

`public_keys` finds the lists; here they are put into the plan, and their combinations counted. Where a list is longer
than may be released, the policy says which: a refusal, or partition selection among the keys that are listed. Rows with
other values are dropped all the same, column by column: what a list forbids is not shown, however many units have it.

Example:
    >>> before_after(add_group_keys, "SELECT region, COUNT(*) FROM patients GROUP BY region")
    group by region   →  group by region ∈ ('north', 'south')
    └─ scan patients     └─ scan patients
    >>> before_after(add_group_keys, "SELECT town, COUNT(*) FROM patients GROUP BY town")
    release COUNT(*)     →  release COUNT(*), where COUNT(*) is large enough
    └─ group by town        └─ group by town
       └─ scan patients        └─ scan patients
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import KeySource, RowCount, UnitCount
from dpsql.core.ir.expressions import Call, Column, Expr, columns_of
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.nodes import GroupKeys, Item, Node, Release, key_sources, keyed_by
from dpsql.core.ir.short_text import expression
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import transform
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.units import IdUnit, PathUnit
from dpsql.core.value_classes import replace
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.functions.signature import WITHOUT_A_ZONE
from dpsql.planner.group_keys.key_search import KeyPart, TooLong
from dpsql.planner.group_keys.public import public_keys, source_of
from dpsql.planner.rewrites.joins.join_periods import has_period_ids
from dpsql.planner.rewrites.rewrite_context import RewriteContext

KEY_KINDS = frozenset(
    {Kind.BOOLEAN, Kind.INTEGER, Kind.DECIMAL, Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP, Kind.UUID, Kind.TIME}
)
"""What can be a key, and be listed."""


def add_group_keys(root: Node, ctx: RewriteContext) -> Node:
    """Give every release its public key lists, or the component that decides on private keys (partition selection).

    Raises Rejected DP301 for columns that cannot be a key, or whose groups are one unit's each, DP302 for more public
    keys than may be released.
    """
    total = 0

    def change(node: Release) -> Node:
        nonlocal total
        found = _with_keys(node, total, ctx)
        sources = key_sources(found)
        if sources:
            total += _size(sources)
        return found

    return transform(root, Release, change)


def _size(sources: Sequence[KeySource]) -> int:
    """The number of combinations. No list may be written out before it is known to be short enough."""
    return prod(max(1, len(source.keys)) for source in sources)


def _too_many(items: Sequence[Item], sources: Sequence[KeySource], others: int, ctx: RewriteContext) -> Rejected:
    several = len(sources) > 1 and all(len(s.keys) for s in sources)
    factors = " × ".join(f"{', '.join(items[at].column.name for at in s.positions)} {len(s.keys):,}" for s in sources)
    return reject(
        "DP302",
        f"{_size(sources) + others:,} groups are possible"
        f"{' over all sets of groups of the query' if others else ''}; "
        f"at most {ctx.analysis.max_keys:,} are released",
        span=_place(items), label=factors if several else "",
        help=["group by fewer or coarser columns, or restrict them in WHERE", *_by_threshold(ctx)],
    )  # fmt: skip


def _by_threshold(ctx: RewriteContext) -> list[str]:
    """What the custodian can do about a list that is too long."""
    if ctx.analysis.policy.privacy.accountant == "pure_dp":
        return ["custodian: defaults.max_keys"]
    return [
        "custodian: defaults.max_keys; or  defaults: {private_keys: auto}  shows groups of enough units instead, and "
        "needs a δ"
    ]


def _place(items: Sequence[Item]) -> Span | None:
    return items[0].column.span or items[0].expr.span


def _listed(node: Release, others: int, ctx: RewriteContext) -> Release:
    """The release with its public keys, if there are lists that are short enough. others: groups of other releases."""
    keyed = keyed_by(node)
    try:
        parts = public_keys([i.expr for i in keyed.items], keyed.input, ctx)
    except TooLong as long:
        if not _long_lists_give_way(ctx.analysis.policy):
            raise reject(
                "DP302", f"{long.table} has more than {ctx.analysis.max_keys:,} keys", span=_place(keyed.items),
                help=["group by a coarser column, or restrict it in WHERE", *_by_threshold(ctx)],
            ) from None  # fmt: skip
        return replace(node, input=_within_lists(keyed, ctx))
    if parts is None:
        return node
    facts = derive_once(keyed.input, ctx.analysis).fact
    sources = tuple(source_of(p, origin_of_keys([keyed.items[at] for at in p.positions], p, facts)) for p in parts)
    if _size(sources) + others <= ctx.analysis.max_keys:
        return replace(node, input=replace(keyed, sources=sources))
    if not _long_lists_give_way(ctx.analysis.policy):
        raise _too_many(keyed.items, sources, others, ctx)
    return replace(node, input=_within_lists(keyed, ctx))


def _with_keys(node: Release, others: int, ctx: RewriteContext) -> Release:
    assert isinstance(node.input, GroupKeys)
    facts = derive_once(node.input.input, ctx.analysis).fact
    items = node.input.items
    for item in items:
        _check_kind(item, facts, ctx)
    if not items:
        return replace(node, input=replace(node.input, sources=()))
    node = _listed(node, others, ctx)
    if key_sources(node) is not None:
        return node
    single = _single_unit_keys(items, facts, ctx.analysis)
    if single:
        whom = facts.units[0] if facts.ids else "row"
        names = ", ".join(i.column.name for i in single)
        advice = ["group by something that many share"]
        if facts.ids:
            own = min(
                (c.hint.column for uid in facts.ids if (c := facts.columns.get(uid)) and c.hint), default="the id"
            )
            advice.append(f"or, below another aggregate, group by the id as well:  GROUP BY {own}, {names}")
        raise reject(
            "DP301", f"each group of {names} belongs to one {whom}: none could be shown",
            span=single[0].expr.span or single[0].column.span, help=advice,
        )  # fmt: skip
    if ctx.shown is not None:
        return replace(node, input=replace(keyed_by(node), sources=(ctx.shown,)))
    # Private keys: the number of units per key decides, and is a component like any other (shared if it is COUNT(*)).
    deciding = RowCount() if not facts.ids or facts.one_row_per_id else UnitCount()
    components = node.components if deciding in node.components else (*node.components, deciding)
    return replace(node, components=components, threshold=components.index(deciding), min_units=ctx.limits.min_units)


def _check_kind(item: Item, facts: Facts, ctx: RewriteContext) -> None:
    kind = facts.value(item.expr).type.kind
    if kind not in KEY_KINDS:
        advice = {
            Kind.DOUBLE: as_whole(item.expr, facts),
            Kind.TIMESTAMPTZ: WITHOUT_A_ZONE,
        }.get(kind, "group by a number, text, date or boolean")
        listed = [f"or, custodian: declare  domain: […]  for {item.column.name}"] if kind is Kind.DOUBLE else []
        raise reject(
            "DP301", f"{item.column.name} cannot be a group key: it is {item.column.type}",
            span=item.expr.span or item.column.span, help=[advice, *(listed if isinstance(item.expr, Column) else [])],
        )  # fmt: skip
    if facts.ids and columns_of(item.expr) & (facts.ids | frozenset(_ids_of_periods(facts, ctx))):
        raise reject(
            "DP301",
            f"{item.column.name} is {'' if isinstance(item.expr, Column) else 'made from '}the id of the privacy unit: "
            f"one group per {facts.units[0]} would show everybody",
            span=item.expr.span or item.column.span, help=["group by something that many share"],
        )  # fmt: skip


def _ids_of_periods(facts: Facts, ctx: RewriteContext) -> Iterator[int]:
    """Where the unit is an id in one period, the columns with the id: a group of it would show somebody, too."""
    for uid, known in facts.columns.items() if has_period_ids(ctx.analysis.policy) else ():
        if (
            known.hint is not None
            and known.hint.table
            and known.hint.column == ctx.analysis.table(known.hint.table).per
        ):
            yield uid


def as_whole(expr: Expr, facts: Facts) -> str:
    """How a key that is a DOUBLE becomes a whole number."""

    def floored(e: Expr) -> Expr:
        match e:
            case Call(function="div", args=args) if all(facts.value(a).type.kind is Kind.INTEGER for a in args):
                return replace(e, function="intdiv")
            case _:
                return e

    divided = transform_expr(expr, floored)
    if divided is not expr and facts.value(divided).type.kind is Kind.INTEGER:
        return f"divide by whole numbers:  {expression(divided)}, or use CASE"
    text = expression(expr)
    is_whole = re.fullmatch(r"(floor|ceil|round)\([^()]*\)( [*+-] \d+)*", text) is not None
    return f"round it to whole numbers:  CAST({text if is_whole else f'floor({text})'} AS INTEGER), or use CASE"


def origin_of_keys(items: Sequence[Item], part: KeyPart, facts: Facts) -> str:
    """Where keys come from, for EXPLAIN."""
    names = ", ".join(i.column.name for i in items)
    if part.tables == ("VALUES",):
        return f"values of {names}"
    if len(part.tables) == 1:
        return ", ".join(f"{part.tables[0]}.{i.column.name}" for i in items)
    if part.tables:
        return f"{names} of {' ⋈ '.join(part.tables)}"
    if part.listed:
        return f"conditions on {names}"
    if len(items) == 1 and isinstance(items[0].expr, Column):
        hint = facts.columns[items[0].expr.uid].hint
        if hint is not None and hint.table:
            return f"domain of {hint.table}.{hint.column}"
    return f"image of {names}"


def _single_unit_keys(items: Sequence[Item], facts: Facts, ctx: Context) -> tuple[Item, ...]:
    """The group columns that make every group one unit's own, so that selection would never show one; empty if none do.

    A guess for the analyst's sake: such a query, as `GROUP BY order_id`, is safe, but costs budget and answers nothing.

    Two sets of columns do: a key of the relation (one row), and columns of one scan that find the unit of its rows: a
    declared key of the table, or the first hop of its path to the unit. And whatever the policy says is a unit's own.
    """
    bare = {i.expr.uid: i for i in items if isinstance(i.expr, Column)}
    found: dict[tuple[str, int], dict[str, int]] = {}
    for uid in bare:
        known = facts.columns[uid]
        if known.hint is not None and known.hint.table and not known.hint.public and not known.value.nullable:
            found.setdefault((known.hint.table, known.hint.scan), {})[known.hint.column.casefold()] = uid
    for (name, _), columns in found.items():
        table = ctx.table(name)
        if facts.ids and facts.units != (table.unit,):
            continue
        owners = [key.columns for key in table.keys] if facts.ids else []
        owners += [(own,) for own in table.belongs_to_unit]
        match table.protection:
            case PathUnit(path=path):
                owners.append(path[0].columns)
            case IdUnit(column=column):
                owners.append((table.per or column,))
        if table.copied is not None and table.copied.hop is not None:
            owners.append(table.copied.hop.columns)
        for owner in owners:
            if {c.casefold() for c in owner} <= columns.keys():
                return tuple(bare[columns[c.casefold()]] for c in owner)
    return tuple(bare.values()) if bare and facts.is_key(frozenset(bare)) else ()


def _long_lists_give_way(policy: Policy) -> bool:
    """Whether a list that is too long makes private keys; without a δ there are none."""
    return policy.defaults.private_keys == "auto" and policy.privacy.accountant != "pure_dp"


def _within_lists(keyed: GroupKeys, ctx: RewriteContext) -> GroupKeys:
    """The node with private keys, each in its list."""
    return replace(keyed, sources=None, within=tuple(_lists(keyed, ctx)))


def _lists(keyed: GroupKeys, ctx: RewriteContext) -> Iterator[KeySource]:
    for at, item in enumerate(keyed.items):
        try:
            parts = public_keys([item.expr], keyed.input, ctx)
        except TooLong as long:  # a column of a public table that the rows are joined with: they have no other values
            yield KeySource((at,), (), long.table, covers=True)
            continue
        for part in parts or ():
            yield source_of(replace(part, positions=(at,), covers=part.covers or part.unread), item.column.name)
