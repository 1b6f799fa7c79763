"""The way of one query is short and straight: no inner function leads from `Query.run` to the first rule."""

from __future__ import annotations

import ast
import sys
import threading
from pathlib import Path
from types import FrameType

import dpsql
from dpsql.api.connection import Connection
from dpsql.core.release.noisy import draw_release
from dpsql.planner.rewrites.rules import RULES

STORY = ("planner/compile.py", "service/pipeline.py")
"""What is read first."""
MOST_NAMES, MOST_LINES, DEPTH = 25, 120, 26
PACKAGE = str(Path(dpsql.__file__).parent)


def stack_at(frame: FrameType | None) -> list[str]:
    """The functions of dpsql on the stack, the outermost first."""
    found = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            found.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return found[::-1]


def test_ten_frames_to_the_first_rule_and_thirteen_to_the_first_draw(con: Connection) -> None:
    places = {RULES[0][0].__code__: "rule", draw_release.__code__: "draw"}  # type: ignore[attr-defined]
    stacks: dict[str, list[str]] = {}

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (place := places.get(frame.f_code)) and place not in stacks:
            stacks[place] = stack_at(frame)

    query, before = con.sql("SELECT COUNT(*) AS n, AVG(hours) AS h FROM visits"), sys.getprofile()
    sys.setprofile(profile)
    try:
        query.run(epsilon=1)
    finally:
        sys.setprofile(before)
    for place, most in ("rule", 10), ("draw", 13):
        assert stacks[place][0] == "Query.run" and len(stacks[place]) <= most, stacks[place]
        assert not [name for name in stacks[place] if "<" in name], stacks[place]
        assert len(set(stacks[place])) == len(stacks[place]), "nothing calls itself"


def test_no_function_of_it_is_deeper_than_26(con: Connection) -> None:
    """A join with groups, a count and an average, planned and run, in the thread that asks."""
    sql = "SELECT city, COUNT(*) AS n, AVG(hours) AS h FROM visits JOIN members USING (id) GROUP BY city"
    query, before, deepest = con.sql(sql), sys.getprofile(), list[str]()
    own = threading.get_ident()

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal deepest
        if event == "call" and threading.get_ident() == own and len(found := stack_at(frame)) > len(deepest):
            deepest = found

    sys.setprofile(profile)
    try:
        query.run(epsilon=1)
    finally:
        sys.setprofile(before)
    assert 20 < len(deepest) <= DEPTH, "\n".join(deepest)


def test_what_tells_its_story_is_read_in_one_screen() -> None:
    for name in STORY:
        text = (Path(PACKAGE) / name).read_text(encoding="utf-8")
        imports = [n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.Import, ast.ImportFrom))]
        names = {alias.asname or alias.name for n in imports for alias in n.names}
        assert len(names) <= MOST_NAMES and text.count("\n") <= MOST_LINES, (name, len(names))
