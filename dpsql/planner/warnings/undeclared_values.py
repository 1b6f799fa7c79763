"""DP505: a column compared with a literal that the policy does not list for it.

Only the policy and the text of the query are looked at, never data, nor lists that are read from a table. The plan
stays as it is: groups leave out rows whose value is not listed, and a WHERE finds them if there are any.
"""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from dpsql.core.ir.expressions import Call, Column, Expr, Literal, LiteralValue
from dpsql.core.ir.nodes import (
    Aggregate,
    Filter,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    Scan,
    SetKind,
    SetOperation,
    inputs,
)
from dpsql.core.ir.short_text import constant
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import DomainValue, ValuesDomain
from dpsql.diagnostics.diagnostic import Diagnostic, Edit, Fix, Source

MOST_PER_LIST: Final = 5
"""Warnings of one IN list; the last of them says how many more there would be."""

MOST_SHOWN: Final = 8
"""Values of a domain that a help line lists."""

MOST_COMPARED: Final = 2000
"""Values of a domain among which a near one is looked for."""

MOST_LETTERS: Final = 60
"""Letters of a value that a message shows, and by which near values are found."""

Listed = dict[int, tuple[DomainValue, ...]]
"""Column number → the values that the policy lists for the table's column that it is."""


def undeclared_values(root: Node, policy: Policy, source: Source) -> tuple[Diagnostic, ...]:
    """The warnings of a bound query, in the order of the text.

    Conditions are searched through AND and OR alone: what is negated, or asked of anything but a plain column, may well
    be about other values than those listed.
    """
    nodes = _wanted(root)
    listed = _listed(nodes, policy)
    if not listed:
        return ()
    found = {d.span: d for node in nodes for e in _conditions(node) for d in _comparisons(e, listed, source)}
    return tuple(sorted(found.values(), key=lambda d: d.span.start if d.span is not None else 0))


def _wanted(root: Node) -> list[Node]:
    """The nodes whose rows make the answer, parents first; not those whose rows are taken away from others."""
    nodes, open_ = [], [root]
    while open_:
        node = open_.pop()
        nodes.append(node)
        match node:
            case Join(kind=JoinKind.ANTI, left=kept) | SetOperation(kind=SetKind.EXCEPT, left=kept):
                open_.append(kept)
            case _:
                open_.extend(inputs(node))
    return nodes


def _listed(nodes: Sequence[Node], policy: Policy) -> Listed:
    """Columns of tables with a listed domain, under all the numbers that they are handed on by, also through UNION."""
    known: Listed = {}
    items: tuple[Item, ...]
    for node in reversed(nodes):
        match node:
            case Scan(table=name, columns=columns):
                table = policy.table(name)
                for column in columns if table is not None else ():
                    declared = table.columns.get(column.name) if table is not None else None
                    if declared is not None and isinstance(declared.domain, ValuesDomain):
                        known[column.uid] = declared.domain.values
            case Project(items=items) | Aggregate(keys=items):
                for item in items:
                    if isinstance(item.expr, Column) and item.expr.uid in known:
                        known[item.column.uid] = known[item.expr.uid]
            case SetOperation(kind=kind, columns=pairs):
                for pair in pairs:
                    sides = [_values(pair.left, known)]
                    if kind is SetKind.UNION:  # else every row is one of the left input
                        sides.append(_values(pair.right, known))
                    if all(sides):
                        known[pair.column.uid] = tuple(dict.fromkeys(value for side in sides for value in side))
            case _:
                pass
    return known


def _values(expr: Expr, known: Listed) -> tuple[DomainValue, ...]:
    """The values that one side of a set operation has in a column; none: they are not known."""
    match expr:
        case Column(uid=uid):
            return known.get(uid, ())
        case Literal(value=bool() | int() | float() | Decimal() | str() | dt.date() as value):
            return (value,)
        case _:
            return ()


