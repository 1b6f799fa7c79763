"""A ledger file in a folder of its own."""

from tests.core.ledger.conftest import charge, place

__all__ = ["charge", "place"]
