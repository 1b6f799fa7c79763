"""AND, OR, NOT in three-valued logic, and the tests IS NULL, IS TRUE …"""

from __future__ import annotations

from collections.abc import Callable

from dpsql.core.ir.types import BOOLEAN, SqlType
from dpsql.core.values.value import Args, Domain, Scalar, Value
from dpsql.functions.function import Function, null_if_any_is_null
from dpsql.functions.signature import anything, boolean, count, interval_of, number, returns, truth_domain

_UNIT = interval_of(0, 1)


def _junction_type(args: Args) -> SqlType:
    count(args, 1, -1)
    for a in args:
        boolean(a)
    return BOOLEAN


def _domain(args: Args) -> Domain | None:
    return truth_domain(args, null_if_any_is_null(args))


def _never_null(args: Args) -> Domain | None:
    return truth_domain(args, False)


def _junction(name: str, decisive: bool, summary: str) -> Function:
    def python(*values: Scalar) -> Scalar:
        if decisive in values:
            return decisive
        return None if None in values else not decisive

    return Function(
        (name,),
        f"x {name.upper()} y: boolean, boolean → boolean",
        summary,
        type=_junction_type,
        interval=_UNIT,
        domain=_domain,
        python=python,
        operator=True,
    )


def _test(
    name: str,
    words: str,
    check: Callable[[Value], None],
    summary: str,
    python: Callable[[Scalar], Scalar],
) -> Function:

    return Function(
        (name,),
        f"x {words}: {'boolean' if check is boolean else 'any'} → boolean",
        summary,
        type=returns(BOOLEAN, check),
        interval=_UNIT,
        nullable=lambda args: False,
        domain=_never_null,
        python=python,
        operator=True,
    )


def _not(x: Scalar) -> Scalar:
    return None if x is None else not x


def _float_test(name: str, summary: str) -> Function:

    return Function(
        (name,),
        f"{name}(x: number) → boolean",
        summary,
        type=returns(BOOLEAN, number),
        interval=_UNIT,
        domain=_domain,
    )


FUNCTIONS = (
    _junction("and", False, "True where all conditions hold."),
    _junction("or", True, "True where any condition holds."),
    Function(
        ("not",),
        "NOT x: boolean → boolean",
        "True where the condition does not hold; NULL stays NULL.",
        type=returns(BOOLEAN, boolean),
        interval=_UNIT,
        domain=_domain,
        python=_not,
        operator=True,
    ),
    _test("is_null", "IS NULL", anything, "True where x is NULL.", lambda x: x is None),
    _test("is_not_null", "IS NOT NULL", anything, "True where x is not NULL.", lambda x: x is not None),
    _test("is_true", "IS TRUE", boolean, "True where x is true; false for NULL.", lambda x: x is True),
    _test("is_not_true", "IS NOT TRUE", boolean, "True where x is false or NULL.", lambda x: x is not True),
    _test("is_false", "IS FALSE", boolean, "True where x is false; false for NULL.", lambda x: x is False),
    _test("is_not_false", "IS NOT FALSE", boolean, "True where x is true or NULL.", lambda x: x is not False),
    _float_test("isnan", "True where x is not a number."),
    _float_test("isinf", "True where x is infinite."),
    _float_test("isfinite", "True where x is neither NaN nor infinite."),
)
