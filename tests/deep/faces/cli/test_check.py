"""What cannot be checked ends with 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faces.cli.test_check import BAD, GOOD
from tests.support.command_line import Call


@pytest.fixture
def policy(policies: Path) -> Path:
    return policies / "pages.yaml"


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    """A folder with clean files only."""
    folder = tmp_path / "queries"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "one.sql").write_text(f"{GOOD};\n")
    (folder / "deep" / "er" / "two.SQL").write_text(f"-- two; statements\n{GOOD};;\n/* ; */ {GOOD}\n;\n")
    (folder / "notes.txt").write_text("SELECT nonsense")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "bad.sql").write_text(BAD)
    return folder


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (["nowhere.sql"], "DP903"),
        (["binary.sql"], "DP903"),
        (["latin.sql"], "DP903"),
        (["one.sql", "--dialect", "klingon"], "DP903"),
        (["one.sql", "--output-format", "pdf"], "DP903"),
        (["one.sql", "--max-epsilon", "0"], "DP903"),
        (["one.sql", "--ignore", "DP2"], "DP903"),
        (["one.sql", "--select", "E501"], "DP903"),
        (["one.sql", "--jobs", "0"], "DP903"),
        (["one.sql", "--baseline", "nowhere.json"], "DP903"),
        (["one.sql", "--config", "nowhere.toml"], "DP910"),
        (["*.nothing"], "DP903"),
        (["one.sql", "--policy", "nowhere.yaml"], "DP001"),
        (["one.sql", "--policy", "one.sql"], "DP002"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_what_cannot_be_checked_is_2(
    what: list[str], code: str, dpsql: Call, policy: Path, queries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(queries)
    (queries / "binary.sql").write_bytes(b"SELECT 1\x00\x01")
    (queries / "latin.sql").write_bytes("SELECT 'é'".encode("latin-1"))
    (queries / "one.sql").write_text("SELECT: [1\n{" if "one.sql" in what[1:] else GOOD)
    options = [] if "--policy" in what else ["--policy", str(policy)]
    done = dpsql("check", *what, *options)
    assert done.status == 2 and done.codes == {code}
