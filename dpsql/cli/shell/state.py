"""What one run of the shell holds: its connection, settings, variables, and where its output goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpsql.cli.shell.feed import Feed, Place
from dpsql.cli.shell.looks import Looks
from dpsql.cli.shell.output import Output
from dpsql.compiler.settings import Settings
from dpsql.diagnostics.errors import reject
from dpsql.session.settings import Asked

if TYPE_CHECKING:
    from dpsql import Connection
    from dpsql.cli.shell.history import History

AMOUNTS: Final = ("epsilon", "delta", "rho", "confidence")
"""What `SET name = …` sets for the queries that follow."""


@dataclass(slots=True)
class Shell:
    """The state of a shell.

    analyst: as the caller named himself. ledger: the file, if it is not the policy's. prompting: whether somebody sits
    at a prompt. asked: what holds for the queries that follow. fresh: they pay for new noise. yes: nothing is asked.
    confirm: how it is asked. last: the statement that ran last. feed: the input that is being read. depth: how many
    files are open within one another. done: it is to be left. edit: what the next prompt begins with.
    """

    connection: Connection
    analyst: str | None = None
    ledger: Path | None = None
    looks: Looks = field(default_factory=Looks)
    asked: Asked = field(default_factory=Asked)
    dialect: str = "duckdb"
    prompting: bool = False
    quiet: bool = False
    yes: bool = False
    fresh: bool = False
    output: Output = field(default_factory=Output)
    variables: dict[str, str] = field(default_factory=dict)
    history: History | None = None
    feed: Feed = field(default_factory=Feed)
    last: tuple[str, Place] | None = None
    depth: int = 0
    done: bool = False
    edit: str = ""
    confirm: Callable[[str], bool] | None = None

    def set_amount(self, name: str, amount: str | None) -> None:
        """Set how much the queries that follow spend, or (None) let the policy say. Raises Rejected DP406, DP903."""
        name = name.lower()
        if name not in AMOUNTS:
            raise reject(
                "DP903", f"there is no setting {name!r}", help=[f"settings are {', '.join(AMOUNTS)}; looks: \\pset"]
            )
        base = Asked()
        changes: dict[str, Any] = {name: getattr(base, name) if amount is None else amount.strip()}
        if name in ("epsilon", "rho"):  # each says how much to spend
            changes = {"epsilon": None, "rho": None, **changes}
        changed = replace(self.asked, **changes)
        changed.settled(Settings())
        self.asked = changed

    def amount(self, name: str) -> str:
        """A setting in words."""
        own = getattr(self.asked, name)
        if own is not None:
            return str(own)
        default = {"epsilon": self.connection.policy.defaults.epsilon, "delta": self.connection.policy.defaults.delta}
        found = default.get(name)
        return "not set" if found is None else f"{float(found):g} (the policy's default)"
