"""An analyst beside five others who take all they get: how long he waits; a dashboard of eight new charts; and what the
front takes of memory where each of them keeps all the answers that he gets.

    python -m benchmarks.attacks            # four minutes; --quick shows that it runs

The server is the default of a policy without `serve:`, but for its workers. Each attacker has an account and several
connections, in a process of his own. The analyst asks SHOW budget ten times a second, and something new now and then.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import duckdb

from benchmarks.frame import Figures, Settings, command, table
from benchmarks.serving import Server, made, rows_of, running
from tests.support.served import PASSWORD, people
from tests.support.wire_client import Client

TITLE = "Attacks on a server"
ATTACKERS: Final = 5
CONNECTIONS: Final = 3
WORKERS: Final = 3
"""Of six accounts that all ask without end, each then has its turn within two moments."""
MOMENT: Final = 5.0
"""Seconds: the only moment of the default."""
VALUES: Final = ", ".join(f"({number})" for number in range(300))
ATTACKS: Final[dict[str, str]] = {
    "nobody": "",
    "public tables": "SELECT COUNT(*) FROM pub a, pub b, pub c, pub d WHERE a.x + b.x + c.x > d.x + {}",
    "VALUES": f"SELECT COUNT(*) FROM {', '.join(f'(VALUES {VALUES}) {n}(x)' for n in 'abcd')} WHERE a.x + b.x > {{}}",
    "ε 10⁻⁷": "SELECT COUNT(*) FROM \"full\" WHERE amount > {}",
    "long texts": "SELECT COUNT(*) FROM \"full\" WHERE "
    + " AND ".join(f"(amount > {{}} + {n} OR id = {n})" for n in range(400)),
}  # fmt: skip
CHARTS: Final = 8
HOLDS: Final = "SELECT note FROM wide WHERE x > {}"
"""Four megabytes that hardly shrink."""
_OPEN: Final = ExitStack()


def opened(port: int, name: str) -> Client:
    """A connection that is logged in, until its process ends."""
    while True:  # several at once are too many to log in
        found = Client(socket.create_connection(("127.0.0.1", port), timeout=600))
        try:
            _OPEN.enter_context(found.secure())
            found.login(name, PASSWORD, "town")
            return found
        except (AssertionError, OSError):
            time.sleep(0.2)


def attack(port: int, name: str, sql: str, epsilon: str) -> None:
    """Ask over several connections, each time something else, until the process is ended."""

    def ask(own: int) -> None:
        client = opened(port, name)
        client.query(f"SET epsilon = {epsilon}")
        for number in range(10**9):
            client.query(sql.replace("{}", f"0.{own}{number:09}{os.getpid()}"))

    threads = [threading.Thread(target=ask, args=(own,), daemon=True) for own in range(1, CONNECTIONS + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def attacked(port: int, sql: str) -> Iterator[None]:
    """Until the end of the block."""
    context = multiprocessing.get_context("spawn")
    epsilon = "0.0000001"
    names = [f"user{number}" for number in range(ATTACKERS)] if sql else []
    processes = [context.Process(target=attack, args=(port, name, sql, epsilon), daemon=True) for name in names]
    for process in processes:
        process.start()
    try:
        time.sleep(3 if sql else 0)
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def timed(action: Callable[[], object]) -> float:
    """Seconds."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def honest(port: int, seconds: float, number: int) -> Figures:
    """What an analyst waits, for so long: of SHOW budget the median and the 99th percentile, and each new answer."""
    free, paid = opened(port, "ana"), opened(port, "ana")
    found: Figures = {"show": [], "paid": [], "refused": 0}
    ends = time.perf_counter() + seconds

    def ask_new() -> None:
        for turn in range(10**9):
            time.sleep(seconds / 10)
            if time.perf_counter() > ends:
                return
            sql = f'SELECT city, SUM(amount) FROM "full" WHERE amount > {number}.{turn}5 GROUP BY city'
            try:
                found["paid"].append(timed(lambda: rows_of(paid.query(sql))))  # noqa: B023  # asked at once
            except RuntimeError:
                found["refused"] += 1
            time.sleep(seconds / 2)

    asking = threading.Thread(target=ask_new)
    asking.start()
    while time.perf_counter() < ends:
        try:
            found["show"].append(timed(lambda: rows_of(free.query("SHOW budget"))))
        except RuntimeError:
            found["refused"] += 1
        time.sleep(0.1)
    asking.join()
    show = sorted(found["show"])
    found["show"] = [show[len(show) // 2], show[min(len(show) - 1, int(len(show) * 0.99))]] if show else []
    return found


def dashboard(port: int) -> float:
    """Seconds until eight new charts, which are asked for at once, are all there."""
    clients = [opened(port, "ana") for _ in range(CHARTS)]
    ready = threading.Barrier(CHARTS + 1)

    def ask(client: Client, number: int) -> None:
        ready.wait()
        with suppress(RuntimeError):
            rows_of(client.query(f'SELECT city, COUNT(*), SUM(amount) FROM "full" WHERE amount < {number}7 GROUP BY 1'))

    threads = [threading.Thread(target=ask, args=(c, n)) for n, c in enumerate(clients, 1)]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def hold(port: int, name: str, ready: Any) -> None:
    """Keep answers in cursors over several connections, until no more are given; and then ask on."""

    def ask(own: int) -> None:
        client = opened(port, name)
        for number in range(10**9):
            client.query(f"DECLARE c{number} CURSOR WITH HOLD FOR {HOLDS.replace('{}', f'0.{own}{number:05}')}")
            client.query(f"FETCH 1 FROM c{number}")
            if number == 20:
                ready.release()

    threads = [threading.Thread(target=ask, args=(own,), daemon=True) for own in range(1, CONNECTIONS + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def held(server: Server) -> Figures:
    """Megabytes of the front before five attackers hold all that they get, and the most of them then."""
    context = multiprocessing.get_context("spawn")
    before, most, ready = server.resident() / 1024, 0.0, context.Semaphore(0)
    names = [f"user{number}" for number in range(ATTACKERS)]
    processes = [context.Process(target=hold, args=(server.port, name, ready), daemon=True) for name in names]
    for process in processes:
        process.start()
    try:
        for _ in range(ATTACKERS * CONNECTIONS):
            while not ready.acquire(timeout=0.05):
                most = max(most, server.resident() / 1024)
        most = max(most, server.resident() / 1024)
    finally:
        for process in processes:
            process.kill()
            process.join()
    return {"before": before, "most": most}


def policy(folder: Path, name: str, workers: int) -> Path:
    """A policy over the folder's data, with accounts of their own and a public table."""
    with duckdb.connect(str(folder / "town.duckdb")) as connection:
        connection.execute("CREATE OR REPLACE TABLE pub AS SELECT range AS x FROM range(1000)")
        notes = " || ".join(f"md5('{part}' || range)" for part in range(32))
        connection.execute(f"CREATE OR REPLACE TABLE wide AS SELECT range + 1 AS x, {notes} AS note FROM range(4000)")
    names = ["ana", *(f"user{number}" for number in range(ATTACKERS))]
    secret = people().secret_of("ana")
    users = [f"  {name}: {{secret: '{secret}', account: {name}, defaults: {{epsilon: 0.001}}}}" for name in names]
    (folder / "users.yaml").write_text("\n".join(["users:", *users, ""]), encoding="utf-8")
    columns = (
        "{id: {type: bigint}, city: {type: varchar, domain: [Bonn, Lyon], nullable: false}, "
        "amount: {type: double, bounds: [0, 100]}, note: {type: varchar}}"
    )
    path = folder / f"{name}.yaml"
    path.write_text(
        "version: 1\nname: town\ndatabase: town.duckdb\nunits:\n  person: {}\ntables:\n"
        f"  full: {{unit: {{column: id}}, max_rows_per_unit: 3, columns: {columns}}}\n"
        "  pub: {public: true, columns: {x: {type: bigint}}}\n"
        "  wide: {public: true, columns: {x: {type: bigint}, note: {type: varchar}}}\n"
        f"ledger: {name}.ledger.sqlite\nledger_head: {name}.head.json\n"
        "budgets:\n  total: {epsilon: 100000}\n"
        f"  analysts: {{{', '.join(f'{name}: {{epsilon: 99}}' for name in names)}}}\nserve: {{workers: {workers}}}\n",
        encoding="utf-8",
    )
    return path


def run(settings: Settings) -> Figures:
    """One server for each attack, and one for the dashboard."""
    seconds = settings.pick(2.0, 20.0, 60.0)
    attacks = settings.pick(dict(list(ATTACKS.items())[:2]), ATTACKS, ATTACKS)
    with tempfile.TemporaryDirectory(dir=settings.folder) as home:
        folder = made(Path(home), 20_000, 1_000)
        found: Figures = {"cores": os.cpu_count(), "seconds": seconds, "attacks": {}}
        for number, (name, sql) in enumerate(attacks.items()):
            path = policy(folder, f"attack{number}", WORKERS)
            with running(path) as server, attacked(server.port, sql):
                found["attacks"][name] = honest(server.port, seconds, number)
        with running(policy(folder, "dashboard", 1)) as server:
            found["dashboard"] = dashboard(server.port)
        with running(policy(folder, "held", WORKERS)) as server:
            found["held"] = held(server)
    return found


def markdown(figures: Figures) -> str:
    """A table of the attacks."""
    rows = [
        (name, *(f"{1e3 * s:.0f}" for s in own["show"]), ", ".join(f"{s:.1f}" for s in own["paid"]), own["refused"])
        for name, own in figures["attacks"].items()
    ]
    return "\n\n".join(
        [
            f"What an analyst waits beside {ATTACKERS} attackers with {CONNECTIONS} connections each, for "
            f"{figures['seconds']:g} s, {figures['cores']} cores, {WORKERS} workers, answers at {MOMENT:g} s:",
            table(("attack", "SHOW budget, ms", "99 % within, ms", "new answers, s", "refused"), rows),
            f"Eight new charts, asked for at once of one worker, are there after {figures['dashboard']:.1f} s.",
            f"Where each attacker keeps all answers in cursors, the front has {figures['held']['most']:.0f} "
            f"MB at the most, and {figures['held']['before']:.0f} before.",
        ]
    )


if __name__ == "__main__":
    command(__doc__, "attacks", run, markdown)
