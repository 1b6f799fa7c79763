"""Filter (WHERE, ON of an inner join).

Claim: stability, keys, frequencies and ids are those of the input, and so is the number of replaced rows; a public
    size is lost. A column that must not be NULL is not; one whose values are listed has no others.
Why: the predicate is a total function of one row, so a row is kept or dropped whatever the other rows are; the rows
    that differ after the filter are a part of those that differed before. [tight]
When it would be false: a predicate that reads other rows (a subquery, a window) or that can fail; neither can be bound.
Tested by: tests/deep/analysis/test_stability.py

Example:
    >>> facts("SELECT * FROM sensors WHERE reading > 50")
    filter reading > 50   stability sensors=2 rows (1 replaced)
    └─ scan sensors       stability sensors=2 rows (1 replaced) · always 1,000 rows
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.core.analysis.distinct_values import listed_values
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Column, walk
from dpsql.core.ir.nodes import Filter


def filter_(node: Filter, below: Facts) -> Facts:
    """Facts of the rows that satisfy the predicate."""
    below.value(node.predicate)
    columns = dict(below.columns)
    for term in conjuncts(node.predicate):
        match term:
            case (
                Call(function="is_not_null", args=(Column(uid=uid),))
                | Call(function="not", args=(Call(function="is_null", args=(Column(uid=uid),)),))
            ):
                fact = columns[uid]
                columns[uid] = replace(fact, value=replace(fact.value, nullable=False))
        for column in {e.uid: e for e in walk(term) if isinstance(e, Column)}.values():
            fact, most = columns[column.uid], listed_values(term, column)
            if most is not None and (fact.values is None or most < fact.values):
                columns[column.uid] = replace(fact, values=most)
    return Facts(
        columns, stability=below.stability, ids=below.ids, keys=below.keys, frequency=below.frequency,
        padding=below.padding, by_id=below.by_id, hops=below.hops, promised_keys=below.promised_keys,
        replaced=below.replaced, replaced_rows=below.replaced_rows, rule="filter",
    )  # fmt: skip
