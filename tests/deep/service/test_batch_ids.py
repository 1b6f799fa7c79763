"""Batches over persons: of every set of up to five rows of an id what the quick tests look at of some."""

from __future__ import annotations

import dpsql
from tests.service.test_batch_ids import ROWS, con, each_neighbour_is_within_the_price, marginals_add_up, sets_of

__all__ = ["con"]

SETS = sets_of(ROWS, 5)


def test_every_neighbour_is_within_the_price(con: dpsql.Connection) -> None:
    each_neighbour_is_within_the_price(con, SETS)


def test_marginals_add_up_whatever_an_id_has(con: dpsql.Connection) -> None:
    marginals_add_up(con, SETS)
