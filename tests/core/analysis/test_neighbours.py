"""A few worlds of neighbouring databases, in which a wrong limit of contributions shows; tests/deep has thousands."""

from __future__ import annotations

from tests.support.attacked_worlds import attack_worlds
from tests.support.random_databases import id_world


def test_ids_of_neighbours_stay_within_the_claims() -> None:
    assert attack_worlds(id_world, [3]).pairs > 50
