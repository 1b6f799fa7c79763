"""Default deny for the arguments of syntax nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import reject
from dpsql.frontend.text.spans import code_of, span_of

_CLAUSES = {
    "sample": ("TABLESAMPLE", "ask about all rows: the noise already hides single ones"),
    "pivots": ("PIVOT", "use one aggregate for each value:  COUNT(*) FILTER (WHERE x = 'a')"),
    "qualify": ("QUALIFY", "filter the released rows in an outer SELECT … WHERE"),
    "windows": ("WINDOW", ""),
    "locks": ("FOR UPDATE", ""),
    "limit_options": ("PERCENT or WITH TIES", "limit the result to a number of rows"),
    "except_": ("* EXCLUDE", "name the columns you want"),
    "replace": ("* REPLACE", "name the columns you want"),
    "on": ("DISTINCT ON", "group by these columns instead"),
    "laterals": ("LATERAL", "join the table instead"),
    "hints": ("a hint for the database", ""),
    "field": ("IN without brackets", "write every value in brackets:  x IN (1, 2),  x IN (?, ?)"),
}
"""What people write, and what to write instead, for arguments whose names are sqlglot's own."""


class Arguments(dict[str, Any]):
    """The arguments of a syntax node that are set. Asking for one that is not is a syntax error (DP010).

    sqlglot lets some clauses stand empty, as in `x IN ()`; no handler needs to think of that.
    """

    __slots__ = ("_node", "_source")
    _node: exp.Expr
    _source: Source

    def __missing__(self, name: str) -> Any:
        raise reject(
            "DP010", f"syntax error: incomplete {as_written(self._node, self._source)}",
            span=span_of(self._node, self._source.text), help=["look for something missing at this place"],
        )  # fmt: skip


def checked(node: exp.Expr, source: Source, *allowed: str) -> Arguments:
    """The arguments of a syntax node that are set; refuses (DP101) any that is not in `allowed`."""
    given, surplus = Arguments(), []
    given._node, given._source = node, source
    for name, value in node.args.items():
        if value:
            given[name] = value
            if name not in allowed:
                surplus.append(name)
    if surplus:
        surplus.sort()
        named = [_CLAUSES.get(name) or (_called(name, node, source), "") for name in surplus]
        what, repair = ", ".join(clause for clause, _ in named), next((r for _, r in named if r), "leave it out")
        culprit = given[surplus[0]]
        culprit = culprit[0] if isinstance(culprit, list) else culprit
        at = culprit if isinstance(culprit, exp.Expr) else node
        raise reject(
            "DP101", f"{what} is outside the accepted SQL", span=span_of(at, source.text), label="not supported here",
            help=[repair],
        )  # fmt: skip
    return given


def _called(argument: str, node: exp.Expr, source: Source) -> str:
    """An argument by the words of SQL that it has, else what it stands in."""
    words = argument.rstrip("_").upper().replace("_", " ")
    if re.search(rf"\b{words}\b", code_of(source.text).upper()):
        return words
    return f"another argument of {as_written(node, source)}"


def as_written(node: exp.Expr, source: Source) -> str:
    """What a node is called in the text: by its word where that is written, a function by its name, else its text."""
    span = span_of(node, source.text)
    text = source.text[span.start : span.end]
    called = re.match(r"(\w+)\s*\(", text)
    if called is not None:
        return called[1].upper()
    names = (
        node.sql_names() if isinstance(node, exp.Func) else [re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__)]
    )
    written = code_of(source.text).upper()
    found = (name.upper() for name in names if re.search(rf"\b{re.escape(name.upper())}\b", written))
    short = " ".join(text.split())
    return next(found, short if len(short) <= _LONGEST else f"{short[:_LONGEST]}…")


_LONGEST = 40


def column_names(nodes: Sequence[exp.Expr], source: Source) -> tuple[str, ...]:
    """The names in a list such as `AS t(a, b)`; refuses (DP101) anything but names, as `t(a integer)`."""
    for node in nodes:
        if not isinstance(node, exp.Identifier):
            raise reject(
                "DP101", "a list of column names holds names only", span=span_of(node, source.text),
                help=["leave the types out:  AS t(a, b)"],
            )  # fmt: skip
    return tuple(node.name for node in nodes)
