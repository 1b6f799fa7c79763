"""Screens of the shell, each as it is after some inputs on an empty one; kept in screens/*.txt.

`pytest tests/deep/faces/cli/shell/test_screens.py --update` writes them again: read the difference.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.deep.faces.cli.shell.conftest import see
from tests.support.terminal import Terminal

pytestmark = pytest.mark.processes

KEPT = Path(__file__).parent / "screens"
ALL = "SELECT code, label, rank, day FROM codes ORDER BY code;"
TWO = "SELECT code, label, rank FROM codes WHERE code < 'c' ORDER BY code;"
REGIONS = "SELECT region, COUNT(*) AS n FROM people GROUP BY region ORDER BY region;"

CASES: dict[str, dict[str, tuple[str, ...]]] = {
    "commands": {
        "help ends with what a query is": ("\\?",),
        "help on SQL": ("\\h",),
        "help on a function": ("\\h clip",),
        "help on a code": ("\\help DP201",),
        "help on nothing known": ("\\h nonsense",),
        "tables": ("\\d", "\\dt"),
        "one table": ("\\d people",),
        "psql's plus": ("\\d+ codes",),
        "a quoted table with a semicolon": ('\\d "codes";',),
        "no such table": ("\\d nowhere",),
        "too many tables": ("\\d people codes",),
        "functions": ("\\df cl", "\\df nosuch"),
        "policy of a table": ("\\policy people", "\\policy nowhere"),
        "leaving takes no argument": ("\\q now",),
        "unknown commands": ("\\nosuch", "\\pse", "\\c other", "\\w"),
        "several commands in a line": ("\\echo one \\echo two \\echo three",),
        "go behind a statement": ("SELECT code FROM codes WHERE code = 'a' \\g", "\\g"),
        "echo": ("\\echo one 'two  three' :nosuch", "\\echo", "\\qecho also"),
        "variables": ("\\set city 'Bad'' Homburg'", "\\set", "\\echo :city :'city' :\"city\"", "\\unset city"),
        "names of variables": ("\\set 1-2 x", "\\unset", "\\set ON_ERROR_STOP perhaps"),
        "quotes": ("\\echo 'open", "\\echo `date`"),
        "no file": ("\\i", "\\i nosuch.sql", "\\ir nosuch.sql", "\\i ."),
        "history's arguments": ("\\history sometimes maybe", "\\history 0"),
        "budget's arguments": ("\\budget often",),
    },
    "refused": {
        "timing": ("\\timing", "\\timing on", "\\timing off"),
        "watch": ("\\watch", "\\watch 2"),
        "copy": ("\\copy people to 'x.csv'", "\\copy (SELECT * FROM people) to stdout"),
        "programs": ("\\! ls", "\\!ls"),
        "output into programs": ("\\o | cat", "\\o |cat", "\\o '| cat'"),
        "existing files": ("\\o shop.yaml", "\\o shop.ledger.sqlite", "\\history shop.yaml", "\\o nowhere/out.txt"),
        "explain analyze": ("EXPLAIN ANALYZE SELECT COUNT(*) AS n FROM people;",),
        "rows": ("SELECT town FROM people;",),
        "no bounds": ("SELECT SUM(debt) AS s\nFROM people;",),
        "a typing mistake": ("SELECT COUNT(*) AS n FORM people;",),
        "an unknown column": ("SELECT COUNT(agee) AS n FROM people;",),
        "other statements": ("DROP TABLE people;", "SHOW TABLES;", "DESCRIBE people;"),
        "two in one line, the first refused": ("SELECT town FROM people; SELECT code FROM codes WHERE code = 'a';",),
        "a caret below wide characters": ("SELECT '日本語' AS x, SUM(debt) AS s FROM people;",),
    },
    "looks": {
        "all options": ("\\pset",),
        "null and texts": (ALL,),
        "null by another name": ("\\pset null", "\\pset null '(none)'", TWO),
        "box": ("\\pset format box", ALL),
        "csv": ("\\pset format csv", ALL),
        "json": ("\\pset format json", TWO),
        "jsonl": ("\\pset format jsonl", TWO),
        "markdown": ("\\pset format markdown", ALL),
        "html": ("\\pset format html", "SELECT label FROM codes WHERE code = 'i';"),
        "vertical": ("\\pset format vertical", TWO),
        "unaligned": ("\\a", TWO, "\\pset fieldsep ' ; '", TWO, "\\a"),
        "expanded": ("\\x", TWO, "\\x", "\\x auto"),
        "expanded once": (TWO, "\\gx"),
        "rows only": ("\\t", TWO, "\\t"),
        "no footer": ("\\pset footer off", TWO),
        "html and back": ("\\H", "SELECT code FROM codes WHERE code = 'a';", "\\H"),
        "empty": ("SELECT code, rank FROM codes WHERE code = 'zzz';",),
        "empty, expanded": ("\\x on", "SELECT code, rank FROM codes WHERE code = 'zzz';"),
        "empty, as json": ("\\pset format json", "SELECT code FROM codes WHERE code = 'zzz';"),
        "bad values": (
            "\\pset nosuch 1", "\\pset format fancy", "\\pset confirm 200%", "\\x maybe", "\\t maybe",
            "\\intervals sometimes",
        ),
        "aliases of formats": ("\\pset format aligned", "\\pset format md", "\\pset format expanded"),
        "pager and confirm": ("\\pset pager off", "\\pset pager always", "\\pset confirm 0.1", "\\pset confirm off"),
        "as wide as it may be": ("SELECT repeat('x', 60) AS one, repeat('y', 33) AS two FROM codes WHERE code = 'a';",),
        "too wide for the terminal": (
            "SELECT repeat('x', 60) AS one, repeat('y', 40) AS two FROM codes WHERE code = 'a';",
        ),
    },
    "privacy": {
        "regions": ("\\fresh on", REGIONS,),
        "regions in a box": ("\\pset format box", "\\fresh on", REGIONS),
        "interval columns": ("\\intervals", "\\intervals cols", "\\fresh on", REGIONS),
        "no intervals": ("\\intervals off", "\\fresh on", REGIONS),
        "regions as csv": ("\\pset format csv", "\\fresh on", REGIONS),
        "without groups": ("\\fresh on", "SELECT COUNT(*) AS n, AVG(age) AS a FROM people;",),
        "settings": ("\\epsilon", "\\epsilon 0.2", "SHOW epsilon;", "SET epsilon = 0.3;", "RESET epsilon;"),
        "delta": ("\\delta 1e-9", "\\delta", "\\delta off"),
        "bad amounts": ("\\epsilon -1", "\\epsilon nonsense", "\\delta 2", "SET colour = 'red';"),
        "fresh": ("\\fresh", "\\fresh", "\\fresh often"),
        "explain": ("\\explain SELECT COUNT(*) AS n FROM people",),
        "explain as a statement": ("EXPLAIN SELECT COUNT(*) AS n FROM people;",),
        "explain what is refused": ("\\explain SELECT SUM(debt) AS s FROM people",),
        "nothing to explain": ("\\r", "\\cost SELECT 1 +"),
        # of a query that nobody else asks: answers in the store would be free
        "what a price is": (
            "\\cost SELECT region, COUNT(*) AS n, AVG(age) AS a FROM people WHERE age > 6 GROUP BY region",
        ),
        "what public tables cost": ("\\cost SELECT code FROM codes",),
    },
}  # fmt: skip


@cache
def kept(group: str) -> dict[str, str]:
    path = KEPT / f"{group}.txt"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = re.split(r"^== (.*) ==\n", text, flags=re.MULTILINE)
    return {name: screen.strip("\n") for name, screen in zip(parts[1::2], parts[2::2], strict=True)}


def keep(group: str, name: str, screen: str) -> None:
    found = {**kept(group), name: screen}
    kept.cache_clear()
    KEPT.mkdir(exist_ok=True)
    texts = [f"== {case} ==\n{found[case]}\n" for case in CASES[group] if case in found]
    (KEPT / f"{group}.txt").write_text("\n".join(texts), encoding="utf-8")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("group", "name"), [(g, n) for g, cases in CASES.items() for n in cases])
def test_screen(shell: Terminal, update: bool, group: str, name: str) -> None:
    shown = "\n".join(line.rstrip() for line in see(shell, *CASES[group][name]).splitlines())
    if update:
        keep(group, name, shown)
    assert shown == kept(group)[name]


def test_every_kept_screen_has_its_inputs() -> None:
    assert {group: list(cases) for group, cases in CASES.items()} == {group: list(kept(group)) for group in CASES}
