"""Keywords by the place they can stand at, and what aggregates mean: what completion offers and hover shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpsql.core.printing.windows import WINDOW_FUNCTIONS
from dpsql.frontend.aggregates.all_aggregates import AGGREGATES as KNOWN
from dpsql.frontend.text.lexer import RESERVED

_AFTER_WHERE = ("GROUP BY", "HAVING", "WINDOW", "QUALIFY", "ORDER BY", "LIMIT", "UNION ALL", "UNION", "INTERSECT",
                "EXCEPT")  # fmt: skip
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "NATURAL JOIN", "SEMI JOIN", "ANTI JOIN")
_OPERATORS = ("AND", "OR", "IN", "NOT IN", "IS NULL", "IS NOT NULL", "BETWEEN", "NOT BETWEEN", "LIKE", "NOT LIKE",
              "ILIKE", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")  # fmt: skip
_SORTING = ("ASC", "DESC", "NULLS FIRST", "NULLS LAST")

STARTS = ("SELECT", "WITH", "CREATE DP SUMMARY", "DROP DP SUMMARY", "CREATE DP COUNTER", "DROP DP COUNTER")
"""What a statement begins with."""

AFTER_OPERAND: Mapping[str, tuple[str, ...]] = {
    "SELECT": ("FROM", "AS", "OVER", "FILTER", *_OPERATORS),
    "FROM": ("WHERE", *_JOINS, "ON", "USING", "AS", *_AFTER_WHERE),
    "ON": (*_OPERATORS, "WHERE", *_JOINS, *_AFTER_WHERE),
    "WHERE": (*_OPERATORS, *_AFTER_WHERE),
    "GROUP": (*_AFTER_WHERE[1:],),
    "HAVING": (*_OPERATORS, *_AFTER_WHERE[2:]),
    "QUALIFY": (*_OPERATORS, *_AFTER_WHERE[4:]),
    "WINDOW": ("AS", *_AFTER_WHERE[3:]),
    "ORDER": (*_SORTING, "LIMIT", "OFFSET"),
    "LIMIT": ("OFFSET",),
    "WITH": ("AS", "SELECT"),
    "": _OPERATORS,
}
"""What may follow an expression or a table, by the clause it stands in; "" is within the brackets of a call."""

BEFORE_OPERAND: Mapping[str, tuple[str, ...]] = {
    "SELECT": ("DISTINCT", "WITH DIFFERENTIAL_PRIVACY OPTIONS ("),
    "GROUP": ("ALL", "ROLLUP (", "CUBE (", "GROUPING SETS ("),
    "ORDER": ("ALL",),
}
"""What may stand at the beginning of a clause, besides an expression."""

OPERANDS = ("CASE", "CAST(", "TRY_CAST(", "NOT", "NULL", "TRUE", "FALSE", "INTERVAL", "DATE", "TIMESTAMP", "EXISTS")
"""Words that an expression may begin with."""

CONTINUED: Mapping[str, tuple[str, ...]] = {
    "GROUP": ("BY",),
    "ORDER": ("BY",),
    "PARTITION": ("BY",),
    "NULLS": ("FIRST", "LAST"),
    "LEFT": ("JOIN", "OUTER JOIN", "SEMI JOIN", "ANTI JOIN"),
    "RIGHT": ("JOIN", "OUTER JOIN"),
    "FULL": ("JOIN", "OUTER JOIN"),
    "OUTER": ("JOIN",),
    "INNER": ("JOIN",),
    "CROSS": ("JOIN",),
    "SEMI": ("JOIN",),
    "ANTI": ("JOIN",),
    "NATURAL": ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"),
    "IS": ("NULL", "NOT NULL", "TRUE", "FALSE", "DISTINCT FROM", "NOT DISTINCT FROM"),
    "GROUPING": ("SETS (",),
    "UNION": ("ALL", "SELECT"),
    "ALL": ("SELECT",),
    "DIFFERENTIAL_PRIVACY": ("OPTIONS (",),
    "OVER": (),
    "FILTER": (),
    "LIMIT": (),
    "OFFSET": (),
}
"""Words that only certain words can follow."""

TYPES = ("BIGINT", "INTEGER", "SMALLINT", "DOUBLE", "DECIMAL(18, 2)", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP")
"""What CAST(x AS …) is written with."""

OPTIONS: Mapping[str, str] = {
    "epsilon": "Privacy loss of this query.",
    "delta": "Its δ.",
    "max_groups_contributed": "Most groups that one unit counts in.",
    "max_rows_contributed": "Most rows of one unit that count; AUTO: a quarter of ε finds it.",
    "min_privacy_units_per_group": "Groups with fewer units than this are not shown.",
    "group_selection_strategy": "PUBLIC_GROUPS or LAPLACE_THRESHOLD.",
}
"""What stands in OPTIONS (…) of a privacy clause."""


KEYWORDS = RESERVED | {"SELECT", "BY", "AS", "GROUPING", "ROWS", "RANGE", "NULLS", "FIRST", "LAST", "PARTITION"}
"""Words that are no names where they can be keywords."""


@dataclass(frozen=True, slots=True)
class AggregateWords:
    """An aggregate: how it is called and what it gives."""

    signature: str
    summary: str


AGGREGATES: Mapping[str, AggregateWords] = {
    **{name: AggregateWords(a.signature, a.summary) for name, a in KNOWN.items()},
    "median": AggregateWords("median(x)", "quantile_cont(x, 0.5): the value in the middle; a number needs bounds."),
    "dp_interval_low": AggregateWords(
        "dp_interval_low(n) → double", "Lower end of the confidence interval of a result."
    ),
    "dp_interval_high": AggregateWords(
        "dp_interval_high(n) → double", "Upper end of the confidence interval of a result."
    ),
}
"""Every aggregate that may be written, by name."""

_SHARE = KNOWN["quantile_disc"].summary

QUANTILES: Mapping[str, AggregateWords] = {
    "quantile": AggregateWords("quantile(x, p)", _SHARE),
    "approx_quantile": AggregateWords("approx_quantile(x, p)", _SHARE),
    "approx_quantiles": AggregateWords(
        "approx_quantiles(x, n)[OFFSET(i)]", "The quantile of x at i / n; x needs bounds."
    ),
    "percentile_cont": AggregateWords("percentile_cont(p) WITHIN GROUP (ORDER BY x)", _SHARE),
    "percentile_disc": AggregateWords("percentile_disc(p) WITHIN GROUP (ORDER BY x)", _SHARE),
}
"""Other spellings of quantiles, which are understood but not offered."""

WINDOWS: Mapping[str, AggregateWords] = {
    name: AggregateWords(f.signature, f.summary) for name, f in WINDOW_FUNCTIONS.items() if " " not in name
}
"""Functions that need OVER (…)."""

LAST_CLOSED = AggregateWords(
    "last_closed('table') → date",
    "The last closed day of a table that grows, as the ledger has it: not known here. A constant of each query, so "
    "that the text of a tile need not change.",
)
"""What asks the ledger."""
