"""Sources that are opened, with processes and much data"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dpsql.engines.duckdb.engine import DuckDBEngine
from tests.engines.test_open import refused, said


@pytest.mark.processes
def test_a_file_that_another_process_has_open_for_writing(folder: Path) -> None:
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(folder / "clinic.duckdb")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stdout.readline().strip() == b"open"
        error = refused(folder, "clinic.duckdb")
        writer.kill()
    assert said(error) == "database `clinic.duckdb` is open for writing in another process"


def test_what_does_not_fit_into_memory_goes_to_a_private_folder_that_is_removed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spill))
    engine = DuckDBEngine.open(Path("clinic.duckdb"), {}, folder, threads=1, memory_limit="64MB")
    (made,) = spill.iterdir()
    assert made.stat().st_mode & 0o077 == 0
    rows = "SELECT (i * 7919) % 4000000 AS x FROM range(4000000) t(i)"
    assert engine.fetch(f"SELECT COUNT(*) FROM (SELECT x, COUNT(*) FROM ({rows}) GROUP BY x)").columns == ([4000000],)
    engine.close()
    assert list(spill.iterdir()) == []
    refused(folder, "nowhere.duckdb")
    assert list(spill.iterdir()) == []
