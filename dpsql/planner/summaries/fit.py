"""Which sums over the cells of a summary's columns a release of a later query is, if it is any.

*Claim.* A release that fits has, for each of its keys and components, the integer that the sum of these weights over
the rows of the table gives, and the marginals tell that sum. *Why.* The release reads the relation that the marginals
read, through filters alone, and with the same limits; its filters, keys and arguments read columns of the summary, and
are computed on every class of their values: on classes of values that are not listed only if all that the query
compares them with lies outside of the class. A sum is told by marginals of k columns if what of it varies over more
columns at once is nothing. *When it would be false.* A wrong answer, not a less private one: if values of one class
were told apart by the query. *Tested by* tests/service/test_summaries.py.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from dpsql.core.ir.components import Component, ProductSum, RowCount, ValueSum
from dpsql.core.ir.contributions import Weighing
from dpsql.core.ir.expressions import Call, Column, Expr, Literal, LiteralValue, columns_of
from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.ir.nodes import (
    BoundContributions,
    Filter,
    Node,
    Project,
    Release,
    Scan,
    key_sources,
    keyed_by,
    output_columns,
)
from dpsql.core.ir.types import Kind
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.release.noisy import public_keys
from dpsql.core.values.value import Value
from dpsql.planner.batch.classes import constants_of, parts_by_column, unlisted_pieces
from dpsql.planner.batch.marginal_shares import residual
from dpsql.planner.batch.workload import MOST_CELLS, Marginal, Number, conjuncts, subsets
from dpsql.planner.group_keys.compute import Unknown, computation
from dpsql.planner.summaries.design import SummaryDesign

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_WEIGHTS = 50_000_000
"""Weights of all keys of a release together."""
_LARGEST = 1e11
"""Weights of one key together, so that floating-point numbers add them up well enough."""
_ELSEWHERE: Final = object()
"""A key that no row of a class has that is shown."""


class UnfitRelease(Exception):
    """Why a release is not answered by a summary, in words."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Component → for each key what is added up of a row, by the cell that it is in. A component that is public has
    none."""

    numbers: Mapping[int, tuple[Number, ...]]


def fit(measured: MeasuredRelease, design: SummaryDesign, marginal: Release, k: int) -> Fit:
    """How a release is computed of a summary. marginal: a release that measures the summary. Raises Unfit."""
    node = measured.node
    if node.threshold is not None or key_sources(node) is None:
        raise UnfitRelease("its groups are private")
    wanted = [i for i, m in enumerate(measured.measurements) if m.known is None]
    terms = [o.recipe.terms(node.components) for o in node.outputs]
    if any(t is None for t in terms):
        raise UnfitRelease("it asks for more than counts and sums")
    relation, filters = _relation(node, marginal)
    if _limits(node) != _limits(marginal):
        raise UnfitRelease("it limits rows otherwise")
    table = {column.uid: at for at, column in enumerate(output_columns(relation))}
    read = _Read(design, {design.places.index(table[uid]) if table[uid] in design.places else -1: uid for uid in table})
    keys = keyed_by(node)
    shown = list(public_keys(keys.sources or (), len(node.keys)))
    exprs = [item.expr for item in keys.items]
    every = [*filters, *exprs, *(e for i in wanted for e in node.components[i].expressions)]
    read.require(every, dict.fromkeys(table, design.statement))
    conditions = [*filters, *(c for i in wanted if (c := node.components[i].filter) is not None)]
    counted = list[Expr]()
    for component in (node.components[i] for i in wanted):
        if component.arg is not None:
            counted.append(_plain(component.arg))
            if isinstance(component, ValueSum | ProductSum):
                read.require_flat(component.arg)
    read.prepare(conditions, counted, exprs, shown)
    found: dict[int, tuple[Number, ...]] = {}
    for i in wanted:
        found[i] = tuple(_numbers(node.components[i], filters, exprs, shown, read, k))
    return Fit(found)


def _relation(node: Release, marginal: Release) -> tuple[Node, list[Expr]]:
    """What is filtered, and by what. Raises Unfit."""
    wanted = fingerprint(keyed_by(marginal).input, numbered=True)
    below, filters = keyed_by(node).input, list[Expr]()
    while fingerprint(below, numbered=True) != wanted:
        match below:
            case Filter(input=child, predicate=predicate):
                filters.append(predicate)
                below = child
            case Project(input=child, items=items) if all(
                isinstance(i.expr, Column) and i.expr.uid == i.column.uid for i in items
            ):
                below = child
            case _:
                raise UnfitRelease("it reads other rows than those of the table")
    assert isinstance(below, Scan)
    return below, filters


def _limits(node: Release) -> tuple[object, ...] | None:
    """What of an id's rows counts, whatever the groups are."""
    if not isinstance(node.input, BoundContributions):
        return None
    own = node.input
    if own.rows is None and own.groups == 1 and not own.keys:  # all rows: M of one group are C of all
        return own.id.name, own.per_group, own.truncate_groups
    return (own.id.name, own.rows, own.truncate_groups) if own.per_group is None else ("groups", own.per_group)


