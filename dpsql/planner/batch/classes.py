"""Classes of a column's listed values: two values that no member of the batch tells apart are one.

So the marginals of a batch have no more cells than its queries need, and `age` of 111 years may be three classes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from dpsql.core.analysis.expression_values import Env
from dpsql.core.functions.domains import ENUMERABLE
from dpsql.core.ir.expressions import Expr, LiteralValue, children, columns_of
from dpsql.core.ir.types import Kind
from dpsql.diagnostics.errors import reject
from dpsql.planner.batch.members import Member
from dpsql.planner.group_keys.compute import Unknown, computation

_ALONE = "run this query by itself"


@dataclass(frozen=True, slots=True)
class Classes:
    """A column, and the classes of its listed values.

    uid, name: the column. text: how queries refer to it. values: of each class. other: whether rows may hold a value
    that is not listed; they are a class of their own, behind the others, which no member counts that reads the column.
    """

    uid: int
    name: str
    text: str
    values: tuple[tuple[LiteralValue, ...], ...]
    other: bool

    @property
    def size(self) -> int:
        """How many classes there are, with the others."""
        return len(self.values) + self.other

    @property
    def sql(self) -> str:
        """The number of a row's class, as an expression of a query."""
        last = len(self.values) - (0 if self.other else 1)
        whens = [f"WHEN {_is_one_of(self.text, v)} THEN {i}" for i, v in enumerate(self.values) if i != last]
        return f"CASE {' '.join(whens)} ELSE {last} END" if whens else str(last)


def classes_of(members: Sequence[Member], env: Env) -> dict[int, Classes]:
    """The classes of every column that a member reads. env: what is known of the relation's columns.

    Raises Rejected DP302: a column has no public list of values, or one that is too long.
    """
    texts: dict[int, str] = {}
    for member in members:
        texts |= {uid: text for uid, text in member.references.items() if uid not in texts}
    parts: dict[int, dict[Expr, None]] = {uid: {} for uid in texts}
    for member in members:
        for expr in member.expressions:
            for uid, part in _parts(expr):
                parts[uid][part] = None
    return {uid: _classes(uid, texts[uid], tuple(found), env) for uid, found in parts.items()}


def _classes(uid: int, text: str, parts: Sequence[Expr], env: Env) -> Classes:
    known = env[uid]
    name = text.rpartition(".")[2].strip('"')
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
    values: list[LiteralValue] = [*domain.values, *([None] if domain.null else [])]
    try:
        compute = [computation(part, env) for part in parts]
        marks = [tuple((type(r), r) for c in compute for r in [c({uid: v})]) for v in values]
    except Unknown:
        raise reject(
            "DP105", f"only the database can compute this of {name}", help=["run this query by itself"]
        ) from None
    found: dict[object, list[LiteralValue]] = {}
    for value, mark in zip(values, marks, strict=True):
        found.setdefault(mark, []).append(value)
    covered = known.type.kind is Kind.BOOLEAN and (domain.null or not known.nullable)
    return Classes(uid, name, text, tuple(map(tuple, found.values())), not covered)


def _parts(expr: Expr) -> Iterator[tuple[int, Expr]]:
    """The largest parts of an expression that read one column."""
    read = columns_of(expr)
    if len(read) == 1:
        yield next(iter(read)), expr
    elif read:
        for below in children(expr):
            yield from _parts(below)


def _is_one_of(text: str, values: Sequence[LiteralValue]) -> str:
    """A condition: the column holds one of these values. Runs of whole numbers and of days are ranges."""
    rest = [v for v in values if v is not None]
    found = [f"{text} IS NULL"] if len(rest) < len(values) else []
    runs: list[tuple[LiteralValue, LiteralValue]] = []
    for value in rest:
        if runs and _next(runs[-1][1]) == value and _next(value) is not None:
            runs[-1] = runs[-1][0], value
        else:
            runs.append((value, value))
    found += [f"{text} BETWEEN {literal(a)} AND {literal(b)}" for a, b in runs if a != b]
    alone = [literal(a) for a, b in runs if a == b]
    found += [f"{text} IN ({', '.join(alone)})"] if alone else []
    return f"({' OR '.join(found)})" if len(found) > 1 else found[0]


def _next(value: LiteralValue) -> LiteralValue:
    match value:
        case bool():
            return None
        case int():
            return value + 1
        case dt.date() if not isinstance(value, dt.datetime) and value != dt.date.max:
            return value + dt.timedelta(days=1)
    return None


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
    raise reject(
        "DP106", f"a value of type {type(value).__name__} cannot be listed in a batch", help=["run it by itself"]
    )
