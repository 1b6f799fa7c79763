"""Relational nodes of the plan: immutable, each output column has a number that is unique in the whole plan.

`bind` makes Scan … Limit from SQL. The rewrites replace every Aggregate over private rows by a Release whose input
ends in GroupKeys and BoundContributions; after that, everything above a Release reads public numbers only.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from fractions import Fraction
from typing import Any

from dpsql.core.ir.components import Component, KeySource, ValueSum
from dpsql.core.ir.expressions import Column, Expr, LiteralValue
from dpsql.core.ir.periods import ReadPeriods
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.slice_sets import SliceSet
from dpsql.core.value_classes import Placed, value
from dpsql.diagnostics.diagnostic import Span


@value(frozen=True, slots=True)
class Item:
    """`expr AS column`."""

    column: Column
    expr: Expr


@value(frozen=True, slots=True)
class Scan(Placed):
    """A table of the policy, read once; `columns` are all its declared columns. `alias` is for messages only.

    periods: of a growing table what is read of it; None: of any other one, or before a rewrite has said it.
    """

    table: str
    columns: tuple[Column, ...]
    periods: ReadPeriods | None
    alias: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)


@value(frozen=True, slots=True)
class Values(Placed):
    """Rows written in the query: public. A SELECT without FROM reads one row without columns.

    Without rows it stands for a relation that has none whatever the data hold, and is not read.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[LiteralValue, ...], ...]
    span: Span | None = field(default=None, compare=False)


@value(frozen=True, slots=True)
class Filter(Placed):
    """Rows of `input` for which `predicate` is true."""

    input: Node
    predicate: Expr
    span: Span | None = field(default=None, compare=False)


@value(frozen=True, slots=True)
class Project(Placed):
    """One output row per input row, with exactly these columns."""

    input: Node
    items: tuple[Item, ...]
    span: Span | None = field(default=None, compare=False)


class JoinKind(Enum):
    """How unmatched rows are treated. A RIGHT join is bound as a LEFT one with its sides exchanged."""

    INNER = "inner"
    CROSS = "cross"
    LEFT = "left"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"

    def __init__(self, name: str) -> None:
        self.filters = name in ("semi", "anti")  # whether the right side only decides which left rows stay


@value(frozen=True, slots=True)
class Equality:
    """One `left = right` of a join condition; each side reads columns of its own input only. NULL never matches."""

    left: Expr
    right: Expr


@value(frozen=True, slots=True)
class Join(Placed):
    """Pairs of rows that satisfy all equalities and the residual predicate. Output: left columns, then right ones.

    LEFT and FULL also give rows without a partner, padded with NULL; SEMI and ANTI give left rows with or without one.
    `scalar`: the right side is a scalar subquery, so what it aggregates is released even below another aggregate.
    `narrowed`: an outer join whose padded rows count nothing; all left groups are shown.
    """

    kind: JoinKind
    left: Node
    right: Node
    equalities: tuple[Equality, ...] = ()
    residual: Expr | None = None
    span: Span | None = field(default=None, compare=False)
    scalar: bool = False
    narrowed: bool = False


class SetKind(Enum):
    """Which rows of two inputs a set operation gives."""

    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"


@value(frozen=True, slots=True)
class SetColumn:
    """One output column of a set operation, and what it is on either side (both of the column's type)."""

    column: Column
    left: Expr
    right: Expr


@value(frozen=True, slots=True)
class SetOperation(Placed):
    """Rows of both inputs by position of `columns`; without `all`, duplicates are removed (NULL equals NULL)."""

    kind: SetKind
    all: bool
    left: Node
    right: Node
    columns: tuple[SetColumn, ...]
    span: Span | None = field(default=None, compare=False)


@value(frozen=True, slots=True)
class Unnest(Placed):
    """One row per element of a list: the input's columns and `column`. Only the first `most` elements are used.

    A row whose list is NULL or empty disappears.
    """

    input: Node
    list: Expr
    most: int
    column: Column
    span: Span | None = field(default=None, compare=False)


