"""The database of post-processing: which engine it is, whatever holds the data."""

from __future__ import annotations

from dpsql.engines.duckdb.scratch import Scratch

__all__ = ["Scratch"]
