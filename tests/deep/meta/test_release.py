"""What a stranger finds: valid files of the host, and a wheel and an sdist that come out the same twice."""

from __future__ import annotations

import json
import runpy
import shutil
import tarfile
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

import dpsql

ROOT = Path(__file__).resolve().parents[3]
RELEASE = runpy.run_path(str(ROOT / ".ci" / "release.py"))
SCHEMAS = {
    ".github/workflows/ci.yml": "github-workflows",
    ".github/workflows/macos.yml": "github-workflows",
    ".github/workflows/release.yml": "github-workflows",
    ".github/workflows/windows.yml": "github-workflows",
    ".github/dependabot.yml": "dependabot",
    ".github/ISSUE_TEMPLATE/config.yml": "github-issue-config",
    ".github/ISSUE_TEMPLATE/refused.yml": "github-issue-forms",
    ".github/ISSUE_TEMPLATE/wrong.yml": "github-issue-forms",
    "CITATION.cff": "citation-file-format",
}


def text_of(name: str) -> Any:
    return YAML(typ="safe").load(ROOT / name)


@pytest.mark.parametrize("name", SCHEMAS)
def test_files_of_the_host_are_valid(name: str) -> None:
    folder = resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((folder / f"{SCHEMAS[name]}.json").read_text(encoding="utf-8"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    validator.validate(text_of(name))
    with pytest.raises(jsonschema.ValidationError):
        validator.validate([])


def test_every_file_of_the_host_is_looked_at() -> None:
    assert {p.relative_to(ROOT).as_posix() for p in (ROOT / ".github").rglob("*.yml")} <= set(SCHEMAS)


def test_workflows_call_what_the_makefile_has() -> None:
    targets = {line.partition(":")[0] for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()}
    called = [
        step["run"].split()[1]
        for name in SCHEMAS
        if "workflows" in name
        for job in text_of(name)["jobs"].values()
        for step in job["steps"]
        if step.get("run", "").startswith("make ")
    ]
    assert called and set(called) <= targets


def test_a_citation_names_this_version() -> None:
    cited = text_of("CITATION.cff")
    assert cited["version"] == dpsql.__version__ and [*cited["authors"][0]] == ["name"]
    heading = f"\n## {cited['version']} ({cited['date-released']})\n"
    assert heading in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def _built(source: Path, into: Path) -> dict[str, str]:
    from hatchling.builders.sdist import SdistBuilder
    from hatchling.builders.wheel import WheelBuilder

    for builder in (SdistBuilder, WheelBuilder):
        [*builder(str(source)).build(directory=str(into), versions=["standard"])]
    hashes: dict[str, str] = RELEASE["hashes"](into)
    return hashes


def test_two_builds_are_the_same_bytes(tmp_path: Path) -> None:
    """Of all but the tests, which hold planted values and most of the bytes; `make release-check` builds those, too."""
    pytest.importorskip("hatchling")
    left_out = shutil.ignore_patterns(
        "__pycache__", "tests", "benchmarks", ".venv*", ".git", ".*_cache", "site", "dist"
    )
    for name in ("one", "another"):
        shutil.copytree(ROOT, tmp_path / name, ignore=left_out, copy_function=shutil.copyfile)  # with new times
    first, second = (_built(tmp_path / name, tmp_path / f"{name}-made") for name in ("one", "another"))
    assert RELEASE["difference"](first, second) == []
    stem = f"dpsql-{dpsql.__version__}"
    assert sorted(first) == [f"{stem}-py3-none-any.whl", f"{stem}.tar.gz"]
    with zipfile.ZipFile(tmp_path / "one-made" / f"{stem}-py3-none-any.whl") as wheel:
        names = wheel.namelist()
        assert "dpsql/py.typed" in names
        assert [name for name in names if not name.startswith(("dpsql/", f"{stem}.dist-info/"))] == []
    with tarfile.open(tmp_path / "one-made" / f"{stem}.tar.gz") as sdist:
        assert {f"{stem}/{name}" for name in SCHEMAS} <= set(sdist.getnames())
    (tmp_path / "another" / "dpsql" / "py.typed").write_text("other\n", encoding="utf-8")
    assert RELEASE["difference"](first, _built(tmp_path / "another", tmp_path / "changed")) == sorted(first)


def test_only_pythons_that_start_are_tried(tmp_path: Path) -> None:
    broken = tmp_path / "python3.11"
    broken.write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    broken.chmod(0o755)
    assert RELEASE["pythons"]([str(broken), str(tmp_path / "python3.12")]) == {}
