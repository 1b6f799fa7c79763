"""Texts that eat time or memory, in every protocol: of each, the quick test takes one."""

from __future__ import annotations

import pytest

from tests.server.front.test_attacks import HOSTILE, REFUSALS, WAYS, analyst, server
from tests.support.wire_client import Client, shape

__all__ = ["analyst", "server"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "way"),
    [(name, way) for at, name in enumerate(HOSTILE) for way in WAYS if way != list(WAYS)[at % len(WAYS)]],
)
def test_every_protocol_refuses_it(analyst: Client, name: str, way: str) -> None:
    found = WAYS[way](analyst, HOSTILE[name])
    assert len(found) == 1 and set(found) <= REFUSALS, found
    assert shape(analyst.query("SHOW epsilon")) == "T D C(SHOW) ZI"
    analyst.replies.clear()
