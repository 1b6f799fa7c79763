"""An evening at a server: connections that ask what is new, stored, refused or free, cancel and leave; killed workers.

    python -m benchmarks.soak [--seconds 600] [--connections 50]

Afterwards: every answer that was given is in the ledger, once, and was given the same again for nothing; every charge
is in the audit log, once, and every statement that came to its end; the front is not larger than it was. `make soak`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.serving import Server, made, running
from dpsql.core.ledger.ledger import Receipt
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.policy.load import load_policy
from tests.support.served import PASSWORD, people
from tests.support.wire_client import Client, packet, rows, text

ACCOUNTS: Final = 10
WHAT: Final = {"fresh": 4, "stored": 4, "refused": 2, "free": 2, "cancelled": 1, "left": 1}
"""What a connection does next, and how often of 14 times."""
MAY: Final = frozenset({"53300", "57014", "58000", "XX000", "57P03"})
"""What an honest statement may be told instead of its answer: too many wait, it was stopped, its worker is gone."""
GROWTH: Final = 40_000
"""KiB by which the front may be larger in the last quarter of an evening than in the second."""
_REFUSED: Final = ('SELECT * FROM "full"', 'SELECT SUM(id) FROM "full"', "SELECT nothing FROM nowhere", "SELEC 1")


@dataclass
class Seen:
    """What a connection has seen. asked: statements whose end it has seen, by text; lost: those it left. answers: by
    text. wrong: what must not be."""

    account: str
    asked: Counter[str] = field(default_factory=Counter)
    left: set[str] = field(default_factory=set)
    answers: dict[str, list[tuple[str | None, ...]]] = field(default_factory=dict)
    did: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Guest:
    """One connection after the other of an account, of which each does what its number says."""

    def __init__(self, port: int, seed: int, number: int) -> None:
        self.port, self.number, self.step = port, number, 0
        self.choose, self.kinds = random.Random(f"{seed} {number}"), random.Random(f"kinds {seed} {number}")
        self.seen = Seen(f"user{number % ACCOUNTS}")
        self.open = ExitStack()
        self.client: Client | None = None

    def go_on(self) -> None:
        """One thing more."""
        what = self.kinds.choices(list(WHAT), list(WHAT.values()))[0]
        if what == "stored" and not self.seen.answers:
            what = "fresh"
        self.step += 1
        self.seen.did[what] += 1
        try:
            self._do(what, self._connected())
        except (OSError, EOFError) as error:
            self.seen.wrong.append(f"{what}: {type(error).__name__} {error}")
            self._leave()

    def _do(self, what: str, client: Client) -> None:
        new = f'SELECT city, COUNT(*) AS n FROM "full" WHERE amount < {self.number}.{self.step:06} GROUP BY city'
        match what:
            case "fresh":
                self._answered(new, client.query(new))
            case "stored":
                sql = self.choose.choice(list(self.seen.answers))
                before = self.seen.answers[sql]
                self._answered(sql, client.query(sql))
                if self.seen.answers[sql] != before:
                    self.seen.wrong.append(f"another answer: {sql}")
            case "refused":
                sql = f"{self.choose.choice(_REFUSED)} -- {self.number} {self.step}"
                if not any(reply.kind == "E" for reply in client.query(sql)):
                    self.seen.wrong.append(f"answered: {sql}")
                self.seen.asked[sql] += 1
            case "free":
                for sql in ("SHOW budget", "SELECT epsilon FROM dpsql.history ORDER BY number DESC LIMIT 3"):
                    client.query(sql)
            case "cancelled":
                client.send(packet(b"Q", text(new)))
                self._cancel(client)
                self._answered(new, client.until("Z"))
            case "left":
                client.send(packet(b"Q", text(new)))
                self.seen.left.add(new)
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._leave()

    def _cancel(self, client: Client) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=600) as other, suppress(OSError):
            other.sendall(struct.pack("!II", 16, 80_877_102) + client.key)
            other.recv(1)

    def _answered(self, sql: str, replies: list[Any]) -> None:
        self.seen.asked[sql] += 1
        told = [reply.fields for reply in replies if reply.kind == "E"]
        if not told:
            self.seen.answers[sql] = rows(replies)
        elif told[0]["C"] not in MAY:
            self.seen.wrong.append(f"{told[0]['C']} {told[0]['M']}: {sql}")

    def _connected(self) -> Client:
        while self.client is None:
            connection = self.open.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=600))
            found = Client(connection)
            self.open.enter_context(found.secure())
            if found.login(self.seen.account, PASSWORD, "town")[-1].kind == "Z":
                self.client = found
            else:
                self._leave()
        return self.client

    def _leave(self) -> None:
        self.client = None
        with suppress(OSError):
            self.open.close()


def evening(server: Server, numbers: Sequence[int], goes_on: Callable[[int], bool], seed: int = 7) -> list[Seen]:
    """What connections of these numbers have seen. goes_on: asked with the number of steps that one has made."""
    guests = [Guest(server.port, seed, number) for number in numbers]

    def stay(guest: Guest) -> None:
        try:
            while goes_on(guest.step):
                guest.go_on()
        except BaseException as error:
            guest.seen.wrong.append(f"unforeseen: {error!r}")
            raise
        finally:
            guest._leave()

    threads = [threading.Thread(target=stay, args=(guest,)) for guest in guests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [guest.seen for guest in guests]


def workers_of(server: Server) -> list[int]:
    """Processes of a server's workers."""
    return [int(pid) for pid in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text("ascii").split()]


