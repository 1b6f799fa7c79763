"""The ledger charges exactly the cost of a plan."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.api.connection import Connection
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import PrivacyLoss

PRICED = [
    "SELECT COUNT(*) FROM members",
    "SELECT city, COUNT(*), AVG(age), SUM(fee) FROM members GROUP BY city",
    "SELECT note, COUNT(*) AS n FROM members GROUP BY note",
    "SELECT COUNT(*), SUM(hours), AVG(hours), COUNT(DISTINCT id) FROM visits",
    "SELECT a.n / b.n AS r FROM (SELECT COUNT(*) n FROM members) a CROSS JOIN (SELECT COUNT(*) n FROM visits) b",
    "SELECT country, COUNT(*) AS n FROM members JOIN cities USING (city) GROUP BY country HAVING COUNT(*) > 3",
]


@pytest.mark.parametrize("sql", PRICED)
@pytest.mark.parametrize("epsilon", ["0.5", "1/3", "7"])
def test_the_ledger_charges_exactly_the_cost(con: Connection, ledger: MemoryLedger, sql: str, epsilon: str) -> None:
    query = con.sql(sql)
    cost = query.cost(epsilon=Fraction(epsilon), delta="1e-9")
    assert ledger.spent("member") == PrivacyLoss()
    result = query.run(epsilon=Fraction(epsilon), delta="1e-9")
    assert result.spent == cost == ledger.spent("member")
    assert 0 < cost.epsilon <= Fraction(epsilon)
    # A threshold is a whole number, so it may cost less δ than was offered.
    assert 0 < cost.delta <= Fraction(1, 10**9) if "note" in sql else cost.delta == 0
    query.run(epsilon=Fraction(epsilon), delta="1e-9", fresh=True)
    assert ledger.spent("member") == PrivacyLoss(2 * cost.epsilon, 2 * cost.delta)
