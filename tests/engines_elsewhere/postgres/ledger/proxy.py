"""What stands between a gateway and its server, and cuts their connection at a moment of the test's choice."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

Act = Literal["pass", "cut before", "cut after", "keep from the server", "deliver late"]
Plan = Callable[[int, bytes], Act]
"""(number of what the client sends, counted over all connections; the bytes) → what becomes of it.

cut before: the server does not get it. cut after: it has answered, and the client does not get that. keep from the
server: the client is cut off, and the server is not told, as when a cable is pulled. deliver late: so, but `deliver`
brings it.
"""


class Proxy:
    """Listens in a folder as a server would; `folder` is the host to connect to."""

    def __init__(self, server: Path, plan: Plan) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dpsql-proxy-", dir="/tmp"))
        self.plan, self.sent, self.closed_for_new = plan, 0, False
        self._server = server
        self._kept: list[socket.socket] = []
        self._late: list[tuple[socket.socket, bytes]] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / ".s.PGSQL.5432"))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.let_go()
        shutil.rmtree(self.folder, ignore_errors=True)

    def let_go(self) -> None:
        """The server is told at last of connections that were kept from it."""
        while self._kept:
            self._kept.pop().close()

    def deliver(self) -> None:
        """What was to be delivered late."""
        while self._late:
            server, asked = self._late.pop()
            server.sendall(asked)
            self._kept.append(server)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.closed_for_new:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server / ".s.PGSQL.5432"))
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        """Ask and answer in turns: a client of these tests waits for the answer to all that it has sent."""
        act: Act = "pass"
        with contextlib.suppress(OSError):
            while act == "pass" and (asked := client.recv(1 << 20)):
                act = self.plan(self.sent, asked)
                self.sent += 1
                if act in ("pass", "cut after"):
                    server.sendall(asked)
                    for answered in _answers(server):
                        if act == "pass":
                            client.sendall(answered)
        if act == "keep from the server":
            self._kept.append(server)
        elif act == "deliver late":
            self._late.append((server, asked))
        else:
            server.close()
        client.close()


def _answers(server: socket.socket) -> Iterator[bytes]:
    """What the server says until it is ready for the next query, or is gone."""
    buffer = b""
    while True:
        got = server.recv(1 << 20)
        if not got:
            raise ConnectionError
        yield got
        buffer += got
        while len(buffer) >= 5 and len(buffer) > (length := int.from_bytes(buffer[1:5], "big")):
            kind, buffer = buffer[:1], buffer[length + 1 :]
            if kind in b"ZE" and not buffer and kind == b"Z":
                return


@contextlib.contextmanager
def between(server: Path, plan: Plan) -> Iterator[Proxy]:
    proxy = Proxy(server, plan)
    try:
        yield proxy
    finally:
        proxy.close()


def is_commit(asked: bytes) -> bool:
    return b"COMMIT\0" in asked
