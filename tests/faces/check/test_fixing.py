"""`dpsql check --fix`: which edits are made, how files are written, and that a second run changes nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.diagnostics.diagnostic import Diagnostic, Edit, Fix, Span
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.check.examine.check_settings import Asked
from dpsql.faces.check.report.finding import Finding
from dpsql.faces.check.report.fixing import ROUNDS, apply_fixes, fix_text, write_fixed
from dpsql.faces.cli.commands.checks.check import run
from dpsql.faces.cli.commands.checks.check_options import Wish

POLICY = Path(__file__).parents[2] / "fixtures" / "policies" / "clinic.yaml"


def fix(*edits: tuple[int, int, str], safe: bool = True) -> Fix:
    return Fix("m", tuple(Edit(Span(a, b), text) for a, b, text in edits), safe)


def test_edits_are_made_whole_and_the_first_of_overlapping_ones_wins() -> None:
    text = "0123456789"
    assert apply_fixes(text, [fix((1, 3, "ab")), fix((7, 7, "x"))]) == ("0ab3456x789", 2)
    assert apply_fixes(text, [fix((2, 5, "b")), fix((1, 3, "a"))]) == ("0a3456789", 1)
    assert apply_fixes(text, [fix((1, 2, "a"), (8, 9, "b")), fix((4, 5, "c"), (8, 9, "d"))]) == ("0a234567b9", 1)
    assert apply_fixes(text, [fix((3, 3, "a")), fix((3, 3, "b"))]) == ("012a3456789", 1)
    assert apply_fixes(text, [fix((1, 3, "")), fix((3, 4, ""))]) == ("0456789", 2)
    assert apply_fixes(text, []) == (text, 0)


FIXES = st.lists(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4), st.text("xy", max_size=2)), min_size=1, max_size=2),
    max_size=5,
)


@given(FIXES)
def test_every_list_of_fixes_is_made_somehow(found: list[list[tuple[int, int, str]]]) -> None:
    """Characters outside of all edits stay, in their order."""
    text = "0123456789abcdef"
    fixes = [fix(*((a, a + n, t) for a, n, t in edits)) for edits in found]
    after, count = apply_fixes(text, [f for f in fixes if len({e.span.start for e in f.edits}) == len(f.edits)])
    touched = {i for f in fixes for e in f.edits for i in range(e.span.start, e.span.end)}
    kept = [c for i, c in enumerate(text) if i not in touched]
    rest = iter(after)
    assert all(c in rest for c in kept) and count <= len(fixes)


def test_it_goes_on_until_nothing_changes_and_ends_in_any_case() -> None:
    def grow(text: str) -> list[Finding]:
        return [Finding(Diagnostic("DP101", "m", fix=fix((0, 0, "a"))), text)]

    def swap(text: str) -> list[Finding]:
        return [Finding(Diagnostic("DP101", "m", fix=fix((0, 1, "b" if text == "a" else "a"))), text)]

    def unsafe(text: str) -> list[Finding]:
        return [Finding(Diagnostic("DP101", "m", fix=fix((0, 0, "a"), safe=False)), text)] if len(text) < 5 else []

    assert fix_text("", grow).count == ROUNDS
    assert fix_text("a", swap).text == "b"
    assert fix_text("", unsafe).text == "" and fix_text("", unsafe, unsafe=True).text == "aaaaa"


TEXT = (
    "-- größe 名 😀\r\n"
    "SELECT mean(cost) AS m\r\nFROM visits;\r\n"
    "  -- dpsql: ignore[DP301] nothing of this kind\r\n"
    "SELECT COUNT_STAR() AS n FROM visits; -- dpsql: ignore[DP302] neither\r\n"
    "-- dpsql: ignore[DP301, DP303] nor here\r\n"
    "SELECT COUNT(*) AS n FROM (SELECT * FROM visits ORDER BY cost);\r\n"
    "SELECT SUM(costt) FROM visits"
)
FIXED = (
    "-- größe 名 😀\r\n"
    "SELECT avg(cost) AS m\r\nFROM visits;\r\n"
    "SELECT COUNT(*) AS n FROM visits;\r\n"
    "SELECT COUNT(*) AS n FROM (SELECT * FROM visits);\r\n"
    "SELECT SUM(costt) FROM visits"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(POLICY, tmp_path / "clinic.yaml")
    return tmp_path


def check(*paths: str, fix: bool = False, diff: bool = False, unsafe: bool = False, name: str | None = None) -> int:
    asked = Asked(policy="clinic.yaml", no_config=True, output_format="concise")
    return run(paths, asked, Wish(stdin_filename=name, fix=fix, diff=diff, unsafe_fixes=unsafe))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_files_are_repaired_and_nothing_else_of_them_changes(
    folder: Path, capsys: pytest.CaptureFixture[str], mark: bytes
) -> None:
    (folder / "kept.sql").write_bytes(mark + TEXT.encode())
    (folder / "kept.sql").chmod(0o640)
    (folder / "link.sql").symlink_to("kept.sql")
    assert check("link.sql", fix=True) == 1
    output = capsys.readouterr()
    assert output.out == "link.sql:6:12: DP103 column costt does not exist\n" and "repaired 7 findings" in output.err
    assert (folder / "kept.sql").read_bytes() == mark + FIXED.encode()
    assert (folder / "kept.sql").stat().st_mode & 0o777 == 0o640 and (folder / "link.sql").is_symlink()
    assert sorted(p.name for p in folder.iterdir()) == ["clinic.yaml", "kept.sql", "link.sql"]
    written = (folder / "kept.sql").stat().st_mtime_ns
    assert check("kept.sql", fix=True) == 1
    assert (folder / "kept.sql").stat().st_mtime_ns == written
    assert check("kept.sql", fix=True, unsafe=True) == 0
    assert (folder / "kept.sql").read_bytes() == mark + FIXED.replace("costt", "cost").encode()


def test_diff_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.sql").write_text("SELECT mean(cost) AS m\nFROM visits")
    (folder / "b.sql").write_text("SELECT AVG(cost) AS m FROM visits")
    assert check(".", diff=True) == 1
    assert capsys.readouterr().out == (
        "--- a.sql\n+++ a.sql\n@@ -1,2 +1,2 @@\n-SELECT mean(cost) AS m\n+SELECT avg(cost) AS m\n FROM visits\n"
        "\\ No newline at end of file\n"
    )
    assert (folder / "a.sql").read_text() == "SELECT mean(cost) AS m\nFROM visits"
    assert check("b.sql", diff=True) == 0
    assert capsys.readouterr().out == ""


def test_standard_input_is_printed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "in").write_bytes(TEXT.encode())
    (folder / "named.sql").write_text("untouched")
    with (folder / "in").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert check("-", fix=True, name="named.sql") == 1
    output = capsys.readouterr()
    assert output.out == FIXED and "named.sql:6:12: DP103" in output.err
    assert (folder / "named.sql").read_text() == "untouched"


def test_what_cannot_be_written_is_said_and_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "a.sql"
    file.write_text("changed meanwhile")
    with pytest.raises(Rejected, match="was changed while it was checked"):
        write_fixed("a.sql", "before", "after")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(Rejected, match="no space left on device"):
        write_fixed("a.sql", "changed meanwhile", "after")
    assert file.read_text() == "changed meanwhile"
    assert sorted(p.name for p in folder.iterdir()) == ["a.sql", "clinic.yaml"]


def test_guesses_are_not_made_by_themselves(folder: Path) -> None:
    with pytest.raises(Rejected, match="needs --fix or --diff"):
        check(".", unsafe=True)


def test_where_the_system_has_no_fchmod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows before Python 3.13: the file's rights stay nevertheless."""
    file = tmp_path / "a.sql"
    file.write_text("before")
    file.chmod(0o640)
    mode = file.stat().st_mode
    monkeypatch.delattr(os, "fchmod", raising=False)
    write_fixed(str(file), "before", "after")
    assert file.read_text() == "after" and file.stat().st_mode == mode
