"""Which tables, columns and aliases a place in half-typed SQL can read: a guess from brackets and keywords.

Only the editor believes it. What a query means is decided by `dpsql.frontend.bind.statement`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, Table
from dpsql.frontend.text.lexer import Group, Token

Part = Token | Group

CLAUSES = frozenset({
    "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "UNION", "INTERSECT",
    "EXCEPT", "VALUES", "WITH",
})  # fmt: skip
"""Words that begin a part of a query."""
JOIN_WORDS = frozenset({
    "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS", "NATURAL", "SEMI", "ANTI", "ASOF", "POSITIONAL",
    "LATERAL", "ON", "USING",
})  # fmt: skip
_COMBINE = frozenset({"UNION", "INTERSECT", "EXCEPT"})


@dataclass(frozen=True, slots=True)
class QueryColumn:
    """A column as a query sees it; `column` and `table` as declared, where it is one of the policy's."""

    name: str
    column: Column | None = None
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class QueryRelation:
    """A table, a WITH query or a subquery under the name that the query calls it by. `table`: the declared one."""

    name: str
    fields: tuple[QueryColumn, ...]
    table: Table | None = None
    start: int = 0


@dataclass(frozen=True, slots=True)
class QueryScope:
    """What a place can read. `outer`: what the queries around it can. `aliases`: names of the SELECT list.

    shared: columns, in lower case, that USING or NATURAL JOIN made one of, so that their names alone are clear.
    """

    relations: tuple[QueryRelation, ...] = ()
    ctes: Mapping[str, QueryRelation] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    shared: frozenset[str] = frozenset()
    outer: QueryScope | None = None

    def relation(self, name: str) -> QueryRelation | None:
        """The relation of this name, here or around."""
        wanted = name.casefold()
        found = next((r for r in self.relations if r.name.casefold() == wanted), None)
        return found if found is not None or self.outer is None else self.outer.relation(name)

    def named(self, name: str) -> list[tuple[QueryRelation, QueryColumn]]:
        """Every column of this name here; if there is none, those around."""
        wanted = name.casefold()
        found = [(r, f) for r in self.relations for f in r.fields if f.name.casefold() == wanted]
        return found or ([] if self.outer is None else self.outer.named(name))


@dataclass(frozen=True, slots=True)
class CursorPlace:
    """Where a cursor stands: the brackets around it, innermost last, the query's own part there, and its scope."""

    groups: tuple[Group, ...]
    query: tuple[Part, ...]
    scope: QueryScope


def place_at(statement: Group, offset: int, policy: Policy) -> CursorPlace:
    """The place of a cursor in a statement."""
    groups, scope, query = [statement], QueryScope(), _part(statement, offset)
    scope = _scope(query, _with(statement, scope, policy), policy)
    while True:
        inner = next((p for p in groups[-1].parts if isinstance(p, Group) and p.holds(offset)), None)
        if inner is None:
            return CursorPlace(tuple(groups), query, scope)
        groups.append(inner)
        if inner.is_query:
            query = _part(inner, offset)
            around = QueryScope(ctes=scope.ctes, outer=scope)
            scope = _scope(query, _with(inner, around, policy), policy)


def _part(group: Group, offset: int) -> tuple[Part, ...]:
    """The side of a UNION that the cursor is in."""
    sides: list[list[Part]] = [[]]
    for part in group.parts:
        if isinstance(part, Token) and part.upper in _COMBINE and not _is_star(sides[-1]):
            if part.start >= offset:
                break
            sides.append([])
        sides[-1].append(part)
    return tuple(sides[-1])


def _is_star(parts: Sequence[Part]) -> bool:
    last = parts[-1] if parts else None
    return isinstance(last, Token) and last.text == "*"


