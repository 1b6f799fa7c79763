"""`dpsql lsp`: the language server on standard input and output."""

from __future__ import annotations

import contextlib
import os
import sys

from dpsql.diagnostics.errors import reject
from dpsql.faces.check.examine.check_settings import Asked


def run(policy: str | None, dialect: str | None) -> int:
    """Serve until the editor says to stop. Raises Rejected DP903 if the extra is missing or an option is wrong."""
    from dpsql.frontend.parse import require_dialect

    if dialect is not None:
        require_dialect(dialect)
    try:
        from dpsql.faces.editor.language_server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise reject(
            "DP903", "the language server needs packages that are not installed",
            help=["install them:  pip install 'dpsql[lsp]'"],
        ) from None  # fmt: skip
    server = make_server(Asked(policy=None if policy is None else os.path.abspath(policy), dialect=dialect))
    # The protocol has a stream of its own, which the server closes; what anything else prints goes beside it.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stream, contextlib.redirect_stdout(sys.stderr):
        server.start_io(stdout=stream)
    return 0
