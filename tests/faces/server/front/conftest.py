"""A front with fixed answers, and a client that has logged in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.answering import Answers
from tests.support.served import NAME, PASSWORD, Served
from tests.support.wire_client import Client


@pytest.fixture
def served() -> Iterator[Served]:
    with Served(Answers()) as found:
        yield found


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with served.raw() as connection:
        found = Client(connection)
        found.login(NAME, PASSWORD)
        yield found
