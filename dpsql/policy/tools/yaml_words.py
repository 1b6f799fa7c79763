"""Names and texts as YAML that reads back as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = {"null", "true", "false"}


def scalar(text: str) -> str:
    """A scalar; plain where that is safe."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(_escape(c) for c in text) + '"'


def listing(names: Iterable[str]) -> str:
    """A list of texts, in one line."""
    return f"[{', '.join(map(scalar, names))}]"


def reference(name: str) -> str:
    """A name in a reference `table(column)`, which quotes as SQL does."""
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _escape(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    return c if c.isprintable() and ord(c) < 0x10000 else f"\\U{ord(c):08x}"
