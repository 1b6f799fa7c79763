"""The query around a subquery: which of its columns the subquery may read, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.nodes import Node
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bind.scope import VisibleColumn, find, has, require_schema


@dataclass(slots=True)
class Outer:
    """Names of the query around a subquery; names of the subquery's own tables come first.

    parent: the query around that one. exists: the subquery's SELECT list is not looked at. lateral: it is a query of
        FROM, and its SELECT list may read the row, too.
    direct: False below the subquery's own FROM, WITH and UNION, from where no outer row can be seen.
    rows: what the subquery's own FROM gives. grouped: the subquery aggregates. limited: it has a LIMIT.
    terms: the conditions of the subquery's WHERE that read columns of `entries`; binding it fills them in.
    """

    entries: tuple[VisibleColumn, ...]
    parent: Outer | None = None
    exists: bool = False
    lateral: bool = False
    direct: bool = True
    rows: Node | None = None
    grouped: bool = False
    limited: bool = False
    terms: list[Expr] = field(default_factory=list)

    @property
    def columns(self) -> frozenset[int]:
        """Numbers of the outer query's columns."""
        return frozenset(e.column.uid for e in self.entries)

    def levels(self) -> Iterator[tuple[VisibleColumn, ...]]:
        """What this query sees, then the one around it, and so on."""
        yield self.entries
        if self.parent is not None:
            yield from self.parent.levels()

    def column(self, name: str, relation: str | None, clause: str, span: Span) -> Column | None:
        """The outer column that a name in `clause` of the subquery means; None if no query around it has one.

        Raises Rejected DP111 where it cannot be read from, DP104 if it is ambiguous.
        """
        if not decides(self.entries, name, relation):
            found = None if self.parent is None else self.parent.column(name, relation, clause, span)
            if found is not None:
                raise reject(
                    "DP111", f"{found.name} belongs to a query further out than the one around this subquery",
                    span=span, help=["write this condition into the query in between"],
                )  # fmt: skip
            return None
        column = find(self.entries, name, relation, span)
        if self.direct and (clause == "WHERE" or (clause == "SELECT" and (self.exists or self.lateral))):
            return column
        place = clause if self.direct else "FROM, WITH or UNION of the subquery"
        raise reject(
            "DP111", f"{column.name} of the outer query cannot be used in {place}", span=span,
            label="a subquery reads the outer query in its WHERE only",
            help=["compare with it in a term of the subquery's own WHERE, or join the tables instead"],
        )  # fmt: skip


def named(node: exp.Expr) -> str:
    """sqlglot's `name`, which calls four functions."""
    return node.args["this"] if type(node) is exp.Identifier else node.name


def relation_of(node: exp.Expr, entries: Sequence[VisibleColumn], outer: Outer | None, span: Span) -> str | None:
    """The table in front of a column or a star; None if none is written. Raises Rejected DP102: not of that schema.

    entries: what the query sees; outer: the query around it.
    """
    args = node.args
    if not (args.get("db") or args.get("catalog")):
        table = args.get("table")
        return named(table) if table else None
    parts = [args[part].name for part in ("catalog", "db", "table") if args.get(part)]
    if len(parts) > 1:
        levels = [entries, *(() if outer is None else outer.levels())]
        require_schema(levels, ".".join(parts[:-1]), parts[-1], span)
    return parts[-1] if parts else None


def decides(entries: Iterable[VisibleColumn], name: str, relation: str | None) -> bool:
    """True if a name belongs to this level of a query: the column is known here, or the table in front of it is."""
    known = tuple(entries)
    if relation is None:
        return has(known, name)
    return any(e.relation.lower() == relation.lower() for e in known)
