"""Statements that were prepared, and portals: a statement with its values, its rows once it ran, and a place in them.

A cursor of SQL is a portal, under its name. A statement is described once, when it is prepared; a portal keeps that
description and the settings of its time, and runs with both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dpsql.core.ir.types import VARCHAR, SqlType
from dpsql.faces.server.front.commands.commands import Command, CopyOut, Declare, QueryCommand
from dpsql.faces.server.front.commands.setting_comments import Said
from dpsql.faces.server.statements import Answer, DescribedStatement, StatementSettings, Value
from dpsql.faces.server.wire.replies import RowField
from dpsql.faces.server.wire.wire_values import WireType, decode, modifier, of_oid, wire_type

Columns = tuple[tuple[str, SqlType], ...]


@dataclass(frozen=True, slots=True)
class PreparedStatement:
    """A statement that was understood. command: None for an empty text. offset: of its text in what the client sent.

    described: of the query in it, if there is one; asked: the settings under which that was described. types: of its
    parameters, as values are read: what the client said, else what the query says. said: settings in its comments.
    """

    sql: str
    command: Command | None
    offset: int = 0
    described: DescribedStatement | None = None
    asked: StatementSettings = field(default_factory=StatementSettings)
    types: tuple[WireType, ...] = ()
    said: Said = ()

    @property
    def query(self) -> QueryCommand | None:
        """The query in it: the statement itself, or that of a cursor or a copy."""
        match self.command:
            case QueryCommand():
                return self.command
            case Declare(query=query) | CopyOut(query=query):
                return query
        return None


@dataclass(slots=True)
class Portal:
    """A statement with its values. columns: None if it gives no rows. answer: once it ran. cursor: it was
    declared by SQL. hold: it stays when the transaction ends. done: the tag of a command that ran and gave no rows.

    bound: bytes of its values as they came.
    at is PostgreSQL's place of a cursor: 0 in front of the first row, n on row n, one more behind the last.
    """

    statement: PreparedStatement
    values: tuple[Value, ...] = ()
    formats: tuple[int, ...] = ()
    asked: StatementSettings = field(default_factory=StatementSettings)
    described: DescribedStatement | None = None
    cursor: bool = False
    hold: bool = False
    answer: Answer | None = None
    done: str = ""
    bound: int = 0
    at: int = 0

    def forward(self, count: int | None) -> Sequence[tuple[Value, ...]]:
        """The next rows, all of them for None; the place moves."""
        rows = [] if self.answer is None else self.answer.rows
        start = min(self.at, len(rows))
        found = rows[start:] if count is None else rows[start : start + count]
        reached_end = count is None or start + count > len(rows)
        self.at = len(rows) + 1 if reached_end else start + len(found)
        return found

    def fetch(self, direction: str, count: int | None) -> Sequence[tuple[Value, ...]]:
        """Rows of a cursor in the order of FETCH; the place moves."""
        rows: Sequence[tuple[Value, ...]] = () if self.answer is None else self.answer.rows
        height = len(rows)
        if count is not None and count < 0 and direction in ("forward", "backward"):
            direction, count = ("backward" if direction == "forward" else "forward"), -count
        if direction in ("forward", "backward") and count == 0:
            direction, count = "relative", 0
        match direction:
            case "forward":
                return self.forward(count)
            case "backward":
                last = min(self.at, height + 1) - 1
                first = 0 if count is None else max(last - count, 0)
                whole = count is None or count > last
                self.at = 0 if whole else first + 1
                return rows[first:last][::-1] if last > 0 else ()
        assert count is not None
        target = self.at + count if direction == "relative" else count if count >= 0 else height + 1 + count
        self.at = min(max(target, 0), height + 1)
        return rows[self.at - 1 : self.at] if 1 <= self.at <= height else ()


def fields(columns: Columns, formats: Sequence[int]) -> list[RowField]:
    """What RowDescription says of these columns."""
    found = []
    for (name, type_), format in zip(columns, spread(formats, len(columns)), strict=True):
        wire = wire_type(type_)
        found.append(RowField(name, wire.oid, wire.size, modifier(type_), format))
    return found


def spread(formats: Sequence[int], count: int) -> list[int]:
    """One format for each: none means text, one means all. Raises ValueError if there are others than that."""
    if len(formats) > 1 and len(formats) != count:
        raise ValueError
    return [formats[0]] * count if len(formats) == 1 else list(formats) or [0] * count


def parameter_types(described: DescribedStatement | None, oids: Sequence[int]) -> tuple[WireType, ...] | int:
    """The type of each parameter: what the client says, else what the query says; an oid that is not known here."""
    told = () if described is None else described.parameters
    found: list[WireType] = []
    for number in range(max(len(told), len(oids))):
        oid = oids[number] if number < len(oids) else 0
        if oid in (0, 705):  # 705: unknown
            found.append(wire_type(told[number] if number < len(told) else VARCHAR))
        elif (known := of_oid(oid)) is not None:
            found.append(known)
        else:
            return oid
    return tuple(found)


def from_literal(text: str | None, kind: WireType) -> Value:
    """The value of an argument of EXECUTE. Raises Unreadable."""
    return decode(None if text is None else text.encode(), kind, 0)
