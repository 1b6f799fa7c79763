"""Which conditions can never hold for one row together: what a row can be, where a condition is TRUE.

Claim: `are_disjoint(cases_of(a, stored), cases_of(b, stored))` says that no row makes both conditions TRUE, wherever in
    a statement they stand.
Why: `cases_of` gives a list of cases; one holds for every row that makes the condition TRUE. A case says of some stored
    columns which values they have. Only a comparison of one stored column with literals of its own type says something,
    and whether the column IS NULL: it is read at each place as it is stored, and compared exactly. AND, OR, NOT and IS
    TRUE follow three-valued logic: NOT t is TRUE where t is FALSE, an AND is FALSE where any of its terms is. Of any
    other term nothing is known, not even that it is the same at two places. Two cases are disjoint if they leave no
    value to one column.
When it would be false: a term that is evaluated twice, taken for one (P and NOT P can both be TRUE of a row, if an
    engine rewrites one of them: a cast that can fail, moved to the literal's side, made 32 exclusive conditions true at
    once); a computed column, which is such a term; a comparison that the engine makes in another type than the
    column's, where values that differ may be one: DOUBLEs, a DATE among TIMESTAMPs, a literal that the column's type
    does not hold; text that is not compared by its bytes (collations are refused).
Tested by: tests/core/analysis/test_disjoint.py, tests/deep/core/analysis/test_disjoint.py,
    tests/deep/core/noise/test_parallel_composition.py
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

from dpsql.core.functions.value import type_range
from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.types import Kind

MOST_CASES = 32
"""A condition with more of them counts as one that any row may satisfy."""

End = tuple[Any, bool]


@dataclass(frozen=True, slots=True)
class PossibleValues:
    """Values that a column may have: some set of non-NULL ones, and NULL.

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


Subject = TypeVar("Subject")
AnyCases = tuple[Mapping[Subject, PossibleValues], ...]
"""Of something that has values."""
Cases = AnyCases[int]
"""By the number of a column."""

ANY: tuple[Mapping[Any, PossibleValues], ...] = ({},)
"""Of a condition that says nothing."""


def cases_of(condition: Expr | None, stored: Container[int], truth: bool = True) -> Cases:
    """Cases of which one holds for every row where the condition is TRUE (or FALSE: `truth`); None: no condition.

    No cases: there is no such row. stored: the numbers of bare columns of tables (`stored_columns`).
    """
    match condition:
        case None:
            return ANY
        case Literal(value=value) if value is None or isinstance(value, bool):
            return ANY if value is truth else ()
        case Call(function="not", args=(arg,)):
            return cases_of(arg, stored, not truth)
        case Call(function="and" | "or" as name, args=args):
            each = [cases_of(arg, stored, truth) for arg in args]
            return _all(each) if (name == "and") is truth else _any(each)
        case Call(function="is_null" | "is_not_null" as name, args=(Column(uid=uid, type=type_),)):
            if uid not in stored or type_.kind not in _COMPARED:
                return ANY
            return ({uid: _ONLY_NULL if (name == "is_null") is truth else PossibleValues()},)
        case Call(function=name, args=(arg, Literal(value=bool(wanted)))) if name in _TESTS:
            return (cases_of if (name == "is_not_distinct_from") is truth else _not)(arg, stored, wanted)
        case Call():
            found = _comparison(condition, stored)
            return ANY if found is None else found[0 if truth else 1]
        case _:
            return ANY


def _not(condition: Expr, stored: Container[int], truth: bool) -> Cases:
    """Cases of which one holds for every row where the condition is not `truth`: the other one, or NULL."""
    match condition:
        case Call(function="not", args=(arg,)):
            return _not(arg, stored, not truth)
        case Call(function="and" | "or" as name, args=args):
            each = [_not(arg, stored, truth) for arg in args]
            return _any(each) if (name == "and") is truth else _all(each)
        case Call(function="is_null" | "is_not_null" | "is_distinct_from" | "is_not_distinct_from"):
            return cases_of(condition, stored, not truth)  # never NULL
        case Call():
            found = _comparison(condition, stored)
            return ANY if found is None else found[2 if truth else 3]
        case _:
            return ANY


def _all(each: Sequence[Cases]) -> Cases:
    """Cases of rows that satisfy all conditions."""
    found = ANY
    for one in each:
        found = both(found, one)
    return found


def _any(each: Sequence[Cases]) -> Cases:
    """Cases of rows that satisfy one of them."""
    found = tuple(case for one in each for case in one)
    return found if len(found) <= MOST_CASES else ANY


def both(a: AnyCases[Subject], b: AnyCases[Subject]) -> AnyCases[Subject]:
    """Cases of rows that satisfy two conditions."""
    if len(a) * len(b) > MOST_CASES:
        return a if len(a) <= len(b) else b
    return tuple(case for x in a for y in b if (case := _meet(x, y)) is not None)


