"""Whoever started a server is told when it is ready."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from dpsql.faces.server.readiness import tell_ready


@pytest.mark.skipif(sys.platform == "win32", reason="systemd's socket is a Unix socket")
@pytest.mark.parametrize("is_abstract", [False, pytest.param(True, marks=pytest.mark.skipif(
    sys.platform != "linux", reason="names without a file are Linux's"))])  # fmt: skip
def test_the_socket_that_is_named_is_told(is_abstract: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"dpsql-{os.getpid()}-{tmp_path.name}" if is_abstract else os.path.relpath(tmp_path / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}" if is_abstract else name)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}" if is_abstract else name)
        tell_ready()
        listening.settimeout(30)
        assert listening.recv(100) == b"READY=1"


def test_nobody_is_told_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    tell_ready()
