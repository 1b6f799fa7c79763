"""The exceptions users see: PEP 249's tree with dpsql's own in it. Whatever dpsql raises carries diagnostics.

Warning              never raised
UtilityWarning       no error: given before a run that spends, where the answer cannot be worth its price (DP5xx)
Error
├── InterfaceError   never raised, as are the others of PEP 249 that hold none of ours
└── DatabaseError
    ├── ProgrammingError
    │   └── Rejected        the query (or a setting) was refused before anything ran; nothing was spent
    │       ├── BudgetExceeded   the ledger refused the charge; nothing ran
    │       └── TooLarge         the query is larger than what is planned
    ├── OperationalError
    │   ├── CannotOpen      policy, data or ledger cannot be opened or is invalid
    │   ├── NothingFound    no answer could follow a search, which found no limit; the reservation is spent
    │   └── EngineError     the engine failed after the reservation; one constant message, the reservation is spent
    └── DataError, IntegrityError, InternalError, NotSupportedError
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.diagnostics.diagnostic import Diagnostic, Mark, Source, Span


class Warning(Exception):
    """PEP 249's; dpsql never raises it."""


class UtilityWarning(UserWarning):
    """What declared numbers alone say against an answer (DP5xx), before it is paid for.

    `warnings.simplefilter("error", dpsql.UtilityWarning)` makes it an exception: then nothing runs, nothing is spent.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__("; ".join(f"[{d.code}] {d.message}" for d in self.diagnostics))

    def __reduce__(self) -> tuple[type[UtilityWarning], tuple[tuple[Diagnostic, ...]]]:
        """As for `Error`."""
        return type(self), (self.diagnostics,)

    def __str__(self) -> str:
        from dpsql.diagnostics.render import render_text

        return render_text(self.diagnostics)


class Error(Exception):
    """Base of every exception dpsql raises on purpose. `diagnostics` is never empty."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__("; ".join(f"[{d.code}] {d.message}" for d in self.diagnostics))

    def __reduce__(self) -> tuple[type[Error], tuple[tuple[Diagnostic, ...]]]:
        """Copies and pickles (of process pools, say) are made from the diagnostics, not from the text of `args`."""
        return type(self), (self.diagnostics,)

    @property
    def code(self) -> str:
        """The code of the first diagnostic, such as `"DP201"`."""
        return self.diagnostics[0].code

    def __str__(self) -> str:
        from dpsql.diagnostics.render import render_text

        return render_text(self.diagnostics)


class InterfaceError(Error):
    """PEP 249: a fault of the interface rather than of the database. Never raised."""


class DatabaseError(Error):
    """PEP 249: above everything that dpsql raises."""


class DataError(DatabaseError):
    """PEP 249: a fault of the data. Never raised, for it would tell of single rows: see EngineError."""


class OperationalError(DatabaseError):
    """PEP 249: what is not in the programmer's hands."""


class IntegrityError(DatabaseError):
    """PEP 249: broken relations between rows. Never raised: promises of a policy are tested by its custodian."""


class InternalError(DatabaseError):
    """PEP 249: the database is out of step with itself. Never raised."""


class ProgrammingError(DatabaseError):
    """PEP 249: what is in the programmer's hands: the query, its parameters and settings, a closed connection."""


class NotSupportedError(DatabaseError):
    """PEP 249: a method that the database does not have. Never raised: what is refused is Rejected, with a code."""


class Rejected(ProgrammingError):
    """Refused by the privacy analysis or because a setting is missing or invalid. Nothing ran, nothing was spent."""


class BudgetExceeded(Rejected):
    """The charge does not fit into what is left of a budget. Nothing ran, nothing was spent."""


class TooLarge(Rejected):
    """The query is larger than what is planned. Nothing else is looked for in it: that could take for ever."""


class CannotOpen(OperationalError):
    """The policy, the data or the ledger cannot be opened, read or understood."""


class NothingFound(OperationalError):
    """A search of limits saw nothing above its noise, so nothing could follow (DP212), or a public table has changed
    since (DP409). The reservation is not refunded; its noisy numbers are stored."""


class EngineError(OperationalError):
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
    mark: Mark | None = None,
    meant: Sequence[str] = (),
) -> Rejected:
    """Build (not raise) the refusal with one diagnostic: `raise reject("DP103", …, span=…)`."""
    found = Diagnostic(code, message, source, span, label, tuple(help), tuple(notes), mark=mark, meant=tuple(meant))
    return Rejected([found])


def too_large(what: str, span: Span | None, repair: str) -> TooLarge:
    """Build (not raise) the refusal of a query that is too large to plan."""
    return TooLarge([Diagnostic("DP101", what, None, span, help=(repair,))])
