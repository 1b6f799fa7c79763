"""Expressions that are written to break what is believed of them, drawn from the registry of functions.

Nothing is named twice: which function takes which kinds of arguments is asked of the registry itself, so that a new
function is attacked as soon as it is there. Names stand here only where some calls are to be drawn more often.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import product
from typing import NamedTuple

from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal
from dpsql.core.ir.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    TIMESTAMP,
    VARCHAR,
    Kind,
    SqlType,
    decimal,
    integer_type_of,
    parse_type,
)
from dpsql.core.ir.types import INTERVAL as SPAN
from dpsql.core.values.constants import literal
from dpsql.core.values.value import Scalar, Value
from dpsql.diagnostics.errors import Rejected
from dpsql.engines.duckdb import DIALECT
from dpsql.functions.cast import cast
from dpsql.functions.expression_values import call, evaluate
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.registry import FAMILIES, check
from tests.functions.test_function_contract import LITERALS
from tests.support.function_rows import COLUMNS

FUNCTIONS = [f for family in FAMILIES.values() for f in family if DIALECT.spells(f.name)]
KINDS = (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.BOOLEAN, Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP)
"""Kinds of expressions that are drawn; of others there are columns alone."""
OFTEN = (
    "add", "sub", "mul", "div", "intdiv", "mod", "neg", "sign", "round", "coalesce", "greatest", "least", "case",
    "nullif", "clip", "sqrt", "ln", "pow", "eq", "lt", "ge",
)  # fmt: skip
"""Functions that half of all calls are of: the others' results are what they are wrong about."""
_ENDS = [n for k in (7, 15, 31, 63, 127) for n in (2**k - 1, -(2**k) + (k == 127))]
_WHOLE = [*_ENDS, *(n - 1 for n in _ENDS[::2]), 0, 1, -1, 2, 3, -7, 10**18, 9_000_000_000_000_000_000]
_REAL = [1e19, -1e19, 2.0**53, 1e300, 1e9, 1.7976931348623157e308, 5e-324, 1e-300, 0.0, -0.0, 1.0, -1.0, 0.5, 0.1, 3.0]
CONSTANTS: dict[Kind, list[tuple[Scalar, SqlType]]] = {
    Kind.INTEGER: [(n, integer_type_of(n) or parse_type("HUGEINT")) for n in _WHOLE],  # type: ignore[misc]
    Kind.DECIMAL: [
        (Decimal(text), decimal(*size))
        for text, size in (("0.5", (2, 1)), ("0.01", (3, 2)), ("-2.50", (3, 2)), ("1", (1, 0)), ("9" * 38, (38, 0)),
                           ("-" + "9" * 38, (38, 0)), ("0." + "0" * 37 + "1", (38, 38)), ("9" * 18, (18, 0)))
    ],
    Kind.DOUBLE: [(x, DOUBLE) for x in _REAL],
    Kind.BOOLEAN: [(True, BOOLEAN), (False, BOOLEAN)],
    Kind.VARCHAR: [
        (s, VARCHAR) for s in ("", "a", "nan", "inf", "-1", "1e19", "2024-02-29", "300000-01-01", "é", "1.5")
    ],
    Kind.DATE: [(dt.date(*d), DATE) for d in ((1, 1, 1), (9999, 12, 31), (1970, 1, 1), (2024, 2, 29))],
    Kind.TIMESTAMP: [
        (t, TIMESTAMP)
        for t in (dt.datetime(1, 1, 1), dt.datetime(2024, 6, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999))
    ],
    Kind.INTERVAL: [(dt.timedelta(*s), SPAN) for s in ((1,), (4_000_000,), (0, 0, -1))],
}  # fmt: skip
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from")
LARGE = 7
"""Of integers and DOUBLEs the first so many swallow what is added to them."""
TARGETS: dict[Kind, list[SqlType]] = {}
for _name in (
    "TINYINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "UBIGINT", "DECIMAL(4,2)", "DECIMAL(18,3)", "DECIMAL(38,10)",
    "DOUBLE", "FLOAT", "BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP",
):  # fmt: skip
    _type = parse_type(_name)
    assert _type is not None
    TARGETS.setdefault(_type.kind, []).append(_type)


