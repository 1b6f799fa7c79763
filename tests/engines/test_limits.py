"""Limits of threads and memory: what DuckDB is told, and what is refused before anything is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.errors import Rejected
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.resources import EngineResources


@pytest.mark.parametrize("threads", [0, -1, True, 1.0, "4", 4097, 10**9])
def test_what_is_no_number_of_threads(threads: Any) -> None:
    with pytest.raises(Rejected) as caught:
        EngineResources(threads=threads)
    (found,) = caught.value.diagnostics
    assert found.code == "DP903" and repr(threads) in found.message and found.help


@pytest.mark.parametrize(
    "memory",
    ["", "lots", "8", "-1", "80%", "8GBs", "GB", "1e3GB", "٨GB", "0GB", "15.999MB", "999999999TB", "8GB;", 8, b"8GB"],
)  # fmt: skip
def test_what_is_no_amount_of_memory(memory: Any) -> None:
    with pytest.raises(Rejected) as caught:
        EngineResources(memory=memory)
    (found,) = caught.value.diagnostics
    assert found.code == "DP903" and repr(memory) in found.message and found.help


@pytest.mark.parametrize("memory", ["16MB", "16000KB", "15.5MiB", "0.5 gb", "8GiB", " 8 TiB "])
def test_duckdb_takes_what_is_accepted(memory: str, folder: Path) -> None:
    engine = DuckDBEngine.open(Path("clinic.duckdb"), {}, folder, threads=3, memory_limit=memory)
    ((threads,), (shown,)) = engine.fetch("SELECT current_setting('threads'), current_setting('memory_limit')").columns
    with duckdb.connect(config={"memory_limit": memory.strip()}) as con:
        assert con.execute("SELECT current_setting('memory_limit')").fetchall() == [(shown,)]
    assert threads == 3
    engine.close()


def test_none_leaves_duckdb_its_own_choice() -> None:
    assert EngineResources().config == {}


def test_a_limit_for_a_connection_of_the_users_is_refused_not_ignored(folder: Path) -> None:
    policy = folder / "any.yaml"
    policy.write_text("version: 1\nname: any\nunits: {u: {}}\ntables: {}\n")
    for limits in ({"threads": 1}, {"memory_limit": "1GB"}):
        with duckdb.connect() as con, pytest.raises(dpsql.Error) as caught:
            dpsql.connect(con, policy=policy, **limits, optimizers="ours")  # type: ignore[arg-type]
        assert caught.value.diagnostics[0].code in ("DP903",), caught.value
