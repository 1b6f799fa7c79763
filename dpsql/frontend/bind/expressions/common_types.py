"""One type for several expressions, as CASE or a set operation needs it."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.ir.expressions import Cast, Expr, Literal
from dpsql.core.ir.types import Kind, SqlType
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.words import with_article
from dpsql.frontend.bind.expressions import literals
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.functions.function import SignatureError
from dpsql.functions.signature import common_type


def unified(binder: ExprBinder, exprs: Sequence[Expr], span: Span, where: str = "") -> tuple[SqlType, tuple[Expr, ...]]:
    """The type that holds all of the expressions, and each of them in it.

    A text literal is read as the type of the others; NULL fits everywhere. Raises Rejected DP106: no such type.
    """
    others = [e for e in exprs if not _is_text(e) and e.type.kind is not Kind.NULL]
    if others:
        exprs = [_read(e, others[0].type, span) if _is_text(e) else e for e in exprs]
    try:
        target = common_type([binder.value(e) for e in exprs])
    except SignatureError as error:
        raise reject("DP106", f"{where}{error}", span=span, help=["convert one of them with CAST(… AS …)"]) from None
    return target, tuple(_converted(e, target) for e in exprs)


def _is_text(expr: Expr) -> bool:
    return isinstance(expr, Literal) and isinstance(expr.value, str)


def _read(expr: Expr, target: SqlType, span: Span) -> Expr:
    assert isinstance(expr, Literal)
    assert isinstance(expr.value, str)
    found = literals.from_text(expr.value, target, expr.span)
    if found is None:
        raise reject(
            "DP106", f"{expr.value!r} is not {with_article(target)}", span=expr.span or span,
            help=["write a value of the same type as the others"],
        )  # fmt: skip
    return found


def _converted(expr: Expr, target: SqlType) -> Expr:
    if expr.type == target:
        return expr
    if expr.type.kind is Kind.NULL or (isinstance(expr, Literal) and expr.value is None):
        return Literal(None, target, expr.span)
    return Cast(expr, target, expr.span)
