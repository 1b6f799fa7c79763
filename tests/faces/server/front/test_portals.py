"""A cursor's place: FETCH in every direction gives what a list with a place would give."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.ir.types import BIGINT
from dpsql.faces.server.front.portals import Portal, PreparedStatement, spread
from dpsql.faces.server.statements import Answer

steps = st.lists(
    st.tuples(st.sampled_from(["forward", "backward"]), st.none() | st.integers(-4, 4))
    | st.tuples(st.sampled_from(["absolute", "relative"]), st.integers(-6, 6)),
    max_size=8,
)


def model(height: int, at: int, direction: str, count: int | None) -> tuple[list[int], int]:
    """Row by row, as PostgreSQL's page of FETCH says it."""
    if direction == "absolute":
        assert count is not None
        at = count if count >= 0 else height + 1 + count
    elif direction == "relative":
        assert count is not None
        at += count
    else:
        step = 1 if direction == "forward" else -1
        if count is not None and count < 0:
            step, count = -step, -count
        if count != 0:
            found = []
            while count is None or len(found) < count:
                at = min(max(at + step, 0), height + 1)
                if not 1 <= at <= height:
                    break
                found.append(at)
            return found, at
    at = min(max(at, 0), height + 1)
    return ([at] if 1 <= at <= height else []), at


@given(st.integers(0, 5), steps)
def test_a_cursor_is_a_list_with_a_place(height: int, given_steps: list[tuple[str, int | None]]) -> None:
    rows = [(i,) for i in range(1, height + 1)]
    cursor, at = Portal(PreparedStatement("", None), answer=Answer((("n", BIGINT),), rows)), 0
    for direction, count in given_steps:
        expected, at = model(height, at, direction, count)
        assert [row[0] for row in cursor.fetch(direction, count)] == expected
        assert cursor.at == at


def test_formats_are_spread() -> None:
    assert spread((), 3) == [0, 0, 0] and spread((1,), 3) == [1, 1, 1] and spread((0, 1), 2) == [0, 1]
