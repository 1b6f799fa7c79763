"""Files that answers go to: new ones only, and never where the ledger is going to be."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dpsql.cli.shell.output import open_new, too_long
from dpsql.diagnostics.errors import Rejected


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
