"""All queries of the examples on DuckDB and on PostgreSQL: the same exact integers, the same answers, the same EXPLAIN.

Both draw the same bits here, so that equal integers give equal answers, and so do the queries that read what was
released before. Which rows of an id are kept is decided by an engine's own hash; DuckDB is given PostgreSQL's.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import dpsql
from dpsql.core.engine import RawTable
from dpsql.core.ir.types import parse_type
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.noise.sampler.entropy import Kernel
from dpsql.core.printing.dialects.postgres import POSTGRES
from dpsql.core.printing.dialects.postgres_casts import type_name
from dpsql.engines import open as opening
from dpsql.engines.duckdb import engine as duckdb_engine
from dpsql.engines.postgres import engine as postgres_engine
from tests.engines_elsewhere.postgres.same_rows import PORTABLE, bag
from tests.engines_elsewhere.postgres.servers import Server
from tests.support.example_data import make_tpch

ROOT = Path(__file__).resolve().parents[3]
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
    """One engine with one policy. fetched: the rows of each statement that it ran, in order."""

    con: dpsql.Connection
    fetched: list[Any] = field(default_factory=list)


def text_of(policy: str) -> str:
    example = "flights" if policy.startswith("flights") else "tpch"
    text = (ROOT / "examples" / example / f"{policy}.yaml").read_text(encoding="utf-8")
    text = re.sub(r"total: \{epsilon: \d+, delta: [^}]+", "total: {epsilon: 1e18, delta: 0.5", text)
    return (
        re.sub(r"max_keys: (\d+)", lambda found: f"max_keys: {int(found[1]) // 100}", text)
        if example == "tpch"
        else text
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples' data: a year of flights, and TPC-H at scale 0.01."""
    from examples.flights.build import build

    made = tmp_path_factory.mktemp("examples")
    for example, policies in POLICIES.items():
        (made / example).mkdir()
        for policy in policies:
            (made / example / f"{policy}.yaml").write_text(text_of(policy), encoding="utf-8")
    build(made / "flights" / "data")
    make_tpch(made / "tpch", "0.01")
    for policy in POLICIES["tpch"]:  # which have just been copied anew
        (made / "tpch" / f"{policy}.yaml").write_text(text_of(policy), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def databases(one_server: Server, folder: Path) -> Iterator[dict[str, str]]:
    """Example → the name of a database with its tables."""
    made = {}
    for example in POLICIES:
        made[example] = name = one_server.new_database()
        for file in sorted((folder / example / "data").glob("*.parquet")):
            copy(one_server, name, file)
        one_server.run(name, "ANALYZE")
    yield made
    for name in made.values():
        one_server.drop(name)


def copy(server: Server, database: str, file: Path) -> None:
    """A table of the rows of a file, of the same types."""
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        rows = con.sql(f"FROM read_parquet('{file}')")
        kinds = [parse_type(str(t)) for t in rows.types]
        columns = ", ".join(
            f"{POSTGRES.identifier(name)} {type_name(t)}"
            for name, t in zip(rows.columns, kinds, strict=True)
            if t is not None
        )
        assert None not in kinds
        csv = file.with_suffix(".csv")
        con.execute(f"COPY (FROM read_parquet('{file}')) TO '{csv}' (FORMAT csv, HEADER false, NULL '\\N', QUOTE '\"')")
    with server.admin(database) as admin:
        admin.execute(f"CREATE TABLE {file.stem} ({columns})".encode())
        with (
            admin.cursor().copy(f"COPY {file.stem} FROM STDIN (FORMAT csv, NULL '\\N')") as sink,
            open(csv, "rb") as source,
        ):
            while part := source.read(1 << 20):
                sink.write(part)
    csv.unlink()


@pytest.fixture(scope="module", params=[policy for policies in POLICIES.values() for policy in policies])
def sides(
    request: pytest.FixtureRequest, databases: dict[str, str], folder: Path, one_server: Server
) -> Iterator[tuple[Side, Side]]:
    """One policy on both engines, with one salt."""
    policy = request.param
    example = "flights" if policy.startswith("flights") else "tpch"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb_engine.DuckDBEngine, "dialect", PORTABLE)
        patch.setitem(opening.KINDS, "duckdb", opening.Kind(PORTABLE, opening.KINDS["duckdb"].open))  # type: ignore[arg-type]
        here, there = folder / example / f"{policy}.yaml", folder / example / f"{policy}-server.yaml"
        address = one_server.address(databases[example])
        text = re.sub(r"    source: read_parquet\(.*\)\n", "", here.read_text(encoding="utf-8"))
        there.write_text(text.replace("\ntables:\n", f"\ndatabase: '{address}'\ntables:\n"), encoding="utf-8")
        ledgers = MemoryLedger(), MemoryLedger()
        ledgers[1]._identity = ledgers[0]._identity
        both = [Side(dpsql.connect(path, ledger=ledger)) for path, ledger in zip((here, there), ledgers, strict=True)]
        for module, side in zip((duckdb_engine, postgres_engine), both, strict=True):
            patch.setattr(module, "read", listening(module.read, side.fetched))
        yield both[0], both[1]
        for side in both:
            side.con.close()


def listening(read: Callable[..., RawTable], fetched: list[Any]) -> Callable[..., RawTable]:
    """Notes what is read. Where no order is asked for there is one all the same: in it noise is drawn."""

    def reading(connection: Any, sql: str, stop: Any) -> RawTable:
        found = read(connection, sql, stop)
        rows = list(found.rows())
        fetched.append(bag(rows))
        if not re.search(r"ORDER BY[^()]*$", sql) and rows:
            rows.sort(key=lambda row: [(value is None, str(value)) for value in row])
            return RawTable(found.names, tuple(map(list, zip(*rows, strict=True))))
        return found

    return reading


@pytest.fixture
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
        return explained, (found.columns, found.rows, found.notes)
    except dpsql.Rejected as refusal:
        return "", [(d.code, d.message, d.help) for d in refusal.diagnostics]


def test_every_query_of_the_examples(
    sides: tuple[Side, Side], same_bits: Callable[[], None], request: pytest.FixtureRequest
) -> None:
    policy = request.node.callspec.params["sides"]
    answered, only_here, wrong = 0, [], []
    for name in [name for p, name in QUERIES if p == policy]:
        example = "flights" if policy.startswith("flights") else "tpch"
        sql = (ROOT / "examples" / example / "queries" / f"{name}.sql").read_text(encoding="utf-8")
        found = []
        for side in sides:
            same_bits()
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
