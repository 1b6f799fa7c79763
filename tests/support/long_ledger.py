"""A ledger with more entries than a test could charge, each as it would have been charged; without flushing any."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from pathlib import Path
from typing import Final

from dpsql.core.ledger.chain.hash_chain import COLUMNS, LedgerRow
from dpsql.core.ledger.ledger import Entry
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.policy.load import load_policy

ACCOUNTS: Final = ("ana", "ben", "cleo", "dan", "eve")
_BEGAN: Final = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def lengthen(policy: Path, entries: int) -> None:
    """Let each account ask in turn, a minute after the other, until so many entries are in the policy's ledger."""
    loaded = load_policy(policy)
    assert loaded.ledger_path is not None and loaded.ledger_head_path is not None
    place = (loaded.ledger_path, loaded.ledger_head_path, loaded.name, loaded.privacy.accountant)
    (unit,) = loaded.units
    with SqliteLedger.open(*place) as ledger:
        last, rows = ledger._tip, list[LedgerRow]()
        for number in range(last.sequence, entries):
            asked = f"SELECT city, COUNT(*) AS n FROM orders WHERE amount < {number} GROUP BY city"
            loss = PrivacyLoss(Fraction(1, 10**5))
            entry = Entry(f"{number:032x}", ACCOUNTS[number % 5], {unit: loss}, "f" * 64, "a" * 64, asked)
            rows.append(LedgerRow.after(last, entry, (_BEGAN + dt.timedelta(minutes=number)).isoformat()))
            last = rows[-1].point
        places = ", ".join("?" * len(LedgerRow._fields))
        ledger._connection.executemany(f"INSERT INTO entries ({COLUMNS}) VALUES ({places})", rows)
        ledger._connection.commit()