class Signature(NamedTuple):
    """A function, the kinds of its arguments, and which of these have to be literals."""

    function: Function
    kinds: tuple[Kind, ...]
    fixed: frozenset[int]


@dataclass(frozen=True, slots=True)
class Made:
    """An expression, and what is claimed of its value."""

    expr: Expr
    value: Value


def constants(function: Function, at: int, kind: Kind) -> list[tuple[Scalar, SqlType]]:
    """What may stand where a function asks for a literal."""
    listed = LITERALS.get(function.name, {}).get(at, [])
    return [(v, t) for v in listed if (t := type_of(v)).kind is kind] + CONSTANTS.get(kind, [])


def type_of(value: Scalar) -> SqlType:
    """The type of a constant as the binder gives it."""
    match value:
        case bool():
            return BOOLEAN
        case int():
            return integer_type_of(value) or decimal(38, 0)
        case float():
            return DOUBLE
        case str():
            return VARCHAR
        case dt.datetime():
            return TIMESTAMP
        case dt.date():
            return DATE
        case dt.timedelta():
            return SPAN
    raise AssertionError(value)


@cache
def signatures() -> Mapping[Kind, Mapping[str, list[Signature]]]:
    """Kind of the result → name → the kinds of arguments that give it, found by trying all of them."""
    known = {c.value.type.kind: c.value for c in reversed(COLUMNS)}
    found: dict[Kind, dict[str, list[Signature]]] = {}

    def takes(function: Function, kinds: tuple[Kind, ...], fixed: frozenset[int]) -> bool:
        places = [
            [literal(*c) for c in constants(function, at, kind)[:12]]
            if at in fixed or kind not in known
            else [known[kind]]
            for at, kind in enumerate(kinds)
        ]
        for args in product(*places):
            try:
                result = check(function, args)
            except SignatureError:
                continue
            found.setdefault(result.kind, {}).setdefault(function.name, []).append(Signature(function, kinds, fixed))
            return True
        return False

    for function in FUNCTIONS:
        for arity in (1, 2, 3):
            able = KINDS if arity == 3 else (*known, Kind.INTERVAL)
            for kinds in product(able, repeat=arity):
                fixed = function.literal
                if takes(function, kinds, fixed) and arity == 3:
                    takes(function, (*kinds[:-1], *kinds[-2:]), fixed)  # one more of what it repeats
                    takes(function, (*kinds[:2], *kinds), fixed)
        if not any(function.name in named for named in found.values()):  # a list of literals, perhaps
            for kinds in product(KINDS, repeat=2):
                takes(function, (kinds[0], kinds[1], kinds[1]), frozenset({1, 2}))
    return found


