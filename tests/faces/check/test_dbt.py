"""dbt projects as three versions of dbt compiled them: what is checked, and where its findings are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.check.documents.dbt import CheckedProject, read_models
from dpsql.faces.check.documents.dbt_project import parts_of, read_project
from dpsql.faces.check.examine.examine_text import TextOptions, check_document
from dpsql.policy.load import load_policy
from dpsql.policy.policy import Policy

HERE = Path(__file__).resolve().parent
PROJECT = HERE / "dbt" / "clinic"
MANIFESTS = ["target-v10", "target-v11", "target-v12"]


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(HERE.parents[1] / "fixtures" / "policies" / "pages.yaml")


def found(checked: CheckedProject, policy: Policy, root: Path = PROJECT) -> dict[str, list[Diagnostic]]:
    """File in the project → its findings."""
    options = TextOptions(dialect=checked.dialect)
    return {
        Path(d.name).relative_to(root).as_posix(): [f.diagnostic for f in check_document(d, policy, options)]
        for d in checked.documents
    }


def place(diagnostic: Diagnostic) -> str:
    assert diagnostic.source is not None and diagnostic.span is not None
    line, column = diagnostic.source.position(diagnostic.span.start)
    text = diagnostic.source.text[diagnostic.span.start : diagnostic.span.end]
    return f"{diagnostic.code} {line}:{column} {text}"


EXPECTED = {
    "analyses/patients.sql": [],
    "models/marts/cost_by_region.sql": ["DP201 2:12 v.fee"],
    "models/marts/letters.sql": ["DP110 2:52 {{ source('hospital', 'patients') }}"],
    "models/marts/long_visits.sql": ["DP103 5:27 costs"],
    "models/marts/pages_sent.sql": ["DP211 1:8 SUM(pages)"],
    "models/marts/visits_by_ward.sql": [],
    "models/marts/wards.sql": ["DP201 15:9 visits.fee"],
}


@pytest.mark.parametrize("target", [*MANIFESTS, "target-files"])
def test_findings_are_at_their_places_in_the_models(target: str, policy: Policy) -> None:
    """Views and ephemeral models are followed through; a model that the policy declares is its table; disabled models,
    tests, and models that others are built on are not checked alone."""
    reported = found(read_models(PROJECT, policy, target=target), policy)
    assert {name: [place(d) for d in diagnostics] for name, diagnostics in reported.items()} == EXPECTED


def test_what_dbt_made_is_named_by_its_file(policy: Policy) -> None:
    reported = found(read_models(PROJECT, policy, target="target-v12"), policy)
    (finding,) = reported["models/marts/letters.sql"]
    assert "made by dbt: target/compiled/clinic/models/marts/letters.sql:2:52" in finding.notes
    (exact,) = reported["models/marts/cost_by_region.sql"]
    assert not any("dbt" in note for note in exact.notes)


def test_the_warehouse_names_the_dialect(tmp_path: Path, policy: Policy) -> None:
    def snowflake(manifest: dict[str, Any]) -> None:
        manifest["metadata"]["adapter_type"] = "snowflake"

    assert read_models(changed(tmp_path, snowflake), policy).dialect == "snowflake"
    assert read_models(PROJECT, policy, "postgres", target="target-v12").dialect == "postgres"


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of the project with another manifest."""
    root = folder / "clinic"
    shutil.copytree(PROJECT, root, ignore=shutil.ignore_patterns("target-*"))
    manifest = json.loads((PROJECT / "target-v12" / "manifest.json").read_text())
    change(manifest)
    (root / "target").mkdir()
    (root / "target" / "manifest.json").write_text(json.dumps(manifest))
    return root


def model(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    return next(node for node in manifest["nodes"].values() if node["name"] == name)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m["metadata"].update(dbt_schema_version="https://schemas.getdbt.com/dbt/manifest/v9.json"), "form"),
        (lambda m: m.update(metadata=[]), "metadata is missing"),
        (lambda m: m.pop("nodes"), "nodes is missing"),
        (lambda m: m.update(nodes={}), "lists no SQL model"),
        (lambda m: model(m, "letters").pop("compiled_code"), "not compiled: models/marts/letters.sql"),
        (lambda m: model(m, "letters").update(raw_code="SELECT 2"), "letters.sql has changed since it was compiled"),
        (lambda m: model(m, "letters").update(original_file_path="../x.sql"), "outside of the project"),
        (lambda m: model(m, "letters").update(original_file_path="models/gone.sql"), "is gone since"),
        (lambda m: model(m, "letters").pop("name"), "model.clinic.letters.name is missing"),
    ],
)
def test_what_is_used_must_have_the_right_form(
    change: Callable[[dict[str, Any]], object], words: str, tmp_path: Path, policy: Policy
) -> None:
    with pytest.raises(Rejected) as refusal:
        read_models(changed(tmp_path, change), policy)
    (diagnostic,) = refusal.value.diagnostics
    assert diagnostic.code == "DP903" and words in diagnostic.message
    assert any("dbt" in text for text in diagnostic.help)


