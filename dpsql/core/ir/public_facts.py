"""Facts about public tables that planning may need: how often keys repeat, and which keys there are.

They are public, so the session measures them before compiling and the plan may depend on them; `check` knows only the
declared ones. Compiling records what it missed, so that the session measures exactly that and compiles again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.periods import Closed
from dpsql.core.value_classes import value


@value(frozen=True, slots=True)
class FrequencyOf:
    """Most rows of a public table that agree on `columns` under `=` (NULL never agrees)."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeysOf:
    """The distinct tuples of `columns` in a public table, NULLs included, sorted; at most `limit` of them."""

    table: str
    columns: tuple[str, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class RowsOf:
    """The number of rows of a public table."""

    table: str


@dataclass(frozen=True, slots=True)
class ClosedPeriods:
    """What the ledger says of the periods of a growing table."""

    table: str


Request = FrequencyOf | KeysOf | RowsOf | ClosedPeriods


class Keys(tuple[tuple[LiteralValue, ...], ...]):
    """The keys of a list as they were measured: one object, that all plans of a session are made over.

    worked_out: kept with this very list, which never changes: what follows from it alone.
    """

    @cached_property
    def worked_out(self) -> dict[str, Any]:
        """By name."""
        return {}


@dataclass(slots=True)
class PublicFacts:
    """Measured facts, and which of them a compilation used (`used`) or lacked (`missing`).

    numbers: frequencies and row counts. keys: key lists; None where there are more keys than the limit. periods: table
    → what is closed of it. read: likewise, of the tables of which a compilation used that.
    """

    numbers: Mapping[FrequencyOf | RowsOf, int] = field(default_factory=dict)
    keys: Mapping[KeysOf, Keys | None] = field(default_factory=dict)
    missing: set[Request] = field(default_factory=set)
    used: dict[FrequencyOf | RowsOf, int] = field(default_factory=dict)
    periods: Mapping[str, Closed] = field(default_factory=dict)
    read: dict[str, Closed] = field(default_factory=dict)

    def closed(self, table: str) -> Closed | None:
        """What is closed of a growing table, or None after noting that it is missing."""
        found = self.periods.get(table)
        if found is None:
            self.missing.add(ClosedPeriods(table))
        else:
            self.read[table] = found
        return found

    def number(self, request: FrequencyOf | RowsOf) -> int | None:
        """The measured number, or None after noting that it is missing."""
        found = self.numbers.get(request)
        if found is None:
            self.missing.add(request)
        else:
            self.used[request] = found
        return found

    def key_list(self, request: KeysOf) -> Keys | None:
        """The measured keys; None after noting that they are missing, or if there are too many."""
        if request not in self.keys:
            self.missing.add(request)
            return None
        return self.keys[request]

    def knows(self, request: KeysOf) -> bool:
        """True if the key list has been measured (it may have been too long)."""
        return request in self.keys
