"""Opening: what is found, what is refused, and that a refusal is a sentence with a repair."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

from dpsql.core.engine import engine_failed
from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.files.unreadable_files import refusal


def refused(folder: Path, database: str | None, sources: dict[str, str] | None = None, **options: object) -> CannotOpen:
    with pytest.raises(CannotOpen) as caught:
        DuckDBEngine.open(None if database is None else Path(database), sources or {}, folder, **options)  # type: ignore[arg-type]
    error = caught.value
    assert [d.code for d in error.diagnostics] == ["DP006"]
    assert error.diagnostics[0].help
    assert error.__cause__ is None and error.__context__ is None
    return error


def said(error: CannotOpen) -> str:
    return error.diagnostics[0].message


def test_names_are_found_in_any_case_and_by_schema(engine: DuckDBEngine) -> None:
    assert engine.table_sql("patients") == '"data"."main"."Patients"'
    assert engine.table_sql("MAIN.patients") == '"data"."main"."Patients"'
    assert engine.table_sql("ref.CODES") == '"data"."ref"."codes"'
    assert engine.table_sql("people") == '"memory"."main"."people"'
    assert engine.table_sql("adults") == '"data"."main"."adults"'
    assert engine.fetch(f"SELECT age FROM {engine.table_sql('adults')} ORDER BY 1").columns == ([30, 40],)
    assert engine.fetch(f"SELECT part FROM {engine.table_sql('parts')} ORDER BY 1").columns == ([0, 1, 2],)
    for name in ("nobody", "codes", "information_schema.tables", "duckdb_tables", "sqlite_master", "data.main.x"):
        with pytest.raises(CannotOpen) as caught:
            engine.table_sql(name)
        assert caught.value.diagnostics[0].code == "DP004"


def test_a_source_hides_a_stored_table_of_its_name(folder: Path) -> None:
    engine = DuckDBEngine.open(Path("clinic.duckdb"), {"PATIENTS": "read_csv('people.csv')"}, folder)
    assert engine.table_sql("patients") == '"memory"."main"."PATIENTS"'
    assert [t.name for t in engine.describe().tables].count("Patients") == 0
    engine.close()


def test_names_that_need_quotes(folder: Path) -> None:
    with duckdb.connect(str(folder / "odd.duckdb")) as con:
        con.execute('CREATE TABLE "a ""b"".c; --" AS SELECT 7 AS x')
    engine = DuckDBEngine.open(Path("odd.duckdb"), {'s"x': "read_parquet('parts/p1.parquet')"}, folder)
    assert engine.fetch("SELECT x FROM " + engine.table_sql('A "b".c; --')).columns == ([7],)
    assert engine.fetch("SELECT * FROM " + engine.table_sql('s"x')).columns == ([1],)
    engine.close()


def test_describe_tells_the_schema_only(engine: DuckDBEngine) -> None:
    catalogue = engine.describe()
    assert [t.name for t in catalogue.tables] == ["adults", "parts", "Patients", "people", "ref.codes", "visits"]
    patients, visits = catalogue.table("patients"), catalogue.table("visits")
    assert patients is not None and visits is not None
    assert [(c.name, c.type, c.nullable) for c in patients.columns] == [
        ("id", "BIGINT", False),
        ("name", "VARCHAR", False),
        ("age", "INTEGER", True),
        ("u", "INTEGER", True),
    ]
    assert (patients.primary_key, patients.unique, patients.foreign_keys) == (("id",), (("u",),), ())
    assert [(k.columns, k.table, k.references) for k in visits.foreign_keys] == [(("patient",), "Patients", ("id",))]
    assert visits.columns[1].type == "DECIMAL(18,2)"
    assert "271828182" not in repr(catalogue)


def test_a_relative_path_is_relative_to_the_folder_and_not_to_here(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    engine = DuckDBEngine.open(Path("clinic.duckdb"), {"people": "read_csv('./parts/../people.csv')"}, folder)
    assert engine.fetch(f"SELECT COUNT(*) FROM {engine.table_sql('people')}").columns == ([3],)
    engine.close()


def test_links_and_quotes_in_paths(folder: Path) -> None:
    (folder / "it's").mkdir()
    os.symlink(folder / "people.parquet", folder / "it's" / "linked.parquet")
    os.rename(folder / "clinic.duckdb", folder / "it's" / "clinic.duckdb")
    source = "read_parquet('it''s/linked.parquet')"
    engine = DuckDBEngine.open(Path("it's/clinic.duckdb"), {"people": source}, folder)
    assert engine.fetch(f"SELECT COUNT(*) FROM {engine.table_sql('people')}").columns == ([3],)
    engine.close()


def test_databases_that_cannot_be_opened(folder: Path) -> None:
    (folder / "junk.duckdb").write_bytes(b"hello" * 2000)
    (folder / "empty.duckdb").touch()
    whole = (folder / "clinic.duckdb").read_bytes()
    (folder / "cut.duckdb").write_bytes(whole[:6000])
    (folder / "flipped.duckdb").write_bytes(whole[:40] + b"\xff" + whole[41:])
    assert said(refused(folder, "nowhere.duckdb")) == "database `nowhere.duckdb` does not exist"
    assert said(refused(folder, "parts")) == "database `parts` is a folder"
    assert said(refused(folder, "junk.duckdb")) == "database `junk.duckdb` is not a DuckDB database file"
    assert said(refused(folder, "empty.duckdb")) == "database `empty.duckdb` is not a DuckDB database file"
    assert said(refused(folder, "people.parquet")) == "database `people.parquet` is a Parquet file"
    for name in ("cut.duckdb", "flipped.duckdb"):
        assert "damaged" in said(refused(folder, name))


def test_an_encrypted_database_is_named_as_such(folder: Path) -> None:
    with duckdb.connect() as con:
        con.execute("SET force_mbedtls_unsafe = 'true'")
        con.execute(f"ATTACH '{folder}/secret.duckdb' AS s (ENCRYPTION_KEY 'k')")
        con.execute("CREATE TABLE s.t AS SELECT 1 AS x")
    assert said(refused(folder, "secret.duckdb")) == "database `secret.duckdb` is encrypted"


def test_what_duckdb_says_of_other_versions_is_understood() -> None:
    newer = "IO Error: Trying to read a database file with version number 69, but we can only read versions between "
    newer += "64 and 68. The database file was created with a newer version of DuckDB."
    assert refusal(newer, "1.5.0")[0] == "was written by a newer DuckDB than the installed 1.5.0"
    assert "old DuckDB" in refusal(newer.replace("a newer version", "an older version"), "1.5.0")[0]


def test_a_file_that_this_process_has_open_for_writing(folder: Path) -> None:
    with duckdb.connect(str(folder / "clinic.duckdb")):
        error = refused(folder, "clinic.duckdb")
    assert said(error) == "database `clinic.duckdb` is already open in this process with other settings"
    assert "dpsql.connect(connection" in error.diagnostics[0].help[0]
    DuckDBEngine.open(Path("clinic.duckdb"), {}, folder).close()


def test_two_engines_may_read_one_file(folder: Path) -> None:
    first = DuckDBEngine.open(Path("clinic.duckdb"), {}, folder)
    second = DuckDBEngine.open(Path("clinic.duckdb"), {}, folder)
    assert first.fetch(f"SELECT 1 FROM {first.table_sql('patients')}").height == 3
    first.close()
    assert second.fetch(f"SELECT 1 FROM {second.table_sql('patients')}").height == 3
    second.close()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("read_parquet('no.parquet')", "does not exist: 'no.parquet'"),
        ("read_parquet('no/*.parquet')", "matches no file: 'no/*.parquet'"),
        ("read_parquet(['people.parquet', 'parts/*.gone'])", "matches no file: 'parts/*.gone'"),
        ("read_parquet('parts')", "is a folder: 'parts'"),
        ("read_parquet('people.csv')", "cannot be read: read_parquet('people.csv')"),
        ("read_parquet('https://example.org/x.parquet')", "remote"),
        ("read_parquet(concat('a', 'b'))", "cannot be understood"),
        ("read_parquet('people.parquet') UNION SELECT 1", "cannot be understood"),
        ("read_text('people.csv')", "cannot be understood"),
        ("(SELECT * FROM read_csv('people.csv'))", "cannot be understood"),
        ("", "cannot be understood"),
        ("read_csv('people.csv', store_rejects = true)", "not supported: store_rejects"),
        ("read_parquet('people.parquet', encryption_config = {'footer_key': 'k'})", "not supported: encryption_config"),
        ("read_csv('people.csv', types = {'nobody': 'DATE'})", "cannot be read"),
    ],
)
def test_sources_that_cannot_be_opened(folder: Path, source: str, message: str) -> None:
    error = refused(folder, None, {"t": source})
    assert message in said(error) and "`t`" in said(error)


def test_a_file_named_like_a_pattern_is_refused(folder: Path) -> None:
    os.rename(folder / "people.parquet", folder / "people[1].parquet")
    assert "holds one of" in said(refused(folder, None, {"t": "read_parquet('people[1].parquet')"}))
    assert "holds one of" in said(refused(folder, None, {"t": "read_parquet('people*.parquet')"}))


def test_reader_options_reach_the_reader(folder: Path) -> None:
    (folder / "semi.csv").write_text("a;b\n1;x\n2;-\n")
    source = "read_csv('semi.csv', delim = ';', header = true, nullstr = '-', types = {'a': 'HUGEINT'})"
    engine = DuckDBEngine.open(None, {"semi": source}, folder)
    assert list(engine.fetch(f"SELECT * FROM {engine.table_sql('semi')} ORDER BY a").rows()) == [(1, "x"), (2, None)]
    assert engine.describe().tables[0].columns[0].type == "HUGEINT"
    engine.close()


def test_nothing_of_what_duckdb_says_of_a_file_is_shown(folder: Path) -> None:
    (folder / "bad.csv").write_text("a,b\n1,2\n271828182,3,4,5\n")
    error = refused(folder, None, {"t": "read_csv('bad.csv', columns = {'a': 'INTEGER', 'b': 'INTEGER'})"})
    shown = str(error.diagnostics) + str(error)
    assert "271828182" not in shown and "sniffing" not in shown and "Error:" not in shown


def test_running_out_of_memory_is_the_constant_error(folder: Path) -> None:
    engine = DuckDBEngine.open(Path("clinic.duckdb"), {}, folder, threads=1, memory_limit="32MB")
    with pytest.raises(EngineError) as caught:
        engine.fetch("SELECT length(string_agg(repeat('x', 1000) || i, '')) FROM range(200000) t(i)")
    assert caught.value.diagnostics == engine_failed().diagnostics
    assert engine.fetch("SELECT 1").columns == ([1],)
    engine.close()


def test_the_time_zone_is_pinned(engine: DuckDBEngine) -> None:
    assert engine.fetch("SELECT CAST(TIMESTAMPTZ '2024-01-01 12:00:00+00' AS VARCHAR)").columns == (
        ["2024-01-01 12:00:00+00"],
    )


def test_collations_are_refused(folder: Path) -> None:
    with duckdb.connect(str(folder / "clinic.duckdb")) as con:
        con.execute("CREATE TABLE loose (s VARCHAR COLLATE NOCASE)")
        con.execute("CREATE VIEW over AS SELECT * FROM loose")
    engine = DuckDBEngine.open(Path("clinic.duckdb"), {}, folder)
    for name in ("loose", "over"):
        with pytest.raises(CannotOpen, match="COLLATE"):
            engine.table_sql(name)
    assert engine.table_sql("patients")
    engine.close()


def test_a_view_that_wants_what_the_lock_took_away(folder: Path) -> None:
    with duckdb.connect(str(folder / "clinic.duckdb")) as con:
        con.execute(f"CREATE VIEW outside AS SELECT * FROM read_csv('{folder}/people.csv')")
    engine = DuckDBEngine.open(Path("clinic.duckdb"), {}, folder)
    with pytest.raises(CannotOpen) as caught:
        engine.table_sql("outside")
    assert caught.value.diagnostics[0].code == "DP006"
    engine.close()


def test_names_of_folders_that_are_of_another_type_are_null(tmp_path: Path) -> None:
    """To DuckDB, one such folder is an error of every query."""
    types = "hive_partitioning = true, hive_types = {'year': 'bigint', 'day': 'DATE'}"
    with duckdb.connect() as con:
        for folder in ("year=2024/day=2024-02-03", "year=x/day=2024-02-30", "year=__HIVE_DEFAULT_PARTITION__/day="):
            (tmp_path / "r" / folder).mkdir(parents=True)
            con.execute(f"COPY (SELECT -0.0::DOUBLE AS v) TO '{tmp_path}/r/{folder}/a.parquet'")
    engine = DuckDBEngine.open(None, {"r": f"read_parquet('r/**/*.parquet', {types})"}, tmp_path)
    table = engine.describe().table("r")
    assert table is not None and {c.name: (c.type, c.nullable) for c in table.columns} == {
        "v": ("DOUBLE", True), "year": ("BIGINT", True), "day": ("DATE", True),
    }  # fmt: skip
    found = engine.fetch(f"SELECT year, CAST(day AS VARCHAR), v FROM {engine.table_sql('r')} ORDER BY year NULLS LAST")
    assert list(found.rows()) == [(2024, "2024-02-03", 0.0), (None, None, 0.0), (None, None, 0.0)]
    engine.close()
    for wrong in (
        "hive_types = {'year': 'BIGINT) FROM x --'}",
        "hive_types = 'BIGINT'",
        "hive_types = {'a': 'BIGINT[]'}",
    ):
        with pytest.raises(CannotOpen, match="hive_types"):
            DuckDBEngine.open(
                None, {"r": f"read_parquet('r/**/*.parquet', hive_partitioning = true, {wrong})"}, tmp_path
            )
