"""Public lists of group keys, from wherever the query can know them without looking at private rows.

Declared domains, booleans, bounded integers and dates, columns of public tables and of lists in the query, joined and
filtered as the query does it; conditions that list or bound a column or an expression; functions of all these.

A list is a choice of keys and no fact about private data: one that is too short costs rows, and one that is too long
gives empty groups. So conditions shorten a list only where they hold for every row (`rows`). What cannot be
told while planning leaves it longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import prod

from dpsql.core.ir.components import KeySource
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Column, Expr, LiteralValue, columns_of
from dpsql.core.ir.nodes import Node, SetKind, SetOperation
from dpsql.core.values.domains import from_keys
from dpsql.core.values.key_lists import lazy_keys
from dpsql.core.values.value import Domain
from dpsql.functions.domains.made_domains import ends, united
from dpsql.planner.group_keys.key_search import KeyPart, KeySearch, TooLong
from dpsql.planner.group_keys.row_origins import Origin, Padding, RelationRows, rows_of
from dpsql.planner.rewrites.rewrite_context import RewriteContext

MOST_PADDINGS = 4
"""Most outer joins whose padded and other rows are searched one by one: each doubles the work."""


@dataclass(frozen=True, slots=True)
class _Finder:
    """Looks for keys, in one query."""

    ctx: RewriteContext

    def parts(self, exprs: Sequence[Expr], rows: RelationRows) -> list[KeyPart] | None:
        """Lists that together hold the keys of all expressions; None if one has none. Raises TooLong."""
        unusable: frozenset[int] = frozenset()
        first: TooLong | None = None
        while True:
            try:
                found = self._cases(exprs, rows, unusable)
            except TooLong as long:
                unusable |= {long.scan}
                first = first or long
                continue
            if found is None and first is not None:
                raise first
            return found

    def _cases(self, exprs: Sequence[Expr], rows: RelationRows, unusable: frozenset[int]) -> list[KeyPart] | None:
        """Rows that an outer join padded have other keys than those that it did not: look for each kind by itself."""
        paddings = _distinguished(exprs, rows)
        if len(paddings) > MOST_PADDINGS:
            return None
        found: list[list[KeyPart]] = []
        for active in chain.from_iterable(combinations(paddings, n) for n in range(len(paddings) + 1)):
            null_columns: Padding = frozenset().union(*active)
            if any(p < null_columns and p not in active for p in paddings):
                continue  # the same rows as where it is active, too
            case = KeySearch(rows, frozenset(active), frozenset(paddings), unusable, self.ctx, self.domain)
            parts = case.parts(exprs)
            if parts is None:
                return None
            if parts or not exprs:
                found.append(parts)
        if not found:  # no row satisfies the conditions: any list will do
            return [KeyPart((i,), (), None, True, ()) for i in range(len(exprs))]
        return _merged(found, self.ctx.analysis.max_keys)

    def domain(self, rows: RelationRows, origin: Origin) -> tuple[Domain | None, bool]:
        """Keys of a column that a set operation or a padded expression makes; whether they are yet to be read."""
        computed = rows.computed.get(origin.column.uid)
        if computed is not None:
            return self._of(computed.expr, computed.rows)
        if not isinstance(origin.source, SetOperation):
            return origin.value.domain, False
        node = origin.source
        column = next(c for c in node.columns if c.column.uid == origin.column.uid)
        left = self._of_node(column.left, node.left)
        if node.kind is SetKind.EXCEPT:
            return left
        right = self._of_node(column.right, node.right)
        if node.kind is SetKind.UNION:
            either = None if left[0] is None or right[0] is None else united(left[0], right[0])
            return either, (left[1] or right[1]) and all(d is not None or unread for d, unread in (left, right))
        known = [d for d, _ in (left, right) if d is not None]
        return min(known, key=lambda d: d.size, default=None), not known and (left[1] or right[1])

    def _of_node(self, expr: Expr, node: Node) -> tuple[Domain | None, bool]:
        rows = rows_of(node, self.ctx.analysis)
        return self._of(rows.resolve(expr), rows)

    def _of(self, expr: Expr, rows: RelationRows) -> tuple[Domain | None, bool]:
        try:
            parts = self.parts([expr], rows)
        except TooLong:
            return None, False
        if parts is None:
            return None, False
        (part,) = parts
        if part.unread:
            return None, True
        return (part.domain if part.domain is not None else from_keys(key[0] for key in part.keys)), False


def public_keys(exprs: Sequence[Expr], node: Node, ctx: RewriteContext) -> list[KeyPart] | None:
    """Public lists that together hold the keys of all expressions over the rows of `node`, by position.

    None if one of them has no public keys. Raises TooLong where a public table has more keys than may be released.
    """
    rows = rows_of(node, ctx.analysis)
    return _Finder(ctx).parts([rows.resolve(e) for e in exprs], rows)


def source_of(part: KeyPart, origin: str) -> KeySource:
    """A part as the plan holds it."""
    if part.unread or part.domain is None:
        return KeySource(part.positions, () if part.unread else part.keys, origin, part.covers, closed=part.closed)
    return KeySource(part.positions, lazy_keys(part.domain), origin, part.covers, ends(part.domain), part.closed)


def _distinguished(exprs: Sequence[Expr], rows: RelationRows) -> list[Padding]:
    """The paddings that can make a column of the keys NULL, or one that is equal to such a column."""
    read = {uid for e in exprs for uid in columns_of(e)}
    equal = [
        columns_of(t) for term in rows.terms if not term.unless for t in conjuncts(term.condition) if _plain_equality(t)
    ]
    while True:
        more = {uid for pair in equal if pair & read for uid in pair} - read
        if not more:
            return sorted((p for p in rows.paddings if p & read), key=sorted)
        read |= more


def _plain_equality(term: Expr) -> bool:
    args = getattr(term, "args", ())
    return getattr(term, "function", "") == "eq" and all(isinstance(a, Column) for a in args)


def _merged(cases: Sequence[list[KeyPart]], most: int) -> list[KeyPart] | None:
    """The keys of all cases, position by position where every case lists them so."""
    if len(cases) == 1:
        return cases[0]
    blocks: list[set[int]] = []
    for part in chain.from_iterable(cases):
        block = set(part.positions)
        for other in [b for b in blocks if b & block]:
            blocks.remove(other)
            block |= other
        blocks.append(block)
    found = []
    for block in blocks:
        positions = tuple(sorted(block))
        options = [[p for p in case if p.positions[0] in block] for case in cases]
        merged = _one(positions, options, most)
        if merged is None:
            return None
        found.append(merged)
    return found


def _one(positions: tuple[int, ...], options: Sequence[list[KeyPart]], most: int) -> KeyPart | None:
    parts = [p for option in options for p in option]
    unread, covers = any(p.unread for p in parts), all(p.covers for p in parts)
    tables = tuple(dict.fromkeys(t for p in parts for t in p.tables))
    if unread:
        return KeyPart(positions, (), None, covers, tables, unread=True)
    if len(positions) == 1:
        domain: Domain | None = None
        for p in parts:
            keys = p.domain if p.domain is not None else from_keys(key[0] for key in p.keys)
            domain = keys if domain is None else united(domain, keys)
            if domain is None:
                return None
        return KeyPart(positions, (), domain, covers, tables, closed=all(p.covers or p.closed for p in parts))
    tuples: dict[tuple[LiteralValue, ...], None] = {}
    for option in options:
        if prod(p.size for p in option) > most:
            return None
        places = [at for p in option for at in p.positions]
        for choice in product(*(p.keys if p.domain is None else zip(p.domain.keys()) for p in option)):
            values = dict(zip(places, chain.from_iterable(choice), strict=True))
            tuples[tuple(values[at] for at in positions)] = None
    return KeyPart(positions, tuple(tuples), None, covers, tables)
