"""What can be typed at a place: keywords, functions, tables, columns and aliases, from the text and the policy alone.

A pure function below the shell's prompt and the language server. No value of any column is ever offered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dpsql.core.policy.policy import Policy
from dpsql.faces.editor import completion_words as words
from dpsql.faces.editor.describe import column_text
from dpsql.faces.editor.text_scope import (
    CLAUSES,
    JOIN_WORDS,
    CursorPlace,
    Part,
    QueryColumn,
    QueryRelation,
    QueryScope,
    fields_of,
    place_at,
)
from dpsql.frontend.text.lexer import RESERVED, Group, Token, grouped, statement_at, tokens
from dpsql.frontend.text.quoted_names import MARKS, quoted
from dpsql.functions.registry import REGISTRY
from dpsql.policy.tools.show import promises, whose_rows

Kind = Literal["column", "alias", "relation", "table", "function", "aggregate", "option", "type", "keyword"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that can be typed.

    text: put it in place of the text from `start` to the cursor. label: what a list shows. kind: what it is; a
    "relation" is a table's alias or a WITH query. detail: a few words beside it (a type, a signature, a unit); doc: a
    sentence or two, may be empty.
    """

    text: str
    label: str
    kind: Kind
    start: int
    detail: str = ""
    doc: str = ""


def complete(text: str, offset: int, policy: Policy, dialect: str = "duckdb") -> list[Candidate]:
    """What can stand at `offset` of a text of SQL, which may hold several statements; likely ones come first.

    Never raises, whatever the text. Where a word has been begun, only what begins like it is offered, in any letter
    case; within strings, numbers and comments, and where a new name is invented, nothing is.
    """
    found = list(tokens(text, dialect))
    offset = max(0, min(offset, len(text)))
    at = next((t for t in found if t.start < offset and (offset <= t.end)), None)
    if at is not None and (at.kind in ("string", "comment", "number") and (offset < at.end or not at.closed)):
        return []
    if at is not None and at.kind == "number":
        return []
    typed, start = _typed(at, text, offset)
    statement, begin, end = statement_at(found, offset, len(text))
    around = [t for t in statement if t.start != start]
    place = place_at(grouped(around, begin, end), start, policy)
    before = [t for t in around if t.end <= start]
    mark = typed[:1] if typed[:1] in MARKS else ""
    closing = bool(mark) and text[offset : offset + 1] == MARKS[mark]
    offered = _Offer(policy, place, before, start, typed, _lower(typed, before), dialect, mark, closing)
    unique: dict[tuple[str, str], Candidate] = {}
    for candidate in offered.all():
        unique.setdefault((candidate.text, candidate.kind), candidate)
    return list(unique.values())


def _typed(at: Token | None, text: str, offset: int) -> tuple[str, int]:
    if at is None or not at.is_name or (at.kind == "quoted" and at.closed and offset == at.end):
        return "", offset
    return text[at.start : offset], at.start


def _lower(typed: str, before: Sequence[Token]) -> bool:
    """Whether keywords are written in small letters here."""
    letters = typed if any(c.isalpha() for c in typed) else next((t.text for t in before if t.upper in CLAUSES), "A")
    return letters == letters.lower()


