"""Brackets that the parser reads twice come to an end."""

from __future__ import annotations

import pytest

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.parse import parse


@pytest.mark.parametrize(("opened", "closed"), [("ARRAY[", "]"), ("INT(", ")")])
def test_brackets_that_are_read_twice_end(opened: str, closed: str) -> None:
    """Each is read as two things, with all that stands in it: thirty in one another, a billion times."""
    parse(Source(f"SELECT {opened * 4}1{closed * 4}"))
    with pytest.raises(Rejected, match="nested too deeply"):
        parse(Source(f"SELECT {opened * 30}1{closed * 30}"))
