"""The looks of pages, of `page.css` beside this file, which each page holds whole."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

COLOURS: Final = 7
"""How many accounts are told apart: the total, and six others; then they begin again."""


@cache
def style() -> str:
    """CSS without its comment and line ends."""
    text = (files("dpsql.faces.report") / "page.css").read_text(encoding="utf-8")
    return " ".join(line.strip() for line in text.partition("*/")[2].splitlines())
