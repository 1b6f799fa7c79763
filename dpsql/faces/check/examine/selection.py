"""Which findings are shown: `select`, `ignore` and `per-file-ignores`, lists of codes or of their beginnings (DP5).

What says that no noise would protect the answer (DP2xx), that the query was not understood (DP0xx, DP1xx), or that the
check itself failed is always shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dpsql.diagnostics.codes import CODES
from dpsql.faces.check.documents.ignore_patterns import Patterns

_PROTECTED = ("DP0", "DP1", "DP2", "DP903", "DP904", "DP905", "DP910")


def is_protected(code: str) -> bool:
    """Whether findings of this code are always shown: they can be repaired or in a baseline, but not ignored."""
    return code.startswith(_PROTECTED)


@dataclass(frozen=True, slots=True)
class CodeSelection:
    """The codes that are shown. select: beginnings of codes, empty for all. ignore: beginnings of codes.

    per_file: pattern, written as in .gitignore and relative to `root`, and the codes ignored in files that match.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    root: str = "."

    def hidden_in(self, path: str) -> tuple[str, ...]:
        """The beginnings of codes that are ignored in this file, besides `ignore`."""
        if not self.per_file:
            return ()
        where = os.path.relpath(os.path.abspath(path), self.root)
        return tuple(code for pattern, codes in self.per_file if Patterns((pattern,)).match(where) for code in codes)

    def shows(self, code: str, hidden: tuple[str, ...] = ()) -> bool:
        """Whether findings of this code are shown in a file that hides these codes."""
        if is_protected(code):
            return True
        return not code.startswith((*self.ignore, *hidden)) and (not self.select or code.startswith(self.select))


def wrong_codes(codes: Iterable[str], ignored: bool) -> str | None:
    """What is wrong with a list of codes or beginnings of codes; None if nothing is.

    ignored: whether it says what is not to be shown.
    """
    for code in codes:
        if not re.fullmatch(r"DP\d{0,3}", code) or not any(known.startswith(code) for known in CODES):
            return f"{code!r} is no code and no beginning of one, such as DP301 or DP5"
        if ignored and any(is_protected(known) and known.startswith(code) for known in CODES):
            return (
                f"{code} cannot be ignored: DP0xx, DP1xx and DP2xx say that the query was not understood or that no "
                "noise would protect its answer"
            )
    return None


def selection(
    select: Sequence[str], ignore: Sequence[str], per_file: Mapping[str, Sequence[str]], root: str
) -> CodeSelection:
    """A selection of codes that `wrong_codes` finds nothing wrong with."""
    return CodeSelection(
        tuple(select), tuple(ignore), tuple((pattern, tuple(codes)) for pattern, codes in per_file.items()), root
    )
