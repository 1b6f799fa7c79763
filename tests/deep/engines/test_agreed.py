"""On a connection of the user's every optimizer that is not on the list has to be off, or ours to set."""

from __future__ import annotations

import duckdb

from dpsql.engines.duckdb.locked.optimizers import unwanted
from tests.engines.test_agreed import each_has_to_be_off, own

__all__ = ["own"]


def test_each_of_them_has_to_be_off(own: duckdb.DuckDBPyConnection) -> None:
    each_has_to_be_off(own, sorted(unwanted(own)))
