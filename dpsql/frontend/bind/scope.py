"""Which names mean which columns while a query is bound."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Node
from dpsql.core.ir.short_text import identifier
from dpsql.core.ir.step_count import take
from dpsql.core.value_classes import value
from dpsql.diagnostics.diagnostic import ForCustodian, Mark, Span
from dpsql.diagnostics.errors import Rejected, reject


@value(frozen=True, slots=True)
class VisibleColumn:
    """One visible column: `relation.name`.

    merged: hidden from unqualified look-up and from * (USING, NATURAL). also: a second name in lower case, or none. An
    empty `relation` is a column without a qualified name: an item of SELECT, or what USING makes of two columns.
    schemas: tells what may stand before `relation`, in lower case, where it is a table's own name.
    made: of a table's column that is made of the data's, what it is made of (`Derived.key`).
    called: the name in lower case.
    """

    relation: str
    name: str
    column: Column
    merged: bool = False
    also: str = ""
    schemas: Callable[[], frozenset[str]] = frozenset
    made: str = ""
    called: str = field(default="", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "called", self.name.lower())


@value(frozen=True, slots=True)
class BoundRelation:
    """A bound FROM item or query: its plan and the columns that names can reach."""

    node: Node
    entries: tuple[VisibleColumn, ...]

    def renamed(self, relation: str, alias: bool = True) -> BoundRelation:
        """The same rows under an alias: only unhidden columns stay reachable, and each has a name of its own.

        alias: False where that is the last part of a table's own name.
        """
        kept = [e for e in self.entries if not e.merged]
        names = _distinct([e.name for e in kept])
        if not alias and [(relation, n, False, _called(n)) for n in names] == [
            (e.relation, e.name, e.merged, e.also) for e in self.entries
        ]:
            return self
        schemas = [frozenset if alias else e.schemas for e in kept]
        entries = [
            VisibleColumn(relation, n, e.column, False, _called(n), within, e.made)
            for n, e, within in zip(names, kept, schemas, strict=True)
        ]
        return BoundRelation(self.node, tuple(entries))

    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(e.name for e in self.entries if not e.merged)


_CALL = re.compile(r"(\w+)\([^()]*\)")


def _called(name: str) -> str:
    """What PostgreSQL calls a column that a query within gives no name, and we `count(*)`: by its function alone."""
    found = _CALL.fullmatch(name)
    return "" if found is None else found[1].lower()


def _distinct(names: Sequence[str]) -> list[str]:
    """A name that comes again is numbered, as DuckDB does it: x, x_1, x_2."""
    if len({name.lower() for name in names}) == len(names):
        return list(names)
    taken: dict[str, int] = {}
    found = []
    for name in names:
        chosen = name
        while chosen.lower() in taken:
            chosen = f"{name}_{taken[name.lower()]}"
            taken[name.lower()] += 1
        taken[chosen.lower()] = 1
        found.append(chosen)
    return found


def find(
    entries: Iterable[VisibleColumn],
    name: str,
    relation: str | None,
    span: Span,
    advice: Callable[[], Sequence[str]] = tuple,
    mark: Mark | None = None,
) -> Column:
    """The column a name means. Raises Rejected: DP103 unknown, DP104 ambiguous. Names match whatever their case.

    advice: gives repairs for an unknown name at this place; asked for only then. mark: of such a refusal.
    """
    entries = tuple(entries)
    hits = _matches(entries, name, relation)
    if not hits:
        raise _unknown(entries, name, relation, span, advice(), mark)
    if len(hits) > 1 and len({e.column.uid for e in hits}) > 1:
        choices = " or ".join(sorted({f"{e.relation}.{e.name}" for e in hits if e.relation}))
        raise reject(
            "DP104", f"column {name} is ambiguous", span=span, label="several tables have it",
            help=[f"write {choices}" if choices else "give the columns different names"],
        )  # fmt: skip
    return hits[0].column.at(span)


def has(entries: Iterable[VisibleColumn], name: str, relation: str | None = None) -> bool:
    """True if at least one column answers to the name."""
    return bool(_matches(tuple(entries), name, relation))


def require_schema(levels: Iterable[Sequence[VisibleColumn]], schema: str, relation: str, span: Span) -> None:
    """The relation that is meant stands in this schema. Raises Rejected DP102.

    levels: what a query sees, then the query around it, and so on: the first that has such a relation decides.
    """
    known: list[str] = []
    for entries in levels:
        take(1 + len(entries) // 16)
        found = [e for e in entries if e.relation.lower() == relation.lower()]
        if any(schema.lower() in within() for within in {e.schemas for e in found}):
            return
        known += relations(entries)
        if found:
            break
    raise reject(
        "DP102", f"no table is called {schema}.{relation} here", span=span,
        help=[f"this query reads: {', '.join(sorted(set(known))) or 'no table'}", "leave the schema out, or the alias"],
    )  # fmt: skip


def written_at(entries: Iterable[VisibleColumn], span: Span) -> Column | None:
    """The column that an UNNEST at this place of the SELECT list gives; None if it gives none."""
    return next((e.column for e in entries if e.merged and e.name == place(span)), None)


def place(span: Span) -> str:
    """The name of a column that no name in a query can mean, only the text at this place."""
    return f"@{span.start}"


def relations(entries: Iterable[VisibleColumn]) -> tuple[str, ...]:
    """The names of the tables that the entries belong to, in order."""
    return tuple(dict.fromkeys(e.relation for e in entries if e.relation))


def _matches(entries: Sequence[VisibleColumn], name: str, relation: str | None) -> list[VisibleColumn]:
    take(1 + len(entries) // 16)
    wanted = name.lower()
    table = None if relation is None else relation.lower()

    def visible(named: list[VisibleColumn]) -> list[VisibleColumn]:
        return [e for e in named if (not e.merged if table is None else e.relation.lower() == table)]

    named = [e for e in entries if e.called == wanted]
    if len(named) == 1 and table is None and not named[0].merged:
        return named
    return visible(named) or visible([e for e in entries if e.also == wanted])


def _unknown(
    entries: Sequence[VisibleColumn], name: str, relation: str | None, span: Span, more: Sequence[str],
    mark: Mark | None,
) -> Rejected:  # fmt: skip
    take(len(entries))
    known = sorted(relations(entries))
    if relation is not None and relation.lower() not in {r.lower() for r in known}:
        return reject(
            "DP102", f"no table is called {relation} here", span=span,
            help=[f"this query reads: {', '.join(known) or 'no table'}", *more],
        )  # fmt: skip
    names = [e.name for e in entries if relation is None or e.relation.lower() == relation.lower()]
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=3, cutoff=0.6)
    meant = [n for n in dict.fromkeys(names) if n.lower() in close]
    advice = [f"did you mean {' or '.join(map(identifier, meant))}?"] if meant else []
    if not meant and names:
        listed = list(dict.fromkeys(names))
        advice.append(
            "declared columns: " + ", ".join(map(identifier, listed[:12])) + (", …" if len(listed) > 12 else "")
        )
    advice += more
    advice.append(ForCustodian("a column must be listed in the policy to exist"))
    shown = ".".join(identifier(part) for part in (relation, name) if part is not None)
    return reject("DP103", f"column {shown} does not exist", span=span, help=advice, mark=mark, meant=meant)
