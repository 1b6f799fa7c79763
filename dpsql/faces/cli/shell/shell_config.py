"""The user's own settings: `[shell]` of a TOML file, and environment variables. Flags win over both."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.words import in_digits
from dpsql.faces.cli.inputs import read_file
from dpsql.faces.cli.shell.looks import OPTIONS, Looks, changed

PLAIN: Final = {
    "policy": "The policy file, where the command line names none.",
    "analyst": "Whose budget is spent.",
    "ledger": "The ledger, instead of the policy's; :memory: forgets.",
    "epsilon": "Spent by each query that does not say.",
    "delta": "δ of each query that does not say.",
    "allow_dearer": "`on`: stored answers of others may cost more than what is asked.",
    "limits": "`search`: a quarter of the price finds limits and bounds.",
    "dialect": "The SQL dialect that is typed.",
}
"""Keys of texts: what they mean."""

SWITCHES: Final = {
    "history": "Whether inputs at the prompt are kept in a file.",
    "vi": "Keys as in vi, not as in Emacs.",
    "complete_while_typing": "Offer completions without Tab.",
}
"""Keys of true and false: what they mean."""

ENVIRONMENT: Final = {
    "DPSQL_POLICY": "The policy file, where the command line names none.",
    "DPSQL_ANALYST": "Whose budget is spent.",
    "DPSQL_LEDGER": "The ledger, instead of the policy's; :memory: forgets.",
    "DPSQL_EPSILON": "Spent by each query that does not say.",
    "DPSQL_DELTA": "δ of each query that does not say.",
    "DPSQL_ALLOW_DEARER": "`on`: stored answers of others may cost more than what is asked.",
    "DPSQL_LIMITS": "`search`: a quarter of the price finds limits and bounds.",
    "DPSQL_CONFIG": "The configuration file, instead of `dpsql/config.toml` in the user's configuration directory.",
    "DPSQL_HISTORY": "The history file; `off` keeps none.",
    "DPSQL_PAGER, PAGER": "The program that shows long answers; empty for none. Default: less.",
    "VISUAL, EDITOR": "The program that `\\e` starts. Default: vi.",
    "NO_COLOR": "Set to anything: no colours.",
    "TERM": "`dumb`: no colours, and lines are read without editing.",
    "XDG_CONFIG_HOME, XDG_STATE_HOME": "Where configuration and history lie. Default: `~/.config`, `~/.local/state`.",
}
"""Environment variables that the shell reads: what they mean."""


@dataclass(frozen=True, slots=True)
class Config:
    """What the file says. texts: the keys of PLAIN and their values."""

    looks: Looks = field(default_factory=Looks)
    texts: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    history: bool = True
    vi: bool = False
    complete_while_typing: bool = False


def load_config() -> Config:
    """The file that DPSQL_CONFIG names (it has to be there), else the usual one, if there is one.

    Raises Rejected DP903 with the place of what is wrong.
    """
    named = os.environ.get("DPSQL_CONFIG")
    if named:
        return parse(read_file(named))
    path = default_path()
    return parse(read_file(str(path))) if path is not None and os.path.lexists(path) else Config()


def default_path() -> Path | None:
    """`dpsql/config.toml` in the user's configuration directory (XDG); None if nobody knows that."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        base = Path(config) if os.path.isabs(config) else Path.home() / ".config"
    except RuntimeError:
        return None
    return base / "dpsql" / "config.toml"


def parse(source: Source) -> Config:
    """Read a configuration. Raises Rejected DP903."""
    try:
        found = tomllib.loads(source.text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _broken(source, str(error)) from None
    except ValueError:  # Python reads whole numbers of up to 4,300 digits
        raise _broken(source, "a number in it has too many digits") from None
    for section in found:
        if section != "shell":
            raise _unknown(source, section, ("shell",), "section")
    shell = found.get("shell", {})
    if not isinstance(shell, dict):
        raise _at(source, "shell", "shell is a section, not a value", "write  [shell]")
    looks, texts, switches = Looks(), {}, {}
    variables: dict[str, str] = {}
    for key, value in shell.items():
        if key in OPTIONS:
            looks = _looks(source, looks, key, value)
        elif key in PLAIN:
            texts[key] = _text(source, key, value)
        elif key in SWITCHES:
            if not isinstance(value, bool):
                raise _at(source, key, f"{key} is true or false, not {_shown(value)}")
            switches[key] = value
        elif key == "variables":
            if not isinstance(value, dict):
                raise _at(source, key, "variables is a section of names and values", "write  [shell.variables]")
            variables = {name: _text(source, name, one) for name, one in value.items()}
        else:
            raise _unknown(source, key, (*OPTIONS, *PLAIN, *SWITCHES, "variables"), "key")
    return Config(looks, texts, variables, **switches)


def _looks(source: Source, looks: Looks, key: str, value: Any) -> Looks:
    try:
        return changed(looks, key, _text(source, key, value))
    except Rejected as refusal:
        d = refusal.diagnostics[0]
        raise _at(source, key, d.message, *d.help) if d.source is None else refusal from None


def _text(source: Source, key: str, value: Any) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case str():
            return value
        case int() | float():
            return in_digits(value)
        case _:
            raise _at(source, key, f"{key} is a text or a number, not {_shown(value)}")


def _shown(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a section" if isinstance(value, dict) else repr(value)


def _unknown(source: Source, key: str, known: tuple[str, ...], what: str) -> Rejected:
    close = difflib.get_close_matches(key, known, n=1)
    meant = f"did you mean {close[0]}?" if close else f"{what}s are {', '.join(known)}"
    return _at(source, key, f"there is no {what} {key!r}", meant)


def _at(source: Source, key: str, message: str, *help: str) -> Rejected:
    """The refusal at the line of a key: the parser tells values, not where they stand."""
    place = re.search(rf"^[ \t]*\[?\[?(?:shell\.)?[\"']?({re.escape(key)})[\"']?[ \t]*(?:[=.\]]|$)", source.text, re.M)
    span = Span(*place.span(1)) if place else None
    return reject("DP903", message, source=source, span=span, help=help)


def _broken(source: Source, said: str) -> Rejected:
    place = re.search(r"\(at line (\d+), column (\d+)\)", said)
    message = re.sub(r" \(at .*?\)$", "", said)
    span = None
    if place:
        lines = source.text.split("\n")
        at = sum(len(line) + 1 for line in lines[: int(place[1]) - 1]) + int(place[2]) - 1
        span = Span(at, at + 1)
    return reject("DP903", f"not TOML: {message[:1].lower()}{message[1:]}", source=source, span=span)


def from_environment() -> dict[str, str]:
    """The texts (keys of PLAIN) that environment variables give; empty ones count as not given."""
    found = {name: os.environ.get(f"DPSQL_{name.upper()}", "") for name in PLAIN if name != "dialect"}
    return {name: value for name, value in found.items() if value}
