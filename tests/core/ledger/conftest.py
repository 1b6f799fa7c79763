"""A ledger file in a folder of its own, and the entries the tests charge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.core.ledger.ledger import Entry
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.core.privacy_loss import PrivacyLoss


@dataclass(frozen=True)
class Place:
    """Where a ledger and its head lie."""

    path: Path
    head: Path

    def open(self, dataset: str = "clinic", accountant: str = "approx_dp", timeout: float = 300) -> SqliteLedger:
        return SqliteLedger.open(self.path, self.head, dataset, accountant, timeout=timeout)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "l.sqlite", tmp_path / "state" / "head.json")


@pytest.fixture
def charge() -> Callable[[object], Entry]:
    return lambda name: Entry(str(name), "ana", {"patient": PrivacyLoss(Fraction(1, 10))}, "plan", "policy", "SELECT 1")
