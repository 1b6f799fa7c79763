"""Exit codes, and how whatever goes wrong becomes one of them and a message on standard error.

    0 ok · 1 usage or engine failure · 2 cannot open data, policy or ledger · 3 a statement failed
    4 refused by the privacy analysis · 5 budget exhausted · 130 interrupted

`dpsql check`, `dpsql diff` and `dpsql policy verify` use 0 clean · 1 findings · 2 could not check; `dpsql audit` 0 not
refuted · 1 refuted, and 2 in place of every other 1. No exception's own text is ever shown, and no traceback: both may
hold values of single rows.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Final

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen, EngineError, Error, NothingFound
from dpsql.diagnostics.layout import inert
from dpsql.diagnostics.render import render_text

OK: Final = 0
USAGE: Final = 1
CANNOT_OPEN: Final = 2
STATEMENT: Final = 3
REFUSED: Final = 4
BUDGET: Final = 5
INTERRUPTED: Final = 130

CHECK_FINDINGS: Final = 1
CHECK_IMPOSSIBLE: Final = 2

AUDIT_REFUTED: Final = 1

_ABOUT_THE_CALL = frozenset({"DP401", "DP406", "DP903"})


def status_of(error: Error) -> int:
    """The exit code of a refusal: by its kind, and for a rejected query by its first code.

    DP01x (syntax, not one query, parameters) is 3, as is a search that found nothing; what is wrong with the call
    itself (DP401 no epsilon, DP406 no privacy parameter, DP903) is 1; every other refusal is 4.
    """
    match error:
        case BudgetExceeded():
            return BUDGET
        case CannotOpen():
            return CANNOT_OPEN
        case EngineError():
            return USAGE
        case NothingFound():
            return STATEMENT
        case _:
            code = error.diagnostics[0].code
            if code in _ABOUT_THE_CALL:
                return USAGE
            if code.startswith("DP01") and code != "DP017":
                return STATEMENT
            return REFUSED


def internal_error() -> Diagnostic:
    """The one message for everything unforeseen."""
    return Diagnostic(
        "DP904",
        "dpsql itself failed; this is an error in dpsql",
        help=("report the query and the policy, without data",),
        notes=(
            "no detail is shown: it could tell values of single rows; the custodian finds it by running this in Python",
            "if the query had been paid for by then, the charge stays",
        ),
    )


def interrupted() -> str:
    """What is said after Ctrl-C."""
    return "interrupted; if the query had been paid for by then, the charge stays"


def usage_error(message: str, *help: str) -> Diagnostic:
    """A DP903 from the words of the option parser."""
    text = message.strip().rstrip(".")
    return Diagnostic("DP903", text[:1].lower() + text[1:], help=help)


def complain(diagnostics: Sequence[Diagnostic]) -> None:
    """Print findings on standard error; on a terminal folded, and in colour if it wants that."""
    columns = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    say(render_text(diagnostics, wants_color(sys.stderr), columns))


def say(text: str) -> None:
    """One text on standard error, no line of which is a command to CI. A closed standard error loses it."""
    try:
        print(inert(text), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        return


def wants_color(stream: object) -> bool:
    """Whether a stream is a terminal whose user has not asked for no colour (NO_COLOR, TERM=dumb)."""
    isatty = getattr(stream, "isatty", None)
    if isatty is None or not isatty():
        return False
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
