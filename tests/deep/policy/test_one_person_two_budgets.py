"""A view of a table has no budget of its own."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import dpsql
from tests.policy.test_one_person_two_budgets import CAPPED, EVENTS, RECENT, VIEWS
from tests.support.checklist_clinic import Clinic


@pytest.mark.parametrize("view", VIEWS)
def test_probe_a_view_has_no_budget_of_its_own(make: Callable[..., Clinic], view: str) -> None:
    clinic = make(VIEWS[view], policy=CAPPED + RECENT.format(unit="unit: {rows: 1}"))
    with pytest.raises(dpsql.CannotOpen, match=r"\[DP004\]: tables.recent: reads `events`") as refused:
        clinic.connect()
    assert "the same rows would have two budgets" in str(refused.value)
    (unit,) = re.findall(r"unit: \{rows: 1, of: events\}", str(refused.value))
    clinic.policy.write_text(CAPPED + RECENT.format(unit=unit))
    with clinic.connect() as con:
        con.sql(EVENTS).run(epsilon=2)
        with pytest.raises(dpsql.BudgetExceeded):
            con.sql("SELECT COUNT(*) FROM recent").run(epsilon=2)
        con.sql("SELECT COUNT(*) FROM recent").run(epsilon=1)
