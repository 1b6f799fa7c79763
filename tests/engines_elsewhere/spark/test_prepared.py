"""`dpsql prepare` on Spark: what is copied and read there, when a copy is not believed, and what a query shuffles."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsql
from dpsql.core.engine import engine_failed
from dpsql.core.policy.server_address import parse_server
from dpsql.core.policy.source import parse_source
from dpsql.core.release.noisy import exact_totals
from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.engines.spark.copies import Copying
from dpsql.engines.spark.engine import SparkEngine
from dpsql.engines.spark.files import looked_at, plain
from dpsql.engines.spark.folders import look_of
from dpsql.engines.spark.relations import Copy, Wanted
from dpsql.service.preparing.prepare import prepare
from dpsql.spelling.spark_functions import SPARK
from tests.engines_elsewhere.spark.servers import Server

POLICY = """\
version: 1
name: shop
database: ADDRESS
prepared_at: FOLDER/copies
units: {buyer: {}}
tables:
  orders:
    source: read_parquet('FOLDER/orders')
    unit: {column: buyer}
    max_rows_per_unit: 3
    unique: [[nr]]
    prepared: true
    columns:
      nr: {type: bigint}
      buyer: {type: bigint}
      price: {type: double, bounds: [0, 9]}
      cents: {type: 'decimal(12,3)', bounds: [-20, 30.5]}
      kind: {type: varchar, domain: [a, b, c]}
      dear: {from: 'price > 4', type: boolean}
  lines:
    source: read_parquet('FOLDER/lines')
    unit: {path: [{column: nr, references: orders(nr)}]}
    max_rows_per_unit: 4
    prepared: true
    columns: {nr: {type: bigint}, qty: {type: integer, bounds: [0, 9]}}
