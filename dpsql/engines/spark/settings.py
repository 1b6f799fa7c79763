"""What our reading of a cluster's answers rests on: set in our session, read back in each run, and tried out.

*Claim.* A statement of ours means in this session what it means to the dialect. *Why.* Every setting that is known to
change what an expression or a file means is set, and read back before each run; one that somebody has set and that is
not known here is refused; so is whatever could plan or compute statements in Spark's place (extensions, plugins,
another shuffle). Built-in functions come first, by `sessionOrder`, and are tried on rows that no optimizer can fold.
*When it would be false.* If a setting of Spark that is not in the list changed a meaning by its default, or if a
cluster computed otherwise than Spark without a word in its settings.
*Tested by* tests/engines_elsewhere/spark/test_settings.py, test_shadowing.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

LEAST_VERSION: Final = (4, 3)
"""Older ones look for a temporary function before the built-in one of its name."""
TESTED: Final = ((4, 3),)
"""The versions that the tests run on. Others are opened if all below is as expected, with a note."""

_SQL: Final = "spark.sql."
SET: Final = {
    f"{_SQL}{name}": value
    for name, value in {
        "ansi.enabled": "true",  # what does not fit is an error, and never NULL or another number
        "ansi.doubleQuotedIdentifiers": "false",
        "ansi.enforceReservedKeywords": "false",
        "ansi.relationPrecedence": "false",
        "caseSensitive": "false",
        "charAsVarchar": "false",
        "crossJoin.enabled": "true",
        "decimalOperations.allowPrecisionLoss": "false",  # places are never dropped to make room
        "files.ignoreCorruptFiles": "false",
        "files.ignoreInvalidPartitionPaths": "false",
        "files.ignoreMissingFiles": "false",
        "files.ignoredPathSegmentRegex": "^[._]",
        "function.concatBinaryAsString": "false",
        "function.eltOutputAsString": "false",
        "functionResolution.sessionOrder": "second",  # built-in functions are first
        "groupByAliases": "true",
        "groupByOrdinal": "true",
        "icu.caseMappings.enabled": "true",
        "orderByOrdinal": "true",
        "parquet.aggregatePushdown": "false",
        "parquet.binaryAsString": "false",
        "parquet.datetimeRebaseModeInRead": "CORRECTED",
        "parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "parquet.fieldId.read.enabled": "false",
        # A file's statistics leave NaNs out, and tell 0.0 from -0.0: whether a row is seen would rest on other rows.
        "parquet.filterPushdown": "false",
        "parquet.inferTimestampNTZ.enabled": "true",
        "parquet.int96AsTimestamp": "true",
        "parquet.int96RebaseModeInRead": "CORRECTED",
        "parquet.int96TimestampConversion": "false",
        "parquet.mergeSchema": "false",
        "parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "parquet.respectSummaryFiles": "false",
        "parquet.writeLegacyFormat": "false",
        "parser.quotedRegexColumnNames": "false",
        "path.enabled": "false",
        "preserveCharVarcharTypeInfo": "false",
        "readSideCharPadding": "true",
        "session.timeZone": "UTC",
        "sources.bucketing.enabled": "false",  # that equal keys are in one file is not checked by anybody
        "sources.partitionColumnTypeInference.enabled": "true",
        "timestampType": "TIMESTAMP_NTZ",
        "variable.substitute": "false",  # ${…} in a text is a text
    }.items()
}
"""Name → value, for our session."""

_MEANS_NOTHING: Final = re.compile(
    "spark[.]sql[.](?:"
    + "|".join(
        name.replace(".", "[.]")
        for name in (
            "adaptive.", "artifact.", "autoBroadcastJoinThreshold$", "broadcastTimeout$", "bucketing.", "cache.",
            "catalog.", "catalogImplementation$", "cbo.", "classic.", "codegen.", "connect.", "debug.",
            "defaultCacheStorageLevel$", "defaultCatalog$", "error.messageFormat$", "event.", "execution.arrow.",
            "execution.interruptOnCancel$", "execution.sortBeforeRepartition$", "execution.topKSortFallbackThreshold$",
            "execution.useObjectHashAggregateExec$", "files.max", "files.min", "files.openCostInBytes$",
            "hive.filesourcePartitionFileCacheSize$", "hive.metastore", "hive.thriftServer.", "hive.version$",
            "inMemoryColumnarStorage.", "join.", "leafNodeDefaultParallelism$", "maxBroadcastTableSize$",
            "maxMetadataStringLength$", "maxPlanStringLength$", "maxSinglePartitionBytes$", "optimizer.dynamic",
            "optimizer.runtime", "orc.", "parquet.compression.codec$", "parquet.enable", 
            "pyspark.", "queryExecutionListeners$",
            "redaction.", "shuffle.", "shuffleDependency.", "sort", "sources.bucketing.", "sources.default$",
            "sources.parallelPartitionDiscovery.", "sources.partitionOverwriteMode$", "sources.v2.bucketing.",
            "statistics.", "storeAssignmentPolicy$", "streaming.", "thriftServer.", "thriftserver.", "ui.",
            "warehouse.dir$",
        )
    )
    + ")"
)  # fmt: skip
"""Settings that change how a question is computed, or what is told of it, and never its answer."""

_INSTEAD_OF_SPARK: Final = re.compile(
    r"spark[.](?:sql[.]extensions|plugins|shuffle[.]manager|sql[.]cache[.]serializer|sql[.]catalog[.]system(?:[.].*)?|memory[.]offHeap[.]gluten)$"
    r"|spark[.](?:gluten|comet|rapids|auron|blaze|databricks[.]photon)[.]"
)
"""What could plan or compute a statement in Spark's place: its decimals are then another's."""
_OWN: Final = frozenset({
    "", "false", "sort", "tungsten-sort", "org.apache.spark.shuffle.sort.SortShuffleManager",
    "org.apache.spark.sql.execution.columnar.DefaultCachedBatchSerializer",
})  # fmt: skip
"""Values of these with which Spark computes itself."""

TRIED: Final = {
    "a.i div a.two": "-3",
    "a.l div a.two": "-3",
    "-a.i % -a.two": "1",
    "abs(a.i) + abs(a.l)": "14",
    "abs(a.n) + abs(a.f)": "9.5",
    "abs(a.h)": "2.5",
    "sign(a.f)": "-1.0",
    "CAST(rint(a.f + 5) AS INT)": "2",
    "CAST(rint(a.f + 6) AS INT)": "4",
    "CAST(a.h AS INT)": "2",
    "try_cast(a.a AS INT)": None,
    "try_cast(a.l * 1000000000 AS INT)": None,
    "CAST(a.l AS DECIMAL(38, 0)) * 1000000000000000000000000000000": "-7000000000000000000000000000000",
    "CAST(a.h AS DECIMAL(19, 10)) * CAST(a.h AS DECIMAL(18, 10))": "6.25000000000000000000",
    "a.f * 0.1D + 0.2D * a.two": "0.15000000000000002",
    "a.nan = a.nan AND a.nan > a.inf AND a.zero = -a.zero AND NOT a.nan < a.inf": "true",
    "isnan(a.nan) AND NOT isnan(a.inf)": "true",
    "greatest(a.nothing, a.i, a.two) - least(a.two, a.nothing, a.i)": "9",
    "floor(a.f) + ceil(a.f)": "-5",
    "floor(a.h) + ceil(a.h)": "5",
    "sqrt(a.two)": "1.4142135623730951",
    "shiftright(a.l, 1) + (a.l & 3)": "-3",
    "a.a = a.b OR a.a || ' ' = a.a OR upper(a.a) = a.a": "false",
    "a.i = a.two OR a.l = a.two OR a.h = a.n OR a.f = a.inf": "false",
    "a.a <> a.a OR a.i <> a.i OR a.i > a.two OR a.two < a.i OR a.i >= a.two OR NOT a.i <= a.two": "false",
    "a.a = a.a AND a.i = a.i AND a.l = a.l AND a.n = a.n AND a.f = a.f AND a.day = a.day AND a.at = a.at": "true",
    "a.b < a.a || 'é' OR 'é' < a.b OR a.a < upper(a.b)": "false",
    "(a.nothing = NULL) IS NULL AND (a.i = a.nothing) IS NULL AND NULL <=> a.nothing": "true",
    r"'\\' || a.a": "\\a",
    "char_length(a.a || 'é')": "2",
    "lower('ABC' || a.a) || upper(a.a) || substring('hello' || a.a, 2, 3) || replace('aba', a.a, 'c')": "abcaAellcbc",
    r"a.a || 'bc' LIKE 'a%' AND NOT a.a LIKE 'A%' AND a.a || '%' LIKE 'a\\%'": "true",
    "md5(a.a)": "0cc175b9c0f1b6a831c399e269772661",
    "add_months(a.day, -1)": "2024-01-29",
    "date_diff(a.day, DATE'2024-02-01')": "28",
    "extract(WEEK FROM a.day) + extract(YEAR FROM a.day) + extract(DOW FROM a.at)": "2038",
    "CAST(date_trunc('MONTH', a.at) AS TIMESTAMP_NTZ)": "2024-02-01 00:00:00",
    "typeof(TIMESTAMP'2024-01-01 00:00:00')": "timestamp_ntz",
    "current_timezone()": "UTC",
    "'${spark.app.name}' || a.a": "${spark.app.name}a",
    "a.counted": "6",
    "a.summed": "21",
    "a.most - a.least": "6",
    "a.i IN (a.two, -7) AND NOT a.two IN (1, 3) AND a.two BETWEEN a.i AND 3": "true",
    "coalesce(a.nothing, 5) + nullif(a.two, a.i) + CASE WHEN a.i < 0 THEN 1 ELSE 0 END": "8",
}  # fmt: skip
"""Expression over ROW → the text of its value."""

ROW: Final = """(SELECT CAST(id - 7 AS INT) AS i, id - 7 AS l, CAST(id - 7 AS DECIMAL(38, 0)) AS n,
  CAST(id + 2 AS INT) AS two, CAST(id - 2.5 AS DOUBLE) AS f, CAST(id + 2.5 AS DECIMAL(9, 1)) AS h,
  CAST(id AS DOUBLE) AS zero, CAST(id AS DOUBLE) + DOUBLE('NaN') AS nan, CAST(id AS DOUBLE) + DOUBLE('Infinity') AS inf,
  counted, summed, most, least,
  char(CAST(id + 97 AS INT)) AS a, char(CAST(id + 122 AS INT)) AS b, CAST(nullif(id, 0) AS INT) AS nothing,
  date_add(DATE'2024-02-29', CAST(id AS INT)) AS day,
  TIMESTAMP_NTZ'2024-02-29 12:00:00' + make_dt_interval(0, 0, 0, id) AS at
  FROM (SELECT sum(id) - 21 AS id, count(*) FILTER (WHERE id <> 3) AS counted, max(id) AS most, min(id) AS least,
    sum(CAST(id AS DECIMAL(38, 0))) AS summed FROM range(0, 7, 1, 1))) AS a"""
"""Made of rows, so that each expression is computed, and not folded into a constant."""

TRY: Final = f"SELECT {', '.join(f'CAST({expression} AS STRING) AS x' for expression in TRIED)} FROM {ROW}"


def unset(read: Mapping[str, str]) -> tuple[str, ...]:
    """The settings that are not as they should be. read: all that are set in the session."""
    return tuple(name for name, value in SET.items() if read.get(name) != value)


def foreign(read: Mapping[str, str]) -> tuple[str, ...]:
    """What else is set that may change a meaning, or that computes in Spark's place. read: as of `unset`."""
    return tuple(sorted(name for name, value in read.items() if _is_foreign(name, value)))


def _is_foreign(name: str, value: str) -> bool:
    if _INSTEAD_OF_SPARK.match(name):
        return value.strip().lower() not in {own.lower() for own in _OWN}
    return name.startswith(_SQL) and name not in SET and not _MEANS_NOTHING.match(name)


def unlike(tried: tuple[str | None, ...]) -> tuple[str, ...]:
    """The expressions that give something else. tried: the row of TRY."""
    return tuple(text for (text, value), got in zip(TRIED.items(), tried, strict=True) if got != value)


def version_of(text: str) -> tuple[int, int] | None:
    """Major and minor of a version as Spark writes it; None for another text."""
    found = re.match(r"(\d{1,4})[.](\d{1,4})(?:\D|$)", text)
    return None if found is None else (int(found[1]), int(found[2]))
