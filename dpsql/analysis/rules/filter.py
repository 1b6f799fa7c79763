"""Filter (WHERE, ON of an inner join).

Claim: stability, keys, frequencies and ids are those of the input.
Why: the predicate is a total function of one row, so a row is kept or dropped whatever the other rows are; the rows
    that differ after the filter are a part of those that differed before. [tight]
When it would be false: a predicate that reads other rows (a subquery, a window) or that can fail; neither can be bound.
Tested by: tests/property/test_stability.py
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.analysis.facts import Facts
from dpsql.analysis.values import evaluate
from dpsql.plan.nodes import Filter


def filter_(node: Filter, below: Facts) -> Facts:
    """Facts of the rows that satisfy the predicate."""
    evaluate(node.predicate, below.env)
    return replace(below, rule="filter", note="")
