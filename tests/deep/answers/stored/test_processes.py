"""Stored answers and real processes: the same question at one time is paid for once; kills leave nothing unpaid."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest

import dpsql
from dpsql.diagnostics.errors import BudgetExceeded
from tests.support.small_shop import COUNT, ENDLESS, MEANS, PRICE, Nursery, Shop, answers, make_shop

pytestmark = pytest.mark.processes
NOTES = "SELECT city, COUNT(*) AS n, AVG(amount) AS a FROM orders GROUP BY city"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path / "shop", epsilon="1")


def lines(outputs: list[Path]) -> list[str]:
    return [line for output in outputs for line in output.read_text().splitlines()]


def left_over(shop: Shop) -> set[str]:
    return {p.name for p in shop.folder.iterdir() if "answers" in p.name}


def test_sixteen_processes_with_one_question_pay_once(nursery: Nursery, shop: Shop) -> None:
    _, outputs = nursery.start(shop, 3, sql=MEANS, copies=16, fresh=False)
    assert nursery.wait() == [0] * 16, [o.with_suffix(".txt.err").read_text() for o in outputs]
    found = lines(outputs)
    assert len(found) == 48
    assert sorted(answers(outputs))[-2:] == [0, PRICE]
    assert len({line.split(maxsplit=1)[1] for line in found}) == 1
    assert shop.spent() == PRICE and shop.entries() == 1
    assert left_over(shop) == {"shop.ledger.sqlite.answers"}


def test_the_twin_with_new_noise_pays_every_time(nursery: Nursery, shop: Shop) -> None:
    _, outputs = nursery.start(shop, 1, sql=MEANS, copies=4, fresh=True)
    assert nursery.wait() == [0] * 4
    assert answers(outputs) == [PRICE] * 4 and len(set(lines(outputs))) > 1
    assert shop.spent() == 4 * PRICE


SLOW = """
import glob, dpsql.answers.stored.store.sqlite
# Whoever has looked into the store thinks about it.
wrap(dpsql.answers.stored.store.sqlite.SqliteAnswers, 'find', after=lambda: time.sleep(0.3))
"""
UNLOCKED = """
dpsql.answers.stored.store.sqlite.alone = lambda *given: given[-1]()
# Until a second one has looked as often, before and in its turn: neither has stored before the other has looked.
looks = [0]
def wait():
    looks[0] += 1
    if looks[0] > 2:
        return
    open(f"{job['policy']}.looked.{looks[0]}.{os.getpid()}", "w").close()
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and len(glob.glob(f"{job['policy']}.looked.{looks[0]}.*")) < 2:
        time.sleep(0.01)
