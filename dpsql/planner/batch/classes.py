"""Classes of a column's values: two values that no member of the batch tells apart are one.

So the marginals of a batch have no more cells than its queries need, and `age` of 111 years may be three classes.
Values outside the public list are known too, as far as members only compare the column with constants: what lies
between two of these behaves alike. Else such rows are one class, which no member counts that reads the column.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from dpsql.core.analysis.expression_values import Env
from dpsql.core.functions.domains import ENUMERABLE
from dpsql.core.functions.value import Value
from dpsql.core.ir.expressions import Call, Column, Expr, Literal, LiteralValue, children, columns_of, walk
from dpsql.core.ir.types import Kind
from dpsql.diagnostics.errors import reject
from dpsql.planner.batch.members import Member
from dpsql.planner.group_keys.compute import Unknown, computation

_COMPARES = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "in", "is_null", "and", "or", "not", "is_true", "is_false"})
_ALONE = "run this query by itself"


@dataclass(frozen=True, slots=True)
class Piece:
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
    pieces: tuple[Piece, ...]
    listed: bool
    known: bool = True


@dataclass(frozen=True, slots=True)
class Classes:
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


def classes_of(members: Sequence[Member], env: Env) -> dict[int, Classes]:
    """The classes of every column that a member reads. env: what is known of the relation's columns.

    Raises Rejected DP302: a column has no public list of values, or one that is too long.
    """
    texts: dict[int, str] = {}
    parts: dict[int, dict[Expr, None]] = {}
    keyed: set[int] = set()
    for member in members:
        for uid, text in member.references.items():
            texts.setdefault(uid, text)
        keyed |= {uid for key in member.keys for uid in columns_of(key)}
        for expr in member.expressions:
            for uid, part in _parts(expr):
                parts.setdefault(uid, {})[part] = None
    return {uid: _classes(uid, texts[uid], tuple(found), uid in keyed, env) for uid, found in parts.items()}


def _classes(uid: int, text: str, parts: Sequence[Expr], keyed: bool, env: Env) -> Classes:
    known, name = env[uid], text.rpartition(".")[2].strip('"')
    listed = _listed(known, name)
    bare = [part for part in parts if not isinstance(part, Column)]
    compared = all(_compares(part) for part in bare)
    constants = {e.value for part in bare for e in walk(part) if isinstance(e, Literal)} if compared else set()
    pieces = list(_pieces(text, known, listed, constants - {None}, compared))
    try:
        compute = [computation(part, env) for part in parts]
        marks = [_mark(piece, compute, uid, keyed) for piece in pieces]
    except Unknown:
        raise reject("DP105", f"only the database can compute this of {name}", help=[_ALONE]) from None
    found: dict[object, list[Piece]] = {}
    for piece, mark in zip(pieces, marks, strict=True):
        found.setdefault(mark, []).append(piece)
    classes = [Class(group[0].example, _joined(text, group), all(p.listed for p in group)) for group in found.values()]
    if not compared and not _covered(known):
        classes.append(Class(None, (Piece(None, "", False),), False, False))
    return Classes(uid, name, tuple(classes))


def _mark(piece: Piece, compute: Sequence[Callable[[Any], LiteralValue]], uid: int, keyed: bool) -> object:
    """What members see of a value. A key shows whether it is listed: those that are not are no groups."""
    return tuple((type(r), r) for c in compute for r in [c({uid: piece.example})]), piece.listed or not keyed


def _listed(known: Value, name: str) -> list[LiteralValue]:
    domain = known.domain
    if domain is None:
        raise reject(
            "DP302", f"a batch needs a public list of the values of {name}",
            help=[f"custodian: declare  {name}: {{domain: […]}}  or whole-number bounds", _ALONE],
        )  # fmt: skip
    if len(domain.values) > ENUMERABLE:
        raise reject(
            "DP302", f"{name} has {len(domain.values):,} listed values: a batch takes at most {ENUMERABLE:,}",
            help=[_ALONE],
        )  # fmt: skip
    return [*domain.values, *([None] if domain.null else [])]


def _covered(known: Value) -> bool:
    """Whether the type leaves no value out."""
    return known.type.kind is Kind.BOOLEAN and (known.domain is not None and (known.domain.null or not known.nullable))


def _compares(part: Expr) -> bool:
    """Whether an expression does nothing with its column but compare it with constants."""
    return all(
        isinstance(e, Column | Literal) or (isinstance(e, Call) and e.function in _COMPARES) for e in walk(part)
    ) and not isinstance(part, Column | Literal)


def _pieces(
    text: str, known: Value, listed: Sequence[LiteralValue], constants: set[LiteralValue], compared: bool
) -> Iterator[Piece]:
    for value in listed:
        yield Piece(value, f"{text} IS NULL" if value is None else f"{text} IN ({literal(value)})", True)
    if not compared or known.type.kind is Kind.BOOLEAN:
        if compared and None not in listed and known.nullable:
            yield Piece(None, f"{text} IS NULL", False)
        return
    own = set(listed)
    others = {c for c in constants if type(c) in {type(v) for v in listed if v is not None}} - own
    for value in sorted(others, key=str):
        yield Piece(value, f"{text} IN ({literal(value)})", False)
    if None not in own and known.nullable:
        yield Piece(None, f"{text} IS NULL", False)
    if known.type.kind in (Kind.INTEGER, Kind.DATE):
        yield from _gaps(text, sorted({v for v in own | others if v is not None}, key=lambda v: v))
    elif known.type.kind is Kind.VARCHAR:
        yield Piece(_fresh(own | others), "", False)


def _gaps(text: str, points: Sequence[Any]) -> Iterator[Piece]:
    """What lies below, between and above the points, where anything does."""
    first, last = points[0], points[-1]
    below, above = _step(first, -1), _step(last, 1)
    if below is not None:
        yield Piece(below, f"{text} < {literal(first)}", False)
    for a, b in pairwise(points):
        between = _step(a, 1)
        if between is not None and between != b:
            yield Piece(between, f"({text} > {literal(a)} AND {text} < {literal(b)})", False)
    if above is not None:
        yield Piece(above, f"{text} > {literal(last)}", False)


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


def _parts(expr: Expr) -> Iterator[tuple[int, Expr]]:
    """The largest parts of an expression that read one column."""
    read = columns_of(expr)
    if len(read) == 1:
        yield next(iter(read)), expr
    elif read:
        for below in children(expr):
            yield from _parts(below)


def _joined(text: str, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces of a class in fewer words: single values as runs of whole numbers or days, or as one list."""
    listed = [p for p in pieces if p.sql.startswith(f"{text} IN (")]
    rest = [p for p in pieces if not p.sql.startswith(f"{text} IN (")]
    runs: list[list[Piece]] = []
    for piece in listed:
        last = runs[-1][-1].example if runs else None
        if last is not None and not isinstance(last, str | bool | float | Decimal) and _step(last, 1) == piece.example:
            runs[-1].append(piece)
        else:
            runs.append([piece])
    found = [
        Piece(r[0].example, f"{text} BETWEEN {literal(r[0].example)} AND {literal(r[-1].example)}", r[0].listed)
        for r in runs if len(r) > 1
    ]  # fmt: skip
    alone = [r[0] for r in runs if len(r) == 1]
    if alone:
        items = ", ".join(literal(p.example) for p in alone)
        found.append(Piece(alone[0].example, f"{text} IN ({items})", all(p.listed for p in alone)))
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
