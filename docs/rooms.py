"""The rooms of the house, counted: `python -m docs.rooms [folder of a checkout]`, which may be an older one.

A line for each room at the top of `dpsql/` and for the rooms in it: modules, lines, and lines of code (without blanks,
comments, docstrings and imports). Then the folders that hold the most modules, with these.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = 6  # folders that are shown with their modules
SPACE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def modules(folder: Path) -> list[Path]:
    """The modules that lie in a folder itself."""
    return sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")


def code(text: str) -> int:
    """How many lines hold code."""
    tree = ast.parse(text)
    left_out: set[int] = set()
    for node in ast.walk(tree):
        docstring = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if docstring or isinstance(node, (ast.Import, ast.ImportFrom)):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SPACE:
            found.update(range(token.start[0], token.end[0] + 1))
    return len(found - left_out)


def counted(paths: list[Path]) -> str:
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return f"{len(paths):5}{sum(len(text.splitlines()) for text in texts):8,}{sum(map(code, texts)):8,}"


def below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if path.name != "__init__.py")


def rooms(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and below(path))


def picture(root: Path) -> Iterator[str]:
    top = root / "dpsql"
    yield f"{'room':32}files   lines    code"
    for room in rooms(top):
        yield f"{room.name:32}{counted(below(room))}"
        for inner in rooms(room):
            yield f"    {inner.name:28}{counted(below(inner))}"
    yield ""
    folders = sorted((path for path in top.rglob("*") if path.is_dir()), key=lambda path: (-len(modules(path)), path))
    for folder in folders[:MOST]:
        held = [path.stem for path in modules(folder)]
        yield f"{folder.relative_to(root).as_posix()}, {len(held)} modules: {', '.join(held)}"


if __name__ == "__main__":
    print("\n".join(picture(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)))