wrap(dpsql.answers.stored.store.sqlite.SqliteAnswers, 'find', after=wait)
"""


@pytest.mark.parametrize(("unlocked", "paid"), [("", 1), (UNLOCKED, 2)])
def test_it_is_the_names_that_make_it_one_payment(nursery: Nursery, shop: Shop, unlocked: str, paid: int) -> None:
    """And without them everybody pays: new noise is never free."""
    _, outputs = nursery.start(shop, 1, sql=MEANS, copies=6, fresh=False, prepare=SLOW + unlocked)
    assert nursery.wait() == [0] * 6, outputs[0].with_suffix(".txt.err").read_text()
    spent = answers(outputs)
    assert shop.spent() == sum(spent)
    assert spent.count(PRICE) == 1 if paid == 1 else spent.count(PRICE) >= paid


def test_questions_that_share_a_part_pay_for_it_once(nursery: Nursery, shop: Shop) -> None:
    """Counts and averages over the same groups wait for each other, whatever else they ask."""
    one = nursery.start(shop, 1, sql=NOTES, copies=3, fresh=False)[1]
    assert nursery.wait() == [0] * 3
    two = nursery.start(shop, 1, sql="SELECT AVG(amount) AS b, city FROM orders GROUP BY city", copies=3, fresh=False)[
        1
    ]
    assert nursery.wait() == [0] * 3
    assert sorted(answers(one)) == [0, 0, PRICE]
    assert len(set(lines(two))) == 1 or sum(answers(two)) <= PRICE
    assert shop.spent() == sum(answers(one)) + sum(answers(two))


def test_threads_with_one_question_pay_once(shop: Shop) -> None:
    gate, found = threading.Barrier(8), []

    def work() -> None:
        with dpsql.connect(shop.policy) as con:
            gate.wait()
            found.append(con.execute(MEANS, epsilon="0.1"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(1200)
    assert len({a.rows for a in found}) == 1 and sum(a.spent.epsilon for a in found) == PRICE == shop.spent()


# Where the victim kills itself; what is paid then, and whether asking again is free.
STEPS = {
    "before it looks": ("wrap(dpsql.answers.stored.store.sqlite.SqliteAnswers, 'find', before=die)", 0, False),
    "while it waits its turn": ("wrap(dpsql.answers.stored.store.sqlite.SqliteAnswers, 'alone', before=die)", 0, False),
    "holding the names": ("wrap(dpsql.service.pipeline.AnalystAccount, 'charge', before=die)", 0, False),
    "after the reservation": ("wrap(dpsql.service.pipeline.AnalystAccount, 'charge', after=die)", 1, False),
    "before the answer is stored": (
        "wrap(dpsql.answers.stored.store.sqlite.SqliteAnswers, 'add', before=die)",
        1,
        False,
    ),
    "after the answer is stored": ("wrap(dpsql.answers.stored.store.sqlite.SqliteAnswers, 'add', after=die)", 1, True),
    "before post-processing": (
        "wrap(AnsweringRows, 'handed_on', before=die)",
        1,
        True,
    ),
    "letting go": ("wrap(AnsweringRows, 'handed_on', after=die)", 1, True),
}


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step(nursery: Nursery, shop: Shop, step: str) -> None:
    """What was paid and stored is given to whoever asks next; what was not is paid for; nobody waits for the dead."""
    prepare, entries, stored = STEPS[step]
    _, outputs = nursery.start(
        shop, 1, sql=MEANS, prepare="import dpsql.answers.stored.store.sqlite\n" + prepare, fresh=False
    )
    assert nursery.wait() == [-signal.SIGKILL], outputs[0].with_suffix(".txt.err").read_text()
    assert lines(outputs) == [] and shop.entries() == entries
    began = time.monotonic()
    _, outputs = nursery.start(shop, 2, sql=MEANS, fresh=False)
    assert nursery.wait() == [0]
    assert time.monotonic() - began < 600  # a child waits an hour for whoever runs the same question
    assert answers(outputs) == ([0, 0] if stored else [PRICE, 0])
    assert shop.entries() == entries + (not stored)
    assert left_over(shop) <= {"shop.ledger.sqlite.answers", "shop.ledger.sqlite.answers.running"}


def test_kills_at_random_moments(nursery: Nursery, shop: Shop) -> None:
    """Victims ask the same few questions: never an answer that is not paid, never two for one price."""
    questions = [f"SELECT city, 2 * SUM(amount) AS s FROM orders WHERE amount > {i} GROUP BY city" for i in range(4)]
    shop = make_shop(shop.folder.parent / "rich")
    seen: dict[str, set[str]] = {}
    for round_ in range(16):
        sql = questions[round_ % 4]
        children, outputs = nursery.start(shop, 40, sql=sql, copies=2, fresh=False)
        time.sleep(0.03 * (round_ % 7))
        with contextlib.suppress(ProcessLookupError):  # it may have come to its end
            os.kill(children[0], signal.SIGKILL)
        codes = nursery.wait()
        assert codes[1] == 0 and codes[0] in (0, -signal.SIGKILL)
        whole = [line for line in lines(outputs) if line.endswith(")")]
        seen.setdefault(sql, set()).update(line.split(maxsplit=1)[1] for line in whole)
    # Each question has one answer, whoever asked and whoever died; at most one payment per death is lost.
    assert all(len(found) == 1 for found in seen.values()) and len(seen) == 4
    assert 4 * PRICE <= shop.spent() <= (4 + 16) * PRICE


def test_ctrl_c_while_waiting_for_the_same_question(nursery: Nursery, shop: Shop) -> None:
    children, outputs = nursery.start(shop, 1, sql=ENDLESS, copies=2, fresh=False)
    deadline = time.monotonic() + 600
    while shop.entries() < 1:
        assert time.monotonic() < deadline
    time.sleep(0.5)
    assert shop.entries() == 1  # the other one waits
    for child, output in zip(children, outputs, strict=True):
        nursery.interrupt(child, output)
    codes = nursery.wait()
    assert set(codes) == {130} and lines(outputs) == []
    # Both were told to stop: the one that ran had paid, the other one at most got its turn in between.
    assert shop.spent() <= 2 * PRICE


def test_a_full_disk_shows_the_answer_and_says_that_it_is_not_stored(nursery: Nursery, shop: Shop) -> None:
    full = """
import errno, dpsql.answers.stored.store.sqlite
def fill():
    raise OSError(errno.ENOSPC, "No space left on device")
wrap(dpsql.answers.stored.store.sqlite.SqliteAnswers, "add", before=fill)
"""
    _, outputs = nursery.start(shop, 2, sql=COUNT, prepare=full, fresh=False, before_output="print(release.notes[0])")
    assert nursery.wait() == [0], outputs[0].with_suffix(".txt.err").read_text()
    found = lines(outputs)
    assert [line.split()[0] for line in found[1::2]] == ["1/10", "1/10"]
    assert all("could not be stored: asking again costs again" in line for line in found[::2])
    assert shop.spent() == 2 * PRICE


def test_an_exhausted_budget_still_gives_what_was_paid(shop: Shop) -> None:
    with dpsql.connect(shop.policy) as con:
        first = con.execute(COUNT, epsilon=1)
        with pytest.raises(BudgetExceeded):
            con.execute(COUNT, epsilon=1, fresh=True)
    with dpsql.connect(shop.policy) as con:
        assert con.execute(COUNT, epsilon=1).rows == first.rows
    assert shop.spent() == 1
