"""Refusals are counted by code, and some of their texts kept."""

from __future__ import annotations

import pytest

from dpsql.faces.server.refusal_counts import LONGEST, MOST_TEXTS, Refusals
from dpsql.faces.server.statements import AuditEvent
from tests.support.answering import Recorded


def refused(name: str, text: str, code: str = "DP201") -> AuditEvent:
    return AuditEvent("statement", name, "", text, code, database="shop")


def test_texts_are_kept_by_code_the_newest_last() -> None:
    log = Recorded()
    found = Refusals(log)
    for event in (refused("ana", "a"), refused("ben", "b"), refused("ben", "a"), refused("ana", "c", "DP103")):
        found.record(event)
    found.record(AuditEvent("statement", "ana", "", "fine"))
    found.record(AuditEvent("refused login", "ana", "", outcome="28P01"))
    assert not found.by_code("clinic")
    assert len(log.events) == 6 and list(found.by_code("shop")) == ["DP201", "DP103"]
    assert found.by_code("shop")["DP201"].count == 3
    assert list(found.by_code("shop")["DP201"].texts.items()) == [("b", ("ben",)), ("a", ("ana", "ben"))]


def test_memory_is_bounded() -> None:
    found = Refusals(Recorded())
    for number in range(1000):
        found.record(refused(f"u{number}", f"{number} " + "x" * 10_000))
        found.record(refused(f"u{number}", "the same", "DP103"))
    own = found.by_code("shop")["DP201"]
    assert own.count == 1000 and len(own.texts) == MOST_TEXTS and all(len(t) == LONGEST for t in own.texts)
    assert found.by_code("shop")["DP103"].texts == {"the same": ("u995", "u996", "u997", "u998", "u999")}


def test_what_cannot_be_noted_is_not_counted() -> None:
    class Full:
        def record(self, event: AuditEvent) -> None:
            raise OSError

    found = Refusals(Full())
    with pytest.raises(OSError):
        found.record(refused("ana", "a"))
    assert not found.by_code("shop")
