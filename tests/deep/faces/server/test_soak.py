"""An evening at a server, thin: nothing that was answered or charged is lost. `make soak` is the long one."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.serving import made, running
from benchmarks.soak import ACCOUNTS, WHAT, evening, faults, kept, policy, workers_of

STEPS = 7
MOMENTS = ", answers_at: [" + ", ".join(f"{ms}ms" for ms in (*range(20, 1_000, 20), *range(1_000, 60_001, 500))) + "]"


@pytest.mark.skipif(sys.platform != "linux", reason="workers are found in /proc")
def test_an_evening_with_killed_workers_loses_nothing(tmp_path: Path) -> None:
    folder = made(tmp_path / "town", 2_000, 10)
    path, audit = policy(folder, MOMENTS), folder / "audit.jsonl"
    seen = []
    with running(path, audit=audit) as server:
        for turn in range(3):
            seen += evening(server, range(4 * turn, 4 * turn + 4), lambda step: step < STEPS)
            for worker in workers_of(server)[turn::3]:
                os.kill(worker, signal.SIGKILL)
    ledger, lines = kept(path, audit)
    assert faults(seen, ledger, lines) == []
    did = sum((own.did for own in seen), Counter[str]())
    assert set(did) == set(WHAT) and did.total() == 3 * 4 * STEPS and len({own.account for own in seen}) == ACCOUNTS
    answered = {sql for own in seen for sql in own.answers}
    assert answered, "nobody was answered"
    # What the comparison is there for, it finds.
    (paid, *_) = [place for place, receipt in enumerate(ledger) if receipt.entry.statement in answered]
    assert faults(seen, [*ledger[:paid], *ledger[paid + 1 :]], lines)
    assert faults(seen, [*ledger, ledger[paid]], lines)
    charged = [place for place, line in enumerate(lines) if "entry" in line and line["what"] != "failure"]
    assert all(faults(seen, ledger, lines[:place] + lines[place + 1 :]) for place in charged)
    seen[0].answers["SELECT of nobody"] = []
    assert faults(seen, ledger, lines)