budgets: {total: {epsilon: 1e12}}
"""
WIDE = POLICY.replace("max_rows_per_unit: 3", "max_rows_per_unit: 999").replace("unit: 4", "unit: 9999")
DATA = {
    "orders": """SELECT i AS nr, CASE WHEN i % 10 = 0 THEN NULL ELSE i % 5 END AS buyer,
        CASE i % 11 WHEN 0 THEN NULL WHEN 1 THEN 'nan'::DOUBLE WHEN 2 THEN 'inf'::DOUBLE WHEN 3 THEN -1e300 WHEN 4
        THEN -0.0 ELSE i / 9.7 END AS price, (i % 61 - 30.125)::DECIMAL(12, 3) AS cents,
        chr(97 + (i % 3)::INTEGER) AS kind,
        'secret' AS note FROM range(1, 121) t(i)""",
    "lines": "SELECT i % 135 AS nr, (i % 9)::INTEGER AS qty FROM range(500) t(i)",
}
QUERIES = (
    "SELECT COUNT(*), SUM(price), AVG(price) FROM orders",
    "SELECT SUM(cents), COUNT(cents) FROM orders WHERE dear",
    "SELECT kind, COUNT(*), SUM(price + 1) FROM orders GROUP BY kind",
    "SELECT SUM(qty) FROM lines l JOIN orders o ON l.nr = o.nr WHERE price > 3",
    "SELECT COUNT(*) FROM (SELECT * FROM lines UNION ALL SELECT nr, qty + 1 FROM lines) WHERE qty > 3",
    "SELECT COUNT(DISTINCT buyer), MEDIAN(price) FROM orders",
)
"""Of which the first three shuffle no rows where tables are prepared."""


def write(folder: Path, cluster: Server) -> Path:
    """The shop, its files and its policy."""
    with duckdb.connect() as con:
        for table, sql in DATA.items():
            (folder / table).mkdir(exist_ok=True)
            con.execute(f"COPY ({sql}) TO '{folder}/{table}/a.parquet'")
    say(folder / "shop.yaml", POLICY, cluster)
    return folder / "shop.yaml"


def say(policy: Path, text: str, cluster: Server) -> None:
    policy.write_text(text.replace("ADDRESS", cluster.address).replace("FOLDER", str(policy.parent)))


@pytest.fixture
def shop(tmp_path: Path, cluster: Server) -> Path:
    return write(tmp_path, cluster)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory, cluster: Server) -> Path:
    """A shop that is prepared."""
    policy = write(tmp_path_factory.mktemp("shop"), cluster)
    prepare(policy)
    return policy


def files_of(place: str, table: str) -> list[Path]:
    return sorted(Path(place).glob(f"t_{table}_*/*.parquet"))


def copies(policy: Path) -> list[Path]:
    return [path.parent for path in (policy.parent / "copies" / "shop.prepared").glob("*/manifest")]


def rows(policy: Path, sql: str) -> list[tuple[object, ...]]:
    """Of the copies, by another reader."""
    (place,) = copies(policy)
    with duckdb.connect() as con:
        for table in DATA:
            con.execute(
                f"CREATE VIEW {table} AS SELECT * FROM read_parquet({list(map(str, files_of(str(place), table)))})"
            )
        return con.execute(sql).fetchall()


def integers(policy: Path, queries: tuple[str, ...] = QUERIES) -> list[object]:
    """The exact integers of all components, for nobody to see."""
    with dpsql.connect(policy, ledger=":memory:") as con:
        return [
            [exact_totals(r, con.service.engine, 7) for r in con.sql(sql).plan(epsilon=1, delta=1e-9).releases]
            for sql in queries
        ]


def test_of_each_owner_the_limit_is_kept_and_nothing_that_is_not_declared(ready: Path) -> None:
    assert rows(ready, "SELECT buyer, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1") == [(i, 3) for i in range(5)]
    assert rows(ready, 'SELECT "buyer of orders", COUNT(*) FROM lines GROUP BY 1 ORDER BY 1') == [
        (i, 4) for i in range(5)
    ]
    missing = (
        'SELECT COUNT(*) FROM lines l LEFT JOIN orders o USING (nr) WHERE o.buyer IS DISTINCT FROM l."buyer of orders"'
    )
    assert rows(ready, missing) == [(0,)]
    (place,) = copies(ready)
    assert not any(b"secret" in path.read_bytes() for path in place.rglob("*.parquet"))
    for table, owner in (("orders", "buyer"), ("lines", "buyer of orders")):
        for file in files_of(str(place), table):
            owners = pq.read_table(file).column(owner).to_pylist()
            assert owners == sorted(owners)


def test_exact_integers_are_those_of_the_data_and_of_duckdb(shop: Path, cluster: Server) -> None:
    """Where limits cut nothing: NULL, NaN, infinities and values beyond the bounds are among them."""
    say(shop, WIDE, cluster)
    made = prepare(shop)
    assert {t: (c.rows, c.kept) for t, c in made.tables.items()} == {"orders": (120, 108), "lines": (500, 409)}
    found = integers(shop)
    text = WIDE.replace("    prepared: true\n", "").replace("999\n", "{rows: 999, enforce: assume}\n", 1)
    say(shop, text, cluster)
    assert integers(shop, QUERIES[:3]) == found[:3]
    here = re.sub(r"(database|prepared_at): .*\n", "", WIDE)
    say(shop, re.sub(r"FOLDER/(\w+)'", r"FOLDER/\1/*.parquet'", here), cluster)
    prepare(shop)
    assert integers(shop) == found


@pytest.mark.long_on_spark
def test_a_copy_that_is_made_again_or_not_to_the_end(
    shop: Path, cluster: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare(shop)

    def killed(engine: Copying, manifest: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Copying, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            prepare(shop)
    con = dpsql.connect(shop, ledger=":memory:")
    old = con.policy.hash
    assert [str(path) for path in copies(shop)] == [first.place]
    second = prepare(shop)
    assert second.place != first.place and {str(path) for path in copies(shop)} == {first.place, second.place}
    # Who has it open goes on with it; a torn manifest is none.
    assert con.sql("SELECT COUNT(*) AS n FROM orders").run(epsilon=10**6).rows == ((15,),)
    con.close()
    (line,) = Path(second.place, "manifest").glob("*.txt")
    text = line.read_text()
    line.write_text(text[:-9])
    Path(line.parent, f".{line.name}.crc").unlink()
    with dpsql.connect(shop, ledger=":memory:") as con:
        assert con.policy.hash == old
    line.write_text(text)
    with dpsql.connect(shop, ledger=":memory:") as con:
        assert con.policy.hash != old  # no answer of one copy is one of another


@pytest.mark.parametrize("prepared", ["true", pytest.param("auto", marks=pytest.mark.long_on_spark)])
def test_without_a_copy_of_the_data_as_it_is(shop: Path, cluster: Server, prepared: str) -> None:
    auto = POLICY.replace("prepared: true", f"prepared: {prepared}")

    def opened() -> str:
        try:
            with dpsql.connect(shop, ledger=":memory:") as con:
                return " ".join(con.service.engine.notes)
        except CannotOpen as refused:
            assert refused.diagnostics[0].code == "DP008" and prepared == "true"
            return str(refused)

    say(shop, auto, cluster)
    assert "there are none in" in opened()
    prepare(shop)
    assert "prepared tables" not in opened()
    say(shop, auto.replace("max_rows_per_unit: 3", "max_rows_per_unit: 2"), cluster)
    assert "the policy says something else" in opened()
    say(shop, auto, cluster)
    pq.write_table(pa.table({"nr": [1], "qty": pa.array([1], pa.int32())}), shop.parent / "lines" / "b.parquet")
    assert "the data has changed since" in opened()


def _more(file: Path) -> None:
    pq.write_table(pq.read_table(file), file.with_name("part-more.parquet"))


def _other(file: Path) -> None:
    held = file.stat()
    pq.write_table(pa.concat_tables([pq.read_table(file)] * 2), file)
    os.utime(file, ns=(held.st_atime_ns, held.st_mtime_ns))
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


CHANGES = {"a file more": _more, "other rows": _other, "a file less": Path.unlink}


@pytest.mark.parametrize(
    "change", [pytest.param(n, marks=[pytest.mark.long_on_spark] if i else []) for i, n in enumerate(CHANGES)]
)
def test_other_files_than_were_prepared_are_not_read(shop: Path, change: str) -> None:
    """Nor when they change while the data is open: before a run nothing is charged, within one it stays paid."""
    import dpsql.engines.spark.engine as module

    made, read = prepare(shop), module.read
    (file,) = files_of(made.place, "orders")
    kept = {path: path.read_bytes() for path in file.parent.iterdir()}
    times = {path: path.stat().st_mtime_ns for path in kept}

    def again() -> None:
        for path in file.parent.iterdir():
            path.unlink()
        for path, content in kept.items():
            path.write_bytes(content)
            os.utime(path, ns=(times[path], times[path]))

    def reading(session: object, sql: str, stop: object) -> object:
        found = read(session, sql, stop)  # type: ignore[arg-type]
        CHANGES[change](file)
        return found

    with dpsql.connect(shop, ledger=":memory:") as con:
        assert con.sql("SELECT COUNT(*) AS n FROM orders").run(epsilon=10**6).rows == ((15,),)
        CHANGES[change](file)
        with pytest.raises(CannotOpen, match="not those that were prepared"):
            con.sql("SELECT COUNT(*) AS n FROM orders WHERE nr > 1").run(epsilon=1)
        assert con.budget["buyer"].spent.epsilon == 10**6
        again()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "read", reading)
            asked = con.sql("SELECT COUNT(*) AS n FROM orders WHERE nr > 0")
            if change == "a file more":  # which is not in the list of the run
                assert asked.run(epsilon=10**6).rows == ((15,),)
            else:
                with pytest.raises(EngineError) as caught:
                    asked.run(epsilon=10**6)
                assert str(caught.value) == str(engine_failed())
        assert con.budget["buyer"].spent.epsilon == 2 * 10**6
    with pytest.raises(CannotOpen, match="not those that were prepared"):
        dpsql.connect(shop, ledger=":memory:")


def test_integers_beyond_their_ends_are_not_read(cluster: Server, tmp_path: Path) -> None:
    """Statements add them up as they are; somebody has written these, and the manifest."""
    pq.write_table(pa.table({"x": pa.array([0, 5, 9, 10, -1, 2**31 - 1, None], pa.int32())}), tmp_path / "a.parquet")
    source = parse_source(f"read_parquet('{tmp_path}')", remote=True)
    with cluster.admin() as other:
        files = plain(other.read.parquet(str(tmp_path)).inputFiles())
        looks = looked_at(other, files)
    assert looks is not None
    wanted = Wanted("t", source=source, copy=Copy(look_of(files, looks), (("x", 0, 9),)))
    engine = SparkEngine.open(parse_server(cluster.address), [wanted])
    assert sorted(engine.fetch(f"SELECT x FROM {engine.table_sql('t')} AS t0").columns[0], key=str) == [
        0,
        5,
        9,
        *[None] * 4,
    ]
    engine.close()


def test_where_nothing_can_be_written(shop: Path, cluster: Server) -> None:
    say(shop, POLICY.replace("FOLDER/copies", "/proc/nothing"), cluster)
    with pytest.raises(CannotOpen, match="cannot be written: /proc/nothing"):
        prepare(shop)


TYPES = """SELECT id, cast(id AS TINYINT) AS a, cast(id AS SMALLINT) AS b, cast(id AS INT) AS c, id > 2 AS d,
  cast(id AS FLOAT) / 3 AS e, CASE id WHEN 0 THEN -0.0D WHEN 1 THEN DOUBLE('NaN') ELSE id / 7D END AS f,
  cast(id AS DECIMAL(38, 0)) * 10000000000000000000000000000 AS g, cast(id AS DECIMAL(9, 3)) / 8 AS h,
  decode(unhex('C3A90A'), 'UTF-8') || id AS i, cast(unhex('FF') AS STRING) AS j, unhex('00FF') AS k,
  date_add(DATE'0001-01-01', cast(id AS INT) * 900000) AS l, TIMESTAMP_NTZ'1582-10-04 23:59:59.123456' AS m,
  TIMESTAMP_LTZ'1582-10-04 23:59:59.123456' AS n, array(id, NULL) AS o, array(0.0D, -0.0D, DOUBLE('NaN')) AS p,
  array('a', cast(unhex('FF') AS STRING)) AS q, cast(NULL AS INT) AS `a b, {c}` FROM range(5)"""


ALL = """\
  all:
    source: read_parquet('FOLDER/all')
    unit: {of: buyer, column: id}
    primary_key: [id]
    prepared: true
    columns: {COLUMNS}
