"""A server beside the same in process: stored answers, fresh ones by workers, memory of connections, what times tell.

    python -m benchmarks.server            # three minutes on an idle machine

Clients are as fast as Python allows and run in this process. Whether two kinds of answers can be told apart by their
times is asked of the Kolmogorov–Smirnov test at LEVEL, over measurements in random order; servers that are broken on
purpose show that it would say so.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dpsql
from benchmarks.frame import Figures, Settings, command, number, spread, table, take_turns, times, unasked
from benchmarks.serving import BROKEN, Server, burning, made, policy, rows_of, running
from tests.support.wire_client import Client, bind, describe, execute, parse

TITLE = "A server"
LEVEL = 1e-4
"""How often two equal kinds of answers are called different."""
STORED = "SELECT COUNT(*) FROM \"full\" WHERE city = 'Bonn'"
WITHOUT = STORED.replace("Bonn", "Lyon")
REFUSED = "SELECT note FROM {}"
BUSY = "SELECT city, COUNT(*), SUM(amount), AVG(amount) FROM big GROUP BY city"
IDLE = (200, 500)
IN_A_TURN = 20
"""Most answers of each kind that are taken beside one run."""


def stored(server: Server, path: Path, rounds: int) -> Figures:
    """A stored answer in process and over TLS, in turns: the time that who asks waits, on connections that are open.

    Over TLS its price and ± come with it, which a client may do without. A driver prepares a statement once and then
    binds and executes it.
    """
    with dpsql.connect(path, analyst="ana") as own, server.client() as client, server.client() as quiet:
        for each in (client, quiet):
            each.query("SET epsilon = 0.001")
        quiet.query("SET dpsql.notices = off")
        client.extended(parse(STORED, "stored"))

        def in_process() -> object:
            return own.execute(STORED, epsilon="0.001").fetchall()

        def over_tls() -> object:
            return rows_of(client.query(STORED))

        def prepared() -> object:
            return rows_of(client.extended(bind(statement="stored"), describe("P"), execute()))

        def without_notices() -> object:
            return rows_of(quiet.query(STORED))

        def new_text() -> object:
            return rows_of(client.query(unasked(STORED)))

        asked = {
            "in process": in_process, "over TLS": over_tls, "over TLS, prepared": prepared,
            "over TLS, without notices": without_notices, "over TLS, new text": new_text,
        }  # fmt: skip
        return take_turns(asked, rounds)


def fresh(servers: dict[int, Server], rounds: int, each: int) -> Figures:
    """Answers a second of several clients, by how many workers there are; the servers take turns."""
    rates: dict[int, list[float]] = {workers: [] for workers in servers}
    for turn in range(rounds + 1):
        for workers, server in servers.items():
            rate = _answers_a_second(server, each)
            if turn:  # the first turn opens what is opened once
                rates[workers].append(rate)
    first, *others = rates.values()
    return {
        "rates": {str(workers): spread(own) for workers, own in rates.items()},
        "over": [spread([a / b for a, b in zip(own, first, strict=True)]) for own in others],
    }


def _answers_a_second(server: Server, each: int) -> float:
    def ask(client: Client) -> None:
        for _ in range(each):
            rows_of(client.query(_never_asked(BUSY)))

    with ExitStack() as open:
        clients = [open.enter_context(server.client()) for _ in range(3)]
        threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(clients) * each / (time.perf_counter() - began)


def _never_asked(sql: str) -> str:
    """The same work as a question that was not asked before, so that no stored answer is given."""
    return sql.replace(" GROUP BY", f" WHERE amount < {random.SystemRandom().uniform(100, 200)} GROUP BY")


def memory(server: Server, counts: Sequence[int]) -> Figures:
    """KiB of the front for each connection that has logged in under TLS, asked once, and is idle."""
    found = {}
    with ExitStack() as open:
        for _ in range(20):  # what is made once
            with server.client() as client:
                client.query("SHOW epsilon")
        before, number_open = server.resident(), 0
        for count in counts:
            while number_open < count:
                client = open.enter_context(server.client(f"user{number_open % 10}"))
                client.query("SHOW epsilon")
                number_open += 1
            found[str(count)] = (server.resident() - before) / count
    return found


# --- what times tell --------------------------------------------------------------------------------------------------


Asks = Callable[[], object]


def told_apart(one: Sequence[float], other: Sequence[float]) -> Figures:
    """The two-sample Kolmogorov–Smirnov test: the largest distance of the two distributions, and how rare it is."""
    a, b = sorted(one), sorted(other)
    distance, i, j = 0.0, 0, 0
    while i < len(a) and j < len(b):
        at = min(a[i], b[j])
        while i < len(a) and a[i] <= at:
            i += 1
        while j < len(b) and b[j] <= at:
            j += 1
        distance = max(distance, abs(i / len(a) - j / len(b)))
    scaled = distance * math.sqrt(len(a) * len(b) / (len(a) + len(b)))
    chance = 2 * sum((-1) ** (k - 1) * math.exp(-2 * (k * scaled) ** 2) for k in range(1, 101)) if scaled > 0.2 else 1.0
    chance = min(max(chance, 0.0), 1.0)
    return {
        "count": len(a), "distance": distance, "chance": chance, "different": chance < LEVEL,
        "ms": [spread([1e3 * x for x in own]) for own in (one, other)],
    }  # fmt: skip


def in_random_order(one: Asks, other: Asks, count: int) -> tuple[list[float], list[float]]:
    """Seconds of both, so often, each pair in an order of its own."""
    found: tuple[list[float], list[float]] = ([], [])
    chosen = random.SystemRandom()
    for _ in range(count):
        for which in chosen.sample((0, 1), 2):
            began = time.perf_counter()
            (one, other)[which]()
            found[which].append(time.perf_counter() - began)
    return found


def _asking(client: Client, sql: str) -> Asks:
    return lambda: client.query(sql)


def by_rows(server: Server, count: int, kinds: Sequence[str] = ("a refusal", "a stored answer")) -> Figures:
    """Answers about private rows that are there, beside those about rows that are not."""
    with server.client() as client:
        for sql in (STORED, WITHOUT):
            rows_of(client.query(sql))
        asked = {
            "a refusal": (_asking(client, REFUSED.format('"full"')), _asking(client, REFUSED.format('"void"'))),
            "a stored answer": (_asking(client, STORED), _asking(client, WITHOUT)),
        }
        return {f"{kind}, rows or none": told_apart(*in_random_order(*asked[kind], count)) for kind in kinds}


@contextmanager
def _somebody_else(server: Server) -> Iterator[Callable[[], bool]]:
    """Another login's run; whether it is still under way."""
    with server.client("user1") as other:
        sql = _never_asked(BUSY)
        run = threading.Thread(target=lambda: rows_of(other.query(sql)))
        run.start()
        time.sleep(0.1)  # by then it has its worker, or it is counted as something else, which hides a difference
        yield run.is_alive
        run.join()


