"""Transactions: marks that change nothing of the data, for nothing is written, and no charge is ever taken back.

What they do change is what PostgreSQL's clients rely on: the state that ReadyForQuery tells, settings that ROLLBACK
takes back, and cursors that end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from dpsql.faces.server.front.commands.commands import Set, Transaction
from dpsql.faces.server.front.error_fields import ProtocolFault
from dpsql.faces.server.front.variables import Variables

IDLE, OPEN, FAILED = "I", "T", "E"
MOST_SAVEPOINTS: Final = 500


@dataclass(slots=True)
class Transactions:
    """now: the settings that hold. later: those that will hold after COMMIT, without SET LOCAL's.

    saved: what held at BEGIN (its name is empty) and at each savepoint.
    """

    now: Variables
    state: str = IDLE
    later: Variables = field(init=False)
    saved: list[tuple[str, Variables, Variables]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.later = self.now

    def failed(self) -> None:
        """A statement was refused."""
        if self.state == OPEN:
            self.state = FAILED

    def require_sound(self) -> None:
        """Raises Fault 25P02 in a transaction that failed."""
        if self.state == FAILED:
            raise ProtocolFault(
                "25P02", "current transaction is aborted, commands ignored until end of transaction block"
            )

    def set(self, what: Set) -> str:
        """SET or RESET of one name; a warning, or "". Raises Fault."""
        self.now = self.now.set(what.name, what.value)
        if not what.local:
            self.later = self.later.set(what.name, what.value)
        elif self.state == IDLE:
            self.now = self.later
            return "SET LOCAL can only be used in transaction blocks"
        return ""

    def reset(self) -> None:
        """RESET ALL."""
        self.now, self.later = self.now.reset(), self.later.reset()

    def do(self, what: Transaction) -> tuple[str, str, bool]:
        """The tag, a warning or "", and whether the transaction is over. Raises Fault."""
        match what.do:
            case "begin":
                self.require_sound()
                if self.state != IDLE:
                    return what.tag, "there is already a transaction in progress", False
                self.state, self.saved = OPEN, [("", self.now, self.later)]
                return what.tag, "", False
            case "commit" | "rollback":
                return self._end(what)
        self._savepoint(what)
        return what.tag, "", False

    def _end(self, what: Transaction) -> tuple[str, str, bool]:
        if self.state == IDLE:
            return what.tag, "there is no transaction in progress", False
        committed = what.do == "commit" and self.state == OPEN
        if committed:
            self.now = self.later
        else:
            _, self.now, self.later = self.saved[0]
        self.state, self.saved = IDLE, []
        return "COMMIT" if committed else "ROLLBACK", "", True

    def _savepoint(self, what: Transaction) -> None:
        if self.state == IDLE:
            raise ProtocolFault("25P01", f"{what.do.upper()} can only be used in transaction blocks")
        if what.do != "rollback to":
            self.require_sound()
        if what.do == "savepoint":
            if len(self.saved) > MOST_SAVEPOINTS:
                raise ProtocolFault(
                    "53400", f"a transaction has at most {MOST_SAVEPOINTS} savepoints", "RELEASE some of them"
                )
            self.saved.append((what.name, self.now, self.later))
            return
        places = [i for i, (name, _, _) in enumerate(self.saved) if i and name == what.name]
        if not places:
            raise ProtocolFault("3B001", f'savepoint "{what.name[:100]}" does not exist')
        if what.do == "release":
            del self.saved[places[-1] :]
            return
        del self.saved[places[-1] + 1 :]
        _, self.now, self.later = self.saved[-1]
        self.state = OPEN
