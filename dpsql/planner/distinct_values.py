"""How many different values an expression seems to have, whatever the rows are: the planner's V.

A guess: no privacy rests on it, the emitted SQL counts no more than V (`core/printing/forms/few_values.py`). What is
guessed too low is missing from answers, so nothing is guessed from promises: a declared domain, bounds or
`nullable: false`.

A column of a type has the type's values; a condition that every row satisfies leaves a column those that it lists, or
whole numbers up to an end. Whole numbers lie in the range that their type or CLIP keeps them in. CASE and the like give
a value of one of their branches. Any function of exact values, being one, gives no more values than its arguments have
combinations, each place where a column stands counted for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from dpsql.core.analysis.facts import Columns, Facts
from dpsql.core.analysis.stored_columns import stored_columns
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, columns_of, larger_than
from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.ir.nodes import (
    Aggregate,
    Filter,
    GroupKeys,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    Release,
    SetKind,
    SetOperation,
    output_columns,
)
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import Tagged
from dpsql.core.values.value import Value
from dpsql.functions.function import null_if_any_is_null
from dpsql.functions.registry import lookup

_NOT_STRICT = frozenset({"and", "or", "list_contains"})
"""`TRUE OR NULL` is TRUE, and a list may hold NULL or not."""
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "in", "is_not_null"})
LARGEST = 200
"""Nodes of an expression up to which its parts are looked at."""
MOST = 2**20
"""Larger numbers count as not known: no limit on contributions is above them."""


def most_values(expr: Expr, rows: Tagged[Facts], condition: Expr | None = None) -> int | None:
    """The most different values of an expression over these rows; None if it is not known to be a small number.

    condition: what else is true of the rows.
    """
    found = _Images().of(expr, rows, condition)
    return None if found is None or found > MOST else found


def listed_values(term: Expr, column: Column) -> int | None:
    """How many values a condition that lists them leaves to a column; None if it does not."""
    match term:
        case Call(function="and", args=args):
            return _least(*(listed_values(a, column) for a in args))
        case Call(function="or", args=args):
            parts = [listed_values(a, column) for a in args]
            return sum(p for p in parts if p is not None) if None not in parts else None
        case Call(function="is_null", args=(x,)) if x == column:
            return 0
        case Call(function="in", args=(x, *items)) if x == column:
            return _constants(items, column)
        case Call(function="eq" | "is_not_distinct_from", args=(a, b)) if column in (a, b):
            return _constants([b if a == column else a], column)
    return None


def _constants(items: Sequence[Expr], column: Column) -> int | None:
    """The literals among them, NULL not counted; None unless each equals one value of the column at most."""
    if not column.type.one_form or not all(isinstance(i, Literal) for i in items):
        return None
    found = [i for i in items if isinstance(i, Literal) and i.value is not None]
    same = all(i.type == column.type or i.type.kind is column.type.kind is Kind.INTEGER for i in found)
    return len({i.value for i in found}) if same else None


def most_rows_of_an_id(rows: Tagged[Facts], domains: bool = False) -> int | None:
    """How many of these rows an id seems to have at most, by the values of the other columns of a key that holds it.

    Of a FULL join on the id, which is a UNION of two joins by now, it has rows of one of the two. domains: columns have
    no values but those that the policy lists, which need not be so.
    """
    seem, best, images = functions_of_the_id(rows), _rows_of_full_join(rows, domains), _Images(domains)
    columns = {c.uid: c for c in output_columns(rows.node)}
    for key in sorted(rows.fact.keys, key=sorted):
        if not key & rows.fact.ids:
            continue
        values = list[int | None]()
        for uid in sorted(key - seem):
            most = images.of(columns[uid], rows, None) if uid in columns else None
            values.append(None if most is None else most + _seems_null(columns[uid], rows))
        best = _least(best, _product(values))
    return None if best is None or best > MOST else max(1, best)


def _rows_of_full_join(rows: Tagged[Facts], domains: bool) -> int | None:
    """How many rows an id seems to have of those that a FULL join gives, if they are that."""
    match rows.node:
        case GroupKeys() | Filter() | Project():
            return _rows_of_full_join(rows.inputs[0], domains)
        case Join(kind=kind) if kind.filters or (kind is JoinKind.LEFT and rows.inputs[1].fact.one_row_per_id):
            return _rows_of_full_join(rows.inputs[0], domains) if _joins_ids_alone(rows) else None
        case SetOperation(kind=SetKind.UNION, left=Join(kind=JoinKind.LEFT), right=Join(kind=JoinKind.ANTI)):
            padded, alone = rows.inputs
            pairs = zip(padded.inputs, alone.inputs[::-1], strict=True)
            same = all(fingerprint(a.node, numbered=True) == fingerprint(b.node, numbered=True) for a, b in pairs)
            if same and all(map(_joins_ids_alone, rows.inputs)):
                each = [most_rows_of_an_id(side, domains) for side in rows.inputs]
                return None if None in each else max(n for n in each if n is not None)
    return None


def _joins_ids_alone(rows: Tagged[Facts]) -> bool:
    """Whether a join asks for nothing but equal ids."""
    assert isinstance(rows.node, Join)
    left, right = (side.fact.ids for side in rows.inputs)
    pairs = [(e.left, e.right) for e in rows.node.equalities]
    return rows.node.residual is None and all(
        isinstance(a, Column) and a.uid in left and isinstance(b, Column) and b.uid in right for a, b in pairs
    )


def _seems_null(column: Column, rows: Tagged[Facts]) -> bool:
    """Whether a column may be NULL: not if it never is, or if a comparison leaves these rows out."""
    if not rows.fact.columns[column.uid].value.nullable:
        return False
    match rows.node:
        case Filter(predicate=predicate):
            terms = [t for t in conjuncts(predicate) if isinstance(t, Call) and t.function in _COMPARISONS]
            return not any(column in t.args for t in terms) and _seems_null(column, rows.inputs[0])
        case Project(items=items) | GroupKeys(items=items) if any(i.column == column for i in items):
            behind = [i.expr for i in items if i.column == column and isinstance(i.expr, Column)]
            return not behind or _seems_null(behind[0], rows.inputs[0])
    (below, *others) = rows.inputs or (rows,)
    return bool(others) or column.uid not in below.fact.columns or below is rows or _seems_null(column, below)


class _Images:
    """How many values expressions have over relations. Each column is followed down once.

    domains: whether declared ones count.
    """

    def __init__(self, domains: bool = False) -> None:
        self._domains = domains
        self._columns: dict[tuple[Node, int], int | None] = {}

    def of(self, expr: Expr, rows: Tagged[Facts], condition: Expr | None) -> int | None:
        """Over these rows, of which this is true besides."""
        if larger_than(expr, LARGEST):
            return _held(rows.fact.value(expr))
        return self._image(expr, rows, [] if condition is None else conjuncts(condition))

    def _image(self, expr: Expr, rows: Tagged[Facts], terms: Sequence[Expr]) -> int | None:
        facts = rows.fact
        match expr:
            case Literal(value=value):
                return int(value is not None)
            case Column():
                return _least(self._column(expr, rows), *(_left(t, expr, facts) for t in terms))
            case Cast(arg=arg):
                return _least(self._image(arg, rows, terms), _held(facts.value(expr)))
            case Call(function="case" | "if", args=args):
                # Conditions stand before their values; a last one without condition is ELSE.
                branches = [self._image(a, rows, terms) for a in [*args[1::2], *args[-1:]]]
                return _least(_sum(branches), _held(facts.value(expr)))
            case Call(function="nullif", args=(arg, _)):
                return self._image(arg, rows, terms)
            case Call(function="coalesce" | "greatest" | "least", args=args):
                return _least(_sum([self._image(a, rows, terms) for a in args]), _held(facts.value(expr)))
            case Call(type=type_) if type_.kind is Kind.DOUBLE:
                return None
            case Call(function=name, args=args):
                known = _held(facts.value(expr))
                parts = [(self._image(a, rows, terms), int(not strict(name) and _may_be_null(a, facts))) for a in args]
                return _least(known, _product([None if n is None else n + null for n, null in parts]))

    def _column(self, column: Column, rows: Tagged[Facts]) -> int | None:
        place = rows.node, column.uid
        if place not in self._columns:
            domain = rows.fact.columns[column.uid].value.domain if self._domains else None
            listed = None if domain is None else len(domain.values)
            self._columns[place] = _least(listed, _held(rows.fact.value(column)), self._below(column, rows))
        return self._columns[place]

    def _below(self, column: Column, rows: Tagged[Facts]) -> int | None:
        """By what the column is made of, and by what keeps rows away."""
        items: tuple[Item, ...] = ()
        match rows.node:
            case SetOperation():
                return None
            case Filter(predicate=predicate):
                below = rows.inputs[0]
                left = (_left(t, column, below.fact) for t in conjuncts(predicate))
                return _least(self._column(column, below), *left)
            case Aggregate(keys=keys, calls=calls):
                for call in calls:
                    if call.column == column and call.function in ("min", "max") and call.arg is not None:
                        return self.of(call.arg, rows.inputs[0], call.filter)
                items = keys
            case Project(items=items) | GroupKeys(items=items):
                pass
        for item in items:
            if item.column == column:
                return self.of(item.expr, rows.inputs[0], None)
        passed = [each for each in rows.inputs if column.uid in each.fact.columns]
        return self._column(column, passed[0]) if passed else None


def _left(term: Expr, column: Column, facts: Facts) -> int | None:
    """How many values a condition leaves to a column, by listing them, or by the end that they begin with."""
    match term:
        case Call(function="le" | "lt" as name, args=(Column() as compared, Literal(value=int(most)))) if (
            compared == column and column.type.kind is Kind.INTEGER
        ):
            least = facts.value(column).interval.lo
            return None if least is None else max(0, most - (name == "lt") - int(-(-least // 1)) + 1)
    return listed_values(term, column)


def strict(name: str) -> bool:
    """Whether a function is NULL wherever one of its arguments is: not all are of which NULL may come of NULL."""
    function = lookup(name)
    return function is not None and function.nullable is null_if_any_is_null and function.name not in _NOT_STRICT


def _may_be_null(expr: Expr, facts: Facts) -> bool:
    """Whether NULL is one more argument: of columns always, because `nullable: false` is a promise."""
    return bool(columns_of(expr)) or facts.value(expr).nullable


def _held(value: Value) -> int | None:
    """How many values the type has, or the range that values of it are kept in."""
    match value.type.kind:
        case Kind.BOOLEAN:
            return 2
        case Kind.INTEGER if value.range.lo is not None and value.range.hi is not None:
            return max(0, int(value.range.hi // 1) - int(-(-value.range.lo // 1)) + 1)
        case _:
            return None


def _least(*found: int | None) -> int | None:
    return min((n for n in found if n is not None), default=None)


def _sum(found: Sequence[int | None]) -> int | None:
    return None if None in found else sum(n for n in found if n is not None)


def _product(found: Sequence[int | None]) -> int | None:
    return None if None in found else prod(n for n in found if n is not None)


def functions_of_the_id(rows: Tagged[Facts]) -> Columns:
    """The columns that seem to be functions of the id, the proven ones among them: an id that has one value of each
    key is in one group.

    A guess, too. What is proven is `Facts.by_id`, of columns that are stored, or made by one aggregate per id; of what
    is computed from them it is guessed that it is one value, and the release enforces it: an id counts for less where
    it is in more groups, and of private groups it keeps that many (`BoundContributions.groups`).
    """
    found = set(rows.fact.by_id)
    if not rows.fact.ids or isinstance(rows.node, SetOperation | Release):
        return frozenset(found)
    below = [functions_of_the_id(each) for each in rows.inputs]
    match rows.node:
        case Project(items=items):
            found |= _computed(items, below[0])
        case Aggregate(keys=keys, calls=calls):
            found |= _computed(keys, below[0])
            if {k.column.uid for k in keys} <= found:
                found |= {c.column.uid for c in calls}
        case Join(kind=kind, residual=residual, equalities=equalities):
            together = residual is None and all(columns_of(e.left) <= below[0] for e in equalities)
            padded = kind is not JoinKind.INNER and not together  # some rows of an id, and not others
            for side, known in [*zip(rows.inputs, below, strict=True)][: 1 if padded else 2]:
                stored = frozenset[int]() if side.fact.ids else stored_columns(side.node)
                alike = bool(stored) and stored <= rows.fact.by_id  # all found the same one
                found |= side.fact.columns.keys() if alike else known
        case GroupKeys(items=items):
            found |= below[0] | _computed(items, below[0])
        case _:
            found = found.union(*below)
    return frozenset(found & rows.fact.columns.keys())


def _computed(items: Sequence[Item], below: Columns) -> set[int]:
    return {item.column.uid for item in items if columns_of(item.expr) <= below}
