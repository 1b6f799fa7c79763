"""Apache Spark over Connect: files that stay as they were, settings that are read back, and silence about its data."""

from dpsql.spelling.spark_functions import SPARK as DIALECT

__all__ = ["DIALECT"]
