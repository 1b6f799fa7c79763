"""`*` and `t.*` of a SELECT list as columns, with what EXCLUDE leaves out and REPLACE and RENAME change."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dpsql.core.ir.expressions import Expr
from dpsql.core.ir.step_count import take
from dpsql.core.value_classes import replace
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.scope import BoundRelation, VisibleColumn
from dpsql.frontend.bind.subqueries.outer_query import relation_of
from dpsql.frontend.text.spans import span_of


def star_of(node: exp.Expr) -> exp.Star | None:
    """The `*` that an item of a SELECT list is, also behind the name of a relation."""
    found = node.this if isinstance(node, exp.Column) else node
    return found if isinstance(found, exp.Star) else None


def starred(node: exp.Expr, star: exp.Star, rows: BoundRelation, source: Source) -> list[tuple[str, exp.Expr | Expr]]:
    """The columns that a `*` stands for, with their names. Raises Rejected DP102 for a name that is none of them."""
    parts = checked(star, source, "except_", "replace", "rename")
    span = span_of(node, source.text)
    take(len(rows.entries))
    relation = relation_of(node, rows.entries, None, span)
    chosen = [e for e in rows.entries if _in_star(e, relation)]
    if not chosen:
        known = ", ".join(dict.fromkeys(e.relation for e in rows.entries if e.relation))
        raise reject(
            "DP102", f"no table is called {relation} here" if relation else "* without FROM", span=span,
            help=[f"this query reads: {known or 'no table'}"],
        )  # fmt: skip
    left_out = list(_named(parts.get("except_", ()), chosen, source))
    changed = {e: made.this for made in parts.get("replace", ()) for e in _named([made], chosen, source)}
    called = {e: new.alias for new in parts.get("rename", ()) for e in _named([new.this], chosen, source)}
    found: list[tuple[str, exp.Expr | Expr]] = []
    for entry in chosen:
        if entry not in left_out:
            found.append((called.get(entry, entry.name), changed.get(entry, replace(entry.column, span=span))))
    return found


def _named(names: list[exp.Expr], chosen: list[VisibleColumn], source: Source) -> Iterator[VisibleColumn]:
    """The columns that are meant by name; by `t.name` in EXCLUDE."""
    for name in names:
        wanted, table = name.alias_or_name.lower(), name.text("table").lower()
        meant = [e for e in chosen if e.name.lower() == wanted and table in ("", e.relation.lower())]
        if not meant:
            shown: Span = span_of(name, source.text)
            raise reject(
                "DP102", f"* has no column {name.alias_or_name}", span=shown,
                help=[f"it has: {', '.join(e.name for e in chosen[:20])}{', …' if len(chosen) > 20 else ''}"],
            )  # fmt: skip
        yield from meant


def _in_star(entry: VisibleColumn, relation: str | None) -> bool:
    return not entry.merged if relation is None else entry.relation.lower() == relation.lower()
