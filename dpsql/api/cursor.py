"""PEP 249's cursor. It also has what the Release of its last query has."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, Unpack

from dpsql.answers.results import counter_rows, summary_rows
from dpsql.answers.results.answer import Release
from dpsql.api.release_view import ReleaseView
from dpsql.api.session_statements import Explain, Set, Show, ShowCounters, ShowSummaries, in_full, setting_text, special
from dpsql.core.ir.types import VARCHAR, SqlType
from dpsql.diagnostics.errors import Error, reject
from dpsql.frontend.text.counter_statements import (
    CreateCounter,
    DropCounter,
    ReceiveCounter,
    TickCounter,
    counter_statement,
)
from dpsql.frontend.text.summary_statements import CreateSummary, DropSummary, summary_statement
from dpsql.service.given_arguments import Parameters
from dpsql.service.privacy_settings import Amount, Asked, setting

if TYPE_CHECKING:
    from dpsql.api.connection import Connection

Column = tuple[str, str, None, None, int | None, int | None, bool | None]
Row = tuple[Any, ...]


class Cursor(ReleaseView):
    """Runs queries and hands their rows out; iterable, and a context manager. Not to be shared between threads.

    It also has all that the Release of its last query has, for all rows, whatever has been fetched: `columns`, `rows`,
    `intervals`, `spent`, `notes`, `df`, `pl`, `arrow`, `plot` …; and `len` is their number. What it holds can be read
    until it is closed, also when the connection is not open any more.

    arraysize: how many rows `fetchmany` gives if it is not told.
    connection: where it comes from.

    >>> con = dpsql.connect("clinic.yaml", epsilon=0.5)
    >>> cur = con.cursor()
    >>> cur.execute("SELECT region, COUNT(*) AS n FROM patients WHERE age < ? GROUP BY region ORDER BY region", [65])
    <dpsql.Cursor: 4 rows>
    >>> [region for region, n in cur.fetchmany(3)]
    ['east', 'north', 'south']
    >>> cur.fetchone()[0], cur.fetchone()
    ('west', None)
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self._sets: deque[_Set] = deque()  # the current one first
        self._closed = False

    def execute(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        fresh: bool = False,
        **asked: Unpack[Asked],
    ) -> Self:
        """Run a query now and pay for it; the keywords are those of `Query.run`. Returns the cursor itself.

        sql: also `SET epsilon = 0.2` and `RESET epsilon` (or delta, rho, allow_dearer, coverage, limits), which
            hold for later queries of the connection and give what holds now, as `SHOW epsilon` does (None: what the
            policy says), and `EXPLAIN SELECT …`, whose lines are rows; and `SHOW TABLES`, `DESCRIBE t` and
            `SUMMARIZE t`, which the policy answers. They spend nothing. `CREATE DP SUMMARY …` makes a summary and pays
            for it; `DROP DP SUMMARY …` and `SHOW dpsql.summaries` are free; likewise of counters.
        parameters: a sequence for `?`, a mapping for `$name`.
        Raises Rejected, BudgetExceeded, EngineError.
        """
        self._require_open()
        self._sets.clear()
        self._sets.append(self._run(sql, parameters, asked, fresh))
        return self

    def executemany(
        self, sql: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]], *, epsilon: Amount | None = None
    ) -> Self:
        """Run a query once for each set of parameters, and pay for each. `nextset` goes to the next one's rows.

        Where a run is refused or fails, those before it stay charged, their rows can be fetched, and the error says so.
        """
        self._require_open()
        given: object = parameters
        if not isinstance(given, Iterable):
            raise reject(
                "DP903",
                "executemany takes a list of parameters for each run",
                help=["cur.executemany(sql, [[1], [2]])"],
            )
        self._sets.clear()
        for one in parameters:
            try:
                self._sets.append(self._run(sql, one, {"epsilon": epsilon}, False))
            except Error as error:
                if done := len(self._sets):
                    note = f"this is run {done + 1}: those before it stay charged, and their rows can be fetched"
                    error.diagnostics = tuple(replace(d, notes=(note, *d.notes)) for d in error.diagnostics)
                raise
        return self

    def _run(self, sql: str, parameters: Parameters, asked: Asked, fresh: bool) -> _Set:
        given: object = sql
        statement = special(given) if isinstance(given, str) else None
        match statement:
            case Set(name="confidence"):
                raise reject(
                    "DP903", "a confidence is not set for a session: each query and each answer is told its own",
                    help=["con.execute(sql, max_error={'n': 50}, confidence=0.9)", "answer.intervals(0.9)"],
                )  # fmt: skip
            case Set(name=name, amount=amount):
                return _setting(name, self.connection.set(name, amount))
            case Show(name=name):
                return _setting(name, setting(self.connection.settings, name))
            case Explain(sql=text) if summary_statement(text) is not None:
                lines = self.connection.summary_of(text).explain(asked.get("epsilon"), rho=asked.get("rho"))
                return _Set(("plan",), (VARCHAR,), [(line,) for line in lines.splitlines()])
            case Explain(sql=text) if (counter := counter_statement(text)) is not None:
                lines = self.connection.explain_counter(counter, text, asked.get("epsilon"), asked.get("rho"))
                return _Set(("plan",), (VARCHAR,), [(line,) for line in lines.splitlines()])
            case Explain(sql=text):
                query = self.connection.sql(text, parameters)
                try:
                    lines = query.explain(**asked)
                except Error as error:
                    error.diagnostics = tuple(in_full(d, sql) for d in error.diagnostics)
                    raise
                return _Set(("plan",), (VARCHAR,), [(line,) for line in lines.splitlines()])
            case ShowCounters():
                return _rows(counter_rows.LISTED, counter_rows.listed(self.connection.counters))
            case CreateCounter() | DropCounter() | ReceiveCounter() | TickCounter():
                done = self.connection.do_counter(statement, sql, asked.get("epsilon"), asked.get("rho"))
                return _rows(counter_rows.DONE, [done.row])
            case ShowSummaries():
                return _rows(summary_rows.LISTED, summary_rows.listed(self.connection.summaries))
            case CreateSummary():
                made = self.connection.summary_of(sql).run(asked.get("epsilon"), rho=asked.get("rho"))
                return _rows(summary_rows.MADE, summary_rows.made(made.name, made.cost))
            case DropSummary(name=name):
                self.connection.drop_summary(name)
                return _rows(summary_rows.DROPPED, [(name,)])
            case None:
                query = self.connection.sql(sql, parameters)
                release = query.run(fresh=fresh, **asked)
                return _Set(release.columns, release.types, release)

    # --- rows ------------------------------------------------------------------------------------------------------

    @property
    def description(self) -> list[Column] | None:
        """Of each column (name, type code, None, None, precision, scale, None); None if there are no rows to fetch.

        A type code is the SQL type's name and equals the type object of its kind: `dpsql.NUMBER == "BIGINT"`.
        """
        if not self._sets:
            return None
        now = self._sets[0]
        return [
            (name, t.name.strip('"'), None, None, t.precision or None, t.scale if t.precision else None, None)
            for name, t in zip(now.columns, now.types, strict=True)
        ]

    @property
    def rowcount(self) -> int:
        """How many rows the last query gave, -1 if there was none."""
        return self._sets[0].height if self._sets else -1

    @property
    def release(self) -> Release:
        """The answer to the last query, whatever has been fetched of it. Raises Rejected DP903 if there is none."""
        self._require_open()
        release = self._sets[0].release if self._sets else None
        if release is None:
            raise reject("DP903", "the cursor holds no answer", help=["execute a query first"])
        return release

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, None behind the last one."""
        return next(self._rows(), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows, `size` or `arraysize` of them or as many as there are left."""
        rows = self._rows()
        try:
            wanted = range(self.arraysize if size is None else size)
        except TypeError:
            wanted = None
        if wanted is None:
            raise reject("DP903", "a number of rows is a whole number", help=["cur.fetchmany(10)"])
        return [row for _, row in zip(wanted, rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return list(self._rows())

    def nextset(self) -> bool | None:
        """Go to the rows of the next query of an `executemany`; None if there is none."""
        self._require_open()
        if len(self._sets) < 2:
            return None
        self._sets.popleft()
        return True

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        return next(self._rows())

    def __bool__(self) -> bool:
        return True

    def setinputsizes(self, sizes: object) -> None:
        """PEP 249 asks for it; there is nothing to set."""

    def setoutputsize(self, size: object, column: object = None) -> None:
        """PEP 249 asks for it; there is nothing to set."""

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        self._require_open()
        if not self._sets:
            raise reject("DP903", "there are no rows to fetch", help=["execute a query first"])
        return self._sets[0].rows

    # --- life ------------------------------------------------------------------------------------------------------

    def _require_open(self) -> None:
        if self._closed:
            raise reject("DP903", "the cursor is closed", help=["make another one with connection.cursor()"])

    def close(self) -> None:
        """Forget the rows. Everything but `close` is refused afterwards."""
        self._closed = True
        self._sets.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "no rows" if self.rowcount < 0 else f"{self.rowcount} rows"
        return f"<dpsql.Cursor: {state}>"


def _setting(name: str, now: Fraction | bool | str | None) -> _Set:
    return _Set(("setting", "value"), (VARCHAR, VARCHAR), [(name, None if now is None else setting_text(now))])


def _rows(columns: summary_rows.Columns, rows: list[Row]) -> _Set:
    return _Set(tuple(name for name, _ in columns), tuple(type_ for _, type_ in columns), rows)


class _Set:
    """One result: the answer it comes from, or rows of its own; its columns; how many rows there were at first."""

    __slots__ = ("_rows", "columns", "height", "release", "types")

    def __init__(self, columns: tuple[str, ...], types: tuple[SqlType, ...], source: Release | list[Row]) -> None:
        self.columns, self.types, self.height = columns, types, len(source)
        self.release = source if isinstance(source, Release) else None
        self._rows: Iterator[Row] | Iterable[Row] = source

    @property
    def rows(self) -> Iterator[Row]:
        """The rows not fetched yet. An answer makes its rows only when the first one is wanted."""
        if not isinstance(self._rows, Iterator):
            self._rows = iter(self._rows)
        return self._rows
