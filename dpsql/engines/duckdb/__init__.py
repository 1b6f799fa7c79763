"""DuckDB: locked down, in one snapshot, and silent about its data."""

from dpsql.spelling.duckdb_functions import DUCKDB as DIALECT

__all__ = ["DIALECT"]
