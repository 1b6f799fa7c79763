"""Connections as a custodian sees them: who, from where, what runs; stopped and ended."""

from __future__ import annotations

import threading

from tests.support.answering import Answers
from tests.support.served import NAME, PASSWORD, Served
from tests.support.wire_client import Client, shape


def test_a_connection_is_seen_stopped_and_ended(served: Served) -> None:
    assert isinstance(served.answering, Answers)
    assert served.front.visitors() == []
    with served.raw() as connection:
        client = Client(connection)
        client.login(NAME, PASSWORD)
        (seen,) = served.front.visitors()
        assert (seen.door, seen.name, seen.address, seen.running) == ("PostgreSQL", NAME, "127.0.0.1", "")
        served.answering.hold = True
        said: list[str] = []
        asking = threading.Thread(target=lambda: said.append(shape(client.query("SELECT n"))), daemon=True)
        asking.start()
        assert served.answering.running.wait(60)
        (seen,) = served.front.visitors()
        assert seen.running == "SELECT n"
        assert served.call(served.front.stop_of(seen.key))
        asking.join(60)
        assert said == ["E(57014) ZI"]
        served.answering.hold = False
        assert served.call(served.front.end_of(seen.key))
        assert b"57P01" in b"".join(iter(lambda: connection.recv(4096), b""))
    assert not served.call(served.front.end_of(seen.key)) and not served.call(served.front.stop_of("x"))
