"""What a release sends to the engine: statements whose columns are group keys, then exact integers."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.sql.emit import SALT


@dataclass(frozen=True, slots=True)
class Statement:
    """One SELECT: first the group columns in order, then one integer per listed component."""

    sql: str
    components: tuple[int, ...]
    shape: str

    def salted(self, salt: int) -> str:
        """The text to run, with the ledger's secret number in place."""
        return self.sql.replace(SALT, str(salt))

    @property
    def shown(self) -> str:
        """The text to show: the secret number stays a name."""
        return self.sql.replace(SALT, ":salt")
