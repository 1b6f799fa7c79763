"""An entry as it is stored: every column is hashed, and every loss is on the ledger's grid."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.core.ledger.chain.hash_chain import BrokenChain, Identity, LedgerRow
from dpsql.core.ledger.ledger import Entry
from dpsql.core.ledger.losses.regions import LossSpan
from dpsql.core.ledger.privacy_filter import settle
from dpsql.core.privacy_loss import PrivacyLoss

FINE = PrivacyLoss(Fraction(1, 3**200))
DAY = dt.date(2026, 11, 1)
ENTRY = Entry("an id", "ana", {"person": FINE}, "plan", "policy", "SELECT 1", {"person": FINE}, ("one", "two"))
BY_PERIOD = replace(ENTRY, regions={"person": (LossSpan(DAY, None, FINE),)})
OTHER = {
    "kind": "definition",
    "about": f'{{"regions":{{"person":[["2026-11-02",null,["1/{3**200}","0","0"]]]}}}}',
    "charges": '{"person":["0","0","0"]}',
    "received": '{"person":["0","0","0"]}',
    "answers": '["one","three"]',
}


@pytest.mark.parametrize("entry", [ENTRY, BY_PERIOD])
@pytest.mark.parametrize("column", LedgerRow._fields)
def test_every_column_is_hashed(column: str, entry: Entry) -> None:
    origin = Identity.new("clinic", "approx_dp").origin
    row = LedgerRow.after(origin, entry, "2026-01-01T00:00:00+00:00")
    assert row.follows(origin).entry == entry
    changed = {"sequence": 2}.get(column, OTHER.get(column, "other"))
    with pytest.raises(BrokenChain):
        row._replace(**{column: changed}).follows(origin)  # type: ignore[arg-type]


def test_what_is_received_is_rounded_up_as_what_is_charged() -> None:
    settled = settle(ENTRY, "approx_dp")
    assert settled.received == settled.charges == {"person": FINE.on_grid()}
    assert settled.received["person"].epsilon > FINE.epsilon
