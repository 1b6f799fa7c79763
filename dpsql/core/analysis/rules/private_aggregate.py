"""Aggregates over private rows that stay private: totals per unit, and groups below another aggregate. DISTINCT.

Claim:
    - ROW: GROUP BY with aggregates 2k, without keys at most 2 [tight]; DISTINCT k [tight].
    - ID, with the bare id among the keys: still only that id's rows differ.
    - Afterwards the keys are unique, NULL counted as a value.
    - Of a row that looks groups up in a LEFT join by keys alone, at most 2k partners and padded rows change. [tight]
Why: a row that differs changes its group's row into another one: one leaves, one enters. Of DISTINCT the row is there
    or not. Groups that contain the id are made of that id's rows alone. A row that looks groups up sees one leave and
    another enter; the padded row that stands for none comes or goes only where one of the two is missing.
When it would be false:
    - an aggregate whose value depends on the order of rows or on how threads divide them (a sum of DOUBLEs or of their
      squares; the emitted sums are of integers), or that can fail (a sum that overflows);
    - a group without the id: it is made of everybody's rows, and is a release;
    - groups that are looked up by an aggregate's value: the one that leaves and the one that enters have different
      values there, so that other rows look each of them up.
Proved by: Ops.group_stable, Ops.total_stable, Ops.distinct_stable, Rules.flips_swap, Freq.groups_once,
    Sound.derive_sound. Not proved: what is known of the values
Tested by: tests/deep/core/analysis/test_operators.py, tests/core/analysis/test_aggregate.py

Example:
    >>> facts("SELECT AVG(n) FROM (SELECT phone, COUNT(*) AS n FROM calls GROUP BY phone)", "keys", rewritten=True)
    release AVG(n)          public · one row
    └─ aggregate by phone   stability calls=4 rows · key (phone)
       └─ scan calls        stability calls=2 rows
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

from dpsql.core.analysis.context import Derivation
from dpsql.core.analysis.facts import ColumnFact, Facts, Hint
from dpsql.core.analysis.policy_limits import policy_limits
from dpsql.core.analysis.rules.project import with_columns
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Aggregate, AggregateCall, Node
from dpsql.core.ir.short_text import identifier
from dpsql.core.ir.types import HUGEINT, Kind
from dpsql.core.numbers.cap import Cap, Finite, finite, smaller, times
from dpsql.core.numbers.doubles import loosened, monotone, rounded
from dpsql.core.numbers.interval import Exact, Interval, interval, mul, point, quotient
from dpsql.core.value_classes import replace
from dpsql.core.values.meaning import evaluate
from dpsql.core.values.value import Value, type_range
from dpsql.diagnostics.diagnostic import Reason
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.words import with_article

WIDEST = Fraction(2**64)
"""Largest magnitude of a summed integer (of a DECIMAL's units): 2⁶³ of them still fit the 128 bits of the sum."""

VARIANCES = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})


def aggregate(node: Aggregate, below: Facts, ctx: Derivation) -> Facts:
    """Facts of the groups. Raises Rejected DP110 where rows of different owners would be combined; DP101, DP201, …"""
    for key in node.keys:
        if key.column.type.kind in (Kind.LIST, Kind.BLOB):
            raise reject(
                "DP301", f"{key.column.name} is {with_article(key.column.type)}, which cannot be grouped by",
                span=key.column.span,
                help=["group by a number, text, date or boolean"],
            )  # fmt: skip
    grouped = with_columns(node.keys, below)
    group = frozenset(k.column.uid for k in node.keys)
    if (below.ids or below.hops) and not grouped.ids:
        raise mixed_with_private_rows(node)
    per_group = _most_rows(node, below)
    limit = _enforced(node.input, ctx) if grouped.ids else None
    columns = dict(grouped.columns)
    for call in node.calls:
        columns[call.column.uid] = _called(call, node, below, per_group, limit)
    frequency = dict(grouped.frequency)
    keys = {group}
    by_id = grouped.by_id
    if grouped.ids and group <= grouped.by_id:
        keys |= {frozenset({uid}) for uid in grouped.ids}  # the other keys are functions of the id
        by_id = frozenset(columns)
    found = Facts(
        columns, stability=below.stability, ids=grouped.ids, keys=frozenset(keys), frequency=frequency, by_id=by_id,
        hops=grouped.hops, promised_keys=grouped.promised_keys, replaced=below.replaced,
        rule="distinct" if not node.calls else "groups that stay private",
    )  # fmt: skip
    if grouped.ids:
        return replace(found, rule="distinct" if not node.calls else "totals per unit")
    if not node.calls:
        return found
    two = finite(2)
    stability = {unit: times(two, cap) for unit, cap in below.stability.items()}
    if not node.keys:
        # One row; but of rows that may be nobody's nothing is claimed.
        stability = {u: smaller(two, cap) if isinstance(cap, Finite) else cap for u, cap in stability.items()}
        return replace(found, stability=stability)
    return replace(found, stability=stability, padding={group: stability})


