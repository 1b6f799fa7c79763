"""How often one side of a join can match a row of the other, and what a join does to keys and frequencies.

Claim: the number returned bounds, in every neighbouring database, the rows of this side that satisfy all equalities
    with one given row of the other side.
Why: it is a declared, derived or measured frequency of bare columns that the equalities compare, all of them or some,
    in the join's own comparison. A residual predicate only removes matches.
When it would be false: a frequency counted under another comparison (so both sides have the same type); a key of the
    join that is computed (several values of a column may give one); a frequency of padded columns counting NULL (the
    frequencies of this package are those of `=`, under which NULL matches nothing).
Proved by: Freq.most_sound, Freq.seekers_most, Freq.partners_most, Freq.left_most, Freq.inner_most
Tested by: tests/deep/core/analysis/test_operators.py, tests/core/analysis/test_join.py

Example:
    >>> facts("SELECT * FROM patients p JOIN visits v ON p.patient = v.patient", "keys")
    join inner patient = patient   stability patient=1 id · key (visit)
    ├─ scan patients               stability patient=1 id · key (patient)
    └─ scan visits                 stability patient=1 id · key (visit)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.facts import ColumnFact, Columns, Facts
from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.nodes import Aggregate, Equality, Filter, Item, Join, JoinKind, Node, Project, Scan, Values
from dpsql.core.ir.public_facts import FrequencyOf, RowsOf
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.numbers.cap import ONE, Cap, Finite, Unbounded, finite, larger, smaller, times
from dpsql.core.values.value import MISSING
from dpsql.diagnostics.diagnostic import Reason
from dpsql.diagnostics.errors import reject


def most_matches(node: Node, facts: Facts, ends: tuple[Expr, ...], join: Join, ctx: Context) -> Cap:
    """m: most rows of one side that can match a given row of the other.

    A number declared for a public table is noted as used, so that the run checks it against the table.
    """
    columns = frozenset(e.uid for e in ends if isinstance(e, Column))
    best = facts.most_rows(columns)  # of no columns: the side has one row
    if not facts.public:
        return best if best is not None else _unbounded(join, "a private table")
    source = _source(node, columns)
    if source is None:
        return best if best is not None else _unbounded(join, "a public relation")
    table, read = source.table, source.columns
    if isinstance(table, Values):
        return _written(table, read) if best is None else best
    if not ends:
        rows = ctx.public.number(RowsOf(table.table))
        return finite(rows) if rows is not None else _unbounded(join, table.table)
    chosen = tuple(sorted(c.name for c in table.columns if c.uid in read))
    if not chosen:
        return best if best is not None else _unbounded(join, table.table)
    request = FrequencyOf(table.table, chosen)
    if isinstance(best, Finite):
        if source.every_row:
            ctx.public.used[request] = int(best.value)
        return best
    measured = ctx.public.number(request)
    return _unbounded(join, table.table, chosen) if measured is None else finite(max(1, measured))


def _written(table: Values, columns: Columns) -> Cap:
    """Most rows written in the query that agree on these columns."""
    places = [i for i, c in enumerate(table.columns) if c.uid in columns]
    counted = Counter(tuple(row[i] for i in places) for row in table.rows if all(row[i] is not None for i in places))
    return finite(max(counted.values(), default=0))


@dataclass(frozen=True, slots=True)
class _Source:
    """The public table that each row of a side comes from, and columns that hold the values of the side's columns.

    every_row: no rows were merged, so that what is known of the side was said of the table.
    """

    table: Scan | Values
    columns: Columns
    every_row: bool = True


def _source(node: Node, columns: Columns) -> _Source | None:
    """The one public table a side consists of; its frequency of the columns found is at least the side's.

    Filtering takes rows away, a projection keeps them, and a group comes from one row of its keys or more.
    """
    match node:
        case Scan() | Values():
            return _Source(node, columns)
        case Filter(input=child):
            return _source(child, columns)
        case Project(input=child, items=items):
            return _source(child, _behind(items, columns))
        case Aggregate(input=child, keys=keys) if keys:
            found = _source(child, _behind(keys, columns))
            return None if found is None else replace(found, every_row=False)
        case _:
            return None


def _behind(items: tuple[Item, ...], columns: Columns) -> Columns:
    """The input's columns that these columns are, unchanged; without computed ones, more rows agree."""
    return frozenset(i.expr.uid for i in items if i.column.uid in columns and isinstance(i.expr, Column))


