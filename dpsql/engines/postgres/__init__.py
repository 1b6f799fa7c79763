"""PostgreSQL: read only, in one snapshot, and silent about its data."""

from dpsql.spelling.postgres_functions import POSTGRES as DIALECT

__all__ = ["DIALECT"]
