"""A release that is grouped by the day of its rows, as parts that read days of their own.

*Claim.* A row of a day that is not a part's moves no integer of a group of that part. *Why.* Each row below the release
is made of one row of one scan and of public rows, has that row's day, and counts in the group of its own keys. One key
is a function of the day, and a part has whole periods: all in which the key may have one of its values. Nothing weighs
or keeps a row by what rows of another period are: no private keys, no DISTINCT, no window, and no limit but of an id
that is in one period (core/policy/period_ids.py), whose rows are all in one part. *When it would be false.* If the key
were of another column than the one that says a row's period; if a value of it lay in two parts; if a part had a piece
of a period, in which a row may move; if the limit were of a rider and not of his day. *Tested by*
tests/core/analysis/test_period_parts.py, tests/deep/answers/stored/test_days_of_streams.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dpsql.core.ir.components import KeySource
from dpsql.core.ir.expressions import Call, Column, Expr, Literal, LiteralValue, transform
from dpsql.core.ir.nodes import (
    BoundContributions,
    Filter,
    GroupKeys,
    Join,
    JoinKind,
    Node,
    Project,
    Release,
    Scan,
    Unnest,
    keyed_by,
)
from dpsql.core.ir.periods import DAY, Span, canonical, common, covers
from dpsql.core.ir.walk import walk
from dpsql.core.policy.growing import Growth

_TRUNCATED = {"day": "day", "week": "week", "month": "month"}
_LEFT = (JoinKind.INNER, JoinKind.CROSS, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
_RIGHT = (JoinKind.INNER, JoinKind.CROSS)


@dataclass(frozen=True, slots=True)
class PeriodPart:
    """days: whole periods, of those that are read. keys: the values of the key that lie in them, in its order.

    constant: whether all rows of these days have one; for addresses alone.
    """

    days: tuple[Span, ...]
    keys: tuple[LiteralValue, ...]
    constant: bool


@dataclass(frozen=True, slots=True)
class PeriodParts:
    """The parts of a release. place: of the key that is a function of the day, among its keys. scan: of the rows."""

    scan: Scan
    place: int
    parts: tuple[PeriodPart, ...]


def period_parts(release: Release, ids: Mapping[str, str]) -> PeriodParts | None:
    """The parts of a release; None if it has none, or they cannot be told. Of several keys that tell a day the one with
    most values decides. ids: see `parted_scan`.
    """
    grouped, scan = keyed_by(release), parted_scan(release, ids)
    if scan is None or grouped.sources is None:
        return None
    found: PeriodParts | None = None
    for source in grouped.sources:
        parts = _parts(grouped, source, scan)
        if parts is not None and (found is None or len(parts) > len(found.parts)):
            found = PeriodParts(scan, source.positions[0], parts)
    return found


def parted_scan(release: Release, ids: Mapping[str, str]) -> Scan | None:
    """The scan of whose rows a release is made one by one, where nothing looks at rows of several periods; else None.

    ids: growing tables whose unit is an id in one period → the column that is this id.
    """
    rows, bounded = keyed_by(release).input, release.input
    scan = row_scan(rows)
    if scan is None or release.threshold is not None:
        return None
    if isinstance(bounded, BoundContributions):
        own = of_scan(bounded.id, rows)
        name = next((c.name for c in scan.columns if c == own), None)
        return scan if name is not None and name == ids.get(scan.table) else None
    return scan


def row_scan(node: Node) -> Scan | None:
    """The scan of a growing table of whose rows these are made, one by one; None if there is none, or another one."""
    while not isinstance(node, Scan):
        match node:
            case Filter(input=child) | Project(input=child) | Unnest(input=child):
                node = child
            case Join(kind=kind, left=left, right=right):
                if kind in _LEFT and not any(map(_may_grow, walk(right))):
                    node = left
                elif kind in _RIGHT and not any(map(_may_grow, walk(left))):
                    node = right
                else:
                    return None
            case _:
                return None
    return node if node.periods is not None else None


def of_scan(expr: Expr, node: Node) -> Expr:
    """An expression over rows of `row_scan` in terms of the scan's columns."""
    while not isinstance(node, Scan):
        match node:
            case Project(input=child, items=items):
                made = {item.column.uid: item.expr for item in items}
                expr, node = transform(expr, lambda e, made=made: _made(e, made)), child  # type: ignore[misc]
            case Filter(input=child) | Unnest(input=child):
                node = child
            case Join(left=left, right=right):
                node = right if row_scan(left) is None else left
            case _:
                raise AssertionError("rows that are not made of a scan's, one by one")
    return expr


def last_of(subject: Expr, day: Column) -> Callable[[dt.date], dt.date] | None:
    """From the value of an expression to the last day that has it; None if that is not known."""
    match subject:
        case Column(uid=uid) if uid == day.uid:
            return lambda at: at
        case Call(function="date_trunc", args=(Literal(value=str(unit)), Column(uid=uid))) if uid == day.uid:
            every = _TRUNCATED.get(unit.lower())
            if every is not None:
                return Growth("", every, dt.date.min).ends  # type: ignore[arg-type]
    return None


def _parts(grouped: GroupKeys, source: KeySource, scan: Scan) -> tuple[PeriodPart, ...] | None:
    """As this list of keys says them; None if it is not of days, or they do not lie apart."""
    if len(source.positions) != 1 or scan.periods is None:
        return None
    day = next(c for c in scan.columns if c.name == scan.periods.by)
    last = last_of(of_scan(grouped.items[source.positions[0]].expr, grouped.input), day)
    if last is None or any(end is None for _, end in scan.periods.days):
        return None
    grows = Growth("", scan.periods.every, dt.date.min)
    found: dict[tuple[Span, ...], list[LiteralValue]] = {}
    for (value,) in source.keys:
        if type(value) is not dt.date:  # a NULL, or a moment
            return None
        days = common(grows.whole(((value, last(value)),)), scan.periods.days)
        if not days:
            return None
        found.setdefault(days, []).append(value)
    if _days(span for days in found for span in days) != _days(canonical(s for days in found for s in days)):
        return None  # some lie in two
    return tuple(PeriodPart(days, tuple(keys), _is_constant(days, keys, last)) for days, keys in found.items())


def _is_constant(days: tuple[Span, ...], keys: list[LiteralValue], last: Callable[[dt.date], dt.date]) -> bool:
    value, *others = keys
    assert isinstance(value, dt.date)
    begins = value > dt.date.min and last(value - DAY) < value
    return not others and begins and covers(((value, last(value)),), days)


def _days(spans: Iterator[Span] | tuple[Span, ...]) -> int:
    return sum((last - first).days + 1 for first, last in spans if last is not None)


def _may_grow(node: Node) -> bool:
    """Whether rows of the other side of a join could be of a growing table, or noisy."""
    return isinstance(node, Release) or (isinstance(node, Scan) and node.periods is not None)


def _made(expr: Expr, made: dict[int, Expr]) -> Expr:
    return made.get(expr.uid, expr) if isinstance(expr, Column) else expr
