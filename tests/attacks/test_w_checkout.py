"""A checkout that somebody hostile wrote: nothing of it runs where it is checked, and none of its files is passed over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.unit.checking.samples import GOOD, NO_BOUNDS, POLICY

ROOT = Path(__file__).resolve().parents[2]
SHADOWS = ("sqlglot", "typer", "multiprocessing", "pickle", "json", "pip", "concurrent", "signal")
"""Modules that dpsql, its processes and pip import, in a branch's spelling."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with a query that must be refused, and modules that would let it pass if anything imported them."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    shutil.copy(POLICY, folder / "policy.yaml")
    (folder / "bad.sql").write_text(NO_BOUNDS, encoding="utf-8")
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(
            f"open({str(tmp_path / 'owned')!r}, 'a').write({name!r} + '\\n')\nimport os\nos._exit(0)\n",
            encoding="utf-8",
        )
    return folder


def owned(checkout: Path) -> str:
    """The modules of the checkout that ran."""
    said = checkout.parent / "owned"
    return said.read_text(encoding="utf-8") if said.exists() else ""


def action(step: str, checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A step of action.yml, as GitHub's runner calls it in a checkout."""
    steps = YAML(typ="safe").load((ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    (script,) = [each["run"] for each in steps if each["id"] == step]
    given = {
        "PATH": os.environ["PATH"],
        "HOME": str(checkout.parent),
        "RUNNER_TEMP": str(checkout.parent),
        **environment,
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=checkout, env={"PYTHON": sys.executable, **given}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_probe_the_action_runs_no_module_of_the_branch(checkout: Path) -> None:
    """`python -m` looks for modules in the current folder first: a `sqlglot.py` ended the check with 0."""
    output = {"GITHUB_OUTPUT": str(checkout.parent / "output")}
    inputs = {"POLICY": "policy.yaml", "PATHS": "bad.sql", "ARGS": "--no-cache", "SARIF": "dpsql.sarif"}
    for form in ("github", "sarif"):
        done = action("check", checkout, FORMAT=form, **inputs, **output)
        assert (owned(checkout), done.returncode) == ("", 1) and "DP201" in done.stdout, done.stderr


def test_probe_the_action_installs_with_no_module_of_the_branch(checkout: Path) -> None:
    """Whatever comes of the installation: here there is nothing to install."""
    action("install", checkout, SOURCE=str(checkout.parent / "nothing"), VERSION="", PIP_NO_INDEX="1")
    assert owned(checkout) == ""


@pytest.mark.processes
def test_probe_no_other_process_of_the_check_runs_a_module_of_the_branch(checkout: Path) -> None:
    """Processes that start from nothing, as on macOS and Windows, looked for `multiprocessing` in the checkout."""
    script = checkout.parent / "run.py"  # as the command `dpsql`: its own folder is on the path, the current one is not
    script.write_text(
        "from dpsql.checking.parallel import examine_all\n"
        "from dpsql.policy.load import load_policy\n"
        "if __name__ == '__main__':\n"
        f"    texts = [{NO_BOUNDS!r}, *({GOOD!r} + f' -- {{n}}' for n in range(40))]\n"
        "    found = examine_all(texts, load_policy('policy.yaml'), 'duckdb', 2, 'spawn')\n"
        "    print(len(found), all(found))\n",
        encoding="utf-8",
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=checkout, env=environment, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert (owned(checkout), done.stdout) == ("", "41 True\n"), done.stderr
