"""Patterns as git reads them in .gitignore: one list of them, the files of a tree, and what they say about a path.

Written from gitignore(5), and compared with git itself in the tests.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from dpsql.faces.check.documents.repository import tracked_files

_CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s",
    "blank": r" \t", "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "cntrl": r"\x00-\x1f\x7f", "print": " -~",
    "graph": "!-~",
}  # fmt: skip


class Patterns:
    """The lines of a .gitignore file; paths are relative to the folder that it lies in. No line is an error: one that
    can match nothing matches nothing."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules = [rule for line in lines if (rule := _rule(line)) is not None][::-1]

    def match(self, path: str) -> bool:
        """Whether a file matches: by itself, else by the nearest folder above it that a pattern speaks about."""
        path, folder = path.replace(os.sep, "/"), False
        while path:
            said = self.verdict(path, folder)
            if said is not None:
                return said
            path, folder = path.rpartition("/")[0], True
        return False

    def verdict(self, path: str, folder: bool) -> bool | None:
        """What the last pattern that matches this very path says: True, or False behind `!`; None: none matches."""
        path = path.replace(os.sep, "/")
        name = path.rpartition("/")[2]
        for matches, whole, folders_only, wanted in self._rules:
            if (folder or not folders_only) and matches.fullmatch(path if whole else name):
                return wanted
        return None


def _rule(line: str) -> tuple[re.Pattern[str], bool, bool, bool] | None:
    """The expression, whether it is about the whole path, about folders only, and what it says; None for no pattern."""
    line = _trimmed(line)
    if not line or line.startswith("#"):
        return None
    wanted = not line.startswith("!")
    line = line if wanted else line[1:]
    folders_only = line.endswith("/")
    line = line[:-1] if folders_only else line
    if not line:
        return None
    whole = "/" in line
    try:
        return re.compile(_expression(line.removeprefix("/")), re.DOTALL), whole, folders_only, wanted
    except (ValueError, re.error):
        return None


def _trimmed(line: str) -> str:
    """Without the spaces at the end; one behind a backslash stays."""
    kept = line.rstrip(" ")
    escaped = (len(kept) - len(kept.rstrip("\\"))) % 2
    return line[: len(kept) + escaped]


_STAR, _FOLDERS = "[^/]*", "(?:.*/)?"
"""`*` within a name, and `**/`, which stands for any number of folders."""


def _expression(glob: str) -> str:
    """A glob as a regular expression that is matched in time linear in the path, times the glob's length.

    Behind a `*`, the first place where the piece up to the next one fits is as good as any later one, and the first
    folders for what stands between two `**/`: groups that do not look back (`(?>…)`) take it. Raises ValueError if the
    glob ends in the middle of something.
    """
    blocks: list[list[str]] = [[""]]  # between `**/` blocks, in them pieces between `*`
    for part in _parts(glob):
        if part is _FOLDERS:
            blocks.append([""])
        elif part is _STAR:
            blocks[-1].append("")
        else:
            blocks[-1][-1] += part
    first, *between = (_block(block, number == len(blocks)) for number, block in enumerate(blocks, 1))
    *inner, last = between or [""]
    middle = "".join(f"(?>(?:.*?/)??{block})" for block in inner)
    return first + middle + (_FOLDERS + last if between else "")


def _block(pieces: list[str], at_end: bool) -> str:
    first, *behind = pieces
    *inner, last = behind or [""]
    closing = "" if not behind else _STAR + last if at_end else f"(?>[^/]*?{last})"
    return first + "".join(f"(?>[^/]*?{piece})" for piece in inner) + closing


def _parts(glob: str) -> Iterator[str]:
    """_STAR, _FOLDERS, and expressions of one character each; `**` at the end is everything."""
    at = 0
    while at < len(glob):
        stars = re.compile(r"\*+").match(glob, at)
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            yield _FOLDERS
            at += 3
        elif glob[at:] == "**" and at and glob[at - 1] == "/":
            yield ".+"
            at += 2
        elif glob[at:] == "**" and not at:
            yield ".*"
            at += 2
        elif stars is not None:
            yield _STAR
            at = stars.end()
        elif glob[at] == "?":
            yield "[^/]"
            at += 1
        elif glob[at] == "[":
            text, at = _bracket(glob, at + 1)
            yield text
        elif glob[at] == "\\":
            if at + 1 == len(glob):
                raise ValueError("a backslash at the end")
            yield re.escape(glob[at + 1])
            at += 2
        else:
            yield re.escape(glob[at])
            at += 1


