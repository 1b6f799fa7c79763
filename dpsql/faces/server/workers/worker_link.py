"""The front's end of one worker: a process that it starts, or one that listens at a Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, Self

from dpsql.core.policy.serving import Serving
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen
from dpsql.diagnostics.layout import one_line
from dpsql.faces.server.workers.worker_messages import (
    LONGEST,
    Ask,
    Broken,
    Charging,
    Go,
    Part,
    Ready,
    Reply,
    Waiting,
    read,
    write,
)


class Died(Exception):
    """The worker is gone."""


class WorkerLink(Protocol):
    """One worker. Asked one thing at a time."""

    @property
    def ready(self) -> Ready:
        """What it said when it had opened the data."""
        ...

    @property
    def entry(self) -> str:
        """The ledger's entry that the last statement was about to make, "" for none."""
        ...

    async def ask(self, ask: Ask) -> Reply | Waiting:
        """Its reply, or that it waits for `go`. Raises Died."""
        ...

    async def go(self, id: str) -> Reply:
        """The reply of a run that waits. Raises Died."""
        ...

    def kill(self) -> None:
        """End it at once, whatever it does: what is being asked raises Died."""
        ...

    async def ended(self) -> str:
        """How it ended, for the custodian. It must have been killed, or have died."""
        ...

    async def close(self) -> None:
        """Let it end by itself. It must not be busy."""
        ...


Starting = Callable[[], Awaitable[WorkerLink]]
"""How a worker is made. Raises CannotOpen, Died."""


@dataclass(slots=True)
class Streams:
    """A worker at the other end of two streams."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    process: asyncio.subprocess.Process | None
    ready: Ready
    entry: str = ""
    account: str = ""

    @classmethod
    async def opened(
        cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, process: asyncio.subprocess.Process | None
    ) -> Self:
        """Once it has opened the data. Raises CannotOpen, Died."""
        match await _next(reader):
            case Ready() as ready:
                return cls(reader, writer, process, ready)
            case Broken(refused=refused):
                raise CannotOpen(refused)
        raise Died

    async def ask(self, ask: Ask) -> Reply | Waiting:
        """See Link."""
        self.entry, self.account = "", ask.account
        found = await self._told(ask)
        while isinstance(found, Charging) and found.id == ask.id:
            self.entry = found.entry
            found = await _next(self.reader, self.account)
        if isinstance(found, Reply | Waiting) and found.id == ask.id:
            return found
        raise Died

    async def go(self, id: str) -> Reply:
        """See Link."""
        match await self._told(Go(id)):
            case Reply() as reply if reply.id == id:
                return reply
        raise Died

    async def _told(self, message: Ask | Go) -> object:
        """What it says to a message. Raises Died."""
        self.writer.write(write(message))
        try:
            await self.writer.drain()
        except OSError:
            raise Died from None
        return await _next(self.reader, self.account)

    def kill(self) -> None:
        """See Link. A worker that another user has started sees that nobody listens, and ends itself."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
        self.writer.close()

    async def ended(self) -> str:
        """See Link."""
        if self.process is None:
            return ""
        code = await self.process.wait()
        return f" by signal {-code}" if code < 0 else f" with exit code {code}"

    async def close(self) -> None:
        """See Link."""
        self.writer.close()
        if self.process is not None:
            await self.process.wait()


async def _next(reader: asyncio.StreamReader, account: str = "") -> object:
    """The next message, with the parts that come before it; between them others have their turn. Raises Died if there
    is none, or none that is understood."""
    parts = list[Part]()
    try:
        while (line := await reader.readline()).endswith(b"\n"):
            found = read(line, parts, account)
            if not isinstance(found, Part):
                return found
            parts.append(found)
            await asyncio.sleep(0)
    except (OSError, ValueError):
        pass
    raise Died


def command(policy: Path, serving: Serving, made_up: str = "") -> list[str]:
    """What starts a worker. It reads statements from its input and writes replies to its output.

    made_up: what the database is called if its rows are made up; the worker then reads first what is `known` of them.
    """
    found = [sys.executable, "-m", "dpsql.faces.server.workers.worker", str(policy)]
    if made_up:
        return [*found, "--made-up", made_up]
    found += [] if serving.threads is None else ["--threads", str(serving.threads)]
    return found + ([] if serving.memory is None else ["--memory", serving.memory])


def started(arguments: list[str], known: Ready | None = None) -> Starting:
    """Workers that are children of this process. What they write to their streams is read by nobody.

    known: what they are told first, if they are to make up rows: names and types of the true data, as far as there are.
    """

    async def start() -> WorkerLink:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=LONGEST,
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            if known is not None:
                process.stdin.write(write(known))
            return await Streams.opened(process.stdout, process.stdin, process)
        except BaseException:
            process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise

    return start


_HOST: Final = "as the user who has the data:  python -m dpsql.faces.server.workers.host {} POLICY"


def connected(socket: Path) -> Starting:
    """Workers of another user, one for each connection to his Unix socket (`host.py`)."""

    async def start() -> WorkerLink:
        try:
            reader, writer = await asyncio.open_unix_connection(str(socket), limit=LONGEST)
        except OSError as error:
            message = one_line(f"nobody gives workers at {socket}: {(error.strerror or 'unknown reason').lower()}")
            raise CannotOpen([Diagnostic("DP903", message, help=(_HOST.format(socket),))]) from None
        try:
            return await Streams.opened(reader, writer, None)
        except BaseException:
            writer.close()
            raise

    return start
