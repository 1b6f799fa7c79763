"""Whether a list of keys is all that an expression can be, whatever a row holds: then no row is left out of its groups.

For what readers are told, and for nothing else: rows outside of a list are dropped all the same. What a policy lists or
bounds is not asked here, for rows may break it; only types, functions and the query's own conditions count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dpsql.core.ir.expressions import Call, Cast, Column, Expr, LiteralValue, columns_of
from dpsql.core.ir.types import Kind
from dpsql.core.value_classes import replace
from dpsql.core.values.domains import ENUMERABLE
from dpsql.core.values.value import Domain, Value
from dpsql.diagnostics.errors import Rejected
from dpsql.functions.domains.made_domains import whole
from dpsql.functions.expression_values import evaluate
from dpsql.planner.group_keys.compute import Condition, Unknown, computation
from dpsql.planner.group_keys.narrow import listed, narrowed

if TYPE_CHECKING:
    from dpsql.planner.group_keys.key_search import KeyPart


def told(part: KeyPart, items: Sequence[Expr], env: Mapping[int, Value], terms: Sequence[Expr]) -> KeyPart:
    """A part that says whether a row can have another key. Of several expressions together nothing is said.

    items: all expressions, of which a part has the keys of some. env, terms: as of `closed`.
    """
    if part.covers or part.unread or len(part.positions) != 1 or part.size > ENUMERABLE:
        return part
    keys = list(part.domain.keys()) if part.domain is not None else [key for (key,) in part.keys]
    return replace(part, closed=closed(items[part.positions[0]], keys, env, terms))


def closed(item: Expr, keys: Sequence[LiteralValue], env: Mapping[int, Value], terms: Sequence[Expr]) -> bool:
    """Whether the value of an expression is one of these in every row that the conditions let through.

    env: what holds for its columns, without the lists of the policy. False where that is not known.
    """
    if len(keys) > ENUMERABLE:
        return False
    possible = _possible(item, {uid: _free(uid, item, env[uid], terms) for uid in columns_of(item) if uid in env})
    return possible is not None and set(possible) <= set(keys)


def _free(uid: int, item: Expr, value: Value, terms: Sequence[Expr]) -> Value:
    """What a column can be by its type and by the conditions alone."""
    own = [t for t in terms if uid in columns_of(t)]
    tests = [Condition(t, {uid: value}, frozenset({uid})) for t in own]
    nullable = value.nullable and all(t.may_hold({uid: None}) for t in tests)
    value = replace(value, domain=None, nullable=nullable)
    column = next((e for e in _columns(item) if e.uid == uid), None)
    if column is not None and column.type.kind is Kind.BOOLEAN:
        held = [k for k in (False, True) if all(t.may_hold({uid: k}) for t in tests)]
        return replace(value, domain=Domain(tuple(held), null=nullable))
    domain = None if column is None else narrowed(column, value, None, own).domain
    if domain is None:
        domain = whole(value, ENUMERABLE)
    return replace(value, domain=domain if domain is None or nullable else replace(domain, null=False))


def _possible(item: Expr, env: Mapping[int, Value]) -> set[LiteralValue] | None:
    """All that an expression can be; None if they are not few."""
    match item:
        case Call(function="case", args=args):
            # Of a column below a condition that lists it: CASE WHEN x IN ('a', 'b') THEN x ELSE 'rest' END.
            found: set[LiteralValue] = set()
            for condition, then in zip(args[0:-1:2], args[1::2], strict=False):
                within = listed(condition, then) if isinstance(then, Column) else None
                part = set(within.keys()) if within is not None else _possible(then, env)
                if part is None:
                    return None
                found |= part
            last = _possible(args[-1], env) if len(args) % 2 else {None}
            return None if last is None else found | last
        case Call(function="is_null" | "is_not_null" as name, args=(Column(uid=uid),)) if not env[uid].nullable:
            return {name == "is_not_null"}
        case _:
            if (image := _image(item, env)) is not None:
                return image
            try:
                value = evaluate(item, env)
            except (Rejected, KeyError):
                return None
            domain: Domain | None = value.domain
            if domain is None and not isinstance(item, Column):
                domain = whole(value, ENUMERABLE)
            if domain is None or domain.size > ENUMERABLE:
                return None
            return {*domain.values, *([None] if domain.null and value.nullable else [])}


def _image(item: Expr, env: Mapping[int, Value]) -> set[LiteralValue] | None:
    """What an expression of one column gives for each of its values; None if they are not few."""
    if len(env) != 1 or isinstance(item, Column):
        return None
    ((uid, value),) = env.items()
    if value.domain is None or value.domain.size > ENUMERABLE:
        return None
    try:
        compute = computation(item, env)
        return {compute({uid: key}) for key in [*value.domain.keys()]}
    except Unknown:
        return None


def _columns(expr: Expr) -> list[Column]:
    match expr:
        case Column():
            return [expr]
        case Call(args=args):
            return [c for a in args for c in _columns(a)]
        case Cast(arg=arg):
            return _columns(arg)
        case _:
            return []
