"""Habits that a linter does not know: sizes, unfinished work, and nothing that belongs to one machine only."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from dpsql.diagnostics.codes import CODES

MOST_LINES = 400
FOLDERS = ("dpsql", "deploy", "grammar", "tests", "docs", "examples", "benchmarks", ".ci")
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".sql", ".lark", ".test", ".json", ".cfg", ".txt", ""}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError|raise NotImplemented\b")
STARTS = ("/work/", "/root/", "/home/", "/Users/", "/mnt/", "/private/", "../shared", ":\\Users")
"""One of these is in every line that OF_ONE_MACHINE finds."""
OF_ONE_MACHINE = re.compile(r"(?<![\w.}])/(work|root|home|Users|mnt|private)/\w|\.\./shared\b|[A-Z]:\\Users\\")


def text_files(root: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if (
                path.is_file()
                and path.suffix in TEXT
                and not {"__pycache__", "cache"} & set(path.relative_to(root).parts)
                and path.stat().st_size < 10**6
            ):
                yield path
    yield from (
        path for path in sorted(root.iterdir()) if path.is_file() and path.suffix in TEXT and path.name != ".git"
    )


def core_patterns(root: Path) -> list[str]:
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    patterns: list[str] = settings["tool"]["coverage"]["report"]["include"]
    return patterns


def test_files_of_the_trusted_core_stay_small(root: Path) -> None:
    patterns = core_patterns(root)
    core = {
        path.relative_to(root).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in (root / "dpsql").rglob("*.py")
        if any(fnmatch(path.relative_to(root).as_posix(), pattern) for pattern in patterns)
    }
    assert any(name.startswith("dpsql/core/noise/") for name in core)
    assert {name: lines for name, lines in core.items() if lines > MOST_LINES} == {}


def test_nothing_is_left_unfinished(root: Path) -> None:
    found = {
        f"{path.relative_to(root)}:{number}"
        for path in (root / "dpsql").rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if UNFINISHED.search(line)
    }
    assert found == set()


def test_no_file_names_a_folder_of_one_machine(root: Path) -> None:
    found = {
        f"{path.relative_to(root)}:{number}: {line.strip()[:80]}"
        for path in text_files(root)
        if path != Path(__file__).resolve()
        if any(start in (text := path.read_text(encoding="utf-8", errors="replace")) for start in STARTS)
        for number, line in enumerate(text.splitlines(), 1)
        if OF_ONE_MACHINE.search(line)
    }
    assert found == set()


def test_the_search_for_folders_finds_them() -> None:
    assert OF_ONE_MACHINE.search("open('/home/someone/data')")
    assert OF_ONE_MACHINE.search("see ../shared/notes")
    assert not OF_ONE_MACHINE.search("https://example.org/home/page and data/work/x")


def test_every_page_is_part_of_the_wheel(root: Path) -> None:
    """Pages, types marker and other data lie inside the package that hatchling packs whole."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["dpsql"]}
    ignored = (root / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert not any(fnmatch(entry.page, pattern) for entry in CODES.values() for pattern in ignored if pattern)
    assert (root / "dpsql" / "py.typed").exists()


def test_the_source_distribution_holds_what_its_tests_need(root: Path) -> None:
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [name for name in included if not (root / name.removeprefix("/")).exists()] == []
    assert {f"/{name}" for name in (*FOLDERS, "mkdocs.yml", "action.yml", ".pre-commit-hooks.yaml")} <= set(included)


NAMED = ("LICENSE", "Makefile")
"""Files of the top folder whose names have no ending."""
GENERATED = ("*.crc", "*.parquet", "*.pyc", "*.log", "*.tmp", "*.bak", "*warehouse/*", "*metastore_db/*", "*_SUCCESS")
"""What programs leave behind where they ran."""


def generated(tracked: list[str]) -> list[str]:
    bare = [name for name in tracked if not {"/", "."} & set(name) and name not in NAMED]
    return bare + [name for name in tracked if any(fnmatch(name, pattern) for pattern in GENERATED)]


def test_nothing_that_a_program_left_behind_is_tracked(root: Path) -> None:
    if shutil.which("git") is None or not (root / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("git does not read this checkout")
    tracked = [name for name in listed.stdout.split("\0") if name]
    assert "pyproject.toml" in tracked and generated(tracked) == []
    assert len(generated(["benchmarks/spark-warehouse/t.db/part-0", "a/_SUCCESS", "ledger", "LICENSE"])) == 3


def test_what_a_claim_is_tested_by_exists(root: Path) -> None:
    named = {
        (path.relative_to(root).as_posix(), test)
        for path in (root / "dpsql").rglob("*.py")
        for test in re.findall(r"\btests/[\w/]+\.py\b", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 50 and [each for each in sorted(named) if not (root / each[1]).exists()] == []
