"""The commands charge the ledger that they are given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsql.faces.cli.main import main
from dpsql.service.accounts.ledgers import FORGETS
from tests.service.test_ledgers import COUNT, POLICY, in_policy, made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a policy and its data, in which nothing else may come to be."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    home = tmp_path / "club"
    home.mkdir()
    monkeypatch.chdir(home)
    (home / "people.csv").write_text("id\n1\n2\n")
    (home / "club.yaml").write_text(POLICY.format(ledger=""))
    return home


def test_commands_take_it_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def call(*arguments: str, expected: int = 0) -> str:
        capsys.readouterr()
        assert main(list(arguments)) == expected
        shown = capsys.readouterr()
        return shown.out + shown.err

    for options in (["--ledger", ":memory:"], []):
        assert FORGETS in call("query", "club.yaml", COUNT, "--epsilon", "1", *options)
        assert FORGETS in call("query", "club.yaml", COUNT, "--epsilon", "1", "--format", "json", *options)
        assert "(0 queries charged)  club, approx_dp, :memory:; " + FORGETS in call("budget", "club.yaml", *options)
        found = json.loads(call("budget", "club.yaml", "--format", "json", *options))
        assert found["ledger"] == ":memory:" and found["queries"] == 0
        assert "a ledger in memory has no head" in call("budget", "club.yaml", "--accept-head", *options, expected=1)
        steps = ["-c", f"{COUNT};", "-c", "\\budget history", "-c", "\\conninfo", "-c", f"\\cost {COUNT}"]
        shell = call("shell", "club.yaml", "--epsilon", "1", *steps, *options)
        assert "(1 query charged)" in shell and f"; {COUNT}" not in shell and COUNT in shell
        assert "ledger: :memory:" in shell and "would cost nothing" in shell
        in_policy(folder)
    assert '"ledger_head": null' in call("policy", "show", "club.yaml", "--format", "json")
    assert made(folder) == set()
