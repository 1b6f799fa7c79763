"""What dpsql asks of a database engine, and the one way in which an engine may fail.

An engine runs SQL that dpsql printed from a plan, never a user's text. What it returns is private until noise is added:
a RawTable shows nothing of itself, and whatever goes wrong while a query runs becomes the same EngineError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.policy.catalogue import Catalogue

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class RawTable:
    """Exact results of a query, column by column. Private: it never shows its values.

    names: the columns in the order of the SELECT list; they need not differ.
    columns: one list per name, all equally long: int (exact at any size), float, Decimal, bool, str, date, datetime
        or None for NULL.
    """

    names: tuple[str, ...]
    columns: tuple[list[Any], ...]

    def __repr__(self) -> str:
        return "<private>"

    @property
    def height(self) -> int:
        """The number of rows; private like everything in here."""
        return len(self.columns[0]) if self.columns else 0

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The same values, row by row."""
        return zip(*self.columns, strict=True)


class Engine(Protocol):
    """A database that holds the tables of one policy."""

    @property
    def dialect(self) -> str:
        """The name of the SQL dialect to print, e.g. `duckdb`."""
        ...

    @property
    def version(self) -> str:
        """The engine's version, e.g. `2.0.0`."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about how the data was opened; shown with every release."""
        ...

    def fetch(self, sql: str) -> RawTable:
        """Run one SELECT and return all its rows.

        Raises: EngineError, always the same; KeyboardInterrupt if the user interrupted the query.
        """
        ...

    def describe(self) -> Catalogue:
        """Tables, columns, types, nullability and declared keys: the schema only, never a value or a size.

        Raises: CannotOpen (DP006).
        """
        ...

    def table_sql(self, name: str) -> str:
        """The relation that a policy's table name stands for, quoted and fully qualified.

        Raises: CannotOpen (DP004) if there is no such table, or more than one; (DP006) if it cannot be read.
        """
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Everything fetched inside sees one snapshot of the database. May be nested; the outermost one counts.

        Raises: EngineError if it cannot be begun.
        """
        ...

    def interrupt(self) -> None:
        """Stop the running query, from any thread: its fetch raises EngineError."""
        ...

    def close(self) -> None:
        """Let go of the data. Closing twice is allowed; fetching afterwards raises EngineError."""
        ...


def quoted(identifier: str) -> str:
    """An identifier as SQL text, in double quotes."""
    return '"' + identifier.replace('"', '""') + '"'


def engine_failed() -> EngineError:
    """The one error for everything that goes wrong while a query runs: it does not depend on what happened."""
    return EngineError(
        [
            Diagnostic(
                "DP901",
                "the engine failed; the reservation is kept",
                help=("ask the custodian whether memory or disk ran out or a data file is damaged",),
                notes=("what the engine said is not shown: it could tell values of single rows",),
            )
        ]
    )


def cannot_open(message: str, *help: str, code: str = "DP006") -> CannotOpen:
    """Build (not raise) the refusal to open data, with its repairs."""
    return CannotOpen([Diagnostic(code, message, help=help)])


def guarded(action: Callable[[], T], interrupted: Callable[[Exception], bool] = lambda error: False) -> T:
    """The result of `action`; whatever it raises becomes the constant EngineError.

    The new exception is raised outside the `except` block and names no cause, so neither the engine's text nor the
    frames that held rows can be reached from it. A KeyboardInterrupt stays one (as do SystemExit and its kind), with
    its frames and context cut off; `interrupted` says which errors are an interrupt in disguise.

    Raises: EngineError, KeyboardInterrupt.
    """
    leaving: BaseException
    try:
        return action()
    except Exception as error:
        leaving = KeyboardInterrupt() if interrupted(error) else engine_failed()
    except BaseException as error:
        leaving = error.with_traceback(None)
    leaving.__context__ = None
    raise leaving from None