@value(frozen=True, slots=True)
class AggregateCall:
    """An aggregate as written: `function` is its name in `dpsql/frontend/aggregates`; arg None is COUNT(*).

    `summed`: the integers that a sum of DOUBLEs over private rows is made of, where the aggregate stays private. Of a
    sum whose column is a HUGEINT: their exact total is the aggregate's value, in units of its grid, 0 for no row.
    per_group: what one id may add to one group: rows of a count, ends of a sum's total. by_row: each row of a sum
    weighs what it weighs in a COUNT(*). end: `low` or `high` for that end of its interval. second: the x of
    `corr(y, x)`. p: the share of values up to a quantile; descending: 1 - p was written. written: its name in the text.
    """

    function: str
    arg: Expr | None
    column: Column
    distinct: bool = False
    filter: Expr | None = None
    span: Span | None = field(default=None, compare=False)
    summed: ValueSum | None = None
    per_group: tuple[Fraction, Fraction] | None = None
    end: str = ""
    p: Fraction | None = None
    second: Expr | None = None
    descending: bool = False
    by_row: bool = False
    written: str = field(default="", compare=False)


@value(frozen=True, slots=True)
class Aggregate(Placed):
    """GROUP BY `keys` with `calls`, as bound. Without keys: one row. Without calls: DISTINCT keys.

    `inner`: over private rows it stays an ordinary private operator instead of a release: `keep_private` decides.
    """

    input: Node
    keys: tuple[Item, ...]
    calls: tuple[AggregateCall, ...]
    span: Span | None = field(default=None, compare=False)
    inner: bool = False


@value(frozen=True, slots=True)
class SortKey:
    """One ORDER BY term."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = False


@value(frozen=True, slots=True)
class Sort(Placed):
    """Rows in order; only above releases."""

    input: Node
    keys: tuple[SortKey, ...]
    span: Span | None = field(default=None, compare=False)


@value(frozen=True, slots=True)
class Frame:
    """ROWS or RANGE BETWEEN start AND end; None is UNBOUNDED, negative is PRECEDING, 0 is CURRENT ROW."""

    unit: str
    start: int | None
    end: int | None


@value(frozen=True, slots=True)
class WindowCall:
    """A window function as written, over the rows of its input."""

    function: str
    args: tuple[Expr, ...]
    column: Column
    partition: tuple[Expr, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame: Frame | None = None
    span: Span | None = field(default=None, compare=False)


@value(frozen=True, slots=True)
class Window(Placed):
    """The input's rows with one more column per call; only above releases."""

    input: Node
    calls: tuple[WindowCall, ...]
    span: Span | None = field(default=None, compare=False)


@value(frozen=True, slots=True)
class Limit(Placed):
    """The first `count` rows (None: all) after `offset`; only above releases."""

    input: Node
    count: int | None
    offset: int = 0
    span: Span | None = field(default=None, compare=False)


# --- nodes that only the rewrites make -----------------------------------------------------------------------------


@value(frozen=True, slots=True)
class Truncate(Placed):
    """Makes a frequency true: of the rows that agree on `columns` only `rows` stay, chosen by a salted hash of the row.

    `drop`: a key with more than `rows` rows loses all of them instead. Rows with a NULL among `columns` stay all: they
    match nothing under `=`.
    """

    input: Node
    columns: tuple[Column, ...]
    rows: int
    drop: bool = False


@value(frozen=True, slots=True)
class GroupKeys(Placed):
    """Adds the group columns to each row. `sources` None: private keys (threshold). Else rows outside are dropped.

    within: with private keys, their public lists, one per column, too long together to be shown. Rows outside: too.
    """

    input: Node
    items: tuple[Item, ...]
    sources: tuple[KeySource, ...] | None
    within: tuple[KeySource, ...] = ()


