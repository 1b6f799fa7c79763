"""Mistakes in a policy, collected so that all are told at once, in the custodian's words."""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpsql.core.policy.positions import Loc, Places
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.words import in_digits, number, with_article


@dataclass(frozen=True, slots=True)
class Issue:
    """One mistake at `loc`.

    about: True if the message speaks of the last key of `loc` and continues its name ("bounds must be …"); False if
        the message stands for itself behind the dotted path. key: point at the key instead of the value. secret: the
        policy's text there is shown to nobody.
    """

    loc: Loc
    message: str
    about: bool = True
    key: bool = False
    help: tuple[str, ...] = ()
    code: str = "DP003"
    secret: bool = False

    def text(self) -> str:
        """The message behind its dotted path: `tables.patients.columns.age: bounds must be …`."""
        if not self.about:
            return f"{dotted(self.loc)}: {self.message}" if self.loc else self.message
        cut = max((i for i, part in enumerate(self.loc) if isinstance(part, str)), default=0)
        parent, name = dotted(self.loc[:cut]), dotted(self.loc[cut:])
        return f"{parent}: {name} {self.message}" if parent else f"{name} {self.message}".strip()

    def diagnostic(self, places: Places, severity: str = "error") -> Diagnostic:
        """The finding, pointing into the policy's text if it has one."""
        place = None if self.secret else places.find(self.loc, key=self.key)
        source, span = (None, None) if place is None else place
        return Diagnostic(self.code, self.text(), source, span, help=self.help, severity=severity)


@dataclass(slots=True)
class Issues:
    """Collects mistakes while a policy is resolved."""

    found: list[Issue] = field(default_factory=list)

    def add(self, loc: Loc, message: str, *help: str, about: bool = True, key: bool = False) -> None:
        """Note one mistake."""
        self.found.append(Issue(loc, message, about, key, help))


def dotted(loc: Sequence[str | int]) -> str:
    """`tables.visits.unique[0]`"""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = part if part.strip() and not set(part) & set(".[]: \n") else repr(part)
            text += f".{shown}" if text else shown
    return text


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """ ", did you mean `visits`?" or nothing."""
    known = list(names)
    folded = {n.casefold(): n for n in reversed(known)}
    close = difflib.get_close_matches(name[:100].casefold(), list(folded)[:2000], n=1, cutoff=0.6)
    return f", did you mean `{folded[close[0]]}`?" if close else ""


def listed(names: Iterable[str], limit: int = 8) -> str:
    """`a`, `b` and 3 more"""
    known = list(names)
    shown = ", ".join(f"`{n}`" for n in known[:limit])
    return f"{shown} and {len(known) - limit} more" if len(known) > limit else shown


def shown(value: Any, limit: int = 60) -> str:
    """A value as YAML would have it, cut short."""
    match value:
        case None:
            text = "null"
        case bool():
            text = "true" if value else "false"
        case Fraction():
            text = number(value)
        case int() | Decimal() | dt.date() | float():
            text = in_digits(value)
        case str():
            text = repr(value)
        case list() | tuple():
            text = "[" + ", ".join(shown(v, 20) for v in value[:8]) + (", …]" if len(value) > 8 else "]")
        case dict():
            text = (
                "{"
                + ", ".join(f"{in_digits(k)}: {shown(v, 20)}" for k, v in list(value.items())[:4])
                + (", …}" if len(value) > 4 else "}")
            )
        case _:
            text = with_article(type(value).__name__)
    return text if len(text) <= limit else text[: limit - 1] + "…"