def _with(group: Group, scope: QueryScope, policy: Policy) -> QueryScope:
    """The scope with the WITH queries at the beginning of a query."""
    ctes = dict(scope.ctes)
    parts = group.parts
    if not parts or not isinstance(parts[0], Token) or parts[0].upper != "WITH":
        return scope
    name: Token | None = None
    names: list[str] | None = None
    for before, part in pairwise(parts):
        if isinstance(part, Token):
            if part.upper == "SELECT":
                break
            if part.is_name and isinstance(before, Token) and before.text.upper() in ("WITH", "RECURSIVE", ","):
                name, names = (None, None) if part.upper == "RECURSIVE" else (part, None)
        elif name is not None:
            if part.is_query or part.before in ("AS", "MATERIALIZED"):
                fields = _outputs(part, QueryScope(ctes=ctes, outer=scope.outer), policy)
                ctes[name.name.casefold()] = QueryRelation(name.name, _renamed(fields, names), start=name.start)
            else:
                names = [p.name for p in part.parts if isinstance(p, Token) and p.is_name]
    return QueryScope(ctes=ctes, outer=scope.outer)


def _renamed(fields: Sequence[QueryColumn], names: Sequence[str] | None) -> tuple[QueryColumn, ...]:
    if not names:
        return tuple(fields)
    found = list(fields) + [QueryColumn(n) for n in names[len(fields) :]]
    return tuple(QueryColumn(names[i], f.column, f.table) if i < len(names) else f for i, f in enumerate(found))


def _scope(query: Sequence[Part], around: QueryScope, policy: Policy) -> QueryScope:
    relations: list[QueryRelation] = []
    shared: set[str] = set()
    _read_from(clause(query, "FROM"), around, policy, relations, shared)
    aliases = tuple(name for name, item in items(clause(query, "SELECT")) if name and _is_aliased(item))
    return QueryScope(tuple(relations), around.ctes, aliases, frozenset(shared), around.outer)


def clause(query: Sequence[Part], word: str) -> list[Part]:
    """What stands between a clause's first word and the next clause."""
    found: list[Part] = []
    inside = False
    before: tuple[str, str] = ("", "")
    for part in query:
        here = part.upper if isinstance(part, Token) else ""
        if here in CLAUSES and not (here == "FROM" and before[1] == "DISTINCT" and before[0] in ("IS", "NOT")):
            inside = here == word
        elif inside:
            found.append(part)
        before = before[1], here
    return found


def items(parts: Sequence[Part]) -> Iterator[tuple[str, list[Part]]]:
    """The items of a SELECT list: the name each goes by (empty if it has none) and what it is made of."""
    item: list[Part] = []
    for part in [*parts, None]:
        if part is not None and not (isinstance(part, Token) and part.text == ","):
            item.append(part)
            continue
        if item:
            last = item[-1]
            named = isinstance(last, Token) and last.is_name and last.upper not in ("END", "NULL", "TRUE", "FALSE")
            yield (last.name if named and isinstance(last, Token) else ""), item
        item = []


def _is_aliased(item: Sequence[Part]) -> bool:
    before = item[-2] if len(item) > 1 else None
    return before is not None and not (isinstance(before, Token) and before.text == ".")


def _outputs(group: Group, around: QueryScope, policy: Policy) -> list[QueryColumn]:
    """The columns of a query in brackets: those of its first side."""
    first: list[Part] = []
    for part in group.parts:
        if isinstance(part, Token) and part.upper in _COMBINE and not _is_star(first):
            break
        first.append(part)
    scope = _scope(first, _with(group, around, policy), policy)
    found: list[QueryColumn] = []
    for name, item in items(clause(first, "SELECT")):
        last = item[-1]
        if isinstance(last, Token) and last.text == "*" and (len(item) == 1 or _dotted(item)):
            owner = item[0].name if len(item) > 1 and isinstance(item[0], Token) else None
            found += [f for r in scope.relations if owner is None or r.name.casefold() == owner.casefold()
                      for f in r.fields]  # fmt: skip
        elif name and (len(item) == 1 or (_dotted(item) and len(item) == 3)):
            owner = item[0].name if len(item) == 3 and isinstance(item[0], Token) else None
            found.append(_read(scope, name, owner))
        elif name:
            found.append(QueryColumn(name))
    return found


