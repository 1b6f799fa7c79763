"""How answers look, and when the shell asks before it spends: the options of `\\pset`, flags and the config file."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from dpsql.core.privacy_loss import exact
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.faces.cli.options import Format, Intervals

_ON: Final = frozenset({"on", "true", "yes", "1"})
_OFF: Final = frozenset({"off", "false", "no", "0"})
_FORMATS: Final = {"aligned": "table", "md": "markdown", "expanded": "vertical"}


@dataclass(frozen=True, slots=True)
class Looks:
    """Everything about looks that a user may set.

    expanded: None is auto: one line a value where the table would be wider than the terminal.
    confirm: the share of what is left that a query may take without a question; None: never ask.
    """

    format: Format = Format.TABLE
    expanded: bool | None = None
    tuples_only: bool = False
    footer: bool = True
    intervals: Intervals = Intervals.ON
    null: str = "NULL"
    fieldsep: str = "|"
    pager: str = "on"
    confirm: Fraction | None = Fraction(1, 4)


@dataclass(frozen=True, slots=True)
class LookOption:
    """One option: its values in words, what it does, and how a text becomes its value (ValueError: it does not).

    Without a value an option that `switches` goes over to its other state; others are shown.
    """

    name: str
    values: str
    help: str
    read: Callable[[str], Any]
    switches: bool = False

    def shown(self, looks: Looks) -> str:
        """Its value as a user would write it."""
        value = getattr(looks, self.name)
        match value:
            case bool():
                return "on" if value else "off"
            case None:
                return "off" if self.name == "confirm" else "auto"
            case Fraction():
                return f"{float(100 * value):g}%"
            case _:
                return str(value)


def _switch(text: str) -> bool:
    lowered = text.lower()
    if lowered in _ON:
        return True
    if lowered in _OFF:
        return False
    raise ValueError(text)


def _switch_or_auto(text: str) -> bool | None:
    return None if text.lower() == "auto" else _switch(text)


def _format(text: str) -> Format:
    return Format(_FORMATS.get(text.lower(), text.lower()))


def _pager(text: str) -> str:
    return "always" if text.lower() == "always" else "on" if _switch(text) else "off"


def _intervals(text: str) -> Intervals:
    lowered = text.lower()
    return Intervals(lowered) if lowered == "cols" else Intervals.ON if _switch(text) else Intervals.OFF


def _share(text: str) -> Fraction | None:
    if text.lower() in _OFF - {"0"}:
        return None
    percent = text.strip().endswith("%")
    share = exact(text.strip().rstrip("%")) / (100 if percent else 1)
    if not 0 <= share <= 1:
        raise ValueError(text)
    return share


OPTIONS: Final[Mapping[str, LookOption]] = {
    option.name: option
    for option in (
        LookOption("format", " | ".join(Format), "How answers are printed.", _format),
        LookOption(
            "expanded",
            "on | off | auto",
            "One line for each value; `auto`: where a table would be wider than the terminal.",
            _switch_or_auto,
            True,
        ),
        LookOption("tuples_only", "on | off", "Rows only: no header and no footer.", _switch, True),
        LookOption("footer", "on | off", "The line below an answer: rows, price, what is left, notes.", _switch, True),
        LookOption(
            "intervals", "on | cols | off", "`value ± half-width`, columns of both ends, or neither.", _intervals
        ),
        LookOption("null", "TEXT", "What stands for NULL.", str),
        LookOption("fieldsep", "TEXT", "What stands between the values of `unaligned`.", str),
        LookOption("pager", "on | off | always", "Long answers go to $PAGER, on a terminal.", _pager, True),
        LookOption(
            "confirm",
            "SHARE | off",
            "Ask before a query that takes more than this share of what is left, as 25% or 0.25; terminals only.",
            _share,
        ),
    )
}
"""The options by name, in the order in which they are listed."""

ALIASES: Final = {"t": "tuples_only", "x": "expanded"}


def option(name: str) -> LookOption:
    """The option of a name. Raises Rejected DP903."""
    found = OPTIONS.get(ALIASES.get(name.lower(), name.lower()))
    if found is None:
        close = difflib.get_close_matches(name.lower(), OPTIONS, n=1)
        raise reject(
            "DP903", f"there is no option {name!r}", help=[f"did you mean {close[0]}?"] if close else [_all_of_them()]
        )
    return found


def changed(looks: Looks, name: str, value: str | None) -> Looks:
    """The looks with one option set, or, without a value, switched. Raises Rejected DP903."""
    wanted = option(name)
    if value is None:
        if not wanted.switches:
            raise _bad(wanted, None)
        now = getattr(looks, wanted.name)
        new: Any = ("off" if now != "off" else "on") if wanted.name == "pager" else now is not True
        return replace(looks, **{wanted.name: new})
    try:
        return replace(looks, **{wanted.name: wanted.read(value)})
    except ValueError:
        raise _bad(wanted, value) from None


def _bad(wanted: LookOption, value: str | None) -> Rejected:
    given = "has no value" if value is None else f"cannot be {value!r}"
    return reject("DP903", f"{wanted.name} {given}", help=[f"{wanted.name} is  {wanted.values}"])


def _all_of_them() -> str:
    return f"options are {', '.join(OPTIONS)}"
