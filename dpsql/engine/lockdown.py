"""What DuckDB is started with, what is switched off before a query, and what is asked of a connection of the user's."""

from __future__ import annotations

import re
from typing import Final

from dpsql.engine.base import cannot_open

CLOSING: Final = (
    "SET enable_external_access = false",
    "SET python_enable_replacements = false",
    "SET autoload_known_extensions = false",
    "SET autoinstall_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET lock_configuration = true",
)
# On a connection of the user's: for our cursor alone. A default collation would merge keys that differ.
OWN: Final = (
    "SET SESSION default_collation = ''",
    "SET SESSION ieee_floating_point_ops = true",
    "SET SESSION integer_division = false",
    "SET SESSION TimeZone = 'UTC'",
)
UNLOCKED: Final = (
    "the DuckDB connection was passed in and is not locked: dpsql cannot vouch for what other code of this process "
    "does with the data"
)
SHADOWED: Final = (
    "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal AND function_name IN "
    "(SELECT function_name FROM duckdb_functions() WHERE internal) ORDER BY 1"
)
_MEMORY = re.compile(r"\d{1,9}(\.\d{1,3})?\s*([KMGT]i?B)", re.IGNORECASE)


def start_config(
    threads: int | None, memory_limit: str | None, spill: str
) -> dict[str, str | bool | int | float | list[str]]:
    """What a new DuckDB is started with. spill: where it may put what does not fit into memory; empty: nowhere.

    Raises: CannotOpen (DP006).
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": spill,
        "allow_persistent_secrets": "false",
        "allow_unsigned_extensions": "false",
    }
    if threads is not None:
        if type(threads) is not int or not 1 <= threads <= 4096:
            raise cannot_open(f"{threads!r} is no number of threads", "give a whole number from 1 to 4096")
        config["threads"] = str(threads)
    if memory_limit is not None:
        if not _MEMORY.fullmatch(memory_limit.strip()):
            raise cannot_open(f"{memory_limit!r} is no amount of memory", "write it like  8GB  or  512MiB")
        config["memory_limit"] = memory_limit.strip()
    return config
