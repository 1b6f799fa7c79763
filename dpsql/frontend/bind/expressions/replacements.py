"""What functions of other databases, and those with no private form, are to be replaced by: the help of DP105."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from dpsql.core.ir.step_count import take
from dpsql.diagnostics.diagnostic import ForCustodian
from dpsql.frontend.text.lexer import tokens

LISTED: Final = "the SQL reference lists the accepted functions and operators"
_LONGEST: Final = 60
"""Characters of an argument that a repair repeats."""
_FORMAT = "write  strftime(x, '%Y-%m')"
_VALUE = "write the value itself, or pass it as a parameter"
_SHIFT = "write  x + INTERVAL 7 DAY"
FROM_JSON: Final = ForCustodian(
    "declare its values as columns, in the policy:  profile_city: {from: \"profile ->> '$.city'\", type: varchar}"
)
_BUCKETS = "write  CAST(floor(x / 100) AS INTEGER)"

INSTEAD: Final[dict[str, str]] = {
    "date_format": _FORMAT,
    "format_date": _FORMAT,
    "to_char": _FORMAT,
    "getdate": _VALUE,
    "sysdate": _VALUE,
    "dateadd": _SHIFT,
    "date_sub": "write  x - INTERVAL 7 DAY",
    "age": "of dates, write  EXTRACT(YEAR FROM age(x, y))",
    "regexp_extract_all": "write  regexp_extract(x, '…')  for the first",
    "histogram": f"{_BUCKETS}  and group by it",
    "total": "write  SUM(x)",
    **dict.fromkeys(("json_extract", "json_extract_string", "json_value", "json_query", "get_json_object"), FROM_JSON),
}
"""A function's name → how the same is written here."""

_WHICH: Final = {"format_date": 1, "dateadd": -1}
"""Where the argument stands that a repair calls x; elsewhere it is the first."""
_LETTER: Final = re.compile(r"\b[xy]\b")


def in_own_words(advice: str, name: str, call: str) -> str:
    """A repair with the arguments of the call in place of x and y. call: its text."""
    given = arguments(call)
    at = _WHICH.get(name, 0)
    own = dict(zip("xy", given[at:], strict=False))
    return _LETTER.sub(lambda found: own.get(found[0], found[0]), advice)


def arguments(call: str) -> list[str]:
    """The texts between a call's brackets; those that are long, or have comments, are left out."""
    depth, start, found = 0, 0, []
    for token in tokens(call):
        if token.text in ("(", "["):
            depth += 1
            start = token.end if depth == 1 else start
        elif depth == 1 and token.text in (",", ")"):
            found.append(call[start : token.start].strip())
            start = token.end
        if token.text in (")", "]"):
            depth -= 1
            if depth == 0:
                break
    return [text if 0 < len(text) <= _LONGEST and "--" not in text else "…" for text in found]


SPINE: Final = "for a list of days:  GROUP BY day  shows every day of the column's bounds, also those without rows"
"""Help for those who count up days to join rows to them."""

_PARTS = frozenset({"year", "quarter", "month", "week", "day", "hour", "minute", "second"})

_AGGREGATES = (
    "supported aggregates: COUNT, SUM, AVG, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, MEDIAN, QUANTILE_CONT, "
    "QUANTILE_DISC, MODE, COVAR_POP, CORR, REGR_SLOPE"
)
_ONE_ROW = "it would show a value of a single row; count the rows of each value with GROUP BY instead"


def of_aggregate(node: exp.AggFunc) -> str:
    """The help for an aggregate that is not supported."""
    match node:
        case exp.ArrayAgg() | exp.GroupConcat() | exp.First() | exp.Last():
            return _ONE_ROW
        case _:
            return _AGGREGATES


def needs_window(node: exp.Func, name: str) -> list[str]:
    """The help for a window function without a window."""
    if isinstance(node, (exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.NthValue)):
        return [
            f"over released numbers, write  {name}(…) OVER (ORDER BY …)",
            "over private rows, one person would decide the answer: use COUNT, SUM or AVG",
        ]
    return [f"write  {name}(…) OVER (ORDER BY …)"]


def of_column(node: exp.Expr, name: str, clause: str) -> list[str]:
    """Help for a column that does not exist: a text in the wrong quotes, or what it has to do with the SELECT list."""
    if is_compared(node):
        shown = name.replace("'", "''")
        return [f"if it is a text, not a name, write it in single quotes:  '{shown}'", *_of_listed(node, name, clause)]
    return _of_listed(node, name, clause)


def is_compared(node: exp.Expr) -> bool:
    """Whether a text may have been meant where a name stands."""
    return isinstance(node.parent, (exp.EQ, exp.NEQ, exp.In))


def _of_listed(node: exp.Expr, name: str, clause: str) -> list[str]:
    select = node.find_ancestor(exp.Select)
    take(0 if select is None else len(select.expressions))
    names = [] if select is None else [item.alias_or_name for item in select.expressions if item.alias_or_name]
    if name.lower() in _PARTS and isinstance(node.parent, exp.Func):
        return [f"the part of a date is a text:  date_trunc('{name.lower()}', x)"]
    if clause == "WHERE" and name.lower() in (n.lower() for n in names):
        return [f"{name} is computed in SELECT, after WHERE: repeat what it stands for, or filter it in HAVING"]
    return [f"names in SELECT: {', '.join(names[:12])}"] if clause == "ORDER BY" and names else []
