"""Each item of the soundness checklist has an attack of its own, named after its number."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ITEMS = range(1, 71)
ATTACK = r"test_(items?_\d\d_|probe_)"


def numbers(name: str) -> list[int]:
    """The items that a test covers by its name: `test_item_07_…`, `test_items_41_and_42_…`.

    `test_items_41_to_57_…` looks at many together and stands for none of them.
    """
    found = re.match(r"test_items?_(\d\d(?:_and_\d\d)*)(?=_(?!to_\d))", name)
    return [int(n) for n in found[1].split("_and_")] if found else []


def missing(names: Iterable[str]) -> list[int]:
    """The items without a test."""
    return sorted(set(ITEMS) - {n for name in names for n in numbers(name)})


@cache
def attacks_in(folder: Path) -> list[ast.FunctionDef]:
    """The tests of all files that hold an attack; each stands beside the other tests of its topic."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("test_*.py"))]
    trees = [ast.parse(text) for text in texts if re.search(rf"^def {ATTACK}", text, re.MULTILINE)]
    return [n for t in trees for n in t.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]


def test_every_item_has_an_attack(root: Path) -> None:
    found = attacks_in(root / "tests")
    assert missing(f.name for f in found) == []
    assert all(set(numbers(f.name)) <= set(ITEMS) for f in found)


def test_every_attack_says_what_it_belongs_to(root: Path) -> None:
    """To an item or, beyond the list, to a probe; nothing else would be found again by its name."""
    found = attacks_in(root / "tests")
    assert len(found) > 300
    assert [f.name for f in found if not re.match(ATTACK, f.name)] == []


def test_no_attack_is_switched_off(root: Path) -> None:
    """Neither skipped nor expected to fail, also not under a condition."""
    for function in attacks_in(root / "tests"):
        words = {n.attr for n in ast.walk(function) if isinstance(n, ast.Attribute)}
        assert not words & {"skip", "skipif", "xfail", "importorskip"}, function.name


def test_a_missing_item_is_missed() -> None:
    names = [f"test_item_{n:02}_x" for n in ITEMS if n != 33]
    assert missing(names) == [33] == missing([*names, "test_items_32_to_34_x", "test_33_x", "test_item_3_x"])
    assert missing([*names, "test_items_02_and_33_x"]) == []
