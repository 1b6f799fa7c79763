"""Patterns of .gitignore: by table, and compared with git itself on trees and lists drawn at random."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from dpsql.faces.check.documents.discovery import WantedFiles, discover
from dpsql.faces.check.documents.ignore_patterns import Patterns

# pattern, path (a folder ends with /), whether it matches; each row as `git check-ignore` of git 2.39 says
TABLE = [
    ("a.sql", "a.sql", True), ("a.sql", "x/y/a.sql", True), ("/a.sql", "x/a.sql", False), ("/a.sql", "a.sql", True),
    ("x/a.sql", "x/a.sql", True), ("x/a.sql", "y/x/a.sql", False), ("*.sql", "x/b.sql", True), ("*.sql", "b.sq", False),
    ("build/", "build", False), ("build/", "build/", True), ("build/", "x/build/", True), ("/b/", "x/b/", False),
    ("a/*", "a/b", True), ("a/*", "a/b/c", False), ("a/**", "a/b/c", True), ("a/**", "a/", False),
    ("**/a", "x/a", True),
    ("**/a", "a", True), ("a/**/b", "a/b", True), ("a/**/b", "a/x/y/b", True), ("a/**/b", "a/xb", False),
    ("a**b", "axyb", True), ("a**b", "ax/yb", False), ("?.sql", "a.sql", True), ("?.sql", "ab.sql", False),
    ("x?y", "x/y", False), ("[ab].sql", "b.sql", True), ("[!ab].sql", "b.sql", False), ("[!ab].sql", "c.sql", True),
    ("[a-c].sql", "b.sql", True), ("[]].sql", "].sql", True), ("[[:digit:]]", "7", True), ("[[:digit:]]", "x", False),
    (r"\!a", "!a", True), (r"\#a", "#a", True), ("#a", "#a", False), (r"a\*", "a*", True), (r"a\*", "ab", False),
    ("a.sql  ", "a.sql", True), (r"a\ ", "a ", True), ("", "a", False), ("!", "a", False), ("/", "a", False),
    ("[", "[", False), ("a\\", "a", False), ("[a", "a", False), ("A.sql", "a.sql", False), ("é*", "éa", True),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "path", "expected"), TABLE)
def test_a_pattern(pattern: str, path: str, expected: bool) -> None:
    folder = path.endswith("/")
    assert (Patterns([pattern]).verdict(path.removesuffix("/"), folder) is True) is expected
    if pattern and not pattern.startswith(("!", "#")):
        assert (Patterns([f"!{pattern}"]).verdict(path.removesuffix("/"), folder) is False) is expected


def test_the_last_pattern_counts_and_the_nearest_folder() -> None:
    assert not Patterns(["*.sql", "!a.sql"]).match("a.sql")
    assert Patterns(["!a.sql", "*.sql"]).match("a.sql")
    assert Patterns(["queries/"]).match("queries/deep/a.sql")
    assert not Patterns(["queries/", "!queries/deep/"]).match("queries/deep/a.sql")
    assert not Patterns([]).match("a")


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")
def test_the_table_is_what_git_says(tmp_path: Path) -> None:
    repository(tmp_path)
    wrong = []
    for pattern, path, expected in TABLE:
        (tmp_path / ".gitignore").write_text(pattern + "\n", encoding="utf-8")
        if path.endswith("/"):
            (tmp_path / path).mkdir(parents=True)
        done = git(tmp_path, "check-ignore", "--no-index", "-q", "--", path.removesuffix("/").encode())
        if path.endswith("/"):
            shutil.rmtree(tmp_path / Path(path).parts[0])
        if (done.returncode == 0) is not expected:
            wrong.append((pattern, path))
    # check-ignore also says yes for what lies below an ignored folder, which discovery never looks at
    assert wrong == [("a/*", "a/b/c")]


PIECES = [
    "*.sql", "!*.sql", "a", "a/", "!a/", "/a", "/a/", "b/*", "!b/*.sql", "foo/**", "**/foo", "a/**/x.sql", "x.sql",
    "!x.sql", "/x.sql", "a/b", "!a/b/", "b", "*", "!*/", "build/", "f*o", "[ab]", "?.sql", "#c", "y.sql  ", "a*/",
    "!/b/", "foo/x.sql", "**/b/", "b/**", "!b/**/y.sql",
]  # fmt: skip


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")
@pytest.mark.parametrize("seed", range(12))
def test_the_files_found_are_those_that_git_finds(seed: int, tmp_path: Path) -> None:
    """Lists in several folders at once. (600 trees were compared when this was written.)"""
    draw = random.Random(seed)
    repository(tmp_path)
    folders = [tmp_path]
    for _ in range(7):
        folder = draw.choice(folders) / draw.choice(["a", "b", "foo", "build"])
        if not folder.exists():
            folder.mkdir()
            folders.append(folder)
    for folder in folders:
        for name in draw.sample(["x.sql", "y.sql", "a.sql"], 2):
            (folder / name).touch()
    for folder in draw.sample(folders, min(len(folders), 3)):
        (folder / ".gitignore").write_text("\n".join(draw.choices(PIECES, k=3)) + "\n", encoding="utf-8")
    listed = git(tmp_path, "ls-files", "-o", "--exclude-standard", "-z").stdout.decode().split("\0")
    expected = sorted(name for name in listed if name.endswith(".sql"))
    found = [os.path.relpath(name, tmp_path) for name in discover([str(tmp_path)], WantedFiles(str(tmp_path))).names]
    assert sorted(found) == expected


def repository(folder: Path) -> None:
    git(folder, "init", "-q", ".")


def git(folder: Path, *arguments: str | bytes) -> subprocess.CompletedProcess[bytes]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environment |= {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "XDG_CONFIG_HOME": str(folder / "no"),
    }
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, env=environment, timeout=120)
