"""Files as they were in another commit, read through git. Nothing is checked out, and no hook or filter runs."""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsql.diagnostics.errors import Rejected, reject

_SECONDS = 120
_MOST_LINKS = 10
_LINK = b"120000"
"""The mode that git gives to symbolic links."""
_OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX")
"""What git tells a hook of the repository that it runs for, relative to a folder that need not be ours: in a linked
worktree it names GIT_DIR alone, and the current folder then counts as the top. A folder says itself where it belongs;
what is compared is a commit and the files as they are, never the index. Where objects are (a push that is not accepted
yet) and configuration (a folder that is safe) stay."""
_COMMIT = re.compile(rb"[0-9a-f]{40,64}")


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit of the repository that a folder belongs to.

    root: the repository's own folder. name: as the user called it. commit: its full hash.
    """

    root: Path
    name: str
    commit: str

    def files(self) -> tuple[str, ...]:
        """Paths of all files in it, relative to `root`, with `/`. Raises Rejected DP903."""
        return tuple(self._entries())

    def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """The content of files in it, for those that are there; of a link, of what it leads to in the commit.

        Raises Rejected DP903.
        """
        entries = self._entries()
        found: dict[str, bytes] = {}
        following = {path: path for path in paths}
        for _ in range(_MOST_LINKS):
            there = {path: (at, *entries[at]) for path, at in following.items() if at in entries}
            contents = self._contents([name for _, _, name in there.values()])
            following = {}
            for path, (at, is_link, name) in there.items():
                if name in contents and is_link:
                    leads_to = os.fsdecode(contents[name])
                    following[path] = posixpath.normpath(posixpath.join(posixpath.dirname(at), leads_to))
                elif name in contents:
                    found[path] = contents[name]
        return found

    def _entries(self) -> dict[str, tuple[bool, bytes]]:
        """Path → whether it is a link, and the name of its object."""
        listed = _git(self.root, ["ls-tree", "-r", "-z", "--full-tree", self.commit])
        entries = {}
        for line in listed.split(b"\0"):
            about, tab, path = line.partition(b"\t")
            if tab:
                mode, _, name = about.split(b" ")
                entries[os.fsdecode(path)] = mode == _LINK, name
        return entries

    def _contents(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """Name of an object → its content, for files that git has."""
        answer = _git(self.root, ["cat-file", "--batch"], b"".join(name + b"\n" for name in names)) if names else b""
        found: dict[bytes, bytes] = {}
        at = 0
        while at < len(answer):
            end = answer.index(b"\n", at)
            header, at = answer[at:end].split(b" "), end + 1
            if len(header) == 3 and header[2].isdigit():  # else: NAME missing
                if header[1] == b"blob":
                    found[header[0]] = answer[at : at + int(header[2])]
                at += int(header[2]) + 1
        return found

    def within(self, path: str | Path) -> str | None:
        """A path as the commit calls it; None if it lies outside of the repository."""
        whole = Path(os.path.realpath(path))
        try:
            return whole.relative_to(self.root).as_posix()
        except ValueError:
            return None


def open_revision(name: str, folder: Path) -> Revision:
    """The commit that a name (branch, tag, hash, HEAD~2, …) stands for in the repository around a folder.

    Raises Rejected DP903: no git, no repository, no such commit.
    """
    root = _git(folder, ["rev-parse", "--show-toplevel"])
    commit = None
    if name and not name.startswith("-"):
        try:
            commit = _git(folder, ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"])
        except Rejected:
            commit = None
    if not commit or not _COMMIT.fullmatch(commit.strip()):  # `^main` is a commit to leave out
        raise reject(
            "DP903", f"--against: {name!r} is no commit of this repository",
            help=["name a branch, a tag or a commit, e.g.  --against origin/main",
                  "in CI, fetch it first:  git fetch origin main"],
        )  # fmt: skip
    return Revision(Path(os.path.realpath(os.fsdecode(root.rstrip(b"\n")))), name, commit.decode("ascii").strip())


def is_tracked(folder: Path) -> bool:
    """Whether git has files of a folder, so that they came with the repository; False where there is none.

    True as well if git does not say so of a folder in a repository: it is not installed, or refuses to look into what
    belongs to another user.
    """
    try:
        return bool(_git(folder, ["-c", "core.fsmonitor=false", "ls-files", "-z", "--", "."]))
    except Rejected:
        whole = Path(os.path.realpath(folder))
        return any((above / ".git").exists() for above in (whole, *whole.parents))


def _git(folder: Path, arguments: Sequence[str], given: bytes = b"") -> bytes:
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    environment = {**inherited, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "--no-pager", *arguments],
            input=given, capture_output=True, timeout=_SECONDS, check=False, env=environment,
        )  # fmt: skip
    except FileNotFoundError:
        raise reject(
            "DP903", "git is not installed, and older files are read through it", help=["install git"]
        ) from None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        raise reject("DP903", "git could not be run") from None
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode("utf-8", "replace")
    if "not a git repository" in said:
        raise reject(
            "DP903", f"{str(folder)!r} is not in a git repository, and older files are read from one",
            help=["run it inside a clone"],
        )  # fmt: skip
    if "dubious ownership" in said:
        raise reject(
            "DP903", "git does not trust this repository, because it belongs to another user",
            help=["git config --global --add safe.directory FOLDER"],
        )  # fmt: skip
    raise reject("DP903", "git could not read the older files", help=["try  git status  here"])
