"""Spill folders: private, removed, swept up after a kill, and never taken from a process that lives."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dpsql.engines.duckdb.locked import spill
from dpsql.engines.duckdb.locked.spill import PREFIX, SpillFolder, sweep

pytestmark = pytest.mark.skipif(os.name == "nt", reason="nothing is swept on Windows")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def dead(place: Path, name: str = "dead", mode: int = 0o700) -> Path:
    folder = place / (PREFIX + name)
    folder.mkdir()
    (folder / "duckdb_temp_storage_DEFAULT-0.tmp").write_bytes(b"rows")
    folder.chmod(mode)
    return folder


def test_it_is_private_and_removed(place: Path) -> None:
    made = SpillFolder.make()
    assert stat.S_IMODE(os.stat(made.path).st_mode) == 0o700 and Path(made.path).parent == place
    (Path(made.path) / "duckdb_temp_block-1.block").touch()
    made.remove()
    assert list(place.iterdir()) == []
    with open(os.devnull) as others:  # it has the number that was the folder's
        made.remove()
        others.read()


def test_what_dead_processes_left_is_removed_by_the_next(place: Path) -> None:
    dead(place, "a"), dead(place, "b")
    made = SpillFolder.make()
    assert [p.name for p in place.iterdir()] == [Path(made.path).name]
    made.remove()


def test_a_living_process_keeps_its_folder_and_a_killed_one_does_not(place: Path) -> None:
    program = f"""
import sys, tempfile
tempfile.tempdir = {str(place)!r}
from dpsql.engines.duckdb.locked.spill import SpillFolder
made = SpillFolder.make()
open(made.path + "/duckdb_temp_storage_DEFAULT-0.tmp", "w").close()
print(made.path, flush=True)
sys.stdin.read()
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        folder = Path(child.stdout.readline().strip())
        sweep(str(place))
        assert len(list(folder.iterdir())) == 1
        child.send_signal(signal.SIGKILL)
    assert folder.exists()
    sweep(str(place))
    assert not folder.exists()


def test_of_one_process_one_engine_does_not_sweep_the_others(place: Path) -> None:
    first, second = SpillFolder.make(), SpillFolder.make()
    sweep(str(place))
    assert os.path.isdir(first.path) and os.path.isdir(second.path)
    first.remove(), second.remove()


def test_what_is_not_certainly_ours_stays(place: Path) -> None:
    """Other names, open folders, links, files, and whatever DuckDB does not write."""
    other = place / "dpsql-else"
    other.mkdir()
    opened = dead(place, "open", 0o755)
    mixed = dead(place, "mixed")
    (mixed / "thesis.txt").touch()
    (mixed / "below").mkdir()
    (place / (PREFIX + "file")).touch()
    target = place / "target"
    target.mkdir()
    (target / "duckdb_temp_storage_DEFAULT-0.tmp").touch()
    (place / (PREFIX + "link")).symlink_to(target)
    before = {p.name for p in place.iterdir()}
    sweep(str(place))
    assert {p.name for p in place.iterdir()} == before
    assert list(opened.iterdir()) and list(target.iterdir())
    assert {p.name for p in mixed.iterdir()} == {"thesis.txt", "below"}
    sweep(str(place / "nowhere"))


def test_somebody_elses_folder_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = dead(place)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    sweep(str(place))
    assert list(folder.iterdir())


def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, made = spill._locked, []

    def overtaken(path: str) -> int | None:
        made.append(path)
        if len(made) == 1:
            os.rmdir(path)
        return real(path)

    monkeypatch.setattr(spill, "_locked", overtaken)
    folder = SpillFolder.make()
    assert len(made) == 2 and folder.path == made[1] and os.path.isdir(folder.path)
    folder.remove()


def test_a_forked_child_leaves_the_folder(place: Path) -> None:
    made = SpillFolder.make()
    child = os.fork()
    if child == 0:
        made.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert os.path.isdir(made.path)
    sweep(str(place))
    assert os.path.isdir(made.path)
    made.remove()
    assert list(place.iterdir()) == []
