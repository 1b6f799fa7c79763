"""What Tab puts behind a meta-command is what the command reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import dpsql
from dpsql.faces.cli.shell.input.completion import ShellCompleter
from dpsql.faces.cli.shell.input.meta_words import unquoted, words
from dpsql.faces.cli.shell.state import Shell
from dpsql.policy.policy import Policy

NAMES = ["visits", "Räder & Fahrten", 'say "so"', "main.orders", "two  spaces", "it's", "a:b", "b\\c"]
POLICY = Policy.from_dict(
    {
        "version": 1,
        "name": "odd",
        "tables": {name: {"public": True, "columns": {"x": {"type": "bigint"}}} for name in NAMES},
    }
)
SHELL = Shell(cast(dpsql.Connection, SimpleNamespace(policy=POLICY)))


def completed(typed: str) -> list[str]:
    found = ShellCompleter(SHELL).get_completions(Document(typed), CompleteEvent())
    return [typed[: len(typed) + c.start_position] + c.text for c in found]


@pytest.mark.parametrize("command", ["\\d", "\\d+", "\\dt", "\\policy"])
def test_every_table_is_offered_as_it_has_to_be_written(command: str) -> None:
    lines = completed(f"{command} ")
    read = [words(line.removeprefix(command), lambda name: None) for line in lines]
    assert [[unquoted(word) for word in found] for found, rest in read] == [[name] for name in NAMES]
    assert not any(rest for _, rest in read)


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("\\d r", '\\d "Räder & Fahrten"'),
        ('\\d "räder & f', '\\d "Räder & Fahrten"'),
        ('\\d  "vis', "\\d  visits"),
        ("\\d TWO  ", '\\d "two  spaces"'),
    ],
)
def test_what_is_typed_is_replaced(typed: str, line: str) -> None:
    assert completed(typed) == [line]


def test_nothing_else_is_offered() -> None:
    assert completed("\\d nothing") == completed("\\d visits more") == completed("\\dt visits\\d") == []
