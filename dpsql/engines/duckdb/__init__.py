"""DuckDB: locked down, in one snapshot, and silent about its data."""

from dpsql.core.printing.dialects.duckdb import DUCKDB as DIALECT

__all__ = ["DIALECT"]
