"""One server of each version there is, for the whole session, and databases in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

if os.environ.get("DPSQL_ENGINES") == "required":
    import psycopg  # noqa: F401
else:
    pytest.importorskip(
        "psycopg", reason="psycopg is not installed: make test-engines makes an environment that has it"
    )

from tests.engines_elsewhere.postgres.servers import Server, found, running

SERVERS = found()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of a `server` run on each version; those of `one_server` on the first."""
    if "server" in metafunc.fixturenames:
        metafunc.parametrize("server", list(SERVERS) or ["none"], indirect=True, scope="session")


def _started(name: str) -> Iterator[Server]:
    if name not in SERVERS:
        pytest.skip("no PostgreSQL: neither in /usr/lib/postgresql nor as the package pgserver")
    with running(name, SERVERS[name]) as server:
        yield server


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A running server."""
    yield from _started(request.param)


@pytest.fixture(scope="session")
def one_server() -> Iterator[Server]:
    """A running server of the first version there is: for what is the same in all, and takes time."""
    yield from _started(next(iter(SERVERS), "none"))


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server of the test's own, to be killed."""
    yield from _started(next(iter(SERVERS), "none"))


@pytest.fixture
def database(server: Server) -> Iterator[Callable[[str], str]]:
    """Makes a database from a script: its name. All are removed after the test."""
    made: list[str] = []

    def make(script: str = "") -> str:
        made.append(server.new_database(script))
        return made[-1]

    yield make
    for name in made:
        server.drop(name)
