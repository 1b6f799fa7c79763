"""Several values at once: x = ANY of a list, x <> ALL of one, (a, b) = (1, 2) → conditions on single values.

status = ANY('{new,paid}')        →  status IN ('new', 'paid')
name LIKE ANY (ARRAY['a%', $1])   →  name LIKE 'a%' OR name LIKE $1
(a, b) IN ((1, 2), (3, 4))        →  a = 1 AND b = 2 OR a = 3 AND b = 4
(a, b) < (1, 2)                   →  a < 1 OR a = 1 AND b < 2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from dpsql.core.ir.array_text import reader
from dpsql.core.ir.expressions import Expr, Literal, larger_than
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import BOOLEAN, VARCHAR, list_of
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject, too_large
from dpsql.frontend.bind.expressions import literals
from dpsql.frontend.bind.expressions.lengths_of_time import compared_lengths
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.expressions.unknown_values import Unknowns
from dpsql.frontend.bind.subqueries.membership import is_asked

if TYPE_CHECKING:
    from dpsql.frontend.bind.expressions.expressions import ExprBinder

MOST_LISTED = 10_000
"""Most values of a list that is given as one, as a parameter."""
_MOST_REPEATED = 1_000
"""Most nodes of all copies of what is compared with each value of a list, where that is written out."""
_NAMES = {
    exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge",
    exp.Like: "like", exp.ILike: "ilike",
}  # fmt: skip
ORDERED = {"lt": "lt", "le": "lt", "gt": "gt", "ge": "gt"}
"""Comparisons of order → how the places before the last compare."""
THREE_VALUED = "rows_three_valued"
"""Marks a comparison of rows in a dialect in which one with a NULL may be NULL. In DuckDB it is true or false."""


def list_behind(node: Any) -> tuple[bool, exp.Expr] | None:
    """Of ANY(…), SOME(…) and ALL(…) over a list: whether it is ALL, and the list; None of anything else."""
    found: tuple[bool, Any] | None = None
    if isinstance(node, (exp.Any, exp.All)):
        found = isinstance(node, exp.All), node.this
    elif isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
        word = str(node.this).upper()
        found = (word == "ALL", node.expressions[0]) if word in ("ANY", "SOME", "ALL") else None
    if found is None or not isinstance(found[1], exp.Expr):
        return None
    inner = found[1].unnest()
    return None if isinstance(inner, exp.Query) else (found[0], inner)


def compared(binder: ExprBinder, node: exp.Binary) -> Expr:
    """A comparison, also one with ANY or ALL of a list, or of rows with each other."""
    name, other = _NAMES[type(node)], node.args.get("expression")
    if (listed := list_behind(other)) is not None:
        return _with_list(binder, node, name, *listed)
    if isinstance(node.this, exp.Tuple) and isinstance(other, exp.Tuple):
        checked(node, binder.source, "this", "expression")
        left, right = _row(binder, node.this), _row(binder, other)
        return _rows(binder, node, name, left, right)
    if name in ("like", "ilike"):
        return binder.shaped(node)
    return compared_lengths(binder, node, name) or binder.shaped(node)


def _with_list(binder: ExprBinder, node: exp.Binary, name: str, every: bool, listed: exp.Expr) -> Expr:
    args, at = checked(node, binder.source, "this", "expression", "negate"), binder.span(node)
    subject = binder.bind(args["this"])
    items = _items(binder, listed, subject)
    negated = bool(args.get("negate"))
    if (name, every, negated) in (("eq", False, False), ("ne", True, False)):
        found = one_of(binder, subject, items, at)
        return binder.call("not", (found,), at) if every else found
    if not items:
        return Literal(every, BOOLEAN, at)
    _refuse_copies(subject, len(items), at)

    def one(item: Expr) -> Expr:
        found = binder.call(name, (subject, item), at)
        return binder.call("not", (found,), at) if negated else found

    return _joined(binder, "and" if every else "or", [one(item) for item in items], at)


def one_of(binder: ExprBinder, subject: Expr, items: Sequence[Expr], at: Span) -> Expr:
    """x IN (…), false of an empty list."""
    return binder.call("in", (subject, *items), at) if items else Literal(False, BOOLEAN, at)


def from_list(binder: ExprBinder, node: exp.In, listed: exp.Expr) -> Expr:
    """BigQuery's x IN UNNEST(list)."""
    subject = binder.bind(node.this)
    return one_of(binder, subject, _items(binder, listed.unnest(), subject), binder.span(node))


def row_in(binder: ExprBinder, node: exp.In, rows: Sequence[exp.Expr]) -> Expr:
    """(a, b) IN ((1, 2), (3, 4))."""
    left, at = _row(binder, node.this), binder.span(node)
    for part in left:
        _refuse_copies(part, len(rows), at)
    each = []
    for row in rows:
        if not isinstance(row, exp.Tuple):
            raise _uneven(len(left), 1, binder.span(row))
        each.append(_rows(binder, node, "eq", left, _row(binder, row)))
    return _joined(binder, "or", each, at)


