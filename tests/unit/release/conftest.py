"""The club of the session tests."""

from tests.unit.session.conftest import club_folder, con, ledger, shared

__all__ = ["club_folder", "con", "ledger", "shared"]