def _plain(argument: Expr) -> Expr:
    """What is NULL where the argument is: without clips."""
    while isinstance(argument, Call) and argument.function == "clip" and isinstance(argument.args[0], Column):
        argument = argument.args[0]
    return argument


def _unclipped(expr: Expr, ends: set[LiteralValue]) -> Expr:
    """The expression with columns in place of clipped ones; the ends of the clips are put into `ends`.

    Where nothing is compared between two neighbouring constants, ends among them, it makes no difference for a whole
    number which of what lies there it is.
    """
    match expr:
        case Call(function="clip", args=(Column() as column, Literal(value=int() as a), Literal(value=int() as b))):
            ends.update((a, b))
            return column
        case Call(args=args):
            return replace(expr, args=tuple(_unclipped(arg, ends) for arg in args))
    return expr


class _Read:
    """The columns of a summary as a query reads them, and an example of each class of their values."""

    def __init__(self, design: SummaryDesign, uids: Mapping[int, int]) -> None:
        """uids: place of a column → its number in the query."""
        self.design = design
        self.place = {uid: place for place, uid in uids.items() if place >= 0}
        self.env: dict[int, Value] = {uid: design.values[place] for uid, place in self.place.items()}
        self.examples: dict[int, list[Any]] = {}

    def require(self, exprs: Sequence[Expr], known: Mapping[int, object]) -> None:
        """Raises Unfit: a column is read that is not in the summary."""
        for expr in exprs:
            for uid in sorted(columns_of(expr)):
                if uid not in self.place:
                    raise UnfitRelease(f"it reads {_named(expr, uid)}, which is not in the summary" if uid in known
                                else "it computes with other columns")  # fmt: skip

    def require_flat(self, argument: Expr) -> None:
        """Raises Unfit: a column that is summed up takes several values within a class.

        All that is not listed has to be clipped to one value, class by class.
        """
        column = _plain(argument)
        if not isinstance(column, Column):
            return  # what is computed is looked at as conditions are
        classes = self.design.classes[self.place[column.uid]]
        if all(c.listed or c.example is None for c in classes.classes):
            return
        ends = [a.value for a in argument.args[1:] if isinstance(a, Literal)] if isinstance(argument, Call) else []
        whole = argument is not column and isinstance(argument, Call) and argument.args[0] is column
        values: list[Any] = sorted(c.example for c in classes.classes if c.listed and type(c.example) is int)
        if not whole or len(ends) != 2 or not values or ends != [values[0], values[-1]]:
            raise UnfitRelease(f"{classes.name} may have values that are not listed, and the query sums them up")
        if values != list(range(values[0], values[-1] + 1)):
            raise UnfitRelease(
                f"{classes.name} may have values between those that are listed, and the query sums them up"
            )

    def prepare(
        self, conditions: Sequence[Expr], arguments: Sequence[Expr], keys: Sequence[Expr],
        shown: Sequence[tuple[LiteralValue, ...]],
    ) -> None:  # fmt: skip
        """Find an example of each class of each column. Raises Unfit: the query tells values of one class apart."""
        read: dict[int, dict[Expr, None]] = {}
        for expr in (*conditions, *arguments, *(k for k in keys if not isinstance(k, Column))):
            for uid, part in parts_by_column(expr):
                read.setdefault(uid, {})[part] = None
        listed: dict[int, set[LiteralValue]] = {}
        for at, key in enumerate(keys):
            if isinstance(key, Column):
                listed.setdefault(key.uid, set()).update(row[at] for row in shown)
        for uid in {**read, **listed}:
            self.examples[uid] = self._examples(uid, list(read.get(uid, ())), listed.get(uid))

    def _examples(self, uid: int, own: list[Expr], keys: set[LiteralValue] | None) -> list[Any]:
        known, classes = self.env[uid], self.design.classes[self.place[uid]]
        found: list[Any] = [c.example if c.listed else _ELSEWHERE for c in classes.classes]
        if all(c.listed for c in classes.classes):
            return found
        values = {c.example for c in classes.classes if c.listed}
        ends = set[LiteralValue]()
        bare = [_unclipped(part, ends) for part in own]
        points = constants_of(bare, known) if own else set()
        points = points if points is None else points | ends
        if keys is not None and points is not None:
            points = points | {key for key in keys if key is not None}
        pieces = unlisted_pieces("c", known, values, points)
        if pieces is None:
            if own or (keys is not None and not keys <= values):
                raise UnfitRelease(
                    f"{classes.name} may have values that are not listed, and the query computes with it"
                )
            return found
        try:
            compute = [computation(part, self.env) for part in own]
            marks: dict[int, set[object]] = {}
            for piece in pieces:
                at = self._class_of(uid, piece.example)
                shown = piece.example if keys is not None and piece.example in keys else None
                result = tuple((type(r), r) for c in compute for r in [c({uid: piece.example})])
                marks.setdefault(at, set()).add((result, shown))
                found[at] = piece.example
        except Unknown:
            raise UnfitRelease(f"only the database can compute this of {classes.name}") from None
        if any(len(m) > 1 for m in marks.values()):
            raise UnfitRelease(f"it compares {classes.name} with values that are not listed")
        return found

    def _class_of(self, uid: int, value: LiteralValue) -> int:
        """The class of a value that is not listed."""
        known, classes = self.env[uid], self.design.classes[self.place[uid]].classes
        if value is None or known.type.kind is Kind.BOOLEAN:
            return next(i for i, c in enumerate(classes) if not c.listed and c.example is value)
        rest = [i for i, c in enumerate(classes) if not c.listed and c.example is not None]
        if known.type.kind is Kind.VARCHAR:
            return rest[0]
        values: list[Any] = sorted(c.example for c in classes if c.listed and c.example is not None)
        at = bisect(values, value)
        return next(i for i in rest if bisect(values, classes[i].example) == at)

    # --- arrays ----------------------------------------------------------------------------------------------------

    def axes(self, expr: Expr) -> tuple[int, ...]:
        """The numbers of the columns that an expression reads, in the order of their places."""
        return tuple(sorted(columns_of(expr), key=lambda uid: self.place[uid]))

    def shape(self, uids: Sequence[int]) -> tuple[int, ...]:
        return tuple(len(self.examples[uid]) for uid in uids)

    def cells(self, uids: Sequence[int]) -> Iterator[tuple[tuple[int, ...], dict[int, Any]]]:
        for cell in product(*(enumerate(self.examples[uid]) for uid in uids)):
            yield tuple(i for i, _ in cell), {uid: value for uid, (_, value) in zip(uids, cell, strict=True)}

    def evaluated(self, expr: Expr, weigh: Callable[[Any], float]) -> tuple[tuple[int, ...], NDArray[np.float64]]:
        """What `weigh` makes of an expression on each cell of its columns. Raises Unfit."""
        import numpy as np

        uids = self.axes(expr)
        if math.prod(self.shape(uids)) > MOST_CELLS:
            raise UnfitRelease("it combines too many values")
        found = np.zeros(self.shape(uids))
        try:
            compute = computation(expr, self.env)
            for at, row in self.cells(uids):
                if _ELSEWHERE not in row.values():
                    found[at] = weigh(compute(row))
        except Unknown:
            raise UnfitRelease("only the database can compute it") from None
        return uids, found