@dataclass(frozen=True, slots=True)
class _Offer:
    policy: Policy
    place: CursorPlace
    before: Sequence[Token]
    start: int
    typed: str
    lower: bool
    dialect: str
    mark: str
    closing: bool

    def all(self) -> Iterator[Candidate]:
        """Everything that fits, likely things first."""
        last, group = self._last(), self.place.groups[-1]
        if _text(last) == ".":
            yield from self._qualified()
            return
        if not self.before:
            yield from self._keywords(words.STARTS)
            return
        if group.before == "OPTIONS":
            if _text(last) in ("(", ","):
                yield from self._options()
            return
        if group.before == "USING" and not group.is_query:
            yield from self._shared()
            return
        word = last.upper if isinstance(last, Token) else ""
        clause = self._clause()
        if word == "AS":
            if group.before in ("CAST", "TRY_CAST"):
                yield from self._words(words.TYPES, "type")
            return
        if word in words.CONTINUED and not (word == "ALL" and clause in ("GROUP", "ORDER")):
            yield from self._keywords(words.CONTINUED[word])
            return
        if clause == "FROM" and self._wants_table(last):
            yield from self._tables()
            return
        if clause in ("WITH", "VALUES", "WINDOW") and not isinstance(last, Group) and group.is_query:
            return
        if self._after_operand(last):
            inside = not group.is_query and group is not self.place.groups[0]
            yield from self._case_words()
            yield from self._keywords(words.AFTER_OPERAND["" if inside else clause])
            return
        if clause in ("LIMIT", "OFFSET", ""):
            return
        yield from self._expression(clause, last)

    # --- where the cursor stands -----------------------------------------------------------------------------------

    def _last(self) -> Part | None:
        """What stands directly before, in the innermost brackets; the bracket itself is no part."""
        earlier: list[Part] = [p for p in self.place.groups[-1].parts if p.end <= self.start]
        if not earlier and len(self.place.groups) > 1:
            return Token("sign", self.place.groups[-1].start, self.place.groups[-1].start + 1, "(")
        return earlier[-1] if earlier else None

    def _clause(self) -> str:
        """The clause that the cursor is in; ON and USING are part of FROM, but read columns."""
        found, last = "", ""
        for part in self.place.query:
            if part.start >= self.start:
                break
            word = part.upper if isinstance(part, Token) else ""
            if word in CLAUSES and not (word == "FROM" and last == "DISTINCT" and found != "SELECT"):
                found = word
            elif found in ("FROM", "ON") and word in ("ON", "JOIN"):
                found = "ON" if word == "ON" else "FROM"
            elif found == "ON" and (word in JOIN_WORDS or _text(part) == ","):
                found = "FROM"
            last = word
        return {"UNION": "", "INTERSECT": "", "EXCEPT": ""}.get(found, found)

    def _wants_table(self, last: Part | None) -> bool:
        return isinstance(last, Token) and (last.upper in ("FROM", "JOIN") or last.text in (",", "("))

    def _after_operand(self, last: Part | None) -> bool:
        if isinstance(last, Group):
            return True
        if last is None:
            return False
        if last.kind in ("string", "number", "quoted"):
            return True
        return last.kind == "word" and (last.upper not in _NO_OPERAND or last.upper in _OPERAND_WORDS)

    # --- what is offered -------------------------------------------------------------------------------------------

    def _expression(self, clause: str, last: Part | None) -> Iterator[Candidate]:
        if clause in ("ORDER", "HAVING", "QUALIFY", "GROUP"):
            for alias in self.place.scope.aliases:
                yield from self._name(alias, "alias", "named in SELECT")
        yield from self._columns()
        within = any(g.before.lower() in words.AGGREGATES for g in self.place.groups[1:])
        if within:
            clause = "WHERE"  # an aggregate cannot hold another one
            if _text(last) == "(":
                yield from self._keywords(("DISTINCT",))
        first = isinstance(last, Token) and last.upper in ("SELECT", "BY")
        yield from self._functions(clause)
        if first:
            yield from self._keywords(words.BEFORE_OPERAND.get(clause, ()))
        yield from self._keywords((*words.OPERANDS, *(("SELECT",) if _text(last) == "(" else ())))

    def _qualified(self) -> Iterator[Candidate]:
        names: list[str] = []
        at = len(self.before) - 1
        while at > 0 and self.before[at].text == "." and self.before[at - 1].is_name:
            names.insert(0, self.before[at - 1].name)
            at -= 2
        if not names:
            return
        if self._clause() == "FROM":
            prefix = ".".join(names).casefold() + "."
            for table in self.policy.tables.values():
                if table.name.casefold().startswith(prefix):
                    yield from self._name(table.name[len(prefix) :], "table", whose_rows(table))
            return
        relation = self.place.scope.relation(names[-1])
        fields = relation.fields if relation is not None else self._unread(".".join(names))
        for field in fields:
            yield from self._name(field.name, "column", _field_text(field))

    def _unread(self, name: str) -> tuple[QueryColumn, ...]:
        """The columns of a table that a query without a FROM clause so far will read, by its name or its last part."""
        if not self._is_open():
            return ()
        tables = self.policy.tables.values()
        wanted = name.casefold()
        found = [t for t in tables if t.name.casefold() == wanted]
        found = found or [t for t in tables if t.name.casefold().rpartition(".")[2] == wanted]
        return fields_of(found[0]) if found else ()

    def _is_open(self) -> bool:
        """Whether this query reads nothing yet, and may."""
        words = {part.upper for part in self.place.query if isinstance(part, Token)}
        return not self.place.scope.relations and "SELECT" in words and "FROM" not in words

    def _tables(self) -> Iterator[Candidate]:
        for cte in self.place.scope.ctes.values():
            yield from self._name(cte.name, "relation", "WITH query")
        for table in self.policy.tables.values():
            doc = "; ".join(promises(table))
            yield from self._name(table.name, "table", whose_rows(table), doc, dotted=True)

    def _columns(self) -> Iterator[Candidate]:
        if self._is_open():
            owners: dict[str, list[tuple[str, QueryColumn]]] = {}
            known = [(cte.name, cte.fields) for cte in self.place.scope.ctes.values()]
            for owner_name, fields in (*known, *((t.name, fields_of(t)) for t in self.policy.tables.values())):
                for field in fields:
                    owners.setdefault(field.name, []).append((owner_name, field))
            for name, found in owners.items():
                listed = ", ".join(owner_name for owner_name, _ in found)
                detail = f"{listed}: {_field_text(found[0][1])}" if len(found) == 1 else listed
                yield from self._name(name, "column", detail)
        scope: QueryScope | None = self.place.scope
        while scope is not None:
            several = _several(scope.relations)
            for relation in scope.relations:
                for field in relation.fields:
                    key = field.name.casefold()
                    clear = key not in several or key in scope.shared
                    owner = "" if clear else quoted(relation.name, self.dialect) + "."
                    yield from self._name(field.name, "column", _field_text(field), relation.name, owner)
            for relation in scope.relations:
                what = "the query's name for it" if relation.table is None else whose_rows(relation.table)
                yield from self._name(relation.name, "relation", what)
            scope = scope.outer

    def _shared(self) -> Iterator[Candidate]:
        relations = self.place.scope.relations
        several = _several(relations)
        for field in relations[-1].fields if relations else ():
            if field.name.casefold() in several:
                yield from self._name(field.name, "column", _field_text(field))

    def _functions(self, clause: str) -> Iterator[Candidate]:
        called = [
            *((n, a.signature, a.summary, "aggregate") for n, a in words.AGGREGATES.items() if clause in _AGGREGATED),
            *((n, a.signature, a.summary, "aggregate") for n, a in words.WINDOWS.items() if clause in _WINDOWED),
            *((n, f.signature, f.summary, "function") for n, f in REGISTRY.items() if not f.operator),
        ]
        if any(table.grows for table in self.policy.tables.values()):
            called.append(("last_closed", words.LAST_CLOSED.signature, words.LAST_CLOSED.summary, "function"))
        for name, signature, summary, kind in called:
            written = name if self.lower else name.upper()
            if self._fits(name):
                found: Kind = "aggregate" if kind == "aggregate" else "function"
                yield Candidate(f"{written}(", written, found, self.start, signature, summary)

    def _options(self) -> Iterator[Candidate]:
        for name, doc in words.OPTIONS.items():
            if self._fits(name):
                yield Candidate(f"{name} = ", name, "option", self.start, "privacy option", doc)

    def _case_words(self) -> Iterator[Candidate]:
        depth = 0
        for part in self.place.groups[-1].parts:
            if isinstance(part, Token) and part.end <= self.start:
                depth += (part.upper == "CASE") - (part.upper == "END")
        if depth > 0:
            yield from self._keywords(("WHEN", "THEN", "ELSE", "END"))

    def _keywords(self, found: Sequence[str]) -> Iterator[Candidate]:
        yield from self._words(found, "keyword")

    def _words(self, found: Sequence[str], kind: Kind) -> Iterator[Candidate]:
        for word in found:
            if self._fits(word):
                written = word.lower() if self.lower else word
                yield Candidate(written, written.rstrip("( "), kind, self.start)

    def _name(
        self, name: str, kind: Kind, detail: str, doc: str = "", owner: str = "", dotted: bool = False
    ) -> Iterator[Candidate]:
        """A name, quoted where it has to be or where the quote has been typed."""
        if not name or not self._fits(name, quoted=True):
            return
        parts = name.split(".") if dotted and not self.mark else [name]
        written = ".".join(quoted(part, self.dialect, self.mark) for part in parts)
        if self.closing:
            written = written[:-1]
        if self.mark:
            owner = ""
        yield Candidate(owner + written, owner + name, kind, self.start, detail, doc)

    def _fits(self, name: str, quoted: bool = False) -> bool:
        if self.mark and not quoted:
            return False
        return name.casefold().startswith(self.typed.removeprefix(self.mark).casefold())


_NO_OPERAND = RESERVED | {"BY", "PARTITION", "FILTER", "ESCAPE", "QUALIFY", "LIMIT", "OFFSET"}
_OPERAND_WORDS = frozenset({"NULL", "TRUE", "FALSE", "END", "ALL"})
_AGGREGATED = frozenset({"SELECT", "HAVING", "ORDER", "QUALIFY"})
_WINDOWED = frozenset({"SELECT", "ORDER", "QUALIFY"})


def _several(relations: Sequence[QueryRelation]) -> frozenset[str]:
    """Names, in lower case, that more than one relation has a column of."""
    names = [n for r in relations for n in {f.name.casefold() for f in r.fields}]
    return frozenset(n for n in names if names.count(n) > 1)


def _field_text(field: QueryColumn) -> str:
    return "computed" if field.column is None else column_text(field.column)


def _text(part: Part | None) -> str:
    return part.text if isinstance(part, Token) else ""
