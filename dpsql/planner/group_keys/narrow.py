"""Which values of a column, or of an expression, a query's own conditions let through: lists, and ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, floor

from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, children, columns_of, walk
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.numbers.interval import Interval
from dpsql.core.values.domains import ENUMERABLE, from_keys
from dpsql.core.values.value import Domain, Value
from dpsql.diagnostics.errors import Rejected
from dpsql.functions.cast import converted
from dpsql.functions.expression_values import evaluate
from dpsql.planner.group_keys.compute import Condition
from dpsql.planner.group_keys.ranges import RANGED, is_number, ranged


@dataclass(frozen=True, slots=True)
class Narrowed:
    """The keys of a column. `covers`: they are all that the conditions let through. `declared`: the policy has them."""

    domain: Domain | None
    covers: bool = False
    declared: bool = False


def narrowed(subject: Column, value: Value, bounds: Interval | None, terms: Sequence[Expr]) -> Narrowed:
    """The keys of a column: its own, shortened by the conditions on it; or those that they list.

    bounds: what the policy says of a column that has no keys, e.g. because it is bounded at one end only.
    """
    own = [t for t in terms if subject.uid in columns_of(t)]
    domain, declared = value.domain, value.domain is not None
    if domain is None or domain.size > ENUMERABLE:
        lists = [found for t in own if (found := listed(t, subject)) is not None]
        if lists:
            domain = min(lists, key=lambda d: d.size)
        elif subject.type.kind in RANGED:
            domain = ranged(subject, value, bounds, own)
    env = {subject.uid: replace(value, domain=None)}
    tests = [Condition(t, env, frozenset(env)) for t in own]
    if domain is not None and domain.size <= ENUMERABLE and own:
        domain = from_keys(k for k in list(domain.keys()) if all(t.may_hold({subject.uid: k}) for t in tests))
    elif domain is not None and domain.null:
        domain = replace(domain, null=all(t.may_hold({subject.uid: None}) for t in tests))
    covers = not declared and domain is not None and bounds is None
    return Narrowed(domain, covers, declared)


def listed(term: Expr, subject: Expr) -> Domain | None:
    """The values that `x IN (…)`, `x = …`, `x IS NULL` and their combinations leave to x; None if they list none."""
    match term:
        case Call(function="and", args=args):
            found = [d for a in args if (d := listed(a, subject)) is not None]
            return min(found, key=lambda d: d.size) if found else None
        case Call(function="or", args=args):
            parts = [listed(a, subject) for a in args]
            if any(d is None for d in parts):
                return None
            return from_keys(chain.from_iterable(d.keys() for d in parts if d is not None))
        case Call(function="is_null", args=(x,)) if x == subject:
            return Domain((), null=True)
        case Call(function="in", args=(x, *rest)) if x == subject:
            return _constants(rest, subject.type)
        case Call(function="eq" | "is_not_distinct_from" as name, args=(a, b)) if subject in (a, b):
            found_one = _constants([b if a == subject else a], subject.type)
            if name == "is_not_distinct_from" and found_one is not None and not found_one.values:
                return Domain((), null=True)
            return found_one
    return None


def _constants(items: Sequence[Expr], target: SqlType) -> Domain | None:
    """Literals as values of the column's type; one that the type cannot hold equals no value of the column."""
    found = []
    for item in items:
        if not isinstance(item, Literal):
            return None
        value = item.value
        if value is None:
            continue
        if item.type.kind is not target.kind or target.kind is Kind.DECIMAL:
            if not is_number(value) or target.kind not in (Kind.INTEGER, Kind.DECIMAL):
                return None
            stored = converted(value, target)
            if stored is None or stored != value:
                continue
            value = stored
        found.append(value)
    return Domain(tuple(dict.fromkeys(found)))


# --- conditions on expressions --------------------------------------------------------------------------------------


def subjects(terms: Sequence[Expr], items: Sequence[Expr]) -> list[Expr]:
    """Expressions in `items` that a condition compares with constants, largest first: they can be keys by themselves.

    Each condition must be a list or a range for it; `substring(phone, 1, 2) IN ('13', '31')`.
    """
    compared = [e for t in terms for e in _compared(t)]
    found = [e for item in items for e in _parts(item) if not isinstance(e, Column) and e in compared]
    unique: list[Expr] = []
    for e in found:
        if e not in unique:
            unique.append(e)
    return sorted(unique, key=lambda e: -sum(1 for _ in _parts(e)))


def _parts(expr: Expr) -> list[Expr]:
    if isinstance(expr, Literal):
        return []
    return [expr, *(p for child in children(expr) for p in _parts(child))]


def _compared(term: Expr) -> list[Expr]:
    match term:
        case Call(function="and" | "or", args=args):
            return [e for a in args for e in _compared(a)]
        case Call(function="in" | "eq" | "ge" | "gt" | "le" | "lt" | "is_not_distinct_from", args=(a, b, *_)):
            return [e for e in (a, b) if isinstance(e, (Call, Cast)) and columns_of(e)]
    return []


# --- bins of numbers with declared bounds: FLOOR(cost / 10) of a cost between 0 and 100 is one of 0, 1 … 10. Bounds are
# what the policy says of a column, and no fact about its rows: what lies beyond them is in no listed bin. ------------

WHOLE = frozenset({"floor", "ceil", "trunc", "round"})
"""Functions whose DOUBLEs are whole numbers."""


def bins(items: Sequence[Expr]) -> list[Expr]:
    """Expressions in `items` that are whole numbers by what they compute, typed DOUBLE, and read columns."""
    found = (e for item in items for e in walk(item) if isinstance(e, Call) and e.function in WHOLE)
    return list(dict.fromkeys(e for e in found if len(e.args) == 1 and e.type.kind is Kind.DOUBLE and columns_of(e)))


def bins_between(expr: Expr, bounded: Mapping[int, Value]) -> Domain | None:
    """All whole numbers that such an expression can be within the bounds of its columns; None if they are too many."""
    try:
        value = evaluate(expr, bounded)
    except Rejected:
        return None
    low, high = value.interval.lo, value.interval.hi
    if low is None or high is None or high - low > ENUMERABLE:
        return None
    return Domain(tuple(map(float, range(ceil(low), floor(high) + 1))), value.nullable)


# --- columns that are equal are one variable: what is known of one of them is known of all ----------------------------

_JOINED = frozenset({Kind.INTEGER, Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP, Kind.BOOLEAN, Kind.DECIMAL, Kind.UUID})


def variables(terms: Iterable[Expr]) -> dict[int, int]:
    """Column → the variable it shares with the columns that a condition equates it with; only of such columns."""
    root: dict[int, int] = {}

    def find(uid: int) -> int:
        while root.setdefault(uid, uid) != uid:
            uid = root[uid]
        return uid

    for term in terms:
        match term:
            case Call(function="eq", args=(Column(type=s) as a, Column(type=t) as b)) if s.kind in _JOINED and (
                s == t or s.kind is t.kind is Kind.INTEGER
            ):
                one, other = sorted((find(a.uid), find(b.uid)))
                root[other] = one
    return {uid: find(uid) for uid in root}


def is_trivial(term: Expr) -> bool:
    """Whether the term compares a column with itself."""
    return (
        isinstance(term, Call)
        and term.function == "eq"
        and isinstance(term.args[0], Column)
        and (term.args[0] == term.args[1])
    )


def replaced(expr: Expr, old: Expr, new: Column) -> Expr:
    """The expression with every occurrence of a part replaced, outermost first."""
    return transform_expr(expr, lambda e: new if e == old else e)
