"""Which relations a text reads by name and which names its WITH queries have, for rewriting compiled SQL by places.

Nothing is bound: a text that does not parse has no references, and its check says what is wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from dpsql.diagnostics.diagnostic import Span
from dpsql.frontend.parse import UNREADABLE, require_dialect, trees_of


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in a FROM clause: its parts, where they stand (alias apart), and whether an alias follows."""

    parts: tuple[str, ...]
    span: Span
    aliased: bool


@dataclass(frozen=True, slots=True)
class References:
    """tables: every name in a FROM clause, those of WITH queries included. queries: names of WITH queries. first: where
    the name of the outermost WITH clause's first query stands; None without such a clause. Each in order of places.
    """

    tables: tuple[Reference, ...] = ()
    queries: tuple[Reference, ...] = ()
    first: int | None = None


def references_in(text: str, dialect: str = "duckdb") -> References:
    """The names that a statement reads. Raises Rejected DP903 for an unknown dialect."""
    require_dialect(dialect)
    try:
        reader = sqlglot.Dialect.get_or_raise(dialect.lower())
        trees = [t for t in trees_of(reader.tokenize(text + "\n"), text, reader) if t is not None]
    except UNREADABLE:
        return References()
    tables: list[Reference] = []
    queries: list[Reference] = []
    for tree in trees:
        for node in tree.walk():
            if isinstance(node, exp.Table):
                found = _named(node.parts, bool(node.alias))
                tables += [] if found is None else [found]
            elif isinstance(node, exp.CTE):
                alias = node.args.get("alias")
                found = None if alias is None else _named([alias.this], True)
                queries += [] if found is None else [found]
    return References(tuple(sorted(tables, key=_place)), tuple(sorted(queries, key=_place)), _first(trees))


def _first(trees: list[exp.Expr]) -> int | None:
    clause = trees[0].args.get("with_") if len(trees) == 1 else None
    if clause is None or not clause.expressions:
        return None
    found = _named([clause.expressions[0].args["alias"].this], True)
    return None if found is None else found.span.start


def _place(reference: Reference) -> int:
    return reference.span.start


def _named(parts: list[exp.Expr], aliased: bool) -> Reference | None:
    """None for what is no name with a place: a table function, a subquery."""
    if not parts or not all(isinstance(part, exp.Identifier) for part in parts):
        return None
    metas = [part._meta for part in parts]
    if not all(meta and "start" in meta and "end" in meta for meta in metas):
        return None
    starts = [int(meta["start"]) for meta in metas if meta]
    ends = [int(meta["end"]) for meta in metas if meta]
    return Reference(tuple(part.name for part in parts), Span(min(starts), max(ends) + 1), aliased)
