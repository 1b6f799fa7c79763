"""CASE, COALESCE, NULLIF, IF: the result is one of several values of a common type."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce

from dpsql.core.ir.types import TIMESTAMP, Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Interval
from dpsql.core.values.value import Args, Domain, Scalar, Value, is_null, may_fail
from dpsql.functions.conditions.comparison import compare, comparison_type
from dpsql.functions.domains.made_domains import union
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.signature import boolean, common_type, count


def scaled(a: Value, target: SqlType) -> Interval:
    """The interval of `a` after conversion to the common type: a DATE among TIMESTAMPs counts in microseconds."""
    if a.type.kind is Kind.DATE and target.kind is Kind.TIMESTAMP:
        return iv.mul(a.interval, iv.point(86_400_000_000))
    return a.interval


def hull_of(args: Args) -> Interval:
    """The interval that holds whichever argument is chosen; NULL literals add nothing."""
    target = common_type(args)
    found = [scaled(a, target) for a in args if not is_null(a)]
    return reduce(iv.hull, found) if found else iv.point(0)


def finite_of(args: Args) -> bool:
    """Finite if every choice is: it is passed on as it is, or an exact number converted."""
    return all(a.finite for a in args)


def chosen_nullable(args: Args) -> bool:
    """NULL if any choice may be."""
    target = common_type(args)
    return any(a.nullable or may_fail(a, target) for a in args)


def chosen_domain(args: Args) -> Domain | None:
    """The union of the choices' keys."""
    target = common_type(args)
    if target == TIMESTAMP and any(a.type.kind is Kind.DATE for a in args):
        return None
    if target.kind is Kind.DOUBLE and any(a.type != target for a in args):
        return None  # 0.1 and 10³⁰ are other numbers once they are DOUBLE
    return union(*(a.domain for a in args))


def _branches(args: Args) -> list[Value]:
    return [*args[1:-1:2], args[-1]]


def _case_type(args: Args) -> SqlType:
    if len(args) < 3 or len(args) % 2 == 0:
        raise SignatureError("expects conditions with values and a last value for ELSE")
    for condition in args[:-1:2]:
        boolean(condition)
    return common_type(_branches(args))


def _py_case(*values: Scalar) -> Scalar:
    for i in range(0, len(values) - 1, 2):
        if values[i] is True:
            return values[i + 1]
    return values[-1]


def _coalesce_type(args: Args) -> SqlType:
    count(args, 1, -1)
    return common_type(args)


def _reachable(args: Args) -> Args:
    """COALESCE never looks beyond a constant. Of anything else that it is never NULL may only be believed."""
    target = common_type(args)
    for i, a in enumerate(args):
        if a.is_constant and not is_null(a) and not may_fail(a, target):
            return args[: i + 1]
    return args


def _coalesce_interval(args: Args) -> Interval:
    target = common_type(args)
    found = [scaled(a, target) for a in _reachable(args) if not is_null(a)]
    return reduce(iv.hull, found) if found else iv.point(0)


def _coalesce_nullable(args: Args) -> bool:
    target = common_type(args)
    return all(a.nullable or may_fail(a, target) for a in args)


def _coalesce_domain(args: Args) -> Domain | None:
    reach = _reachable(args)
    found = chosen_domain(reach) if common_type(reach) == common_type(args) else None
    if found is None:
        return None
    last = reach[-1].domain
    return Domain(found.values, null=last is not None and last.null and _coalesce_nullable(args))


def _nullif_type(args: Args) -> SqlType:
    comparison_type(args)
    return args[0].type


def _py_nullif(a: Scalar, b: Scalar) -> Scalar:
    return None if a is not None and b is not None and compare(a, b, operator.eq) else a


def _nullif_domain(args: Args) -> Domain | None:
    """All keys of x stay possible, and NULL joins them."""
    known = args[0].domain
    return None if known is None or args[1].is_constant else Domain(known.values, null=True)


def _first_interval(args: Args) -> Interval:
    return args[0].interval


def _if_type(args: Args) -> SqlType:
    count(args, 3)
    return _case_type(args)


def _ifnull_type(args: Args) -> SqlType:
    count(args, 2)
    return common_type(args)


def _py_coalesce(*values: Scalar) -> Scalar:
    return next((v for v in values if v is not None), None)


def _case(names: tuple[str, ...], signature: str, summary: str, type_rule: Callable[[Args], SqlType]) -> Function:
    return Function(
        names,
        signature,
        summary,
        type=type_rule,
        interval=lambda args: hull_of(_branches(args)),
        nullable=lambda args: chosen_nullable(_branches(args)),
        finite=lambda args: finite_of(_branches(args)),
        domain=lambda args: chosen_domain(_branches(args)),
        python=_py_case,
        operator=names[0] == "case",
    )


def _coalesce(names: tuple[str, ...], signature: str, summary: str, type_rule: Callable[[Args], SqlType]) -> Function:
    return Function(
        names,
        signature,
        summary,
        type=type_rule,
        interval=_coalesce_interval,
        range=hull_of,
        nullable=_coalesce_nullable,
        finite=finite_of,
        domain=_coalesce_domain,
        python=_py_coalesce,
    )


FUNCTIONS = (
    _case(
        ("case",),
        "CASE WHEN c THEN v … ELSE e END: boolean, any … → any",
        "The value of the first condition that holds, else the last value.",
        _case_type,
    ),
    _case(("if", "iff"), "if(c: boolean, x, y) → any", "x where the condition holds, else y.", _if_type),
    _coalesce(("coalesce",), "coalesce(x, y, …) → any", "The first argument that is not NULL.", _coalesce_type),
    _coalesce(("ifnull", "nvl"), "ifnull(x, y) → any", "x, or y where x is NULL.", _ifnull_type),
    Function(
        ("nullif",),
        "nullif(x, y) → any",
        "NULL where x equals y, else x.",
        type=_nullif_type,
        interval=_first_interval,
        nullable=lambda args: True,
        finite=lambda args: finite_of(args[:1]),
        domain=_nullif_domain,
        python=_py_nullif,
    ),
)
