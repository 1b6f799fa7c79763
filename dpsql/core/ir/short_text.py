"""Expressions and nodes as short text, for messages and EXPLAIN. Never parsed, never sent to an engine."""

from __future__ import annotations

import datetime as dt
import re

from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, LiteralValue

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "intdiv": "//", "mod": "%", "eq": "=", "ne": "<>", "lt": "<",
    "bits_and": "&", "bits_or": "|",
    "le": "<=", "gt": ">", "ge": ">=", "and": "AND", "or": "OR", "concat_op": "||", "like": "LIKE", "ilike": "ILIKE",
}  # fmt: skip


_NAME = re.compile(r"[^\W\d]\w*|\w+\(.*\)", re.DOTALL)
"""What stands as it is: names, and what an item without a name is called, `count(*)`."""
_WORDS = """all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create
default deferrable desc describe distinct do else end except false fetch for foreign from group having in initially
intersect into lambda lateral leading limit not null offset on only or order pivot placing primary qualify references
returning select show some summarize symmetric table then to trailing true union unique unpivot using variadic when
where window with"""
_RESERVED = frozenset(_WORDS.split())


def qualified(name: str) -> str:
    """A table's name with its schema, each part as a query has to write it."""
    return ".".join(map(identifier, name.split(".")))


def expression(expr: Expr) -> str:
    """One line, close to what was written; the clips that the plan added are left out."""
    match expr:
        case Column(name=name):
            return identifier(name)
        case Literal(value=value):
            return constant(value)
        case Cast(arg=arg, type=type_):
            return f"CAST({expression(arg)} AS {type_})"
        case Call(function="clip", args=(arg, *_), span=span) if isinstance(arg, Column) or span is None:
            return expression(arg)
        case Call(function=name, args=(a, b)) if name in _INFIX:
            return f"{operand(a)} {_INFIX[name]} {operand(b)}"
        case Call(
            function="not", args=(Call(function="is_not_distinct_from", args=(a, Literal(value=bool() as value))),)
        ):
            return f"{operand(a)} IS NOT {constant(value)}"
        case Call(function="is_not_distinct_from", args=(a, Literal(value=bool() as value))):
            return f"{operand(a)} IS {constant(value)}"
        case Call(function="not", args=(a,)):
            return f"NOT {operand(a)}"
        case Call(function="neg", args=(a,)):
            return f"-{operand(a)}"
        case Call(function="is_not_null", args=(a,)):
            return f"{operand(a)} IS NOT NULL"
        case Call(function="is_null", args=(a,)):
            return f"{operand(a)} IS NULL"
        case Call(function="date_shift", args=(a, Literal(value=int(n)), Literal(value=str(unit)))):
            return f"{operand(a)} {'-' if n < 0 else '+'} INTERVAL {abs(n)} {unit.upper()}"
        case Call(function="time_bucket", args=(a, Literal(value=int(n)), Literal(value=str(unit)))):
            return f"time_bucket(INTERVAL {n} {unit.upper()}, {expression(a)})"
        case Call(function="in", args=(a, *items)):
            return f"{operand(a)} IN ({', '.join(expression(i) for i in items)})"
        case Call(function="case", args=(Call() as when, then, x)) if beyond := _one_end(when, then, x):
            ends = f"{expression(then)}, AUTO" if beyond == "lt" else f"AUTO, {expression(then)}"
            return f"CLIP({expression(x)}, {ends})"
        case Call(function="case", args=parts) if len(parts) % 2 == 1:
            pairs = zip(parts[:-1:2], parts[1::2], strict=True)
            branches = " ".join(f"WHEN {expression(when)} THEN {expression(then)}" for when, then in pairs)
            return f"CASE {branches} ELSE {expression(parts[-1])} END"
        case Call(function=name, args=args):
            return f"{name}({', '.join(expression(a) for a in args)})"


def _one_end(when: Call, then: Expr, x: Expr) -> str:
    """lt, gt: that of the comparison by which the plan clips x at one end, as CLIP(x, 0, AUTO) says; else empty.

    Nobody wrote the comparison, so it has no place in the text.
    """
    compared = when.args[0] if when.function == "and" else when
    if not isinstance(compared, Call) or compared.span is not None or compared.args != (x, then):
        return ""
    return compared.function if compared.function in ("lt", "gt") else ""


def identifier(name: str) -> str:
    """A name as SQL reads it: in quotes where it would be a word of SQL, or no name."""
    if _NAME.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def constant(value: LiteralValue) -> str:
    """A constant, close to SQL's spelling."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case dt.datetime():
            return f"TIMESTAMP{'' if value.tzinfo is None else 'TZ'} '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value}'"
        case dt.timedelta():
            seconds = value.total_seconds()
            return f"INTERVAL {value.days} DAY" if seconds == value.days * 86_400 else f"INTERVAL {seconds:g} SECOND"
        case _:
            return str(value)


def symbol(function: str) -> str:
    """A registered function as it is written in SQL: `=` for eq, else its name."""
    return _INFIX.get(function, function)


def operand(expr: Expr) -> str:
    """An expression as it stands beside an operator: in brackets if it is one itself."""
    text = expression(expr)
    return f"({text})" if isinstance(expr, Call) and expr.function in _INFIX else text
