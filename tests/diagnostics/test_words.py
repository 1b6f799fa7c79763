"""Words of messages."""

from __future__ import annotations

import pytest

from dpsql.core.ir.types import BIGINT, INTEGER, VARCHAR
from dpsql.diagnostics.words import with_article


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (INTEGER, "an INTEGER"), (BIGINT, "a BIGINT"), (VARCHAR, "a VARCHAR"), ("UTINYINT", "a UTINYINT"),
        ("UUID", "a UUID"), ("INTERVAL", "an INTERVAL"), ("int", "an int"), ("object", "an object"), ("", "a "),
    ],
)  # fmt: skip
def test_article(name: object, said: str) -> None:
    assert with_article(name) == said
