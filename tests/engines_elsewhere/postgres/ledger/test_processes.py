"""Real gateways in processes of their own: racing for the last of a budget, and killed at each moment."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction

import pytest

from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.privacy_loss import PrivacyLoss
from tests.engines_elsewhere.postgres.ledger.conftest import Database

pytestmark = pytest.mark.processes

_GATEWAY = """
import os, signal, sys
from fractions import Fraction
from dpsql.core.ledger import postgres; from dpsql.core.ledger import postgres_server
from dpsql.core.ledger.chain.head import Head
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.postgres import PostgresLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded

url, head, name = sys.argv[1:4]

def ask(i, unit, cap):
    entry = Entry(f"{name}-{unit}-{i}", name, {unit: PrivacyLoss(Fraction(1, 10))}, "plan", "policy", "SELECT 1")
    return ledger.reserve(entry, Caps(total={unit: PrivacyLoss(Fraction(cap))})).sequence

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def wrap(owner, name, before=None, after=None):
    inner = getattr(owner, name)
    def wrapped(*arguments, **named):
        if before: before()
        found = inner(*arguments, **named)
        if after: after()
        return found
    setattr(owner, name, wrapped)

ledger = PostgresLedger.open(url, head, "clinic", "approx_dp", timeout=600)
print("open", flush=True)
"""
_RACE = (
    _GATEWAY
    + """
for line in sys.stdin:
    unit, cap, requests = line.split()
    admitted = 0
    for i in range(int(requests)):
        try:
            ask(i, unit, cap)
            admitted += 1
        except BudgetExceeded:
            pass
    print(admitted, flush=True)
"""
)
_SPEND = (
    _GATEWAY
    + """
for i in range(100_000):
    print(ask(f"{os.getpid()}-{i}", "patient", 1_000_000), flush=True)
"""
)


@contextmanager
def gateway(program: str, database: Database, name: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", program, database.url, str(database.head(name)), name]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield process
    finally:
        process.kill()
        process.stdin.close()
        process.stdout.close()
        process.wait()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("gateways", [2, 6])
def test_gateways_race_for_the_last_of_a_budget(database: Database, gateways: int) -> None:
    """In each round all of them ask more often than there is room; together they get exactly what there was."""
    rounds = [(f"u{i}", 1 + i % 3) for i in range(24)]
    with ExitStack() as stack:
        racing = [stack.enter_context(gateway(_RACE, database, f"g{i}")) for i in range(gateways)]
        assert [line(process) for process in racing] == ["open"] * gateways
        for unit, room in rounds:
            for process in racing:
                assert process.stdin is not None
                process.stdin.write(f"{unit} {Fraction(room, 10)} 3\n")
                process.stdin.flush()
            assert sum(int(line(process)) for process in racing) == room
    with database.open(gateway="g0") as ledger:
        assert ledger.verify() == sum(room for _, room in rounds)
        assert all(ledger.spent(unit) == PrivacyLoss(Fraction(room, 10)) for unit, room in rounds)


def test_gateways_that_make_the_ledger_at_once_make_one(database: Database) -> None:
    for _ in range(3):
        database.run("DROP SCHEMA IF EXISTS dpsql CASCADE")
        with ExitStack() as stack:
            racing = [stack.enter_context(gateway(_RACE, database, f"g{i}")) for i in range(4)]
            assert [line(process) for process in racing] == ["open"] * 4
        assert database.run("SELECT count(*) FROM dpsql.head") == [(1,)]
        for head in database.heads.glob("*.head"):
            head.unlink()


# Where a gateway kills itself, and how many entries the ledger must hold then.
STEPS = {
    "before the reservation": ("wrap(PostgresLedger, 'reserve', before=die)", 0),
    "before it has the lock": ("wrap(postgres.StoredEntries, 'take_turn', before=die)", 0),
    "with the lock": ("wrap(postgres.StoredEntries, 'take_turn', after=die)", 0),
    "before the entry is added": ("wrap(postgres.StoredEntries, 'add', before=die)", 0),
    "after the entry is added": ("wrap(postgres.StoredEntries, 'add', after=die)", 0),
    "before the commit": ("wrap(postgres_server.LedgerConnection, 'commit', before=die)", 0),
    "after the commit, before its answer is looked at": (
        "wrap(postgres_server.LedgerConnection, 'commit', "
        "before=lambda: wrap(postgres_server.LedgerConnection, 'run', after=die))",
        1,
    ),
    "after the commit": ("wrap(postgres_server.LedgerConnection, 'commit', after=die)", 1),
    "before the head": ("wrap(Head, 'advance', before=die)", 1),
    "after the head": ("wrap(Head, 'advance', after=die)", 1),
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step(database: Database, step: str) -> None:
    """Nobody else waits for the dead, and what it had not committed was not spent."""
    prepare, entries = STEPS[step]
    with (
        database.open(gateway="other") as other,
        gateway(f"{_GATEWAY}{prepare}\nask(0, 'patient', 1)\n", database, "g") as dying,
    ):
        assert line(dying) == "open" and dying.wait(600) == -signal.SIGKILL
        entry = Entry("after", "ben", {"patient": PrivacyLoss(Fraction(1, 10))}, "plan", "policy", "SELECT 1")
        assert other.reserve(entry, Caps()).sequence == entries + 1
        assert other.spent("patient") == PrivacyLoss(Fraction(entries + 1, 10))
    with database.open(gateway="g") as again:
        assert again.verify() == entries + 1


def test_kills_lose_no_receipt_and_lock_nobody_out(database: Database) -> None:
    """After as many receipts as the round says, which may come at any moment of the next charges."""
    receipts = 0
    with database.open(gateway="g0"), database.open(gateway="g1"):
        pass  # both have seen it before anybody has charged
    for round_ in range(10):
        with ExitStack() as stack:
            victims = [stack.enter_context(gateway(_SPEND, database, f"g{i}")) for i in range(2)]
            for victim in victims:
                assert line(victim) == "open"
            for _ in range(3 * round_):
                assert line(victims[0])
            for victim in victims:
                victim.send_signal(signal.SIGKILL)
            for victim in victims:
                assert victim.stdout is not None
                receipts += sum(text.endswith("\n") for text in victim.stdout)
            receipts += 3 * round_
        with database.open(gateway="g0") as ledger, database.open(gateway="g1"):
            entries = ledger.verify()
            # A process killed between its commit and its line leaves one entry without a receipt.
            assert receipts <= entries <= receipts + 2 * (round_ + 1)
            assert ledger.spent("patient") == PrivacyLoss(Fraction(entries, 10))
    assert receipts >= 3 * 45


def test_sixteen_threads_of_four_sessions_share_a_budget(database: Database, charge: Callable[[object], Entry]) -> None:
    import threading

    from dpsql.diagnostics.errors import BudgetExceeded

    caps, admitted, refused = Caps(total={"patient": PrivacyLoss(Fraction(3))}), [], []
    with ExitStack() as stack:
        ledgers = [stack.enter_context(database.open()) for _ in range(4)]

        def work(thread: int) -> None:
            for i in range(5):
                try:
                    admitted.append(ledgers[thread % 4].reserve(charge(f"{thread}-{i}"), caps).sequence)
                except BudgetExceeded:
                    refused.append(i)

        threads = [threading.Thread(target=work, args=(t,)) for t in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(1200)
    assert sorted(admitted) == list(range(1, 31)) and len(refused) == 50
