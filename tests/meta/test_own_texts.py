"""Nobody reads what dpsql says: a program asks a value, and a text is for people.

Where a finding, a reason or a note has to be told from others, it has a code, a place, a `Mark` or a value of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SAID = frozenset({"message", "help", "notes", "notices"})
"""Attributes that hold what is said."""
READING = frozenset({"startswith", "endswith", "partition", "rpartition", "removeprefix", "find", "index", "count"})
"""What would be reading. No file does it; two say a repair in other words, and are handed its text:
faces/server/front/hints.py, for who knows neither Python nor options, and planner/notes/as_written.py, which names a
column as the query does."""


def read_in(tree: ast.AST) -> Iterator[int]:
    """Lines that compare what is said, look into it, or look for it in a list of sentences."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in READING and _is_said(value):
                yield node.lineno
            case ast.Compare(left=left, comparators=others, ops=ops):
                sides = [left, *others]
                plain = all(isinstance(op, ast.Is | ast.IsNot) for op in ops)
                if not plain and any(_is_said(side) and not _is_empty(sides) for side in sides):
                    yield node.lineno
            case ast.comprehension(target=ast.Name(id=name), iter=said) if _is_said(said):
                yield from _looked_into(next(n for n in ast.walk(tree) if node in getattr(n, "generators", ())), name)
            case ast.For(target=ast.Name(id=name), iter=said) if _is_said(said):
                yield from _looked_into(node, name)


def _looked_into(within: ast.AST, name: str) -> Iterator[int]:
    for node in ast.walk(within):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr=way)) if found == name and way in READING:
                yield node.lineno
            case ast.Compare(comparators=[ast.Name(id=found)], ops=[ast.In()]) if found == name:
                yield node.lineno


def _is_said(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in SAID


def _is_empty(sides: list[ast.expr]) -> bool:
    return any(isinstance(side, ast.Constant) and not side.value for side in sides)


def test_no_file_reads_what_is_said(root: Path) -> None:
    found = [
        str(path.relative_to(root))
        for path in sorted((root / "dpsql").rglob("*.py"))
        if any(read_in(ast.parse(path.read_text(encoding="utf-8"))))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        'd.message.startswith("AUTO ")',
        "reason.help == ZERO.help",
        '"declare" in d.message',
        'any("was charged" in n for n in d.notes)',
        'tuple(h.removeprefix("custodian: ") for h in d.help)',
        'for note in release.notes:\n    if note.startswith("charged"):\n        pass',
    ],
)
def test_reading_is_noticed(line: str) -> None:
    assert list(read_in(ast.parse(line)))


@pytest.mark.parametrize(
    "line", ["(*d.notes, more)", 'd.label != ""', "tuple(map(one_line, d.help))", "d.mark is None"]
)
def test_showing_is_none(line: str) -> None:
    assert not list(read_in(ast.parse(line)))
