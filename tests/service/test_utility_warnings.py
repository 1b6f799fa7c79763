"""DP5xx stand before a run that spends: as a warning of Python, which a filter turns into a refusal."""

from __future__ import annotations

import pickle
import warnings

import pytest

import dpsql
from dpsql.api.connection import Connection
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import PrivacyLoss

NOWHERE = "SELECT COUNT(*) AS n FROM members WHERE city = 'Rome'"
"""A value that the policy does not list: DP505."""


def test_it_stands_before_the_charge(con: Connection, ledger: MemoryLedger) -> None:
    with pytest.warns(dpsql.UtilityWarning) as caught:
        con.sql(NOWHERE).run(epsilon=1)
    (warning,) = caught
    assert isinstance(warning.message, dpsql.UtilityWarning)
    assert [d.code for d in warning.message.diagnostics] == ["DP505"]
    assert "'Rome' is not among the values" in str(warning.message) and "^^^^^^" in str(warning.message)
    assert warning.filename == __file__, "it points at the caller"
    assert ledger.spent("member").epsilon == 1
    copy = pickle.loads(pickle.dumps(warning.message))
    assert copy.diagnostics == warning.message.diagnostics


@pytest.mark.parametrize("run", ["query", "execute", "cursor"])
def test_a_filter_makes_it_a_refusal(con: Connection, ledger: MemoryLedger, run: str) -> None:
    runs = {
        "query": lambda: con.sql(NOWHERE).run(epsilon=1),
        "execute": lambda: con.execute(NOWHERE, epsilon=1),
        "cursor": lambda: con.cursor().executemany(NOWHERE, [[]], epsilon=1),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", dpsql.UtilityWarning)
        with pytest.raises(dpsql.UtilityWarning):
            runs[run]()
    assert ledger.spent("member") == PrivacyLoss()


def test_what_spends_nothing_is_not_warned_about(con: Connection) -> None:
    """Looking at it, and an answer that is there already. (Tests turn every warning into an error.)"""
    query = con.sql(NOWHERE)
    query.explain(epsilon=1)
    query.cost(epsilon=1)
    with pytest.warns(dpsql.UtilityWarning):
        query.run(epsilon=1)
    query.run(epsilon=1)
    with pytest.warns(dpsql.UtilityWarning):
        query.run(epsilon=1, fresh=True)
