"""What an untested DuckDB has to show before data is opened in it: hostile expressions whose values are known.

*Claim.* Under our optimizers, each expression has the value, or the failure, that its text says, as an item and as a
condition. *Why.* What was found to move is among them: casts that can fail and come to the other side of a comparison,
constants that are gathered until a chain overflows, parts that leave a TRY, sums that are believed to be small, clips
that vanish. *When it would be false.* It is a sample: a version that passes may still move something else, which is why
it is said that nobody tested it. *Tested by* tests/engines/test_versions.py, whose twin runs it with all optimizers on.
"""

from __future__ import annotations

import contextlib
from typing import Final

import duckdb

_MADE: Final = """
CREATE TABLE h (id INTEGER, i INTEGER, j INTEGER, b BIGINT, x DOUBLE, s VARCHAR, d DATE, t TIMESTAMP, e DECIMAL(18,2));
INSERT INTO h VALUES
  (1, 2147483645, -3, 9223372036854775807, 1e19, '300000-01-01', '5000000-01-01', '290000-01-01', 9999999999999999.99),
  (2, 2147483647, 2, -9223372036854775808, 'nan', '5', '2024-02-29', '2024-02-29 12:00:00', -0.01),
  (3, -2147483648, 0, 0, '-inf', 'x', 'infinity', '-infinity', 0),
  (4, 300, NULL, 4611686018427387904, -0.0, '', '0001-01-01', '1970-01-01', NULL),
  (5, NULL, -1, NULL, NULL, NULL, NULL, NULL, 5.50);
CREATE TABLE large AS SELECT 1 AS code, 2305843009213693952 AS x FROM range(8);
CREATE TABLE codes AS SELECT n AS code, 5 AS title FROM range(3) AS r(n);
"""

FAILS: Final = "fails"

