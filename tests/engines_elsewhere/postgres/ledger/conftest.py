"""A server of PostgreSQL of the tests' own, a database for each test, and gateways that lose their connections."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.core.ledger.ledger import Entry
from dpsql.core.ledger.postgres import PostgresLedger
from dpsql.core.privacy_loss import PrivacyLoss

psycopg = pytest.importorskip("psycopg", reason="needs psycopg:  pip install 'dpsql[postgres]'")

OWNER = "custodian"


def _programs() -> Path | None:
    found = max(glob.glob("/usr/lib/postgresql/*/bin/initdb"), default=shutil.which("initdb"))
    return None if found is None else Path(found).parent


class Cluster:
    """A server in a folder of its own, reached through a socket there."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.folder, self._settings = folder, settings
        programs = _programs()
        if programs is None:
            pytest.skip("needs a server of PostgreSQL:  apt install postgresql")
        self._programs = programs
        # A server does not run as root.
        self._as: dict[str, Any] = (
            {"user": "postgres", "group": "postgres", "extra_groups": []} if not os.getuid() else {}
        )
        if self._as:
            os.chmod(folder, 0o755)
            shutil.chown(folder, "postgres")
        self._run("initdb", "-D", str(self._data), "-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        self.start()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *arguments: str) -> None:
        done = self._called(program, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr

    def _called(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._programs / program), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, **self._as)

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' " + " ".join(f"-c {s}" for s in self._settings)
        log = str(self.folder / "log")
        deadline = time.monotonic() + 600
        # While processes of one that was killed are about to end, it refuses.
        while (done := self._called(
            "pg_ctl", "start", "-D", str(self._data), "-w", "-t", "300", "-l", log, "-o", options
        )).returncode:  # fmt: skip
            assert time.monotonic() < deadline, done.stdout + self.log
            time.sleep(0.1)

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "stop", "-D", str(self._data), "-w", "-t", "300", "-m", mode)

    def kill(self) -> None:
        """SIGKILL for the server; its processes notice."""
        os.kill(int((self._data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def url(self, database: str, role: str = OWNER, folder: Path | None = None) -> str:
        return f"postgresql://{role}@/{database}?host={folder or self.folder}"

    @contextlib.contextmanager
    def connected(self, database: str = "postgres", role: str = OWNER) -> Iterator[Any]:
        with psycopg.connect(self.url(database, role), autocommit=True) as connection:
            yield connection

    def run(self, *statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """What the last statement gives, if it gives anything."""
        with self.connected(database) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


@contextlib.contextmanager
def cluster_with(*settings: str) -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="dpsql-postgres-", dir="/tmp"))  # names of sockets have to be short
    cluster = None
    try:
        cluster = Cluster(folder, *settings)
        yield cluster
    finally:
        with contextlib.suppress(AssertionError):  # stopped already
            if cluster is not None:
                cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Shared by all tests: nobody stops it."""
    with cluster_with("max_connections=60", "shared_buffers=32MB") as found:
        yield found


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """For tests that stop it."""
    with cluster_with("max_connections=30", "shared_buffers=32MB") as found:
        yield found


@dataclass(frozen=True)
class Database:
    """A database that may hold a ledger; each gateway has a head of its own, by its name."""

    cluster: Cluster
    name: str
    heads: Path

    @property
    def url(self) -> str:
        return self.cluster.url(self.name)

    def head(self, gateway: str = "one") -> Path:
        return self.heads / f"{gateway}.head"

    def open(
        self, dataset: str = "clinic", accountant: str = "approx_dp", *, gateway: str = "one", url: str = "",
        timeout: float = 300, **more: Any,
    ) -> PostgresLedger:  # fmt: skip
        place = url or self.url
        return PostgresLedger.open(place, self.head(gateway), dataset, accountant, timeout=timeout, **more)

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """As its owner."""
        return self.cluster.run(*statements, database=self.name)

    def copy(self, name: str) -> Database:
        """The database as it stands, under another name; nobody may be connected to this one."""
        self.cluster.run(f"CREATE DATABASE {name} TEMPLATE {self.name}")
        return Database(self.cluster, name, self.heads)


def made(cluster: Cluster, name: str, heads: Path) -> Database:
    cluster.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name} TEMPLATE template0")
    return Database(cluster, name, heads)


@pytest.fixture
def database(cluster: Cluster, tmp_path: Path) -> Iterator[Database]:
    """An empty one."""
    name = f"t{os.getpid()}"
    yield made(cluster, name, tmp_path)
    cluster.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture
def charge() -> Callable[[object], Entry]:
    """An entry of ε 0.1."""
    return lambda name: Entry(str(name), "ana", {"patient": PrivacyLoss(Fraction(1, 10))}, "plan", "policy", "SELECT 1")
