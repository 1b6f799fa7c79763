"""Where each part of a policy stands in its text, so that every finding can point at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dpsql.diagnostics.diagnostic import Source, Span

Loc = tuple[str | int, ...]
"""A place in the document: `("tables", "patients", "columns", "age", "bounds", 0)`."""


@dataclass(frozen=True, slots=True)
class Places:
    """The text of a policy (None if it was built in code) and the spans of its values and keys.

    directory: what relative paths are relative to.
    """

    source: Source | None = None
    values: Mapping[Loc, Span] = field(default_factory=dict, hash=False)
    keys: Mapping[Loc, Span] = field(default_factory=dict, hash=False)
    directory: Path = field(default_factory=Path.cwd)

    def find(self, loc: Loc, *, key: bool = False) -> tuple[Source, Span] | None:
        """The place of a value, else of its key, else of the nearest parent's. `key=True` prefers the key."""
        if self.source is None:
            return None
        first, second = (self.keys, self.values) if key else (self.values, self.keys)
        for length in range(len(loc), 0, -1):
            span = first.get(loc[:length]) or second.get(loc[:length])
            if span is not None:
                return self.source, span
            first, second = self.keys, self.values  # a parent is named by its key: its value may be a whole page
        start = self.values.get((), Span(0, 0)).start  # of the whole policy: its first line stands for it
        line = self.source.text[start:].split("\n", 1)[0].rstrip()
        return self.source, Span(start, min(start + max(1, len(line)), len(self.source.text)))