def are_disjoint(a: AnyCases[Subject], b: AnyCases[Subject]) -> bool:
    """True if no row can satisfy both conditions."""
    return all(_clash(x, y) for x in a for y in b)


def _clash(a: Mapping[Subject, PossibleValues], b: Mapping[Subject, PossibleValues]) -> bool:
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    return any(subject in large and large[subject].excludes(p) for subject, p in small.items())


def _meet(
    a: Mapping[Subject, PossibleValues], b: Mapping[Subject, PossibleValues]
) -> Mapping[Subject, PossibleValues] | None:
    found = dict(a)
    for subject, possible in b.items():
        found[subject] = found[subject].meet(possible) if subject in found else possible
        if found[subject].nothing:
            return None
    return found


# --- comparisons ------------------------------------------------------------------------------------------------------

_MIRRORED = {
    "eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le",
    "is_distinct_from": "is_distinct_from", "is_not_distinct_from": "is_not_distinct_from",
}  # fmt: skip
_TESTS = frozenset({"is_distinct_from", "is_not_distinct_from"})
"""Comparisons that are never NULL."""
_COMPARED = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DATE, Kind.VARCHAR})
"""Kinds of which every engine compares values exactly, each in one form."""
_ONLY_NULL = PossibleValues(null=True, values=frozenset())

Answers = tuple[Cases, Cases, Cases, Cases]
"""Cases of rows where a comparison is TRUE, FALSE, not TRUE, not FALSE."""


def _comparison(term: Call, stored: Container[int]) -> Answers | None:
    """What is known where a stored column is compared with literals of its own type; None for anything else."""
    match term:
        case Call(function=name, args=(Literal() as a, Column() as b)) if name in _MIRRORED:
            return _comparison(replace(term, function=_MIRRORED[name], args=(b, a)), stored)
        case Call(function=name, args=(Column(uid=uid) as column, *items)) if uid in stored:
            pass
        case _:
            return None
    if name not in _MIRRORED and name != "in":
        return None
    nulls = [isinstance(i, Literal) and i.value is None for i in items]
    values = [_own_value(column, i) for i, null in zip(items, nulls, strict=True) if not null]
    if column.type.kind not in _COMPARED or None in values:
        return None
    if name == "in" and any(nulls):  # TRUE or NULL
        listed = PossibleValues(values=frozenset(values))
        return ({uid: listed},), (), ANY, ANY
    if any(nulls):
        if name not in _TESTS:  # NULL
            return (), (), ANY, ANY
        same, other = _ONLY_NULL, PossibleValues()
    else:
        same, other = _split(name, values)
    if name in _TESTS:
        yes, no = ({uid: same},), ({uid: other},)
        if name == "is_distinct_from":
            yes, no = no, yes
        return yes, no, no, yes
    return ({uid: same},), ({uid: other},), ({uid: replace(other, null=True)},), ({uid: replace(same, null=True)},)


def _split(name: str, values: Sequence[Any]) -> tuple[PossibleValues, PossibleValues]:
    """The values for which a comparison is TRUE, and the others; of IS [NOT] DISTINCT FROM the same, and the others."""
    value = values[0]
    match name:
        case "lt" | "ge":
            pair = PossibleValues(high=(value, True)), PossibleValues(low=(value, False))
        case "le" | "gt":
            pair = PossibleValues(high=(value, False)), PossibleValues(low=(value, True))
        case _:
            listed = frozenset(values)
            pair = PossibleValues(values=listed), PossibleValues(null=name in _TESTS, without=listed)
    return pair[::-1] if name in ("ne", "gt", "ge") else pair


def _own_value(column: Column, literal: Expr) -> Any:
    """A literal as a value of the column's own type, ordered as engines order these; None if that is not certain."""
    if not isinstance(literal, Literal):
        return None
    value, own, type_ = literal.value, literal.type, column.type
    match type_.kind, value:
        case Kind.INTEGER, int() if own.kind is Kind.INTEGER and not isinstance(value, bool):
            return value if value in type_range(type_) else None
        case Kind.DECIMAL, int() | Decimal() if own.kind in (Kind.INTEGER, Kind.DECIMAL) and own.scale <= type_.scale:
            return Fraction(value) if not isinstance(value, bool) and Fraction(value) in type_range(type_) else None
        case Kind.VARCHAR, str() if own.kind is Kind.VARCHAR:
            return value.encode("utf-8", "surrogatepass")
        case Kind.DATE, dt.date() if own.kind is Kind.DATE and not isinstance(value, dt.datetime):
            return value
        case _:
            return None
