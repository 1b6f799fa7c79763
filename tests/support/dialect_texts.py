"""Scalar texts as people write them, over one table `t (i, j, n, x, s, r, d, e, ts, b)`: each means what the engine of
its dialect says, or is refused by name.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.service.checks.check import static_plan
from tests.support.planning import policy

POLICY = policy("""
t:
  public: true
  columns:
    i: {type: integer}
    j: {type: integer}
    n: {type: "decimal(9,2)"}
    x: {type: double}
    s: {type: varchar}
    r: {type: varchar}
    d: {type: date}
    e: {type: date}
    ts: {type: timestamp}
    b: {type: boolean}
""")
COLUMNS = """i integer, j integer, n numeric(9, 2), x double precision, s varchar, r varchar, d date, e date,
    ts timestamp, b boolean"""
ROWS = """(1, 2, 1.25, 0.5, 'abc', 'ABC', '2024-02-29', '2023-12-31', '2024-02-29 13:05:09', true),
(2, 2, -3.50, -1.5, 'ABC', '', '2024-01-01', '2024-01-01', '2024-01-01 00:00:00', false),
(3, 0, 10.00, 2.5, ' ab ', 'x', '1999-12-31', '2020-02-29', '1999-12-31 23:59:59', null),
(4, 7, 0.05, 1e10, '', 'b', '2021-01-03', '2000-01-01', '2021-01-03 12:00:00', true),
(null, null, null, null, null, null, null, null, null, null)"""
MADE = f"CREATE TABLE t ({COLUMNS}); INSERT INTO t VALUES {ROWS}"

_COMMON = """
i + j; i - j; i * j; i / j; i % 2; -i; i + 1.5; x / 3; x * 2; n + 1; n * 2; n / 3; i / 2; 7 / 2; 1.0 / 3; 10 / 4
-7 / 2; -7 % 3; i = j; i <> j; i != j; i < j; i <= 2; i > j OR b; NOT b; i IS NULL; i IS NOT NULL; b IS TRUE
b IS NOT FALSE; i IN (1, 2); i NOT IN (1, NULL); i BETWEEN 1 AND 2; s LIKE 'a%'; s LIKE '_b%'; s NOT LIKE '%c'
s = 'ABC'; s < 'b'; s = r; CASE WHEN i > 1 THEN 'big' ELSE 'small' END
CASE i WHEN 1 THEN 'a' WHEN 2 THEN 'b' END; COALESCE(i, j, 0); COALESCE(s, 'x'); NULLIF(i, 1); NULLIF(s, '')
GREATEST(i, j); LEAST(i, j); GREATEST(i, 2); GREATEST(s, 'b'); ABS(i - 3); ABS(x); CEIL(x); CEILING(x); FLOOR(x)
ROUND(x); ROUND(x, 1); ROUND(n, 1); ROUND(i / 2.0); ROUND(2.5); ROUND(-2.5); ROUND(3.5); SIGN(i - 2); SQRT(i)
POWER(i, 2); POW(i, 2); EXP(i); LN(i); LOG10(i); LOG(2, 8); LOG(100); MOD(i, 2); MOD(-7, 3); PI(); SIN(x)
COS(x); TAN(x); ATAN(x); ATAN2(i, j); DEGREES(x); RADIANS(x); TRUNC(x); CBRT(8); UPPER(s); LOWER(s); LENGTH(s)
CHAR_LENGTH(s); CHARACTER_LENGTH(s); OCTET_LENGTH(s); BIT_LENGTH(s); CONCAT(s, r); CONCAT(s, NULL)
CONCAT(s, '-', i); CONCAT_WS('-', s, r); s || r; SUBSTRING(s, 2); SUBSTRING(s, 2, 1); SUBSTRING(s FROM 2 FOR 1)
SUBSTR(s, 1, 2); SUBSTR(s, -2); SUBSTR(s, 0, 2); LEFT(s, 2); RIGHT(s, 2); LEFT(s, -1); LPAD(s, 5, '*')
RPAD(s, 5, '*'); LPAD(s, 2, '*'); TRIM(s); LTRIM(s); RTRIM(s); TRIM(BOTH 'a' FROM s); TRIM(LEADING 'a' FROM s)
TRIM(TRAILING 'c' FROM s); REPLACE(s, 'b', 'x'); REPLACE(s, '', 'x'); REVERSE(s); REPEAT(s, 2)
POSITION('b' IN s); ASCII(s); CHR(65); INITCAP(s); MD5(s); STRPOS(s, 'b'); INSTR(s, 'b'); SPLIT_PART(s, 'b', 1)
SPLIT_PART(s, 'b', -1); TRANSLATE(s, 'ab', 'xy'); STARTS_WITH(s, 'a'); CAST(i AS DOUBLE PRECISION)
CAST(x AS INTEGER); CAST(2.5 AS INTEGER); CAST(3.5 AS INTEGER); CAST(-2.5 AS INTEGER); CAST(n AS INTEGER)
CAST(i AS VARCHAR(10)); CAST(d AS VARCHAR(20)); CAST(ts AS DATE); CAST(d AS TIMESTAMP); CAST('12' AS INTEGER)
CAST('2024-02-29' AS DATE); CAST('2024-02-29 12:00:00' AS TIMESTAMP); CAST(x AS DECIMAL(10, 1))
CAST(n AS DECIMAL(10, 0)); CAST(b AS INTEGER); CAST(i AS BOOLEAN); CAST(i AS SMALLINT); CAST(i AS BIGINT)
CAST(TRUE AS VARCHAR(5)); CAST(1 AS CHAR(3)); EXTRACT(YEAR FROM d); EXTRACT(MONTH FROM d); EXTRACT(DAY FROM d)
EXTRACT(HOUR FROM ts); EXTRACT(MINUTE FROM ts); EXTRACT(SECOND FROM ts); EXTRACT(QUARTER FROM d)
EXTRACT(WEEK FROM d); d + INTERVAL '1' DAY; d - INTERVAL '1' MONTH; ts + INTERVAL '2' HOUR; d < e
d = DATE '2024-02-29'; ts >= TIMESTAMP '2024-01-01 00:00:00'; d - e; d + 1; ts - ts; 1 = 1; NULL = 1
TRUE AND NULL; FALSE AND NULL; TRUE OR NULL; i = 1 AND s LIKE 'a%'; (i, j) = (1, 2); i BETWEEN j AND 3
NOT (i = 1); i = ANY(ARRAY[1, 2]); s IN ('ABC', 'abc'); 'a' || NULL; '5' + 1; i + '1'; s = 1; 1 / 0; i / 0
x / 0; i % 0; 'a' = 'A'; 'a' = 'a '; '' = ' '; i & 1; i | 1; i << 1; i >> 1; ~i; i ^ j; 1e3; .5; 0.1 + 0.2
2147483647 + 1; -2 ^ 2; 2 ^ 3 ^ 2; 5 - 3 - 1; NOT TRUE = FALSE; 1 < 2 = TRUE
"""
_POSTGRES = r"""
i::text; x::int; s::varchar; d::timestamp; '2024-01-01'::date; date_trunc('month', d); date_trunc('week', ts)
date_trunc('quarter', ts); date_part('dow', d); date_part('year', ts); extract(dow FROM d)
extract(isodow FROM d); extract(doy FROM d); extract(epoch FROM ts); extract(isoyear FROM d)
to_char(d, 'YYYY-MM'); to_char(ts, 'HH24:MI'); to_date('2024-02-29', 'YYYY-MM-DD')
to_timestamp('2024-02-29', 'YYYY-MM-DD'); age(d, e); make_date(2024, 2, 29); s ~ '^A'; s ~* '^a'; s !~ 'b'
s ILIKE 'a%'; s SIMILAR TO 'a%'; regexp_replace(s, 'b', 'x'); regexp_replace(s, 'B', 'x', 'gi')
substring(s from 'b.'); btrim(s); btrim(s, 'a'); s COLLATE "C" < 'b'; width_bucket(i, 0, 10, 5); div(7, 2)
gcd(4, 6); num_nulls(i, j); quote_literal(s); format('%s', s); to_hex(10); i IS DISTINCT FROM j; i ISNULL
b IS UNKNOWN; @ i; |/ i; i # j; log(x); log(2.0, 8.0); trunc(n, 1); trunc(x); round(x::numeric(9, 2), 1); md5(s)
left(s, -1); right(s, -1); overlay(s placing 'x' from 1 for 1); string_to_array(s, 'b')
array_length(ARRAY[1, 2], 1); justify_days(interval '40 days'); now() > d; current_date > d
d + interval '1 month'; d - interval '1 day'; ts - interval '90 minutes'; d - 7; ts::date; ts::time
d + time '12:00'; interval '1 day' * 2; date '2024-03-01' - date '2024-02-28'; (d, e) OVERLAPS (d, e)
chr(i + 64); concat(s, i, b); unistr('a'); cbrt(27); factorial(4); random() < 2; position('' in s)
strpos(s, ''); s LIKE 'a\%'; E'a\tb'; lower(s) = ANY(ARRAY['abc']); s = ANY('{ABC,abc}'); i <> ALL(ARRAY[1])
nullif(x, 0) IS NULL; bool 'true'; 'yes'::boolean; i::boolean; b::int; b::text; 1::text || 'a'
starts_with(s, 'A'); s ^@ 'A'
"""
_DUCKDB = """
i // 2; i % 2; x // 1; i ** 2; ifnull(i, 0); if(i > 1, 'a', 'b'); year(d); month(d); day(d); quarter(d); week(d)
weekofyear(d); dayofweek(d); isodow(d); dayofyear(d); hour(ts); minute(ts); second(ts); dayname(d); monthname(d)
last_day(d); date_diff('day', e, d); datediff('month', e, d); date_sub('month', e, d)
date_add(d, INTERVAL 1 DAY); strftime(d, '%Y-%m'); strftime(ts, '%H:%M'); strptime('2024-02-29', '%Y-%m-%d')
epoch(ts); epoch_ms(ts); to_days(3); to_hours(2); d + to_days(3); make_timestamp(2024, 2, 29, 1, 2, 3)
time_bucket(INTERVAL '1 day', ts); date_part('week', d); datepart('dow', d); datetrunc('month', d); century(d)
decade(d); era(d); contains(s, 'b'); prefix(s, 'A'); suffix(s, 'c'); starts_with(s, 'A'); ends_with(s, 'c')
len(s); strlen(s); s[1]; s[1:2]; array_slice(s, 1, 2); list_contains([1, 2], i); regexp_matches(s, '^A')
regexp_full_match(s, 'A.*'); regexp_extract(s, 'b(.)', 1); regexp_replace(s, 'b', 'x', 'g')
string_split(s, 'b'); str_split(s, 'b')[1]; lcase(s); ucase(s); levenshtein(s, r); jaccard('ab', 'bc')
hamming('ab', 'ac'); damerau_levenshtein(s, r); editdist3(s, r); ascii(s); unicode(s); ord(s); bin(i); hex(i)
to_base(i, 2); md5(s); sha256(s); hash(i) IS NOT NULL; nfc_normalize(s); strip_accents(s); printf('%d', i)
format('{}', i); instr(s, 'b'); mismatches('ab', 'ac'); bar(i, 0, 10); even(x); gamma(i); lgamma(i); isnan(x)
isinf(x); isfinite(x); nextafter(x, 2); xor(i, j); bit_count(i); fmod(i, 2); round_even(x, 0); greatest(i, j, 3)
TRY_CAST(s AS INTEGER); i::HUGEINT; i::TINYINT; i::UINTEGER; x::FLOAT; s::BLOB; x::DECIMAL; x::DECIMAL(18, 3)
d::TIMESTAMPTZ; CAST(ts AS TIME); typeof(i); i IS DISTINCT FROM j; s GLOB 'A*'; s NOT ILIKE 'a%'
s LIKE 'A%' ESCAPE '!'; i BETWEEN SYMMETRIC 3 AND 1; [i, j]; {'a': i}; struct_pack(a := i); map([1], [2])
COLUMNS('i'); list_sum([i, j]); i IN [1, 2]; list_value(i); unnest([1]); (SELECT 1); EXISTS (SELECT 1)
INTERVAL 1 DAY; INTERVAL '1 day'; d + INTERVAL 1 MONTH; d + INTERVAL (i) DAY; ts - INTERVAL 1 HOUR; ts - ts
age(ts, ts); today() > d; current_date > d; get_current_timestamp() > ts; txid_current() > 0; version() = ''
pi(); e(); nullif(i, 1); coalesce(NULL, i); error('x'); 1_000; 0x1F; 1e3; 'a' 'b'; $$a$$; -i ** 2; 2 ** 3 ** 2
!b; ~i; @i; i <=> j; i == j; 'a' < 'B'; 'ß' = 'SS'; upper('ß'); length('ä'); reverse('äb'); lower('İ')
round(x, -1); round(-0.5); ceil(-0.5); trunc(-x); -7 // 2; -7 % 3; mod(-7, 3); 7.5 // 2; 7.5 % 2; i / NULL
sqrt(i); cot(x); asinh(x); log2(i); ln(x); signbit(x); ROUND(n, 1); n::INTEGER; '2024-1-5'::DATE
DATE '2024-02-29' + 1; d::VARCHAR; ts::VARCHAR; x::VARCHAR; n::VARCHAR; b::VARCHAR; 1.0::VARCHAR; 1e20::VARCHAR
(x * 1e15)::VARCHAR; DATE '-0044-03-15'; TIMESTAMP 'infinity' > ts
"""
OF = {"postgres": _COMMON + _POSTGRES, "duckdb": _COMMON + _POSTGRES + _DUCKDB}


def texts(dialect: str) -> list[str]:
    parts = (text.strip() for line in OF[dialect].splitlines() for text in line.split("; "))
    return list(dict.fromkeys(filter(None, parts)))


def compared(dialect: str, ask: Callable[[str], list[Any]]) -> tuple[list[str], list[str], list[str]]:
    """Texts that mean the same, that are refused, and that mean something else; those that fail at the engine left out.

    ask: the rows' values of a query, at the engine of the dialect.
    """
    same, refused, different = list[str](), list[str](), list[str]()
    with duckdb.connect() as plain:
        plain.execute(f"SET TimeZone = 'UTC'; {MADE}")
        for text in texts(dialect):
            query = f"SELECT {text} AS v FROM t"
            try:
                theirs = sorted(map(repr, map(_plain, ask(query))))
            except Exception:  # whatever the engine's client raises
                continue
            try:
                plan = static_plan(Source(query), POLICY, dialect=dialect)
            except Rejected:
                refused.append(text)
                continue
            ours = sorted(repr(_plain(v)) for (v,) in plain.execute(plan.post.sql).fetchall())
            (same if ours == theirs else different).append(text)
    return same, refused, different


def _plain(value: Any) -> Any:
    """A value as both engines' clients give it; what is no number is none."""
    match value:
        case bytes():
            return value.decode()
        case int() | float() | Decimal():
            number = float(value)
            return None if number != number or abs(number) == float("inf") else float(f"{number:.9g}")
        case dt.datetime():
            at = value.replace(tzinfo=None)
            return str(at.date()) if at.time() == dt.time(0) else str(at)
        case dt.date() | dt.time():
            return str(value)
        case list() | tuple():
            return [_plain(v) for v in value]
    return value
