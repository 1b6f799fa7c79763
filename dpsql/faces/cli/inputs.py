"""What a command is given: SQL as an argument, in a file or on standard input; and how much to spend on it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Error, reject

if TYPE_CHECKING:
    from dpsql.faces.cli.options import SpendingOptions
    from dpsql.service.privacy_settings import Asked

MOST_BYTES = 10_000_000
"""Largest file of SQL that is read."""


def read_asked(
    given: SpendingOptions,
    allow_dearer: bool | None = None,
    coverage: bool | None = None,
    consistent_totals: bool | None = None,
) -> Asked:
    """Read the options and try them out, so that bad ones are refused before anything is opened.

    What none of them says is taken from the environment: DPSQL_EPSILON where nothing else says how much to spend,
    DPSQL_DELTA, DPSQL_LIMITS, DPSQL_ALLOW_DEARER. Raises Rejected DP406.
    """
    from dpsql.planner.settings.query_settings import QuerySettings
    from dpsql.service.privacy_settings import settled

    spends = given.epsilon is not None or given.rho is not None or given.max_error
    dearer: Any = _said("ALLOW_DEARER") if allow_dearer is None else allow_dearer
    asked: Asked = {
        "epsilon": given.epsilon if spends else _said("EPSILON"),
        "delta": _said("DELTA") if given.delta is None else given.delta,
        "rho": given.rho, "confidence": given.confidence,
        "max_error": _pairs("max-error", given.max_error), "weights": _pairs("weight", given.weight),
        "allow_dearer": dearer, "coverage": coverage, "consistent_totals": consistent_totals,
        "limits": _said("LIMITS") if given.limits is None else given.limits,
    }  # fmt: skip
    settled(asked, QuerySettings())
    return asked


def _said(name: str) -> str | None:
    """What a variable of the environment says; an empty one says nothing."""
    return os.environ.get(f"DPSQL_{name}") or None


def policy_and_query(policy: str, sql: str | None, file: str | None) -> tuple[str, str | None]:
    """A command's first two arguments. Where the environment names the policy, the first one may be the query."""
    named = _said("POLICY")
    if sql is None and file is None and named is not None and policy != named and not os.path.isfile(policy):
        return named, policy
    return policy, sql


def _pairs(option: str, given: Sequence[str] | None) -> dict[str, str] | None:
    """COL=NUMBER, repeated. The last `=` counts: a column's name may hold others."""
    if not given:
        return None
    found: dict[str, str] = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        if not equals or not name.strip() or not number.strip():
            raise reject("DP406", f"--{option} takes COLUMN=NUMBER, not {text!r}", help=[f"e.g.  --{option} n=50"])
        if name.strip() in found:
            raise reject("DP406", f"--{option} was given twice for {name.strip()!r}", help=["leave one of them out"])
        found[name.strip()] = number
    return found


def one_query(sql: str | None, file: str | None, batch: str | None = None) -> Source:
    """The text of a command that takes one query: its argument, `-f FILE`, `--batch FILE`, or standard input (`-`).

    Raises Rejected DP903 if there is none, or two, or it cannot be read.
    """
    given = {"as an argument": sql, "with --file": file, "with --batch": batch}
    if len(ways := [way for way, value in given.items() if value is not None]) > 1:
        raise reject("DP903", f"a query was given twice: {' and '.join(ways)}", help=["leave one of them out"])
    file = file if batch is None else batch
    if sql is None and file is None:
        raise reject(
            "DP903", "no query was given",
            help=[
                "give it as an argument, in a file with  --file FILE,  or on standard input with  -",
                "the policy stands before it, or is named in DPSQL_POLICY",
            ],
        )  # fmt: skip
    if file is not None:
        return read_file(file) if file != "-" else read_stdin()
    assert sql is not None
    return read_stdin() if sql == "-" else Source(_valid(sql, "the query"))


def read_file(path: str) -> Source:
    """A file of SQL, named as the user named it. Raises Rejected DP903."""
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
        return decoded(raw, path)
    except FileNotFoundError:
        reason = "there is no such file"
    except IsADirectoryError:
        reason = "it is a folder"
    except OSError as error:
        reason = (error.strerror or "it cannot be opened").lower()
    except ValueError:  # a NUL in it
        reason = "its name is not valid"
    raise reject("DP903", f"{path!r} cannot be read: {reason}")


def read_stdin() -> Source:
    """Everything on standard input. Raises Rejected DP903."""
    buffer = getattr(sys.stdin, "buffer", None)
    raw = sys.stdin.read().encode("utf-8", "surrogatepass") if buffer is None else buffer.read(MOST_BYTES + 1)
    return decoded(raw, "<stdin>")


def decoded(raw: bytes, name: str) -> Source:
    """SQL as bytes → text. Raises Rejected DP903."""
    if len(raw) > MOST_BYTES:
        raise reject("DP903", f"{name} is larger than {MOST_BYTES // 1_000_000} MB")
    if b"\x00" in raw:
        raise reject("DP903", f"{name} is a binary file, not SQL")
    try:
        return Source(raw.decode("utf-8-sig"), name)
    except UnicodeDecodeError:
        raise reject("DP903", f"{name} is not UTF-8 text", help=["save it as UTF-8"]) from None


def _valid(text: str, what: str) -> str:
    # An argument whose bytes the locale does not know arrives with halves of surrogate pairs.
    try:
        text = os.fsencode(text).decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        raise reject("DP903", f"{what} is not valid UTF-8 text") from None
    if "\x00" in text:
        raise reject("DP903", f"{what} holds a NUL character")
    return text


def pointing_into(error: Error, source: Source) -> Error:
    """The same error, its findings pointing into `source` by the name that the user knows it by."""

    def renamed(d: Diagnostic) -> Diagnostic:
        return replace(d, source=source) if d.source is not None and d.source.text == source.text else d

    error.diagnostics = tuple(map(renamed, error.diagnostics))
    return error
