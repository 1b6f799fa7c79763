"""The way of one query is short and straight: no inner function leads from `Query.run` to the first rule."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import dpsql
from dpsql.api.connection import Connection
from dpsql.core.release.noisy import draw_release
from dpsql.planner.rewrites.rules import RULES

PACKAGE = str(Path(dpsql.__file__).parent)


def stack_at(frame: FrameType | None) -> list[str]:
    """The functions of dpsql on the stack, the outermost first."""
    found = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            found.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return found[::-1]


def test_ten_frames_to_the_first_rule_and_fifteen_to_the_first_draw(con: Connection) -> None:
    places = {RULES[0].__code__: "rule", draw_release.__code__: "draw"}  # type: ignore[attr-defined]
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
    for place, most in ("rule", 10), ("draw", 15):
        assert stacks[place][0] == "Query.run" and len(stacks[place]) <= most, stacks[place]
        assert not [name for name in stacks[place] if "<" in name], stacks[place]
        assert len(set(stacks[place])) == len(stacks[place]), "nothing calls itself"