def faults(seen: list[Seen], ledger: list[Receipt], lines: list[dict[str, str]]) -> list[str]:
    """What was lost, was charged twice, or is not in the audit log."""
    found = [wrong for own in seen for wrong in own.wrong]
    charges = [receipt.entry for receipt in ledger if receipt.entry.units]
    paid = Counter(entry.statement for entry in charges)
    own_lines = [line for line in lines if line["what"] != "failure"]
    noted = Counter(id for line in own_lines for id in line.get("entry", "").split(", ") if id)
    told = Counter((line["name"], line["statement"]) for line in lines if line["what"] == "statement")
    for own in seen:
        found += [f"answered, and paid {paid[sql]} times: {sql}" for sql in own.answers if paid[sql] != 1]
        for sql, times in own.asked.items():
            if told[own.account, sql] != times:
                found.append(f"asked {times} times, {told[own.account, sql]} in the log: {sql}")
    found += [f"charged {times} times: {sql}" for sql, times in paid.items() if times > 1]
    found += [f"{noted[entry.id]} times in the audit log: {entry.id}" for entry in charges if noted[entry.id] != 1]
    known = {receipt.entry.id for receipt in ledger}
    return found + [f"in the audit log alone: {id}" for id in noted if id not in known]


def policy(folder: Path, moments: str) -> Path:
    """A policy with an account for each login."""
    names = [f"user{number}" for number in range(ACCOUNTS)]
    secret = people().secret_of("ana")
    users = [f"  {name}: {{secret: '{secret}', account: {name}, defaults: {{epsilon: 0.001}}}}" for name in names]
    (folder / "users.yaml").write_text("\n".join(["users:", *users, ""]), encoding="utf-8")
    columns = (
        "{id: {type: bigint}, city: {type: varchar, domain: [Bonn, Lyon], nullable: false}, "
        "amount: {type: double, bounds: [0, 100]}, note: {type: varchar}}"
    )
    path = folder / "soak.yaml"
    path.write_text(
        "version: 1\nname: town\ndatabase: town.duckdb\nunits:\n  person: {}\ntables:\n"
        f"  full: {{unit: {{column: id}}, max_rows_per_unit: 3, columns: {columns}}}\n"
        "ledger: soak.ledger.sqlite\nledger_head: soak.head.json\nfailures: {most: 100000}\n"
        "budgets:\n  total: {epsilon: 100000}\n"
        f"  analysts: {{{', '.join(f'{name}: {{epsilon: 9999}}' for name in names)}}}\n"
        f"serve: {{workers: 2, threads: 1, connections: 200, connections_per_user: 50{moments}}}\n",
        encoding="utf-8",
    )
    return path


def kept(path: Path, audit: Path) -> tuple[list[Receipt], list[dict[str, str]]]:
    """The ledger of a policy, verified, and the lines of the audit log, each of which can be read."""
    loaded = load_policy(path)
    assert loaded.ledger_path is not None and loaded.ledger_head_path is not None
    place = (loaded.ledger_path, loaded.ledger_head_path, loaded.name, loaded.privacy.accountant)
    with SqliteLedger.open(*place) as ledger:
        ledger.verify()
        return list(ledger.history()), [json.loads(line) for line in audit.read_text("ascii").splitlines()]


def main() -> int:
    """Soak, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--connections", type=int, default=50)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        folder = made(Path(home), 20_000, 1_000)
        path, audit, sizes = policy(folder, ", answers_at: [1s, 10s]"), folder / "audit.jsonl", list[int]()
        ends, over, kills = time.monotonic() + given.seconds, threading.Event(), 0
        with running(path, audit=audit) as server:

            def disturb() -> None:
                nonlocal kills
                choose = random.Random(11)
                while not over.wait(1):
                    sizes.append(server.resident())
                    if len(sizes) % 30 == 15:
                        with suppress(OSError, IndexError):
                            os.kill(choose.choice(workers_of(server)), signal.SIGKILL)
                            kills += 1

            disturbing = threading.Thread(target=disturb)
            disturbing.start()
            seen = evening(server, range(given.connections), lambda step: time.monotonic() < ends)
            over.set()
            disturbing.join()
        ledger, lines = kept(path, audit)
    did = sum((own.did for own in seen), Counter[str]())
    print(f"{given.connections} connections, {given.seconds:g} s: {dict(did)}, {kills} workers killed")
    print(f"{len(ledger):,} entries of the ledger, {len(lines):,} lines of the audit log")
    quarter = max(len(sizes) // 4, 1)
    early, late = (max(part, default=0) for part in (sizes[quarter : 2 * quarter], sizes[-quarter:]))
    print(f"the front has {early / 1024:.0f} MiB in the second quarter, {late / 1024:.0f} in the last")
    found = faults(seen, ledger, lines)
    if late > early + GROWTH:
        found.append("the front grows")
    for fault in found[:20]:
        print(fault)
    print(f"{len(found)} faults")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
