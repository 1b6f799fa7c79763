"""A connection over frames."""

from tests.api.conftest import con, opened

__all__ = ["con", "opened"]
