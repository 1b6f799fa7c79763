"""Conditions and group keys computed on single rows of public values, as the engine would compute them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, LiteralValue, columns_of
from dpsql.core.ir.types import SqlType
from dpsql.core.values.constants import literal
from dpsql.core.values.meaning import Env
from dpsql.core.values.value import Value
from dpsql.diagnostics.errors import Rejected
from dpsql.functions import registry
from dpsql.functions.cast import cast, converted
from dpsql.functions.expression_values import call
from dpsql.functions.function import Function, SignatureError

Row = Mapping[int, LiteralValue]
"""Column number → its value."""
Computation = Callable[[Row], LiteralValue]


class Unknown(Exception):
    """Only the engine could tell this value."""


def computation(expr: Expr, env: Env) -> Computation:
    """The expression as a function of a row; it, or the function, raises Unknown where Python cannot tell."""
    try:
        return _compiled(expr, env)[1]
    except (Rejected, SignatureError, KeyError):
        raise Unknown from None


def _compiled(expr: Expr, env: Env) -> tuple[Value, Computation]:
    match expr:
        case Column(uid=uid):
            return env[uid], lambda row: row[uid]
        case Literal(value=value, type=type_):
            return literal(value, type_), lambda row: value
        case Cast(arg=arg, type=target):
            known, inner = _compiled(arg, env)
            result = cast(known, target)
            return result, inner if known.type == target else partial(_cast, inner, target)
        case Call(function=name, args=args):
            parts = [_compiled(a, env) for a in args]
            result = call(name, tuple(known for known, _ in parts), None)
            function = registry.lookup(name)
            assert function is not None
            if function.python is None:
                raise Unknown
            return result, partial(_call, function, [f for _, f in parts], result.type)


def _cast(inner: Computation, target: SqlType, row: Row) -> LiteralValue:
    value = inner(row)
    if value is None:
        return None
    found = converted(value, target)
    if found is None:
        raise Unknown
    return found


def _call(function: Function, args: list[Computation], result: SqlType, row: Row) -> LiteralValue:
    values = [f(row) for f in args]
    try:
        return registry.evaluate(function, values, result)
    except (ArithmeticError, ValueError, TypeError, AssertionError, KeyError, AttributeError):
        raise Unknown from None  # also of a date that Python cannot hold: it comes as a text


class Condition:
    """A condition of which only some columns are known: whether it may be true."""

    def __init__(self, term: Expr, env: Env, known: frozenset[int]) -> None:
        self._test = _possible(term, env, known)

    def may_hold(self, row: Row) -> bool:
        """False only if the condition is certainly not true for the known columns, whatever the others are."""
        return self._test(row)


def _possible(term: Expr, env: Env, known: frozenset[int]) -> Callable[[Row], bool]:
    if isinstance(term, Call) and term.function in ("and", "or"):
        tests = [_possible(a, env, known) for a in term.args]
        if term.function == "and":
            return lambda row: all(test(row) for test in tests)
        return lambda row: any(test(row) for test in tests)
    if not columns_of(term) <= known:
        return lambda row: True
    try:
        compute = computation(term, env)
    except Unknown:
        return lambda row: True

    def test(row: Row) -> bool:
        try:
            return compute(row) is True
        except Unknown:
            return True

    return test


def decided_by(term: Expr, known: frozenset[int]) -> frozenset[int]:
    """The columns that a condition is tested on when only `known` ones are: those of its parts that read no others."""
    if isinstance(term, Call) and term.function in ("and", "or"):
        return frozenset(uid for a in term.args for uid in decided_by(a, known))
    read = columns_of(term)
    return read if read <= known else frozenset()
