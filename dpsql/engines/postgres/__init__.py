"""PostgreSQL: read only, in one snapshot, and silent about its data."""

from dpsql.core.printing.dialects.postgres import POSTGRES as DIALECT

__all__ = ["DIALECT"]
