"""The public Python API with its real signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import dpsql
from dpsql.service.accounts.remaining_budgets import Budget, Budgets
from dpsql.service.checks.verify import Checked
from dpsql.service.privacy_settings import Asked, Options

SHOWN: dict[str, tuple[str, ...]] = {
    "Connection": (
        "sql",
        "execute",
        "executemany",
        "cursor",
        "commit",
        "rollback",
        "set",
        "plan",
        "preview",
        "price",
        "run",
        "summary",
        "summaries",
        "drop_summary",
        "counter_of",
        "counters",
        "receive_counter",
        "tick_counter",
        "drop_counter",
        "budget",
        "close",
    ),
    "Cursor": (
        "execute",
        "executemany",
        "description",
        "rowcount",
        "fetchone",
        "fetchmany",
        "fetchall",
        "nextset",
        "release",
        "setinputsizes",
        "setoutputsize",
        "close",
    ),
    "Query": ("plan", "explain", "cost", "accuracy", "run"),
    "Batch": ("cost", "explain", "run"),
    "BatchRelease": ("predicted_error",),
    "BatchAnswer": ("intervals", "to_dict", "df"),
    "SummaryQuery": ("cost", "explain", "run"),
    "SummaryMade": (),
    "CounterQuery": ("cost", "explain", "run"),
    "CounterMade": (),
    "Ticked": (),
    "KnownCounter": (),
    "KnownSummary": (),
    "Release": (
        "rows",
        "fetchall",
        "intervals",
        "gaps",
        "coverage",
        "components",
        "to_dict",
        "df",
        "pl",
        "arrow",
        "plot",
    ),
    "Policy": ("from_dict", "from_yaml", "from_file", "table", "called", "schemas_of", "account", "caps_for", "place"),
    "PrivacyLoss": (),
    "Diagnostic": (),
    "Verification": ("holds", "broken"),
    "Preparation": (),
}


def reference() -> str:
    """Functions, then classes with their methods."""
    lines: list[str] = []
    for name in ("connect", "protect", "check", "prepare", "verify_policy", "epsilon_to_rho"):
        lines += _function(f"dpsql.{name}", getattr(dpsql, name), "##")
    for name, methods in SHOWN.items():
        cls = getattr(dpsql, name)
        members = [_member(cls, name, method) for method in methods]
        lines += [f"## dpsql.{name}", "", _doc(cls), ""]
        small = [line for (line,) in filter(lambda shown: len(shown) == 1, members)]
        lines += [*small, ""] if small else []
        lines += [line for shown in members if len(shown) > 1 for line in shown]
    lines += ["### Checked", "", _doc(Checked), ""]
    lines += ["## dpsql.Options", "", "Keywords, each of which may be left out. " + _doc(Options), ""]
    lines += ["```text", *(f"{name}: {kind}" for name, kind in _fields(Options)), "```", ""]
    lines += ["### Asked", "", "What `execute` takes: " + _doc(Asked), ""]
    lines += ["```text", *(f"{name}: {kind}" for name, kind in _fields(Asked) if name not in Options.__annotations__)]
    lines += ["```", ""]
    lines += [
        "## Budgets",
        "",
        "What `Connection.budget` gives. " + _doc(Budgets),
        "",
        "### Budget",
        "",
        _doc(Budget),
        "",
    ]
    lines += _driver()
    lines += [
        "## Exceptions",
        "",
        "```text",
        (inspect.getmodule(dpsql.Error).__doc__ or "").split("\n\n", 1)[1].strip(),
    ]
    return "\n".join([*lines, "```"])


def _member(cls: type, name: str, member: str) -> list[str]:
    """A section for a method; a line of a list for a property, and for a method that needs no more."""
    found = inspect.getattr_static(cls, member)
    if isinstance(found, classmethod):
        found = found.__func__
    if isinstance(found, property):
        return [f"- `{name}.{member}`, a property. {_in_one(_doc(found))}"]
    section = _function(f"{name}.{member}", found, "###")
    signature, text = section[3], section[6:]
    if section[4] == "```" and len(text) == 2 and "\n\n" not in text[0] and "\n- " not in text[0]:
        return [f"- `{signature}`. {_in_one(text[0])}"]
    return section


def _in_one(text: str) -> str:
    return " ".join(text.split())


def _fields(options: type) -> list[tuple[str, str]]:
    """The names of a TypedDict and their types, as they are written."""
    return [(name, kind.__forward_arg__) for name, kind in options.__annotations__.items()]


def _driver() -> list[str]:
    """What PEP 249 asks of the module."""
    made = "Date, Time, Timestamp, DateFromTicks, TimeFromTicks, TimestampFromTicks, Binary"
    kinds = "STRING, BINARY, NUMBER, DATETIME, ROWID"
    return [
        "## PEP 249",
        "",
        f"`dpsql.apilevel` is `{dpsql.apilevel!r}`, `dpsql.threadsafety` {dpsql.threadsafety} (threads may share the "
        f"module and connections, not cursors), `dpsql.paramstyle` `{dpsql.paramstyle!r}` (`?` with a sequence; "
        "`$name` with a mapping is understood, too). The exceptions are attributes of connections as well.",
        "",
        f"Constructors: {_listed(made)}: the classes of `datetime`, and `bytes`. Type objects: {_listed(kinds)}. A "
        "type code in `Cursor.description` is the name of the SQL type and equals the type object of its kind; "
        "intervals are DATETIME, booleans are NUMBER, nothing is a ROWID.",
        "",
    ]


def _listed(names: str) -> str:
    return ", ".join(f"`dpsql.{name}`" for name in names.split(", ") if hasattr(dpsql, name))


def _function(name: str, function: Callable[..., Any], level: str) -> list[str]:
    shown, seen_keyword = [], False
    for p in inspect.signature(function).parameters.values():
        if p.name in ("self", "cls"):
            continue
        if p.kind is p.KEYWORD_ONLY and not seen_keyword:
            shown.append("*")
            seen_keyword = True
        shown_name, kind = p.name, str(p.annotation)
        if p.kind is p.VAR_KEYWORD:
            shown_name, kind = f"**{p.name}", kind.removeprefix("Unpack[").removesuffix("]")
        text = shown_name if p.annotation is p.empty else f"{shown_name}: {kind}"
        shown.append(text if p.default is p.empty else f"{text} = {p.default!r}")
    result = inspect.signature(function).return_annotation
    one = f"{name}({', '.join(shown)}) -> {result}"
    if len(one) > 100:
        one = f"{name}(\n" + "".join(f"    {part},\n" for part in shown) + f") -> {result}"
    keywords = [] if "**" not in one else ["Keywords: [dpsql.Options](#dpsqloptions).", ""]
    return [f"{level} {name}", "", "```text", one, "```", "", _doc(function), "", *keywords]


def _doc(thing: object) -> str:
    """A docstring as Markdown: an indented continuation belongs to the line above it; examples come last."""
    text, prompt, example = (inspect.getdoc(thing) or "").partition(">>> ")
    shown = _paragraphs(text.strip())
    if example:
        shown += f"\n\n```python skip: tested as docstrings\n{prompt}{example.strip()}\n```"
    return shown


def _paragraphs(text: str) -> str:
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith("    ") and found and found[-1]:
            found[-1] += " " + line.strip()
        else:
            found.append(line.strip())
    paragraphs: list[str] = []
    for line in found:
        if line.startswith(("Raises ", "Returns ")) and found[0] != line:
            paragraphs.append("")
        head, colon, _ = line.partition(": ")
        if colon and head.replace(", ", "").replace("_", "").isalnum() and head[:1].islower():
            paragraphs.append(f"- `{head}`{line[len(head) :]}")
        else:
            paragraphs.append(line)
    text = "\n".join(paragraphs)
    return text.replace("\n- `", "\n\n- `", 1) if "\n- `" in text and "\n\n- `" not in text else text
