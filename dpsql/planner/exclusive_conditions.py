"""Which conditions hold of no row together, as far as an analyst's text tells: a guess, for slices and branches.

Nothing rests on it: where it is wrong, a row counts in the first slice or branch that it satisfies. So a term is taken
for the same wherever it stands, and a comparison for what SQL says. AND, OR and NOT follow three-valued logic; a term
that is not understood is an expression of its own, which is TRUE or FALSE; so of P and NOT P no row has both, nor of P
and `P IS NOT TRUE`. An AND that holds is one more expression that is TRUE.

Example:
    `age < 30 AND lower(city) = 'oslo'` and `age >= 30`;  `express` and `NOT express`;  `x % 2 = 0` and `x % 2 = 1`
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpsql.core.ir.expressions import Call, Expr, Literal, walk
from dpsql.core.ir.types import BOOLEAN, Kind, SqlType

MOST_CASES = 32
"""A condition with more of them counts as one that any row may satisfy."""

End = tuple[Any, bool]


@dataclass(frozen=True, slots=True)
class PossibleValues:
    """Values that an expression may have: some set of non-NULL ones, and NULL.

    null: NULL is one. values: the others, if they are listed. low, high: else where they lie, each with whether the end
    itself is left out; None: no end. without: values that are left out.
    """

    null: bool = False
    values: frozenset[Any] | None = None
    low: End | None = None
    high: End | None = None
    without: frozenset[Any] = frozenset()

    @property
    def nothing(self) -> bool:
        """True if no value is left. False may mean that none is left, too: no integer lies between 1 and 2."""
        return not self.null and (not self.values if self.values is not None else self._empty(self.low, self.high))

    def meet(self, other: PossibleValues) -> PossibleValues:
        """Values that both allow."""
        null = self.null and other.null
        listed = [p.values for p in (self, other) if p.values is not None]
        if listed:
            kept = frozenset.intersection(*listed)
            return PossibleValues(null, frozenset(v for v in kept if self._holds(v) and other._holds(v)))
        return PossibleValues(null, None, *self._ends(other), self.without | other.without)

    def excludes(self, other: PossibleValues) -> bool:
        """True if there is no value that both allow: `self.meet(other).nothing`, in less time."""
        if self.null and other.null:
            return False
        if self.values is not None and other.values is not None:
            return self.values.isdisjoint(other.values)
        if self.values is not None:
            return not any(map(other._holds, self.values))
        if other.values is not None:
            return not any(map(self._holds, other.values))
        low, high = self._ends(other)
        return self._empty(low, high) or other._empty(low, high)

    def _ends(self, other: PossibleValues) -> tuple[End | None, End | None]:
        """The ends of what both allow. Of equal ends the one that is left out."""
        low, high = self.low, self.high
        if low is None or (other.low is not None and other.low > low):
            low = other.low
        if high is None or (
            other.high is not None and (other.high[0] < high[0] or (other.high[0] == high[0] and other.high[1]))
        ):
            high = other.high
        return low, high

    def _empty(self, low: End | None, high: End | None) -> bool:
        """True if nothing lies between these ends but what is left out here."""
        if low is None or high is None:
            return False
        return bool(low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1] or low[0] in self.without)))

    def _holds(self, value: Any) -> bool:
        if value in self.without:
            return False
        if self.low is not None and (value < self.low[0] or (value == self.low[0] and self.low[1])):
            return False
        return not (self.high is not None and (value > self.high[0] or (value == self.high[0] and self.high[1])))


_SHORT = 15
"""Decimals of as many digits stay different as DOUBLEs."""

Subject = tuple[Expr, tuple[float, ...]]
"""An expression. -0.0 = 0.0, although they are two arguments: so with the signs of its zeros."""

Case = Mapping[Subject, PossibleValues]
Cases = tuple[Case, ...]

ANY: Cases = ({},)
"""Of a condition that says nothing."""


def cases_of(condition: Expr | None, truth: bool = True) -> Cases:
    """Cases of which one holds for every row where the condition is TRUE (or FALSE: `truth`); None: no condition.

    No cases: there is no such row.
    """
    match condition:
        case None:
            return ANY
        case Literal(value=value) if value is None or isinstance(value, bool):
            return ANY if value is truth else ()
        case Call(function="not", args=(arg,)):
            return cases_of(arg, not truth)
        case Call(function="and" | "or" as name, args=args):
            each = [cases_of(arg, truth) for arg in args]
            if (name == "and") is truth:
                found = ANY
                for one in (*each, _one(condition, PossibleValues(values=frozenset({truth})))):
                    found = both(found, one)
                return found
            return _few(tuple(case for one in each for case in one))
        case Call(function="is_null" | "is_not_null" as name, args=(arg,)):
            only_null = PossibleValues(null=True, values=frozenset())
            return _one(arg, only_null if (name == "is_null") is truth else PossibleValues())
        case Call(function=name, args=(Literal() as a, b)) if name in _MIRRORED and not isinstance(b, Literal):
            return cases_of(replace(condition, function=_MIRRORED[name], args=(b, a)), truth)
        case Call(function=name, args=(arg, Literal(value=bool() as value))) if name in _TESTS and arg.type == BOOLEAN:
            return cases_of(arg, value) if (name == "is_not_distinct_from") is truth else _other(arg, value)
        case Call(function=name, args=(arg, Literal() as literal)) if name in _MIRRORED:
            return _with_itself(condition, truth, _compared(condition, name, arg, literal, truth))
        case Call(function="in", args=(arg, *items)):
            return _with_itself(condition, truth, _listed(condition, arg, items, truth))
        case _:
            return _opaque(condition, truth)


def _other(condition: Expr, truth: bool) -> Cases:
    """Cases of which one holds for every row where the condition is not `truth`: the other one, or NULL."""
    match condition:
        case Call(function="not", args=(arg,)):
            return _other(arg, not truth)
        case Call(function="and" | "or" as name, args=args):
            found = _one(condition, PossibleValues(null=True, values=frozenset({not truth})))
            for arg in args if (name == "or") is truth else ():  # none of the terms is
                found = both(found, _other(arg, truth))
            return found
        case Call(function="is_null" | "is_not_null" | "is_distinct_from" | "is_not_distinct_from"):
            return cases_of(condition, not truth)  # never NULL
        case _:
            found = (cases_of if _null_with_its_argument(condition) else _opaque)(condition, not truth)
            return tuple({subject: replace(p, null=True) for subject, p in case.items()} for case in found)


def both(a: Cases, b: Cases) -> Cases:
    """Cases of rows that satisfy two conditions."""
    if len(a) * len(b) > MOST_CASES:
        return a if len(a) <= len(b) else b
    return tuple(case for x in a for y in b if (case := _meet(x, y)) is not None)


def are_disjoint(a: Cases, b: Cases) -> bool:
    """True if no row can satisfy both conditions."""
    return all(_clash(x, y) for x in a for y in b)


def _clash(a: Case, b: Case) -> bool:
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    return any(subject in large and large[subject].excludes(p) for subject, p in small.items())


def _meet(a: Case, b: Case) -> Case | None:
    found = dict(a)
    for subject, possible in b.items():
        found[subject] = found[subject].meet(possible) if subject in found else possible
        if found[subject].nothing:
            return None
    return found


def _few(cases: Cases) -> Cases:
    return cases if len(cases) <= MOST_CASES else ANY


def signed(expr: Expr) -> Subject:
    """An expression that is equal to those alone that print the same text."""
    zeros = (e.value for e in walk(expr) if isinstance(e, Literal) and isinstance(e.value, float) and e.value == 0)
    return expr, tuple(math.copysign(1.0, zero) for zero in zeros)


def _one(expr: Expr, possible: PossibleValues) -> Cases:
    return ({signed(expr): possible},)


# --- terms ------------------------------------------------------------------------------------------------------------

_MIRRORED = {
    "eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le",
    "is_distinct_from": "is_distinct_from", "is_not_distinct_from": "is_not_distinct_from",
}  # fmt: skip
_OPPOSITE = {
    "eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt",
    "is_distinct_from": "is_not_distinct_from", "is_not_distinct_from": "is_distinct_from",
}  # fmt: skip


_TESTS = ("is_distinct_from", "is_not_distinct_from")


def _compared(term: Call, name: str, arg: Expr, literal: Literal, truth: bool) -> Cases:
    """A comparison with a literal. Where it is FALSE, the opposite one is TRUE."""
    name = name if truth else _OPPOSITE[name]
    if literal.value is None:
        if name not in ("is_distinct_from", "is_not_distinct_from"):
            return ()
        only_null = name == "is_not_distinct_from"
        return _one(arg, PossibleValues(null=True, values=frozenset()) if only_null else PossibleValues())
    value = _key(arg.type, literal)
    if value is None:
        return _opaque(term, truth)
    match name:
        case "eq" | "is_not_distinct_from":
            possible = PossibleValues(values=frozenset({value}))
        case "ne" | "is_distinct_from":
            possible = PossibleValues(null=name == "is_distinct_from", without=frozenset({value}))
        case "lt" | "le":
            possible = PossibleValues(high=(value, name == "lt"))
        case _:
            possible = PossibleValues(low=(value, name == "gt"))
    return _one(arg, possible)


def _with_itself(term: Expr, truth: bool, found: Cases) -> Cases:
    """The cases of a term, which are disjoint from those of rows where it is not TRUE."""
    return found if _null_with_its_argument(term) else both(found, _opaque(term, truth))


def _null_with_its_argument(term: Expr) -> bool:
    """Whether a comparison with literals is NULL only where its argument is: a conversion may give NULL."""
    if not isinstance(term, Call) or term.function not in (*_MIRRORED, "in"):
        return False
    literals = [e for e in term.args if isinstance(e, Literal)]
    (arg,) = [e for e in term.args if not isinstance(e, Literal)] if len(literals) == len(term.args) - 1 else [None]
    if arg is None or any(e.value is None for e in literals):
        return False
    exact = (Kind.INTEGER, Kind.VARCHAR)
    return all(e.type == arg.type or e.type.kind is arg.type.kind in exact for e in literals)


def _listed(term: Expr, arg: Expr, items: Sequence[Expr], truth: bool) -> Cases:
    """IN: FALSE only if no item is NULL."""
    values, null = set(), False
    for item in items:
        if isinstance(item, Literal) and item.value is None and item.type in (arg.type, _NULL):
            null = True
            continue
        value = _key(arg.type, item) if isinstance(item, Literal) else None
        if value is None:
            return _opaque(term, truth)
        values.add(value)
    if truth:
        return _one(arg, PossibleValues(values=frozenset(values)))
    return () if null else _one(arg, PossibleValues(without=frozenset(values)))


_NULL = SqlType(Kind.NULL, '"NULL"')


def _opaque(term: Expr, truth: bool) -> Cases:
    """A term of which only that is known: it is TRUE, or FALSE. Of `x < y` and `x >= y` one is the other's opposite."""
    match term:
        case Call(function="ne" | "ge" as name):
            return _opaque(replace(term, function=_OPPOSITE[name]), not truth)
        case Call(function="gt" | "le" as name, args=(a, b)):
            return _opaque(replace(term, function=_MIRRORED[name], args=(b, a)), truth)
        case _:
            return _one(term, PossibleValues(values=frozenset({truth})))


