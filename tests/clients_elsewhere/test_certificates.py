"""libpq's clients show a certificate by sslcert and sslkey."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dpsql.faces.server.front.listen import tls_context
from tests.clients_elsewhere.clients import PSQL, missing
from tests.faces.server.front.test_certificates import CLIENTS, TLS, USERS, context
from tests.support.answering import Answers
from tests.support.served import DATABASE, PASSWORD, Served


def settings(server: Served, name: str, pair: str, folder: Path) -> str:
    """libpq wants a key that others cannot read."""
    file = shutil.copy(CLIENTS / f"{pair}.pem", folder / f"{pair}.pem")
    os.chmod(file, 0o600)
    return (
        f"host=127.0.0.1 port={server.port} dbname={DATABASE} user={name} sslmode=require sslcert={file} sslkey={file}"
    )


def test_psycopg_and_psql(tmp_path: Path) -> None:
    driver = pytest.importorskip("psycopg")
    plain = tls_context(str(TLS / "certificate.pem"), str(TLS / "key.pem"))
    with Served(Answers(), USERS, tls=plain, wire=context()) as server:
        with driver.connect(settings(server, "alone", "ana", tmp_path), autocommit=True) as connection:
            assert connection.execute("SELECT n").fetchall()
        with driver.connect(settings(server, "both", "ana", tmp_path), password=PASSWORD) as connection:
            assert connection.info.user == "both"
        for name, pair in (("alone", "ben"), ("alone", "stranger"), ("alone", "lost"), ("both", "ana")):
            with pytest.raises(driver.OperationalError):
                driver.connect(settings(server, name, pair, tmp_path), password="wrong wrong")
        if not missing(PSQL):
            done = subprocess.run(
                ["psql", "-X", "-c", "SELECT n", settings(server, "alone", "ana", tmp_path)],
                capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
