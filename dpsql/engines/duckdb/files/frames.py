"""DataFrames and Arrow tables as tables of the locked database.

Their rows are copied when the data is opened: what the caller does to a frame later changes no answer, and what a frame
holds that no column can (a text among numbers) is found now, by whoever opens it, and not by a query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dpsql.core.engine import cannot_open
from dpsql.core.ir.types import Kind, SqlType, parse_type
from dpsql.core.printing.dialects.duckdb import quoted
from dpsql.diagnostics.words import with_article
from dpsql.engines.duckdb.locked.connections import start
from dpsql.engines.duckdb.locked.lockdown import NO_BAR
from dpsql.engines.duckdb.read_as import read_as
from dpsql.engines.open import GivenFrame

if TYPE_CHECKING:
    from dpsql.engines.duckdb.locked.connections import Connection

CTRL_C: Final = "Query interrupted"
"""The text of the RuntimeError that DuckDB makes of a Ctrl-C in the main thread."""
_GIVEN = "given_frame"
_STORED = {"TIMESTAMP_S": "TIMESTAMP", "TIMESTAMP_MS": "TIMESTAMP", "TIMESTAMP_NS": "TIMESTAMP"}
"""Types of frames that policies do not have, and what is stored in their place."""


def copy_frame(connection: Connection, table: str, frame: GivenFrame) -> None:
    """Make `memory.main.table` of a frame's rows.

    Categories become texts, timestamps of any unit those of microseconds, integers and decimals what the policy
    declares if they all fit. Any other difference is left for the comparison with the policy.
    Raises CannotOpen (DP006).
    """
    interrupted = False
    try:
        connection.register(_GIVEN, frame.value)
        try:
            found = connection.execute(f"SELECT * FROM {_GIVEN} LIMIT 0").description or []
            items = ", ".join(_item(str(name), str(type_), frame.types.get(str(name))) for name, type_, *_ in found)
            connection.execute(f"CREATE TABLE memory.main.{quoted(table)} AS SELECT {items} FROM {_GIVEN}")
            return
        finally:
            connection.unregister(_GIVEN)
    except Exception as error:  # its text may quote values
        interrupted = str(error) == CTRL_C
    if interrupted:
        raise KeyboardInterrupt
    kind = with_article(type(frame.value).__name__)
    raise cannot_open(
        f"the frame of table `{table}` cannot be read: DuckDB makes no table of {kind}",
        "pass a pandas or polars DataFrame or an Arrow table, each column of one type that holds all its values",
    )


def types_of(frame: object) -> dict[str, SqlType | None]:
    """The columns of a frame with what each would be stored as; None for a type that policies do not have.

    Nothing if DuckDB makes no table of it.
    """
    opened = start()  # outside: what it refuses is not about the frame
    try:
        with opened as connection:
            for setting in NO_BAR:
                connection.execute(setting)
            connection.register(_GIVEN, frame)
            found = connection.execute(f"SELECT * FROM {_GIVEN} LIMIT 0").description or []
            return {str(name): parse_type(read_as(str(type_)) or str(type_)) for name, type_, *_ in found}
    except Exception as error:  # its text may quote values
        interrupted = str(error) == CTRL_C
    if interrupted:
        raise KeyboardInterrupt
    return {}


def _item(name: str, type_: str, declared: SqlType | None) -> str:
    stored = "VARCHAR" if type_.startswith("ENUM") else _STORED.get(type_)
    found = parse_type(type_)
    if found is not None and declared is not None and _may_become(found, declared):
        stored = declared.name
    return quoted(name) if stored is None else f"CAST({quoted(name)} AS {stored}) AS {quoted(name)}"


def _may_become(found: SqlType, declared: SqlType) -> bool:
    """Whether a cast keeps every value or refuses: how wide numbers of a frame are may depend on their values.

    It would round decimals, so those may only gain places.
    """
    if found.kind is not declared.kind:
        return False
    return found.kind is Kind.INTEGER or (found.kind is Kind.DECIMAL and declared.scale >= found.scale)
