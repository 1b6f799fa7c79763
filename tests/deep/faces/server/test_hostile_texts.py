"""Texts that eat time or memory, in every protocol, of which the quick test takes one; and 500 connections."""

from __future__ import annotations

import pytest

from tests.faces.server.front.test_attacks import HOSTILE, LONG, REFUSALS, WAYS, all_there_may_be, analyst, server
from tests.support.wire_client import Client, shape

__all__ = ["analyst", "server"]


OF_QUICK = {name: list(WAYS)[at % len(WAYS)] for at, name in enumerate(HOSTILE)}


@pytest.mark.sampled(3)
@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "way"),
    [(name, way) for name in HOSTILE for way in WAYS if way != OF_QUICK[name]],
)
def test_every_protocol_refuses_it(analyst: Client, name: str, way: str) -> None:
    refused(analyst, name, way)


@pytest.mark.parametrize("name", sorted(LONG))
def test_what_is_read_for_long_is_refused(analyst: Client, name: str) -> None:
    refused(analyst, name, OF_QUICK[name])


def refused(analyst: Client, name: str, way: str) -> None:
    found = WAYS[way](analyst, HOSTILE[name])
    assert len(found) == 1 and set(found) <= REFUSALS, found
    assert shape(analyst.query("SHOW epsilon")) == "T D C(SHOW) ZI"
    analyst.replies.clear()


def test_500_connections_are_all_there_may_be() -> None:
    all_there_may_be(500)
