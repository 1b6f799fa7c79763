"""What expressions mean, handed in by whoever knows the functions: the core asks, and knows none.

*Claim.* No price and no limit rests on an answer of these. *Why.* What is priced is an integer that a form bounds, by
constants of the plan that the price is made of; keys, frequencies and ids are those of bare columns; what is printed of
a call passes the gate. An answer chooses the type that a column of the waist is cast to, the keys and clips that are
offered, and, of a condition of constants alone that nothing can fulfil, that nothing is read. *When it would be false.*
A rule that takes the ends, or that a value is never NULL, of an expression for a limit. A type that does not hold its
values may make a statement fail (E3), and a sum that is no whole number is refused (`Integers.of`): types stand among
what is trusted in docs/explanation/guarantee.md. *Tested by* tests/core/values/test_meaning.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dpsql.core.ir.expressions import Expr
from dpsql.core.ir.types import SqlType
from dpsql.core.values.value import Args, Value
from dpsql.diagnostics.diagnostic import Span

Env = Mapping[int, Value]
"""Column number → what is known of the column."""


class Meaning(Protocol):
    """What functions make of values."""

    def evaluate(self, expr: Expr, env: Env) -> Value:
        """What is known of an expression. Raises Rejected DP106 if a function's arguments do not fit."""
        ...

    def call(self, name: str, values: tuple[Value, ...], span: Span | None, expr: Expr | None = None) -> Value:
        """What is known of a call. expr: the call, for messages. Raises Rejected DP105, DP106."""
        ...

    def cast(self, arg: Value, target: SqlType) -> Value:
        """What is known of a value of another type."""
        ...

    def first_name(self, name: str) -> str:
        """The name that spellings of a function go by."""
        ...

    def compared_as(self, args: Args) -> SqlType | None:
        """The type in which spellings compare values; None where they leave that to the engine."""
        ...


class _Handed:
    """What was handed in."""

    meaning: Meaning


def hand_in(meaning: Meaning) -> None:
    """Called once, where functions are first imported (dpsql/functions)."""
    _Handed.meaning = meaning


def meaning() -> Meaning:
    """What was handed in."""
    return _Handed.meaning


def evaluate(expr: Expr, env: Env) -> Value:
    """See `Meaning.evaluate`."""
    return _Handed.meaning.evaluate(expr, env)


def call(name: str, values: tuple[Value, ...], span: Span | None, expr: Expr | None = None) -> Value:
    """See `Meaning.call`."""
    return _Handed.meaning.call(name, values, span, expr)
