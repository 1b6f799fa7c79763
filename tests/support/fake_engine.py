"""An engine without a database, for tests: it remembers the SQL and answers what it was told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpsql.core.engine import RawTable, T, cannot_open, guarded
from dpsql.core.policy.catalogue import Catalogue
from dpsql.diagnostics.note import Note
from dpsql.spelling.duckdb_functions import DUCKDB

Answer = RawTable | BaseException


class FakeEngine:
    """Answers in order, or by a function of the SQL. An answer that is an exception is raised as a real engine would.

    queries: every SQL text that was fetched, in order.
    snapshots: for every query, whether it was fetched inside a transaction.
    """

    dialect = DUCKDB
    version = "0.0"
    notes: tuple[Note, ...] = ()

    def __init__(
        self,
        answers: Sequence[Answer] | Callable[[str], Answer] = (),
        tables: Sequence[str] = (),
        catalogue: Catalogue | None = None,
    ) -> None:
        self._answers = answers if callable(answers) else _in_order(answers)
        self._tables = {name.lower(): name for name in tables}
        self._catalogue = Catalogue(()) if catalogue is None else catalogue
        self.computed: dict[str, str] = {}
        self._depth = 0
        self.queries: list[str] = []
        self.snapshots: list[bool] = []
        self.interrupts = 0
        self.closed = False

    def fetch(self, sql: str) -> RawTable:
        """Remember the SQL and give the next answer."""
        self.queries.append(sql)
        self.snapshots.append(self._depth > 0)
        return guarded(lambda: self._answer(sql))

    def describe(self) -> Catalogue:
        """The catalogue it was given."""
        return self._catalogue

    def table_sql(self, name: str) -> str:
        """`"fake"."main"."name"` for the tables it was given, whatever the case."""
        if name.lower() not in self._tables:
            raise cannot_open(f"the data has no table `{name}`", code="DP004")
        return f'"fake"."main".{self.dialect.identifier(self._tables[name.lower()])}'

    def in_snapshot(self, action: Callable[[], T]) -> T:
        """Marks what is fetched inside."""
        self._depth += 1
        try:
            return action()
        finally:
            self._depth -= 1

    def sibling(self) -> FakeEngine:
        """Itself: nothing ever runs here."""
        return self

    def interrupt(self) -> None:
        """Count the call."""
        self.interrupts += 1

    def close(self) -> None:
        """Remember the call; later fetches fail."""
        self.closed = True

    def _answer(self, sql: str) -> RawTable:
        if self.closed:
            raise ValueError("closed")
        answer = self._answers(sql)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def _in_order(answers: Sequence[Answer]) -> Callable[[str], Answer]:
    left = list(answers)
    return lambda sql: left.pop(0)
