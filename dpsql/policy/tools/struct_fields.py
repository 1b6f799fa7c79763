"""The fields of a STRUCT, read from the engine's spelling of its type: `STRUCT(city VARCHAR, "zip code" INTEGER)`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpsql.core.ir.types import VARCHAR, SqlType, parse_type

_FIELD = re.compile(r'("(?:[^"]|"")+"|[^\s(),"\']+) (.+)', re.DOTALL)
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|.""", re.DOTALL)
_DEEPEST = 5


def fields(type: str, depth: int = 0) -> Iterator[tuple[tuple[str, ...], SqlType | None]]:
    """Each field that is no STRUCT itself, by its path, with its type (of an ENUM VARCHAR); None: no policy has it."""
    if not (type.startswith("STRUCT(") and type.endswith(")")) or depth == _DEEPEST:
        return
    for part in _split(type[len("STRUCT(") : -1]):
        found = _FIELD.fullmatch(part.strip())
        if found is None:
            continue
        name = found[1][1:-1].replace('""', '"') if found[1].startswith('"') else found[1]
        known = VARCHAR if re.fullmatch(r"ENUM\(.*\)", found[2], re.DOTALL) else parse_type(found[2])
        if known is not None or not found[2].startswith("STRUCT(") or not found[2].endswith(")"):
            yield (name,), known
        for path, inner in fields(found[2], depth + 1):
            yield (name, *path), inner


def _split(text: str) -> Iterator[str]:
    """The parts between the commas that stand in no brackets and no quotes."""
    part, open_ = "", 0
    for token in _TOKEN.findall(text):
        open_ += (token == "(") - (token == ")")
        if token == "," and open_ == 0:
            yield part
            part = ""
        else:
            part += token
    yield part
