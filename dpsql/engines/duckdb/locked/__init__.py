"""DuckDB started, locked and cut off from everything else."""
