"""How a name is written in a query."""

from __future__ import annotations

import re

from dpsql.frontend.text.lexer import QUOTED_STRINGS, RESERVED

_SIMPLE = re.compile(r"[^\W\d]\w*\Z")
_UNREADABLE = RESERVED | {
    "ALTER", "CREATE", "DESCRIBE", "DROP", "FORCE", "GLOB", "GRANT", "IF", "INSERT", "INSTALL", "LAMBDA", "LOCK", "MAP",
    "NOTNULL", "PARTITIONED_BY", "REGEXP", "RETURNING", "REVOKE", "RLIKE", "ROLLBACK", "SUMMARIZE", "UNCACHE", "XOR",
}  # fmt: skip
"""Words that cannot be read as names unless they are quoted: besides the reserved ones those that begin statements and
operators."""
MARKS = {'"': '"', "`": "`", "[": "]"}
"""Signs that a quoted name begins with, and the one that ends it."""


def quoted(name: str, dialect: str = "duckdb", mark: str = "") -> str:
    """A name as it is written in a query of this dialect: quoted only where it has to be, or by `mark` if given."""
    if not mark and _SIMPLE.match(name) and name.upper() not in _UNREADABLE:
        return name
    mark = mark or ("`" if dialect in QUOTED_STRINGS else '"')
    close = MARKS[mark]
    return mark + name.replace(close, close * 2) + close