_DAY: Final = "TIMESTAMP '2024-06-01'"
_EXPRESSIONS: Final = (
    # row, expression, value
    (1, "(i + 1) + (j + 2)", 2147483645),
    (1, "(i + 1) + ((j + 1) + 1)", 2147483645),
    (1, "((j - 1) - 2) - (i - 1)", FAILS),
    (2, "i + 1 = 5", FAILS),
    (2, "TRY(i + 1 > 5)", None),
    (3, "TRY(i - 1 < 5)", None),
    (2, "TRY(i * 2 = 3)", None),
    (3, "TRY(0 - i = 4)", None),
    (3, "TRY(-i > 4)", None),
    (2, "TRY(b - 1 < 0)", None),
    (2, "TRY(abs(b) > 1)", None),
    (1, f"CAST(CAST(s AS DATE) AS TIMESTAMP) > {_DAY}", FAILS),
    (1, f"TRY(CAST(CAST(s AS DATE) AS TIMESTAMP) > {_DAY})", None),
    (1, f"TRY_CAST(d AS TIMESTAMP) > {_DAY}", None),
    (1, f"TRY(CAST(TRY_CAST(s AS DATE) AS TIMESTAMP) = {_DAY})", None),
    (2, "CAST(t AS DATE) = DATE '2024-02-29'", True),
    (2, "CAST(t AS DATE) > DATE '2024-02-29'", False),
    (4, "CAST(i AS TINYINT) > 5", FAILS),
    (4, "TRY(CAST(i AS TINYINT) = 300)", None),
    (4, "TRY_CAST(i AS TINYINT) > 5", None),
    (1, "TRY(CAST(b AS INTEGER) = 5)", None),
    (2, "TRY(CAST(s AS INTEGER) = 5)", True),
    (3, "TRY(CAST(s AS INTEGER) = 5)", None),
    (3, "TRY(CAST(s AS DATE) > DATE '2024-01-01')", None),
    (3, "TRY(CAST(x AS INTEGER) < 5)", None),
    (1, "TRY(CAST(e AS DECIMAL(4,2)) > 1)", None),
    (1, "TRY(date_trunc('month', d))", None),
    (1, "TRY(d + 2000000000 > DATE '2024-01-01')", None),
    (1, "CASE WHEN b > 0 THEN TRY(b + 1) END IS NULL AND TRY(b + 1) IS NULL", True),
    (1, "COALESCE(TRY(b + 1), 7) + COALESCE(TRY(b + 1), 7)", 14),
    (4, "TRY(CASE WHEN i = 300 THEN CAST(s AS INTEGER) ELSE 1 END = 1)", None),
    (2, "x = x AND x > 1e300", True),
    (2, "x * 0 = 0", False),
    (2, "x IN ('nan'::DOUBLE, 1, 2, 3, 4, 5, 6, 7)", True),
    (1, "x + 1 - x", 0.0),
    (4, "x IN (0, 1)", True),
    (4, "CAST(x + 0 AS VARCHAR)", "0.0"),
    (4, "j = j", None),
    (2, "j IN (1, NULL, 3, 4, 5, 6, 7, 8)", None),
    (2, "j NOT IN (1, 3, 4, 5, 6, 7, 8, 9)", True),
    (3, "TRY(CAST(s AS INTEGER) IN (1, 2, 3, 4, 5, 6, 7, 8))", None),
    (3, "CASE WHEN s <> 'x' THEN CAST(s AS INTEGER) IN (1, 2, 3, 4, 5, 6, 7, 8) END", None),
    (4, "NOT (j > 1 AND i / 0 > 1)", None),
    (3, "year(t) = 2024", None),
)
_LEAST: Final = "SELECT LEAST(SUM(large.x), 20) FROM large LEFT JOIN"
_STATEMENTS: Final = (
    (f"{_LEAST} codes AS o ON o.code = large.code AND o.title > 90", 20),
    (f"{_LEAST} (SELECT * FROM codes WHERE title = 99) AS o ON o.code = large.code", 20),
    (f"{_LEAST} codes AS o ON o.title > 90", 20),
    ("SELECT SUM(i + 1) FROM h WHERE id IN (1, 2)", FAILS),
    ("SELECT SUM(TRY(i + 1)) FROM h", 300),
    ("SELECT COUNT(*) FROM h WHERE TRY(i + 1 > 0)", 2),
    ("SELECT COUNT(*) FROM h AS one JOIN h AS other ON one.x = other.x", 4),
    ("SELECT COUNT(DISTINCT x) FROM h", 4),
    (
        "SELECT SUM(CASE WHEN y < 0 THEN 0 WHEN y > 10 THEN 10 ELSE y END) FROM (SELECT TRY(i + 1) AS y FROM h)",
        20,
    ),
)


def broken(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """What gives something else than it should, in an empty database. Raises duckdb.Error if that cannot be asked."""
    connection.execute(_MADE)
    failing = [form(row, text) for row, text, value in _EXPRESSIONS if value is FAILS for form in (_item, _condition)]
    rest = [case for case in _EXPRESSIONS if case[2] is not FAILS]
    alone: list[tuple[str, object]] = [(sql, FAILS if value is FAILS else [(value,)]) for sql, value in _STATEMENTS]
    alone += [(sql, FAILS) for sql in failing]
    for row in sorted({row for row, *_ in rest}):  # at once: each statement takes its time
        texts, values = zip(*((text, value) for of, text, value in rest if of == row), strict=True)
        alone.append((_item(row, ", ".join(texts)), [values]))
    kept = [(_condition(row, text), int(value is True)) for row, text, value in rest if value in (None, True, False)]
    counts = " UNION ALL ".join(f"SELECT {i} AS k, ({sql}) AS n" for i, (sql, _) in enumerate(kept))
    alone.append((f"{counts} ORDER BY k", [(i, n) for i, (_, n) in enumerate(kept)]))
    return [sql for sql, expected in alone if repr(_outcome(connection, sql)) != repr(expected)]  # 1 is not True


def _item(row: int, text: str) -> str:
    return f"SELECT {text} FROM h WHERE id = {row}"


def _condition(row: int, text: str) -> str:
    return f"SELECT COUNT(*) FROM h WHERE id = {row} AND ({text})"


def _outcome(connection: duckdb.DuckDBPyConnection, sql: str) -> object:
    with contextlib.suppress(duckdb.Error):
        return connection.execute(sql).fetchall()
    return FAILS
