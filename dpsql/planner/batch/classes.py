"""Classes of a column's values: two values that no member of the batch tells apart are one.

So the marginals of a batch have no more cells than its queries need, and `age` of 111 years may be three classes.
Values outside the public list are known too, where members only compare the column with constants: what lies between
two of these behaves alike. That takes whole numbers or days, or texts that are compared by = alone. Other such rows are
one class, which no member counts that reads the column.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from dpsql.core.ir.expressions import Call, Column, Expr, Literal, LiteralValue, children, columns_of, walk
from dpsql.core.ir.types import Kind
from dpsql.core.values.domains import ENUMERABLE
from dpsql.core.values.meaning import Env
from dpsql.core.values.value import Value
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject
from dpsql.planner.batch.members import Member
from dpsql.planner.group_keys.compute import Unknown, computation

_EQUALS = frozenset({"eq", "ne", "in", "is_null", "is_not_null"})
_ORDERS = frozenset({"lt", "le", "gt", "ge"})
_ALONE = "run this query by itself"


@dataclass(frozen=True, slots=True)
class ValueClass:
    """Values that behave alike. example: one of them. sql: the condition that a value is one; empty: any that is in no
    other piece. listed: whether they are in the public list."""

    example: LiteralValue
    sql: str
    listed: bool


@dataclass(frozen=True, slots=True)
class Class:
    """Values that no member tells apart. example: one of them. listed: all of them are in the public list. known:
    members can be computed on it; else no member counts it that reads the column."""

    example: LiteralValue
    pieces: tuple[ValueClass, ...]
    listed: bool
    known: bool = True


@dataclass(frozen=True, slots=True)
class ValueClasses:
    """A column, and the classes of its values. uid, name: the column. text: how queries refer to it."""

    uid: int
    name: str
    classes: tuple[Class, ...]

    @property
    def size(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    @property
    def complete(self) -> bool:
        """Whether members can be computed on every value."""
        return all(c.known for c in self.classes)

    @property
    def sql(self) -> str:
        """The number of a row's class, as an expression of a query."""
        rest = next((i for i, c in enumerate(self.classes) if any(not p.sql for p in c.pieces)), self.size - 1)
        whens = [
            f"WHEN {' OR '.join(p.sql for p in c.pieces)} THEN {i}" for i, c in enumerate(self.classes) if i != rest
        ]
        return f"CASE {' '.join(whens)} ELSE {rest} END" if whens else str(rest)


def classes_of(members: Sequence[Member], env: Env) -> dict[int, ValueClasses]:
    """The classes of every column that a member reads. env: what is known of the relation's columns.

    Raises Rejected DP302: a column has no public list of values, or one that is too long.
    """
    texts: dict[int, str] = {}
    spans: dict[int, Span] = {}
    parts: dict[int, dict[Expr, None]] = {}
    keyed: set[int] = set()
    for member in members:
        for uid, text in member.references.items():
            texts.setdefault(uid, text)
        keyed |= {uid for key in member.keys for uid in columns_of(key)}
        for expr in member.expressions:
            for uid, part in parts_by_column(expr):
                parts.setdefault(uid, {})[part] = None
            for column in walk(expr):
                if isinstance(column, Column) and column.span is not None:
                    spans.setdefault(column.uid, column.span)
    return {
        uid: _classes(uid, texts[uid], tuple(found), uid in keyed, env, spans.get(uid)) for uid, found in parts.items()
    }


def _classes(uid: int, text: str, parts: Sequence[Expr], keyed: bool, env: Env, span: Span | None) -> ValueClasses:
    known, name = env[uid], text.rpartition(".")[2].strip('"')
    listed = _listed(known, name, span)
    pieces = [ValueClass(v, f"{text} IS NULL" if v is None else f"{text} IN ({literal(v)})", True) for v in listed]
    others = unlisted_pieces(text, known, set(listed), constants_of(parts, known))
    pieces += others or ()
    try:
        compute = [computation(part, env) for part in parts]
        marks = [_mark(piece, compute, uid, keyed) for piece in pieces]
    except Unknown:
        raise reject("DP105", f"only the database can compute this of {name}", span=span, help=[_ALONE]) from None
    found: dict[object, list[ValueClass]] = {}
    for piece, mark in zip(pieces, marks, strict=True):
        found.setdefault(mark, []).append(piece)
    classes = [Class(group[0].example, _joined(text, group), all(p.listed for p in group)) for group in found.values()]
    if others is None:
        classes.append(Class(None, (ValueClass(None, "", False),), False, False))
    return ValueClasses(uid, name, tuple(classes))


def _mark(piece: ValueClass, compute: Sequence[Callable[[Any], LiteralValue]], uid: int, keyed: bool) -> object:
    """What members see of a value. Of keys it counts whether it is listed: groups are the keys of listed values."""
    return tuple((type(r), r) for c in compute for r in [c({uid: piece.example})]), piece.listed or not keyed


def _listed(known: Value, name: str, span: Span | None) -> list[LiteralValue]:
    domain = known.domain
    if domain is None:
        raise reject(
            "DP302", f"a batch needs a public list of the values of {name}", span=span,
            help=[f"custodian: declare  {name}: {{domain: […]}}  or whole-number bounds", _ALONE],
        )  # fmt: skip
    if domain.size > ENUMERABLE:
        raise reject(
            "DP302", f"{name} has {domain.size:,} listed values: a batch takes at most {ENUMERABLE:,}",
            span=span, help=[_ALONE],
        )  # fmt: skip
    return [*domain.values, *([None] if domain.null else [])]


