"""What an id keeps, by whatever hash."""

from __future__ import annotations

import pytest

from tests.core.printing.test_kept_rows import HASHES, QUERIES, kept_by_its_own_rows


@pytest.mark.parametrize("hashed", HASHES)
@pytest.mark.parametrize("sql", QUERIES)
def test_what_an_id_keeps_is_up_to_its_own_rows(sql: str, hashed: str) -> None:
    kept_by_its_own_rows(sql, hashed)
