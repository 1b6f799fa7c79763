"""What scalar texts of an engine are made of, beside atoms and the grammar's own words.

Every function is pure: of its arguments alone, whatever the session, the clock and other rows are. That no value makes
it fail is not claimed here: where one can, the spelling guards it. Names are read as they are printed, with capitals.
Each stands in a text of tests/core/gate/test_vocabularies.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The lists of one engine.

    functions: called with expressions alone. special: with words of their own (grammar.py). types: what CAST names.
    typed: words before a literal. fields: of EXTRACT. made: functions that we make and name. operators: between two
    primaries, beside comparisons. lists: what a list of elements begins with. escapes: whether literals have them.
    suffix: of a number that is a DOUBLE.
    """

    functions: frozenset[str]
    types: re.Pattern[str]
    casts: frozenset[str]
    typed: frozenset[str]
    operators: frozenset[str]
    lists: str = ""
    special: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()
    made: re.Pattern[str] | None = None
    escapes: bool = False
    suffix: bool = False
    collates: bool = False
    elements: bool = False
    lets: bool = False
    any: bool = False


def _all(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _types(names: str) -> re.Pattern[str]:
    """One of the names, each a pattern, as a whole word; the grammar sees to what stands behind it."""
    return re.compile(rf"(?:{names})(?!\w)")


DUCKDB: Final = Vocabulary(
    functions=_all("""
        COALESCE GREATEST LEAST greatest least
        abs sign floor ceil trunc round sqrt cbrt ln log10 log2 exp pow sin cos tan asin acos atan radians degrees
        isnan isinf isfinite xor bin
        lower upper reverse strip_accents md5 sha256 trim ltrim rtrim length strlen bit_length left right substring
        lpad rpad replace translate split_part ascii unicode concat concat_ws starts_with ends_with contains strpos
        regexp_matches regexp_full_match regexp_extract regexp_replace json_valid json_extract_string
        year month day quarter week isoyear dayofweek isodow dayofyear decade century hour minute second millisecond
        microsecond epoch monthname dayname date_trunc date_diff date_sub time_bucket timezone last_day strftime
        to_months to_microseconds
        from_hex list_contains len
    """),
    types=_types(
        r"(?:TINYINT|SMALLINT|U?INTEGER|U?BIGINT|HUGEINT|UTINYINT|USMALLINT|BOOLEAN|DOUBLE|FLOAT|VARCHAR|DATE|TIME|INTERVAL"
        r"|TIMESTAMP(?: WITH TIME ZONE)?|UUID|BLOB|DECIMAL\(\d+,\d+\)|\"NULL\")(?:\[\])*"
    ),
    casts=_all("CAST TRY_CAST"),
    typed=_all("DATE TIME TIMESTAMP TIMESTAMPTZ"),
    operators=_all("+ - * / // % || & |"),
    lists="[",
    special=_all("TRY NULLIF"),
)

POSTGRES: Final = Vocabulary(
    functions=_all("""
        COALESCE GREATEST LEAST greatest least
        abs sign floor ceil trunc round sqrt cbrt ln log exp power sin cos tan asin acos atan div
        isfinite cardinality
        lower upper md5 sha256 encode decode convert_to btrim ltrim rtrim length octet_length bit_length left right
        substring substr lpad rpad replace translate split_part ascii concat concat_ws starts_with strpos
        date_trunc to_char timezone make_date
    """),
    types=_types(
        r"(?:smallint|integer|bigint|numeric(?:\(\d+, \d+\))?|double precision|real|boolean|text|date|time|interval"
        r"|timestamp(?: with time zone)?|uuid|bytea|bit\(64\))(?:\[\])*"
    ),
    casts=_all("CAST"),
    typed=_all("DATE TIME TIMESTAMP TIMESTAMPTZ"),
    operators=_all("+ - * / % || & | #"),
    lists="ARRAY",
    special=_all("NULLIF extract make_interval"),
    fields=_all("""
        epoch year month day quarter week isoyear dow isodow doy hour minute second milliseconds microseconds
    """),
    made=re.compile(r"pg_temp\.dpsql_[0-9a-f]{32}"),
    collates=True,
    lets=True,
    any=True,
)

_OF_SPARK: Final = (
    r"(?:TINYINT|SMALLINT|INT|BIGINT|DECIMAL\(\d+, \d+\)|BOOLEAN|DOUBLE|FLOAT|STRING|DATE|BINARY"
    r"|TIMESTAMP_NTZ|TIMESTAMP_LTZ|INTERVAL DAY TO SECOND|VOID)"
)
SPARK: Final = Vocabulary(
    functions=_all("""
        COALESCE GREATEST LEAST greatest least
        abs signum floor ceil rint round sqrt pmod try_add try_subtract try_multiply
        bin array array_size array_contains
        lower upper md5 sha2 length octet_length left right substring substr substring_index lpad rpad replace
        translate split_part ascii concat_ws startswith endswith contains instr try_validate_utf8
        year month day quarter weekofyear dayofweek weekday dayofyear hour minute second date_format date_trunc trunc
        datediff unix_micros timestamp_micros date_from_unix_date add_months make_date date_add date_sub last_day
    """),
    types=_types(rf"{_OF_SPARK}|ARRAY<{_OF_SPARK}>|ARRAY<ARRAY<{_OF_SPARK}>>"),
    casts=_all("CAST try_cast"),
    typed=_all("DATE TIMESTAMP_NTZ INTERVAL X"),
    operators=_all("+ - * / % || & | ^ div"),
    special=_all("NULLIF extract trim transform"),
    fields=_all("YEAROFWEEK SECOND"),
    escapes=True,
    suffix=True,
    elements=True,
)

OF_DIALECTS: Final[Mapping[str, Vocabulary]] = {"duckdb": DUCKDB, "postgresql": POSTGRES, "spark": SPARK}
"""By the name of the dialect."""