Part = tuple[tuple[int, ...], "NDArray[np.float64]"]
"""Numbers of columns, and an array with an axis for each."""


def _numbers(
    component: Component, filters: Sequence[Expr], keys: Sequence[Expr], shown: Sequence[tuple[LiteralValue, ...]],
    read: _Read, k: int,
) -> Iterator[Number]:  # fmt: skip
    factors = [
        read.evaluated(term, lambda v: float(v is True))
        for expr in (*filters, *(() if component.filter is None else (component.filter,)))
        for term in conjuncts(expr)
    ]
    factors += _argument(component, read)
    own = sorted({uid for uids, _ in factors for uid in uids} | {u for key in keys for u in columns_of(key)},
                 key=lambda uid: read.place[uid])  # fmt: skip
    shape = read.shape(own)
    if math.prod(shape) > MOST_CELLS or math.prod(shape) * len(shown) > _MOST_WEIGHTS:
        raise UnfitRelease("it combines too many values")
    whole = _product(factors, own, shape)
    masks = [_masks(key, {row[at] for row in shown}, read) for at, key in enumerate(keys)]
    for row in shown:
        weights = whole
        for (uids, by_key), value in zip(masks, row, strict=True):
            weights = weights * _spread(by_key[_told(value)], uids, own)
        columns: Marginal = tuple(read.place[uid] for uid in own)
        number = _narrowed(Number(columns, weights))
        _require_told(number, k, read.design)
        yield number


