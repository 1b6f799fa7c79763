"""Models of a compiled dbt project → documents to check against a policy, with findings at their places in models/.

The names that dbt wrote into a model are led back to the policy: a source, or a model that the policy declares, becomes
the policy's table; a model that it does not declare is put in as a WITH query, as if it were ephemeral, so that what
the custodian's tables give is followed through all models that are built on each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import reject
from dpsql.faces.check.documents.dbt_project import DbtProject, Model, parts_of, read_project
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.documents.mapping import Mapping as Back
from dpsql.faces.check.documents.mapping import TextChange, compared, edited
from dpsql.frontend.text.references import Reference, References, references_in

_INLINED = "__dpsql__model__"
_EPHEMERAL = "__dbt__cte__"
_MOST_MODELS = 200
"""Models that one model may be built on, one above the other or side by side."""


@dataclass(frozen=True, slots=True)
class CheckedProject:
    """What is checked of a project: its documents in order of files, and the dialect they are written in."""

    documents: tuple[Document, ...]
    dialect: str


def read_models(
    folder: str | Path,
    policy: Policy,
    dialect: str | None = None,
    tables: Mapping[str, str] | None = None,
    target: str = "target",
) -> CheckedProject:
    """The documents of a project.

    A model that other models read is checked as a part of these, not alone, and so is an ephemeral one, unless its
    configuration says `meta: {dpsql: {check: true}}`; `check: false` leaves any model out. dialect: None: the
    warehouse's. tables: the warehouse's names (their last parts will do) → the policy's, where they differ. target: the
    folder that dbt writes to, in the project's.
    Raises Rejected DP903.
    """
    project = read_project(folder, target)
    language = dialect or project.dialect or "duckdb"
    weaver = _Weaver(project, policy, language, _by_parts(tables or {}, policy))
    asked = [model for model in project.models if model.kind != "test"]  # a model with a test is still asked by itself
    read = {id for model in asked for id in weaver.models_read(model) if id != model.id}
    chosen = []
    for model in project.models:
        alone = not model.ephemeral and model.id not in read
        if model.wanted if model.wanted is not None else alone:
            chosen.append(model)
    documents = [weaver.document(model) for model in chosen]
    return CheckedProject(tuple(sorted(documents, key=lambda d: d.name)), language)


def _by_parts(tables: Mapping[str, str], policy: Policy) -> dict[tuple[str, ...], str]:
    found = {}
    for name, table in tables.items():
        declared = policy.table(table)
        if declared is None:
            raise reject(
                "DP903", f"dbt.tables: {name!r} stands for {table!r}, which is no table of the policy",
                help=[f"tables of the policy: {', '.join(list(policy.tables)[:12])}"],
            )  # fmt: skip
        found[parts_of(name)] = declared.name
    return found


@dataclass(slots=True)
class _Weaver:
    """Makes one SQL text of a model and of those it is built on."""

    project: DbtProject
    policy: Policy
    dialect: str
    tables: Mapping[tuple[str, ...], str]
    _references: dict[str, References] = field(default_factory=dict)

    def document(self, model: Model) -> Document:
        """The model as SQL over the policy's tables, with the way back to its file."""
        references = self.references(model)
        inlined = self._inlined(model)
        changes = list(self._changes(model, references))
        if inlined:
            queries = ",\n".join(f"{_inlined(m)} AS (\n{self._text(m)}\n)" for m in inlined)
            place = self._first_use(model, references)
            if references.first is None:
                start, head = 0, f"WITH {queries}\n"
            else:
                start, head = references.first, f"{queries},\n"
            changes.insert(0, TextChange(Span(start, start), head, place))
        text, back = edited(model.compiled, changes)
        way = back.after(self._to_raw(model))
        return Document(model.raw, text, way, _Remark(model, back, way))

    def models_read(self, model: Model) -> Iterator[str]:
        """Ids of the models that are put into this one, by dpsql or, where they are ephemeral, by dbt."""
        references = self.references(model)
        for reference in references.tables:
            read = self._model(reference, model)
            if read is not None:
                yield read.id
        ephemeral = {
            q.parts[0].removeprefix(_EPHEMERAL) for q in references.queries if q.parts[0].startswith(_EPHEMERAL)
        }
        yield from (m.id for m in self.project.models if m.name in ephemeral)

    def references(self, model: Model) -> References:
        """What its compiled SQL reads."""
        if model.id not in self._references:
            self._references[model.id] = references_in(model.compiled, self.dialect)
        return self._references[model.id]

    def _inlined(self, model: Model) -> list[Model]:
        """The models below, each after those it reads."""
        found: dict[str, Model] = {}
        open_: set[str] = {model.id}

        def visit(of: Model) -> None:
            for reference in self.references(of).tables:
                read = self._model(reference, of)
                if read is None or read.id in found:
                    continue
                if read.id in open_ or len(found) + len(open_) > _MOST_MODELS:
                    raise reject("DP903", f"{model.raw.name} is built on too many models, or on itself")
                open_.add(read.id)
                visit(read)
                open_.discard(read.id)
                found[read.id] = read

        visit(model)
        return list(found.values())

    def _text(self, model: Model) -> str:
        return edited(model.compiled, self._changes(model, self.references(model)))[0].rstrip().rstrip(";")

    def _changes(self, model: Model, references: References) -> Iterator[TextChange]:
        """Relations become the policy's tables or WITH queries; WITH queries that are called like a table, others."""
        taken = {q.parts[0].lower() for q in references.queries if self.policy.table(q.parts[0]) is not None}
        for query in references.queries:
            if query.parts[0].lower() in taken:
                yield TextChange(query.span, _renamed(query.parts[0]))
        own = {q.parts[0].lower() for q in references.queries}
        for reference in references.tables:
            name = reference.parts[-1]
            if len(reference.parts) == 1 and name.lower() in own:
                if name.lower() in taken:
                    yield TextChange(reference.span, _aliased(_renamed(name), name, reference))
                continue
            read = self._model(reference, model)
            table = self._table(reference) if read is None else _inlined(read)
            if table is not None and (len(reference.parts) > 1 or table != name):
                yield TextChange(reference.span, _aliased(table, name, reference))

    def _table(self, reference: Reference) -> str | None:
        """The policy's table that a relation stands for, by the longest of its names that is known."""
        parts = tuple(part.lower() for name in reference.parts for part in name.split("."))
        for start in range(len(parts)):
            if parts[start:] in self.tables:
                return self.tables[parts[start:]]
        for start in range(len(parts)):
            table = self.policy.table(".".join(parts[start:]))
            if table is not None:
                return table.name
        return None

    def _model(self, reference: Reference, reader: Model) -> Model | None:
        """The model that a relation is; None if the policy declares it, or it is none."""
        parts = tuple(part.lower() for name in reference.parts for part in name.split("."))
        if len(parts) == 1 and reader.reads is not None:
            return None
        if any(q.parts == reference.parts for q in self.references(reader).queries):
            return None
        if self._table(reference) is not None:
            return None
        for model in self.project.models:
            same = model.relation == parts if model.relation else model.name.lower() == parts[-1]
            if same and model.kind == "model" and model.id != reader.id:
                return model
        return None

    def _first_use(self, model: Model, references: References) -> Span | None:
        return next((r.span for r in references.tables if self._model(r, model) is not None), None)

    def _to_raw(self, model: Model) -> Back:
        """From the compiled text to the user's; an ephemeral model that dbt put in is at the place that reads it."""
        shorter, puts = model.compiled, []
        for injected in model.injected:
            start = shorter.find(injected)
            if start >= 0:
                shorter = shorter[:start] + shorter[start + len(injected) :]
                puts.append((start, injected))
        changes: list[TextChange] = []
        text = shorter
        for start, injected in reversed(puts):
            use = re.search(rf"\b{re.escape(injected.split(None, 1)[0])}\b", shorter)
            at = Span(*use.span()) if use is not None else Span(start, start)
            changes.append(TextChange(Span(start, start), injected, at))
        text, back = edited(shorter, reversed(changes))
        raw = compared(model.raw.text, shorter)
        return back.after(raw) if text == model.compiled else compared(model.raw.text, model.compiled)


@dataclass(frozen=True, slots=True)
class _Remark:
    """Names the place in dbt's file where a finding is about what dbt made. back, way: to it, and to the model."""

    model: Model
    back: Back
    way: Back

    def __call__(self, span: Span) -> str | None:
        if self.way.is_exact(span):
            return None
        place = self.back(span)
        line, column = Source(self.model.compiled).position(place.start)
        return f"made by dbt: {self.model.compiled_path}:{line}:{column}"


def _inlined(model: Model) -> str:
    """What a model is called as a WITH query: one word, whatever its file is called, for it becomes a part of the text.

    Two models that are called alike then are refused as two queries of one name.
    """
    return _INLINED + re.sub(r"\W", "_", model.name)


def _renamed(name: str) -> str:
    return f"{name}__with"


def _aliased(table: str, name: str, reference: Reference) -> str:
    """The new name, known under the old one to what stands around it."""
    return table if reference.aliased or table == name else f"{table} AS {name}"
