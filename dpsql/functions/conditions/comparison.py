"""Comparisons. Text is never compared with numbers; numbers mix freely; DATE compares with TIMESTAMP.

DOUBLE follows the engine's total order: NaN equals NaN and is greater than everything else.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable
from decimal import Decimal

from dpsql.core.ir.types import BOOLEAN, Kind, SqlType
from dpsql.core.values.value import TRUTH, TRUTH_OR_NULL, Args, Domain, Scalar, may_fail
from dpsql.functions.domains.made_domains import midnight
from dpsql.functions.function import Function, null_if_any_is_null
from dpsql.functions.signature import as_double, comparable, comparison_types, count, interval_of


def comparison_type(args: Args) -> SqlType:
    """BOOLEAN, if the two sides can be compared exactly as they are."""
    count(args, 2)
    comparable(*args)
    return BOOLEAN


def _nullable(args: Args) -> bool:
    """NULL in, NULL out; and a DATE may be too far away to be compared as a TIMESTAMP."""
    if null_if_any_is_null(args):
        return True
    if all(a.type.kind is not Kind.TIMESTAMP for a in args):
        return False
    target = comparison_types(args)
    return target is not None and any(may_fail(a, target) for a in args)


def _domain(args: Args) -> Domain | None:
    return TRUTH_OR_NULL if _nullable(args) else TRUTH


def _never_null_domain(args: Args) -> Domain | None:
    return TRUTH


def _key(value: Scalar) -> object:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return midnight(value)
    return value


def compare(a: Scalar, b: Scalar, test: Callable[[object, object], bool]) -> bool:
    """`test` under the engine's order of values (NaN last, dates as midnights, text by its UTF-8 bytes)."""
    if isinstance(a, str) and isinstance(b, str):
        return test(a.encode(), b.encode())
    if type(a) is not type(b) and all(isinstance(v, (int, float, Decimal)) for v in (a, b)):
        # Decimals of different widths may have to meet in DOUBLE: stay where both ways agree.
        return test(_key(as_double(a)), _key(as_double(b)))
    if isinstance(a, Decimal) and isinstance(b, Decimal) and a.as_tuple().exponent != b.as_tuple().exponent:
        return test(as_double(a), as_double(b))
    return test(_key(a), _key(b))


def _comparison(name: str, symbol: str, summary: str, test: Callable[[object, object], bool]) -> Function:
    def python(a: Scalar, b: Scalar) -> Scalar:
        return None if a is None or b is None else compare(a, b, test)

    return Function(
        (name,),
        f"x {symbol} y: any, same kind → boolean",
        summary,
        type=comparison_type,
        interval=interval_of(0, 1),
        nullable=_nullable,
        domain=_domain,
        python=python,
        operator=True,
    )


def _distinct(name: str, symbol: str, summary: str, equal: bool) -> Function:
    def python(a: Scalar, b: Scalar) -> Scalar:
        if a is None or b is None:
            return (a is b) is equal
        return compare(a, b, operator.eq) is equal

    return Function(
        (name,),
        f"x {symbol} y: any, same kind → boolean",
        summary,
        type=comparison_type,
        interval=interval_of(0, 1),
        nullable=lambda args: False,
        domain=_never_null_domain,
        python=python,
        operator=True,
    )


FUNCTIONS = (
    _comparison("eq", "=", "True where both sides are equal.", operator.eq),
    _comparison("ne", "<>", "True where the sides differ.", operator.ne),
    _comparison("lt", "<", "True where x is less than y.", operator.lt),  # type: ignore[arg-type]
    _comparison("le", "<=", "True where x is at most y.", operator.le),  # type: ignore[arg-type]
    _comparison("gt", ">", "True where x is greater than y.", operator.gt),  # type: ignore[arg-type]
    _comparison("ge", ">=", "True where x is at least y.", operator.ge),  # type: ignore[arg-type]
    _distinct("is_distinct_from", "IS DISTINCT FROM", "Like <>, but NULL is a value; never NULL.", False),
    _distinct("is_not_distinct_from", "IS NOT DISTINCT FROM", "Like =, but NULL is a value; never NULL.", True),
)