def _key(type_: SqlType, literal: Literal) -> Any:
    """The literal as a value that is ordered as the engine orders values of this type; None if that is not certain."""
    value, own = literal.value, literal.type
    match type_.kind, value:
        case Kind.BOOLEAN, bool() if own.kind is Kind.BOOLEAN:
            return value
        case Kind.INTEGER, int() if own.kind is Kind.INTEGER and not isinstance(value, bool):
            return value
        case Kind.DECIMAL, int() | Decimal() if not isinstance(value, bool) and _exact(type_, literal):
            return Fraction(value)
        case Kind.VARCHAR, str() if own.kind is Kind.VARCHAR:
            return value.encode("utf-8", "surrogatepass")
        case ((Kind.DATE | Kind.TIMESTAMP), dt.datetime()) if own.kind is Kind.TIMESTAMP:
            return value if value.tzinfo is None else None
        case ((Kind.DATE | Kind.TIMESTAMP), dt.date()) if own.kind is Kind.DATE and not isinstance(value, dt.datetime):
            return dt.datetime(value.year, value.month, value.day)
        case _:
            return None


def _exact(type_: SqlType, literal: Literal) -> bool:
    """Whether comparing a DECIMAL with this literal is exact: in one type, or in any if both are short."""
    if literal.type == type_:
        return True
    if type_.precision > _SHORT:
        return False
    if literal.type.kind is Kind.DECIMAL:
        return literal.type.precision <= _SHORT
    return literal.type.kind is Kind.INTEGER and isinstance(literal.value, int) and abs(literal.value) < 10**_SHORT
