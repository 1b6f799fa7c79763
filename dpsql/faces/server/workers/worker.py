"""A process that has the data and no network: it reads statements from one descriptor and writes replies to another.

*Claim.* Nothing leaves but replies; whatever kills it, no answer is shown that is not paid for. *Why.* It imports
nothing that opens a connection of its own, keeps its two descriptors where no library finds them, and writes to no
other; a reply is made by a run, which charges first (`service/pipeline.py`). *When it would be false.* If a library
printed rows to descriptors 1 or 2, which lead nowhere here. Where the data is on a server, its client has a connection.
*Tested by* tests/deep/faces/server/test_workers.py.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from dpsql.core.policy.catalogue import Catalogue
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import Error
from dpsql.faces.server.workers.answering import AtOnce, WorkerAnswering
from dpsql.faces.server.workers.ceilings import AccountSpending
from dpsql.faces.server.workers.cut import limit_process
from dpsql.faces.server.workers.worker_messages import (
    LONGEST,
    Ask,
    Broken,
    Charging,
    Draw,
    Go,
    IsCharged,
    Message,
    Ready,
    Reply,
    Waiting,
    parts_of,
    read,
    write,
)
from dpsql.policy.load import load_policy
from dpsql.service.made_up.service import made_up
from dpsql.service.open_data import open_data
from dpsql.service.service import Service

_CHUNK: Final = 65_536


def main(arguments: list[str] | None = None) -> int:
    """Open the data, or make it up, say that it is there, and answer until nobody listens."""
    parser = argparse.ArgumentParser(prog="dpsql-worker")
    parser.add_argument("policy")
    parser.add_argument("--made-up", metavar="NAME", help="what the database of made-up rows is called")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--memory")
    given = parser.parse_args(arguments)
    lines, send = _taken_descriptors()
    for ignored in (signal.SIGINT, signal.SIGTERM):  # it ends when its front does
        signal.signal(ignored, signal.SIG_IGN)
    try:
        loaded = load_policy(given.policy)
        if given.made_up is None:
            policy, engine = open_data(loaded, None, None, given.threads, given.memory)
            service, catalogue = Service(policy, engine), engine.describe()
            spending = AccountSpending(service)
            spending.read()  # now: what is wrong with it is said, and nobody waits for it later
        else:
            service, catalogue = made_up(replace(loaded, name=given.made_up), _known(next(lines)))
            spending = AccountSpending(service)
    except Error as error:
        send(Broken(error.diagnostics))
        return 1
    except Exception:
        send(Broken((_CANNOT,)))
        return 1
    with service:
        send(Ready(loaded.hash, catalogue))
        _serve(WorkerAnswering if given.made_up is None else AtOnce, service, spending, lines, send)
    return 0


def _known(line: bytes) -> Catalogue | None:
    """Names and types of the data beside which rows are made up; None where there is none. Raises ValueError."""
    match read(line):
        case Ready(catalogue=catalogue):
            return catalogue if catalogue.tables else None
    raise ValueError("no catalogue")


_CANNOT: Final = Diagnostic(
    "DP904", "a worker cannot open the data", help=("try it with  dpsql policy show POLICY --with-data",)
)


def _taken_descriptors() -> tuple[Iterator[bytes], Callable[[Message], None]]:
    """The two that lead to the front, and in their place ones that lead nowhere: a library may print."""
    source, sink = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)

    def send(message: Message) -> None:
        data = memoryview(write(message))
        while data:
            data = data[os.write(sink, data) :]

    return _lines(source), send


def _lines(source: int) -> Iterator[bytes]:
    """The lines that come in, until there are no more."""
    held = bytearray()
    while chunk := os.read(source, _CHUNK):
        held += chunk
        *whole, rest = held.split(b"\n")
        yield from map(bytes, whole)
        held = bytearray(rest)
        if len(held) > LONGEST:
            return


def _serve(
    kind: type[WorkerAnswering],
    service: Service,
    spending: AccountSpending,
    lines: Iterator[bytes],
    send: Callable[[Message], None],
) -> None:
    runs: queue.SimpleQueue[Ask | None] = queue.SimpleQueue()
    running: dict[str, queue.SimpleQueue[Draw | Go]] = {}
    sending = threading.Lock()

    def told(*messages: Message) -> None:
        with sending:
            for message in messages:
                send(message)

    def listen() -> None:
        try:
            for line in lines:
                match read(line):
                    case Ask(wish="run") as ask:
                        running[ask.id] = queue.SimpleQueue()
                        runs.put(ask)
                    case Ask() as ask:  # nothing runs beside it, and no thread has to be woken
                        if ask.computing:
                            limit_process()
                        reply(ask)
                    case (Draw(id=id) | Go(id=id)) as word:
                        running[id].put(word)
        finally:
            if running:  # nobody is left who could be shown the answer; what was charged is durable
                os._exit(1)
            runs.put(None)

    def drawing(id: str) -> float:
        told(IsCharged(id))
        match running[id].get():
            case Draw(within=within):
                return within
        return 0.0

    def leaving(id: str) -> None:
        told(Waiting(id))
        running[id].get()

    rows = service.policy.serving.rows
    answering = kind(service, rows, leaving, lambda id, entry: told(Charging(id, entry)), drawing, spending)

    def reply(ask: Ask) -> None:
        found = answering.answer(ask)
        running.pop(ask.id, None)
        with contextlib.suppress(OSError):  # nobody listens, and whoever reads sees it
            try:
                told(*parts_of(found), found)
            except ValueError:  # a number with more digits than Python writes
                told(Reply(ask.id, refused=(_UNSENDABLE,), plan=found.plan))

    threading.Thread(target=listen, daemon=True).start()
    while (ask := runs.get()) is not None:  # each in a thread of its own: it may have to wait until it leaves
        threading.Thread(target=reply, args=(ask,), daemon=True).start()


_UNSENDABLE: Final = Diagnostic("DP904", "the answer cannot be sent; what was charged stays charged")


if __name__ == "__main__":
    sys.exit(main())
