"""The public Python API with its real signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import dpsql
from dpsql.session.connection import Budget, Budgets
from dpsql.session.verify import Checked

SHOWN: dict[str, tuple[str, ...]] = {
    "Connection": ("sql", "execute", "plan", "preview", "price", "run", "budget", "close"),
    "Query": ("plan", "explain", "cost", "accuracy", "run"),
    "Release": ("fetchall", "fetchone", "intervals", "components", "to_dict", "df", "pl", "arrow"),
    "PrivacyLoss": (),
    "Diagnostic": (),
    "Verification": ("holds", "broken"),
}


def reference() -> str:
    """Functions, then classes with their methods."""
    lines: list[str] = []
    for name in ("connect", "check", "verify_policy"):
        lines += _function(f"dpsql.{name}", getattr(dpsql, name), "##")
    for name, methods in SHOWN.items():
        cls = getattr(dpsql, name)
        lines += [f"## dpsql.{name}", "", _doc(cls), ""]
        for method in methods:
            found = inspect.getattr_static(cls, method)
            if isinstance(found, property):
                lines += [f"### {name}.{method}", "", f"A property. {_doc(found)}", ""]
            else:
                lines += _function(f"{name}.{method}", found, "###")
    lines += ["### Checked", "", _doc(Checked), ""]
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
    lines += [
        "## Exceptions",
        "",
        "```text",
        (inspect.getmodule(dpsql.Error).__doc__ or "").split("\n\n", 1)[1].strip(),
    ]
    return "\n".join([*lines, "```"])


def _function(name: str, function: Callable[..., Any], level: str) -> list[str]:
    shown, seen_keyword = [], False
    for p in inspect.signature(function).parameters.values():
        if p.name == "self":
            continue
        if p.kind is p.KEYWORD_ONLY and not seen_keyword:
            shown.append("*")
            seen_keyword = True
        text = p.name if p.annotation is p.empty else f"{p.name}: {p.annotation}"
        shown.append(text if p.default is p.empty else f"{text} = {p.default!r}")
    result = inspect.signature(function).return_annotation
    one = f"{name}({', '.join(shown)}) -> {result}"
    if len(one) > 100:
        one = f"{name}(\n" + "".join(f"    {part},\n" for part in shown) + f") -> {result}"
    return [f"{level} {name}", "", "```text", one, "```", "", _doc(function), ""]


def _doc(thing: object) -> str:
    """A docstring as Markdown: an indented continuation belongs to the line above it."""
    found: list[str] = []
    for line in (inspect.getdoc(thing) or "").splitlines():
        if line.startswith("    ") and found and found[-1]:
            found[-1] += " " + line.strip()
        else:
            found.append(line.strip())
    paragraphs: list[str] = []
    for line in found:
        if line.startswith("Raises ") and found[0] != line:
            paragraphs.append("")
        head, colon, _ = line.partition(": ")
        if colon and head.replace(", ", "").replace("_", "").isalnum() and head[:1].islower():
            paragraphs.append(f"- `{head}`{line[len(head) :]}")
        else:
            paragraphs.append(line)
    text = "\n".join(paragraphs)
    return text.replace("\n- `", "\n\n- `", 1) if "\n- `" in text and "\n\n- `" not in text else text
