"""Disks that fill up at any byte, Ctrl-C at any moment, clocks that go back, and sixteen processes for the last ε.

What must hold each time: no answer that is not paid, no two for one price, a message without a traceback, and a ledger
that serves the next session. Kills are in test_kill.py and test_answers.py, locks and engine failures in
test_concurrency.py.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

import dpsql
from tests.support.small_shop import COUNT, LOST, MEANS, PRICE, Nursery, Shop, answers, make_shop

pytestmark = pytest.mark.processes
CLI = [sys.executable, "-c", "import sys; from dpsql.faces.cli.main import main; sys.exit(main())"]


def complaints(outputs: list[Path]) -> str:
    return "".join(output.with_suffix(".txt.err").read_text() for output in outputs)


# Full disks -----------------------------------------------------------------------------------------------------------

# No file may grow beyond so many bytes from here on, as if the disk were full.
_LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, resource.RLIM_INFINITY))"


@pytest.mark.parametrize("limit", [1024, 5000, 12_000, 20_000, 28_000, 36_000, 45_000, 60_000])
def test_a_disk_that_fills_up_at_some_byte(nursery: Nursery, shop: Shop, limit: int) -> None:
    """From a ledger that cannot even be made to one that fills up after some answers."""
    _, outputs = nursery.start(shop, 12, sql=MEANS, prepare=_LIMIT.format(limit))
    assert nursery.wait() == [0] and complaints(outputs) == ""
    paid = answers(outputs)
    lines = outputs[0].read_text().splitlines()
    assert {line.split()[0] for line in lines} <= {"1/10", "failed"}
    assert all(line == "failed DP407" for line in lines if line.startswith("failed"))
    shop.serves()
    # Each failure may have left one charge without an answer: it was committed, and could not be flushed or remembered.
    spent = shop.spent() - PRICE
    assert sum(paid) <= spent <= sum(paid) + PRICE * (12 - len(paid))


def test_the_limits_reach_from_no_answer_to_all(nursery: Nursery, tmp_path: Path) -> None:
    """The twin: the disk is really full for the small limits, and really not for a large one."""
    counts = []
    for limit in (1024, 45_000, 10_000_000):
        shop = make_shop(tmp_path / str(limit))
        _, outputs = nursery.start(shop, 12, sql=MEANS, prepare=_LIMIT.format(limit))
        nursery.wait()
        counts.append(len(answers(outputs)))
    assert counts[0] == 0 < counts[1] < counts[2] == 12


@pytest.mark.parametrize("failing", ["dpsql.core.ledger.sqlite, 'flush_file'", "dpsql.core.ledger.chain.head, 'flush'"])
@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EROFS", "EDQUOT"])
def test_a_write_that_fails_behind_the_commit_gives_no_answer(
    nursery: Nursery, shop: Shop, failing: str, error: str
) -> None:
    prepare = f"""
import errno
calls = [0]
def fail():
    calls[0] += 1
    if calls[0] in (2, 3):
        raise OSError(errno.{error}, os.strerror(errno.{error}))
