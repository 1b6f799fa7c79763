"""`dpsql check` of what is not SQL yet: compiled dbt projects, Jinja templates; from options and from configuration."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsql.faces.cli.main import main

TESTS = Path(__file__).resolve().parents[3]
POLICY = str(TESTS / "fixtures" / "policies" / "pages.yaml")
PROJECT = TESTS / "faces" / "check" / "dbt" / "clinic"

Check = Callable[..., tuple[int, str, str]]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """In a folder with a dbt project and a template."""
    shutil.copytree(PROJECT, tmp_path / "dbt", ignore=shutil.ignore_patterns("target-*"))
    shutil.copytree(PROJECT / "target-v12", tmp_path / "dbt" / "target")
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "a.sql").write_text("SELECT {{ what }}(fee) FROM visits\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["check", *arguments])
        return status, *capsys.readouterr()

    return run


def test_a_dbt_project(check: Check) -> None:
    status, out, _ = check("--dbt", "dbt", "--policy", POLICY, "--output-format", "concise")
    assert status == 1
    assert out.splitlines()[0].startswith("dbt/models/marts/cost_by_region.sql:2:12: DP201 ")
    assert len(out.splitlines()) == 5


def test_some_of_its_models(check: Check) -> None:
    assert check("--dbt", "dbt", "dbt/analyses", "--policy", POLICY)[0] == 0
    status, out, _ = check("--dbt", "dbt", "dbt/models/marts/wards.sql", "--policy", POLICY, "--output-format", "json")
    (record,) = json.loads(out)
    assert (status, record["path"], record["line"], record["fix"]) == (1, "dbt/models/marts/wards.sql", 15, None)
    status, _, err = check("--dbt", "dbt", "queries", "--policy", POLICY)
    assert status == 2 and "no *.sql file in queries" in err


def test_not_compiled(check: Check) -> None:
    shutil.rmtree("dbt/target")
    status, out, err = check("--dbt", "dbt", "--policy", POLICY)
    assert (status, out) == (2, "") and "dbt compile" in err


def test_dbt_from_the_configuration(check: Check) -> None:
    text = f'policy = "{POLICY}"\ndbt = "dbt"\ncache = false\n[dbt-tables]\n"raw.visits" = "letters"\n'
    Path("dpsql.toml").write_text(text, encoding="utf-8")
    status, out, _ = check("--output-format", "concise", "dbt/models/marts/cost_by_region.sql")
    assert status == 1 and "DP103 column " in out


def test_templates(check: Check) -> None:
    arguments = ("queries", "--policy", POLICY, "--templater", "jinja", "--output-format", "concise")
    status, out, _ = check(*arguments, "--template-var", "what=SUM")
    assert status == 1 and out.startswith("queries/a.sql:1:19: DP201 SUM(fee)")
    assert check(*arguments, "--template-var", "what=COUNT")[0] == 0
    status, out, err = check(*arguments)
    assert (status, out) == (2, "") and "uses what, which is not given" in err
    status, _, err = check(*arguments, "--template-var", "what")
    assert status == 2 and "NAME=VALUE" in err


def test_templates_from_the_configuration(check: Check) -> None:
    text = (
        f'[tool.dpsql]\npolicy = "{POLICY}"\ntemplater = "jinja"\ncache = false\n[tool.dpsql.templates]\nwhat = "AVG"\n'
    )
    Path("pyproject.toml").write_text(text, encoding="utf-8")
    status, out, _ = check("queries", "--output-format", "concise")
    assert status == 1 and "DP201 AVG(fee)" in out
    assert check("queries", "--template-var", "what=COUNT")[0] == 0


@pytest.mark.parametrize(
    "text", ["SELECT {{ what }} FROM visits", "SELECT {% if x %}1{% endif %}", "{{ config() }} SELECT 1"]
)
def test_a_tag_without_a_templater_says_how_to_render_it(text: str, check: Check) -> None:
    Path("queries/a.sql").write_text(text, encoding="utf-8")
    status, out, _ = check("queries", "--policy", POLICY)
    assert status == 1 and "opens a tag of a template" in out and "--templater jinja" in out
    Path("queries/a.sql").write_text("SELECT COUNT(*) FROM visits WHERE ward = '{{ }}' -- {{", encoding="utf-8")
    assert check("queries", "--policy", POLICY)[0] == 0
