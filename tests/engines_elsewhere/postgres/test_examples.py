"""All queries of the examples on DuckDB and on PostgreSQL: the same exact integers, answers and EXPLAIN."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.core.ir.types import parse_type
from dpsql.core.printing.dialects.postgres_casts import type_name
from dpsql.engines.postgres import asking_again
from dpsql.engines.postgres import engine as postgres_engine
from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines_elsewhere import example_runs
from tests.engines_elsewhere.example_runs import POLICIES, Side, example_of, on_both
from tests.engines_elsewhere.postgres.same_rows import PORTABLE
from tests.engines_elsewhere.postgres.servers import Server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples' data."""
    made = tmp_path_factory.mktemp("examples")
    example_runs.build(made)
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
    """One policy on both engines."""
    policy = request.param
    text = (folder / example_of(policy) / f"{policy}.yaml").read_text(encoding="utf-8")
    address = one_server.address(databases[example_of(policy)])
    text = re.sub(r"    source: read_parquet\(.*\)\n", "", text).replace(
        "\ntables:\n", f"\ndatabase: '{address}'\ntables:\n"
    )
    with on_both(folder, policy, text, PORTABLE, (postgres_engine, asking_again)) as both:
        yield both


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Starts the stream of bits anew."""
    return example_runs.same_bits(monkeypatch)


def test_every_query_of_the_examples(
    sides: tuple[Side, Side], anew: Callable[[], None], request: pytest.FixtureRequest
) -> None:
    example_runs.compare(sides, request.node.callspec.params["sides"], anew)