wrap({failing}, before=fail)
"""
    _, outputs = nursery.start(shop, 4, sql=MEANS, prepare=prepare)
    assert nursery.wait() == [0], complaints(outputs)
    lines = [line.split()[:2] for line in outputs[0].read_text().splitlines()]
    assert lines[:2] == [["failed", "DP407"]] * 2 and [line[0] for line in lines[2:]] == ["1/10"] * 2
    # What was committed before the failure stays charged: it might be on the disk.
    assert shop.spent() == 4 * PRICE
    shop.serves()


# Ctrl-C ---------------------------------------------------------------------------------------------------------------


def interrupt_at_random(nursery: Nursery, shop: Shop, times: int) -> None:
    dice = random.Random()
    shown = Fraction(0)
    at_work = 0
    for round_ in range(times):
        (child,), outputs = nursery.start(shop, 100_000, sql=MEANS if round_ % 3 else COUNT)
        deadline = time.monotonic() + 600
        while not outputs[0].stat().st_size and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(dice.uniform(0, 0.06))
        nursery.interrupt(child, outputs[0])
        assert nursery.wait() == [130], complaints(outputs)
        assert LOST.sub("", complaints(outputs)) == ""
        paid = answers(outputs)
        at_work += bool(paid)
        shown += sum(paid)
        assert shown <= shop.spent() <= shown + PRICE * (round_ + 1)
    assert at_work == times
    shop.serves()


def test_ctrl_c_at_twenty_random_moments(nursery: Nursery, shop: Shop) -> None:
    interrupt_at_random(nursery, shop, 20)


@pytest.mark.exhaustive
def test_ctrl_c_at_three_hundred_random_moments(nursery: Nursery, shop: Shop) -> None:
    interrupt_at_random(nursery, shop, 300)


def test_ctrl_c_at_random_moments_of_the_command_line(shop: Shop) -> None:
    """From Python's own start, where it may still show its own words, to after the answer."""
    dice = random.Random()
    command = [*CLI, "query", str(shop.policy), MEANS, "--epsilon", "0.1", "--fresh", "--format", "csv"]
    began = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    whole = time.monotonic() - began  # longer than it takes, if the machine was busy: corrected below
    shown, codes = 1, set()
    for round_ in range(15):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(dice.uniform(0.35, 1.0) * whole)
        if process.poll() is not None:
            whole *= 0.8
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
        codes.add(process.returncode)
        complete = out.count("\n") == 4
        shown += complete
        assert complete or out == "" or process.returncode in (130, -signal.SIGINT)
        if process.returncode == 130 and "Traceback" not in err:
            assert "interrupted" in err
        # Before dpsql is loaded, and after it has returned, Python itself answers Ctrl-C.
        assert "Traceback" not in err or "dpsql/core/ledger" not in err, err
        assert shown * PRICE <= shop.spent() <= (shown + round_ + 1) * PRICE
    assert codes & {130, -signal.SIGINT}
    shop.serves()


# Clocks ---------------------------------------------------------------------------------------------------------------

_CLOCK = """
import datetime as module
class Clock(module.datetime):
    hours = [0]
    @classmethod
    def now(cls, zone=None):
        cls.hours[0] -= 1
        return cls(2020, 1, 1, tzinfo=module.UTC) + module.timedelta(hours=cls.hours[0])
import dpsql.core.ledger.sqlite, dpsql.answers.stored.storing
dpsql.core.ledger.chained.datetime = dpsql.answers.stored.storing.datetime = Clock
"""


@pytest.mark.parametrize("fresh", [True, False])
def test_a_clock_that_goes_back_changes_no_price_and_no_order(nursery: Nursery, tmp_path: Path, fresh: bool) -> None:
    shop = make_shop(tmp_path / "shop", epsilon="0.3")
    with dpsql.connect(shop.policy) as con:
        con.execute(COUNT, epsilon="0.1")
    _, outputs = nursery.start(shop, 4, sql=COUNT, prepare=_CLOCK, fresh=fresh)
    assert nursery.wait() == [0], complaints(outputs)
    if fresh:
        assert answers(outputs) == [PRICE] * 2
        assert outputs[0].read_text().count("refused DP403") == 2
    else:
        assert answers(outputs) == [0] * 4
    with shop.ledger() as ledger:
        history = ledger.history()
        assert [r.sequence for r in history] == list(range(1, len(history) + 1))
        assert len(history) == (3 if fresh else 1) == ledger.verify()


# Races ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_sixteen_processes_for_the_last_epsilon(nursery: Nursery, tmp_path: Path, rounds: int) -> None:
    for round_ in range(rounds):
        shop = make_shop(tmp_path / f"shop {round_}", epsilon="0.1")
        _, outputs = nursery.start(shop, 1, sql=COUNT, copies=16)
        assert nursery.wait() == [0] * 16, complaints(outputs)
        assert answers(outputs) == [PRICE]
        assert "".join(o.read_text() for o in outputs).count("refused DP403") == 15
        assert shop.spent() == PRICE and shop.entries() == 1
