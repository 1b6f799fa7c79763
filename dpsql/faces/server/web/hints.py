"""Repairs in the words of this door: who fills in a form has a field for ε, and who sends JSON a member for it."""

from __future__ import annotations

import re
from typing import Final

from dpsql.faces.server.front.hints import in_sql

_SET: Final = re.compile(r"SET (epsilon|delta|rho|limits|allow_dearer|coverage) = ('?)([^\s';]+)\2")
_FIELDS: Final = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


def in_form(help: str) -> str:
    """A repair as it is said beside a form; "" for one that cannot be made there."""

    def field(found: re.Match[str]) -> str:
        name, value = found[1], found[3]
        if name == "limits":
            return "tick “find missing limits”"
        return f"write {value} into the field {_FIELDS[name]}" if name in _FIELDS else found[0]

    return _SET.sub(field, in_sql(help))


def in_json(help: str) -> str:
    """A repair as it is said to a program; "" for one that cannot be made there."""
    return _SET.sub(lambda found: f'"settings": {{"{found[1]}": "{found[3]}"}}', in_sql(help))
