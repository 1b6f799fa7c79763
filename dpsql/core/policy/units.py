"""Whom a table's rows belong to: the privacy unit of a table, resolved from the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Neighbours = Literal["add_remove", "replace_one"]
"""What a neighbouring database differs in: units added or removed, or units replaced."""

Accountant = Literal["pure_dp", "approx_dp", "zcdp"]
"""How losses add up: Σε · (Σε, Σδ) · (Σρ, Σδ)."""

DEFAULT_UNIT = "unit"
"""The name of the one unit of a policy that names none."""


@dataclass(frozen=True, slots=True)
class UnitNames:
    """The units that a policy has, and those that it had. former: name → what it is called now; None: it is gone."""

    now: frozenset[str]
    former: Mapping[str, str | None] = field(default_factory=dict)

    def present(self, name: str) -> str:
        """What a unit is called now."""
        return self.former.get(name) or name


def unit_named(name: str) -> str:
    """`unit patient`, or `unit` alone where the policy gives it no name."""
    return "unit" if name == DEFAULT_UNIT else f"unit {name}"


class Hop(NamedTuple):
    """One step of a unit path: `columns` of the table at hand equal the key `references` of `table`.

    Unpacks as `columns, table, references`.
    """

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowUnit:
    """Neighbouring databases differ in up to `rows` rows of the table. `name`: the unit's name."""

    name: str
    rows: int
    neighbours: Neighbours


@dataclass(frozen=True, slots=True)
class IdUnit:
    """All rows with one value of `column` belong to one unit; rows where it is NULL are nobody's and dropped."""

    name: str
    column: str
    neighbours: Neighbours


@dataclass(frozen=True, slots=True)
class PathUnit:
    """The id is found by following foreign keys: `path` leads to the table whose column `id_column` holds it.

    The path is complete: its last hop always lands on a table with an `IdUnit`, even where the policy names only the
    first hop and the next table has a path of its own. Rows whose path gives no id are dropped.
    """

    name: str
    path: tuple[Hop, ...]
    id_column: str
    neighbours: Neighbours

    @property
    def home(self) -> str:
        """The table at the end of the path."""
        return self.path[-1].table


Protection = RowUnit | IdUnit | PathUnit


@dataclass(frozen=True, slots=True)
class Unit:
    """One privacy unit of the policy and the tables that change when it changes.

    kind: "rows" or "id". table, key: where the ids live, if the policy says so (kind "id" only).
    """

    name: str
    kind: Literal["rows", "id"]
    neighbours: Neighbours
    tables: tuple[str, ...]
    table: str | None = None
    key: str | None = None
