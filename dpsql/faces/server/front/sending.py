"""What is sent to a client: messages are gathered, and go out together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from dpsql.diagnostics.note import BESIDE_NOTES, Note, Rank, foremost
from dpsql.faces.server.front import error_fields as errors
from dpsql.faces.server.front.client_link import ClientLink
from dpsql.faces.server.front.error_fields import Fields, ProtocolFault
from dpsql.faces.server.front.portals import Columns, fields
from dpsql.faces.server.front.variables import Variables
from dpsql.faces.server.statements import Answer
from dpsql.faces.server.wire import replies

_AT_ONCE: Final = 32 * 1024


class Sender:
    """Gathers messages. told: what the client was told of the settings."""

    def __init__(self, link: ClientLink, variables: Variables) -> None:
        self._link, self._told = link, dict(variables.reported())
        self._out: list[bytes] = []
        self._size = 0

    def send(self, data: bytes) -> None:
        """One message more, or several."""
        self._out.append(data)
        self._size += len(data)

    async def flush(self) -> None:
        """Let go what was gathered. Raises Gone."""
        self._link.send(self.rest())
        await self._link.drain()

    async def flush_some(self) -> None:
        """The same if it has become much; then others have their turn. Raises Gone."""
        if self._size >= _AT_ONCE:
            await self.flush()
            await asyncio.sleep(0)

    def rest(self) -> bytes:
        """What was gathered, forgotten here."""
        found, self._out, self._size = b"".join(self._out), [], 0
        return found

    def error(self, found: Fields) -> None:
        """An ErrorResponse."""
        self.send(replies.error_response(found))

    def columns(self, columns: Columns | None, formats: Sequence[int]) -> None:
        """RowDescription; NoData for None."""
        self.send(replies.no_data() if columns is None else replies.row_description(fields(columns, formats)))

    def warn(self, text: str, variables: Variables) -> None:
        """A warning about a command, if there is one and such are wanted."""
        if text and variables.tells_warnings:
            self.send(replies.notice_response(ProtocolFault("01000", text).fields(severity="WARNING")))

    def told_with(self, answer: Answer, variables: Variables, wanted: bool, offset: int) -> None:
        """Warnings and notices of an answer, as far as client_min_messages wants them. wanted: dpsql.notices."""
        if variables.tells_warnings:
            for diagnostic in answer.warnings:
                self.send(replies.notice_response(errors.warning(diagnostic, offset)))
        for note in _beside(answer.notices, variables.tells_all) if wanted else ():
            is_danger = note.rank is Rank.DANGER
            if variables.tells_warnings if is_danger else variables.tells_notices:
                self.send(replies.notice_response(errors.notice(note, is_danger)))

    def changes(self, variables: Variables) -> None:
        """ParameterStatus for each reported setting that has changed."""
        for name, value in variables.reported():
            if self._told.get(name) != value:
                self._told[name] = value
                self.send(replies.parameter_status(name, value))


def _beside(notices: Sequence[Note], tells_all: bool) -> Sequence[Note]:
    """Price and ±, and at most three notes besides; then how to see the others."""
    shown, others = foremost(note for note in notices if note.topic not in BESIDE_NOTES)
    if tells_all or not others:
        return notices
    more = Note(f"{others} more note{'s' * (others != 1)}: SET client_min_messages = log")
    return (*(note for note in notices if note.topic in BESIDE_NOTES or note in shown), more)
