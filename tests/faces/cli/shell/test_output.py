"""Files that answers go to: new ones only, and never where the ledger is going to be."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import cast

import pytest

import dpsql
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.cli.shell.commands.all_commands import run_command
from dpsql.faces.cli.shell.input.items import InputPlace, Meta
from dpsql.faces.cli.shell.output.output import TerminalOutput, open_new, too_long
from dpsql.faces.cli.shell.state import Shell


def refused(path: str, kept: tuple[Path, ...] = ()) -> str:
    with pytest.raises(Rejected) as refusal:
        open_new(path, kept)
    return refusal.value.diagnostics[0].code


def test_new_files_only(tmp_path: Path) -> None:
    path = tmp_path / "a"
    open_new(str(path)).close()
    assert refused(str(path)) == "DP903" == refused(str(tmp_path / "none" / "a")) == refused("a\0b")
    assert refused(" |cat") == "DP906"
    open_new(os.devnull).close()


def test_a_file_for_oneself(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        open_new(str(tmp_path / "a"), (), 0o600).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


@pytest.mark.parametrize("found", ["nothing", "a pipe"])
def test_a_file_that_comes_there_meanwhile_is_not_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    """Another program makes it between the look and the opening."""
    path, system = tmp_path / "a", os.open
    if found == "a pipe":
        os.mkfifo(path)

    def racing(name: str | Path, flags: int, *mode: int) -> int:
        if found == "nothing" or not flags & os.O_EXCL:
            path.unlink(missing_ok=True)
            path.write_text("precious")
        return system(name, flags, *mode)

    monkeypatch.setattr("dpsql.faces.cli.shell.output.output.os.open", racing)
    assert refused(str(path)) == "DP903" and path.read_text() == "precious"


def test_pipes_are_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with open_new(str(path)) as file:
            file.write("ä\n")
        assert os.read(reading, 100).decode() == "ä\n"
    finally:
        os.close(reading)


def test_the_target_of_a_link_that_leads_nowhere_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert refused(str(tmp_path / "link")) == "DP903" and not (tmp_path / "target").exists()


def test_the_ledger_s_place_is_kept_by_whatever_name(tmp_path: Path) -> None:
    ledger = tmp_path / "x.sqlite"
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("x.sqlite", "x.sqlite-wal", "x.sqlite.answers", "link/x.sqlite", "link/../link/x.sqlite-shm"):
        assert refused(str(tmp_path / name), (ledger,)) == "DP903"
    assert not ledger.exists()


def test_long_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    monkeypatch.setenv("LINES", "4")
    assert not too_long("a\nb\nc\n") and too_long("a\nb\nc\nd\n") and too_long("a\n" + "b" * 21 + "\n")
    assert not too_long("\x1b[1maaaaaaaaaa\x1b[0m\nb\nc\n") and too_long("日本日本日本\nb\nc\n")


def test_remarks_are_no_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`\\o out.csv`, then `\\pset format csv`: the file has answers only, and what was set is still said."""
    output = TerminalOutput()
    output.open(str(tmp_path / "out.csv"))
    shell = Shell(cast(dpsql.Connection, None), prompting=True, output=output)
    for text in (
        "\\pset format csv", "\\pset format", "\\pset", "\\x", "\\a", "\\t", "\\set k 1", "\\set", "\\intervals off",
        "\\intervals", "\\timing off", "\\r",
    ):  # fmt: skip
        run_command(shell, Meta(text, InputPlace()))
    output.line("the answer")
    output.close()
    assert (tmp_path / "out.csv").read_text() == "the answer\n"
    said = capsys.readouterr().out
    for remark in ("format: csv", "intervals: off", "k = '1'", "Timing is off.", "What was typed is forgotten."):
        assert remark in said, remark
