"""The exceptions users see, all under `Error`, all carrying diagnostics.

Error
├── Rejected          the query (or a setting) was refused before anything ran; nothing was spent
│   └── BudgetExceeded   the ledger refused the charge; nothing ran
├── CannotOpen        policy, data or ledger cannot be opened or is invalid
└── EngineError       the engine failed after the reservation; one constant message, the reservation is spent
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span


class Error(Exception):
    """Base of every exception dpsql raises on purpose. `diagnostics` is never empty."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__("; ".join(f"[{d.code}] {d.message}" for d in self.diagnostics))

    def __str__(self) -> str:
        from dpsql.diagnostics.render import render_text

        return render_text(self.diagnostics)


class Rejected(Error):
    """Refused by the privacy analysis or because a setting is missing or invalid. Nothing ran, nothing was spent."""


class BudgetExceeded(Rejected):
    """The charge does not fit into what is left of a budget. Nothing ran, nothing was spent."""


class CannotOpen(Error):
    """The policy, the data or the ledger cannot be opened, read or understood."""


class EngineError(Error):
    """The engine failed. The message is constant: it never depends on the data. The reservation is not refunded."""


def reject(
    code: str,
    message: str,
    *,
    span: Span | None = None,
    label: str = "",
    help: Sequence[str] = (),
    notes: Sequence[str] = (),
    source: Source | None = None,
) -> Rejected:
    """Build (not raise) the refusal with one diagnostic: `raise reject("DP103", …, span=…)`."""
    return Rejected([Diagnostic(code, message, source, span, label, tuple(help), tuple(notes))])