def beside_a_run(server: Server, folder: Path, turns: int) -> Figures:
    """Refusals and stored answers while another's run holds the only worker, and beside a process of no server.

    That one takes of the processors what a run takes, so that what is left is what the server itself tells. Each turn
    counts once, as the median of its answers: those of one turn share its disturbances, and are no separate evidence.
    """
    kinds = ("a refusal", "a stored answer")
    beside, control = ({kind: list[float]() for kind in kinds} for _ in range(2))
    with server.client() as client, burning(folder, BUSY) as others:
        rows_of(client.query(STORED))
        asked = dict(zip(kinds, (_asking(client, REFUSED.format("void")), _asking(client, STORED)), strict=True))

        def turn(found: dict[str, list[float]], goes_on: Callable[[], bool], most: int) -> int:
            taken: dict[str, list[float]] = {kind: [] for kind in kinds}
            while len(taken[kinds[0]]) < most and goes_on():
                for kind, ask in asked.items():
                    began = time.perf_counter()
                    ask()
                    taken[kind].append(time.perf_counter() - began)
            for kind, own in taken.items():
                found[kind] += [statistics.median(own)] if own else []
            return len(taken[kinds[0]])

        while len(beside[kinds[0]]) < turns:
            with _somebody_else(server) as under_way:
                number = turn(beside, under_way, IN_A_TURN)
            if number:
                with others():
                    turn(control, lambda: True, number)
    return {f"{kind}, beside a run or a program": told_apart(beside[kind], control[kind]) for kind in kinds}


