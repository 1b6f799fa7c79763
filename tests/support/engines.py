"""The engines that the contract tests are about, each opened on a table `numbers(i BIGINT, t VARCHAR)`.

A new engine adds a function to `ENGINES`, and how it writes a list to `LISTS`, and inherits all of the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import duckdb

from dpsql.core.engine import Engine
from dpsql.engines.duckdb.engine import DuckDBEngine
from tests.support.built_once import build

CANARY = 271828182
_ROWS = f"SELECT i::BIGINT AS i, 'x{CANARY}' AS t FROM range(3) r(i) UNION ALL SELECT NULL, NULL"
_NUMBERS = f"CREATE TABLE numbers AS {_ROWS}"


def locked(folder: Path) -> Engine:
    build(folder / "d.duckdb", _NUMBERS)
    return DuckDBEngine.open(Path("d.duckdb"), {}, folder)


def parquet(folder: Path) -> Engine:
    with duckdb.connect() as con:
        con.execute(_NUMBERS)
        con.execute(f"COPY numbers TO '{folder}/n.parquet'")
    return DuckDBEngine.open(None, {"numbers": "read_parquet('*.parquet')"}, folder)


def wrapped(folder: Path) -> Engine:
    con = duckdb.connect(str(folder / "d.duckdb"))
    con.execute(_NUMBERS)
    return DuckDBEngine.wrap(con, optimizers="ours")


ENGINES: tuple[Callable[[Path], Engine], ...] = (locked, parquet, wrapped)
LISTS: Mapping[str, Callable[[Sequence[str]], str]] = {
    "duckdb": lambda items: f"[{', '.join(items)}]",
    "postgresql": lambda items: f"ARRAY[{', '.join(items)}]",
    "spark": lambda items: f"array({', '.join(items)})",
}
"""Name of a dialect → how a list of printed elements is written."""