def _argument(component: Component, read: _Read) -> list[Part]:
    """What each row adds. Raises Unfit."""
    c = component
    if isinstance(c, RowCount) and c.contribution is Weighing.BY_ROW:
        return [] if c.arg is None else [read.evaluated(_plain(c.arg), lambda v: float(v is not None and v == v))]
    of_rows = isinstance(c, ValueSum) and c.contribution in (Weighing.ALONE, Weighing.BY_ROW)
    if not isinstance(c, ValueSum) or not of_rows or c.grid != 1 or c.center:
        raise UnfitRelease("it asks for more than counts and sums of listed whole numbers")

    def added(value: Any) -> float:
        if value is None:
            return 0.0
        if type(value) is not int or not c.lo <= value <= c.hi:
            raise UnfitRelease("it sums more than listed whole numbers")
        return float(value)

    return [read.evaluated(c.arg, added)]


def _product(factors: Sequence[Part], own: Sequence[int], shape: tuple[int, ...]) -> NDArray[np.float64]:
    import numpy as np

    found = np.ones(shape)
    for uids, values in factors:
        found = found * _spread(values, uids, own)
    return found


def _spread(values: NDArray[np.float64], uids: Sequence[int], own: Sequence[int]) -> NDArray[np.float64]:
    sizes = iter(values.shape)
    return values.reshape(tuple(next(sizes) if uid in uids else 1 for uid in own))


def _told(value: LiteralValue) -> object:
    """A key as it is told apart from others."""
    return type(value) is bool, value


def _masks(
    key: Expr, shown: set[LiteralValue], read: _Read
) -> tuple[tuple[int, ...], Mapping[object, NDArray[np.float64]]]:
    """For each key the cells whose rows have it."""
    import numpy as np

    if not isinstance(key, Literal) and not columns_of(key):
        raise UnfitRelease("a group key reads no column")
    uids = read.axes(key)
    found = {_told(value): np.zeros(read.shape(uids)) for value in shown}
    try:
        compute = computation(key, read.env)
        for at, row in read.cells(uids):
            if _ELSEWHERE not in row.values():
                mask = found.get(_told(compute(row)))
                if mask is not None:
                    mask[at] = 1.0
    except Unknown:
        raise UnfitRelease("only the database can compute its keys") from None
    return uids, found


def _narrowed(number: Number) -> Number:
    """Without the columns over which it does not vary: each of their values counts alike."""
    import numpy as np

    weights, columns = number.weights, number.columns
    for axis in reversed(range(len(columns))):
        first = np.take(weights, [0], axis=axis)
        if (weights == first).all():
            weights, columns = first.squeeze(axis), columns[:axis] + columns[axis + 1 :]
    return Number(columns, weights)


def _require_told(number: Number, k: int, design: SummaryDesign) -> None:
    """Raises Unfit: what marginals of k columns do not tell varies."""
    import numpy as np

    if float(np.abs(number.weights).sum()) > _LARGEST:
        raise UnfitRelease("its numbers are too large")
    for onto in subsets(number.columns) if len(number.columns) > k else ():
        if len(onto) <= k:
            continue
        # Of whole numbers an alternating sum over 2^|B| cells is not 0, and hence 1 or more.
        if float(np.abs(residual(number.weights, number.columns, onto)).max()) > 0.5 ** (len(onto) + 1):
            names = ", ".join(design.classes[place].name for place in onto)
            raise UnfitRelease(f"it couples {len(onto)} columns ({names}), and the summary has marginals of {k}")


def _named(expr: Expr, uid: int) -> str:
    from dpsql.core.ir.expressions import walk

    return next((c.name for c in walk(expr) if isinstance(c, Column) and c.uid == uid), "another column")
