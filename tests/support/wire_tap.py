"""A port in front of a server's that keeps every byte that passes, both ways."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class Tap:
    """Listens at `port` until the end of the block. both: what clients and server have said so far."""

    def __init__(self, server: int) -> None:
        self._server, self._kept, self._lock = server, bytearray(), threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Tap:
        self._accepting.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join(60)
        self._listener.close()
        for thread in self._threads:
            thread.join(60)

    @property
    def both(self) -> bytes:
        with self._lock:
            return bytes(self._kept)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                thread = threading.Thread(target=self._connect, args=(client,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _connect(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._server)) as server:
            back = threading.Thread(target=self._carry, args=(server, client), daemon=True)
            back.start()
            self._carry(client, server)
            back.join()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                with self._lock:
                    self._kept += data
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
