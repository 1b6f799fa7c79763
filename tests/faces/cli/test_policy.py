"""`dpsql policy …` and `dpsql rule`."""

from __future__ import annotations

import gzip
import json
import re
from fractions import Fraction
from pathlib import Path

import duckdb
import jsonschema
import pytest
from ruamel.yaml import YAML

from dpsql.policy.load import load_policy
from tests.support.command_line import Call, Clinic
from tests.support.drafts import decide


def test_every_mistake_is_shown_with_its_place(dpsql: Call, clinic: Clinic) -> None:
    clinic.change("bounds: [0, 110]", "bounds: [110, 0]")
    clinic.change("neighbours: add_remove ", "neighbours: sometimes ")
    done = dpsql("policy", "check", clinic.policy)
    assert done.status == 2 and done.out == "" and done.err.count("error[DP003]") == 2
    assert f"--> {clinic.policy}:9:" in done.err and "tables.patients.columns.age" in done.err


def test_a_valid_policy(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("policy", "check", clinic.policy)
    assert done.status == 0 and "policy clinic is valid: 3 tables (1 public), 1 unit, 17 promises" in done.out
    assert "the data agrees" not in done.out
    assert "the data agrees" in dpsql("policy", "check", clinic.policy, "--data").out
    clinic.change("town:       {type: varchar}", "city:       {type: varchar}")
    assert dpsql("policy", "check", clinic.policy).status == 0
    done = dpsql("policy", "check", clinic.policy, "--data")
    assert done.status == 2 and done.codes == {"DP004"} and "city" in done.err


def test_what_a_valid_policy_leaves_open_is_told(dpsql: Call, clinic: Clinic) -> None:
    """By the check of the policy, once; a query says nothing of it."""
    clinic.change("town:       {type: varchar}", "town:       {type: varchar, domain: [here, there]}")
    done = dpsql("policy", "check", clinic.policy)
    assert done.status == 0 and "policy clinic is valid" in done.out
    assert done.err.count("warning[DP007]") == 1 and "patients.town" in done.err and "dpsql rule DP007" in done.err
    done = dpsql("query", clinic.policy, "SELECT COUNT(*) AS n FROM patients", "--epsilon", "0.1")
    assert done.status == 0 and "DP007" not in done.err


def test_what_a_new_version_changes_is_told_with_what_to_do(
    dpsql: Call, clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is asked for; test_version_0_1.py has a ledger of an older version, which tells by itself."""
    assert "has changed" not in dpsql("policy", "check", clinic.policy).out
    asked = ("policy", "check", clinic.policy, "--since", "0.1")
    assert "intervals:" not in dpsql(*asked).out  # nobody has more than the limits
    clinic.change("{rows: 12, nobody_has_more: true}", "40")
    monkeypatch.setattr(duckdb, "__version__", "1.4.1")
    done = dpsql(*asked)
    assert done.status == 0 and "since 0.1 has changed, for this policy:" in done.out
    found = re.findall(r"^  (\w[\w ]*): .*\n    do: (.+)$", done.out, re.MULTILINE)
    assert [what for what, _ in found] == ["intervals", "failures", "engine"] and all(to_do for _, to_do in found)
    assert "visits" in done.out and "pip install 'duckdb>=2.0.1,<2.1'" in done.out
    done = dpsql("policy", "check", clinic.policy, "--since", "0.0")
    assert done.status != 0 and done.codes == {"DP903"} and "--since 0.1" in done.err


def test_what_auto_would_find_is_told(dpsql: Call, clinic: Clinic) -> None:
    """Where a policy says nothing of searches: a limit of 16 rows or more, and numbers without bounds."""
    clinic.change("{rows: 12, nobody_has_more: true}", "40")
    clinic.change("search: auto                 #", "#")
    done = dpsql("policy", "check", clinic.policy)
    found = "how many of at most 40 rows count in visits; bounds of visits.surcharge"
    assert done.status == 0 and f"`search: auto` would find, unasked: {found}\n" in done.out
    assert "dpsql policy diff OLD NEW" in done.out
    for said, told in (("allow", True), ("auto", False), ("refuse", False)):
        clinic.change("version: 1", f"version: 1\nsearch: {said}")
        assert ("would find" in dpsql("policy", "check", clinic.policy).out) is told
        clinic.change(f"\nsearch: {said}", "")
    clinic.change("max_rows_per_unit: 40", "max_rows_per_group: 4\n    max_groups_per_unit: 5")
    assert (
        "how many of at most 4 × 5 rows count in public groups of visits" in dpsql("policy", "check", clinic.policy).out
    )


def test_columns_of_hive_partitions_may_be_null(dpsql: Call, tmp_path: Path) -> None:
    """A folder `__HIVE_DEFAULT_PARTITION__` is NULL, whatever the others are called."""
    with duckdb.connect() as con:
        rows = "SELECT i AS id, CASE WHEN i > 0 THEN 'r' || i END AS region FROM range(3) AS t(i)"
        con.execute(f"COPY ({rows}) TO '{tmp_path / 'out'}' (FORMAT parquet, PARTITION_BY (region))")
        pattern = f"{tmp_path / 'out'}/*/*.parquet"
        assert con.execute(f"SELECT COUNT(*) FROM '{pattern}' WHERE region IS NULL").fetchone() == (1,)
    assert dpsql("policy", "init", pattern, "--name", "hive", "-o", tmp_path / "hive.yaml").status == 0
    (table,) = load_policy(tmp_path / "hive.yaml").tables.values()
    region = table.column("region")
    assert region is not None and region.is_nullable


@pytest.mark.parametrize("given", ["rides", "rides/", "rides/**/*.parquet"])
def test_a_folder_of_partitions_is_drafted_and_answers(
    given: str, dpsql: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect() as con:
        rows = "SELECT i AS rider, 2020 + i % 2 AS year, 1 + i % 3 AS month FROM range(12) AS t(i)"
        con.execute(f"COPY ({rows}) TO 'rides' (FORMAT parquet, PARTITION_BY (year, month))")
    (tmp_path / "rides" / "_SUCCESS").write_text("")
    assert dpsql("policy", "init", given, "-o", "draft.yaml").status == 0
    decide("draft.yaml")
    policy = load_policy(tmp_path / "draft.yaml")
    assert list(policy.tables) == ["rides"] and policy.defaults.epsilon == Fraction(1, 10)
    assert {n: (str(c.type), c.is_nullable) for n, c in policy.tables["rides"].columns.items()} == {
        "rider": ("bigint", True), "month": ("bigint", True), "year": ("bigint", True),
    }  # fmt: skip
    assert dpsql("query", "draft.yaml", "SELECT COUNT(*) FROM rides WHERE year = 2020").status == 0


def test_folders_of_one_table_or_of_several(dpsql: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("parts/part-0.csv", "parts/part-1.csv", "several/people.csv", "several/visits.csv", "none/a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("id\n1\n2\n")
    assert "read_csv('parts/*.csv'" in dpsql("policy", "init", "parts").out
    assert {"  people:", "  visits:"} < set(dpsql("policy", "init", "several").out.splitlines())
    assert dpsql("policy", "init", "none").codes == {"DP006"}


def test_a_german_csv_is_drafted_and_answers(dpsql: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kunden.csv").write_text("Nr;Straße;Umsatz;Datum\n1;Weg;1,50;31.12.2023\n", encoding="latin-1")
    assert dpsql("policy", "init", "kunden.csv", "-o", "draft.yaml").status == 0
    decide("draft.yaml")
    columns = load_policy(tmp_path / "draft.yaml").tables["kunden"].columns
    assert [c.type for c in columns.values()] == ["bigint", "varchar", "double", "date"]
    sql = "SELECT SUM(CLIP(Umsatz, 0, 10)) AS s FROM kunden WHERE Datum = '2023-12-31' AND Straße = 'Weg'"
    assert dpsql("query", "draft.yaml", sql).status == 0


def test_compressed_files_are_called_as_what_they_hold(
    dpsql: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    for name in ("d/part-1.csv.gz", "people.csv.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b"id;v\n1;2,5\n2;3,5\n"))
    assert dpsql("policy", "init", "people.csv.gz", "d", "-o", "draft.yaml").status == 0
    decide("draft.yaml")
    policy = load_policy(tmp_path / "draft.yaml")
    assert set(policy.tables) == {"people", "d"} and policy.name == tmp_path.name, "the folder of both"
    for table in policy.tables:
        assert dpsql("query", "draft.yaml", f"SELECT COUNT(*) FROM {table} WHERE v > 3").status == 0


def test_views_are_left_out_of_a_draft_that_answers(
    dpsql: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As rows of a unit of their own they would have a second budget for the same rows."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("d.duckdb") as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS x; COPY t TO 'p.parquet'; CREATE VIEW v AS SELECT * FROM t")
        con.execute("CREATE VIEW p AS SELECT * FROM 'p.parquet'; CREATE VIEW q AS SELECT x + 1 AS x FROM 'p.parquet'")
    done = dpsql("policy", "init", "d.duckdb", "-o", "draft.yaml")
    assert done.status == 0
    decide("draft.yaml")
    policy = load_policy(tmp_path / "draft.yaml")
    assert {name: str(table.source) for name, table in policy.tables.items()} == {
        "p": "read_parquet('p.parquet')", "t": "None",
    }  # fmt: skip
    text = (tmp_path / "draft.yaml").read_text()
    assert "# v: a view of t." in text and "# q: a view of files" in text
    assert dpsql("policy", "check", "draft.yaml", "--data").status == 0
    assert dpsql("query", "draft.yaml", "SELECT COUNT(*) FROM p").status == 0


def test_the_schema_accepts_the_demo_policy(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    schema = json.loads(dpsql("policy", "schema").out)
    with open(clinic.policy, encoding="utf-8") as file:
        document = json.loads(json.dumps(YAML(typ="safe", pure=True).load(file), default=str))
    jsonschema.validate(document, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "bogus": 1}, schema)
    assert dpsql("policy", "schema", "-o", tmp_path / "s.json").status == 0
    assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8")) == schema


def test_audit_and_show(dpsql: Call, clinic: Clinic, root: Path) -> None:
    text = dpsql("policy", "audit", clinic.policy).out
    assert "rests on 17 promises" in text and "tables.visits.unique[0]" in text
    found = json.loads(dpsql("policy", "audit", clinic.policy, "--format", "json").out)
    assert len(found["promises"]) == 17 and set(found["promises"][0]) == {
        "kind",
        "where",
        "claim",
        "when_false",
        "unit",
        "page",
    }
    assert all((root / p["page"]).is_file() and p["page"] in text for p in found["promises"])
    text = dpsql("policy", "show", clinic.policy).out
    assert "total of patient" in text and "at most 12 rows per unit [enforced]" in text
    assert dpsql("policy", "show", clinic.policy, "VISITS").out.startswith("visits: unit patient")
    found = json.loads(dpsql("policy", "show", clinic.policy, "visits", "--format", "json").out)
    assert found["columns"]["cost"]["bounds"] == ["0", "1000"]
    done = dpsql("policy", "show", clinic.policy, "vists")
    assert done.status == 1 and "did you mean `visits`?" in done.err


def test_an_account_without_delta_is_told_and_its_refusal_names_what_helps(dpsql: Call, clinic: Clinic) -> None:
    clinic.change("ana: {epsilon: 3, delta: 1e-7, per_query: {max_epsilon: 1}}", "ana: {epsilon: 3}")
    done = dpsql("policy", "check", clinic.policy)
    assert done.status == 0 and "warning[DP015]: budgets.analysts.ana: a δ that is left out is 0" in done.err
    assert "ε 3, δ 0 of each unit; what needs a δ is refused" in dpsql("policy", "show", clinic.policy).out
    towns = "SELECT town, COUNT(*) AS n FROM patients GROUP BY town"
    done = dpsql("query", clinic.policy, towns, "--analyst", "ana", "--epsilon", "0.001")
    assert done.codes == {"DP404"} and "give budgets.analysts.ana a delta" in done.err
    assert "larger delta" not in done.err and "use an ε" not in done.err and "use epsilon" not in done.err


def test_whom_the_policy_does_not_name_is_refused_once(dpsql: Call, clinic: Clinic) -> None:
    clinic.change('    "*": {epsilon: 0.5, delta: 1e-8}', "    # nobody else")
    done = dpsql("query", clinic.policy, "SELECT COUNT(*) AS n FROM patients", "--analyst", "zoe")
    assert done.codes == {"DP404"} and done.err.count("error[") == 1 and "raise" not in done.err
    (pasted,) = re.findall(r'or let everybody ask:  ("\*": \{.*\})', done.err)
    dry = dpsql("policy", "suggest", clinic.policy, "visits", "--all", "--dry-run")
    assert dry.status == 0 and "charged to" not in dry.err and "the run would be refused: " in dry.err
    clinic.change("    # nobody else", f"    {pasted}")
    done = dpsql("query", clinic.policy, "SELECT COUNT(*) AS n FROM patients", "--analyst", "zoe", "--epsilon", "0.1")
    assert done.status == 0, done.err


def test_a_wrong_key_and_ids_of_another_type_have_repairs_for_their_place(dpsql: Call, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as con:
        con.execute("CREATE TABLE patients AS SELECT i AS patient_id, i % 2 AS region FROM range(20) t(i)")
        con.execute("CREATE TABLE visits AS SELECT i AS visit_id, (i % 20)::VARCHAR AS patient_id FROM range(50) t(i)")
    head = "version: 1\nname: d\ndatabase: d.duckdb\nbudgets: {total: {epsilon: 1}}\n"
    head += (
        "units: {patient: {table: patients, key: patient_id}}\ntables:\n  patients:\n    unit: {column: patient_id}\n"
    )
    text = (
        head
        + "    primary_key: [patient_id]\n"
        + "    columns: {patient_id: {type: bigint}, region: {type: bigint}}\n  visits:\n"
    )
    text += "    unit: {column: patient_id} #\n    columns: {visit_id: {type: bigint}, patient_id: {type: TYPE}}\n"
    file = tmp_path / "d.yaml"
    for type_, code in (("bigint", "DP004"), ("varchar", "DP003")):
        file.write_text(text.replace("TYPE", type_), encoding="utf-8")
        done = dpsql("policy", "check", file, "--data")
        assert done.codes == {code}
        (unit,) = re.findall(r"in tables\.visits, in place of its unit:  (unit: \{.*\})", done.err)
        file.write_text(text.replace("TYPE", type_).replace("unit: {column: patient_id} #", unit), encoding="utf-8")
        assert dpsql("policy", "check", file, "--data").status == 0
    file.write_text(file.read_text("utf-8").replace("primary_key: [patient_id]", "primary_key: [region]"), "utf-8")
    done = dpsql("policy", "verify", file)
    assert done.status == 1 and "name the columns that do make a row of patients its own:  primary_key: […]" in done.out
    assert "choose no limits or bounds by these numbers" in done.out and "policy suggest" in done.out
