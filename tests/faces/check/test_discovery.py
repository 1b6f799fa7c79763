"""Files, folders, patterns on the command line; include, exclude, .gitignore; each file once, in one order."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dpsql.faces.check.documents.discovery import WantedFiles, discover


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "a.sql", "B.SQL", "notes.txt", "q/one.sql", "q/deep/two.sql", "q/deep/x.ddl", "old/three.sql",
        ".hidden/no.sql", "node_modules/no.sql", "q/[odd].sql",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(*arguments: str, **wanted: object) -> list[str]:
    found = discover(arguments, WantedFiles(**wanted))  # type: ignore[arg-type]
    assert found.refusals == ()
    return list(found.names)


EVERY = ["B.SQL", "a.sql", "old/three.sql", "q/[odd].sql", "q/one.sql", "q/deep/two.sql"]


def test_folders_files_and_patterns(tree: Path) -> None:
    assert names(".") == EVERY
    assert names("q") == ["q/[odd].sql", "q/one.sql", "q/deep/two.sql"]
    assert names("notes.txt", "-", "a.sql") == ["notes.txt", "-", "a.sql"]
    assert names("q/**/*.sql") == ["q/[odd].sql", "q/deep/two.sql", "q/one.sql"]
    assert names("q/[odd].sql") == ["q/[odd].sql"]  # the file of this name, before the pattern
    assert names("q/d*") == ["q/deep/two.sql"]  # a folder that a pattern matches
    assert names("nowhere.sql") == ["nowhere.sql"]  # reading it says what is wrong


def test_each_file_once_by_its_first_name(tree: Path) -> None:
    assert names("./q/../a.sql", "a.sql", str(tree / "a.sql"), "-", "-") == ["./q/../a.sql", "-"]


def test_a_pattern_that_matches_nothing_is_refused_and_hides_nothing(tree: Path) -> None:
    found = discover(["*.nothing", "a.sql"], WantedFiles())
    assert found.names == ("a.sql",) and [e.diagnostics[0].code for e in found.refusals] == ["DP903"]


def test_include_and_exclude(tree: Path) -> None:
    root = str(tree)
    assert names(".", root=root, include=("*.ddl", "a.sql")) == ["a.sql", "q/deep/x.ddl"]
    assert names(".", root=root, include=("q/", "!deep/")) == ["q/[odd].sql", "q/one.sql"]
    assert names(".", root=root, exclude=("old", "/a.sql", "q/deep/")) == ["B.SQL", "q/[odd].sql", "q/one.sql"]
    assert names("q", root=str(tree / "q"), exclude=("/q",)) == names("q")  # relative to the root
    # A file that is named is checked, unless the caller cannot help naming it.
    assert names("old/three.sql", root=root, exclude=("old",)) == ["old/three.sql"]
    assert names("old/three.sql", "a.sql", root=root, exclude=("old",), force_exclude=True) == ["a.sql"]
    assert names("o*/*.sql", root=root, exclude=("old",)) == []


@pytest.mark.skipif(shutil.which("git") is None, reason="git says what it tracks")
def test_gitignore(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    subprocess.run(["git", "init", "-q", "--template=", "."], check=True, timeout=120)
    (tree / ".gitignore").write_bytes(b"\xef\xbb\xbfold/\r\n*.SQL\r\n\xff\xfe\r\n")
    (tree / "q" / ".gitignore").write_text("one.sql\n")
    (tree / "q" / "deep" / ".gitignore").write_text("!one.sql\n")
    (tree / "q" / "deep" / "one.sql").touch()
    expected = ["a.sql", "q/[odd].sql", "q/deep/one.sql", "q/deep/two.sql"]
    assert names(".") == expected
    assert names("q/deep") == expected[2:]  # lists above the folder that is named hold, up to the repository's root
    assert names("old") == ["old/three.sql"]  # a folder that is named itself is walked
    assert names("old/three.sql", force_exclude=True) == []
    assert set(EVERY) <= set(names(".", gitignore=False))
    (tree / ".git" / "info").mkdir()
    (tree / ".git" / "info" / "exclude").write_text("deep\n")
    assert names(".") == expected[:2]


def test_a_folder_that_cannot_be_read_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("deep"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = discover(["."], WantedFiles())
    assert found.names == tuple(EVERY[:-1])
    (refusal,) = found.refusals
    assert refusal.diagnostics[0].code == "DP903" and "deep" in refusal.diagnostics[0].message


def test_pipes_are_left_out_and_broken_links_are_not(tree: Path) -> None:
    os.mkfifo(tree / "pipe.sql")
    (tree / "folder.sql").mkdir()
    (tree / "gone.sql").symlink_to(tree / "nowhere")
    assert names(".") == ["B.SQL", "a.sql", "gone.sql", *EVERY[2:]]


def test_links_to_folders_are_not_followed(tree: Path) -> None:
    (tree / "q" / "deep" / "up").symlink_to(tree, target_is_directory=True)
    assert names(".") == EVERY
