"""Every option of `dpsql check` and every key of its configuration stands in the how-to pages."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from dpsql.faces.check.examine.config import KEYS
from dpsql.faces.cli.app import app

PAGES = Path(__file__).resolve().parents[3] / "docs" / "howto"


def text() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("*.md")))


def test_every_option_is_shown() -> None:
    command = typer.main.get_command(app).commands["check"]  # type: ignore[attr-defined]
    options = {name for option in command.params for name in option.opts if name.startswith("--")}
    assert len(options) > 20
    words = set(re.findall(r"--[a-z-]+", text()))
    assert sorted(options - words - {"--help"}) == []


def test_every_key_is_shown() -> None:
    words = {word.replace("-", "_") for word in re.findall(r"[a-z_-]+", text())}
    assert sorted(set(KEYS) - words) == []
