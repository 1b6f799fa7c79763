"""Links in the ledger's place are refused by name, before anything is charged."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import dpsql
from tests.core.ledger.test_places_of_ledgers import COUNT
from tests.support.checklist_clinic import Clinic

PARTS = ["spent.sqlite", "spent.head", "spent.sqlite.answers"]


def charges(folder: Path) -> dict[str, bytes]:
    """What the files of a ledger hold, by their real names."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and not path.is_symlink()}


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize("part", PARTS)
def test_probe_a_link_is_refused_by_name_before_anything_is_charged(
    make: Callable[..., Clinic], part: str, dangling: bool, fresh: bool
) -> None:
    """It was charged once without an answer; a head that is a link was replaced by a plain file."""
    clinic = make()
    place, target = clinic.folder / part, clinic.folder / "target"
    if not dangling:
        with clinic.connect() as con:
            con.sql(COUNT).run(epsilon=1)
        place.rename(target)
    place.symlink_to(target)
    before = charges(clinic.folder)
    for _ in range(2):
        with clinic.connect() as con, pytest.raises(dpsql.CannotOpen, match="this is a symbolic link") as refused:
            con.sql(COUNT).run(epsilon=2, fresh=fresh)
        assert str(target) in str(refused.value) and "nothing was spent" in str(refused.value)
    after = charges(clinic.folder)
    assert place.is_symlink() and os.readlink(place) == str(target) and target.exists() != dangling
    assert {name: after[name] for name in before if not name.endswith("-shm")} == {
        name: content for name, content in before.items() if not name.endswith("-shm")
    }
    if not dangling:
        place.unlink()
        target.rename(place)
    else:
        place.unlink()
    with clinic.connect() as con:
        assert con.budget["unit"].total_spent.epsilon == (0 if dangling else 1)
        assert len(con.sql(COUNT).run(epsilon=2).rows) == 1
