"""Ignores hide no protected thing"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.faces.check.test_ignores import OK
from tests.support.checked_files import GOOD, NO_BOUNDS, NO_KEY, codes


@given(
    pieces=st.lists(
        st.sampled_from(
            [OK, "-- dpsql: ignore[", "/* dpsql:", "*/", "\n", "\n\n", ";", NO_KEY, GOOD, "dpsql: ignore[DP201]"]
        ),
        max_size=8,
    )
)
def test_nothing_that_is_protected_can_be_hidden(pieces: list[str]) -> None:
    """Whatever stands around it, a statement on lines of its own keeps its DP201."""
    text = " ".join(pieces)
    whole = f"{text}\n*/ ;\n{NO_BOUNDS}"
    assert {"DP201", "DP010"} & set(codes(whole))