budgets: {total: {epsilon: 1}}
"""


@pytest.mark.long_on_spark
def test_values_of_every_type_are_the_same_in_a_copy(cluster: Server, tmp_path: Path) -> None:
    with cluster.admin() as other:
        other.sql(TYPES).write.parquet(str(tmp_path / "all"))
        names = other.sql(TYPES).columns
    text = POLICY[: POLICY.index("  orders:")] + ALL.replace("COLUMNS", ", ".join(f'"{name}": {{}}' for name in names))
    policy = tmp_path / "all.yaml"
    say(policy, text, cluster)
    prepare(policy)
    seen = []
    for now in (text, text.replace("    prepared: true\n", "")):
        say(policy, now, cluster)
        with dpsql.connect(policy, ledger=":memory:") as con:
            engine, table = con.service.engine, con.policy.tables["all"]
            assert list(table.columns) == names and (table.copied is not None) == (now is text)
            read = [SPARK.column(f"t.`{c.name}`", c.sql_type) for c in table.columns.values() if c.sql_type is not None]
            listed = ", ".join(f"{sql} AS v" for sql in read)
            found = engine.fetch(f"SELECT {listed} FROM {engine.table_sql('all')} AS t ORDER BY t.id")
            seen.append(repr(list(found.rows())))
    assert seen[0] == seen[1] and all(
        text in seen[0] for text in ("-0.0", "nan", "1582, 10, 4, 23, 59, 59, 123456", "é")
    )


# --- what is shuffled ------------------------------------------------------------------------------------------------

WRITTEN = "shuffleRecordsWritten"


@pytest.fixture(scope="module")
def plans(ready: Path, cluster: Server) -> Iterator[dict[bool, list[tuple[int, list[str]]]]]:
    """Prepared or not → of each query the rows that its statements shuffle, and what they are shuffled by."""
    found: dict[bool, list[tuple[int, list[str]]]] = {}
    text = ready.read_text()
    for prepared in (True, False):
        ready.write_text(text if prepared else text.replace("    prepared: true\n", ""))
        with dpsql.connect(ready, ledger=":memory:") as con:
            engine = con.service.engine
            found[prepared] = [
                shuffled(
                    engine, [s.sql for r in con.sql(sql).plan(epsilon=1, delta=1e-9).releases for s in r.statements]
                )
                for sql in QUERIES
            ]
    ready.write_text(text)
    yield found


def shuffled(engine: object, statements: list[str]) -> tuple[int, list[str]]:
    """By Spark's own counts and plans."""
    session, rows, by = engine._session, 0, list[str]()  # type: ignore[attr-defined]
    for sql in statements:
        sql = sql.replace("\0salt\0", "7")
        frame = session.sql(sql)
        frame.toArrow()
        info = frame.executionInfo
        assert info is not None and info.metrics is not None
        rows += sum(m.value for plan in info.metrics._metrics for m in plan.metrics if m.name == WRITTEN)
        ((plan,),) = [c.to_pylist() for c in session.sql(f"EXPLAIN {sql}").toArrow().columns]
        by += re.findall(r"Exchange (\w+(?:\([^)]*?, \d+\))?)", plan)
    return rows, by


def test_counts_and_sums_of_prepared_tables_shuffle_groups_and_no_rows(
    plans: dict[bool, list[tuple[int, list[str]]]],
) -> None:
    """A task writes one record for each group: two tasks at most, and three groups."""
    for i, (rows, by) in enumerate(plans[True][:3]):
        assert rows <= (6 if "GROUP BY" in QUERIES[i] else 2), (QUERIES[i], rows)
        assert by, QUERIES[i]


def test_the_same_of_tables_as_they_are_shuffles_by_person(plans: dict[bool, list[tuple[int, list[str]]]]) -> None:
    """The twin of the one above; what counts people shuffles them in either."""
    for i, (rows, by) in enumerate(plans[False][:3]):
        assert rows > plans[True][i][0] and any("hashpartitioning" in key.lower() for key in by), (QUERIES[i], rows, by)
    assert any("hashpartitioning" in key.lower() for key in plans[True][-1][1])
