"""Operators over public rows only: window functions, ORDER BY and LIMIT, and GROUP BY that is plain SQL.

Claim: the result is public. ORDER BY and LIMIT keep the keys and frequencies of their input, a window function all of
    its facts; the keys of a GROUP BY are unique afterwards, NULL counted as a value. Over private rows windows, ORDER
    BY and LIMIT are refused, unless there is no row that ORDER BY or LIMIT could put first; windows among the rows of
    one id have a rule of their own (`window_of_unit`).
Why: no public row depends on private data, and rows that are taken away or put in order repeat no value more often.
    Which private rows come first, and what a window computes beside one, depends on everybody's rows.
When it would be false: private rows let through; facts of values kept for columns that are computed anew.
Proved by: Sound.derive_sound. Not proved: ORDER BY and LIMIT of public rows keep frequencies
Tested by: tests/core/analysis/test_public_rows.py, tests/core/printing/test_order_and_truncation.py

Example:
    >>> facts("SELECT * FROM icd10 ORDER BY chapter", "keys")
    order by chapter   public · key (code)
    └─ scan icd10      public · key (code)
    >>> facts("SELECT * FROM visits ORDER BY cost")
    refused, DP112: ORDER BY over private rows
"""

from __future__ import annotations

from dpsql.core.analysis.empty_relations import no_rows
from dpsql.core.analysis.facts import ColumnFact, Facts
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Aggregate, Limit, Sort, Window, output_columns
from dpsql.core.ir.short_text import identifier
from dpsql.core.values.value import Value, type_range
from dpsql.diagnostics.diagnostic import Mark
from dpsql.diagnostics.errors import reject


def grouped(node: Aggregate) -> Facts:
    """Facts of groups of public rows."""
    columns = {c.uid: _computed(c) for c in (*(k.column for k in node.keys), *(a.column for a in node.calls))}
    return Facts(columns, keys=frozenset({frozenset(k.column.uid for k in node.keys)}), rule="aggregate")


def window(node: Window, below: Facts) -> Facts:
    """Facts of rows with window functions beside them. Raises Rejected DP113 over private rows."""
    if not below.public:
        owner = next((c.name for c in output_columns(node.input) if c.uid in below.ids), None)
        among = []
        if owner is not None:
            rows = f"SELECT … OVER (PARTITION BY {identifier(owner)} …) AS w FROM …"
            among = [
                f"among the rows of each {below.units[0]}, and aggregate them:  SELECT COUNT(w) FROM ({rows}) AS t"
            ]
        raise reject(
            "DP113", "a window function over private rows", span=node.span,
            label="one person's row changes what is computed for others",
            help=[*among, "or aggregate first; windows over released numbers cost nothing"],
        )  # fmt: skip
    columns = {**below.columns, **{c.column.uid: _computed(c.column) for c in node.calls}}
    return Facts(columns, keys=below.keys, frequency=below.frequency, size=below.size, rule="window")


def order(node: Sort | Limit, below: Facts, what: str) -> Facts:
    """Facts of rows in order, or of the first of them. Raises Rejected DP112 over private rows, if any can be left.

    what: the clause, as users write it.
    """
    if not below.public and no_rows(node, (below,)):
        return Facts(
            below.columns, stability=below.stability, ids=below.ids, keys=below.keys, frequency=below.frequency,
            padding=below.padding, by_id=below.by_id, hops=below.hops, promised_keys=below.promised_keys,
            replaced=below.replaced, replaced_rows=below.replaced_rows, rule=what.lower(),
        )  # fmt: skip
    if not below.public:
        raise reject(
            "DP112", f"{what} over private rows", span=node.span,
            label="which rows come first depends on everybody's rows",
            help=["aggregate first, then sort or limit the result"],
            mark=Mark.ORDER_OF_ROWS if isinstance(node, Sort) else None,
        )  # fmt: skip
    return Facts(below.columns, keys=below.keys, frequency=below.frequency, rule=what.lower())


def _computed(column: Column) -> ColumnFact:
    return ColumnFact(Value(column.type, range=type_range(column.type)))
