"""The fake engine answers what it was told to and fails like a real one."""

from __future__ import annotations

import pytest

from dpsql.core.engine import Engine, RawTable, engine_failed
from dpsql.diagnostics.errors import CannotOpen, EngineError
from tests.support.fake_engine import FakeEngine


def test_answers_in_order_and_remembers() -> None:
    fake = FakeEngine([RawTable(("n",), ([3],)), ValueError("271828182"), KeyboardInterrupt()], tables=["People"])
    engine: Engine = fake
    assert engine.fetch("SELECT 1").columns == ([3],)
    with pytest.raises(EngineError) as caught:
        engine.in_snapshot(lambda: engine.fetch("SELECT 2"))
    assert str(caught.value) == str(engine_failed())
    with pytest.raises(KeyboardInterrupt):
        engine.fetch("SELECT 3")
    with pytest.raises(EngineError):  # no answer is left
        engine.fetch("SELECT 4")
    assert fake.queries == ["SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4"]
    assert fake.snapshots == [False, True, False, False]


def test_answers_by_function_names_and_closing() -> None:
    fake = FakeEngine(lambda sql: RawTable((sql,), ([],)), tables=["People"])
    assert fake.table_sql("PEOPLE") == '"fake"."main"."People"'
    with pytest.raises(CannotOpen, match="DP004"):
        fake.table_sql("other")
    assert fake.fetch("x").names == ("x",)
    assert fake.describe().tables == ()
    fake.interrupt()
    fake.close()
    assert fake.interrupts == 1 and fake.closed
    with pytest.raises(EngineError):
        fake.fetch("x")