def mixed_with_private_rows(node: Aggregate) -> Rejected:
    """Refusal of everybody's aggregate beside private rows; of values that IN or EXISTS looks up: why they are that."""
    where = node.span or next((c.span for c in node.calls), None)
    if node.inner and not node.calls:
        return reject(
            "DP230", "a subquery below OR, in CASE or in SELECT looks rows up by another column than the privacy "
            "unit's id", span=where, label="one person's row would decide about other people's rows",
            help=[
                "compare the privacy unit's id in it",
                "or ask without the OR: then a promised limit on these rows is enough",
            ],
        )  # fmt: skip
    return reject(
        "DP110", "an aggregated result is used together with private rows", span=where,
        label="noisy numbers cannot be combined with private rows here",
        help=["ask for the inner result first, and pass its (noisy) numbers as parameters"],
    )  # fmt: skip


def _most_rows(node: Aggregate, below: Facts) -> Cap | None:
    """Most rows of one group. A frequency does not count NULLs, which are a group too."""
    bare = frozenset(k.expr.uid for k in node.keys if isinstance(k.expr, Column))
    if below.is_key(bare):
        return finite(1)
    sure = frozenset(uid for uid in bare if not below.columns[uid].value.nullable)
    return below.most_rows(sure)


def _enforced(node: Node, ctx: Derivation) -> int | None:
    """The smallest limit on rows of one unit that the policy enforces at releases: where a count may be clipped."""
    limits = policy_limits(node, ctx)
    found = [limits.rows] if limits.rows is not None else []
    if limits.per_group is not None and limits.groups is not None:
        found.append(limits.per_group * limits.groups)
    return min(found, default=None)


def _called(call: AggregateCall, node: Aggregate, below: Facts, rows: Cap | None, limit: int | None) -> ColumnFact:
    """What is known of an aggregate's value, and where it may be clipped."""
    if call.filter is not None:
        below.value(call.filter)
    most = rows.value if isinstance(rows, Finite) else None
    if call.function == "count":
        if call.arg is not None:
            below.value(call.arg)
        span = interval(0, most) if most is not None else Interval(Fraction(0), None, (_unlimited(call),))
        value = Value(call.column.type, span, type_range(call.column.type), nullable=False)
        return ColumnFact(value, _hint(call, None if limit is None else interval(0, limit)))
    assert call.arg is not None
    arg = below.value(call.arg)
    match call.function, call.distinct:
        case (("min" | "max"), _) if arg.type.kind is Kind.LIST:
            raise reject(
                "DP106", f"{call.function.upper()} of {with_article(arg.type)} is not supported", span=call.span,
                help=["unnest the list first"],
            )  # fmt: skip
        case (("min" | "max"), _):
            # One of the argument's own values: those that it can have at all, and the keys among them.
            nullable = arg.nullable or call.filter is not None or not node.keys
            keys = evaluate(call.arg, below.key_env).domain
            null = nullable and (call.filter is not None or not node.keys or (keys is not None and keys.null))
            domain = None if keys is None else replace(keys, null=null)
            return ColumnFact(Value(arg.type, arg.interval, arg.range, nullable, arg.finite, domain))
        case "avg", _:
            _require_exact(call, arg)
            return ColumnFact(_double(call, _each(call, arg)))
        case "sum", False if call.summed is not None and call.column.type == HUGEINT:
            # Integers that the statement itself clips, whatever is known of the argument.
            if call.summed.magnitude > WIDEST:
                raise reject("DP904", "a sum over private rows may overflow", span=call.span)
            each = interval(*call.summed.ends)
            return ColumnFact(Value(HUGEINT, _total(each, most, call), type_range(HUGEINT), nullable=False))
        case "sum", _:
            _require_exact(call, arg)
            each = _each(call, arg)
            total = _total(each, most, call)
            held = Value(call.column.type, total, type_range(call.column.type))
            held = _double(call, total) if call.column.type.kind is Kind.DOUBLE else held
            return ColumnFact(held, _hint(call, None if limit is None else _total(each, Fraction(limit), call)))
        case name, False if name in VARIANCES:
            return ColumnFact(_double(call, _spread(call, arg)))
        case _, True:
            raise reject(
                "DP101", f"{call.function.upper()}(DISTINCT …) is not supported here", span=call.span,
                help=["select the distinct values first:  FROM (SELECT DISTINCT … )"],
            )  # fmt: skip
        case (("quantile_cont" | "quantile_disc"), _):
            raise reject(
                "DP101", "a quantile is not supported below another aggregate of private rows", span=call.span,
                help=["of each id's rows; of dates QUANTILE_DISC(x, 0.5); or take the quantile of all rows at once"],
            )  # fmt: skip
        case "mode", _:
            raise reject(
                "DP101", "MODE is not supported below another aggregate of private rows", span=call.span,
                help=["of each id's rows, or take the MODE of all rows at once"],
            )  # fmt: skip
        case _:
            product = "SUM(x * x), SUM(x)" if call.second is None else "SUM(y * x), SUM(x * x), SUM(y), SUM(x)"
            raise reject(
                "DP101", f"{call.function.upper()} is not supported below another aggregate of private rows",
                span=call.span, help=[f"compute it from {product} and COUNT(x)"],
            )  # fmt: skip


