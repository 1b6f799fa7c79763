"""What sqlglot's tree may hold: a new version of it shows up here as a difference to read before it is accepted.

`checked` refuses every argument that a handler does not name. An argument whose *meaning* changed, or one that moved
to another class, would pass by unseen; so the arguments of each class that `dpsql/frontend` names are written down.
"""

from __future__ import annotations

import re
from pathlib import Path

from sqlglot import exp

SNAPSHOT = Path(__file__).with_name("syntax_nodes.txt")


def handled(root: Path) -> list[type[exp.Expr]]:
    """All syntax classes that the binder names. Questions about the schema read no data, whatever they hold."""
    files = [p for p in (root / "dpsql" / "frontend").rglob("*.py") if p.parent.name != "catalogue"]
    text = "\n".join(p.read_text(encoding="utf-8") for p in files)
    found = {getattr(exp, name, None) for name in re.findall(r"\bexp\.([A-Z]\w*)", text)}
    return sorted((c for c in found if isinstance(c, type) and issubclass(c, exp.Expr)), key=lambda c: c.__name__)


def written(classes: list[type[exp.Expr]]) -> str:
    """One class a line, with its arguments; those that must be set have a star."""
    lines = (
        f"{c.__name__}: {', '.join(f'{name}*' if needed else name for name, needed in sorted(c.arg_types.items()))}"
        for c in classes
    )
    return "\n".join(line.rstrip() for line in lines) + "\n"


def test_arguments_of_the_handled_nodes_are_those_that_were_read(root: Path, update: bool) -> None:
    classes = handled(root)
    assert {exp.Select, exp.Join, exp.Window, exp.Unnest, exp.GroupingSets, exp.SetOperation} <= set(classes)
    found = written(classes)
    if update:
        SNAPSHOT.write_text(found, encoding="utf-8")
    assert SNAPSHOT.read_text(encoding="utf-8") == found, "read sqlglot's changes, then run pytest with --update"


def test_the_snapshot_notices_a_new_argument() -> None:
    wider = type("Join", (), {"arg_types": {**exp.Join.arg_types, "approximate": False}})
    assert written([wider]) != written([exp.Join])
