"""The sample repository under examples/ci/, and what other repositories use of this one: hooks, action, CI files.

The outputs of `dpsql check` in every format are golden files. `pytest tests/deep/examples/test_ci.py --update`
rewrites.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pre_commit import clientlib
from ruamel.yaml import YAML

from dpsql.faces.check.report.formats import FORMATS
from dpsql.faces.cli.main import main
from tests.faces.check.formats.readers import READERS, read_github, read_gitlab, read_sarif

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "ci"
ENDINGS = {"json": "json", "sarif": "sarif", "gitlab": "json"}
FILES = sorted(path.relative_to(EXAMPLE).as_posix() for path in EXAMPLE.rglob("*.sql"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the sample repository, as the current folder."""
    shutil.copytree(EXAMPLE, tmp_path / "ci")
    monkeypatch.chdir(tmp_path / "ci")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path / "ci"


Check = Callable[..., tuple[int, str]]


@pytest.fixture
def check(place: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """`check("queries", "--statistics")`: status and what is printed."""

    def call(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        return main(["check", *arguments, "--no-cache"]), capsys.readouterr().out

    return call


@pytest.mark.parametrize("name", FORMATS)
def test_outputs(name: str, check: Check, update: bool) -> None:
    status, out = check("queries", "--output-format", name)
    assert status == 1
    expected = EXAMPLE / "expected" / f"{name}.{ENDINGS.get(name, 'txt')}"
    if update:
        expected.write_text(out, encoding="utf-8")
    assert out == expected.read_text(encoding="utf-8"), "run with --update, and read the diff"
    if name in READERS:
        READERS[name](out.rstrip("\n"))


def test_every_output_tells_the_same(check: Check) -> None:
    """Code, file and line agree between the formats."""
    said = {name: check("queries", "--output-format", name)[1].rstrip("\n") for name in FORMATS}
    records = [(r["code"], r["path"], r["line"]) for r in json.loads(said["json"])]
    assert len(records) >= 12 and len({code for code, _, _ in records}) >= 10
    assert [(line.split()[1], *line.split(":")[:2]) for line in said["concise"].splitlines()] == [
        (code, path, str(line)) for code, path, line in records
    ]
    sarif = [
        (r["ruleId"], place["artifactLocation"]["uri"], place["region"]["startLine"])
        for r in read_sarif(said["sarif"])["results"]
        for place in [r["locations"][0]["physicalLocation"]]
    ]
    gitlab = [
        (i["check_name"], i["location"]["path"], i["location"]["lines"]["begin"]) for i in read_gitlab(said["gitlab"])
    ]
    github = [
        (c.properties["title"].split()[1], c.properties["file"], int(c.properties["line"]))
        for c in read_github(said["github"])
    ]
    assert sarif == gitlab == github == records


def test_good_files_are_clean_and_fixes_repair_the_typos(check: Check, place: Path) -> None:
    assert check("queries/regions.sql", "queries/months.sql") == (0, "")
    assert check("queries/typos.sql", "--fix", "--unsafe-fixes")[0] == 0
    text = (place / "queries" / "typos.sql").read_text(encoding="utf-8")
    assert "SELECT region, COUNT(*)" in text and "SELECT ward, COUNT(*)" in text and "FROM visits;" in text


# --- what others use of this repository ------------------------------------------------------------------------------


def read_yaml(path: Path) -> Any:
    return YAML(typ="safe").load(path)


@cache
def schema(name: str) -> jsonschema.protocols.Validator:
    """A schema that check-jsonschema carries."""
    folder = resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    return jsonschema.Draft7Validator(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")))


def test_hooks_are_a_valid_manifest() -> None:
    (hook,) = clientlib.load_manifest(ROOT / ".pre-commit-hooks.yaml")
    assert hook["id"] == "dpsql-check" and hook["types"] == ["sql"] and hook["language"] == "python"
    config = clientlib.load_config(EXAMPLE / ".pre-commit-config.yaml")
    assert [h["id"] for repo in config["repos"] for h in repo["hooks"]] == [hook["id"]]


def test_the_hook_runs_with_the_files_of_a_commit(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """pre-commit puts file names behind the entry; without names it does not run, and excluded ones are left out."""
    program, *arguments = read_yaml(ROOT / ".pre-commit-hooks.yaml")[0]["entry"].split()
    assert program == "dpsql"
    assert main([*arguments, "queries/regions.sql", "queries/months.sql"]) == 0
    assert main([*arguments, "queries/regions.sql", "queries/fees.sql"]) == 1
    assert "error[DP201]" in capsys.readouterr().out
    with (place / "dpsql.toml").open("r+", encoding="utf-8") as file:
        text = file.read()
        file.seek(0)
        file.write('exclude = ["queries/fees.sql"]\n' + text)
    assert main([*arguments, "queries/fees.sql"]) == 0


def test_ci_files_are_valid() -> None:
    schema("github-actions").validate(read_yaml(ROOT / "action.yml"))
    workflow = read_yaml(EXAMPLE / ".github" / "workflows" / "dpsql.yml")
    schema("github-workflows").validate(workflow)
    schema("gitlab-ci").validate(read_yaml(EXAMPLE / ".gitlab-ci.yml"))
    inputs = read_yaml(ROOT / "action.yml")["inputs"]
    (step,) = [s for s in workflow["jobs"]["check"]["steps"] if s.get("id") == "dpsql"]
    assert set(step["with"]) <= set(inputs)


def test_the_validators_see_mistakes(tmp_path: Path) -> None:
    action = read_yaml(ROOT / "action.yml")
    del action["runs"]["steps"][1]["shell"]
    with pytest.raises(jsonschema.ValidationError):
        schema("github-actions").validate(action)
    (tmp_path / "hooks.yaml").write_text("- {id: x, name: x, entry: x, language: cobol}\n", encoding="utf-8")
    with pytest.raises(clientlib.InvalidManifestError):
        clientlib.load_manifest(tmp_path / "hooks.yaml")


ACTION = {step["id"]: step for step in read_yaml(ROOT / "action.yml")["runs"]["steps"]}


def bash(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A step, as the runner calls it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder, env={"PATH": path, "HOME": str(folder), "NO_COLOR": "1", **environment},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def run_action(folder: Path, **given: str) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """The check step with these inputs, and its outputs."""
    step = ACTION["check"]
    defaults = {"POLICY": "policy", "PATHS": "paths", "FORMAT": "format", "SARIF": "sarif-file", "ARGS": "args"}
    inputs = read_yaml(ROOT / "action.yml")["inputs"]
    assert {name: step["env"][name] for name in defaults} == {
        name: f"${{{{ inputs.{value} }}}}" for name, value in defaults.items()
    }
    environment = {name: inputs[value]["default"] for name, value in defaults.items()} | given
    output = folder / "output"
    output.write_text("", encoding="utf-8")
    # PYTHONPATH is where the install step puts dpsql: here it is in the environment already.
    done = bash(
        step["run"], folder, PYTHON=sys.executable, RUNNER_TEMP=str(folder), GITHUB_OUTPUT=str(output), **environment
    )
    return done, dict(line.split("=", 1) for line in output.read_text(encoding="utf-8").splitlines())


def test_the_action_annotates(place: Path) -> None:
    done, outputs = run_action(
        place, POLICY="clinic.yaml", PATHS="queries/fees.sql\nqueries/rows.sql", ARGS="--no-cache"
    )
    assert (done.returncode, outputs) == (1, {"status": "1"}), done.stderr
    found = read_github(done.stdout.rstrip("\n"))
    assert {command.properties["file"] for command in found} == {"queries/fees.sql", "queries/rows.sql"}


def test_the_action_writes_sarif(place: Path) -> None:
    """Of files with spaces in their names, too; and findings may be let through."""
    shutil.copyfile(place / "queries" / "fees.sql", place / "two words.sql")
    done, outputs = run_action(place, PATHS="two words.sql", FORMAT="sarif", ARGS="--no-cache --exit-zero")
    assert (done.returncode, outputs) == (0, {"status": "0", "sarif-file": "dpsql.sarif"}), done.stderr
    run = read_sarif((place / "dpsql.sarif").read_text(encoding="utf-8").rstrip("\n"))
    uris = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in run["results"]}
    assert uris == {"two%20words.sql"} and "two words.sql:4:6: DP201" in done.stdout


def test_the_action_says_what_is_wrong(place: Path) -> None:
    done, outputs = run_action(place, POLICY="$(touch stolen)", FORMAT="sarif")
    assert (done.returncode, outputs["status"]) == (2, "2") and "error[DP001]" in done.stderr
    done, outputs = run_action(place, FORMAT="html")
    assert (done.returncode, outputs) == (2, {"status": "2"}) and "not html" in done.stdout
    assert not (place / "stolen").exists()


def test_the_action_installs(tmp_path: Path) -> None:
    """From its own folder: nothing of that name is taken from an index."""
    fake = tmp_path / "python"
    fake.write_text('#!/usr/bin/env bash\nprintf "%s\\n" "$@" > "$(dirname "$0")/called"\n', encoding="utf-8")
    fake.chmod(0o755)
    given = {"PYTHON": str(fake), "SOURCE": "/the action", "RUNNER_TEMP": str(tmp_path)}
    assert set(given) - {"RUNNER_TEMP"} == set(ACTION["install"]["env"])
    assert bash(ACTION["install"]["run"], tmp_path, **given).returncode == 0
    called = (tmp_path / "called").read_text(encoding="utf-8").splitlines()
    assert called[:4] == ["-P", "-m", "pip", "install"]
    assert called[-3:] == ["--target", f"{tmp_path}/dpsql", "/the action"]


def test_the_gitlab_job_runs(place: Path) -> None:
    """Its script, with nothing to install: the report is there and valid, and the job fails."""
    install, *script = read_yaml(place / ".gitlab-ci.yml")["dpsql"]["script"]
    assert install.startswith("pip install ")
    done = bash("\n".join(script), place)
    assert done.returncode == 1 and "error[DP201]" in done.stdout, done.stderr
    reports = read_yaml(place / ".gitlab-ci.yml")["dpsql"]["artifacts"]["reports"]
    assert read_gitlab((place / reports["codequality"]).read_text(encoding="utf-8"))


def test_standard_input_has_a_name_in_reports(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"SELECT SUM(fee) FROM visits"), encoding="utf-8"))
    status, out = check("-", "--stdin-filename", "queries/new.sql", "--output-format", "sarif")
    (result,) = read_sarif(out.rstrip("\n"))["results"]
    assert status == 1
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "queries/new.sql"


def test_the_guide_shows_the_files_of_the_sample() -> None:
    """Its YAML is that of the sample, without the comment that each file begins with."""
    guide = (ROOT / "docs" / "howto" / "ci.md").read_text(encoding="utf-8")
    for name in (".pre-commit-config.yaml", ".github/workflows/dpsql.yml", ".gitlab-ci.yml"):
        comment, text = (EXAMPLE / name).read_text(encoding="utf-8").split("\n", 1)
        assert comment.startswith("# ") and f"```yaml fragment\n{text}```\n" in guide, name
    rows = re.findall(r"^\| `([\w-]+)` \|", guide, re.MULTILINE)
    assert [row for row in rows if row in FORMATS] == list(FORMATS)
    assert [row for row in rows if row not in FORMATS] == list(read_yaml(ROOT / "action.yml")["inputs"])
