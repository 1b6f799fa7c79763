"""A policy elsewhere, named by a branch that somebody hostile wrote, is not quoted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faces.check.test_files_elsewhere import SECRET, check
from tests.support.checked_files import GOOD, POLICY
from tests.support.checklist_clinic import Call


@pytest.fixture
def branch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a policy and a query, and beside it a file with a secret in its first line."""
    (tmp_path / "secret").write_text(f"{SECRET}:x:0:0:{SECRET}\n{SECRET}: [\n")
    top = tmp_path / "branch"
    (top / ".git").mkdir(parents=True)
    (top / "q").mkdir()
    shutil.copy(POLICY, top / "p.yaml")
    (top / "q" / "good.sql").write_text(GOOD)
    monkeypatch.chdir(top)
    return top


@pytest.mark.parametrize("place", ["../secret", "{}", "linked", "folder/secret"])
@pytest.mark.parametrize("form", ["full", "json", "github"])
def test_probe_a_policy_elsewhere_is_not_quoted(
    branch: Path, dpsql_command: Callable[..., Call], place: str, form: str
) -> None:
    (branch / "linked").symlink_to(branch.parent / "secret")
    (branch / "folder").symlink_to(branch.parent)
    named = place.format(branch.parent / "secret")
    (branch / "dpsql.toml").write_text(f'policy = "{named}"\n')
    said = check(dpsql_command, "q", "--output-format", form)
    assert "lies outside of the checkout, so nothing of it is shown" in said
    called = dpsql_command("diff", "--against", "HEAD")
    assert called.status == 2 and SECRET not in called.out + called.err
    (branch / "dpsql.toml").unlink()
    if place in ("linked", "folder/secret"):  # the workflow names it, and the branch has put a link there
        assert "lies outside of the checkout" in check(dpsql_command, "q", "--policy", place, "--output-format", form)
