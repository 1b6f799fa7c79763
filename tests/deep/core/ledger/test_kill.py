"""`kill -9` at any moment: whatever was shown has been paid for, and the next session opens as if nothing had been."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from fractions import Fraction

import pytest

from tests.support.small_shop import COUNT, ENDLESS, MEANS, PRICE, Nursery, Shop, answers

pytestmark = pytest.mark.processes


def wait_for(true: object, seconds: float = 600) -> None:
    """Until `true()`; fails after so many seconds."""
    assert callable(true)
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.002)


def kill_at_random(nursery: Nursery, shop: Shop, kills: int) -> None:
    dice = random.Random()
    shown = Fraction(0)
    at_work = 0
    for round_ in range(kills):
        (victim,), outputs = nursery.start(shop, 100_000, sql=MEANS if round_ % 3 else COUNT)
        if round_ % 2:
            wait_for(lambda outputs=outputs: outputs[0].stat().st_size)
            time.sleep(dice.uniform(0, 0.1))
        else:
            time.sleep(dice.uniform(0, 0.3))
        os.kill(victim, signal.SIGKILL)
        assert nursery.wait() == [-signal.SIGKILL], outputs[0].with_suffix(".txt.err").read_text()
        paid = answers(outputs)
        at_work += bool(paid)
        shown += sum(paid)
        # Paid at least for what was seen, and at most for one more answer per victim.
        assert shown <= shop.spent() <= shown + PRICE * (round_ + 1)
    assert at_work >= kills // 2
    shop.serves()


def test_forty_kills_at_random_moments(nursery: Nursery, shop: Shop) -> None:
    kill_at_random(nursery, shop, 40)


@pytest.mark.exhaustive
def test_four_hundred_kills_at_random_moments(nursery: Nursery, shop: Shop) -> None:
    kill_at_random(nursery, shop, 400)


# Where the victim kills itself, and how many entries the ledger must hold then.
STEPS = {
    "before the reservation": ("wrap(dpsql.core.ledger.sqlite.SqliteLedger, 'reserve', before=die)", 0),
    "in its transaction, before the insert": ("wrap(dpsql.core.ledger.sqlite.StoredEntries, 'add', before=die)", 0),
    "in its transaction, before the commit": ("wrap(dpsql.core.ledger.sqlite.StoredEntries, 'add', after=die)", 0),
    "after the commit, before the head": (
        "wrap(dpsql.core.ledger.sqlite.StoredEntries, 'add', "
        "after=lambda: wrap(dpsql.core.ledger.chain.head.Head, 'advance', before=die))", 1,
    ),
    "after the commit, before the log is flushed": ("wrap(dpsql.core.ledger.sqlite, 'flush_file', before=arm(1))", 1),
    "after the log is flushed, before the head": ("wrap(dpsql.core.ledger.sqlite, 'flush_file', after=arm(1))", 1),
    "while the head is written": ("wrap(dpsql.core.ledger.chain.head, '_slot', after=arm(1))", 1),
    "before the head is flushed": ("wrap(dpsql.core.ledger.chain.head, 'flush', before=arm(1))", 1),
    "after the head": ("wrap(dpsql.core.ledger.chain.head, 'flush', after=arm(1))", 1),
    "after the reservation, before the fetch": ("wrap(dpsql.core.ledger.sqlite.SqliteLedger, 'reserve', after=die)", 1),
    "after the fetch, before the noise": ("wrap(dpsql.core.release.noisy, '_fetch', after=die)", 1),
    "after the noise": ("wrap(dpsql.core.noise.mechanisms.laplace.DiscreteLaplace, 'add_noise', after=die)", 1),
    "before post-processing": ("wrap(dpsql.engines.duckdb.scratch.Scratch, 'load_columns', before=die)", 1),
    "during post-processing": ("wrap(dpsql.engines.duckdb.scratch.Scratch, 'fetch', before=die)", 1),
    "after post-processing": ("wrap(dpsql.engines.duckdb.scratch.Scratch, 'fetch', after=die)", 1),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step(nursery: Nursery, shop: Shop, step: str) -> None:
    prepare, entries = STEPS[step]
    _, outputs = nursery.start(shop, 1, sql=MEANS, prepare=prepare)
    assert nursery.wait() == [-signal.SIGKILL], outputs[0].with_suffix(".txt.err").read_text()
    assert answers(outputs) == []
    assert shop.entries() == entries
    shop.serves()


def test_killed_before_the_answer_is_printed(nursery: Nursery, shop: Shop) -> None:
    _, outputs = nursery.start(shop, 1, sql=MEANS, before_output="die()")
    assert nursery.wait() == [-signal.SIGKILL]
    assert answers(outputs) == []
    assert shop.entries() == 1


def test_a_child_that_is_left_alone_shows_what_it_paid(nursery: Nursery, shop: Shop) -> None:
    _, outputs = nursery.start(shop, 5, sql=MEANS)
    assert nursery.wait() == [0]
    assert answers(outputs) == [PRICE] * 5
    assert shop.spent() == 5 * PRICE


def test_an_answer_that_nobody_paid_for_would_be_noticed(nursery: Nursery, shop: Shop) -> None:
    forged = """
from dpsql.core.ledger.ledger import Receipt
dpsql.core.ledger.sqlite.SqliteLedger.reserve = lambda self, entry, caps: Receipt(entry, 1, "")
"""
    _, outputs = nursery.start(shop, 3, prepare=forged)
    assert nursery.wait() == [0]
    assert sum(answers(outputs)) == 3 * PRICE > shop.spent()


def test_ctrl_c_ends_a_long_query_at_once_and_keeps_the_charge(nursery: Nursery, shop: Shop) -> None:
    (child,), outputs = nursery.start(shop, 1, sql=ENDLESS)
    wait_for(lambda: shop.entries() == 1)
    time.sleep(0.3)
    pressed = time.monotonic()
    os.kill(child, signal.SIGINT)
    assert nursery.wait() == [130]
    assert time.monotonic() - pressed < 300  # the query itself would take days
    assert answers(outputs) == []
    assert shop.spent() == PRICE
    shop.serves()


def test_ctrl_c_on_the_command_line_is_130_and_keeps_the_charge(shop: Shop) -> None:
    command = [sys.executable, "-c", "import sys; from dpsql.faces.cli.main import main; sys.exit(main())"]
    process = subprocess.Popen(
        [*command, "query", str(shop.policy), ENDLESS, "--epsilon", "0.1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: shop.entries() == 1)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    assert "interrupted" in err and "Traceback" not in err
    assert shop.spent() == PRICE
