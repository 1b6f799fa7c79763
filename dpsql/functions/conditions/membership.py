"""IN over a list of literals."""

from __future__ import annotations

import operator

from dpsql.core.ir.types import BOOLEAN, SqlType
from dpsql.core.values.value import Args, Domain, Scalar, may_fail
from dpsql.functions.conditions.comparison import compare
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.signature import comparable, comparison_types, count, interval_of, truth_domain


def _type(args: Args) -> SqlType:
    count(args, 2, -1)
    if not all(a.is_constant for a in args[1:]):
        raise SignatureError("expects a list of literals", "write x = y OR … to compare with columns")
    for a in args[1:]:
        comparable(args[0], a)
    comparable(*args)
    return BOOLEAN


def _nullable(args: Args) -> bool:
    target = comparison_types(args)
    return any(a.nullable or (target is not None and may_fail(a, target)) for a in args)


def _domain(args: Args) -> Domain | None:
    return truth_domain(args, _nullable(args))


def _python(x: Scalar, *items: Scalar) -> Scalar:
    if x is None:
        return None
    if any(item is not None and compare(x, item, operator.eq) for item in items):
        return True
    return None if None in items else False


FUNCTIONS = (
    Function(
        ("in",),
        "x IN (a, b, …): any, literals of the same kind → boolean",
        "True where x equals one of the listed values.",
        type=_type,
        interval=interval_of(0, 1),
        nullable=_nullable,
        domain=_domain,
        python=_python,
        operator=True,
    ),
)