def constants_of(parts: Sequence[Expr], known: Value) -> set[LiteralValue] | None:
    """The constants that a column is compared with, as values of its type; None if anything else is done with it.

    A key that is the column itself shows listed values alone, whatever the others are.
    """
    found: set[LiteralValue] = set()
    for part in parts:
        compared = set() if isinstance(part, Column) else _compared(part, known.type.kind)
        if compared is None:
            return None
        found |= compared
    return found


def _compared(expr: Expr, kind: Kind) -> set[LiteralValue] | None:
    if isinstance(expr, Column):
        return None
    below = children(expr)
    if isinstance(expr, Call) and any(isinstance(e, Column) for e in below):
        if expr.function not in (_EQUALS if kind is Kind.VARCHAR else _EQUALS | _ORDERS):
            return None
        if not all(isinstance(e, (Column, Literal)) for e in below):
            return None
        return _of_type([e.value for e in below if isinstance(e, Literal) and e.value is not None], kind)
    found: set[LiteralValue] = set()
    for compared in (_compared(e, kind) for e in below):
        if compared is None:
            return None
        found |= compared
    return found


def _of_type(constants: Sequence[LiteralValue], kind: Kind) -> set[LiteralValue] | None:
    """A value of the column's type for each constant: at it or next below it, so that both sides of it lie apart."""
    found: set[LiteralValue] = set()
    for c in constants:
        if kind is Kind.INTEGER and isinstance(c, (int, Decimal, float)) and math.isfinite(c):
            found.add(math.floor(c))
        elif kind is Kind.DATE and isinstance(c, dt.date):
            found.add(c.date() if isinstance(c, dt.datetime) else c)
        elif kind is Kind.VARCHAR and isinstance(c, str):
            found.add(c)
        else:
            return None
    return found


def unlisted_pieces(
    text: str, known: Value, listed: set[LiteralValue], points: set[LiteralValue] | None
) -> list[ValueClass] | None:
    """All values that are not listed, in pieces that behave alike; None if they cannot be told apart."""
    null = [] if None in listed or not known.nullable else [ValueClass(None, f"{text} IS NULL", False)]
    kind = known.type.kind
    if kind is Kind.BOOLEAN:
        rest = sorted({False, True} - listed)
        return [*(ValueClass(v, f"{text} IN ({literal(v)})", False) for v in rest), *null]
    if points is None or kind not in (Kind.INTEGER, Kind.DATE, Kind.VARCHAR):
        return None
    named = [ValueClass(v, f"{text} IN ({literal(v)})", False) for v in sorted(points - listed)]  # type: ignore[type-var]
    if kind is Kind.VARCHAR:
        return [*named, *null, ValueClass(_fresh(listed | points), "", False)]
    return [*named, *null, *_gaps(text, sorted(v for v in listed | points if v is not None))]


def _gaps(text: str, points: Sequence[Any]) -> Iterator[ValueClass]:
    """What lies below, between and above the points, where anything does."""
    first, last = points[0], points[-1]
    below, above = _step(first, -1), _step(last, 1)
    if below is not None:
        yield ValueClass(below, f"{text} < {literal(first)}", False)
    for a, b in pairwise(points):
        between = _step(a, 1)
        if between is not None and between != b:
            yield ValueClass(between, f"({text} > {literal(a)} AND {text} < {literal(b)})", False)
    if above is not None:
        yield ValueClass(above, f"{text} > {literal(last)}", False)


def _fresh(known: set[LiteralValue]) -> str:
    """A text that is none of these."""
    found = "another"
    while found in known:
        found += "'"
    return found


def _step(value: Any, by: int) -> Any:
    """The next whole number or day; None where there is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value + by
    try:
        return value + dt.timedelta(days=by)
    except OverflowError:
        return None


def parts_by_column(expr: Expr) -> Iterator[tuple[int, Expr]]:
    """The largest parts of an expression that read one column."""
    read = columns_of(expr)
    if len(read) == 1:
        yield next(iter(read)), expr
    elif read:
        for below in children(expr):
            yield from parts_by_column(below)


def _joined(text: str, pieces: Sequence[ValueClass]) -> tuple[ValueClass, ...]:
    """The pieces of a class in fewer words: single values as runs of whole numbers or days, or as one list."""
    listed = [p for p in pieces if p.sql.startswith(f"{text} IN (")]
    rest = [p for p in pieces if not p.sql.startswith(f"{text} IN (")]
    runs: list[list[ValueClass]] = []
    for piece in listed:
        last = runs[-1][-1].example if runs else None
        if last is not None and not isinstance(last, (str, bool, float, Decimal)) and _step(last, 1) == piece.example:
            runs[-1].append(piece)
        else:
            runs.append([piece])
    found = [
        ValueClass(r[0].example, f"{text} BETWEEN {literal(r[0].example)} AND {literal(r[-1].example)}", r[0].listed)
        for r in runs if len(r) > 1
    ]  # fmt: skip
    alone = [r[0] for r in runs if len(r) == 1]
    if alone:
        items = ", ".join(literal(p.example) for p in alone)
        found.append(ValueClass(alone[0].example, f"{text} IN ({items})", all(p.listed for p in alone)))
    return (*found, *rest)


def literal(value: LiteralValue) -> str:
    """A value as a query writes it."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | Decimal():
            return str(value)
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    raise reject("DP106", f"a {type(value).__name__} cannot be listed in a batch", help=[_ALONE])
