"""Refusals by their code, with the texts that met them: what a custodian learns to write a better policy from.

*Claim.* It depends on no private row but through what was released. *Why.* It is made of the audit log's events alone
(`audit_log.py`), and holds neither a time nor an order between codes. *When it would be false.* If it counted what a
run refuses before its answer may leave. *Tested by* tests/faces/server/test_refusals.py.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dpsql.faces.server.statements import AuditEvent, Recording

MOST_TEXTS: Final = 20
"""Texts that are kept of one code: the newest."""
LONGEST: Final = 2_000
"""Characters of a text that are kept."""


@dataclass(slots=True)
class RefusalsOfCode:
    """count: of refusals since the server began. texts: text → names of those who sent it, the newest last."""

    count: int = 0
    texts: OrderedDict[str, tuple[str, ...]] = field(default_factory=OrderedDict)


class Refusals:
    """Implements `Recording`: hands each event on, and keeps refusals in memory, of each database by itself."""

    def __init__(self, inner: Recording) -> None:
        self._inner = inner
        self._of: dict[str, dict[str, RefusalsOfCode]] = {}

    def by_code(self, database: str) -> Mapping[str, RefusalsOfCode]:
        """Of one database."""
        return self._of.get(database, {})

    def require(self) -> None:
        """See Recording."""
        self._inner.require()

    def record(self, event: AuditEvent) -> None:
        """See Recording."""
        self._inner.record(event)
        if event.what != "statement" or event.outcome == "ok":
            return
        found = self._of.setdefault(event.database, {}).setdefault(event.outcome, RefusalsOfCode())
        found.count += 1
        text = event.statement[:LONGEST]
        names = found.texts.pop(text, ())
        found.texts[text] = names if event.name in names else (*names, event.name)[-5:]
        while len(found.texts) > MOST_TEXTS:
            found.texts.popitem(last=False)
