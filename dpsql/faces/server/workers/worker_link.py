"""The front's end of one worker: a process that it starts, or one that listens at a Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
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
    Draw,
    Go,
    IsCharged,
    Part,
    Ready,
    Reply,
    Waiting,
    read,
    write,
)


class Died(Exception):
    """The worker is gone."""


Said = Reply | IsCharged | Waiting


class WorkerLink(Protocol):
    """One worker. Asked one thing at a time, or several runs, of which one draws at a time."""

    @property
    def ready(self) -> Ready:
        """What it said when it had opened the data."""
        ...

    def entry_of(self, id: str) -> str:
        """The ledger's entry that a statement was about to make, "" for none; told once it is over."""
        ...

    async def ask(self, ask: Ask) -> Said:
        """Its reply, or that it waits for `draw`, or for `go`. Raises Died."""
        ...

    async def draw(self, id: str, within: float) -> Said:
        """The reply of a run that is charged, or that it waits for `go`; see Draw. Raises Died."""
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


@dataclass(slots=True, eq=False)
class Streams:
    """A worker at the other end of two streams."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    process: asyncio.subprocess.Process | None
    ready: Ready
    _entries: dict[str, str] = field(default_factory=dict)
    _accounts: dict[str, str] = field(default_factory=dict)
    _expected: dict[str, asyncio.Future[Said]] = field(default_factory=dict)
    _listening: asyncio.Task[None] | None = None

    @classmethod
    async def opened(
        cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, process: asyncio.subprocess.Process | None
    ) -> Self:
        """Once it has opened the data. Raises CannotOpen, Died."""
        match await _next(reader):
            case Ready() as ready:
                found = cls(reader, writer, process, ready)
                found._listening = asyncio.create_task(found._listen())
                return found
            case Broken(refused=refused):
                raise CannotOpen(refused)
        raise Died

    async def ask(self, ask: Ask) -> Said:
        """See Link."""
        self._accounts[ask.id] = ask.account
        return await self._told(ask)

    async def draw(self, id: str, within: float) -> Said:
        """See Link."""
        return await self._told(Draw(id, within))

    async def go(self, id: str) -> Reply:
        """See Link."""
        if isinstance(found := await self._told(Go(id)), Reply):
            return found
        raise Died

    def entry_of(self, id: str) -> str:
        """See Link."""
        return self._entries.pop(id, "")

    async def _told(self, message: Ask | Draw | Go) -> Said:
        """What it says to a message. Raises Died."""
        if self._listening is None or self._listening.done():
            raise Died
        expected: asyncio.Future[Said] = asyncio.get_running_loop().create_future()
        self._expected[message.id] = expected
        try:
            self.writer.write(write(message))
            await self.writer.drain()
            return await expected
        except OSError:
            expected.cancel()
            raise Died from None
        finally:
            self._expected.pop(message.id, None)

    async def _listen(self) -> None:
        """Give each reply to who waits for it. What nobody waits for ends all of them."""
        try:
            while True:
                match await _next(self.reader, self._accounts):
                    case Charging(id=id, entry=entry):
                        self._entries[id] = entry
                    case (Reply() | IsCharged() | Waiting()) as found if not self._expected[found.id].done():
                        if isinstance(found, Reply):
                            self._accounts.pop(found.id, None)
                        self._expected[found.id].set_result(found)
                    case _:
                        return
        except (Died, KeyError):
            pass
        finally:
            for expected in self._expected.values():
                if not expected.done():
                    expected.set_exception(Died())

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
        if self._listening is not None:
            await asyncio.wait({self._listening})


async def _next(reader: asyncio.StreamReader, accounts: Mapping[str, str] = MappingProxyType({})) -> object:
    """The next message, with the parts that come before it; between them others have their turn. Raises Died if there
    is none, or none that is understood. accounts: who has asked, by the id."""
    parts = list[Part]()
    try:
        while (line := await reader.readline()).endswith(b"\n"):
            found = read(line, parts, accounts)
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
