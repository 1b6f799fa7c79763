"""The club: a session over four small tables."""

from tests.support.club import club_folder, con, ledger, shared

__all__ = ["club_folder", "con", "ledger", "shared"]
