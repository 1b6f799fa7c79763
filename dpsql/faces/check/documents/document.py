"""A document: SQL to check, and the user's file that findings about it point into.

A plain file is its own SQL. A compiled dbt model or a rendered template is SQL that was made from a file: it brings a
`place` that leads from its characters back to the file's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span

Place = Callable[[Span], Span]
"""From a span of a document's SQL to the span of the user's file that it was made from."""


@dataclass(frozen=True, slots=True)
class Document:
    """One text to check.

    source: the file as the user wrote and names it. sql: what is checked, None for the file's own text.
    place: where a span of `sql` is in `source`; None: at the same offsets. remark: what is to be added to a finding at
    a span of `sql`, or None.
    """

    source: Source
    sql: str | None = None
    place: Place | None = None
    remark: Callable[[Span], str | None] | None = None

    @property
    def text(self) -> str:
        """The SQL that is checked."""
        return self.source.text if self.sql is None else self.sql

    @property
    def name(self) -> str:
        """The file as the user names it: what ignores per file, baselines and reports go by."""
        return self.source.name

    def placed(self, span: Span) -> Span:
        """A span of the SQL, in the user's file."""
        return span if self.place is None else self.place(span)

    def pointed(self, diagnostic: Diagnostic) -> Diagnostic:
        """A finding about the SQL (its source is None), pointing into the user's file.

        One that points elsewhere, into the policy, stays as it is. Fixes are kept only where the SQL is the file.
        """
        if diagnostic.source is not None:
            return diagnostic
        if self.place is None:
            return replace(diagnostic, source=self.source)
        span = None if diagnostic.span is None else self.place(diagnostic.span)
        remark = None if diagnostic.span is None or self.remark is None else self.remark(diagnostic.span)
        notes = diagnostic.notes if remark is None else (*diagnostic.notes, remark)
        return replace(diagnostic, source=self.source, span=span, notes=notes, fix=None)
