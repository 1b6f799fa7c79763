"""Filter (WHERE, ON of an inner join).

Claim: stability, keys, frequencies and ids are those of the input, and so is the number of replaced rows; a public
    size is lost. A stored column that must not be NULL is not. Where a stored integer of a key equals a literal, the
    rest of the key is one; of n row numbers, n rows agree on the rest.
Why: the predicate is a total function of one row, so a row is kept or dropped whatever the other rows are; the rows
    that differ after the filter are a part of those that differed before. [tight] Rows that agree on the rest of a key
    have different numbers.
When it would be false: a predicate that reads other rows (a subquery, a window) or that can fail; neither can be bound.
    A number that may be NULL, were it kept: no comparison keeps it.
Proved by: Near.filter_stable, Sound.derive_sound, Freq.most_sound. Not proved: row numbers, NOT NULL, public sizes
Tested by: tests/deep/core/analysis/test_stability.py, tests/core/analysis/test_window_of_unit.py

Example:
    >>> facts("SELECT * FROM sensors WHERE reading > 50")
    filter reading > 50   stability sensors=2 rows (1 replaced)
    └─ scan sensors       stability sensors=2 rows (1 replaced) · always 1,000 rows
"""

from __future__ import annotations

from dpsql.core.analysis.facts import Columns, Facts
from dpsql.core.analysis.stored_columns import row_numbers, stored_columns
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.nodes import Filter, Node
from dpsql.core.ir.types import Kind
from dpsql.core.numbers.cap import finite, smaller
from dpsql.core.value_classes import replace


def filter_(node: Filter, below: Facts) -> Facts:
    """Facts of the rows that satisfy the predicate."""
    below.value(node.predicate)
    columns, keys, frequency = dict(below.columns), below.keys, dict(below.frequency)
    stored = stored_columns(node.input)
    for term in conjuncts(node.predicate):
        match term:
            case (
                Call(function="is_not_null", args=(Column(uid=uid),))
                | Call(function="not", args=(Call(function="is_null", args=(Column(uid=uid),)),))
            ) if uid in stored:
                fact = columns[uid]
                columns[uid] = replace(fact, value=replace(fact.value, nullable=False))
        uid, most = _least_integers(term, stored, node.input) if below.ids else (-1, None)
        for key in [key for key in keys if most is not None and uid in key]:
            rest, cap = key - {uid}, finite(most or 0)
            if most == 1:
                keys |= {rest}
            else:
                frequency[rest] = smaller(frequency[rest], cap) if rest in frequency else cap
    return Facts(
        columns, stability=below.stability, ids=below.ids, keys=keys, frequency=frequency, padding=below.padding,
        by_id=below.by_id, hops=below.hops, promised_keys=below.promised_keys,
        replaced=below.replaced, replaced_rows=below.replaced_rows, rule="filter",
    )  # fmt: skip


def _least_integers(term: Expr, stored: Columns, below: Node) -> tuple[int, int | None]:
    """The column that a term compares with a whole number, and how many values it leaves it; None if not known."""
    match term:
        case Call(function="eq", args=(Column(uid=uid, type=type_), Literal(value=int()))) if (
            type_.kind is Kind.INTEGER
        ):
            return uid, 1 if uid in stored or uid in row_numbers(below) else None
        case Call(function="le" | "lt" as name, args=(Column(uid=uid), Literal(value=int(most)))):
            found = most - (name == "lt")  # row numbers begin with 1
            return uid, found if found >= 1 and uid in row_numbers(below) else None
    return -1, None
