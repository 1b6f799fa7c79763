"""The engine of made-up rows: which one it is."""

from __future__ import annotations

from dpsql.engines.duckdb import DIALECT
from dpsql.engines.duckdb.synthetic import Row, SyntheticEngine

__all__ = ["DIALECT", "Row", "SyntheticEngine"]
