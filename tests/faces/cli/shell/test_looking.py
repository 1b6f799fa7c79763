"""Functions by name, and by pattern as \\d has them."""

from __future__ import annotations

from typing import cast

import pytest

import dpsql
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.cli.shell.commands.show_commands import functions, help_on
from dpsql.faces.cli.shell.state import Shell


def listed(capsys: pytest.CaptureFixture[str], *word: str) -> set[str]:
    functions(Shell(cast(dpsql.Connection, None)), list(word))
    return {line.split("|")[0].strip() for line in capsys.readouterr().out.splitlines()[2:]}


def test_functions_by_name_and_by_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    everything = listed(capsys)
    dates = listed(capsys, "date")
    assert {"date_trunc", "date_part"} <= dates < everything
    assert listed(capsys, "DATE*") == dates == listed(capsys, "d?te*")
    ends = listed(capsys, "*_trunc")
    assert "date_trunc" in ends and "date_part" not in ends and listed(capsys, "*") == everything


@pytest.mark.parametrize(("word", "said"), [("nothing*", "is like"), ("nothing", "begins with"), ("[a-z]*", "is like")])
def test_functions_that_are_not_there(word: str, said: str) -> None:
    with pytest.raises(Rejected) as refusal:
        functions(Shell(cast(dpsql.Connection, None)), [word])
    assert refusal.value.diagnostics[0].message == f"there is no function whose name {said} {word!r}"


@pytest.mark.parametrize("words", [[], ["select"], ["EXPLAIN"], ["Set"]])
def test_help_on_sql(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    help_on(Shell(cast(dpsql.Connection, None)), words)
    assert capsys.readouterr().out.startswith("One SELECT (or WITH … SELECT) at a time")
