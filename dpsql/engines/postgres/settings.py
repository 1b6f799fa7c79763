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
    "a.i / a.two": "-3",
    "a.l / a.two": "-3",
    "div(a.n, a.two::numeric)": "-3",
    "-a.i % -a.two": "1",
    "abs(a.i) + abs(a.l) + abs(a.n) + abs(a.f)": "23.5",
    "sign(a.n)": "-1",
    "CAST(a.f + 5 AS integer)": "2",
    "CAST(a.f + 6 AS integer)": "4",
    "CAST(a.h AS integer)": "3",
    "CAST(-a.h AS integer)": "-3",
    "CAST(a.f AS bigint)": "-2",
    "pg_typeof(sum(a.l) OVER ())": "numeric",
    "sum(a.l) OVER () + sum(a.i) OVER ()": "-14",
    "a.two::numeric * 9223372036854775807::bigint": "18446744073709551614",
    "a.l * a.two + a.i - a.l": "-14",
    "a.f * 0.1 + 0.2 * a.two": "0.15000000000000002",
    "a.nan = a.nan AND a.nan > a.inf AND a.zero = -a.zero AND NOT a.nan < a.inf": "true",
    "greatest(a.nothing, a.i, a.two) - least(a.two, a.nothing, a.i)": "9",
    "floor(a.f) + ceil(a.f) + trunc(a.f)": "-7",
    "floor(a.h) + ceil(a.h) + trunc(a.h)": "7",
    "sqrt(a.two::float8)": "1.4142135623730951",
    "a.a = a.b OR a.a || ' ' = a.a OR upper(a.a) = a.a": "false",
    "a.i = a.two OR a.l = a.two OR a.h = a.n OR a.f = a.inf": "false",
    "a.a <> a.a OR a.i <> a.i OR a.i > a.two OR a.two < a.i OR a.i >= a.two OR NOT a.i <= a.two": "false",
    "a.a = a.a AND a.i = a.i AND a.l = a.l AND a.n = a.n AND a.f = a.f AND a.day = a.day AND a.at = a.at": "true",
    'a.b COLLATE "C" < \'é\' COLLATE "C" AND upper(a.b) COLLATE "C" < a.a COLLATE "C"': "true",
    "(a.nothing = NULL) IS NULL AND (a.i = a.nothing) IS NULL": "true",
    "'\\' || a.a": "\\a",
    "length(a.a || 'é')": "2",
    "lower('ABC' || a.a) || upper(a.a) || substr('hello' || a.a, 2, 3) || replace('aba', a.a, 'c')": "abcaAellcbc",
    "a.a || 'bc' LIKE 'a%' AND NOT a.a LIKE 'A%' AND a.a || '%' LIKE 'a\\%'": "true",
    "md5(a.a)": "0cc175b9c0f1b6a831c399e269772661",
    "a.day - 29 + INTERVAL '1 month'": "2024-02-29 00:00:00",
    "a.day - DATE '2024-02-01'": "28",
    "extract(week FROM a.day) + extract(year FROM a.day) + extract(dow FROM a.at)": "2037",
    "date_trunc('month', a.at)": "2024-02-01 00:00:00",
    "timezone('UTC', timezone('UTC', a.at))": "2024-02-29 12:00:00",
    "count(*) FILTER (WHERE a.i = a.i) OVER () + count(a.nothing) OVER ()": "1",
    "a.i IN (a.two, -7) AND NOT a.two IN (1, 3) AND a.two BETWEEN a.i AND 3": "true",
    "coalesce(a.nothing, 5) + nullif(a.two, a.i) + CASE WHEN a.i < 0 THEN 1 ELSE 0 END": "8",
}
"""Expression over ROW → the text of its value. Columns: over constants, what replaces a built-in function would not be
seen."""

ROW: Final = """(SELECT -7 AS i, -7::bigint AS l, -7::numeric AS n, 2 AS two, -2.5::float8 AS f, 2.5::numeric AS h,
  0::float8 AS zero, 'nan'::float8 AS nan, 'inf'::float8 AS inf, 'a'::text AS a, 'z'::text AS b,
  NULL::integer AS nothing, DATE '2024-02-29' AS day, TIMESTAMP '2024-02-29 12:00:00' AS at OFFSET 0) AS a"""

FIRST_OF_USERS: Final = 16384
"""The lowest number of an object that came after `initdb`."""

SETTLE: Final = "SELECT " + ", ".join(
    f"pg_catalog.set_config('{name}', '{value}', true)" for name, value in SET.items()
)

READ_BACK: Final = "SELECT " + ", ".join(f"current_setting('{name}')" for name in (*SET, *ALSO_READ))

TRY: Final = f"SELECT {', '.join(f'CAST({expression} AS text)' for expression in TRIED)} FROM {ROW}"

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
UNION SELECT 'planner: extension ' || e.extname FROM pg_extension AS e WHERE e.extname = 'citus'
ORDER BY 1"""
"""What could stand in the place of a built-in function, operator or cast; and what plans statements anew, over several
servers, which have no snapshot in common."""


def unset(read: tuple[str | None, ...]) -> tuple[str, ...]:
    """The settings that are not as they should be. read: the row of READ_BACK."""
    wanted = {**SET, **ALSO_READ}
    return tuple(name for (name, value), got in zip(wanted.items(), read, strict=True) if got != value)


def unlike(tried: tuple[str | None, ...]) -> tuple[str, ...]:
    """The expressions that give something else. tried: the row of TRY."""
    return tuple(text for (text, value), got in zip(TRIED.items(), tried, strict=True) if got != value)
