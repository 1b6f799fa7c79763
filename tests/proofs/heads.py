"""What heads of rules, measures, forms and noise say of proofs: `Proved by: Near.filter_stable`, `Not proved: why`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CORE = ROOT / "dpsql" / "core"
ROOMS = ("analysis/rules", "measures", "printing/forms", "noise")
BESIDE = ("ledger/privacy_filter.py",)
"""Elsewhere in the core."""

_CLAIM = re.compile(r"^\*?(Claim|By period)\b", re.MULTILINE)
_PROVED = re.compile(r"\*?Proved by:?\*?:? (.*?)(?=\n\S*Tested by|\n\n|\Z)", re.DOTALL)
_LEMMA = re.compile(r"\b([A-Z][a-z]+\.[a-z][a-z0-9_]*)\b")
_STATED = re.compile(r"^\s*(?:Theorem|Lemma|Corollary) ([A-Za-z0-9_']+)", re.MULTILINE)


def heads() -> dict[str, str]:
    """Path below the core → the first words of a file that makes a claim, or that says something of its proof."""
    files = [path for room in ROOMS for path in sorted((CORE / room).rglob("*.py"))] + [CORE / each for each in BESIDE]
    found = {}
    for path in files:
        head = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if _CLAIM.search(head) or "roved by" in head or "Not proved" in head:
            found[str(path.relative_to(CORE))] = head
    return found


def cited(head: str) -> list[str]:
    """The lemmas that a head names."""
    found = _PROVED.search(head)
    return [] if found is None else list(dict.fromkeys(_LEMMA.findall(found[1])))


def says(head: str) -> bool:
    """Whether a head says what proves its claim, or why nothing does."""
    return bool(cited(head)) or re.search(r"Not\s+proved:\*? \S", head) is not None


def stated(folder: Path) -> set[str]:
    """All theorems and lemmas of the sources, with the name of their file."""
    return {
        f"{path.stem}.{name}"
        for path in sorted(folder.glob("*.v"))
        for name in _STATED.findall(path.read_text(encoding="utf-8"))
    }
