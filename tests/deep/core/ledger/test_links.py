"""Links against the one who makes the ledger"""

from __future__ import annotations

import os
from pathlib import Path

from dpsql.diagnostics.errors import CannotOpen
from tests.core.ledger.test_links import entries
from tests.support.interleaved import Interleaved, found


def test_no_link_wins_against_the_one_who_makes_the_ledger(tmp_path: Path) -> None:
    """A link is put where the ledger will be, after each step of making it: whoever comes first, nothing is made
    where the link leads."""

    def linked(place: Path) -> None:
        path = place / "state" / "l.sqlite"
        if not os.path.lexists(path):
            path.symlink_to(place / "elsewhere")

    def first(place: Path) -> None:
        (place / "state").mkdir()
        try:
            found(place).close()
        except CannotOpen as refusal:
            assert "symbolic link" in str(refusal) and "nothing was spent" in str(refusal), refusal
            assert (place / "state" / "l.sqlite").is_symlink()
        else:
            assert entries(place / "state" / "l.sqlite") == 0
        assert not (place / "elsewhere").exists()

    orders = Interleaved(tmp_path, first, linked)
    assert orders.run() > 20 and orders.failures == []