class Hostile:
    """Draws expressions over columns. Random, but the same for each seed."""

    def __init__(self, rng: random.Random, columns: Sequence[tuple[Column, Value]]) -> None:
        self.rng = rng
        self.of: dict[Kind, list[Made]] = {}
        for column, value in columns:
            self.of.setdefault(value.type.kind, []).append(Made(column, value))
        self.env = {column.uid: value for column, value in columns}
        self.seen: list[Made] = []

    def expression(self, kind: Kind, depth: int = 3) -> Made:
        """One that gives this kind, of at most so many calls one in another."""
        self.seen = []
        return self._drawn(kind, depth)

    def any(self, depth: int = 3) -> Made:
        """One of any kind, most often a DOUBLE."""
        if self.rng.random() < 0.1:
            return self.cancelling(self.rng.choice((Kind.DOUBLE, Kind.DOUBLE, Kind.INTEGER, Kind.BOOLEAN)))
        return self.expression(self.rng.choice((*KINDS, Kind.DOUBLE, Kind.DOUBLE, Kind.INTEGER)), depth)

    def cancelling(self, kind: Kind) -> Made:
        """A call of which one argument, at least, is a DOUBLE of which rounding leaves something else."""
        choices = [[s for s in found if Kind.DOUBLE in s.kinds] for found in signatures()[kind].values()]
        choices = [found for found in choices if found]
        for _ in range(8 * bool(choices)):
            made = self.applied(self.rng.choice(self.rng.choice(choices)), depth=1, cancel=0.9)
            if made is not None:
                return made
        return self.expression(kind, 2)

    def constant(self, kind: Kind) -> Made:
        if self.rng.random() < 0.06:
            return Made(Literal(None, TARGETS[kind][0]), literal(None, TARGETS[kind][0]))
        return self._literal(*self.rng.choice(CONSTANTS[kind]))

    def facts(self, expr: Expr) -> Value:
        return evaluate(expr, self.env)

    def condition(self) -> Made:
        """A comparison of something hostile, or whether it is NULL: what an engine likes to rewrite."""
        kind = self.rng.choice(KINDS)
        inner = self.expression(kind, self.rng.choice((0, 1, 2)))
        for _ in range(4 * (self.rng.random() < 0.75)):
            inner = self._cast(kind, self.rng.choice((1, 1, 2))) or inner
        name = self.rng.choice((*COMPARISONS, "is_null"))
        other = [] if name == "is_null" else [self.constant(kind)]
        return self.called(name, inner, *other) or self.called("is_null", inner) or self.constant(Kind.BOOLEAN)

    # --- calls -------------------------------------------------------------------------------------------------------

    def _drawn(self, kind: Kind, depth: int) -> Made:
        found = self._tried(kind, depth) if depth > 0 and self.rng.random() < 0.9 else self._leaf(kind)
        self.seen.append(found)
        return found

    def _tried(self, kind: Kind, depth: int) -> Made:
        again = [m for m in self.seen if m.value.type.kind is kind]
        if again and self.rng.random() < 0.12:
            return self.rng.choice(again)  # what depends on one column twice
        for _ in range(6):
            chance = self.rng.random()
            if chance < 0.14:
                found = self._cast(kind, depth)
            elif chance < 0.3 and kind in (Kind.DOUBLE, Kind.INTEGER):
                found = self._cancelled(kind, depth)
            else:
                found = self._call(kind, depth)
            if found is not None:
                return found
        return self._leaf(kind)

    def _leaf(self, kind: Kind) -> Made:
        chance = self.rng.random()
        if kind in CONSTANTS and (kind not in self.of or chance < 0.25):
            return self.constant(kind)
        sure = [m for m in self.of[kind] if not m.value.nullable]
        column = self.rng.choice(sure if sure and self.rng.random() < 0.6 else self.of[kind])
        if chance < 0.6 and column.value.type.numeric:
            ends = sorted(self.rng.sample((-2049, -5, -1, 0, 1, 2, 3, 100, 2049, 10**12), 2))
            return self.called("clip", column, *(self._literal(e, type_of(e)) for e in ends)) or column
        return column

    def _literal(self, value: Scalar, t: SqlType) -> Made:
        return Made(Literal(value, t), literal(value, t))

    def _cancelled(self, kind: Kind, depth: int) -> Made | None:
        """x + c - c and its like: x in real arithmetic, and what rounding leaves of it in the engine's."""
        inner = self._drawn(kind, depth - 1) if self.rng.random() < 0.5 else self._leaf(kind)
        c = self._literal(*self.rng.choice(CONSTANTS[kind][:LARGE]))
        there, back = self.rng.choice((("add", "sub"), ("sub", "add"), ("mul", "div")))
        away = self.called(there, inner, c)
        return None if away is None else self.called(back, away, c)

    def _cast(self, kind: Kind, depth: int) -> Made | None:
        inner = self._drawn(self.rng.choice(KINDS), depth - 1)
        target = self.rng.choice(TARGETS[kind]) if kind in TARGETS else None
        if target is None or target == inner.value.type:
            return None
        try:
            return Made(Cast(inner.expr, target), cast(inner.value, target))
        except SignatureError:
            return None

    def _call(self, kind: Kind, depth: int) -> Made | None:
        choices = signatures()[kind]
        often = [name for name in OFTEN if name in choices]
        name = self.rng.choice(often if often and self.rng.random() < 0.5 else list(choices))
        return self.applied(self.rng.choice(choices[name]), depth)

    def applied(self, signature: Signature, depth: int, cancel: float = 0.25, null: int = -1) -> Made | None:
        """A call of this signature. cancel: how often a DOUBLE is one that cancels. null: which argument is NULL."""
        function, kinds, fixed = signature
        if not all(wanted in self.of or wanted in CONSTANTS for wanted in kinds):
            return None
        args = []
        for at, wanted in enumerate(kinds):
            if at == null:
                args.append(Made(Literal(None, TARGETS[wanted][0]), literal(None, TARGETS[wanted][0])))
            elif at in fixed or wanted is Kind.INTERVAL:
                args.append(self._literal(*self.rng.choice(constants(function, at, wanted))))
            elif wanted is Kind.DOUBLE and self.rng.random() < cancel:
                args.append(self._cancelled(wanted, 1) or self._leaf(wanted))
            else:
                args.append(self._drawn(wanted, depth - 1))
        return self.called(function.name, *args)

    def called(self, name: str, *args: Made) -> Made | None:
        """A call, with what is claimed of it; None if the arguments do not fit."""
        try:
            value = call(name, tuple(a.value for a in args), None)
        except Rejected:
            return None
        return Made(Call(name, tuple(a.expr for a in args), value.type), value)


