"""A connection as bytes: what comes is taken when it is asked for, and never more than a buffer of it is held.

*Claim.* Before TLS begins no byte of plain text is held that could pass for one that came under TLS (CVE-2021-23222).
*Why.* Bytes are received only while somebody waits for them: as soon as some have come, receiving stops. Whoever asks
for TLS must have sent nothing else (`Decoder.is_empty`), and what comes later goes to the handshake. *When it would be
false.* If receiving went on while nobody waits. *Tested by* tests/faces/server/front/test_opening.py.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final

from dpsql.faces.server.front.slow_readers import UnreadBytes

_BEFORE_LOGIN: Final = 4 * 1024
_AFTER_LOGIN: Final = 16 * 1024
_WITH_A_HANDSHAKE: Final = 16 * 1024
_WAITING_TO_BE_SENT: Final = 256 * 1024
_LAST_SECONDS: Final = 10.0
UNREAD_SECONDS: Final = 60.0
"""A client that takes nothing for so long, or for twice as long, is let go."""


def _nobody_asks() -> None:
    """What is called when a client leaves for whom nothing runs."""


class Gone(Exception):
    """The client is not there any more."""


class ClientLink(asyncio.BufferedProtocol):
    """One connection. `started` is called once it is open."""

    def __init__(self, started: Callable[[ClientLink], object]) -> None:
        self._started = started
        self._buffer = bytearray(_BEFORE_LOGIN)
        self._received: bytes | None = None
        self._handshake = False
        self._arrived: asyncio.Future[None] | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._ending: asyncio.TimerHandle | None = None
        self.gone = asyncio.Event()
        self._left: Callable[[], object] = _nobody_asks
        self.spoke, self.said_address = False, ""
        self._unread: UnreadBytes
        self.transport: asyncio.Transport

    # --- what asyncio calls ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.pause_reading()
        transport.set_write_buffer_limits(_WAITING_TO_BE_SENT)
        self._unread = UnreadBytes(lambda: self.transport, UNREAD_SECONDS)
        self._started(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """A view, for asyncio's TLS fills it in parts: a part of a bytearray would be a copy."""
        return memoryview(self._buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self.spoke = True
        self._received = (self._received or b"") + bytes(memoryview(self._buffer)[:nbytes])
        if not self._handshake:
            self.transport.pause_reading()
        elif len(self._received) > _WITH_A_HANDSHAKE:
            self.abort()
        self._wake()

    def eof_received(self) -> bool | None:
        return None  # the connection closes; a half-open one is of no use to anybody

    def connection_lost(self, error: Exception | None) -> None:
        self.gone.set()
        self._unread.ended()
        self._left()
        self._may_write.set()
        self._wake()
        if self._ending is not None:  # which holds this object
            self._ending.cancel()

    def pause_writing(self) -> None:
        self._may_write.clear()
        self._unread.full()

    def resume_writing(self) -> None:
        self._may_write.set()
        self._unread.room()

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    # --- what the front calls --------------------------------------------------------------------------------------

    async def receive(self) -> bytes:
        """Some bytes, as soon as there are any. Raises Gone."""
        if self._received is None and not self.gone.is_set():
            self._arrived = asyncio.get_running_loop().create_future()
            self.transport.resume_reading()
            await self._arrived
        found, self._received = self._received, None
        if found is None:
            raise Gone
        return found

    def watch(self, left: Callable[[], object]) -> None:
        """Receive while a statement runs, to call this when the client leaves, until some bytes have come."""
        self._left = left
        if self.gone.is_set():
            asyncio.get_running_loop().call_soon(left)
        elif self._received is None:
            self.transport.resume_reading()

    def send(self, data: bytes) -> None:
        """Bytes to be sent; `drain` waits until there is room for more."""
        if not self.gone.is_set():
            self.transport.write(data)

    async def drain(self) -> None:
        """Wait while too much is waiting to be sent. Raises Gone."""
        await self._may_write.wait()
        if self.gone.is_set():
            raise Gone

    async def start_tls(self, context: ssl.SSLContext, seconds: float) -> None:
        """Go on under TLS. Raises Gone: the handshake failed, or took too long.

        What the client sends together with the end of its handshake comes under TLS, but before there is a transport
        that could be told to pause.
        """
        self._handshake = True
        try:
            found = await asyncio.get_running_loop().start_tls(
                self.transport, self, context, server_side=True, ssl_handshake_timeout=seconds
            )
        except OSError:  # of which those of TLS, of time and of connections are kinds
            self.transport.abort()
            raise Gone from None
        if found is None:
            raise Gone
        self.transport, self._handshake = found, False
        found.pause_reading()

    def logged_in(self) -> None:
        """From now on more is received at once."""
        self._buffer = bytearray(_AFTER_LOGIN)

    def close(self) -> None:
        """Send what is waiting, then end the connection; soon also with a client that takes nothing."""
        if not self.gone.is_set():
            self._ending = asyncio.get_running_loop().call_later(_LAST_SECONDS, self.transport.abort)
            self.transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    @property
    def address(self) -> str:
        """From where the client came: an IP address; "" where there is none. said_address: as a proxy says it."""
        if self.said_address:
            return self.said_address
        found = self.transport.get_extra_info("peername")
        return str(found[0]) if isinstance(found, tuple) and found else ""

    @property
    def common_name(self) -> str | None:
        """Of the certificate that the client has shown, which was verified in the handshake; None where there is none,
        or where it bears another number of names than one."""
        subject = (self.transport.get_extra_info("peercert") or {}).get("subject", ())
        names = [value for part in subject for key, value in part if key == "commonName"]
        return names[0] if len(names) == 1 else None
