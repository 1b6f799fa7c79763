"""What a release sends to the engine: statements whose columns are group keys, then exact integers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dpsql.core.ir.components import KeySource
from dpsql.core.numbers.cells import Cells
from dpsql.core.printing.forms.kept_first import SALT


@dataclass(frozen=True, slots=True)
class Statement:
    """One SELECT: first the group columns in order, then one integer per listed component.

    cells: it has a row for each group and cell instead, with the first integer of the cell, or the listed value, and
    what its rows weigh: the histogram of all these components. slices: of each component its slice, whose number stands
    before the cell in the rows of its histogram. again: the same for an engine that failed on this one.
    functions: name → the statement that makes it, of all that the text calls and that are made for it.
    """

    sql: str
    components: tuple[int, ...]
    shape: str
    cells: Cells | KeySource | None = None
    slices: tuple[int, ...] = ()
    again: Statement | None = field(default=None, compare=False)
    functions: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def salted(
        self,
        salt: int,
        released: Mapping[str, str] = MappingProxyType({}),
        numbers: Mapping[str, int] = MappingProxyType({}),
    ) -> str:
        """The text to run, with the ledger's secret number and the noisy rows of earlier releases in place.

        released: label of a release → its rows as a query in brackets. numbers: name → the noisy number that the
        statement waits for under it.
        """
        text = self.sql.replace(SALT, str(salt))
        for name, value in numbers.items():
            text = text.replace(number(name), str(value))
        for label, rows in released.items():
            text = text.replace(placeholder(label), rows)
        return text

    @property
    def ordered(self) -> bool:
        """True if the engine's order decides which groups, values or rows are kept."""
        return SALT in self.sql

    def reads(self, label: str) -> bool:
        """True if the noisy rows of this release are part of the statement."""
        return placeholder(label) in self.sql

    @property
    def shown(self) -> str:
        """The text to show: the secret number and earlier releases stay names."""
        return re.sub("\0(?:release|number) (\\w+)\0", r"\1", self.sql.replace(SALT, ":salt"))


def placeholder(label: str) -> str:
    """What stands for the noisy rows of a release in a statement that reads them; a NUL cannot occur in a literal."""
    return f"\0release {label}\0"


def number(name: str) -> str:
    """What stands for a noisy number of the same release, in a statement that is asked after it was drawn."""
    return f"\0number {name}\0"
