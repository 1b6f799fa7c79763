"""Processes that are gone at each step of a tick: nothing unpaid is shown, and what was stored is given for nothing."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction as F
from pathlib import Path

import pytest

import dpsql
from dpsql.core.ledger.ledger import EntryKind
from tests.support.counted_trips import RIDES, day, make_trips

pytestmark = pytest.mark.processes
MADE = RIDES.format(rho="0.02")
STEPS = {
    "before TICK": "dies(counting, 'tick')",
    "after TICK": "dies(counting, 'drawn')",
    "asked, and not drawn": "dies(counting.CounterTick, '_weighed', after=True)",
    "drawn": "dies(counter_store, 'next_estimates')",
    "before it is stored": "dies(sqlite.SqliteAnswers, 'add')",
    "stored": "dies(sqlite.SqliteAnswers, 'add', after=True)",
    "before TICKED": "dies(counting, 'ticked')",
    "TICKED": "dies(counter_store, 'give', after=True)",
}
TICKS = """
import os, sys, dpsql
from dpsql.answers.stored.store import sqlite
from dpsql.core.release import counting
from dpsql.service.counters import counter_store

def dies(where, name, after=False):
    own = getattr(where, name)
    def dying(*given, **named):
        if after:
            own(*given, **named)
        os._exit(9)
    setattr(where, name, dying)

with dpsql.connect(sys.argv[1], analyst="ana") as con:
    {step}
    con.service.counters.tick()
    os._exit(0)
"""


@pytest.mark.parametrize("step", STEPS)
def test_whatever_is_killed_nothing_unpaid_is_shown(tmp_path: Path, step: str) -> None:
    trips = make_trips(tmp_path)
    trips.close(3)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
        told = con.sql("SELECT * FROM dpsql.rides").run().rows
    trips.close(4)
    done = subprocess.run([sys.executable, "-c", TICKS.format(step=STEPS[step]), trips.policy], check=False)
    assert done.returncode == 9
    with dpsql.connect(trips.policy, analyst="ana") as con:
        kinds = [r.entry.kind for r in con.ledger.history()]
        ticks, given = kinds.count(EntryKind.TICK), kinds.count(EntryKind.TICKED)
        seen = con.sql("SELECT * FROM dpsql.rides").run().rows
        assert seen[:4] == told and len(seen) == 2 * given and given == 2 + (step == "TICKED")
        assert ticks == 3 - (step == "before TICK")
        spent = con.ledger.spent("trips", None, (day(4), day(4))).rho
        assert spent == F(1, 50)
        stored = step in ("stored", "before TICKED", "TICKED", "before TICK")
        (automatic,) = con.service.counters.tick()
        assert (automatic.through == day(4)) is stored
        assert con.ledger.spent("trips", None, (day(4), day(4))).rho == spent
        assert con.tick_counter("rides").through == day(4)
        assert (con.ledger.spent("trips", None, (day(4), day(4))).rho > spent) is not stored
        rows = con.sql("SELECT * FROM dpsql.rides").run().rows
        assert rows[:4] == told and len(rows) == 6