def _conditions(node: Node) -> Iterator[Expr]:
    """What the rows of a node, or those that an aggregate counts, have to satisfy."""
    match node:
        case Filter(predicate=predicate):
            yield predicate
        case Join(kind=kind, residual=residual) if residual is not None and kind is not JoinKind.ANTI:
            yield residual
        case Aggregate(calls=calls):
            yield from (call.filter for call in calls if call.filter is not None)
        case _:
            pass


def _comparisons(condition: Expr, listed: Listed, source: Source) -> Iterator[Diagnostic]:
    open_ = [condition]
    while open_:
        match open_.pop():
            case Call(function="and" | "or", args=args):
                open_.extend(args)
            case (
                Call(function="eq", args=(Column() as column, Literal() as literal))
                | Call(function="eq", args=(Literal() as literal, Column() as column))
            ):
                yield from _missing(column, [literal], listed, source)
            case Call(function="in", args=(Column() as column, *items)):
                yield from _missing(column, [i for i in items if isinstance(i, Literal)], listed, source)
            case _:
                pass


def _missing(column: Column, literals: Sequence[Literal], listed: Listed, source: Source) -> list[Diagnostic]:
    values = listed.get(column.uid, ())
    if not values:
        return []
    known = {_comparable(value) for value in values}
    kinds = {type(value) for value in known}
    missing = [
        literal
        for literal in literals
        if literal.span is not None
        and (value := _comparable(literal.value)) is not None
        and {type(value)} == kinds
        and value not in known
    ]
    found = [_warning(column, literal, values, source) for literal in missing[:MOST_PER_LIST]]
    if len(missing) > MOST_PER_LIST:
        more = f"{len(missing) - MOST_PER_LIST:,} more literals after this one are not listed either"
        found[-1] = replace(found[-1], notes=(*found[-1].notes, more))
    return found


def _comparable(value: LiteralValue) -> bool | str | float | dt.date | None:
    """Values so that what SQL holds to be equal is equal here. None: nothing is said of the value.

    Numbers are compared as floats: two that differ less than that count as the same, and there is no warning.
    """
    match value:
        case bool():
            return value
        case int() | float() | Decimal():
            try:
                return float(value)
            except OverflowError:
                return None
        case str() | dt.date():
            return value
        case _:
            return None


def _warning(column: Column, literal: Literal, values: tuple[DomainValue, ...], source: Source) -> Diagnostic:
    near = _near(literal.value, values)
    helps = (_choice(values),) if near is None else (f"did you mean {_shown(near)}?",)
    return Diagnostic(
        "DP505", f"{_shown(literal.value)} is not among the values that the policy lists for {column.name}",
        source, literal.span, "if the list is complete, no row has this value",
        (*helps, "custodian: if the column has this value, add it to the domain"),
        ("from the policy alone: no data were looked at",), "warning", _fix(literal, near, source),
    )  # fmt: skip


def _near(value: LiteralValue, values: Sequence[DomainValue]) -> str | None:
    """The listed text that looks most like a text that is not listed, upper and lower case apart."""
    if not isinstance(value, str):
        return None
    folded = {v[:MOST_LETTERS].casefold(): v for v in reversed(values[:MOST_COMPARED]) if isinstance(v, str)}
    close = difflib.get_close_matches(value[:MOST_LETTERS].casefold(), list(folded), n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def _choice(values: Sequence[DomainValue]) -> str:
    more = f", … ({len(values):,} in all)" if len(values) > MOST_SHOWN else ""
    return f"the policy lists {', '.join(_shown(v) for v in values[:MOST_SHOWN])}{more}"


def _shown(value: LiteralValue) -> str:
    """A value as SQL writes it; long texts are cut."""
    if isinstance(value, str) and len(value) > MOST_LETTERS:
        value = value[: MOST_LETTERS - 1] + "…"
    return constant(value)


def _fix(literal: Literal, near: str | None, source: Source) -> Fix | None:
    """The near value in place of the literal, where that is written as a plain text: a guess at what was meant."""
    span = literal.span
    if near is None or span is None or source.text[span.start : span.end] != constant(literal.value):
        return None
    return Fix(f"did you mean {_shown(near)}?", (Edit(span, constant(near)),))