def run(settings: Settings) -> Figures:
    """Two servers, with one worker and with two, and those that are broken."""
    count, turns, few = settings.pick(30, 1_000, 1_000), settings.pick(3, 50, 50), settings.pick(12, 100, 100)
    sizes = settings.pick((20_000, 200_000), (500_000, 3_000_000), (500_000, 3_000_000))
    with tempfile.TemporaryDirectory(dir=settings.folder) as home, ExitStack() as open:
        folder = made(Path(home), *sizes)
        with ExitStack() as two:
            paths = {workers: policy(folder, f"of{workers}", workers) for workers in (1, 2)}
            one = open.enter_context(running(paths[1]))
            servers = {1: one, 2: two.enter_context(running(paths[2]))}
            found: Figures = {
                "cores": os.cpu_count(),
                "memory": memory(servers[2], settings.pick((5, 10), IDLE, IDLE)),
                "fresh": fresh(servers, settings.turns(1, 3, 10), settings.pick(1, 2, 4)),
            }
        found["stored"] = stored(one, paths[1], settings.turns(3, 200, 500))
        found["times"] = by_rows(one, count) | beside_a_run(one, folder, turns)
        waits, reads = BROKEN
        with running(policy(folder, "waits", 1), waits) as server:
            found["broken"] = {f"{waits}: {kind}": own for kind, own in beside_a_run(server, folder, turns).items()}
        with running(policy(folder, "reads", 1), reads) as server:
            own = by_rows(server, few, ("a refusal",))
            found["broken"] |= {f"{reads}: {kind}": each for kind, each in own.items()}
    return found


def markdown(figures: Figures) -> str:
    """A table of each, and verdicts."""
    answers = [
        (name, f"{row['ms'][0]:.1f}", times(row["over"].get("in process"))) for name, row in figures["stored"].items()
    ]
    fresh_rows = [
        (workers, number(rate[0]), "–" if i == 0 else times(figures["fresh"]["over"][i - 1]))
        for i, (workers, rate) in enumerate(figures["fresh"]["rates"].items())
    ]
    connections = [(count, number(each)) for count, each in figures["memory"].items()]
    told = [_verdict(kind, own) for part in ("times", "broken") for kind, own in figures[part].items()]
    return "\n\n".join(
        [
            "A stored answer, the notices with it; ratios within rounds:",
            table(("", "ms", "× in process"), answers),
            f"Fresh answers to three clients at once, each worker with one thread, {figures['cores']} cores:",
            table(("workers", "answers a second", "× one worker"), fresh_rows),
            "The front's memory for each idle connection under TLS:",
            table(("open", "KiB each"), connections),
            f"Two kinds of answers by their times (Kolmogorov–Smirnov, level {LEVEL:g}), those of broken servers last. "
            "A run is compared with a program that takes the processors as it does; each turn counts once:",
            table(("", "of each", "ms", "ms of the other", "distance", "chance", ""), told),
        ]
    )


def _verdict(kind: str, own: Figures) -> tuple[str, ...]:
    one, other = (f"{ms[0]:.2f}" for ms in own["ms"])
    said = "**different**" if own["different"] else "no difference"
    return kind, f"{own['count']:,}", one, other, f"{own['distance']:.3f}", f"{own['chance']:.1g}", said


if __name__ == "__main__":
    command(__doc__, "server", run, markdown)
