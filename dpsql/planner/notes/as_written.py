"""Help that repeats a part of the query repeats it as the query writes it."""

from __future__ import annotations

import re
from dataclasses import replace

from dpsql.diagnostics.diagnostic import Diagnostic


def as_written(found: Diagnostic) -> Diagnostic:
    """A clip that the help proposes names the column as the query does: with its table, in quotes."""
    if found.source is None or found.span is None:
        return found
    written = found.source.text[found.span.start : found.span.end]
    if _NAME.fullmatch(written):
        name = written.rpartition(".")[2].strip('"')
        clip = re.compile(rf"(?<=CLIP\(){re.escape(name)}(?=, [^,]+, [^,]+\)\Z)", re.IGNORECASE)
        return replace(found, help=tuple(clip.sub(lambda _: written, text) for text in found.help))
    return replace(found, help=tuple(_CLIP.sub(lambda m: _same(m[0], written), text) for text in found.help))


_NAME = re.compile(r'[\w."]+')
_CLIP = re.compile(r"(?<=CLIP\().+(?=, [^,]+, [^,]+\)\Z)")
_LOOSE = re.compile(r'\w+\.|[\s"()]')
"""In what two spellings of an expression may differ: tables, quotes, blanks and brackets."""


def _same(shown: str, written: str) -> str:
    """An expression as the query writes it, if it is what is marked there."""
    alike = _LOOSE.sub("", shown).lower() == _LOOSE.sub("", written).lower()
    return written if alike and "\n" not in written else shown