def _double(call: AggregateCall, real: Interval) -> Value:
    """A DOUBLE of which real arithmetic says where it lies: the engine rounds it several times."""
    return Value(call.column.type, rounded(loosened(real, 50)), finite=False)


def _each(call: AggregateCall, arg: Value) -> Interval:
    """What is added up: the argument, or the integers that stand for it."""
    c = call.summed
    return arg.interval if c is None else interval((c.lo + c.center) * c.grid, (c.hi + c.center) * c.grid)


def _spread(call: AggregateCall, arg: Value) -> Interval:
    """Of values in a range of width w: at most w²/4, or w/2 as a deviation; of a sample of n twice n/(2n - 2) of that.

    Popoviciu: Σ(x - mean)² ≤ Σ(x - middle)² ≤ n·w²/4. It is divided by n, or by n - 1, which is n/2 at least.
    """
    if not arg.interval.bounded:
        raise _unbounded(call, arg)
    each = _each(call, arg)
    assert each.lo is not None and each.hi is not None
    width, sample = each.hi - each.lo, call.function.endswith("samp")
    if max(width, Fraction(0) if call.summed is None else call.summed.grid) ** 2 >= 2**1023:
        raise reject(
            "DP410", f"{call.function.upper()} of these bounds could be larger than any DOUBLE", span=call.span,
            help=["use narrower bounds:  CLIP(x, lower, upper)"],
        )  # fmt: skip
    largest = interval(0, quotient(width**2, 2 if sample else 4))
    if call.function.startswith("var"):
        return largest
    return interval(0, monotone(sqrt, largest).hi if sample else quotient(width, 2))


def _total(each: Interval, most: Fraction | None, call: AggregateCall) -> Interval:
    """Σ of at most `most` values of an interval."""
    if not each.bounded:
        return each
    if most is None:
        low = 0 if each.lo is not None and each.lo >= 0 else None
        high = 0 if each.hi is not None and each.hi <= 0 else None
        return Interval(low, high, (_unlimited(call),))
    whole = mul(each, point(most))
    assert whole.lo is not None and whole.hi is not None
    return interval(min(0, whole.lo), max(0, whole.hi))


def _unlimited(call: AggregateCall) -> Reason:
    name = call.function.upper()
    return Reason(
        "DP202", f"{name} has no upper bound: nothing limits the rows of a group", call.span, "grows with every row",
        (f"bound it in the query:  CLIP({identifier(call.column.name)}, lower, upper)",),
    )  # fmt: skip


def _hint(call: AggregateCall, bounds: Interval | None) -> Hint | None:
    if bounds is None or not bounds.bounded:
        return None
    return Hint("", call.column.name, False, call.column.uid, bounds)


def _require_exact(call: AggregateCall, arg: Value) -> None:
    """Refuse sums that could overflow, or that would be of floating-point numbers without bounds."""
    kind = arg.type.kind
    if kind is Kind.DOUBLE:
        if arg.interval.bounded:
            return
    else:
        held = arg.range if arg.range.bounded else arg.interval
        if held.bounded and _magnitude(held) * 10**arg.type.scale <= WIDEST:
            return
        if arg.interval.bounded and _magnitude(arg.interval) * 10**arg.type.scale <= WIDEST:
            return
        if arg.interval.bounded:
            raise reject(
                "DP202", f"{call.function.upper()} could be larger than any number type", span=call.span,
                help=["clip the argument to smaller bounds:  CLIP(…, lower, upper)"],
            )  # fmt: skip
    raise _unbounded(call, arg)


def _unbounded(call: AggregateCall, arg: Value) -> Rejected:
    why = arg.interval.why
    reason = why[0] if why else None
    return reject(
        "DP201", f"{call.function.upper()} over private rows needs bounds", span=(reason and reason.span) or call.span,
        label=reason.label if reason else "", help=list(reason.help) if reason else ["CLIP(…, lower, upper)"],
    )  # fmt: skip


def _magnitude(span: Interval) -> Exact:
    top = span.magnitude
    assert top is not None
    return top
