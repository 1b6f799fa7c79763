"""What paths on the command line stand for: files, patterns, and the files of folders that are to be checked.

Below a folder, files are found that `include` names (every *.sql) unless `exclude` or a .gitignore names them or a
folder above them; hidden folders and those of packages are left out. A file that is named itself is always checked,
unless `force_exclude` is set (pre-commit names every file that has changed). Folders are not followed through links.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dpsql.diagnostics.errors import Rejected, reject
from dpsql.faces.check.documents.checkout import is_special
from dpsql.faces.check.documents.ignore_patterns import GitIgnores, Patterns

_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "dbt_packages"})
STDIN = "-"


@dataclass(frozen=True, slots=True)
class WantedFiles:
    """Which files of a folder are checked.

    include: patterns as in .gitignore, relative to `root`; None: every *.sql. exclude: the same of what is not.
    """

    root: str = "."
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    gitignore: bool = True
    force_exclude: bool = False


@dataclass(frozen=True, slots=True)
class Discovered:
    """Names of files in order, each once, as the user would write them; and what is wrong with arguments."""

    names: tuple[str, ...]
    refusals: tuple[Rejected, ...] = ()


def discover(arguments: Sequence[str], wanted: WantedFiles) -> Discovered:
    """The files that arguments stand for, in their order, those of a folder sorted; `-` stays."""
    walker = _Walker(wanted)
    found: dict[str, str] = {}
    refusals: list[Rejected] = []
    for argument in arguments:
        try:
            for name in walker.files(argument):
                found.setdefault(name if name == STDIN else os.path.abspath(name), name)
        except Rejected as refusal:
            refusals.append(refusal)
    return Discovered(tuple(found.values()), (*refusals, *walker.unread))


def is_chosen(path: Path, below: Path, wanted: WantedFiles) -> bool:
    """Whether a file of a folder would be found, were it there. .gitignore is not asked: git has the file."""
    inner = path.relative_to(below).parts[:-1]
    if any(part.startswith(".") or part in _SKIPPED for part in inner):
        return False
    walker = _Walker(replace(wanted, gitignore=False))
    return walker.includes(str(path)) and not walker.leaves_out(str(path))


def is_left_out(name: str, wanted: WantedFiles) -> bool:
    """Whether a file that is named itself is not to be checked, which only `force_exclude` may say."""
    return wanted.force_exclude and _Walker(wanted).leaves_out(name)


@dataclass(slots=True)
class _Walker:
    wanted: WantedFiles
    unread: list[Rejected] = field(default_factory=list)
    _git: GitIgnores = field(default_factory=GitIgnores)
    _patterns: dict[tuple[str, ...], Patterns] = field(default_factory=dict)

    def files(self, argument: str) -> Iterator[str]:
        """Raises Rejected DP903 for a pattern that no file matches."""
        if argument == STDIN or not _is_pattern(argument):
            yield from self._one(argument, named=True)
            return
        matches = sorted(glob.glob(argument, recursive=True))
        if not matches:
            raise reject("DP903", f"no file matches {argument!r}", help=["`**` stands for any number of folders"])
        for match in matches:
            yield from self._one(match, named=False)

    def _one(self, path: str, named: bool) -> Iterator[str]:
        if path == STDIN:
            yield path
        elif os.path.isdir(path):
            yield from self._below(path)
        elif not named and is_special(path):
            return  # a pattern means files: nobody writes to the pipe that it matches
        elif (named and not self.wanted.force_exclude) or not self.leaves_out(path):
            yield path

    def leaves_out(self, path: str) -> bool:
        """Whether a file, or a folder above it, is excluded or ignored by git."""
        whole = os.path.abspath(path)
        folders = [str(folder) for folder in reversed(Path(whole).parents)]
        return self._excluded(whole, False) or any(
            self._excluded(folder, True) for folder in folders if folder != os.path.dirname(folder)
        )

    def _below(self, start: str) -> Iterator[str]:
        for folder, folders, names in os.walk(start, onerror=self._cannot_list):
            whole = os.path.abspath(folder)
            folders[:] = sorted(
                name
                for name in folders
                if not name.startswith(".")
                and name not in _SKIPPED
                and not self._excluded(os.path.join(whole, name), True)
            )
            for name in sorted(names):
                path = os.path.join(whole, name)
                if self.includes(path) and not self._excluded(path, False) and not is_special(path):
                    yield str(Path(folder) / name)

    def _cannot_list(self, error: OSError) -> None:
        """A folder that cannot be looked into may hold what fails: it is not passed over."""
        reason = (error.strerror or "it cannot be opened").lower()
        self.unread.append(reject("DP903", f"the folder {error.filename!r} cannot be read: {reason}"))

    def includes(self, path: str) -> bool:
        """Whether a file's name is one of those that are checked."""
        if self.wanted.include is None:
            return path.lower().endswith(".sql")
        return self._says(self.wanted.include, path, False)

    def _excluded(self, path: str, folder: bool) -> bool:
        if self.wanted.exclude and self._says(self.wanted.exclude, path, folder):
            return True
        return self.wanted.gitignore and self._ignored(path, folder)

    def _says(self, patterns: tuple[str, ...], path: str, folder: bool) -> bool:
        relative = os.path.relpath(path, self.wanted.root)
        said = self._patterns.get(patterns) or self._patterns.setdefault(patterns, Patterns(patterns))
        return not relative.startswith("..") and (
            said.verdict(relative, True) is True if folder else said.match(relative)
        )

    def _ignored(self, path: str, folder: bool) -> bool:
        return self._git.ignores(path, folder)


def _is_pattern(argument: str) -> bool:
    return glob.has_magic(argument) and not os.path.lexists(argument)
