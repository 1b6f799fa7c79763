"""A server of made-up persons as a process, with clients of its own, for `server.py`; and servers that are broken.

`full` and `void` are private tables of one form, of which one has rows; so have `city = 'Bonn'` and no other city in
`full`. `big` is read for some time.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tests.support.served import PASSWORD, people
from tests.support.wire_client import Client, Reply

HERE = Path(__file__).resolve().parent
TLS = HERE.parent / "tests" / "fixtures" / "tls"
_COLUMNS = """
    unit: {column: id}
    max_rows_per_unit: 3
    columns:
      id: {type: bigint}
      city: {type: varchar, domain: [Bonn, Lyon], nullable: false}
      amount: {type: double, bounds: [0, 100]}
      note: {type: varchar}"""
_TABLES = "".join(f"\n  {name}:{_COLUMNS}" for name in ("full", "void", "big"))
_MOMENTS = ", ".join(f"{ms}ms" for ms in (*range(10, 400, 10), *range(400, 4_000, 100), *range(4_000, 60_001, 500)))
"""Close to each other, so that clients wait little; so are the late ones, which a busy machine needs."""


def made(folder: Path, rows: int, big: int) -> Path:
    """A folder with the data, and who may log in. rows: of `full`; big: of `big`."""
    folder.mkdir(parents=True, exist_ok=True)
    database = folder / "town.duckdb"
    database.unlink(missing_ok=True)
    with duckdb.connect(str(database)) as connection:
        for name, count in (("full", rows), ("void", 0), ("big", big)):
            connection.execute(
                f"CREATE TABLE \"{name}\" AS SELECT (i * 7919) % {max(count // 2, 1)} AS id, 'Bonn' AS city, "
                f"(i % 100)::DOUBLE AS amount, 'x' || i AS note FROM range({count}) r(i)"
            )
    secret = people().secret_of("ana")
    names = ("ana", *(f"user{i}" for i in range(10)))
    users = [f"  {name}: {{secret: '{secret}', account: ana, defaults: {{epsilon: 0.001}}}}" for name in names]
    (folder / "users.yaml").write_text("\n".join(["users:", *users, ""]), encoding="utf-8")
    return folder


def policy(folder: Path, name: str, workers: int) -> Path:
    """A policy over the folder's data with a ledger of its own."""
    path = folder / f"{name}.yaml"
    for old in folder.glob(f"{name}.*"):
        old.unlink()
    path.write_text(
        f"version: 1\nname: town\ndatabase: town.duckdb\nunits:\n  person: {{}}\ntables:{_TABLES}\n"
        f"ledger: {name}.ledger.sqlite\nledger_head: {name}.head.json\nbudgets:\n  total: {{epsilon: 100000}}\n"
        f"serve: {{answers_at: [{_MOMENTS}], workers: {workers}, threads: 1, memory: 1GB, connections: 600, "
        "connections_per_user: 600}\n",
        encoding="utf-8",
    )
    return path


BROKEN = {
    "a stored answer waits for a worker": (
        "from dpsql.faces.server.workers.worker_pool import Pool\nPool.look = lambda self, ask: self.run(ask)\n"
    ),
    "a refusal that reads the data": (
        "import duckdb, re\nfrom dpsql.faces.server.gateway import Gateway\ninner = Gateway._described\n"
        "def described(self, login, sql, settings):\n"
        "    with duckdb.connect(DATABASE, read_only=True) as data:\n"
        "        name = re.search(r'full|void', sql)\n"
        "        if name: data.execute(f'SELECT count(DISTINCT note) FROM \"{name[0]}\"')\n"
        "    return inner(self, login, sql, settings)\n"
        "Gateway._described = described\n"
    ),
}
"""What is wrong with a server → the lines that break it, so that the measurement has something to find."""


@dataclass
class Server:
    """A server that runs. pid: of its front. port: where it listens."""

    pid: int
    port: int

    def resident(self) -> int:
        """KiB of the front; 0 where the system does not tell."""
        status = Path(f"/proc/{self.pid}/status")
        lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
        return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)

    @contextmanager
    def client(self, name: str = "ana") -> Iterator[Client]:
        """A client that has logged in under TLS."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=600) as connection:
            found = Client(connection)
            with found.secure():
                found.login(name, PASSWORD, "town")
                yield found


_BURNS = """import sys, duckdb
with duckdb.connect(sys.argv[1], read_only=True, config={"threads": 1}) as data:
    print("ready", flush=True)
    while True:
        data.execute(sys.argv[2]).fetchall()
"""


@contextmanager
def burning(folder: Path, sql: str) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """A process that asks the folder's data the same over and over with one thread, as a worker does, but of no server.

    It stands still but for the blocks of what this gives.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", _BURNS, str(folder / "town.duckdb"), sql], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None

    @contextmanager
    def goes_on() -> Iterator[None]:
        process.send_signal(signal.SIGCONT)
        try:
            yield
        finally:
            process.send_signal(signal.SIGSTOP)

    try:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the data cannot be read beside the server")
        process.send_signal(signal.SIGSTOP)
        yield goes_on
    finally:
        process.kill()
        process.wait()


def rows_of(replies: Sequence[Reply]) -> int:
    """How many rows came. Raises RuntimeError for an error."""
    wrong = [reply.fields["M"] for reply in replies if reply.kind == "E"]
    if wrong:
        raise RuntimeError(wrong[0])
    return sum(reply.kind == "D" for reply in replies)


@contextmanager
def running(path: Path, broken: str = "", audit: Path | None = None) -> Iterator[Server]:
    """A server of a policy, until the end of the block. audit: where its log is."""
    start = f"DATABASE = {str(path.with_name('town.duckdb'))!r}\n{BROKEN[broken] if broken else ''}"
    start += "import sys\nfrom dpsql.faces.cli.main import main\nsys.exit(main())\n"
    process = subprocess.Popen(
        [sys.executable, "-c", start, "serve", str(path), "--port", "0", "--users", str(path.with_name("users.yaml")),
         "--tls-cert", str(TLS / "certificate.pem"), "--tls-key", str(TLS / "key.pem"),
         *([] if audit is None else ["--audit-log", str(audit)])],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True, cwd=HERE.parent,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        if not ready.startswith("ready:"):
            raise RuntimeError("the server does not start")
        yield Server(process.pid, int(ready.split(":")[3].split("/")[0]))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        process.stdout.close()
