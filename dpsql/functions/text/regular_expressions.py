"""Regular expressions that are matched in time linear in the text (the syntax of RE2); engines without that have none.

Patterns, options and replacements are literals. They are read when the query is planned: what an engine would refuse
later, and what needs steps back (`\\1` in a pattern, looking ahead), is refused then, so no row decides of a failure.
"""

from __future__ import annotations

import re
import string

from dpsql.core.ir.types import BOOLEAN, VARCHAR, SqlType
from dpsql.core.values.value import Args
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.signature import constant_int, constant_text, count, interval_of, text, truth_domain
from dpsql.functions.text.strings import LONGEST

_MOST_CHARACTERS = 1000
_MOST_REPEATED = 1000
"""How often a part may be asked for by counts, those around it multiplied: the engine's own limit."""
_OPTIONS = frozenset("cis")
_LETTERS = frozenset("dDsSwWbBAztnrfv")
_SETS = re.compile(r"\[:(alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]")
_COUNTS = re.compile(r"\{(\d{1,4})(?:(,)(\d{1,4})?)?\}")
_OPENS = re.compile(r"\((?:\?:|\?P<[A-Za-z_]\w*>|\?[is]+\))?", re.ASCII)


class _Pattern:
    """A pattern while it is read. groups: how many have been opened that capture."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.groups = text, 0, 0

    def read(self, within: int = 1, inner: bool = False) -> None:
        """Alternatives, up to the bracket that closes them. within: how often what is around them is repeated."""
        while self.at < len(self.text):
            if self.text[self.at] == ")":
                if not inner:
                    raise _not_read("a bracket that nothing opens", self.at)
                return
            if self.text[self.at] in "|^$":
                self.at += 1
            else:
                self._repeated(within)
        if inner:
            raise _not_read("a bracket that is not closed", self.at)

    def _repeated(self, within: int) -> None:
        """One part, with what says how often it comes."""
        began = self.at, self.groups
        is_flag = self._part(within)
        times = self._times()
        if times is None:
            return
        if is_flag or within * times > _MOST_REPEATED:
            raise _not_read(f"more than {_MOST_REPEATED} repetitions" if not is_flag else "a repeated option", self.at)
        if times > 1:  # again: what is within may count, too
            behind = self.at
            self.at, self.groups = began
            self._part(within * times)
            self.at = behind
        if self._times() is not None:
            raise _not_read("a repetition of a repetition", self.at)

    def _times(self) -> int | None:
        """How often the part before comes at most, a * for once; None if nothing says so."""
        if self.at < len(self.text) and self.text[self.at] in "*+?":
            self.at += 1
            times = 1
        elif counted := _COUNTS.match(self.text, self.at):
            low, high = int(counted[1]), int(counted[3] or counted[1])
            if high < low:
                raise _not_read("a count that ends before it begins", self.at)
            self.at, times = counted.end(), max(high, 1)
        else:
            return None
        self.at += self.text[self.at : self.at + 1] == "?"
        return times

    def _part(self, within: int) -> bool:
        """A character, a set or a group; whether it only sets an option."""
        sign = self.text[self.at]
        match sign:
            case "(":
                opened = _OPENS.match(self.text, self.at)
                assert opened is not None
                if self.text[opened.end() : opened.end() + 1] == "?":
                    raise _not_read("a group of this kind", self.at)
                self.at = opened.end()
                if opened[0].endswith(")"):
                    return True
                self.groups += opened[0] != "(?:"
                self.read(within, inner=True)
                self.at += 1
            case "[":
                self._set()
            case "\\":
                self._escaped()
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise _not_read(f"{sign} without a backslash before it", self.at)
            case _:
                self.at += 1
        return False

    def _escaped(self) -> str:
        """What stands behind a backslash."""
        sign = self.text[self.at + 1 : self.at + 2]
        if not (sign in _LETTERS or (sign and sign in string.punctuation)):
            raise _not_read(f"\\{sign}", self.at)
        self.at += 2
        return sign

    def _set(self) -> None:
        self.at += 1
        self.at += self.text[self.at : self.at + 1] == "^"
        first, before = True, ""
        while self.at < len(self.text) and (first or self.text[self.at] != "]"):
            sign = self.text[self.at]
            if self.text.startswith("[:", self.at):
                if (named := _SETS.match(self.text, self.at)) is None:
                    raise _not_read("a set of this name", self.at)
                self.at, now = named.end(), ""
            elif sign == "\\":
                escaped = self._escaped()
                if escaped in "bBAz":
                    raise _not_read(f"\\{escaped} in a set", self.at)
                now = "" if escaped in _LETTERS else escaped
            elif sign == "-" and before and self.text[self.at + 1 : self.at + 2] not in ("", "]"):
                self.at += 1
                if not self.text[self.at].isalnum() or self.text[self.at] < before:
                    raise _not_read("a range that ends before it begins, or at a sign", self.at)
                self.at, now = self.at + 1, ""
            elif sign == "-" and not first and self.text[self.at + 1 : self.at + 2] != "]":
                raise _not_read("a range without a beginning", self.at)
            else:
                self.at, now = self.at + 1, sign
            first, before = False, now
        if self.at >= len(self.text):
            raise _not_read("a set that is not closed", self.at)
        self.at += 1


def _not_read(what: str, at: int) -> SignatureError:
    return SignatureError(f"expects a pattern without {what} (near character {at + 1})")


def groups_of(pattern: str) -> int:
    """How many groups a pattern captures. Raises SignatureError for one that may not stand in a query."""
    if len(pattern) > _MOST_CHARACTERS:
        raise SignatureError(f"expects a pattern of at most {_MOST_CHARACTERS} characters")
    reading = _Pattern(pattern)
    try:
        reading.read()
    except RecursionError:
        raise _not_read("so many brackets in each other", reading.at) from None
    return reading.groups


def _options(args: Args, at: int, allowed: frozenset[str] = _OPTIONS) -> None:
    if len(args) > at and not set(constant_text(args[at], "the options")) <= allowed:
        raise SignatureError(f"expects options of {', '.join(sorted(allowed))}")


def _matches_type(args: Args) -> SqlType:
    count(args, 2, 3)
    text(args[0])
    groups_of(constant_text(args[1], "the pattern"))
    _options(args, 2)
    return BOOLEAN


def _extract_type(args: Args) -> SqlType:
    count(args, 2, 4)
    text(args[0])
    groups = groups_of(constant_text(args[1], "the pattern"))
    if len(args) > 2:
        constant_int(args[2], 0, groups, "the number of the group")
    _options(args, 3)
    return VARCHAR


def _replace_type(args: Args) -> SqlType:
    count(args, 3, 4)
    text(args[0])
    groups = groups_of(constant_text(args[1], "the pattern"))
    if len(new := constant_text(args[2], "the replacement")) > 100:
        raise SignatureError("expects a replacement of at most 100 characters")
    for _, sign in re.findall(r"(\\)(.?)", new, re.DOTALL):
        if sign != "\\" and not (sign.isdecimal() and sign.isascii() and int(sign) <= groups):
            raise SignatureError("expects a replacement in which \\0, \\1, … name groups, and \\\\ is a backslash")
    _options(args, 3, _OPTIONS | {"g"})
    return VARCHAR


def replaced_room(args: Args) -> int:
    """Bytes of a text from which on its replacement is NULL: before each character, and at the end, one may stand.

    A group is as long as what is matched, so all of them together are as long as the text for each time that the
    replacement names one.
    """
    new = str(args[2].constant)
    named = len(re.findall(r"\\\d", new))
    size = len(new.encode())
    return max(0, (LONGEST - size) // (1 + size + named))


def _truth(name: str, *others: str, summary: str) -> Function:
    return Function(
        (name, *others),
        f"{name}(x: text, pattern: literal, options: literal = '') → boolean",
        summary,
        type=_matches_type,
        interval=interval_of(0, 1),
        domain=lambda args: truth_domain(args, any(a.nullable for a in args)),
        literal=frozenset({1, 2}),
    )


FUNCTIONS = (
    _truth("regexp_matches", "regexp_like", summary="True where the pattern matches a part of x; i ignores case."),
    _truth("regexp_full_match", summary="True where the pattern matches all of x."),
    Function(
        ("regexp_extract",),
        "regexp_extract(x: text, pattern: literal, group: literal = 0, options: literal = '') → text",
        "The first part of x that the pattern matches, or one of its groups; '' if there is none.",
        type=_extract_type,
        literal=frozenset({1, 2, 3}),
    ),
    Function(
        ("regexp_replace",),
        "regexp_replace(x: text, pattern: literal, new: literal, options: literal = '') → text",
        "x with the first match replaced, or with option g all; NULL where that could exceed 100,000 bytes.",
        type=_replace_type,
        nullable=lambda args: True,
        literal=frozenset({1, 2, 3}),
    ),
)
