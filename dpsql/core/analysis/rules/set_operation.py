"""UNION, INTERSECT and EXCEPT, with and without ALL.

Claim. s: rows of a branch that differ, per unit.
    - ROW: UNION [ALL] s_L + s_R; INTERSECT and EXCEPT [ALL] s_L + s_R [tight]; a public branch adds nothing.
    - ID: still only that id's rows differ, if every private branch carries the bare id of the same unit at the same
      position, and a public branch is the right one of EXCEPT, or one of INTERSECT.
    - Replaced rows stay replaced one by one in UNION ALL, and add up; so do public sizes.
Why: the multiplicity of a row in the result is a function of its multiplicities in the branches that moves by at most
    the sum of their moves (a + b, min(a, b), max(0, a - b), and the same with 1 for any positive number). Rows that are
    equal carry the same id, so that the rows of an id come from that id's rows alone.
When it would be false: ids at different positions (a row of one id would cancel another id's); public rows beside an
    id's own (they stay when the id goes, and its limits would count them in one database only).
Proved by: Ops.setop_stable, Ops.setop_disjoint, Near.union_all_stable, Freq.setop_both, Sound.derive_sound. Not
    proved: replaced rows, public sizes
Tested by: tests/deep/core/analysis/test_operators.py, tests/core/analysis/test_set_operation.py

Example:
    >>> facts("SELECT phone FROM calls UNION ALL SELECT phone FROM alarms")
    union all           stability calls=2 rows · stability alarms=1 row
    ├─ project phone    stability calls=2 rows
    │  └─ scan calls    stability calls=2 rows
    └─ project phone    stability alarms=1 row
       └─ scan alarms   stability alarms=1 row
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dpsql.core.analysis.facts import ColumnFact, Columns, Facts, Hint
from dpsql.core.analysis.rules.join_by_frequency import counted_by_rows, sums
from dpsql.core.ir.expressions import Cast, Column, Expr, columns_of
from dpsql.core.ir.nodes import SetColumn, SetKind, SetOperation
from dpsql.core.ir.types import Kind
from dpsql.core.numbers.cap import Cap, add, smaller
from dpsql.core.numbers.interval import Interval, hull
from dpsql.core.values.meaning import evaluate
from dpsql.core.values.value import MISSING, Domain, Value
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.words import with_article


def set_operation(node: SetOperation, left: Facts, right: Facts) -> Facts:
    """Facts of the combined rows. Raises Rejected DP220, DP230, DP301."""
    lists = [c.column for c in node.columns if c.column.type.kind is Kind.LIST]
    if lists and not (node.all and node.kind is SetKind.UNION):
        raise reject(
            "DP301", f"{lists[0].name} is {with_article(lists[0].type)}, which cannot be compared",
            span=lists[0].span or node.span,
            label="of equal lists, which one stays could depend on the order of rows",
            help=["use UNION ALL, or leave the list out"],
        )  # fmt: skip
    columns = {c.column.uid: _column(node.kind, c, left, right) for c in node.columns}
    rule = f"{node.kind.value}{' all' if node.all else ''}"
    keys = frozenset() if node.all else frozenset({frozenset(columns)})
    found = Facts(columns, keys=keys, frequency=_frequency(node, left, right), rule=rule)
    if left.public and right.public:
        return found
    if not left.public and not right.public and left.replaced != right.replaced:
        raise reject(
            "DP230", "the two sides change in different ways between neighbouring databases", span=node.span,
            label="rows of one are added or removed, those of the other are replaced",
            help=["custodian: give all units that are queried together the same `neighbours`"],
        )  # fmt: skip
    found = replace(found, replaced=left.replaced or right.replaced)
    ids = _ids(node, left, right)
    if ids:
        stability = right.stability if left.public else left.stability
        exact = frozenset(uid for uid in ids if columns[uid].value.type.one_form)  # as in a scan
        return replace(found, stability=stability, ids=ids, by_id=exact)
    if (left.ids or left.hops or right.ids or right.hops) and not (left.stability and right.stability):
        raise _id_lost(node)
    if left.units == right.units and (left.ids or right.ids):
        raise _id_lost(node)
    left, right = counted_by_rows(left), counted_by_rows(right)
    found = replace(found, stability=sums(left.stability, right.stability))
    if node.kind is SetKind.UNION and node.all:
        replaced = _replaced_rows(left), _replaced_rows(right)
        if replaced[0] is not None and replaced[1] is not None:
            size = None if left.size is None or right.size is None else left.size + right.size
            return replace(found, replaced_rows=sums(replaced[0], replaced[1]), size=size)
    return found


def _replaced_rows(side: Facts) -> Mapping[str, Cap] | None:
    """Replaced rows of a branch of UNION ALL; of public rows none is."""
    return {} if side.public else side.replaced_rows


def _ids(node: SetOperation, left: Facts, right: Facts) -> Columns:
    """Columns that hold the id on every side that is private; empty if the rows of an id would not be its own."""
    one_public = left.public or right.public
    if one_public and node.kind is SetKind.UNION:
        return frozenset()
    if node.kind is SetKind.EXCEPT and left.public:
        return frozenset()
    if not one_public and left.units != right.units:
        return frozenset()

    def holds(side: Facts, expr: Expr, column: Column) -> bool:
        """Bare, and not converted on its way out: a conversion may merge ids."""
        return side.public or (isinstance(expr, Column) and expr.uid in side.ids and expr.type == column.type)

    return frozenset(
        c.column.uid for c in node.columns if holds(left, c.left, c.column) and holds(right, c.right, c.column)
    )


def _id_lost(node: SetOperation) -> Rejected:
    what = node.kind.value.upper()
    return reject(
        "DP220", f"after this {what} it cannot be told whose the rows are", span=node.span,
        label="the privacy unit's id must stand at the same position on both sides",
        help=["select the id, bare, in both queries", "or aggregate each side, and combine the results"],
    )  # fmt: skip


def _column(kind: SetKind, c: SetColumn, left: Facts, right: Facts) -> ColumnFact:
    """EXCEPT gives rows of its left side, INTERSECT rows that both sides have."""
    a, b = left.value(c.left), right.value(c.right)
    of_a, of_b = evaluate(c.left, left.key_env).domain, evaluate(c.right, right.key_env).domain
    bounds_a, bounds_b = _bounds(c.left, left), _bounds(c.right, right)
    match kind:
        case SetKind.UNION:
            span, held = hull(a.interval, b.interval), hull(a.range, b.range)
            nullable, finite, domain = a.nullable or b.nullable, a.finite and b.finite, _domain(of_a, of_b)
            bounds = None if bounds_a is None or bounds_b is None else hull(bounds_a, bounds_b)
        case SetKind.EXCEPT:
            span, held, nullable, finite, domain, bounds = a.interval, a.range, a.nullable, a.finite, of_a, bounds_a
        case SetKind.INTERSECT:
            span, held = _smaller(a.interval, b.interval), _smaller(a.range, b.range)
            nullable, finite = a.nullable and b.nullable, a.finite or b.finite
            domain = of_b if of_a is None or (of_b is not None and of_b.size < of_a.size) else of_a
            bounds = bounds_b if bounds_a is None else bounds_a if bounds_b is None else _smaller(bounds_a, bounds_b)
    value = Value(c.column.type, span, held, nullable, finite, domain, MISSING)
    return ColumnFact(value, None if bounds is None else Hint("", c.column.name, False, c.column.uid, bounds))


def _smaller(a: Interval, b: Interval) -> Interval:
    """One of two intervals that hold the same values: the bounded one, or the shorter one."""
    if a.lo is None or a.hi is None:
        return b if b.bounded else a
    if b.lo is None or b.hi is None:
        return a
    return b if b.hi - b.lo < a.hi - a.lo else a


def _domain(a: Domain | None, b: Domain | None) -> Domain | None:
    if a is None or b is None:
        return None
    if a == b:
        return a
    return None


def _bounds(expr: Expr, side: Facts) -> Interval | None:
    """What the values of a side are known to lie in, or may be clipped to: another numeric type changes no bounds.

    For a computed side: what it is where its columns keep to their declared bounds. A suggestion, like every hint.
    """
    known = side.value(expr).interval
    if known.bounded or not expr.type.numeric:
        return known if known.bounded else None
    if isinstance(expr, Cast) and expr.arg.type.numeric:
        expr = expr.arg
    if isinstance(expr, Column):
        hint = side.columns[expr.uid].hint
        return None if hint is None else hint.bounds
    env = dict(side.env)
    for uid in columns_of(expr):
        hint = side.columns[uid].hint
        if hint is not None and hint.bounds is not None and env[uid].type.numeric:
            env[uid] = replace(env[uid], interval=hint.bounds, finite=True)
    declared = evaluate(expr, env).interval
    return declared if declared.bounded else None


def _frequency(node: SetOperation, left: Facts, right: Facts) -> dict[Columns, Cap]:
    """Rows add up in a union; the others only take rows away."""
    found: dict[Columns, Cap] = {}
    a, b = _renamed(node, left, 0), _renamed(node, right, 1)
    match node.kind:
        case SetKind.UNION:
            found = {known: add(a[known], b[known]) for known in a.keys() & b.keys()}
        case SetKind.INTERSECT:
            for known in a.keys() | b.keys():
                caps = [side[known] for side in (a, b) if known in side]
                found[known] = caps[0] if len(caps) == 1 else smaller(*caps)
        case SetKind.EXCEPT:
            found = a
    return found


def _renamed(node: SetOperation, side: Facts, at: int) -> dict[Columns, Cap]:
    """Frequencies of a side's bare columns under the names of the output."""
    names: dict[int, int] = {}
    for c in node.columns:
        expr = c.right if at else c.left
        if isinstance(expr, Column):
            names.setdefault(expr.uid, c.column.uid)
    known = dict(side.frequency)
    for key in side.keys:
        cap = side.most_rows(key)
        assert cap is not None
        known[key] = cap
    return {
        frozenset(names[uid] for uid in columns): cap
        for columns, cap in known.items()
        if all(uid in names for uid in columns)
    }
