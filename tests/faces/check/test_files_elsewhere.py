"""A branch that has the check read what is not in it: files elsewhere, pipes, devices without end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.checked_files import GOOD, POLICY
from tests.support.checklist_clinic import Call

SECRET = "hunter2-of-the-runner"


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


def check(command: Callable[..., Call], *arguments: str, expected: int = 2) -> str:
    called = command("check", "--no-cache", *arguments)
    assert called.status == expected, called
    assert SECRET not in called.out + called.err, called
    return called.out + called.err


def test_probe_a_policy_elsewhere_that_is_one_counts(branch: Path, dpsql_command: Callable[..., Call]) -> None:
    shutil.move(branch / "p.yaml", branch.parent / "common.yaml")
    (branch / "dpsql.toml").write_text('policy = "../common.yaml"\n')
    check(dpsql_command, "q", expected=0)


def test_probe_a_mistake_of_its_own_policy_is_quoted(branch: Path, dpsql_command: Callable[..., Call]) -> None:
    (branch / "own.yaml").write_text("version: 1\nnmae: shop\n")
    (branch / "dpsql.toml").write_text('policy = "own.yaml"\n')
    (branch / "inner").mkdir()
    (branch / "inner" / "dpsql.toml").write_text('policy = "../own.yaml"\n')
    assert "| nmae: shop" in check(dpsql_command, "q")
    os.chdir("inner")
    assert "| nmae: shop" in check(dpsql_command, "../q")


@pytest.mark.parametrize(
    "arguments", [["q"], ["q/linked.sql"], ["q/*.sql"], ["folder"], ["folder/x.sql"], ["linked.toml"]]
)
def test_probe_a_file_elsewhere_is_not_read(
    branch: Path, dpsql_command: Callable[..., Call], arguments: list[str]
) -> None:
    shutil.copy(branch.parent / "secret", branch.parent / "x.sql")
    (branch / "q" / "linked.sql").symlink_to("../../secret")
    (branch / "folder").symlink_to("..")
    (branch / "linked.toml").symlink_to("../secret")
    options = ["--config", "linked.toml"] if arguments == ["linked.toml"] else []
    said = check(dpsql_command, *arguments, *options, "--policy", "p.yaml")
    assert "out of the checkout" in said


def test_probe_a_link_within_the_checkout_is_followed(branch: Path, dpsql_command: Callable[..., Call]) -> None:
    (branch / "q" / "again.sql").symlink_to("good.sql")
    (branch / "linked.yaml").symlink_to("p.yaml")
    (branch / "queries").symlink_to("q")
    assert "2 statements in 2 files" in check(dpsql_command, "queries", "--policy", "linked.yaml", expected=0)


@pytest.mark.parametrize("line", ['baseline = "{}"', 'dbt = "{}"', 'templater = "jinja"\ntemplate-macros = ["{}"]'])
@pytest.mark.parametrize("named", ["../secret", "pipe", "/dev/zero"])
def test_probe_nothing_else_of_the_configuration_is_elsewhere(
    branch: Path, dpsql_command: Callable[..., Call], line: str, named: str
) -> None:
    os.mkfifo(branch / "pipe")
    (branch / "dpsql.toml").write_text(f'policy = "p.yaml"\n{line.format(named)}\n')
    assert "lies outside of the checkout or is no file" in check(dpsql_command, "q")


@pytest.mark.parametrize("named", ["pipe", "/dev/zero", "q"])
def test_probe_a_pipe_is_no_policy_of_a_configuration(
    branch: Path, dpsql_command: Callable[..., Call], named: str
) -> None:
    """A device without end, too: it was read until the memory was full."""
    os.mkfifo(branch / "pipe")
    (branch / "dpsql.toml").write_text(f'policy = "{named}"\n')
    for more in ([], ["--cache-dir", "kept"]):
        called = dpsql_command("check", "q", *more)
        assert called.status == 2 and "error[DP001]" in called.err


@pytest.mark.parametrize("pattern", ["q/*", "**/*.sql", "q", "."])
def test_probe_a_pipe_that_a_pattern_matches_is_not_waited_for(
    branch: Path, dpsql_command: Callable[..., Call], pattern: str
) -> None:
    os.mkfifo(branch / "q" / "pipe.sql")
    (branch / "q" / "device.sql").symlink_to("/dev/zero")
    assert "1 statement in 1 file" in check(dpsql_command, pattern, "--policy", "p.yaml", expected=0)
