"""A session that runs printed texts, and nothing besides: for tests of the dialect alone."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import DataType

from dpsql.core.engine import RawTable
from dpsql.core.printing.dialect import Dialect
from dpsql.engines.spark.settings import SET


class Bare:
    """Runs statements, with the settings of the engine. Decimals without places become integers."""

    def __init__(self, address: str, dialect: Dialect) -> None:
        self.dialect = dialect
        self.session = SparkSession.builder.remote(address).create()
        for name, value in SET.items():
            self.session.conf.set(name, value)

    def fetch(self, sql: str) -> RawTable:
        """All rows of one SELECT."""
        return self.typed(sql)[0]

    def typed(self, sql: str) -> tuple[RawTable, list[DataType]]:
        """The same, with the type of each column."""
        frame = self.session.sql(sql)
        found = frame.toArrow()
        columns = tuple([_whole(x) for x in column.to_pylist()] for column in found.columns)
        return RawTable(tuple(found.column_names), columns), [field.dataType for field in frame.schema.fields]

    def keep(self, name: str, sql: str) -> None:
        """Compute the rows of a SELECT now, and give them a name in this session."""
        self.session.sql(sql).localCheckpoint().createOrReplaceTempView(name)

    def close(self) -> None:
        """End the session."""
        self.session.stop()


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) and value.as_tuple().exponent == 0 else value
