"""`--help` of every command is at most a screen, and `--help-all` shows every option."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from dpsql.faces.cli.app import app
from dpsql.faces.cli.main import main
from dpsql.faces.cli.one_screen import SCREEN, OneScreen


def every(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from every(inner, (*path, name))


COMMANDS = dict(every(typer.main.get_command(app)))


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert not printed.err
    return printed.out


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_fits_and_nothing_is_lost(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command, first = COMMANDS[path], shown(capsys, *path, "--help")
    lines = first.splitlines()
    assert len(lines) <= SCREEN and max(map(len, lines)) <= 80
    assert first == shown(capsys, *path, "-h")
    if not isinstance(command, OneScreen):
        return
    whole, words = shown(capsys, *path, "--help-all"), " ".join(first.split())
    flags = {flag for each in command.params for flag in each.opts if flag.startswith("--")}
    assert all(flag in whole for flag in flags) and " ".join((command.epilog or "").split()) in " ".join(whole.split())
    assert ("--help-all" in words) is (whole != first) and "--help-all" not in whole


def test_help_all_beside_other_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--memory-limit" in shown(capsys, "shell", "-c", "SELECT 1", "--help-all")
