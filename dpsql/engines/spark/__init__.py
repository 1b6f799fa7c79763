"""Apache Spark over Connect: files that stay as they were, settings that are read back, and silence about its data."""

from dpsql.core.printing.dialects.spark import SPARK as DIALECT

__all__ = ["DIALECT"]