def _rows(binder: ExprBinder, node: exp.Expr, name: str, left: Sequence[Expr], right: Sequence[Expr]) -> Expr:
    """Two rows compared.

    With a NULL in SQL's own three values: those of PostgreSQL and others. Where only true counts, DuckDB's rows mean
    the same; elsewhere there a NULL equals NULL, and orders of rows with a NULL are its own.
    """
    at = binder.span(node)
    if len(left) != len(right):
        raise _uneven(len(left), len(right), at)
    standard = node.meta.get(THREE_VALUED)
    if name in ("eq", "ne"):

        def same(pair: tuple[Expr, Expr]) -> Expr:
            plain = standard or (name == "eq" and is_asked(node) and not all(binder.value(x).nullable for x in pair))
            return binder.call("eq" if plain else "is_not_distinct_from", pair, at)

        found = _joined(binder, "and", [same(p) for p in zip(left, right, strict=True)], at)
        return found if name == "eq" else binder.call("not", (found,), at)
    if not standard:
        raise reject(
            "DP101", "rows are compared by = and IN only", span=at,
            help=["compare one by one:  a < 1 OR (a = 1 AND b < 2)"],
        )  # fmt: skip
    *before, last = zip(left, right, strict=True)
    found = binder.call(name, last, at)
    for pair in reversed(before):
        tie = binder.call("and", (binder.call("eq", pair, at), found), at)
        found = binder.call("or", (binder.call(ORDERED[name], pair, at), tie), at)
    return found


def _row(binder: ExprBinder, node: exp.Expr) -> list[Expr]:
    return [binder.bind(e) for e in checked(node, binder.source, "expressions")["expressions"]]


def _joined(binder: ExprBinder, word: str, parts: Sequence[Expr], at: Span) -> Expr:
    return parts[0] if len(parts) == 1 else binder.call(word, tuple(parts), at)


def _refuse_copies(subject: Expr, copies: int, at: Span) -> None:
    if larger_than(subject, max(_MOST_REPEATED // max(copies, 1), 1)):
        raise too_large("what is compared is too large", at, "compute it in a subquery, and compare its column")


def _uneven(left: int, right: int, at: Span) -> Rejected:
    return reject(
        "DP106",
        f"a row of {left} values is compared with one of {right}",
        span=at,
        help=["write as many on both sides"],
    )


# --- the list ---------------------------------------------------------------------------------------------------------


def _items(binder: ExprBinder, listed: exp.Expr, subject: Expr) -> list[Expr]:
    """What a list in a query holds: ARRAY[…], '{…}' or a parameter, each perhaps with its type."""
    if isinstance(listed, (exp.Cast, exp.TryCast)):
        to = checked(listed, binder.source, "this", "to", "safe")["to"]
        item = to.expressions[0] if to.this is exp.DataType.Type.ARRAY and len(to.expressions) == 1 else None
        if not isinstance(item, exp.DataType) or item.this is exp.DataType.Type.ARRAY:
            raise _no_list(binder.span(listed))
        convert = binder.converter(item, binder.span(listed))
        return [_plain(convert(e), e) for e in _items(binder, listed.this.unnest(), convert(Literal(None, VARCHAR)))]
    at = binder.span(listed)
    if isinstance(listed, exp.Array):
        args = checked(listed, binder.source, "expressions", "bracket_notation", "struct_name_inheritance")
        return [binder.bind(e) for e in args.get("expressions", ())]
    if isinstance(listed, exp.Literal) and listed.args.get("is_string"):
        return _of_text(str(listed.this), at)
    if isinstance(listed, (exp.Placeholder, exp.Parameter)):
        named = checked(listed, binder.source, "this")["this"]
        return _given(binder, named if isinstance(named, str) else named.name, subject, at)
    raise _no_list(at)


def _plain(cast: Expr, given: Expr) -> Expr:
    """A constant that a cast changes nothing of, without the cast; a text as the number that it is."""
    if not isinstance(given, Literal) or given.value is None:
        return cast
    if given.type == cast.type:
        return given
    read = literals.from_text(given.value, cast.type, given.span) if isinstance(given.value, str) else None
    return read if read is not None and read.type.kind is cast.type.kind else cast


def _given(binder: ExprBinder, name: str, subject: Expr, at: Span) -> list[Expr]:
    """The values of a parameter that is a list, or the text of one."""
    parameters = binder.parameters
    if isinstance(parameters.values, Unknowns):
        return [parameters.values.listed(name, list_of(subject.type), at)]
    value = parameters.value(name, at)
    if value is None:  # a list that is NULL compares as one of a NULL
        return [literals.from_python(None, at)]
    if isinstance(value, str):
        return _of_text(value, at)
    if not isinstance(value, (list, tuple)):
        raise _no_list(at)
    _refuse_long(len(value), at)
    return [literals.from_python(v, at) for v in value]


def _of_text(text: str, at: Span) -> list[Expr]:
    try:
        values = reader(str)(text)
    except (ValueError, IndexError):
        raise reject(
            "DP106", "the text is not a list", span=at, help=["write it as in  '{a,b}',  or  ARRAY['a', 'b']"]
        ) from None
    _refuse_long(len(values), at)
    if any(isinstance(v, list) for v in values):
        raise _no_list(at)
    return [literals.from_python(v, at) for v in values]


def _refuse_long(length: int, at: Span) -> None:
    take(length)
    if length > MOST_LISTED:
        raise too_large(f"the list has more than {MOST_LISTED:,} values", at, "pass long lists as a table")


def _no_list(at: Span) -> Rejected:
    return reject(
        "DP111", "ANY and ALL take a list of values, or a subquery", span=at,
        help=["write  x = ANY(ARRAY[1, 2]),  x = ANY('{1,2}'),  x = ANY($1)  or  x IN (1, 2)",
              "of a column that holds a list, write  list_contains(tags, x)"],
    )  # fmt: skip


Handler = Callable[["ExprBinder", Any], Expr]
COMPARISONS: dict[type[exp.Expr], Handler] = dict.fromkeys(
    (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), compared
)
