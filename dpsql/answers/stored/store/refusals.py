"""The words of a store that cannot be used (DP407)."""

from __future__ import annotations

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen
from dpsql.diagnostics.note import NOTHING_RAN

DISK = "check the disk's free space and the permissions of the file and its directory"
DAMAGED = "custodian: restore the file, or remove it: the answers it holds are then paid for again"


def unusable(path: object, what: str, *help: str, nothing_ran: bool = True) -> CannotOpen:
    """The DP407 refusal: these stored answers cannot be used, why, and what to do."""
    return CannotOpen(
        [Diagnostic("DP407", f"stored answers {path}: {what}", help=help, notes=(NOTHING_RAN,) if nothing_ran else ())]
    )


def kept_waiting(path: object, seconds: float) -> CannotOpen:
    """The refusal after waiting for somebody who is running the same query."""
    return unusable(
        path,
        f"the same query has been running elsewhere for {seconds:g} s, and its answer will be this one's too",
        "wait for it and ask again; or pay for new noise:  run(fresh=True)  or  --fresh",
    )
