"""What one run of the shell holds: its connection, settings, variables, and where its output goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.api.session_statements import SETTINGS, setting_text
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.note import Note
from dpsql.faces.cli.shell.input.items import Feed, InputPlace
from dpsql.faces.cli.shell.looks import Looks
from dpsql.faces.cli.shell.output.output import TerminalOutput
from dpsql.service.privacy_settings import USUAL, Asked, confidence_level, setting

if TYPE_CHECKING:
    from dpsql import Connection
    from dpsql.faces.cli.shell.input.history import History


@dataclass(slots=True)
class Shell:
    """The state of a shell.

    analyst: as the caller named himself. prompting: whether somebody sits at a prompt. confidence: of the intervals
    that are shown. fresh: queries pay for new noise. yes: nothing is asked. confirm: how it is asked. last: what
    ran last. query: the last one that was no SET, RESET or SHOW. feed: the input that is being read. depth: how
    many files are open within one another. done: it is to be left. edit: what the next prompt begins with.
    notes: of the last answer.
    """

    connection: Connection
    analyst: str | None = None
    looks: Looks = field(default_factory=Looks)
    confidence: str | float = USUAL
    dialect: str = "duckdb"
    prompting: bool = False
    quiet: bool = False
    yes: bool = False
    fresh: bool = False
    output: TerminalOutput = field(default_factory=TerminalOutput)
    variables: dict[str, str] = field(default_factory=dict)
    history: History | None = None
    feed: Feed = field(default_factory=Feed)
    last: tuple[str, InputPlace] | None = None
    query: tuple[str, InputPlace] | None = None
    depth: int = 0
    done: bool = False
    edit: str = ""
    notes: Sequence[Note] = ()
    confirm: Callable[[str], bool] | None = None

    @property
    def asked(self) -> Asked:
        """What is asked of a query beyond the session's settings."""
        return {"confidence": self.confidence}

    def set_amount(self, name: str, amount: str | None) -> None:
        """Set what holds for the queries that follow, or (None) go back to how the shell was started.

        Raises Rejected DP406, DP903.
        """
        if name == "confidence":
            wanted = USUAL if amount is None else amount
            confidence_level(wanted)
            self.confidence = wanted
        elif name in SETTINGS:
            self.connection.set(name, amount)
        else:
            known = ", ".join(SETTINGS)
            raise reject("DP903", f"there is no setting {name!r}", help=[f"settings are {known}; looks: \\pset"])

    def amount(self, name: str) -> str:
        """A setting in words."""
        if name == "confidence":
            return str(self.confidence)
        own = setting(self.connection.settings, name)
        if own is not None:
            return setting_text(own)
        default: Fraction | bool | None = getattr(self.connection.policy.defaults, name, None)
        return "not set" if default is None else f"{setting_text(default)} (the policy's default)"

    def confirmation(self, name: str, amount: str | None) -> str:
        """What is said once `set_amount` has set an amount."""
        return f"{name}: {'back to ' if amount is None else ''}{self.amount(name)}"
