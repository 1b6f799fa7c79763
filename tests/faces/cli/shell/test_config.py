"""The configuration file: what it sets, and where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.cli.options import Format
from dpsql.faces.cli.shell.shell_config import Config, from_environment, load_config, parse

GOOD = """
[shell]
analyst = "ana"
epsilon = 0.2
format = "box"
footer = false
confirm = "10%"
history = false
[shell.variables]
region = "north"
"""


def test_everything_is_read() -> None:
    found = parse(Source(GOOD, "config.toml"))
    assert found.texts == {"analyst": "ana", "epsilon": "0.2"} and found.variables == {"region": "north"}
    assert found.looks.format is Format.BOX and not found.looks.footer and not found.history and not found.vi


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[shell]\nformta = 'box'", 2, "format"),
        ("[shell]\n\nformat = 'x'", 3, "format"),
        ("[shel]\n", 1, "shell"),
        ("[shell]\nvi = 1", 2, "true or false"),
        ("[shell]\nanalyst = []", 2, "a text"),
        ("[shell]\nvariables = 3", 2, "variables"),
        ("shell = 3", 1, "section"),
        ("[shell]\nx = = 1", 2, "TOML"),
    ],
)
def test_mistakes_have_a_place(text: str, line: int, words: str) -> None:
    with pytest.raises(Rejected) as refusal:
        parse(Source(text, "config.toml"))
    (d,) = refusal.value.diagnostics
    assert d.code == "DP903" and d.source is not None and d.span is not None
    assert d.source.name == "config.toml" and d.source.position(d.span.start)[0] == line
    assert words in " ".join((d.message, *d.help))


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPSQL_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load_config() == Config()
    (tmp_path / "dpsql").mkdir()
    (tmp_path / "dpsql" / "config.toml").write_text(GOOD)
    assert load_config().texts["analyst"] == "ana"
    monkeypatch.setenv("DPSQL_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(Rejected):
        load_config()


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLICY", "ANALYST", "LEDGER", "DELTA", "EPSILON"):
        monkeypatch.delenv(f"DPSQL_{name}", raising=False)
    monkeypatch.setenv("DPSQL_EPSILON", "0.3")
    monkeypatch.setenv("DPSQL_ANALYST", "")
    assert from_environment() == {"epsilon": "0.3"}
