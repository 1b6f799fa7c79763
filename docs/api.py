"""The public Python API with its real parameters, and what a caller needs of its docstrings; `help` prints all."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

import dpsql
from dpsql.service.accounts.remaining_budgets import Budget, Budgets
from dpsql.service.checks.verify import Checked

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


SHORT = frozenset(
    {"SummaryMade", "CounterMade", "Ticked", "KnownCounter", "KnownSummary", "BatchRelease", "Preparation"}
)
"""Values that say what was done: a line of a list each."""
WITH_EXAMPLE = frozenset({"protect", "Query"})
"""Those whose example is shown."""
WHOLE = frozenset({"Query.run", "Query.accuracy", "Release.intervals", "Release.plot"})
"""Methods whose parameters are told one by one."""


def reference() -> str:
    """Functions, then classes with their methods."""
    lines: list[str] = []
    for name in ("connect", "protect", "check", "prepare", "verify_policy", "epsilon_to_rho"):
        lines += _function(f"dpsql.{name}", getattr(dpsql, name))
    for name, methods in SHOWN.items():
        if name not in SHORT:
            cls = getattr(dpsql, name)
            lines += [f"## dpsql.{name}", "", _doc(cls, example=name in WITH_EXAMPLE), ""]
            lines += [*(_member(cls, name, method) for method in methods), ""] if methods else []
    lines += ["## What is given", ""]
    for name in (n for n in SHOWN if n in SHORT):
        cls = getattr(dpsql, name)
        lines += [f"- `dpsql.{name}`: {_in_one(_doc(cls))}", *(_member(cls, name, m) for m in SHOWN[name])]
    lines += [f"- `Checked`, of a `Verification`: {_first(Checked)}"]
    lines += [f"- `Budgets`, of `Connection.budget`: {_first(Budgets)} {_first(Budget)}", ""]
    lines += _driver()
    lines += [
        "## Exceptions",
        "",
        "```text",
        (inspect.getmodule(dpsql.Error).__doc__ or "").split("\n\n", 1)[1].strip(),
    ]
    return "\n".join([*lines, "```"])


def _member(cls: type, name: str, member: str) -> str:
    """A line of a list: how it is called, and the first thing that is said of it; all of it for the few of WHOLE."""
    found = inspect.getattr_static(cls, member)
    if isinstance(found, classmethod):
        found = found.__func__
    if isinstance(found, property):
        return f"- `{name}.{member}`: {_first(found)}"
    head = f"- `{name}.{member}({', '.join(_parameters(found))})`: "
    if f"{name}.{member}" not in WHOLE:
        return head + _first(found)
    return head + _doc(found, example=False).replace("\n\n- ", "\n- ").replace("\n- ", "\n    - ").replace("\n\n", " ")


def _first(thing: object) -> str:
    """What is said first of it, up to what it raises."""
    return _in_one((inspect.getdoc(thing) or "").split("\n\n")[0].partition(" Raises ")[0].replace("\n- ", " "))


def _in_one(text: str) -> str:
    return " ".join(text.replace("\n- ", " ").split())


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


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Names and defaults; what may be asked of a query is `…`."""
    shown, seen_keyword = [], False
    for p in inspect.signature(function).parameters.values():
        if p.name in ("self", "cls"):
            continue
        if p.kind is p.VAR_KEYWORD:
            shown.append("…")
            continue
        if p.kind is p.KEYWORD_ONLY and not seen_keyword:
            shown.append("*")
            seen_keyword = True
        shown.append(p.name if p.default is p.empty else f"{p.name}={p.default!r}")
    return shown


def _function(name: str, function: Callable[..., Any]) -> list[str]:
    one = f"{name}({', '.join(_parameters(function))})"
    shown = textwrap.fill(one, 100, subsequent_indent="    ", break_long_words=False)
    return [f"## {name}", "", "```text", shown, "```", "", _doc(function, example=name[6:] in WITH_EXAMPLE), ""]


def _doc(thing: object, *, example: bool = False) -> str:
    """A docstring as Markdown without what it raises: an indented continuation belongs to the line above it."""
    text, prompt, shown = (inspect.getdoc(thing) or "").partition(">>> ")
    text = re.sub(r"(?:^|(?<= ))Raises .*?(?=\n\n|\Z)", "", text, flags=re.DOTALL | re.MULTILINE)
    said = _paragraphs(text.strip())
    if example and shown:
        said += f"\n\n```python skip: tested as docstrings\n{prompt}{shown.strip()}\n```"
    return said


def _paragraphs(text: str) -> str:
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith("    ") and found and found[-1]:
            found[-1] += " " + line.strip()
        else:
            found.append(line.strip())
    paragraphs: list[str] = []
    for line in found:
        if line.startswith("Returns ") and found[0] != line:
            paragraphs.append("")
        head, colon, _ = line.partition(": ")
        if colon and head.replace(", ", "").replace("_", "").isalnum() and head[:1].islower():
            paragraphs.append(f"- `{head}`{line[len(head) :]}")
        else:
            paragraphs.append(line)
    text = "\n".join(paragraphs)
    return text.replace("\n- `", "\n\n- `", 1) if "\n- `" in text and "\n\n- `" not in text else text
