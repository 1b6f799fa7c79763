"""What was typed: kept for its user alone, in a file that nothing can break."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import FrameType

import pytest

from dpsql.faces.cli.shell.input import history
from dpsql.faces.cli.shell.input.history import History


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_inputs_of_any_kind_come_back(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history"
    first = History(path)
    texts = ["SELECT 1\nFROM t;", "\\d", "SELECT \"ü\", '\x1b\u2028';"]
    for text in [*texts, texts[-1], " hidden", "", "\n"]:
        first.add(text)
    assert History(path).entries() == texts == first.entries()
    assert mode(path) == 0o600 and mode(path.parent) == 0o700


def test_a_file_that_others_can_read_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text('"SELECT 1;"\n')
    path.chmod(0o644)
    assert History(path).entries() == ["SELECT 1;"] and mode(path) == 0o600


def test_umask_does_not_matter(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        History(tmp_path / "a" / "history").add("x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a" / "history") == 0o600 and mode(tmp_path / "a") == 0o700


def test_broken_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_bytes(b'"a"\n{"b": 1}\n"c\n\xff\xfe\n3\n"d"\n')
    assert History(path).entries() == ["a", "d"]


@pytest.mark.parametrize("kind", ["folder", "link", "no folder", "other file"])
def test_what_cannot_be_used_is_done_without(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "history"
    if kind == "folder":
        path.mkdir()
    elif kind == "other file":
        path.write_bytes(b"SQLite format 3\0")
    elif kind == "link":
        (tmp_path / "other").write_text("kept")
        path.symlink_to(tmp_path / "other")
    else:
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" / "history"
    found = History(path)
    found.add("SELECT 1;")
    assert found.entries() == ["SELECT 1;"] and not found.durable
    assert kind != "other file" or path.read_bytes() == b"SQLite format 3\0"
    assert kind != "link" or (tmp_path / "other").read_text() == "kept"


def test_stop_and_clear(tmp_path: Path) -> None:
    path = tmp_path / "history"
    found = History(path)
    found.add("a")
    found.stop()
    found.add("b")
    assert History(path).entries() == ["a"]
    found.clear()
    assert found.entries() == [] == History(path).entries()


def test_old_inputs_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST", 3)
    path = tmp_path / "history"
    path.write_text("".join(f'"{i}"\n' for i in range(9)))
    assert History(path).entries() == ["6", "7", "8"] and path.read_text().count("\n") == 3


def is_held(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_nobody_else_writes_while_one_appends_or_drops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST", 3)
    path, held, lines = tmp_path / "history", [], history._lines
    path.write_text("".join(f'"{i}"\n' for i in range(9)))

    def looking(texts: list[str]) -> bytes:
        held.append(is_held(path))
        return lines(texts)

    monkeypatch.setattr(history, "_lines", looking)
    found = History(path)
    found.add("9")
    assert held == [True, True] and not is_held(path)


def test_what_another_writes_to_is_not_shortened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST", 3)
    path = tmp_path / "history"
    path.write_text("".join(f'"{i}"\n' for i in range(9)))
    with path.open("ab", buffering=0) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert History(path).entries() == ["6", "7", "8"] and path.read_text().count("\n") == 9
        other.write(b'"9"\n')
    assert History(path).entries() == ["7", "8", "9"] and path.read_text() == '"7"\n"8"\n"9"\n'


def test_shells_that_start_together_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST", 20)
    path, together = tmp_path / "history", Barrier(4)

    def shell(name: str) -> None:
        together.wait(60)
        History(path).add(name)

    with ThreadPoolExecutor(4) as pool:
        for turn in range(25):
            path.write_text("".join(f'"{i}"\n' for i in range(300)))
            names = [f"{turn} {i}" for i in range(4)]
            list(pool.map(shell, names))
            assert set(names) <= set(History(path).entries())


@pytest.mark.parametrize("before", [None, "", '"0"\n'], ids=["no file", "empty file", "one input"])
@pytest.mark.parametrize("removing", [False, True], ids=["another writes", "another removes it"])
def test_whatever_another_shell_does_while_one_starts(tmp_path: Path, before: str | None, removing: bool) -> None:
    """At each call that the start makes; the file is used all the same, and nothing that was added later is lost."""
    for at in range(1, 1000):
        path, left = tmp_path / str(at) / "history", [at]
        path.parent.mkdir()
        if before is not None:
            path.write_text(before)

        def act(frame: FrameType, event: str, _: object, path: Path = path, left: list[int] = left) -> None:
            if event in ("call", "c_call", "c_return") and frame.f_code.co_filename != __file__:
                left[0] -= 1
                if left[0] == 0:
                    if removing:
                        path.unlink(missing_ok=True)
                    else:
                        History(path).add("b")

        sys.setprofile(act)
        try:
            found = History(path)
        finally:
            sys.setprofile(None)
        found.add("a")
        assert found.durable and {"a"} | (set() if removing or left[0] > 0 else {"b"}) <= set(
            History(path).entries()
        ), at
        if left[0] > 0:
            break
    assert at > 20 and left[0] > 0
