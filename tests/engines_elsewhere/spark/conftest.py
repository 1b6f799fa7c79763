"""One cluster for the whole session, and schemas in it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the client's, of versions of other packages
    if os.environ.get("DPSQL_ENGINES") == "required":
        import pyspark.sql.connect.session  # noqa: F401
    else:
        pytest.importorskip(
            "pyspark.sql.connect.session",
            reason="pyspark-client is not installed: make test-engines makes an environment that has it",
        )

from tests.engines_elsewhere.spark.servers import Server, running, why_not


def _started() -> Iterator[Server]:
    if reason := why_not():
        pytest.skip(reason)
    with running() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Server]:
    """A running cluster."""
    yield from _started()


@pytest.fixture(scope="session")
def server(cluster: Server) -> str:
    """Its address."""
    return cluster.address


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[Server]:
    """A cluster of the test's own, to be killed."""
    yield from _started()


@pytest.fixture
def schema(cluster: Server) -> Iterator[Callable[..., str]]:
    """Makes a schema with tables, by statements in which SCHEMA stands for it: its name. Removed after the test."""
    made: list[str] = []

    def make(*statements: str) -> str:
        made.append(cluster.new_schema(*statements))
        return made[-1]

    yield make
    for name in made:
        cluster.drop(name)