def test_unknown_fields_and_nodes_do_not_matter(tmp_path: Path, policy: Policy) -> None:
    def more(manifest: dict[str, Any]) -> None:
        manifest["surprise"] = [1]
        model(manifest, "letters")["surprise"] = {}
        manifest["nodes"]["seed.clinic.codes"] = {"resource_type": "seed", "name": "codes"}
        python = {**model(manifest, "letters"), "language": "python", "compiled_code": None, "name": "python_model"}
        manifest["nodes"]["model.clinic.python_model"] = python
        foreign = {**model(manifest, "letters"), "package_name": "other", "name": "foreign"}
        manifest["nodes"]["model.other.foreign"] = foreign

    root = changed(tmp_path, more)
    assert set(found(read_models(root, policy), policy, root)) == set(EXPECTED)


@pytest.mark.parametrize("ctes", [5, {}, "SELECT 1", [{"sql": ""}], [{"sql": 1}, 2]])
def test_ephemeral_models_of_another_form_are_none(ctes: object, tmp_path: Path, policy: Policy) -> None:
    root = changed(tmp_path, lambda m: model(m, "letters").update(extra_ctes=ctes))
    assert set(found(read_models(root, policy), policy, root)) == set(EXPECTED)


def test_no_name_of_a_model_becomes_sql(tmp_path: Path, policy: Policy) -> None:
    """The name of a file is its model's: what follows `--` in it must not take the rest of a line with it."""
    shown = {}
    for name in ("e", "e AS (SELECT 1) -- "):

        def more(manifest: dict[str, Any], name: str = name) -> None:
            below = {**model(manifest, "letters"), "name": name, "relation_name": '"w"."s"."e"'}
            below |= {"compiled_code": "SELECT fee FROM visits", "raw_code": None}
            manifest["nodes"]["model.clinic.e"] = below
            model(manifest, "letters").update(
                compiled_code="SELECT COUNT(*) FROM w.s.e WHERE fee > (SELECT SUM(fee) FROM visits)", raw_code=None
            )

        root = changed(tmp_path / str(len(name)), more)
        shown[name] = [place(d) for d in found(read_models(root, policy), policy, root)["models/marts/letters.sql"]]
    first, second = shown.values()
    assert first and first == second


def test_a_model_may_say_whether_it_is_checked(tmp_path: Path, policy: Policy) -> None:
    def said(manifest: dict[str, Any]) -> None:
        model(manifest, "letters")["config"]["meta"] = {"dpsql": {"check": False}}
        model(manifest, "int_long_visits")["config"]["meta"] = {"dpsql": {"check": True}}

    root = changed(tmp_path, said)
    names = set(found(read_models(root, policy), policy, root))
    assert names == {*EXPECTED, "models/marts/int_long_visits.sql"} - {"models/marts/letters.sql"}


def test_a_test_is_checked_if_it_says_so(tmp_path: Path, policy: Policy) -> None:
    """One that has a file of its own; and a model that a test reads is checked as before."""

    def said(manifest: dict[str, Any]) -> None:
        for node in manifest["nodes"].values():
            if node["resource_type"] == "test":
                node["config"]["meta"] = {"dpsql": {"check": True}}
                node["compiled_code"] = 'SELECT ward FROM "clinic"."main"."visits_by_ward" WHERE ward IS NULL'

    before = [d.name for d in read_models(PROJECT, policy, target="target-v12").documents]
    folder = changed(tmp_path, said)
    names = [str(Path(d.name).relative_to(folder)) for d in read_models(folder, policy).documents]
    expected = [str(Path(name).relative_to(PROJECT)) for name in before]
    assert names == sorted([*expected, str(Path("tests", "no_negative_cost.sql"))])


def test_not_compiled_names_the_command(tmp_path: Path, policy: Policy) -> None:
    for folder in ("nothing", "empty"):
        (tmp_path / folder).mkdir()
    (tmp_path / "empty" / "target" / "compiled").mkdir(parents=True)
    for folder in ("nothing", "empty"):
        with pytest.raises(Rejected) as refusal:
            read_models(tmp_path / folder, policy)
        assert "dbt compile" in refusal.value.diagnostics[0].help[0]
    (tmp_path / "nothing" / "target").mkdir()
    (tmp_path / "nothing" / "target" / "manifest.json").write_text("{")
    with pytest.raises(Rejected, match="cannot be read as JSON"):
        read_project(tmp_path / "nothing")


def test_names_of_the_warehouse_may_be_given_others(policy: Policy) -> None:
    named = {"raw.visits": "letters"}
    documents = {
        Path(d.name).stem: d.text for d in read_models(PROJECT, policy, tables=named, target="target-v12").documents
    }
    assert "FROM letters AS v\n" in documents["cost_by_region"]
    with pytest.raises(Rejected, match="no table of the policy"):
        read_models(PROJECT, policy, tables={"raw.visits": "nowhere"}, target="target-v12")


def test_names_of_relations() -> None:
    assert parts_of('"Clinic"."raw"."visits"') == ("clinic", "raw", "visits")
    assert parts_of("`project.data.visits`") == ("project", "data", "visits")
    assert parts_of("[clinic].[dbo].[visits]") == ("clinic", "dbo", "visits")
    assert parts_of("CLINIC.RAW.VISITS") == ("clinic", "raw", "visits")


def test_the_clinic_itself_is_not_touched(tmp_path: Path, policy: Policy) -> None:
    """Line ends of Windows, in the file alone: dbt reads them as its own."""
    root = changed(tmp_path, lambda manifest: None)
    path = root / "models" / "marts" / "cost_by_region.sql"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    (finding,) = found(read_models(root, policy), policy, root)["models/marts/cost_by_region.sql"]
    assert place(finding) == "DP201 2:12 v.fee"
