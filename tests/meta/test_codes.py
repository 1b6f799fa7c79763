"""Every code is raised somewhere, and nothing raises a code that is not in the table."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from dpsql.diagnostics.codes import CODES

# Codes whose place is kept although nothing raises them yet. Remove the line together with adding the raise site.
RESERVED: dict[str, str] = {}
CODE = re.compile(r"DP\d{3}")
QUOTED = re.compile(r"""["']DP\d{3}["']""")


def literals(path: Path) -> set[str]:
    """The codes that stand as a string of their own in a Python file, docstrings apart."""
    text = path.read_text(encoding="utf-8")
    if not QUOTED.search(text):  # most files, and reading them as Python takes seconds
        return set()
    return {
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value)
    }


@cache
def raised(root: Path) -> dict[str, list[str]]:
    """Code → the files under dpsql/ that name it, the table itself apart."""
    sites: dict[str, list[str]] = {}
    for path in sorted((root / "dpsql").rglob("*.py")):
        if path.name != "codes.py":
            for code in literals(path):
                sites.setdefault(code, []).append(path.relative_to(root).as_posix())
    return sites


def test_every_code_has_a_raise_site(root: Path) -> None:
    sites = raised(root)
    assert [code for code in CODES if code not in sites and code not in RESERVED] == []


def test_reserved_codes_are_not_raised(root: Path) -> None:
    sites = raised(root)
    assert {code: sites[code] for code in RESERVED if code in sites} == {}
    assert set(RESERVED) <= set(CODES)


def test_every_raised_code_is_in_the_table(root: Path) -> None:
    assert {code: files for code, files in raised(root).items() if code not in CODES} == {}


def test_the_search_sees_literals_and_not_prose(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text('"""About DP101."""\nraise reject("DP102", f"see DP103 {x}", "not DP104")  # DP105\n')
    assert literals(file) == {"DP102"}
