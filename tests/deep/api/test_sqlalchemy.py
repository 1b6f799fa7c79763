"""The SQLAlchemy dialect: URLs, reflection of the policy, constructs as SQL that dpsql accepts, one connection."""

from __future__ import annotations

import datetime as dt
import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy as sa
from sqlalchemy import func, orm, select
from sqlalchemy.ext.automap import automap_base

import dpsql

POLICY = """\
version: 1
name: clinic
database: clinic.duckdb
units: {patient: {table: patients, key: id}}
tables:
  patients:
    unit: {column: id}
    primary_key: [id]
    columns:
      id: {type: bigint, nullable: false}
      age: {type: integer, bounds: [0, 100], nullable: false}
      town: {type: varchar, domain: [Bonn, Lyon, 'O''slo_%']}
      fee: {type: 'decimal(8,2)', bounds: [0, 500]}
      weight: {type: float, bounds: [0, 300]}
      born: {type: date, bounds: [2020-01-01, 2020-12-31]}
      seen: {type: timestamp}
      smoker: {type: boolean}
      tags: {type: 'varchar[]', max_length: 3}
  visits:
    unit: {column: id}
    max_rows_per_unit: 3
    unique: [[visit, day]]
    foreign_keys: [{columns: [id], references: patients(id)}]
    columns: {visit: {type: smallint, nullable: false}, id: {type: bigint, nullable: false}, day: {type: date}}
  ref.towns:
    public: true
    primary_key: [town]
    columns: {town: {type: varchar, nullable: false}, inhabitants: {type: hugeint}}
budgets: {total: {epsilon: 1000000, delta: 1e-3}, analysts: {ana: {epsilon: 1000}, "*": {epsilon: 999000}}}
ledger_head: head.json
"""
DATA = """\
CREATE TABLE patients AS SELECT i AS id, CAST(i % 80 AS INTEGER) AS age, ['Bonn', 'Lyon'][1 + i % 2] AS town,
  CAST(i % 400 AS DECIMAL(8,2)) AS fee, CAST(70 AS FLOAT) AS weight,
  DATE '2020-01-01' + CAST(i % 300 AS INTEGER) AS born, TIMESTAMP '2024-01-01' AS seen, i % 3 = 0 AS smoker,
  ['a', 'b'] AS tags FROM range(2000) t(i);
CREATE TABLE visits AS SELECT CAST(i % 3 AS SMALLINT) AS visit, CAST(i // 3 AS BIGINT) AS id, DATE '2024-01-01' AS day
  FROM range(6000) t(i);
CREATE SCHEMA ref;
CREATE TABLE ref.towns AS SELECT 'Bonn' AS town, 330000::HUGEINT AS inhabitants;
"""
ROWS = 2000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("clinic")
    with duckdb.connect(str(place / "clinic.duckdb")) as database:
        database.execute(DATA)
    (place / "clinic.yaml").write_text(POLICY, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[sa.Engine]:
    """At this ε a count's noise is 0 but once in e^100 runs."""
    made = sa.create_engine(f"dpsql:///{folder}/clinic.yaml?epsilon=400")
    with made.connect():  # the session that all others share lasts as long as somebody holds it
        yield made
    made.dispose()


@pytest.fixture(scope="module")
def tables(engine: sa.Engine) -> sa.MetaData:
    found = sa.MetaData()
    found.reflect(engine)
    return found


def scalar(engine: sa.Engine, statement: Any, *parameters: Any) -> Any:
    with engine.connect() as connection:
        return connection.execute(statement, *parameters).scalar_one()


# --- reflection ------------------------------------------------------------------------------------------------------


def test_tables(engine: sa.Engine) -> None:
    found = sa.inspect(engine)
    assert found.get_table_names() == ["patients", "visits"] and found.get_view_names() == []
    assert found.get_schema_names() == ["ref"] and found.get_table_names(schema="ref") == ["towns"]
    assert found.has_table("patients") and found.has_table("towns", schema="ref") and not found.has_table("towns")
    assert found.get_table_comment("patients") == {"text": "private: unit patient"}
    assert found.get_table_comment("towns", schema="ref") == {"text": "public"}
    with pytest.raises(sa.exc.NoSuchTableError):
        found.get_columns("nothing")


def test_columns_and_keys(engine: sa.Engine) -> None:
    found = sa.inspect(engine)
    columns = {c["name"]: (str(c["type"]), c["nullable"]) for c in found.get_columns("patients")}
    assert columns == {
        "id": ("BIGINT", False),
        "age": ("INTEGER", False),
        "town": ("VARCHAR", True),
        "fee": ("DECIMAL(8, 2)", True),
        "weight": ("DOUBLE", True),
        "born": ("DATE", True),
        "seen": ("TIMESTAMP", True),
        "smoker": ("BOOLEAN", True),
        "tags": ("ARRAY", True),
    }
    assert [str(c["type"]) for c in found.get_columns("visits")] == ["SMALLINT", "BIGINT", "DATE"]
    assert [str(c["type"]) for c in found.get_columns("towns", schema="ref")] == ["VARCHAR", "BIGINT"]
    assert found.get_pk_constraint("patients")["constrained_columns"] == ["id"]
    assert found.get_pk_constraint("visits")["constrained_columns"] == []
    (key,) = found.get_foreign_keys("visits")
    assert (key["constrained_columns"], key["referred_table"], key["referred_columns"]) == (["id"], "patients", ["id"])
    assert [k["column_names"] for k in found.get_unique_constraints("visits")] == [["visit", "day"]]
    assert found.get_indexes("visits") == [] == found.get_check_constraints("visits")


def test_metadata_and_automap(engine: sa.Engine, tables: sa.MetaData) -> None:
    assert set(tables.tables) == {"patients", "visits"}
    (key,) = tables.tables["visits"].foreign_keys
    assert key.column is tables.tables["patients"].c.id
    base = automap_base()
    base.prepare(autoload_with=engine)
    with orm.Session(engine) as session:
        assert session.scalar(select(func.count()).select_from(base.classes.patients)) == ROWS


PATHS = """\
version: 1
name: clinic
database: clinic.duckdb
units: {patient: {table: patients, key: id}}
tables:
  patients: {unit: {column: id}, primary_key: [id], columns: {id: {type: bigint, nullable: false}}}
  visits:
    unit: {column: id}
    max_rows_per_unit: 3
    primary_key: [visit]
    columns: {visit: {type: bigint, nullable: false}, id: {type: bigint, nullable: false}}
  prescriptions:
    unit: {path: [{column: visit, references: visits(visit)}]}
    max_rows_per_unit: 3
    columns: {drug: {type: varchar}, visit: {type: bigint, nullable: false}}
  pills:
    unit: {path: [{column: visit, references: visits(visit)}]}
    max_rows_per_unit: 3
    foreign_keys: [{columns: [visit], references: visits(visit)}]
    columns: {visit: {type: bigint, nullable: false}}
budgets: {total: {epsilon: 1000000}}
ledger_head: head.json
"""


def test_tables_that_reach_their_unit_by_a_path_join_along_it(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as database:
        database.execute(
            "CREATE TABLE patients AS SELECT i AS id FROM range(100) t(i);"
            "CREATE TABLE visits AS SELECT i AS visit, i // 2 AS id FROM range(200) t(i);"
            "CREATE TABLE prescriptions AS SELECT 'x' AS drug, i AS visit FROM range(150) t(i);"
            "CREATE TABLE pills AS SELECT visit FROM prescriptions"
        )
    (tmp_path / "clinic.yaml").write_text(PATHS, encoding="utf-8")
    made = sa.create_engine(f"dpsql:///{tmp_path}/clinic.yaml?epsilon=400")
    try:
        (key,) = sa.inspect(made).get_foreign_keys("prescriptions")
        assert (key["constrained_columns"], key["referred_table"], key["referred_columns"]) == (
            ["visit"], "visits", ["visit"],
        )  # fmt: skip
        assert sa.inspect(made).get_foreign_keys("pills") == [key]  # once, though it is said twice
        found = sa.MetaData()
        found.reflect(made)
        prescriptions, visits = found.tables["prescriptions"], found.tables["visits"]
        joined = prescriptions.join(visits)
        assert scalar(made, select(func.count()).select_from(joined).where(visits.c.visit < 50)) == 50
    finally:
        made.dispose()


# --- statements ------------------------------------------------------------------------------------------------------


def test_text_with_named_parameters(engine: sa.Engine) -> None:
    statement = sa.text("SELECT COUNT(*) FROM patients WHERE age > :low AND age < :low + :step")
    assert scalar(engine, statement, {"low": 9, "step": 11}) == ROWS // 80 * 10
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM patients WHERE age < ?", (40,)).scalar() == ROWS // 2
        assert (
            connection.exec_driver_sql("SELECT COUNT(*) FROM patients WHERE age < $a", {"a": 40}).scalar() == ROWS // 2
        )


COLUMNS = ("id", "age", "town", "fee", "born", "seen", "smoker")


def conditions(p: Any) -> dict[str, tuple[Any, int]]:
    """Conditions over the patients, and how many fulfil them."""
    half = ROWS // 2
    return {
        "in": (p.town.in_(["Bonn", "Oslo"]), half),
        "not in": (p.town.not_in(["Bonn"]), half),
        "in nothing": (p.town.in_([]), 0),
        "between": (p.age.between(10, 19), ROWS // 8),
        "like": (p.town.like("B%"), half),
        "like with escape": (p.town.like("O/_%", escape="/"), 0),
        "ilike": (p.town.ilike("b%"), half),
        "not ilike": (p.town.not_ilike("b%"), half),
        "null": (p.town.is_(None), 0),
        "not null": (sa.and_(p.town.is_not(None), sa.true()), ROWS),
        "or": (sa.or_(p.town == "Bonn", p.town == "Lyon"), ROWS),
        "not": (sa.not_(p.smoker), ROWS - 667),
        "boolean": (p.smoker.is_(True), 667),
        "date": (p.born < dt.date(2020, 1, 2), 7),
        "timestamp": (p.seen >= dt.datetime(2024, 1, 1), ROWS),
        "extract": (sa.extract("month", p.born) == 1, sum(1 for i in range(ROWS) if i % 300 < 31)),
        "modulo": (p.id % 4 == 1, ROWS // 4),
        "division": (p.age / 2 < 0.75, ROWS // 80 * 2),
        "floor division": (p.age // 2 < 1, ROWS // 80 * 2),
        "concatenation": (p.town + "x" == "Bonnx", half),
        "case": (sa.case((p.age < 40, 1), else_=0) == 1, half),
        "cast": (sa.cast(p.fee, sa.Numeric(10, 2)) < 1, ROWS // 400),
        "coalesce": (func.coalesce(p.fee, 0) < 1, ROWS // 400),
        "quotes": (p.town == "O'slo_%", 0),
    }


@pytest.mark.parametrize(
    "name", conditions(sa.table("t", *map(sa.column, ["id", "age", "town", "fee", "born", "seen", "smoker"])).c)
)
@pytest.mark.filterwarnings("ignore::dpsql.diagnostics.errors.UtilityWarning")  # of a value that is not listed
def test_conditions(engine: sa.Engine, tables: sa.MetaData, name: str) -> None:
    patients = tables.tables["patients"]
    condition, true = conditions(patients.c)[name]
    assert scalar(engine, select(func.count()).select_from(patients).where(condition)) == true


def test_whole_queries(engine: sa.Engine, tables: sa.MetaData) -> None:
    p, v = tables.tables["patients"], tables.tables["visits"]
    with engine.connect() as connection:
        counted = select(p.c.town, func.count().label("n")).group_by(p.c.town)
        found = connection.execute(counted.order_by(sa.desc("n"), p.c.town).limit(2).offset(1))
        assert [tuple(row) for row in found] == [("Lyon", 1000), ("O'slo_%", 0)] and found.keys() == ["town", "n"]
        assert connection.execute(counted.having(func.count() > 500)).rowcount == 2
        most = select(func.max(counted.cte("c").c.n))
        assert connection.execute(most).scalar() == 1000
        joined = select(func.count()).select_from(v.join(p, v.c.id == p.c.id)).where(p.c.age < 40)
        assert abs(connection.execute(joined).scalar_one() - 3000) < 100
        distinct = select(func.count(p.c.id.distinct()), func.count().filter(p.c.age < 40), func.avg(p.c.age))
        (people, young, mean) = connection.execute(distinct).one()
        assert (people, young) == (ROWS, ROWS // 2) and abs(mean - 39.5) < 5
        ranks = select(p.c.town, func.rank().over(order_by=func.count().desc())).group_by(p.c.town)
        assert {row[1] for row in connection.execute(ranks)} <= {1, 2, 3}
        both = sa.union_all(select(func.count()).select_from(p), select(func.count()).select_from(v))
        assert len(connection.execute(both).all()) == 2
        aliased = select(func.count()).select_from(p.alias("x"))
        assert connection.execute(aliased).scalar() == ROWS
        towns = sa.Table("towns", sa.MetaData(), schema="ref", autoload_with=engine)
        assert connection.execute(select(towns)).all() == [("Bonn", 330000)]
        connection.commit()
        connection.rollback()


def test_refusals_are_programming_errors_of_sqlalchemy(engine: sa.Engine, tables: sa.MetaData) -> None:
    p = tables.tables["patients"]
    with engine.connect() as connection:
        for statement, code in (
            (select(p), "DP110"),
            (sa.insert(p).values(age=3), "DP012"),
            (sa.text("DROP TABLE patients"), "DP012"),
            (sa.text("SELECT COUNT(*) FROM nothing"), "DP102"),
        ):
            with pytest.raises(sa.exc.ProgrammingError) as refusal:
                connection.execute(statement)
            assert isinstance(refusal.value.orig, dpsql.Rejected)
            assert refusal.value.orig.diagnostics[0].code == code
        assert connection.execute(sa.text("SELECT COUNT(*) FROM patients")).scalar() == ROWS  # still of use


# --- ε ---------------------------------------------------------------------------------------------------------------


def spent(connection: sa.Connection) -> float:
    own: Any = connection.connection.dbapi_connection
    return float(own.budget.spent.epsilon)


def test_epsilon(folder: Path, tmp_path: Path) -> None:
    engine = sa.create_engine(f"dpsql:///{folder}/clinic.yaml?analyst=ana&epsilon=0.5&ledger={tmp_path}/l.sqlite")
    with engine.connect() as connection:
        assert connection.connection.dbapi_connection.analyst == "ana"  # type: ignore[union-attr]
        connection.execute(sa.text("SELECT COUNT(*) FROM patients"))
        assert spent(connection) == 0.5
        option = {"dpsql_epsilon": 0.25, "dpsql_fresh": True}
        connection.execute(sa.text("SELECT COUNT(*) FROM patients"), execution_options=option)
        assert spent(connection) == 0.75
        assert connection.execute(sa.text("SET epsilon = 2")).one() == ("epsilon", "2")
        assert connection.execute(sa.text("EXPLAIN SELECT COUNT(*) FROM patients")).keys() == ["plan"]
        assert spent(connection) == 0.75
        connection.execute(sa.text("SELECT COUNT(*) FROM visits"))
        assert spent(connection) == 2.75
        with pytest.raises(sa.exc.ArgumentError, match="dpsql_epsilo"):
            connection.execute(sa.text("SELECT COUNT(*) FROM visits"), execution_options={"dpsql_epsilo": 1})
    engine.dispose()


def test_allow_dearer(folder: Path, tmp_path: Path) -> None:
    """In the URL, as an execution option, and set until the connection goes back to the pool."""
    url, count = (
        f"dpsql:///{folder}/clinic.yaml?epsilon=0.25&ledger={tmp_path}/l.sqlite",
        "SELECT COUNT(*) FROM patients",
    )
    with dpsql.connect(folder / "clinic.yaml", analyst="ana", ledger=tmp_path / "l.sqlite") as ana:
        dear = ana.execute(count, epsilon=0.5).fetchall()
    engine = sa.create_engine(f"{url}&allow_dearer=on")
    with engine.connect() as connection:
        assert connection.execute(sa.text("SHOW allow_dearer")).one() == ("allow_dearer", "on")
        connection.execute(sa.text("SET allow_dearer = off"))
        assert connection.execute(sa.text(f"EXPLAIN {count}")).all()[-1][0].startswith("cost: ε 0.25 of each")
    with engine.connect() as connection:
        assert connection.execute(sa.text("SHOW allow_dearer")).one() == ("allow_dearer", "on")
    engine.dispose()
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        option = {"dpsql_allow_dearer": True}
        assert connection.execute(sa.text(count), execution_options=option).all() == dear and spent(connection) == 0.5
    engine.dispose()


def epsilon(connection: sa.Connection) -> str | None:
    value: str | None = connection.execute(sa.text("SHOW epsilon")).one()[1]
    return value


@pytest.mark.parametrize("pool", [None, sa.QueuePool], ids=["shared", "queue of one"])
def test_settings_end_when_the_connection_goes_back_to_the_pool(folder: Path, pool: type[sa.Pool] | None) -> None:
    """The next user pays what the URL says; one who only rolls back keeps what he set."""
    size = {} if pool is None else {"poolclass": pool, "pool_size": 1, "max_overflow": 0}
    engine = sa.create_engine(f"dpsql:///{folder}/clinic.yaml?epsilon=0.5&delta=1e-9", **size)
    for name, setting in (("epsilon", "2"), ("rho", "0.1"), ("delta", "0")):
        with engine.connect() as connection:
            before = id(connection.connection.dbapi_connection)
            connection.execute(sa.text(f"SET {name} = {setting}"))
            connection.rollback()
            assert connection.execute(sa.text(f"SHOW {name}")).one() == (name, setting)
        with engine.connect() as connection:
            assert id(connection.connection.dbapi_connection) == before, "the same connection"
            shown = [tuple(connection.execute(sa.text(f"SHOW {n}")).one()) for n in ("epsilon", "delta", "rho")]
            assert shown == [("epsilon", "0.5"), ("delta", "1e-9"), ("rho", None)]
    engine.dispose()
    with engine.connect() as connection:
        connection.execute(sa.text("SET epsilon = 2"))
    with engine.connect() as connection:
        assert epsilon(connection) == "0.5", "a new pool is watched, too"
    engine.dispose()


def test_settings_last_while_anybody_holds_a_shared_connection(folder: Path) -> None:
    engine = sa.create_engine(f"dpsql:///{folder}/clinic.yaml?epsilon=0.5")
    with engine.connect() as first:
        first.execute(sa.text("SET epsilon = 2"))
        with engine.connect() as second:
            assert epsilon(second) == "2"
        assert epsilon(first) == "2"
    lost = engine.connect()
    assert epsilon(lost) == "0.5"
    lost.execute(sa.text("SET epsilon = 2"))
    del lost
    gc.collect()
    with engine.connect() as connection:
        assert epsilon(connection) == "0.5"
    engine.dispose()


def test_a_pool_gives_a_connection_of_ones_own_back_as_it_was(folder: Path) -> None:
    with dpsql.connect(folder / "clinic.yaml", epsilon=400) as con:
        con.set("epsilon", "0.1")
        engine = sa.create_engine("dpsql://", creator=lambda: con)
        for _ in range(2):
            with engine.connect() as connection:
                assert epsilon(connection) == "0.1"
                connection.execute(sa.text("SET epsilon = 2"))
            assert con.execute("SHOW epsilon").fetchone() == ("epsilon", "0.1")


def test_urls(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with sa.create_engine("dpsql:///clinic.yaml?threads=1&memory_limit=1GB").connect() as connection:
        assert connection.dialect.name == "dpsql" and sa.inspect(connection).has_table("visits")
        connection.engine.dispose()
    for url, said in {
        "dpsql://": "names a policy file",
        "dpsql://host/clinic.yaml": "names a policy file",
        "dpsql:///clinic.yaml?epsilom=1": "not epsilom",
        "dpsql:///clinic.yaml?threads=many": "threads in a dpsql URL is a whole number",
    }.items():
        with pytest.raises(sa.exc.ArgumentError, match=said):
            sa.create_engine(url).connect()
    for url in ("dpsql:///nothing.yaml", "dpsql:///clinic.yaml?epsilon=-1"):
        with pytest.raises(sa.exc.DBAPIError) as refusal:
            sa.create_engine(url).connect()
        assert isinstance(refusal.value.orig, dpsql.Error)


def test_an_engine_holds_one_connection_which_threads_share(folder: Path) -> None:
    engine = sa.create_engine(f"dpsql:///{folder}/clinic.yaml?epsilon=400", pool_pre_ping=True)
    begin = threading.Barrier(4)

    def ask(age: int) -> tuple[int, int]:
        begin.wait(60)
        with engine.connect() as connection:
            counted = connection.execute(sa.text("SELECT COUNT(*) FROM patients WHERE age < :age"), {"age": age})
            return id(connection.connection.dbapi_connection), counted.scalar_one()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, (8, 16, 24, 32)))
    assert len({which for which, _ in found}) == 1 and [n for _, n in found] == [200, 400, 600, 800]
    engine.dispose()


def test_a_connection_of_ones_own(folder: Path) -> None:
    """Of a policy built in code, or over frames."""
    con = dpsql.connect(folder / "clinic.yaml", epsilon=400)
    engine = sa.create_engine("dpsql://", creator=lambda: con)
    assert scalar(engine, sa.text("SELECT COUNT(*) FROM patients")) == ROWS
    con.close()
    with engine.connect() as connection, pytest.raises(sa.exc.ProgrammingError):
        connection.execute(sa.text("SELECT COUNT(*) FROM patients"))


def test_the_entry_point_is_installed() -> None:
    from sqlalchemy.dialects import registry

    assert registry.load("dpsql").__name__ == "DpsqlDialect"