def _unbounded(node: Join, what: str, columns: tuple[str, ...] = ()) -> Unbounded:
    listed = ", ".join(columns)
    if columns:
        label = "each match copies the row"
        repair = (
            f"custodian: declare for {what}:  unique: [[{listed}]]   or   "
            f"max_frequency: [{{columns: [{listed}], rows: …, enforce: assume}}]"
        )
    elif node.equalities:
        label, repair = "the key of the other side is computed", f"join on a bare column of {what}:  ON … = column"
    else:
        label, repair = "every row matches", f"join on an equality with a column of {what}:  ON … = column"
    return Unbounded(
        (
            Reason(
                "DP210",
                f"nothing bounds how many rows of {what} match one row in this join",
                node.span,
                label,
                (repair,),
            ),
        )
    )


def same_type(pair: Equality, left: Facts, right: Facts) -> None:
    """Refuse keys whose comparison would convert one of them. Raises Rejected DP117."""
    a, b = left.type_of(pair.left), right.type_of(pair.right)
    span = pair.left.span or pair.right.span
    if a.kind is Kind.DOUBLE or b.kind is Kind.DOUBLE:
        raise reject(
            "DP117", "floating-point columns cannot be join keys", span=span,
            help=["join on an integer, text or date column"],
        )  # fmt: skip
    if not _exact_comparison(a, b):
        raise reject(
            "DP117", f"join keys have different types: {a} and {b}", span=span,
            label="how often a key repeats would depend on the conversion",
            help=["join columns of the same type, or change the type in the data"],
        )  # fmt: skip


def _exact_comparison(a: SqlType, b: SqlType) -> bool:
    """Whether comparing the two types converts neither in a way that merges values."""
    return a is b or a == b or (a.kind is Kind.INTEGER and b.kind is Kind.INTEGER)


# --- keys and frequencies ------------------------------------------------------------------------------------------


def keys_and_frequencies(
    node: Join, left: Facts, right: Facts, m_left: Cap, m_right: Cap
) -> tuple[frozenset[Columns], dict[Columns, Cap]]:
    """Keys and frequencies of the joined rows.

    A key of the input need not be one of the output, but its values repeat as often as a row of the other side matches.
    Padded rows: a left row without a partner stays once, so that its columns repeat max(1, m_right) times. A right
    column's NULLs repeat without bound, but agree with nothing under `=`; no key of the right side alone survives, and
    of a FULL join none at all (a left row and a right row of NULLs alone would be padded to the same row).
    """
    if node.kind.filters:
        return left.keys, dict(left.frequency)
    pads_right, pads_left = node.kind in (JoinKind.LEFT, JoinKind.FULL), node.kind is JoinKind.FULL
    by_left = larger(ONE, m_right) if pads_right else m_right
    by_right = larger(ONE, m_left) if pads_left else m_left
    frequency: dict[Columns, Cap] = {}
    for side, most, padded in ((left, by_left, pads_left), (right, by_right, pads_right)):
        for known, cap in [*side.frequency.items(), *((key, ONE) for key in side.keys)]:
            if padded and not known:
                continue  # padded rows agree on no column at all: how many there are is up to the other side
            new = times(cap, most)
            frequency[known] = smaller(frequency[known], new) if known in frequency else new
    if pads_left:
        return frozenset(), frequency
    take(len(left.keys) * len(right.keys))
    keys: set[Columns] = {a | b for a in left.keys for b in right.keys}
    if _at_most_one(m_right):
        keys |= left.keys
    if _at_most_one(m_left) and not pads_right:
        keys |= right.keys
    return frozenset(keys), frequency


def joined_columns(node: Join, left: Facts, right: Facts) -> Mapping[int, ColumnFact]:
    """Columns of the joined rows; those of a side that may be missing are nullable."""
    if node.kind.filters:
        return left.columns
    first = _padded(left.columns) if node.kind is JoinKind.FULL else left.columns
    second = _padded(right.columns) if node.kind in (JoinKind.LEFT, JoinKind.FULL) else right.columns
    return {**first, **second}


def _padded(columns: Mapping[int, ColumnFact]) -> dict[int, ColumnFact]:
    found = {}
    for uid, fact in columns.items():
        domain = fact.value.domain
        value = replace(
            fact.value, nullable=True, domain=None if domain is None else replace(domain, null=True), constant=MISSING
        )
        found[uid] = replace(fact, value=value)
    return found


def _at_most_one(cap: Cap) -> bool:
    return cap is ONE or (isinstance(cap, Finite) and cap.value <= 1)
