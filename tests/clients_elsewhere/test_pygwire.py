"""pygwire's strict client as the referee: each message of random conversations is one that the protocol allows then."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.answering import Answers
from tests.support.served import NAME, PASSWORD, Served
from tests.support.wire_client import Client

pygwire = pytest.importorskip("pygwire")
messages = pytest.importorskip("pygwire.messages")

TEXTS = [
    "SELECT n FROM numbers(3)", "SELECT n, list", "SELECT x FROM nowhere", "SELECT n; SELECT i", "", "BEGIN", "COMMIT",
    "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "SET epsilon = 1", "SET application_name = 'a'", "SHOW epsilon",
    "SHOW ALL", "INSERT INTO t", "DECLARE c CURSOR FOR SELECT n FROM numbers(3)", "FETCH 2 FROM c", "CLOSE ALL",
    "DISCARD ALL", "FETCH ALL FROM c", "COPY (SELECT n FROM numbers(2)) TO STDOUT",
    "COPY (SELECT n) TO STDOUT (FORMAT binary)", "PREPARE q AS SELECT n", "EXECUTE q", "DEALLOCATE ALL",
    "SELECT n FROM pg_class", "SELECT n WHERE x = $1", "SET no_such = 1",
]  # fmt: skip
texts = st.sampled_from(TEXTS)
names = st.sampled_from(["", "a", "b"])
formats = st.sampled_from([[], [0], [1]])
step = st.one_of(
    st.builds(messages.Parse, statement=names, query=texts),
    st.builds(messages.Bind, portal=names, statement=names, result_formats=formats),
    st.builds(messages.Bind, portal=names, statement=names, param_values=st.sampled_from([[b"1"], [b"x"], [None]])),
    st.builds(messages.Describe, kind=st.sampled_from("SP"), name=names),
    st.builds(messages.Execute, portal=names, max_rows=st.integers(0, 2)),
    st.builds(messages.Close, kind=st.sampled_from("SP"), name=names),
    st.builds(messages.Flush),
)
turn = st.builds(messages.Query, query_string=texts).map(lambda q: [q]) | st.lists(step, max_size=6).map(
    lambda steps: [*steps, messages.Sync()]
)


def answered(client: Any, connection: socket.socket, sent: list[Any]) -> list[str]:
    """What comes back up to ReadyForQuery; the referee raises where a message may not come then."""
    connection.sendall(b"".join(client.send(message) for message in sent))
    found: list[str] = []
    while not found or found[-1] != "ReadyForQuery":
        data = connection.recv(65_536)
        assert data
        found += [type(message).__name__ for message in client.receive(data)]
    return found


def test_no_message_comes_when_it_may_not(served_plain: Served) -> None:
    @given(st.lists(turn, min_size=1, max_size=6))
    @settings(max_examples=150)
    def conversation(turns: list[list[Any]]) -> None:
        with served_plain.raw() as connection:
            Client(connection).login(NAME, PASSWORD)
            client = pygwire.FrontendConnection(initial_phase=pygwire.ConnectionPhase.READY)
            for sent in turns:
                found = answered(client, connection, sent)
                assert found.count("ReadyForQuery") == 1 and client.is_ready

    conversation()


@pytest.fixture
def served_plain() -> Any:
    with Served(Answers()) as found:
        yield found


def test_the_referee_sees_a_message_too_many() -> None:
    client = pygwire.FrontendConnection(initial_phase=pygwire.ConnectionPhase.READY)
    client.send(messages.Query(query_string="SELECT n"))
    with pytest.raises(pygwire.PygwireError):
        list(client.receive(b"1\0\0\0\4"))  # ParseComplete
