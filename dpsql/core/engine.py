"""What dpsql asks of a database engine, and the one way in which an engine may fail.

An engine runs SQL that dpsql printed from a plan, never a user's text. What it returns is private until noise is added:
a RawTable shows nothing of itself, and whatever goes wrong while a query runs becomes the same EngineError.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from dpsql.core.policy.catalogue import Catalogue
from dpsql.core.printing.dialect import Dialect
from dpsql.core.stopping import Stop
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.diagnostics.note import Note

T = TypeVar("T")
_PATIENCE = 0.1  # seconds between two looks at a running query; a finished one is seen at once


@dataclass(frozen=True, slots=True, repr=False)
class RawTable:
    """Exact results of a query, column by column. Private: it never shows its values.

    names: the columns in the order of the SELECT list; they need not differ.
    columns: one sequence per name, all equally long: int (exact at any size), float, Decimal, bool, str, date, datetime
        or None for NULL. An engine may hand over `Integers` where no value is NULL.
    """

    names: tuple[str, ...]
    columns: tuple[Sequence[Any], ...]

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
    """A database that holds the tables of one policy.

    computed: name of a table, in lower case → what is selected of it (core/printing/computed.py). Its siblings have it,
    too.
    """

    computed: dict[str, str]

    @property
    def dialect(self) -> Dialect:
        """The SQL to print for it."""
        ...

    @property
    def version(self) -> str:
        """The engine's version, e.g. `2.0.0`."""
        ...

    @property
    def notes(self) -> tuple[Note, ...]:
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
        """The relation that a policy's table name stands for, quoted and fully qualified, before an alias.

        Raises: CannotOpen (DP004) if there is no such table, or more than one; (DP006) if it cannot be read;
            EngineError if the engine is closed.
        """
        ...

    def in_snapshot(self, action: Callable[[], T]) -> T:
        """Do something in which everything fetched sees one snapshot of the database; return what it returns.

        May be nested; the outermost one counts. A function, not a context manager: a Ctrl-C between a generator's
        `yield` and the body of its `with` would leave the snapshot open for as long as somebody keeps the traceback.

        Raises: EngineError if it cannot be begun.
        """
        ...

    def sibling(self) -> Engine:
        """The same data over a connection of its own: what is asked there waits for no query that runs here.

        Closed with this one, not by itself.
        """
        ...

    def interrupt(self) -> None:
        """Stop the running query, from any thread: its fetch raises EngineError."""
        ...

    def close(self) -> None:
        """Let go of the data. Closing twice is allowed; fetching afterwards raises EngineError."""
        ...


@runtime_checkable
class TellsItsData(Protocol):
    """An engine that can tell for nothing whether its data are still the same."""

    @property
    def data_identity(self) -> str:
        """Letters and digits, the same as long as the data are: no row is read for it. Empty where nobody can tell."""
        ...


@runtime_checkable
class AsksAgain(Engine, Protocol):
    """An engine that may ask a statement that failed a second time, in the same snapshot."""

    def at_hand(self, functions: Sequence[tuple[str, str]]) -> None:
        """Have these functions in snapshots that begin from now on, if they can be made; name and what makes it."""
        ...

    def fetch_again(self, sql: str, again: str, functions: Sequence[str]) -> RawTable:
        """As `fetch`; where a row's value makes the SELECT fail, all rows of `again`, in the same snapshot.

        functions: names of those that `again` calls. It is not asked where one of them is not at hand.
        Raises: as `fetch`.
        """
        ...


def engine_failed() -> EngineError:
    """The one error for everything that goes wrong while a query runs: it does not depend on what happened."""
    return EngineError(
        [
            Diagnostic(
                "DP901",
                "the engine failed; what was charged stays charged",
                help=("ask the custodian whether memory or disk ran out or a data file is damaged",),
                notes=("what the engine said is not shown: it could tell values of single rows",),
            )
        ]
    )


def cannot_open(message: str, *help: str, code: str = "DP006") -> CannotOpen:
    """Build (not raise) the refusal to open data, with its repairs."""
    return CannotOpen([Diagnostic(code, message, help=help)])


def guarded(
    action: Callable[[], T],
    interrupt: Callable[[], None] | None = None,
    look: Callable[[], None] | None = None,
    stop: Stop | None = None,
) -> T:
    """The result of `action`; whatever it raises becomes the constant EngineError.

    The new exception is raised outside the `except` block and names no cause, so neither the engine's text nor the
    frames that held rows can be reached from it. A KeyboardInterrupt stays one (as do SystemExit and what other signal
    handlers raise), with its frames and context cut off.

    interrupt: how to stop `action` from another thread when the user presses Ctrl-C; None if it takes no time.
    look: called about ten times a second while the main thread waits for an `action` that can be interrupted.
    stop: while it is set, `action` is interrupted again and again, in any thread: an engine told to stop a query
        just before it begins forgets that.
    Raises: EngineError, KeyboardInterrupt.
    """
    leaving: BaseException
    main = threading.get_ident() == threading.main_thread().ident
    try:
        if interrupt is None or not (main or stop is not None):  # other threads get no signals
            outcome = _caught(action)
        else:
            outcome = _attended(action, interrupt, look if main else None, stop)
        if not isinstance(outcome, _Failed):
            return outcome
        leaving = outcome.leaving or engine_failed()
    except BaseException as error:
        leaving = error.with_traceback(None)
    leaving.__context__ = None
    raise leaving from None


@dataclass(frozen=True, slots=True)
class _Failed:
    """In place of a result. What was raised is forgotten already, unless it wants to leave the program."""

    leaving: BaseException | None = None


def _caught(action: Callable[[], T]) -> T | _Failed:
    try:
        return action()
    except Exception:
        return _Failed()
    except BaseException as error:
        return _Failed(error.with_traceback(None))


def _attended(
    action: Callable[[], T], interrupt: Callable[[], None], look: Callable[[], None] | None, stop: Stop | None
) -> T | _Failed:
    """Run `action` in a thread of its own while this one waits for it, listening to signals and to `stop`.

    An engine's client may look for signals only now and then, or not until the query has ended.
    """
    outcome: list[T | _Failed] = []
    # Bare locks and a bare thread: what is written in Python around them (Event, Thread) can lose a Ctrl-C, in the
    # callback of a weak reference to a thread, or keep a lock that it took when the Ctrl-C came, for ever.
    begun, running = threading.Lock(), threading.Lock()
    running.acquire()

    def run() -> None:
        if begun.acquire(blocking=False):
            outcome.append(_caught(action))
            running.release()

    signalled: BaseException | None = None
    while True:
        try:
            while not outcome:  # within the `try`: Python hears signals wherever a loop begins again
                if not begun.locked():  # not yet, or a signal has left open whether it was started
                    _thread.start_new_thread(run, ())
                if signalled is not None or (stop is not None and stop.is_set()):
                    interrupt()
                if not running.acquire(timeout=_PATIENCE) and look is not None:
                    look()
            break
        except Exception:
            if not begun.locked():  # no thread to be had
                return _Failed()
        except BaseException as error:
            signalled = error
    if signalled is not None:
        raise signalled
    return outcome[0]
