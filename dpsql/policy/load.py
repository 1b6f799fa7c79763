"""Loading a policy file: every mistake at once, each with file, line and column; no bytes make a traceback."""

from __future__ import annotations

import os
from pathlib import Path

from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.errors import CannotOpen
from dpsql.policy.file.yaml_text import MAX_CHARACTERS, read_yaml
from dpsql.policy.policy import Policy
from dpsql.policy.resolve.policy import build

_DRAFT = "a policy is YAML that describes data; one is drafted by  dpsql policy init DATABASE|PARQUET"


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy file.

    Raises CannotOpen: DP001 the file cannot be read, DP002 it is no YAML, DP003 it is no valid policy.
    """
    name = os.fspath(path)
    try:
        file = Path(os.path.abspath(name))
        with file.open("rb") as stream:
            raw = stream.read(4 * MAX_CHARACTERS + 1)
    except FileNotFoundError:
        raise _unreadable(name, "there is no such file") from None
    except IsADirectoryError:
        raise _unreadable(name, "it is a folder; name the policy file in it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "the path is not valid"
        raise _unreadable(name, reason.lower()) from None
    if len(raw) > 4 * MAX_CHARACTERS:
        raise _unreadable(name, "it is too large for a policy", _DRAFT)
    if b"\x00" in raw:
        raise _unreadable(name, "it is a binary file, not YAML text", _DRAFT)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable(name, "it is not UTF-8 text") from None
    return parse_policy(text, name, file.parent, path=file)


def parse_policy(
    text: str, name: str = "<policy>", directory: str | os.PathLike[str] | None = None, *, path: Path | None = None
) -> Policy:
    """Read a policy from its text. name: how messages call it. directory: what its relative paths are relative to."""
    folder = Path.cwd() if directory is None else Path(directory)
    document = read_yaml(Source(text, name), folder)
    return build(document.value, document.places, path=path, directory=folder, problems=document.problems)


def _unreadable(name: str, reason: str, *help: str) -> CannotOpen:
    shown = name if name.isprintable() and len(name) <= 300 else repr(name[:100])
    message = f"policy {shown} cannot be read: {reason}"
    return CannotOpen([Diagnostic("DP001", message, Source("", shown), Span(0, 0), help=help)])
