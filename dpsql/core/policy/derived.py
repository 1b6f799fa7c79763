"""`from:` — what a column of the policy is made of, understood by a small strict grammar of its own.

    derived = name { "." name } [ "->>" string ] [ zone | texts ]
    zone    = "AT TIME ZONE" string
    texts   = "=" string | "IN" "(" string { "," string } ")"
    name    = letters, digits and _, or any text in double quotes

A column, a field of a STRUCT, a text in JSON, a time as clocks of a zone show it; then of the declared type. Or whether
its text is one of some. It is a function of one row alone and total: where it cannot be computed it is NULL. What was
understood is printed again; the custodian's text itself never reaches an engine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = r'(?:[A-Za-z_]\w*|"(?:[^"]|"")+")'
_STRING = r"'(?:[^']|'')*'"
_FORM = re.compile(
    rf"\s*({_NAME}(?:\.{_NAME})*)\s*(?:->>\s*({_STRING})\s*)?"
    rf"(?:AT\s+TIME\s+ZONE\s+({_STRING})\s*|=\s*({_STRING})\s*|IN\s*\(\s*({_STRING}(?:\s*,\s*{_STRING})*)\s*\)\s*)?",
    re.IGNORECASE,
)
_PATH = re.compile(r'\$(?:\.[A-Za-z_]\w*|\."[^"\\*]+"|\[\d{1,9}\])+')
_KEY = re.compile(r"[A-Za-z_]\w*")
_QUOTED_KEY = re.compile(r'\."([A-Za-z_]\w*)"')
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")


class DerivedError(ValueError):
    """The text is no such expression; the message is for the custodian."""


class NoFormError(DerivedError):
    """Not even its form is one of these: it may be an expression (core/policy/computed.py)."""


@dataclass(frozen=True, slots=True)
class Derived:
    """column: of the data. fields: of a STRUCT, one in the other. path: of a text in JSON, from `$`. zone: of a clock.

    texts: it is whether the text is one of these. path, zone, texts: empty if there are none.
    """

    column: str
    fields: tuple[str, ...] = ()
    path: str = ""
    zone: str = ""
    texts: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Equal for two that read the same, however they are spelled; empty for a column as it is, or compared."""
        if not (self.fields or self.path or self.zone) or self.texts:
            return ""
        names = tuple(n.lower() for n in (self.column, *self.fields))
        return repr((names, _QUOTED_KEY.sub(r".\1", self.path), self.zone.lower()))

    def __str__(self) -> str:
        """As a policy writes it."""
        names = ".".join(
            n if _KEY.fullmatch(n) else '"' + n.replace('"', '""') + '"' for n in (self.column, *self.fields)
        )
        path = f" ->> {_text(self.path)}" if self.path else ""
        zone = f" AT TIME ZONE {_text(self.zone)}" if self.zone else ""
        texts = ", ".join(map(_text, self.texts))
        return names + path + zone + (f" = {texts}" if len(self.texts) == 1 else f" IN ({texts})" if texts else "")


def parse_derived(text: str) -> Derived:
    """Understand a `from:`. Raises DerivedError."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise NoFormError(
            "is not understood: it is a column, a field `address.city`, a text in JSON `profile ->> '$.city'`, a time "
            "of a zone `seen AT TIME ZONE 'Europe/Berlin'` or whether a text is one of some `paid = 'yes'`"
        )
    column, *fields = (_unquoted(name) for name in re.findall(_NAME, found[1]))
    path, zone = (_unquoted(part or "") for part in found.group(2, 3))
    if found[2] is not None:
        path = f"$.{path}" if _KEY.fullmatch(path) else path
        if not _PATH.fullmatch(path):
            raise DerivedError(f"has a path that is not understood, '{path}': write  '$.city'  or  '$.homes[0].city'")
    if found[3] is not None and not _ZONE.fullmatch(zone):
        raise DerivedError(f"names no time zone, '{zone}': write  AT TIME ZONE 'Europe/Berlin'")
    texts = tuple(_unquoted(t) for t in re.findall(_STRING, found[4] or found[5] or ""))
    return Derived(column, tuple(fields), path, zone, texts)


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _unquoted(text: str) -> str:
    return text[1:-1].replace(text[0] * 2, text[0]) if text[:1] in ("'", '"') else text
