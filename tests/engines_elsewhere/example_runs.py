"""The queries of the examples on two engines: what is asked of each, what each answers, and how the two are compared.

Both draw the same bits, so that equal integers give equal answers, and so do the queries that read what was released
before. Which rows of an id are kept is decided by an engine's own hash; DuckDB is given the other's.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dpsql
from dpsql.core.engine import RawTable
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.noise.sampler.entropy import Kernel
from dpsql.core.printing.dialect import Dialect
from dpsql.engines import open as opening
from dpsql.engines.duckdb import engine as duckdb_engine
from tests.engines_elsewhere.plan_rows import bag
from tests.support.example_data import make_tpch

ROOT = Path(__file__).resolve().parents[2]
POLICIES = {"flights": ("flights", "flights-rows"), "tpch": ("tpch", "tpch-supplier", "tpch-rows")}
QUERIES = [
    (policy, path.stem)
    for example, policies in POLICIES.items()
    for policy in policies
    for path in sorted((ROOT / "examples" / example / "queries").glob("*.sql"))
]
EPSILON = 100
"""So large that private groups are shown."""


@dataclass
class Side:
    """One engine with one policy. own: notes that are not compared. fetched: the rows of each statement, in order."""

    con: dpsql.Connection
    own: tuple[str, ...] = ()
    fetched: list[Any] = field(default_factory=list)


def text_of(policy: str) -> str:
    """A policy with a budget for all of its queries, and limits that fit the small data."""
    example = example_of(policy)
    text = (ROOT / "examples" / example / f"{policy}.yaml").read_text(encoding="utf-8")
    text = re.sub(r"total: \{epsilon: \d+, delta: [^}]+", "total: {epsilon: 1e18, delta: 0.5", text)
    return (
        re.sub(r"max_keys: (\d+)", lambda found: f"max_keys: {int(found[1]) // 100}", text)
        if example == "tpch"
        else text
    )


def build(folder: Path) -> None:
    """The examples' data and policies: a year of flights, and TPC-H at scale 0.01."""
    from examples.flights.build import build as build_flights

    for example, policies in POLICIES.items():
        (folder / example).mkdir()
        for policy in policies:
            (folder / example / f"{policy}.yaml").write_text(text_of(policy), encoding="utf-8")
    build_flights(folder / "flights" / "data")
    make_tpch(folder / "tpch", "0.01")
    for policy in POLICIES["tpch"]:  # which have just been copied anew
        (folder / "tpch" / f"{policy}.yaml").write_text(text_of(policy), encoding="utf-8")


def example_of(policy: str) -> str:
    """The folder of a policy."""
    return "flights" if policy.startswith("flights") else "tpch"


@contextmanager
def on_both(
    folder: Path,
    policy: str,
    elsewhere: str,
    portable: Dialect,
    modules: Sequence[ModuleType],
    own: tuple[str, ...] = (),
) -> Iterator[tuple[Side, Side]]:
    """One policy on DuckDB and on another engine, with one salt.

    elsewhere: the policy's text there. portable: DuckDB's dialect with the hash of the other engine. modules: of the
    other engine, whose `read` is listened to. own: notes that it gives to each answer.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb_engine.DuckDBEngine, "dialect", portable)
        patch.setitem(opening.KINDS, "duckdb", opening.EngineKind(portable, opening.KINDS["duckdb"].open))  # type: ignore[arg-type]
        here = folder / example_of(policy) / f"{policy}.yaml"
        there = here.with_name(f"{policy}-server.yaml")
        there.write_text(elsewhere, encoding="utf-8")
        ledgers = MemoryLedger(), MemoryLedger()
        ledgers[1]._identity = ledgers[0]._identity
        both = [
            Side(dpsql.connect(path, ledger=ledger), own) for path, ledger in zip((here, there), ledgers, strict=True)
        ]
        for engine, side in [(duckdb_engine, both[0]), *((module, both[1]) for module in modules)]:
            patch.setattr(engine, "read", listening(engine.read, side.fetched))
        yield both[0], both[1]
        for side in both:
            side.con.close()


def listening(read: Callable[..., RawTable], fetched: list[Any]) -> Callable[..., RawTable]:
    """Notes what is read. Where no order is asked for there is one all the same: in it noise is drawn."""

    def reading(connection: Any, sql: str, stop: Any) -> RawTable:
        found = read(connection, sql, stop)
        rows = list(found.rows())
        fetched.append(bag(rows))
        _, order, rest = sql.rpartition("ORDER BY")
        if not (order and rest.count("(") == rest.count(")")) and rows:
            rows.sort(key=lambda row: [(value is None, str(value)) for value in row])
            return RawTable(found.names, tuple(map(list, zip(*rows, strict=True))))
        return found

    return reading


def same_bits(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Starts the stream of bits anew."""
    state = [np.random.default_rng(0)]

    def words(self: Kernel, count: int, bits: int) -> Any:
        return state[0].integers(0, 2**bits - 1, count, np.uint64, endpoint=True)

    monkeypatch.setattr(Kernel, "words", words)

    def anew() -> None:
        state[0] = np.random.default_rng(0)

    return anew


def asked(side: Side, sql: str, **settings: Any) -> tuple[str, Any]:
    """The EXPLAIN and the answer, or the refusal."""
    side.fetched.clear()
    try:
        explained = str(side.con.sql(sql).explain(epsilon=EPSILON))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpsql.UtilityWarning)
            found = side.con.sql(sql).run(epsilon=EPSILON, delta=1e-6)
        return explained, (found.columns, found.rows, [note for note in found.notes if note not in side.own])
    except dpsql.Rejected as refusal:
        return "", [(d.code, d.message, d.help) for d in refusal.diagnostics]


def compare(sides: tuple[Side, Side], policy: str, anew: Callable[[], None]) -> None:
    """Every query of a policy: the same integers, answer and EXPLAIN; or it is refused on the other by name."""
    answered, only_here, wrong = 0, [], []
    for name in [name for p, name in QUERIES if p == policy]:
        sql = (ROOT / "examples" / example_of(policy) / "queries" / f"{name}.sql").read_text(encoding="utf-8")
        found = []
        for side in sides:
            anew()
            found.append(asked(side, sql))
        (plan, answer), (other_plan, other) = found
        if isinstance(other, list) and not isinstance(answer, list):
            only_here.append(f"{name}: {other[0]}")
            continue
        if isinstance(answer, list):
            if answer != other:
                wrong.append(f"{name}: {answer} {other}")
            continue
        answered += 1
        if sides[0].fetched != sides[1].fetched:
            pairs = enumerate(zip(sides[0].fetched, sides[1].fetched, strict=False))
            differing = [(i, list((a - b).items())[:2], list((b - a).items())[:2]) for i, (a, b) in pairs if a != b]
            wrong.append(f"{name}: other integers {len(sides[0].fetched)} {len(sides[1].fetched)} {differing[:2]}")
        elif plan != other_plan:
            wrong.append(f"{name}: another EXPLAIN\n{plan}\n{other_plan}")
        elif answer != other:
            wrong.append(f"{name}: another answer\n{answer}\n{other}")
    print(policy, answered, *only_here, sep="\n")
    assert answered and not wrong, f"{len(wrong)} of {answered}\n" + "\n".join(wrong)
