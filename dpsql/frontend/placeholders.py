"""The parameters that a query asks for."""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.parse import parse

_MARKS = re.compile(r"[?$@:%]")


def placeholders(text: str, dialect: str = "duckdb") -> frozenset[str] | None:
    """Names of a query's parameters, as values are given for them: `lo` of `$lo`, `1` of `$1` and of the first `?`.

    None: the text cannot be read as a query.
    """
    if _MARKS.search(text) is None:
        return frozenset()
    try:
        tree = parse(Source(text), dialect).tree
    except Rejected:
        return None
    return frozenset(
        node.this.name if isinstance(node, exp.Parameter) else str(node.this)
        for node in tree.find_all(exp.Parameter, exp.Placeholder)
        if not isinstance(node.parent, exp.Parameter)  # `@@x` is one parameter
    )
