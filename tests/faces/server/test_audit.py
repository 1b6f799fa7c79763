"""The audit log holds what it says it holds, and nothing else."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dpsql.faces.server.audit_log import FIELDS, AuditLog
from dpsql.faces.server.statements import AuditEvent

NOON = dt.datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=dt.UTC)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def test_a_line_holds_who_what_and_the_price(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(path, lambda: NOON)
    log.record(AuditEvent("statement", "ana", "10.0.0.7", "SELECT\n1 -- ä", "ok", "hash", "ε 0.1", "entry"))
    log.record(AuditEvent("refused login", "bob\n", "10.0.0.8", outcome="28P01"))
    assert lines(path) == [
        {"at": "2026-01-02T12:00:00+00:00", "what": "statement", "name": "ana", "address": "10.0.0.7",
         "statement": "SELECT\n1 -- ä", "outcome": "ok", "plan": "hash", "price": "ε 0.1", "entry": "entry"},
        {"at": "2026-01-02T12:00:00+00:00", "what": "refused login", "name": "bob\n", "address": "10.0.0.8",
         "outcome": "28P01"},
    ]  # fmt: skip
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_field_could_hold_a_duration_or_a_number_of_rows() -> None:
    """Whoever adds a field to an event looks here first: only texts, and only these."""
    assert FIELDS == (
        "at", "what", "name", "address", "statement", "outcome", "plan", "price", "entry", "kind", "database",
    )  # fmt: skip
    assert {field.type for field in dataclasses.fields(AuditEvent)} == {"str"}


def test_a_time_is_told_to_the_second(tmp_path: Path) -> None:
    """Finer ones would let lines that follow each other be subtracted."""
    AuditLog(tmp_path / "a", lambda: NOON).record(AuditEvent("end", "ana", ""))
    ((line),) = lines(tmp_path / "a")
    assert "." not in str(line["at"])


def test_a_log_that_is_moved_away_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(path)
    log.record(AuditEvent("end", "ana", ""))
    path.rename(tmp_path / "audit.log.1")
    log.record(AuditEvent("end", "ben", ""))
    assert [line["name"] for line in lines(path)] == ["ben"]


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    os.symlink(tmp_path / "elsewhere", tmp_path / "link")
    for path in (tmp_path / "link", tmp_path / "none" / "log", tmp_path):
        with pytest.raises(OSError):
            AuditLog(path).record(AuditEvent("end", "ana", ""))
        with pytest.raises(OSError):
            AuditLog(path).require()
    path = tmp_path / "log"
    AuditLog(path).require()
    assert path.read_bytes() == b""


def test_after_a_failure_a_line_is_written_before_anything_is_charged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "folder" / "log"
    log = AuditLog(path)
    for _ in range(2):
        with pytest.raises(OSError):
            log.record(AuditEvent("end", "ana", ""))
    assert [record.getMessage() for record in caplog.records] == [
        f"the audit log {path} cannot be written: no such file or directory"
    ]
    path.parent.mkdir()
    log.require()
    log.require()
    assert [line["what"] for line in lines(path)] == ["log"]


@pytest.mark.skipif(not hasattr(os, "fstatvfs"), reason="no such question here")
def test_a_disk_that_is_nearly_full_is_no_place_for_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = os.statvfs_result((4096, 4096, 1000, 10, 10, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "fstatvfs", lambda descriptor: disk)
    with pytest.raises(OSError, match="No space left"):
        AuditLog(tmp_path / "log").require()


FULL = """
import resource, sys
from pathlib import Path
from dpsql.faces.server.audit_log import AuditLog
from dpsql.faces.server.statements import AuditEvent

hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), hard))
log, failed = AuditLog(Path(sys.argv[1])), 0
for number in range(20):
    try:
        log.record(AuditEvent("statement", "ana", "", f"SELECT {number}"))
    except OSError:
        failed += 1
try:
    log.require()
    print("required")
except OSError:
    pass
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
if "again" in sys.argv:
    log.require()
    log.record(AuditEvent("statement", "ana", "", "SELECT 'after'"))
print(failed)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of a file's size")
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("size", [0, 1, 700, 701, 777, 790])
def test_a_file_that_is_full_holds_every_line_that_was_written_and_those_after_it(
    tmp_path: Path, size: int, restarted: bool
) -> None:
    """Half a line is a line of its own, in the same server and in the next one: it spoils no other."""
    path = tmp_path / "log"
    words = [sys.executable, "-c", FULL, str(path), str(size), *([] if restarted else ["again"])]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "required" not in done.stdout
    if restarted:
        AuditLog(path).record(AuditEvent("statement", "ana", "", "SELECT 'after'"))
    whole = list[str]()
    for line in path.read_text(encoding="ascii").splitlines():
        with contextlib.suppress(ValueError):
            whole.append(json.loads(line).get("statement", ""))
    written = 20 - int(done.stdout)
    assert [text for text in whole if text] == [*(f"SELECT {n}" for n in range(written)), "SELECT 'after'"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")
def test_a_device_without_room_is_no_log() -> None:
    log = AuditLog(Path("/dev/full"))
    with pytest.raises(OSError, match="No space left"):
        log.record(AuditEvent("end", "ana", ""))
    with pytest.raises(OSError, match="No space left"):
        log.require()


def test_standard_output_is_a_log_as_well(capfd: pytest.CaptureFixture[str]) -> None:
    log = AuditLog(None, lambda: NOON)
    log.require()
    log.record(AuditEvent("end", "ana", ""))
    assert json.loads(capfd.readouterr().out)["what"] == "end"
