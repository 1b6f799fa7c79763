"""A small shop for the shell, and screens as patterns: what a person sees, with noise taken out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.support.terminal import Terminal

POLICY = """\
version: 1
name: shop
database: shop.duckdb
ledger: shop.ledger.sqlite
ledger_head: shop.ledger.head
units:
  person: {table: people, key: person_id}
tables:
  codes:
    public: true
    unique: [[code]]
    columns:
      code: {type: varchar}
      label: {type: varchar}
      rank: {type: integer}
      day: {type: date}
  people:
    unit: {column: person_id}
    primary_key: [person_id]
    columns:
      person_id: {type: bigint, nullable: false}
      region: {type: varchar, domain: {values: [north, süd, 日本], null: true}}
      age: {type: integer, bounds: [0, 110], nullable: false}
      town: {type: varchar}
      größe: {type: double, bounds: [0, 3]}
      debt: {type: double}
defaults: {epsilon: 0.5, delta: 1e-9}
budgets:
  total: {epsilon: 1000, delta: 1e-6}
  analysts:
    ana: {epsilon: 500, delta: 1e-7}
    poor: {epsilon: 1, delta: 1e-8}
    broke: {epsilon: 0.1, delta: 1e-8}
"""
PROMPTS = re.compile(r"^shop(?:\[[^]]*\])?=>", re.MULTILINE)
PLANTED = "zqxmarker"
"""In private rows only: never on a screen."""
CODES = (
    "INSERT INTO codes VALUES ('a', 'plain', 1, '2025-01-31'), ('b', NULL, NULL, NULL), ('c', 'NULL', 3, NULL), "
    "('d', 'größer', 4, NULL), ('e', '日本語', 5, NULL), ('f', 'e' || chr(769) || ' 🙂', -6, NULL), "
    "('g', 'two' || chr(10) || 'lines', 7, NULL), ('h', '', 8, NULL), ('i', 'a|b,\"c\" <i>', 9, NULL)"
)


def make_shop(folder: Path) -> Path:
    """The shop's policy and data in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shop.yaml").write_text(POLICY, encoding="utf-8")
    with duckdb.connect(str(folder / "shop.duckdb")) as con:
        con.execute("CREATE TABLE codes (code VARCHAR, label VARCHAR, rank INTEGER, day DATE)")
        con.execute(CODES)
        con.execute(
            "CREATE TABLE people AS SELECT i AS person_id, CASE WHEN i % 4 = 3 THEN NULL ELSE "
            "list_extract(['north', 'süd', '日本'], 1 + i % 4) END AS region, (i * 7 % 90)::INTEGER AS age, "
            f"'{PLANTED}' || i AS town, 1.7::DOUBLE AS größe, 271828182::DOUBLE AS debt FROM range(4000) t(i)"
        )
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh shop."""
    return make_shop(tmp_path_factory.mktemp("shop") / "shop")


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Terminal]:
    """One shell of analyst ana for the tests of a module; nothing planted ever reached its screen or its files."""
    with Terminal(["shop.yaml", "--analyst", "ana", "--epsilon", "0.05"], folder, lines=90) as terminal:
        terminal.wait_for_prompt()
        yield terminal
        assert PLANTED not in terminal.raw and "Traceback" not in terminal.raw
        assert terminal.leave() == 0


RESET = (
    "\\r \\pset format table \\pset null NULL \\pset pager on \\pset footer on \\pset confirm 25% \\pset fieldsep '|' "
    "\\x auto \\intervals on \\t off \\epsilon 0.05 \\fresh off \\o"
)


@pytest.fixture
def shell(running: Terminal) -> Terminal:
    """That shell with its looks as at the start, at an empty prompt on an empty screen."""
    clear(running)
    enter(running, RESET)
    return running


def clear(terminal: Terminal) -> None:
    """Ctrl-L: an empty screen with the prompt at its top."""
    terminal.type("\x0c")
    terminal.wait(lambda: terminal.at_prompt and len(terminal.screen.splitlines()) == 1 and prompts(terminal) == 1)


def enter(terminal: Terminal, text: str, *, more: int = 1) -> None:
    """Type an input and Enter, and wait until the screen has that many prompts more. Nothing may scroll away."""
    before = prompts(terminal)
    terminal.type(text.replace("\n", "\r") + "\r")
    terminal.wait(lambda: terminal.at_prompt and prompts(terminal) == before + more)


def prompts(terminal: Terminal) -> int:
    """How many prompts are on the screen."""
    return len(PROMPTS.findall(terminal.screen))


def see(terminal: Terminal, *inputs: str) -> str:
    """The whole screen, as a pattern, after some inputs on an empty one."""
    clear(terminal)
    for text in inputs:
        enter(terminal, text)
    return pattern(terminal.screen)


def pattern(screen: str) -> str:
    """A screen without what differs from run to run: noisy numbers are N, what is left of the budget L; runs of spaces
    and of dashes, which follow the numbers' widths, are short."""
    text = re.sub(r"\[ε [\d.]+/([\d.]+)\]", r"[L/\1]", screen)
    text = re.sub(r"left ε [\d.e-]+(?: δ [\d.e-]+)?", "left L", text)
    text = re.sub(r"what is left \(ε [\d.]+\)", "what is left (L)", text)
    text = re.sub(r"-?\d[\d,]*(?:\.\d+)? ± (\d[\d,]*(?:\.\d+)?)", r"N ± \1", text)
    text = re.sub(r"(?<=[|│]) +-?\d{1,3}(?:,\d{3})+(?=\s|$)", " N", text, flags=re.MULTILINE)
    text = re.sub(r"(?<=[|,│]) *-?\d{3,}(?=\s|,|$)", " N", text, flags=re.MULTILINE)
    text = re.sub(r"± \d+\.\d+", "± W", text)  # of an average: follows its noise
    text = re.sub(r"are\s+l\s?e\s?f\s?t\s+o\s?u\s?t", "are left out", text)  # folded where the amounts end
    text = re.sub(r"-{3,}", "--", text)
    text = re.sub(r"─{2,}", "─", text)
    return re.sub(r"(?<=\S)[ ]{2,}|^ +", " ", text, flags=re.MULTILINE)
