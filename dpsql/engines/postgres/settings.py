"""What our reading of a server's answers rests on: set in each transaction, read back, and tried out.

*Claim.* A statement of ours means on this connection what it means to the dialect. *Why.* Every setting that changes
what an expression means is set for the transaction alone and read back in it; `search_path` holds nobody's schema, so
that no function or operator of the user's stands before a built-in one; what somebody has put into `pg_catalog` under
the name of a built-in function, each operator there and each cast between built-in types is found in the catalogue;
and the built-in ones are tried on constants. *When it would be false.* If a superuser has replaced a built-in function
by one that is right about the constants, or has loaded a library that changes what statements do.
*Tested by* tests/engines_elsewhere/postgres/test_shadowing.py, test_settings.py.
"""

from __future__ import annotations

from typing import Final

TESTED: Final = (15, 16)
"""The versions that the tests run on. Others are opened if all below is as expected, with a note."""

BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

SET: Final = {
    "search_path": "pg_catalog, pg_temp",  # pg_temp last: unnamed, it would come first
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "row_security": "off",  # a query that a row's policy would cut is an error
    "client_min_messages": "error",
}
"""Name → value, for the transaction."""

ALSO_READ: Final = {
    "transaction_isolation": "repeatable read",
    "transaction_read_only": "on",
    "server_encoding": "UTF8",
    "zero_damaged_pages": "off",
    "ignore_checksum_failure": "off",
}
"""Name → value that is only read back."""

TRIED: Final = {
    "-7 / 2": "-3",
    "div(-7::numeric, 2::numeric)": "-3",
    "7 % -2": "1",
    "abs(-1)": "1",
    "sign(-2.5)": "-1",
    "CAST(2.5::float8 AS integer)": "2",
    "CAST(3.5::float8 AS integer)": "4",
    "CAST(2.5::numeric AS integer)": "3",
    "CAST(-2.5::numeric AS integer)": "-3",
    "pg_typeof(sum(9223372036854775807::bigint))": "numeric",
    "2::numeric * 9223372036854775807::bigint": "18446744073709551614",
    "0.1::float8 + 0.2::float8": "0.30000000000000004",
    "'nan'::float8 = 'nan'::float8 AND 'nan'::float8 > 'inf'::float8 AND 0.0::float8 = '-0.0'::float8": "true",
    "greatest(NULL, 1, 2) - least(2, NULL, 1)": "1",
    "floor(-0.5::float8) + ceil(0.5::float8)": "0",
    "sqrt(2::float8)": "1.4142135623730951",
    "'a' = 'b' OR 'a ' = 'a' OR 'A' = 'a' OR 1 = 2 OR 1::bigint = 2 OR 0.5 = 0.25 OR 1::float8 = 2::float8": "false",
    "'a' <> 'a' OR 1 <> 1 OR 1 > 2 OR 2 < 1 OR 1 >= 2 OR NOT 1 <= 2": "false",
    "'z' COLLATE \"C\" < 'é' COLLATE \"C\" AND 'B' COLLATE \"C\" < 'a' COLLATE \"C\"": "true",
    "(NULL::integer = NULL) IS NULL": "true",
    "'\\' || 'n'": "\\n",
    "length('é')": "1",
    "lower('ABC') || upper('abc') || substr('hello', 2, 3) || replace('aba', 'b', 'c')": "abcABCellaca",
    "'abc' LIKE 'a%' AND NOT 'abc' LIKE 'A%' AND 'a%' LIKE 'a\\%'": "true",
    "md5('a')": "0cc175b9c0f1b6a831c399e269772661",
    "DATE '2024-01-31' + INTERVAL '1 month'": "2024-02-29 00:00:00",
    "DATE '2024-03-01' - DATE '2024-02-01'": "29",
    "extract(week FROM DATE '2024-01-01')": "1",
    "date_trunc('month', TIMESTAMP '2024-02-29 12:00:00')": "2024-02-01 00:00:00",
    "timezone('UTC', TIMESTAMPTZ '2024-02-29 12:00:00+01')": "2024-02-29 11:00:00",
    "count(*) FILTER (WHERE 1 = 1) + count(DISTINCT 5)": "2",
    "1 IN (1, 2) AND NOT 3 IN (1, 2) AND 2 BETWEEN 1 AND 3": "true",
    "coalesce(NULL, 5) + nullif(1, 2)": "6",
}
"""Expression → the text of its value."""

FIRST_OF_USERS: Final = 16384
"""The lowest number of an object that came after `initdb`."""

SETTLE: Final = "SELECT " + ", ".join(
    f"pg_catalog.set_config('{name}', '{value}', true)" for name, value in SET.items()
)

READ_BACK: Final = "SELECT " + ", ".join(f"current_setting('{name}')" for name in (*SET, *ALSO_READ))

TRY: Final = "SELECT " + ", ".join(f"CAST({expression} AS text)" for expression in TRIED)

SHADOWS: Final = f"""
SELECT 'function ' || p.proname FROM pg_proc AS p
WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.oid >= {FIRST_OF_USERS}
  AND p.proname IN (SELECT b.proname FROM pg_proc AS b WHERE b.oid < {FIRST_OF_USERS})
UNION SELECT 'operator ' || o.oprname FROM pg_operator AS o
WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oid >= {FIRST_OF_USERS}
UNION SELECT 'cast from ' || format_type(c.castsource, NULL) || ' to ' || format_type(c.casttarget, NULL)
FROM pg_cast AS c
WHERE c.oid >= {FIRST_OF_USERS} AND c.castsource < {FIRST_OF_USERS} AND c.casttarget < {FIRST_OF_USERS}
UNION SELECT 'function ' || p.proname FROM pg_proc AS p
WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.oid < {FIRST_OF_USERS}
  AND p.prolang NOT IN (SELECT l.oid FROM pg_language AS l WHERE l.lanname IN ('internal', 'c', 'sql'))
ORDER BY 1"""
"""What could stand in the place of a built-in function, operator or cast."""


def unset(read: tuple[str | None, ...]) -> tuple[str, ...]:
    """The settings that are not as they should be. read: the row of READ_BACK."""
    wanted = {**SET, **ALSO_READ}
    return tuple(name for (name, value), got in zip(wanted.items(), read, strict=True) if got != value)


def unlike(tried: tuple[str | None, ...]) -> tuple[str, ...]:
    """The expressions that give something else. tried: the row of TRY."""
    return tuple(text for (text, value), got in zip(TRIED.items(), tried, strict=True) if got != value)