def _bracket(glob: str, at: int) -> tuple[str, int]:
    """A set of characters that starts behind its bracket, and where it ends. Raises ValueError if it does not."""
    negated = glob[at : at + 1] in ("!", "^") and bool(glob[at : at + 1])
    at += negated
    parts: list[str] = []
    first = True
    while first or glob[at : at + 1] != "]":
        named = re.compile(r"\[:([a-z]+):\]").match(glob, at)
        if named is not None:
            parts.append(_CLASSES[named[1]] if named[1] in _CLASSES else _fail())
            at = named.end()
        else:
            low, at = _character(glob, at)
            if glob[at : at + 1] == "-" and glob[at + 1 : at + 2] not in ("]", ""):
                high, at = _character(glob, at + 1)
                parts.append(f"{re.escape(low)}-{re.escape(high)}" if low <= high else "")
            else:
                parts.append(re.escape(low))
        first = False
    inside = "".join(parts)
    if not inside:
        return ("[^/]" if negated else "(?!)"), at + 1
    return (f"(?!/)[^{inside}]" if negated else f"(?!/)[{inside}]"), at + 1


def _character(glob: str, at: int) -> tuple[str, int]:
    if glob[at : at + 1] == "\\":
        at += 1
    if at >= len(glob):
        _fail()
    return glob[at], at + 1


def _fail() -> str:
    raise ValueError("not a pattern")


class GitIgnores:
    """What git leaves out of a repository: what its .gitignore files name, and git does not track all the same.

    Lists count from the repository's root down to each folder that is asked about, `.git/info/exclude` too; a user's
    own list (core.excludesFile) does not: the check is the same for everyone. Outside of a repository nobody can say
    what is tracked, and nothing is left out; the same where git is not there or does not answer.
    """

    def __init__(self) -> None:
        self._lists: dict[str, list[tuple[str, Patterns]] | None] = {}
        self._tracked: dict[str, frozenset[str] | None] = {}

    def ignores(self, path: str, folder: bool) -> bool:
        """Whether git leaves out this absolute path, the folders above it left aside."""
        for base, patterns in self._above(os.path.dirname(path)) or ():
            said = patterns.verdict(os.path.relpath(path, base), folder)
            if said is not None:
                return said and not self._tracks(path)
        return False

    def _above(self, folder: str) -> list[tuple[str, Patterns]] | None:
        """The lists that hold in a folder, the nearest first; None outside of a repository."""
        if folder not in self._lists:
            parent = os.path.dirname(folder)
            if _is_root(folder):
                self._lists[folder] = _own(folder)
            else:
                above = None if parent == folder else self._above(parent)
                self._lists[folder] = None if above is None else _own(folder) + above
        return self._lists[folder]

    def _tracks(self, path: str) -> bool:
        """Whether git has the file, or a file of the folder."""
        root = os.path.dirname(path)
        while not _is_root(root):
            root = os.path.dirname(root)
        if root not in self._tracked:
            self._tracked[root] = _with_folders(tracked_files(Path(root)))
        tracked = self._tracked[root]
        return tracked is None or os.path.relpath(path, root).replace(os.sep, "/") in tracked


def _is_root(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, ".git"))


def _with_folders(paths: Iterable[str] | None) -> frozenset[str] | None:
    if paths is None:
        return None
    found: set[str] = set()
    for path in paths:
        while path and path not in found:
            found.add(path)
            path = path.rpartition("/")[0]
    return frozenset(found)


def _own(folder: str) -> list[tuple[str, Patterns]]:
    lists = []
    for name in (".gitignore", os.path.join(".git", "info", "exclude")):
        path = os.path.join(folder, name)
        if not os.path.isfile(path) or (os.path.islink(path) and name == ".gitignore"):  # git follows no such link
            continue
        try:
            with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
                lists.append((folder, Patterns(file.read().split("\n"))))
        except OSError:
            continue
    return lists
