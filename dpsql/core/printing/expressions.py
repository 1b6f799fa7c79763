"""Plan → engine SQL. Printed from our nodes alone; every table fully qualified, every expression total.

`spell` prints an expression and derives its value facts in the same walk, because the spelling (execution types and
guards) depends on them. Relations without grouping flatten into one SELECT; anything else becomes a derived table.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count

from dpsql.core.analysis.expression_values import call
from dpsql.core.functions.cast import cast, spell_cast
from dpsql.core.functions.registry import REGISTRY, literal
from dpsql.core.functions.value import Value
from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, LiteralValue
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import HUGEINT, INTEGER, Kind, SqlType, integer_type_of
from dpsql.diagnostics.errors import reject, too_large
from dpsql.diagnostics.words import with_article

DIALECT = "duckdb"
MOST_TEXT = 50_000
"""Longest printed expression: guards repeat their argument, so nesting multiplies."""

MOST_PLACES = 38
"""Decimal places of the longest DECIMAL."""

TableNames = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Names:
    """How columns are printed and what is known of their values."""

    sql: Mapping[int, str]
    env: Mapping[int, Value]


@dataclass(slots=True)
class Aliases:
    """Short names for tables, unique in one statement."""

    tables: Iterator[int] = field(default_factory=lambda: count(1))

    def table(self) -> str:
        """The next table alias."""
        return f"t{next(self.tables)}"


def identifier(name: str) -> str:
    """A quoted identifier."""
    if "\0" in name:
        raise reject("DP106", "a name cannot contain a NUL character")
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A quoted string literal."""
    if "\0" in value:
        raise reject("DP106", "a text literal cannot contain a NUL character")
    if any("\ud800" <= c <= "\udfff" for c in value):  # half of a character: no engine takes it
        raise reject("DP106", "a text literal cannot contain half of a surrogate pair")
    return "'" + value.replace("'", "''") + "'"


def constant(value: LiteralValue, type_: SqlType) -> str:
    """A literal of exactly this value; typed where the bare spelling would mean another type."""
    match value:
        case None:
            return "NULL" if type_.kind is Kind.NULL else f"CAST(NULL AS {type_})"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if type_.kind is Kind.INTEGER:
            held = integer_type_of(value) or HUGEINT
            return str(value) if held == INTEGER and value >= 0 else f"CAST({value} AS {held})"
        case float() | int() if type_.kind is Kind.DOUBLE:
            number = float(value)
            if not math.isfinite(number):
                return f"CAST('{number}' AS DOUBLE)"
            return f"CAST({number!r} AS DOUBLE)"
        case int() | Decimal():
            held = type_ if type_.kind is Kind.DECIMAL else HUGEINT
            # With its zero before the point, a number of 38 places is one digit too long and would be read as a DOUBLE.
            quote = "'" if held.scale == MOST_PLACES else ""
            return f"CAST({quote}{Decimal(value):f}{quote} AS {held})"
        case str():
            return text(value) if type_.kind is Kind.VARCHAR else f"CAST({text(value)} AS {type_})"
        case bytes():
            return f"from_hex('{value.hex()}')"
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case dt.time():
            return f"TIME '{value.isoformat()}'"
        case dt.timedelta():
            return f"to_microseconds({value // dt.timedelta(microseconds=1)})"
        case _:
            raise reject("DP106", f"no literal for {with_article(type_)}")


def typed_constant(value: LiteralValue, type_: SqlType) -> str:
    """A literal of exactly this type: what is computed from it must not overflow the narrower one of its value."""
    if isinstance(value, int) and type_.kind is Kind.INTEGER and integer_type_of(value) != type_:
        return f"CAST({value} AS {type_})"
    return constant(value, type_)


def spell(expr: Expr, names: Names) -> tuple[str, Value]:
    """An expression as SQL, with what is known of its value."""
    match expr:
        case Column(uid=uid):
            return names.sql[uid], names.env[uid]
        case Literal(value=value, type=type_):
            return constant(value, type_), literal(value, type_)
        case Cast(arg=arg, type=target):
            inner, known = spell(arg, names)
            return spell_cast(inner, known, target), cast(known, target)
        case Call(function=name, args=args):
            spelled = [spell(a, names) for a in args]
            values = tuple(v for _, v in spelled)
            result = call(name, values, expr.span)
            if result.is_constant:
                held = typed_constant(result.constant, result.type)  # type: ignore[arg-type]
                take(1 + len(held) // 16, expr.span)
                return held, result
            printed = REGISTRY[name].spell[DIALECT]([s for s, _ in spelled], values, result)
            take(1 + len(args) + len(printed) // 16, expr.span)
            if len(printed) > MOST_TEXT:
                raise too_large(
                    "the expression is too large to be run", expr.span, "use the columns it is made of fewer times"
                )
            return f"({printed})", result


def condition(expr: Expr, names: Names) -> str:
    """A predicate."""
    return spell(expr, names)[0]