@value(frozen=True, slots=True)
class BoundContributions(Placed):
    """Limits what one id contributes to the release above. Also drops rows whose id is NULL.

    keys: the release's group columns.
    rows: C, the most rows of an id that count in full, over all groups; or None.
    per_group, groups: M and G; with truncate_groups only the id's first G groups in salted-hash order are kept
        (private keys), else contributions are scaled down. Either `rows`, or `per_group` and `groups`, is given;
        `groups` beside `rows` with truncate_groups or few_groups only. Neither, if each component of the release has a
        limit `of_unit` of its own, or counts ids in at most `groups` groups.
    few_groups: of the groups that are shown, no id can have more than `groups`, so their number needs no scaling.
    spare_rows, spare_groups: no id seems, or is promised, to be above this limit on rows, or on groups. For readers and
        intervals alone.
    """

    input: Node
    id: Column
    keys: tuple[Column, ...]
    rows: int | None = None
    per_group: int | None = None
    groups: int | None = None
    truncate_groups: bool = False
    few_groups: bool = False
    spare_rows: bool = field(default=False, compare=False)
    spare_groups: bool = field(default=False, compare=False)

    @property
    def one_group(self) -> bool:
        """Whether each id has rows in one group at most."""
        return not self.keys or (self.few_groups and self.groups == 1)


@value(frozen=True, slots=True)
class Release(Placed):
    """The only node at which noise is added. Its rows are public: one per key, with `keys` and `outputs` columns.
    threshold: index of the component that decides which private keys are shown; None when all keys are public.
    min_units: declared minimum of units per private key. slices: of a set a row counts in the first that it satisfies.
    """

    input: Node
    keys: tuple[Column, ...]
    components: tuple[Component, ...]
    outputs: tuple[Output, ...]
    threshold: int | None = None
    min_units: int = 1
    span: Span | None = field(default=None, compare=False)
    slices: tuple[SliceSet, ...] = ()


Node = (
    Scan | Values | Filter | Project | Join | SetOperation | Unnest | Truncate | Aggregate | Window | Sort | Limit
    | GroupKeys | BoundContributions | Release
)  # fmt: skip


_PAIRS = (Join, SetOperation)
ONE_INPUT = frozenset(
    {Filter, Project, Unnest, Truncate, Aggregate, Window, Sort, Limit, GroupKeys, BoundContributions, Release}
)


def inputs(node: Node) -> tuple[Node, ...]:
    """Direct inputs, left to right."""
    over: Any = node
    if type(node) in ONE_INPUT:  # asked for each node of each walk: a set answers sooner than `isinstance`
        return (over.input,)
    return (over.left, over.right) if isinstance(node, _PAIRS) else ()


def made_columns(node: Node) -> tuple[Column, ...]:
    """The columns that are a node's own: no input has them."""
    match node:
        case Scan(columns=columns) | Values(columns=columns):
            return columns
        case Project(items=items) | GroupKeys(items=items):
            return tuple([item.column for item in items])
        case SetOperation(columns=set_columns):
            return tuple([c.column for c in set_columns])
        case Unnest(column=column):
            return (column,)
        case Window(calls=windows):
            return tuple([w.column for w in windows])
        case Aggregate(keys=keys, calls=calls):
            return (*[k.column for k in keys], *[c.column for c in calls])
        case Release(keys=key_columns, outputs=outputs):
            return (*key_columns, *[o.column for o in outputs])
        case Join() | Filter() | Truncate() | Sort() | Limit() | BoundContributions():
            return ()


def output_columns(node: Node) -> tuple[Column, ...]:
    """The columns a node's rows have, in order."""
    match node:
        case Join(kind=kind, left=left, right=right):
            return output_columns(left) if kind.filters else output_columns(left) + output_columns(right)
        case Unnest(input=child) | Window(input=child) | GroupKeys(input=child):
            return output_columns(child) + made_columns(node)
        case Filter() | Truncate() | Sort() | Limit() | BoundContributions():
            return output_columns(node.input)
    return made_columns(node)


def keyed_by(node: Release) -> GroupKeys:
    """The node that gives a release its group columns."""
    below = node.input.input if isinstance(node.input, BoundContributions) else node.input
    assert isinstance(below, GroupKeys)
    return below


def key_sources(node: Release) -> tuple[KeySource, ...] | None:
    """The public key lists of a release; None if its keys are private, () if it has none."""
    return keyed_by(node).sources
