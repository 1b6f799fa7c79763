"""The pages of all keys of a policy and of all settings of a query, from the code that reads them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from docs.shell import table
from dpsql.policy.file.schema import policy_schema
from dpsql.service.privacy_settings import Asked, Options

_HEADINGS = {
    "": "The file", "tables": "A table", "tables.columns": "A column", "units": "A unit", "privacy": "`privacy`",
    "defaults": "`defaults`", "budgets": "`budgets`", "serving": "`serving`", "failures": "`failures`",
}  # fmt: skip
"""Where a new table begins: path of a key → its title."""


def policy_keys() -> str:
    """Every key of a policy file with what it says, by its part; what is alike in a part stands once."""
    schema = policy_schema()
    parts: dict[str, list[tuple[str, str]]] = {"": []}
    for path, text in _keys(schema, schema["$defs"], "", ()):
        part = max((p for p in _HEADINGS if path.startswith(f"{p}.") or not p), key=len)
        name = path.removeprefix(f"{part}." if part else "")
        rows = parts.setdefault(part, [])
        leaf = name.rpartition(".")[2]
        if not any(text == said and known.strip("`").rpartition(".")[2] == leaf for known, said in rows):
            rows.append((f"`{name}`", text))
    return "\n\n".join(f"### {_HEADINGS[part]}\n\n{table(('key', 'meaning'), rows)}" for part, rows in parts.items())


def _keys(node: Any, known: dict[str, Any], path: str, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name, key in node.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here, " ".join(str(key.get("description", "")).split())
        for reference in dict.fromkeys(_references(key)):
            if reference not in above:
                yield from _keys(known[reference], known, here, (*above, reference))


def _references(key: Any) -> Iterator[str]:
    """The definitions that a key's value may be one of, also as an element or a value of it."""
    if "$ref" in key:
        yield key["$ref"].rpartition("/")[2]
    for each in (
        *key.get("anyOf", ()),
        *key.get("oneOf", ()),
        *(key.get(n) for n in ("items", "additionalProperties")),
    ):
        if isinstance(each, dict):
            yield from _references(each)


def query_settings() -> str:
    """Every setting of a query, from the docstrings that Python shows."""
    said = dict[str, str]()
    for of in (Asked, Options):
        text = inspect.getdoc(of) or ""
        for name, meaning in re.findall(r"^(\w+): (.*?)(?=^\w+: |\Z)", text, re.MULTILINE | re.DOTALL):
            said[name] = " ".join(meaning.split())
    return table(("setting", "meaning"), [(f"`{name}`", text[:1].upper() + text[1:]) for name, text in said.items()])
