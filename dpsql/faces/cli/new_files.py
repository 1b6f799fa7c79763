"""Writing a text to a new file, or to standard output."""

from __future__ import annotations

import os
import sys

from dpsql.diagnostics.errors import reject


def require_new(output: str | None) -> None:
    """Raises Rejected DP903 for a file that is there already, before anything is done for it."""
    if output not in (None, "-") and os.path.lexists(str(output)):
        raise reject("DP903", f"{output!r} exists already", help=["remove it first, or write to another file"])


def write_text(text: str, output: str | None) -> None:
    """Write to standard output, or to a file that must not exist yet. Raises Rejected DP903."""
    if output is None or output == "-":
        sys.stdout.write(text)
        return
    try:
        with open(output, "x", encoding="utf-8") as file:
            file.write(text)
        print(f"wrote {output}", file=sys.stderr)
        return
    except FileExistsError:
        raise reject(
            "DP903", f"{output!r} exists already", help=["remove it first, or write to another file"]
        ) from None
    except OSError as error:
        reason = (error.strerror or os.strerror(error.errno or 0)).lower()
    except ValueError:  # a NUL in it
        reason = "the name is not valid"
    raise reject("DP903", f"{output!r} cannot be written: {reason}")
