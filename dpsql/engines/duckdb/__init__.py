"""DuckDB: locked down, in one snapshot, and silent about its data."""
