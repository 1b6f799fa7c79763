"""What DuckDB is started with, and what makes it what dpsql relies on: closed, in one time zone, without a bar."""

from __future__ import annotations

from typing import Final

from dpsql.diagnostics.note import Note, Rank
from dpsql.engines.resources import EngineResources

EACH: Final = (
    "SET SESSION TimeZone = 'UTC'",
    "SET SESSION python_enable_replacements = false",
)
"""On each connection of ours: what a second one to the same database does not take over from the first."""

CLOSING: Final = (
    "SET enable_external_access = false",
    "SET autoload_known_extensions = false",
    "SET autoinstall_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET lock_configuration = true",
)
"""The last ones on a connection of ours, once the data is attached: nothing can be set after them."""

OWN: Final = (
    "SET SESSION default_collation = ''",
    "SET SESSION ieee_floating_point_ops = true",
    "SET SESSION integer_division = false",
    "SET SESSION TimeZone = 'UTC'",
)
"""On a connection of the user's, for our cursor alone. A default collation would merge keys that differ."""

NO_BAR: Final = ("SET SESSION enable_progress_bar = false",)
"""DuckDB draws a bar of its own in notebooks, and it would tell how long a query takes on private rows."""

COUNTING: Final = ("SET SESSION enable_progress_bar_print = false", "SET SESSION enable_progress_bar = true")
"""DuckDB counts how far a query is only where it believes in a bar, which is not drawn."""

SHADOWED: Final = (
    "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal AND function_name IN "
    "(SELECT function_name FROM duckdb_functions() WHERE internal) ORDER BY 1"
)
"""The built-in functions that somebody has redefined."""

UNLOCKED: Final = Note(
    "the DuckDB connection was passed in and is not locked: dpsql cannot vouch for what other code of this process "
    "does with the data",
    Rank.SOURCE,
)


def start_config(limits: EngineResources, spill: str) -> dict[str, str | bool | int | float | list[str]]:
    """What a new DuckDB is started with. spill: where it may put what does not fit into memory; empty: nowhere."""
    return {
        **limits.config,
        "temp_directory": spill,
        "allow_persistent_secrets": "false",
        "allow_unsigned_extensions": "false",
    }
