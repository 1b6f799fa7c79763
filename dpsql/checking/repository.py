"""Files as they were in another commit, read through git. Nothing is checked out, and no hook or filter runs."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsql.diagnostics.errors import Rejected, reject

_SECONDS = 120
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
        listed = _git(self.root, ["ls-tree", "-r", "-z", "--name-only", "--full-tree", self.commit])
        return tuple(os.fsdecode(name) for name in listed.split(b"\0") if name)

    def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """The content of files in it, for those that are there. Raises Rejected DP903."""
        names = [path for path in paths if "\n" not in path]
        asked = b"".join(os.fsencode(f"{self.commit}:{name}") + b"\n" for name in names)
        answer = _git(self.root, ["cat-file", "--batch"], asked) if names else b""
        found: dict[str, bytes] = {}
        at = 0
        for name in names:
            end = answer.index(b"\n", at)
            header, at = answer[at:end].rsplit(b" ", 2), end + 1
            if len(header) == 3 and header[2].isdigit():  # else: NAME missing
                if header[1] == b"blob":
                    found[name] = answer[at : at + int(header[2])]
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
