"""`make serve`: the line that it prints for Python works, Ctrl-C ends it, and it leaves nothing outside of demo/."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

httpx = pytest.importorskip("httpx")
psycopg = pytest.importorskip("psycopg")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(os.name == "nt", reason="needs make and signals")
def test_make_serve_answers_and_ends(tmp_path: Path) -> None:
    make = shutil.which("make")
    assert make is not None
    for name in ("Makefile", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen(
        [make, "serve", f"VENV={ROOT / '.venv'}", f"PORT={port}", "HTTP_PORT=0", "CUSTODIAN_PORT=0"],
        cwd=tmp_path, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    ) as running:  # fmt: skip
        try:
            assert running.stdout is not None
            told: list[str] = []
            while not (told and told[-1].startswith("ready")):
                line = running.stdout.readline()
                assert line, told
                told.append(line)
            found = re.search(r'psycopg\.connect\("([^"]+)"\)', "".join(told))
            assert found is not None
            with psycopg.connect(found[1], autocommit=True) as con:
                con.execute("SET epsilon = 0.1")
                rows = con.execute("SELECT region, COUNT(*) AS n FROM patients GROUP BY region").fetchall()
                assert sorted(region for region, _ in rows) == ["east", "north", "south", "west"]
            password = re.search(r"at the second as custodian, password (\S+)", "".join(told))
            analysts, custodians = re.findall(r"console: (http://127\.0\.0\.1:\d+/)", "".join(told))
            assert password is not None
            for url, name, shown in ((analysts, "ana", "Your budget"), (custodians, "custodian", "Accounts")):
                with httpx.Client(base_url=url, follow_redirects=True, timeout=120) as browser:
                    page = browser.post("/login", data={"name": name, "password": password[1]})
                    assert page.status_code == 200 and f"<h1>{shown}</h1>" in page.text
        finally:
            os.killpg(running.pid, signal.SIGINT)
            running.wait(120)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["Makefile", "demo", "pyproject.toml"]