# --- chains of integers -----------------------------------------------------------------------------------------------

Exactly = Callable[[Sequence[int | None]], int | None]
"""The value of a chain over one row's integers, without an end to them."""


class Chains:
    """Sums and differences of integers in any order, with constants at the ends of types, and their exact values."""

    def __init__(self, rng: random.Random, columns: Sequence[tuple[Column, Value]]) -> None:
        self.rng, self.columns = rng, columns

    def chain(self, depth: int = 4) -> tuple[Expr, Exactly]:
        if depth == 0 or self.rng.random() < 0.12:
            return self._term()
        a, x = self.chain(depth - 1)
        if self.rng.random() < 0.1:
            return self._call("neg", a), lambda row: None if (n := x(row)) is None else -n
        b, y = self.chain(self.rng.choice((0, depth - 1)))
        name, sign = self.rng.choice((("add", 1), ("add", 1), ("sub", -1)))

        def total(row: Sequence[int | None]) -> int | None:
            n, m = x(row), y(row)
            return None if n is None or m is None else n + sign * m

        return self._call(name, a, b), total

    def _term(self) -> tuple[Expr, Exactly]:
        chance = self.rng.random()
        if chance < 0.45:
            n = self._number()
            return self._literal(n), lambda row: n
        if chance < 0.7:
            at = self.rng.randrange(len(self.columns))
            return self.columns[at][0], lambda row: row[at]
        at, limit, n, m = self.rng.randrange(len(self.columns)), self._number(), self._number(), self._number()
        when = self._call("gt", self.columns[at][0], self._literal(limit))
        case = self._call("case", when, self._literal(n), self._literal(m))
        return case, lambda row: n if (v := row[at]) is not None and v > limit else m

    def _number(self) -> int:
        near = self.rng.choice((0, 0, 2**7, 2**15, 2**31, 2**31, 2**63))
        n = near + self.rng.randint(-5, 4)
        return max(-(2**63), min(self.rng.choice((n, -n)), 2**63 - 1))

    def _literal(self, n: int) -> Expr:
        return Literal(n, type_of(n))

    def _call(self, name: str, *args: Expr) -> Expr:
        plain = Call(name, args, BOOLEAN)
        return Call(name, args, evaluate(plain, {c.uid: v for c, v in self.columns}).type)
