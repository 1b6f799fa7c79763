"""Files as they were in another commit, read through git. Nothing is checked out, and no hook or filter runs."""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
from collections.abc import Mapping, Sequence
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
            contents = self._contents({name: at for at, _, name in there.values()})
            following = {}
            for path, (at, is_link, name) in there.items():
                if is_link:
                    leads_to = os.fsdecode(contents[name])
                    following[path] = posixpath.normpath(posixpath.join(posixpath.dirname(at), leads_to))
                else:
                    found[path] = contents[name]
        return found

    def _entries(self) -> dict[str, tuple[bool, bytes]]:
        """Path of a file → whether it is a link, and the name of its object."""
        listed = _git(self.root, ["ls-tree", "-r", "-z", "--full-tree", self.commit])
        entries = {}
        for line in listed.split(b"\0"):
            about, tab, path = line.partition(b"\t")
            if tab:
                mode, kind, name = about.split(b" ")
                if kind == b"blob":  # else: the commit of another repository
                    entries[os.fsdecode(path)] = mode == _LINK, name
        return entries

    def _contents(self, names: Mapping[bytes, str]) -> dict[bytes, bytes]:
        """Name of a file's object → its content. names: with the path of each.

        Raises Rejected DP903 for one that git does not have: what is not there now would pass for what never was.
        """
        answer = _git(self.root, ["cat-file", "--batch"], b"".join(name + b"\n" for name in names)) if names else b""
        found: dict[bytes, bytes] = {}
        at = 0
        for name, path in names.items():
            end = answer.find(b"\n", at)
            header = answer[at:end].split(b" ")
            if header[:2] != [name, b"blob"]:
                raise reject(
                    "DP903", f"git does not have {path!r} as it was in {self.name!r}: it cannot be compared",
                    help=["the clone is partial or damaged; clone it whole, without  --filter"],
                )  # fmt: skip
            at = end + 1 + int(header[2])
            found[name] = answer[end + 1 : at]
            at += 1
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


def tracked_files(folder: Path) -> tuple[str, ...] | None:
    """The files below a folder that git has, relative to it, with `/`.

    None if git does not say: there is no repository, it is not installed, or it refuses to look into what belongs to
    another user.
    """
    try:
        listed = _git(folder, ["ls-files", "-z", "--", "."])
    except Rejected:
        return None
    return tuple(os.fsdecode(path) for path in listed.split(b"\0") if path)


def is_tracked(folder: Path) -> bool:
    """Whether git has files of a folder, so that they came with the repository; False where there is none.

    True as well if git does not say so of a folder in a repository.
    """
    files = tracked_files(folder)
    if files is None:
        whole = Path(os.path.realpath(folder))
        return any((above / ".git").exists() for above in (whole, *whole.parents))
    return bool(files)


_ALONE = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
"""Git reads what is there and starts nothing: a repository's configuration may name a program for whatever is fetched
on the way (of a partial clone), in its URL or for its transport. And what it reads is what the hash names."""
_SETTINGS = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "safe.bareRepository=explicit")
"""The other programs that a configuration names. The last one: a folder of the checkout that is made to look like a
repository is none, with a configuration that came with the branch."""


def _git(folder: Path, arguments: Sequence[str], given: bytes = b"") -> bytes:
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    environment = {**inherited, **_ALONE}
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "--no-pager", *settings, *arguments],
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
