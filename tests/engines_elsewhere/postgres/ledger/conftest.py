"""A database for each test, on a server of the ledgers' own, whose disk is waited for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: make .venv-engines/postgres/.installed")

from dpsql.core.ledger.ledger import Entry  # noqa: E402
from dpsql.core.ledger.postgres import PostgresLedger  # noqa: E402
from dpsql.core.privacy_loss import PrivacyLoss  # noqa: E402
from tests.engines_elsewhere.postgres.servers import Server, found, running  # noqa: E402

SERVERS = found()
OWNER = "postgres"


@dataclass(frozen=True)
class Cluster:
    """A running server."""

    server: Server

    @property
    def folder(self) -> Path:
        """Where its socket is."""
        return self.server.folder

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def url(self, database: str, role: str = OWNER, folder: Path | None = None) -> str:
        return f"postgresql://{role}@/{database}?host={folder or self.folder}"

    @contextmanager
    def connected(self, database: str = "postgres", role: str = OWNER) -> Iterator[Any]:
        with psycopg.connect(self.url(database, role), autocommit=True) as connection:
            yield connection

    def run(self, *statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """What the last statement gives, if it gives anything."""
        with self.connected(database) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def set(self, name: str, value: str) -> None:
        """One of the server's settings, for every connection that is made from now on."""
        self.run(f"ALTER SYSTEM SET {name} = '{value}'", "SELECT pg_reload_conf()")
        while self.run(f"SHOW {name}") != [(value,)]:
            pass


@contextmanager
def started(name: str) -> Iterator[Cluster]:
    if name not in SERVERS:
        pytest.skip("no PostgreSQL: neither in /usr/lib/postgresql nor as the package pgserver")
    with running(name, SERVERS[name]) as server:
        cluster = Cluster(server)
        cluster.set("fsync", "on")
        yield cluster


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Contracts, lost connections and refusals are tried on each version; the rest takes longer: on the first."""
    if "cluster" in metafunc.fixturenames:
        names = list(SERVERS) or ["none"]
        chosen = names if getattr(metafunc.module, "EVERY_VERSION", False) else names[:1]
        metafunc.parametrize("cluster", chosen, indirect=True, scope="session")


@pytest.fixture(autouse=True)
def _heads_stay_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway whose policy names no head keeps it in the user's state directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Shared by all tests: nobody stops it."""
    with started(request.param) as found:
        yield found


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """For tests that stop it, or change its settings."""
    with started(next(iter(SERVERS), "none")) as found:
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
