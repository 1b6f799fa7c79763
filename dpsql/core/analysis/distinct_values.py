"""How many different values an expression can have, whatever the rows are.

Claim: over all rows of all neighbouring databases an expression has at most so many different values, NULL not counted.
Why: a column of a type has the type's values; a condition that every row satisfies leaves a stored column those that
    it lists. Whole numbers lie in the range that their type or CLIP keeps them in. CASE and the like give a value of
    one of their branches. Any function of exact values, being one, gives no more values than its arguments have
    combinations, each place where a column stands counted for itself.
When it would be false:
    - a declared `domain`, `bounds`, `nullable: false` or an engine's ENUM taken for all values that there are: rows may
      hold others. Only what a CLIP or a type keeps values in is enforced (`Value.range`; a DOUBLE may leave its
      `interval`);
    - a function taken for strict: `TRUE OR NULL` is a value, although NULL, which is none, is an argument;
    - a condition that some rows do not meet; one on a computed column, which may be another value where it is counted;
    - the range of COALESCE, GREATEST and LEAST, narrowed because a branch is believed never to be NULL;
    - equal values that are not one value (DOUBLE, INTERVAL: 0.0 and -0.0); what is computed in DOUBLE.
Tested by: tests/deep/core/analysis/test_public_groups.py, tests/core/analysis/test_distinct_values.py,
tests/core/functions/test_function_contract.py
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from dpsql.core.analysis.facts import Columns, Facts
from dpsql.core.functions.function import null_if_any_is_null
from dpsql.core.functions.registry import lookup
from dpsql.core.functions.value import Value
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, columns_of, larger_than
from dpsql.core.ir.types import Kind

_NOT_STRICT = frozenset({"and", "or", "list_contains"})
"""`TRUE OR NULL` is TRUE, and a list may hold NULL or not."""
LARGEST = 200
"""Nodes of an expression up to which its parts are looked at."""
MOST = 2**20
"""Larger numbers count as not known: no limit on contributions is above them."""


def most_values(expr: Expr, facts: Facts, condition: Expr | None = None, stored: Columns = frozenset()) -> int | None:
    """The most different values of an expression over these rows; None if it is not known to be a small number.

    condition: what else is true of the rows. stored: those of their columns of which it says something: bare columns of
    tables, which are the same here and there.
    """
    said = [] if condition is None else conjuncts(condition)
    terms = [term for term in said if columns_of(term) <= stored]
    found = _held(facts.value(expr)) if larger_than(expr, LARGEST) else _image(expr, facts, terms)
    return None if found is None or found > MOST else found


def listed_values(term: Expr, column: Column) -> int | None:
    """How many values a condition that lists them leaves to a column; None if it does not."""
    match term:
        case Call(function="and", args=args):
            return _least(*(listed_values(a, column) for a in args))
        case Call(function="or", args=args):
            parts = [listed_values(a, column) for a in args]
            return sum(p for p in parts if p is not None) if None not in parts else None
        case Call(function="is_null", args=(x,)) if x == column:
            return 0
        case Call(function="in", args=(x, *items)) if x == column:
            return _constants(items, column)
        case Call(function="eq" | "is_not_distinct_from", args=(a, b)) if column in (a, b):
            return _constants([b if a == column else a], column)
    return None


def _constants(items: Sequence[Expr], column: Column) -> int | None:
    """The literals among them, NULL not counted; None unless each equals one value of the column at most."""
    if not column.type.one_form or not all(isinstance(i, Literal) for i in items):
        return None
    found = [i for i in items if isinstance(i, Literal) and i.value is not None]
    same = all(i.type == column.type or i.type.kind is column.type.kind is Kind.INTEGER for i in found)
    return len({i.value for i in found}) if same else None


def _image(expr: Expr, facts: Facts, terms: Sequence[Expr]) -> int | None:
    match expr:
        case Literal(value=value):
            return int(value is not None)
        case Column(uid=uid):
            return _least(facts.columns[uid].values, _held(facts.value(expr)), *(listed_values(t, expr) for t in terms))
        case Cast(arg=arg):
            return _least(_image(arg, facts, terms), _held(facts.value(expr)))
        case Call(function="case" | "if", args=args):
            # Conditions stand before their values; a last one without condition is ELSE.
            return _least(_sum([_image(a, facts, terms) for a in [*args[1::2], *args[-1:]]]), _held(facts.value(expr)))
        case Call(function="nullif", args=(arg, _)):
            return _image(arg, facts, terms)
        case Call(function="coalesce" | "greatest" | "least", args=args):
            return _least(_sum([_image(a, facts, terms) for a in args]), _held(facts.value(expr)))
        case Call(type=type_) if type_.kind is Kind.DOUBLE:
            return None
        case Call(function=name, args=args):
            known = _held(facts.value(expr))
            parts = [(_image(a, facts, terms), int(not strict(name) and _may_be_null(a, facts))) for a in args]
            return _least(known, _product([None if n is None else n + null for n, null in parts]))


def strict(name: str) -> bool:
    """Whether a function is NULL wherever one of its arguments is: not all are of which NULL may come of NULL."""
    function = lookup(name)
    return function is not None and function.nullable is null_if_any_is_null and function.name not in _NOT_STRICT


def _may_be_null(expr: Expr, facts: Facts) -> bool:
    """Whether NULL is one more argument: of columns always, because `nullable: false` is a promise."""
    return bool(columns_of(expr)) or facts.value(expr).nullable


def _held(value: Value) -> int | None:
    """How many values the type has, or the range that values of it are kept in."""
    match value.type.kind:
        case Kind.BOOLEAN:
            return 2
        case Kind.INTEGER if value.range.lo is not None and value.range.hi is not None:
            return max(0, int(value.range.hi // 1) - int(-(-value.range.lo // 1)) + 1)
        case _:
            return None


def _least(*found: int | None) -> int | None:
    return min((n for n in found if n is not None), default=None)


def _sum(found: Sequence[int | None]) -> int | None:
    return None if None in found else sum(n for n in found if n is not None)


def _product(found: Sequence[int | None]) -> int | None:
    return None if None in found else prod(n for n in found if n is not None)
