"""What is refused because there is too much of it, in words that depend on declared numbers alone."""

from __future__ import annotations

from typing import Final

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.note import NOTHING_RAN
from dpsql.faces.server.statements import ENDING, FAILED, STOPPED, TOO_MANY, UNWRITTEN, Refused

_LATER: Final = "try again later;  custodian: see  serve:  in the policy"
_STORED: Final = "what was charged stays charged, and is stored: asked again it is free"


def queue_full(most: int) -> Refused:
    """Too many statements of an account wait."""
    message = f"{most} statements of your account wait already, and no more may"
    return Refused([Diagnostic("DP414", message, help=(_LATER,), notes=(NOTHING_RAN,))], TOO_MANY)


def no_room(*, is_paid: bool = False) -> Refused:
    """The answers that this account's connections hold, or those of all, have too many bytes. is_paid: whether the
    statement ran all the same."""
    message = "the answers that the server holds for its clients have too many bytes for a further one"
    help = ("read them, close cursors and connections:  CLOSE ALL", _LATER)
    return Refused([Diagnostic("DP414", message, help=help, notes=(_STORED if is_paid else NOTHING_RAN,))], TOO_MANY)


def ending() -> Refused:
    """The server stops, and begins nothing more."""
    return Refused([Diagnostic("DP414", "the server is stopping", help=(_LATER,), notes=(NOTHING_RAN,))], ENDING)


def unrecorded(*, is_paid: bool) -> Refused:
    """The audit log cannot be written. is_paid: whether the statement ran all the same."""
    note = _STORED if is_paid else NOTHING_RAN
    message = "the audit log of the server cannot be written, so nothing is answered"
    return Refused([Diagnostic("DP904", message, help=("tell the custodian",), notes=(note,))], UNWRITTEN)


def failed() -> Refused:
    """One error for an engine that fails, a worker that dies, and a statement that takes too long."""
    return Refused(
        [
            Diagnostic(
                "DP901",
                "the statement failed, or took longer than the server allows; what was charged stays charged",
                help=("ask for less at one time;  custodian: see  serve: {answers_at: […]}  in the policy",),
                notes=("why is not shown: it could tell of single rows",),
            )
        ],
        FAILED,
    )


def beside_another() -> Refused:
    """Behind one that failed, in the same round: it was charged with all others, and never let read."""
    diagnostic = Diagnostic(
        "DP901",
        "another statement of your account, asked at the same time, failed or took too long before this one began; "
        "what was charged stays charged",
        help=("ask it again",),
        notes=("this one has read nothing, and counts as no failure",),
    )
    return Refused([diagnostic], FAILED)


def stopped() -> Refused:
    """The analyst has ended his statement."""
    diagnostic = Diagnostic("DP901", "the statement was stopped; what was charged stays charged")
    return Refused([diagnostic], STOPPED)
