"""Several refusals at once: independent parts of a query are tried one by one, and what is wrong is told together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import BudgetExceeded, Rejected, TooLarge

MOST = 20
"""Most diagnostics of one refusal; then nothing more is tried."""


class Followup(Rejected):
    """Raised where a part reads what was refused already: there is nothing new to tell."""

    def __init__(self) -> None:
        super().__init__([])


@dataclass(slots=True)
class Together:
    """Collects the refusals of independent parts. `found` holds each message and each place once."""

    found: list[Diagnostic] = field(default_factory=list)
    followed: bool = False

    @property
    def failed(self) -> bool:
        """True if a part was refused."""
        return bool(self.found) or self.followed

    def attempt(self) -> Together:
        """`with together.attempt():` runs one part; if it is refused, that is kept, and what follows runs.

        Raises Rejected with everything once there are enough of them, and TooLarge at once.
        """
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, refusal: BaseException | None, trace: object) -> bool:
        if refusal is None:
            return False
        if isinstance(refusal, Followup):
            self.followed = True
        elif isinstance(refusal, Rejected) and not isinstance(refusal, (BudgetExceeded, TooLarge)):
            self.add(refusal.diagnostics)
            if len(self.found) >= MOST:
                self.settle()
        else:
            return False
        return True

    def add(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Keep what is new: another message, about another place."""
        messages = {(d.code, d.message) for d in self.found}
        places = {d.span for d in self.found if d.span is not None}
        self.found += [d for d in diagnostics if (d.code, d.message) not in messages and d.span not in places]

    def settle(self) -> None:
        """Raise Rejected with everything collected so far, in the order of the text, if there is anything."""
        if self.found:
            raise Rejected(sorted(self.found, key=lambda d: -1 if d.span is None else d.span.start)[:MOST])
        if self.followed:
            raise Followup