def _dotted(item: Sequence[Part]) -> bool:
    return len(item) > 1 and isinstance(item[-2], Token) and item[-2].text == "."


def _read(scope: QueryScope, name: str, owner: str | None) -> QueryColumn:
    if owner is not None:
        relation = scope.relation(owner)
        fields = () if relation is None else relation.fields
        return next((f for f in fields if f.name.casefold() == name.casefold()), QueryColumn(name))
    hits = scope.named(name)
    return hits[0][1] if hits else QueryColumn(name)


def _read_from(
    parts: Sequence[Part], around: QueryScope, policy: Policy, relations: list[QueryRelation], shared: set[str]
) -> None:
    """Collect the tables of a FROM clause into `relations`, and the columns that USING names into `shared`."""
    at, wanted = 0, True
    natural = False
    while at < len(parts):
        part = parts[at]
        if isinstance(part, Token) and part.upper in JOIN_WORDS:
            wanted = wanted or part.upper == "JOIN"
            natural = natural or part.upper == "NATURAL"
            at += 1
        elif isinstance(part, Token) and part.text == ",":
            wanted = True
            at += 1
        elif isinstance(part, Group) and part.before == "USING":
            shared |= {p.name.casefold() for p in part.parts if isinstance(p, Token) and p.is_name}
            at += 1
        elif wanted:
            at, found = _table_ref(parts, at, around, policy, relations, shared)
            if found is not None:
                if natural:
                    known = {f.name.casefold() for r in relations for f in r.fields}
                    shared |= {f.name.casefold() for f in found.fields} & known
                relations.append(found)
            wanted = natural = False
        else:
            at += 1


def _table_ref(
    parts: Sequence[Part], at: int, around: QueryScope, policy: Policy, relations: list[QueryRelation], shared: set[str]
) -> tuple[int, QueryRelation | None]:
    part = parts[at]
    fields: tuple[QueryColumn, ...] = ()
    name, table, start = "", None, part.start
    if isinstance(part, Group):
        if part.is_query:
            fields = tuple(_outputs(part, QueryScope(ctes=around.ctes, outer=around.outer), policy))
        else:
            _read_from(part.parts, around, policy, relations, shared)
        at += 1
    elif part.is_name:
        names = [part.name]
        at += 1
        while at + 1 < len(parts) and _text(parts[at]) == ".":
            following = parts[at + 1]
            if not isinstance(following, Token) or not following.is_name:
                break
            names.append(following.name)
            at += 2
        name = names[-1]
        cte = around.ctes.get(names[0].casefold()) if len(names) == 1 else None
        if cte is not None:
            fields, start = cte.fields, cte.start
        else:
            table = policy.called(*names)
            fields = () if table is None else fields_of(table)
        if at < len(parts) and isinstance(parts[at], Group):  # a table function, UNNEST(…)
            at += 1
    else:
        return at + 1, None
    if at < len(parts) and _text(parts[at]).upper() == "AS":
        at += 1
    if at < len(parts):
        alias = parts[at]
        if isinstance(alias, Token) and alias.is_name and alias.upper not in JOIN_WORDS:
            name, at = alias.name, at + 1
            columns = parts[at] if at < len(parts) else None
            if isinstance(columns, Group) and not columns.is_query and columns.before == alias.upper:
                listed = [p.name for p in columns.parts if isinstance(p, Token) and p.is_name]
                fields, at = _renamed(fields, listed), at + 1
    return at, QueryRelation(name, fields, table, start) if name or fields else None


def fields_of(table: Table) -> tuple[QueryColumn, ...]:
    """The declared columns of a table."""
    return tuple(QueryColumn(c.name, c, table) for c in table.columns.values())


def _text(part: Part) -> str:
    return part.text if isinstance(part, Token) else ""
