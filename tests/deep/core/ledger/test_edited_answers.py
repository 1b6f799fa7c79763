"""Item 67, the stored form: every way to edit a price."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.core.ledger.test_edited_answers import BY_NAME, COUNT, EDITS, SOME, not_the_price
from tests.support.checklist_clinic import Clinic


@pytest.mark.filterwarnings("ignore::dpsql.UtilityWarning")  # of a threshold that may hide all
@pytest.mark.parametrize(
    ("edit", "sql"),
    [*((statements, COUNT) for e, statements in EDITS.items() if e not in SOME), (EDITS["no unit that pays"], BY_NAME)],
    ids=[*(e for e in EDITS if e not in SOME), "no unit that pays for keys"],
)
def test_item_67_an_edited_price_is_not_the_price(make: Callable[..., Clinic], edit: tuple[str, ...], sql: str) -> None:
    not_the_price(make, edit, sql)
