"""What every dialect answers (core/printing/dialect.py), run on its engine: the values are those that are claimed.

A new engine inherits this by its line in tests/support/engines.py.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.core.engine import Engine
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.types import (
    BIGINT,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HUGEINT,
    INTEGER,
    INTERVAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    UBIGINT,
    VARCHAR,
    SqlType,
    decimal,
)
from dpsql.core.printing.dialect import CannotSpell, Dialect
from dpsql.core.printing.dialects.duckdb import DuckDB
from dpsql.core.values.value import Value, type_range
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.engines import open as opening
from dpsql.functions.registry import FAMILIES, REGISTRY, apply
from dpsql.planner.compile import compile_query
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import load_policy
from dpsql.spelling.duckdb_functions import DUCKDB, FUNCTIONS
from tests.support.engines import ENGINES, LISTS

NAN, INF = math.nan, math.inf
MOMENT = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)


@pytest.fixture(params=ENGINES, ids=lambda make: make.__name__, scope="module")
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened: Engine = request.param(tmp_path_factory.mktemp("data"))
    yield opened
    opened.close()


def one(engine: Engine, expression: str) -> Any:
    return engine.fetch(f"SELECT {expression} AS x").columns[0][0]


def one_of(engine: Engine, sql: str) -> Any:
    return engine.fetch(sql).columns[0][0]


def double(d: Dialect, value: float | None) -> str:
    return d.constant(value, DOUBLE)


def table(d: Dialect, values: list[Any], type_: SqlType) -> str:
    """The rows t(i, x): each value with its number."""
    return d.values([f"{i}, {d.constant(v, type_)}" for i, v in enumerate(values)], ["i", "x"], "t")


def same(a: Any, b: Any) -> bool:
    """Equal to the bit, and of one class: whole numbers and decimals without places may be one."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    a, b = (int(x) if isinstance(x, Decimal) and x.as_tuple().exponent == 0 else x for x in (a, b))
    return type(a) is type(b) and a == b


# --- names, constants and types ---------------------------------------------------------------------------------------

ODD = [
    "a b",
    'a"b',
    "it's",
    "select",
    "a;--",
    "é",
    "x\ny",
    "\\",
    "\\'",
    "A",
    "",
    " ",
    "%",
    "a ",
    "/*",
    "👩‍👩‍👧",
    "$$",
    "?",
]


def test_names_are_any_characters_but_nul(engine: Engine) -> None:
    d = engine.dialect
    names = [name for name in ODD if name]
    found = engine.fetch(f"SELECT {', '.join(f'{i} AS {d.identifier(name)}' for i, name in enumerate(names))}")
    assert list(found.names) == names and [c[0] for c in found.columns] == list(range(len(names)))
    with pytest.raises(Rejected, match="DP106"):
        d.identifier("a\0b")


def test_texts_are_literals_of_themselves(engine: Engine) -> None:
    d = engine.dialect
    found = engine.fetch(f"SELECT {', '.join(f'{d.text(text)} AS c{i}' for i, text in enumerate(ODD))}")
    assert [c[0] for c in found.columns] == ODD
    for text in ("a\0b", "\ud83d"):
        with pytest.raises(Rejected, match="DP106"):
            d.text(text)


def test_texts_of_the_data_may_hold_nuls(engine: Engine) -> None:
    for text in ("\0", "a\0b", "'\0\0'", "plain"):
        try:
            printed = engine.dialect.text_with_nuls(text)
        except Rejected:  # no text of such an engine holds one
            assert "\0" in text
            continue
        assert one(engine, printed) == text


CONSTANTS: list[tuple[Any, SqlType]] = [
    *((sign * (2**power + step), HUGEINT if power > 62 else BIGINT if power > 30 else INTEGER)
      for power in (7, 30, 31, 32, 53, 62, 63, 64, 126) for step in (-1, 0, 1) for sign in (1, -1)),
    (-(2**127), HUGEINT), (2**127 - 1, HUGEINT),
    *((Decimal(text), decimal(38, scale)) for text, scale in
      (("9" * 38, 0), ("-" + "9" * 28 + "." + "9" * 10, 10), ("0." + "9" * 38, 38), ("-0." + "0" * 37 + "1", 38))),
    *((x, DOUBLE) for x in (0.0, -0.0, 0.1, 1e308, 5e-324, -1.7976931348623157e308, INF, -INF, NAN, 2.0**53 + 2)),
    (True, BOOLEAN), (False, BOOLEAN),
    *((day, DATE) for day in (dt.date.min, dt.date.max, dt.date(2024, 2, 29))),
    *((at, TIMESTAMP) for at in (dt.datetime.min, dt.datetime.max, dt.datetime(1969, 12, 31, 23, 59, 59, 999999))),
    *((None, t) for t in (INTEGER, HUGEINT, DOUBLE, VARCHAR, DATE, TIMESTAMP, BOOLEAN, decimal(9, 2))),
]  # fmt: skip


def printable(d: Dialect, constants: list[tuple[Any, SqlType]]) -> list[tuple[Any, SqlType]]:
    """Those that there is a literal for: all but whole numbers beyond the largest, and times where there are none."""
    found = []
    for value, type_ in constants:
        try:
            d.constant(value, type_)
        except Rejected as refusal:
            assert refusal.diagnostics[0].code == "DP106"
            assert type_ == TIME or (type_ == HUGEINT and abs(value) > d.largest), value
        else:
            found.append((value, type_))
    return found


def test_constants_keep_their_value_and_type(engine: Engine) -> None:
    d = engine.dialect
    kept = printable(d, CONSTANTS)
    found = engine.fetch("SELECT " + ", ".join(f"{d.constant(v, t)} AS c{i}" for i, (v, t) in enumerate(kept)))
    for (value, type_), (got,) in zip(kept, found.columns, strict=True):
        assert same(got, value) or (value == got == 0.0), (value, type_, got)


def test_the_largest_whole_number_is_a_constant(engine: Engine) -> None:
    d = engine.dialect
    assert 2**126 <= d.largest < 2**127
    for sign in (1, -1):
        assert one(engine, d.wide(d.constant(sign * d.largest, HUGEINT))) == sign * d.largest


def test_constants_that_no_answer_shows_compare_as_they_should(engine: Engine) -> None:
    d = engine.dialect
    times = printable(d, [(dt.time(12), TIME), (dt.time(12, 0, 0, 1), TIME)])
    blobs: list[tuple[Any, SqlType]] = [(b"\0\xfe", BLOB), (b"\0\xff", BLOB)]
    for pair in (times, blobs):
        if pair:
            low, high = (d.constant(v, t) for v, t in pair)
            assert one(engine, f"{low} < {high} AND {low} = {low}") is True
    day, step = d.constant(dt.datetime(2024, 2, 29), TIMESTAMP), d.constant(dt.timedelta(days=-1, seconds=3), INTERVAL)
    assert one(engine, f"{day} + {step}") == dt.datetime(2024, 2, 28, 0, 0, 3)


def test_casts_keep_what_fits_and_the_careful_one_never_fails(engine: Engine) -> None:
    d = engine.dialect
    assert same(one(engine, d.cast(d.constant(7, INTEGER), DOUBLE)), 7.0)
    assert same(one(engine, d.cast(d.constant(7, INTEGER), decimal(5, 2))), Decimal("7.00"))
    assert one(engine, d.cast(d.constant(dt.date(2024, 2, 29), DATE), TIMESTAMP)) == dt.datetime(2024, 2, 29)
    for value, type_, target, wanted in (
        (300, INTEGER, TINYINT, None),
        (-128, INTEGER, TINYINT, -128),
        (10**30, HUGEINT, BIGINT, None),
        (Decimal("99.99"), decimal(4, 2), decimal(3, 2), None),
        (None, INTEGER, DOUBLE, None),
    ):
        known = Value(type_, range=type_range(type_), finite=False)
        assert same(one(engine, d.try_cast(d.constant(value, type_), known, target)), wanted), (value, target)


@pytest.mark.parametrize(
    ("value", "source", "target", "wanted"),
    [
        (2.5, DOUBLE, INTEGER, 2),
        (3.5, DOUBLE, INTEGER, 4),
        (-2.5, DOUBLE, INTEGER, -2),
        (NAN, DOUBLE, INTEGER, None),
        (1e300, DOUBLE, INTEGER, None),
        (Decimal("2.5"), decimal(3, 1), INTEGER, 3),
        (Decimal("-2.5"), decimal(3, 1), INTEGER, -3),
        (-NAN, DOUBLE, VARCHAR, "nan"),
        ("yes and no", VARCHAR, BOOLEAN, None),
        ("x", VARCHAR, INTEGER, None),
        ("17", VARCHAR, INTEGER, 17),
        ("2024-02-30", VARCHAR, DATE, None),
        (True, BOOLEAN, INTEGER, 1),
    ],
)
def test_a_users_cast_rounds_as_it_is_claimed(
    engine: Engine, value: Any, source: SqlType, target: SqlType, wanted: Any
) -> None:
    d = engine.dialect
    known = Value(source, range=type_range(source), finite=False)
    try:
        sql = d.convert(f"({d.constant(value, source)})", known, target)
    except CannotSpell:
        return
    assert same(one(engine, sql), wanted)


# --- whole numbers ----------------------------------------------------------------------------------------------------


def test_wide_numbers_are_exact_up_to_120_bits(engine: Engine) -> None:
    d = engine.dialect
    for a, b in ((2**60, 2**60 - 1), (-(2**59) - 1, 2**60), (2**62, 2**57)):
        held = [d.wide(d.constant(x, BIGINT)) for x in (a, b)]
        assert one(engine, f"{held[0]} * {held[1]}") == a * b
        assert one(engine, f"{held[0]} * {held[1]} + {held[0]}") == a * b + a


@pytest.mark.parametrize("type_", [INTEGER, BIGINT, HUGEINT], ids=str)
def test_division_truncates_towards_zero(engine: Engine, type_: SqlType) -> None:
    d = engine.dialect
    pairs = [(-7, 2), (7, -2), (7, 2), (-7, -2), (-1, 2), (1, -2), (-8, 2), (0, 3), (2**31 - 1, 2)]
    if type_ != INTEGER:
        pairs += [(2**62 + 1, 1), (-(2**62) - 1, 2), (2**63 - 1, 2**62), (10**18 + 1, 10)]
    if type_ == HUGEINT:
        pairs += [(2**120 - 1, 2**60), (-(2**120) + 1, 2**60 + 1), (2**100, 2**99)]
    for a, b in pairs:
        wanted = int(Fraction(a, b))
        assert one(engine, d.divide(*(d.cast(str(x), type_) for x in (a, b)), type_)) == wanted, (a, b)


def test_totals_are_exact_whatever_the_terms(engine: Engine) -> None:
    d = engine.dialect
    cases: list[tuple[list[Any], SqlType]] = [
        ([2**31 - 1] * 5, INTEGER),
        ([2**63 - 1] * 3, BIGINT),
        ([2**63 - 1, -(2**63 - 1), None, 5], BIGINT),
        ([2**80] * 7, HUGEINT),
        ([Decimal("0.1")] * 3, decimal(18, 1)),
        ([Decimal("9" * 18)] * 4, decimal(18, 0)),
    ]
    for terms, type_ in cases:
        rows = d.values([f"{i}, {d.cast(d.constant(v, type_), type_)}" for i, v in enumerate(terms)], ["i", "x"], "t")
        assert engine.fetch(f"SELECT {d.total('x', type_)} FROM {rows}").columns[0] == [
            sum(t for t in terms if t is not None)
        ]
        assert engine.fetch(f"SELECT {d.total('x', type_, ' FILTER (WHERE i = 0)')} FROM {rows}").columns[0] == [
            terms[0]
        ]
        assert engine.fetch(f"SELECT {d.total('x', type_)} FROM {rows} WHERE i < 0").columns[0] == [None]


def test_rising_totals_are_exact_below_two_to_53_and_not_below_it_beyond(engine: Engine) -> None:
    """4,194,304 of 2³¹ are 2⁵³; ones after them would be lost one by one."""
    d = engine.dialect
    terms = [0, 1, 2**31, 2**31 - 1, 3, None]
    sql = d.rising_total(d.cast("x", BIGINT))
    if sql is None:
        return
    found = engine.fetch(
        f"SELECT {sql} AS s, {d.rising_total('i', ' FILTER (WHERE x > 1)')} FROM {table(d, terms, BIGINT)}"
    )
    assert found.columns[0][0] == 2**32 + 3 and engine.fetch(
        f"SELECT {sql} AS s FROM {table(d, terms, BIGINT)} WHERE x > 2147483648"
    ).columns[0] == [None]
    for ones, least in ((0, 2**53), (1000, 2**53), (-1, 2**53 - 1)):
        rows = (
            f"(SELECT CASE WHEN r < {2**22 + min(ones, 0)} THEN 2147483648 ELSE {2**31 - 1 if ones < 0 else 1} END AS x"
        )
        rows += f" FROM range({2**22 + max(ones, 0)}) AS t(r))"
        (total,) = engine.fetch(f"SELECT {sql} AS s FROM {rows} AS q").columns[0]
        assert total == least if ones <= 0 else total >= least


def test_rounding_to_integers_is_half_to_even_and_never_fails(engine: Engine) -> None:
    d = engine.dialect
    wanted = {
        2.5: 2, 3.5: 4, -2.5: -2, -3.5: -4, 0.5: 0, 1.5: 2, -0.5: 0, 2.4999999999999996: 2, 2.6: 3, -2.6: -3,
        2147483646.5: 2147483646, 2147483647.0: 2147483647, 2147483648.0: None, -2147483648.0: -2147483648,
        -2147483649.0: None, 1e300: None, INF: None, -INF: None,
    }  # fmt: skip
    for x, n in wanted.items():
        assert same(one(engine, d.round_to_integer(double(d, x), INTEGER)), n), x
    assert one(engine, d.round_to_integer(double(d, NAN), INTEGER)) is None
    assert one(engine, d.round_to_integer(double(d, None), INTEGER)) is None
    for x, n in {2147483648.5: 2147483648, 2.0**62: 2**62, -(2.0**62): -(2**62), 2.0**63: None}.items():
        assert same(one(engine, d.round_to_integer(double(d, x), BIGINT)), n), x


def test_totals_of_small_terms_are_exact_for_as_many_rows_as_there_may_be(engine: Engine) -> None:
    """However few bits they have: 2⁴⁰ rows of the largest term stand for each row here."""
    d = engine.dialect
    for most in (1, 50, 2**23 - 1, 2**23, 2**31 - 1):
        terms = [most, -most, most, None]
        rows = table(d, terms, INTEGER)
        total = d.total("x", INTEGER, most=most)
        assert same(one_of(engine, f"SELECT {total} AS y FROM {rows}"), most)
        kept = d.wide(f"COALESCE({d.total('x', INTEGER, ' FILTER (WHERE i = 0)', most=most)}, 0)")
        assert one_of(engine, f"SELECT {kept} * {2**40} AS y FROM {rows}") == most * 2**40
        assert one_of(engine, f"SELECT {total} AS y FROM {rows} WHERE i > 5") is None
    sums = [d.total("x", INTEGER, most=most) for most in (2**23 - 1, 2**23)]
    if d.name == "postgresql":  # of 64 bits only where no number of rows can go beyond them
        assert "AS integer" in sums[0] and "AS bigint" in sums[1]


def test_ends_are_compared_with_numbers_of_any_width(engine: Engine) -> None:
    d = engine.dialect
    for end in (0, 5, -5, 2**31, -(2**40), 2**63, -(2**63), 2**80, -(2**100)):
        for held in (d.wide(d.constant(end, HUGEINT)), d.cast(str(end), BIGINT) if abs(end) < 2**63 else None):
            if held is not None:
                inside = f"{held} BETWEEN {d.end(end)} AND {d.end(end)} AND NOT {held} < {d.end(end)}"
                assert one(engine, f"{inside} AND {held} + 1 > {d.end(end)}") is True


def test_roots_keep_all_digits(engine: Engine) -> None:
    d = engine.dialect
    large = (2**62, 2**80 + 12345, (10**17 + 3) ** 2, (2**62 - 1) ** 2, 2**124, 2**126)
    for x in (0, 1, 2, 3, 10**15 + 7, 2**53 - 1, *large):
        assert one(engine, d.near_root(d.wide(d.constant(x, HUGEINT)))) == math.ceil(math.sqrt(float(x))), x


def test_units_of_doubles_are_rounded_half_to_even(engine: Engine) -> None:
    d = engine.dialect
    cases: list[tuple[float, list[float], int, SqlType, int]] = [
        (2.5, [], 0, INTEGER, 2), (3.5, [], 0, INTEGER, 4), (-1.25, [2.0], 0, INTEGER, -2),
        (1.25, [2.0], 3, INTEGER, 0),
        (2.0**-1060, [2.0**1000, 2.0**60], 0, INTEGER, 1), (5e-324, [0.5], 0, INTEGER, 0),
        (-5e-324, [0.25], 7, INTEGER, -7), (3e5, [2.0**-4], 10, BIGINT, 18740), (0.0, [2.0**-30], 0, INTEGER, 0),
        (2.0**61 + 2.0**10, [2.0], 0, BIGINT, 2**62 + 2**11),
    ]  # fmt: skip
    for x, factors, center, type_, wanted in cases:
        value = table(d, [x, math.nan, math.inf, 1e300, None], DOUBLE)
        inside = f"x BETWEEN {double(d, x)} AND {double(d, x)}"
        printed = f"CASE WHEN {inside} THEN {d.units_within('x', factors, center, type_)} END"
        assert engine.fetch(f"SELECT {printed} AS y FROM {value} ORDER BY i").columns[0] == [
            wanted,
            None,
            None,
            None,
            None,
        ]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0.0, 500.0),
        (-20.0, 30.5),
        (0.0, 0.0),
        (-1e308, 1.5e308),
        (1e308, 1.5e308),
        (0.0, 5e-324),
        (2.0**53, 2.0**53 + 2),
    ],
)
def test_what_is_near_is_between_two_ends_or_hardly_beyond(engine: Engine, low: float, high: float) -> None:
    d = engine.dialect
    inside = [low, high, math.nextafter(low, high), math.nextafter(high, low), low / 2 + high / 2]
    slack = Fraction(high) - Fraction(low)
    beyond = [math.nextafter(low, -INF), math.nextafter(high, INF), low - 1, high + 1, -1e308, 1.7e308]
    outside = [x for x in beyond if not Fraction(low) - slack / 2**53 <= Fraction(x) <= Fraction(high) + slack / 2**53]
    for xs, wanted in ((inside, True), ([*outside, NAN, INF, -INF], False)):
        found = engine.fetch(f"SELECT ({d.near('x', low, high)}) IS TRUE AS y FROM {table(d, xs, DOUBLE)}")
        assert set(found.columns[0]) == {wanted}
    assert one(engine, f"({d.near(d.constant(None, DOUBLE), low, high)}) IS TRUE") is False


# --- DOUBLE -----------------------------------------------------------------------------------------------------------

NUMBERS = [0.0, -0.0, 1.5, -1.5, 5e-324, 1.7976931348623157e308, INF, -INF, NAN]


def test_what_is_finite_and_what_is_a_number(engine: Engine) -> None:
    d = engine.dialect
    for x in NUMBERS:
        assert one(engine, d.is_finite(double(d, x))) is math.isfinite(x), x
        assert one(engine, d.is_nan(double(d, x))) is math.isnan(x), x
    assert one(engine, d.is_finite(double(d, None))) is None


def test_nan_is_one_value_above_all_and_zero_is_one_value(engine: Engine) -> None:
    d = engine.dialect
    nan, inf, zero, minus = (double(d, x) for x in (NAN, INF, 0.0, -0.0))
    claims = [f"{nan} = {nan}", f"{nan} = -{nan}", f"{nan} > {inf}", f"{zero} = {minus}", f"NOT {nan} < {inf}"]
    claims += [f"NOT {nan} BETWEEN {zero} AND {inf}", f"{minus} BETWEEN {zero} AND {zero}"]
    assert one(engine, " AND ".join(f"({claim})" for claim in claims)) is True
    rows = table(d, [NAN, -NAN, 0.0, -0.0, None, None], DOUBLE)
    groups = engine.fetch(f"SELECT COUNT(*) AS n FROM {rows} GROUP BY x ORDER BY MIN(i)").columns[0]
    assert groups == [2, 2, 2]
    assert engine.fetch(f"SELECT COUNT(DISTINCT x) AS n FROM {rows}").columns[0] == [2]


@pytest.mark.parametrize("type_", [DOUBLE, FLOAT], ids=str)
def test_zero_has_one_sign_where_it_is_asked_for(engine: Engine, type_: SqlType) -> None:
    d = engine.dialect
    for x in (0.0, -0.0, 1.5, -1.5, INF, -INF, NAN):
        got = one(engine, d.cast(d.positive_zero(d.cast(double(d, x), type_), type_), DOUBLE))
        assert same(got, abs(x) if x == 0 else x), x
    assert one(engine, d.positive_zero(d.constant(None, type_), type_)) is None


# --- choice -----------------------------------------------------------------------------------------------------------


def test_the_greater_and_the_lesser_of_two(engine: Engine) -> None:
    d = engine.dialect
    for a, b in ((-3, 5), (5, 5), (2**62, -(2**62))):
        x, y = (d.cast(str(v), BIGINT) for v in (a, b))
        assert one(engine, d.greatest(x, y)) == max(a, b) and one(engine, d.least(x, y)) == min(a, b)
        x, y = d.wide(x), d.wide(y)
        assert one(engine, d.greatest(x, y)) == max(a, b) and one(engine, d.least(x, y)) == min(a, b)


def test_a_clip_names_its_number_once(engine: Engine) -> None:
    d = engine.dialect
    for type_, far in ((INTEGER, 2**31 - 1), (BIGINT, 2**63 - 1)):
        assert (
            d.clip_once("x", "0", "1", HUGEINT) is None and (d.clip_once("x", "0", "1", type_) or "x").count("x") == 1
        )
        for low, high in ((-3, 5), (0, 0), (7, far)):
            for value in (None, -far - 1, -4, -3, 0, 5, 6, far):
                sql = d.clip_once(d.constant(value, type_), str(low), str(high), type_)
                clipped = None if value is None else min(high, max(low, value))
                assert sql is None or one(engine, sql) == clipped, (value, low, high)


def test_membership_is_true_or_false(engine: Engine) -> None:
    d = engine.dialect
    cases: list[tuple[Any, list[Any], SqlType]] = [
        (1, [1, 2], INTEGER), (3, [1, 2], INTEGER), (None, [1, 2], INTEGER), (2**40, [2**40], BIGINT),
        ("a", ["a"], VARCHAR), ("a ", ["a"], VARCHAR), ("A", ["a"], VARCHAR), ("", ["a"], VARCHAR),
        ("e\u0301", ["\u00e9"], VARCHAR), ("it's", ["it's", "\\"], VARCHAR), (-0.0, [0.0], DOUBLE),
        (dt.date(2024, 2, 29), [dt.date(2024, 2, 29)], DATE), (True, [False], BOOLEAN),
    ]  # fmt: skip
    for value, constants, type_ in cases:
        found = one(engine, d.member(d.constant(value, type_), [d.constant(c, type_) for c in constants]))
        assert found is (value in constants), (value, constants)


def test_groups_are_asked_as_their_rows_would_be(engine: Engine) -> None:
    d = engine.dialect
    values = ["a", "A", "it's", "b", None, "a"]
    rows = d.values([d.constant(v, VARCHAR) for v in values], ["k"], "t")
    asked = d.having_member("t.k", [d.text("a"), d.text("it's"), d.text("c")])
    if asked is not None:
        found = engine.fetch(
            f"SELECT t.k, COUNT(*) FROM {rows} GROUP BY 1 {d.having(f'({asked}) AND t.k IS NOT NULL')}"
        )
        assert sorted(found.rows()) == [("a", 2), ("it's", 1)]
        with_null = engine.fetch(f"SELECT COUNT(*) FROM {rows} GROUP BY t.k {d.having(f'({asked} OR t.k IS NULL)')}")
        assert sorted(with_null.columns[0]) == [1, 1, 2]


def test_texts_of_a_list_may_be_grouped_in_another_form_and_come_back(engine: Engine) -> None:
    d = engine.dialect
    texts = ["", "a", "A", "it's", "\\", "e\u0301", "b" * 200]
    for value in [*texts, "b", "a ", " ", "\u00e9", None]:
        sql = d.listed(d.constant(value, VARCHAR), texts)
        if sql is not None:
            assert one(engine, d.cast(sql, VARCHAR)) == (value if value in texts else None), value
    for no_list in ([], ["a\0b", "a"]):
        sql = d.listed(d.constant("a", VARCHAR), no_list)
        assert sql is None or one(engine, d.cast(sql, VARCHAR)) == ("a" if no_list else None)


KEYS: list[tuple[Any, SqlType]] = [
    (7, INTEGER), (2**40, BIGINT), (2**100, HUGEINT), (Decimal("1.50"), decimal(9, 2)), (0.1, DOUBLE), ("a", VARCHAR),
    (True, BOOLEAN), (dt.date(2024, 2, 29), DATE), (dt.datetime(2024, 2, 29, 1), TIMESTAMP), (dt.time(1), TIME),
    (b"\0", BLOB), (None, VARCHAR),
]  # fmt: skip


def test_the_hash_is_of_all_keys_and_of_the_salt(engine: Engine) -> None:
    d = engine.dialect
    kept = printable(d, KEYS)
    keys = [(d.constant(v, t), t) for v, t in kept]
    others = [(d.constant(None if v is not None else "b", t), t) for v, t in kept]
    texts = [d.order_hash(keys, "5"), d.order_hash(keys, "6")]
    texts += [d.order_hash([*keys[:i], other, *keys[i + 1 :]], "5") for i, other in enumerate(others)]
    first, again = ([one(engine, text) for text in texts] for _ in range(2))
    assert first == again and len(set(first)) == len(texts)


def test_equal_values_have_one_hash_whatever_their_form(engine: Engine) -> None:
    d = engine.dialect
    zero, minus, nan = (double(d, x) for x in (0.0, -0.0, NAN))
    assert len({one(engine, d.order_hash([("7", INTEGER), (x, DOUBLE)], "5")) for x in (zero, minus)}) == 1
    assert len({one(engine, d.order_hash([(x, DOUBLE), ("7", INTEGER)], "5")) for x in (nan, f"-{nan}")}) == 1


# --- relations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_order_is_nulls_where_they_are_said_to_be_and_nan_above_all(
    engine: Engine, descending: bool, nulls_first: bool
) -> None:
    d = engine.dialect
    values = [1.5, None, NAN, -INF, INF, -2.0]
    term = d.sorted("x", descending, nulls_first)
    found = engine.fetch(f"SELECT i FROM {table(d, values, DOUBLE)} ORDER BY {term}").columns[0]
    inner = [3, 5, 0, 4, 2]
    inner = inner[::-1] if descending else inner
    assert found == ([1, *inner] if nulls_first else [*inner, 1])


def test_texts_are_ordered_by_their_bytes(engine: Engine) -> None:
    d = engine.dialect
    values = ["z", "é", "Z", "a", "a ", "", "A", "😀", "\uffff", "ab", "10", "9"]
    term = d.sorted("x", descending=False, nulls_first=False)
    found = engine.fetch(f"SELECT x FROM {table(d, values, VARCHAR)} ORDER BY {term}").columns[0]
    assert found == sorted(values, key=str.encode)
    least = engine.fetch(f"SELECT MIN(x), MAX(x) FROM {table(d, values, VARCHAR)}").columns
    assert [c[0] for c in least] == [min(values, key=str.encode), max(values, key=str.encode)]


def test_first_rows_are_those_of_which_a_condition_on_windows_holds(engine: Engine) -> None:
    d = engine.dialect
    rows = table(d, [3, 1, 1, 2, 3, 3], INTEGER)
    kept = f"ROW_NUMBER() OVER (PARTITION BY x ORDER BY i) <= 1 OR i = {5}"
    found = engine.fetch(d.first_rows("SELECT i, x", f"\nFROM {rows}\nWHERE i > 0\n", kept))
    assert sorted(zip(found.columns[0], found.columns[1], strict=True)) == [(1, 1), (3, 2), (4, 3), (5, 3)]
    again = engine.fetch(
        f"SELECT i FROM ({d.first_rows('SELECT *', f' FROM {rows} ', 'COUNT(*) OVER (PARTITION BY x) = 2')}) AS q"
    )
    assert sorted(again.columns[0]) == [1, 2]


@pytest.mark.parametrize("anti", [False, True])
def test_half_joins_keep_each_left_row_once(engine: Engine, anti: bool) -> None:
    d = engine.dialect
    left = table(d, [1, 2, 2, None, 5], INTEGER)
    right = d.values(["1", "1", "2", d.constant(None, INTEGER)], ["y"], "r")
    for source in (left, f"{left}\nJOIN {d.values(['0'], ['z'], 's')} ON s.z = 0"):
        clause, conditions = d.half_join(source, right, "t.x = r.y AND r.y > 0", anti)
        where = " AND ".join([*conditions, "t.i < 9"])
        found = engine.fetch(f"SELECT t.i FROM {clause} WHERE {where}").columns[0]
        assert sorted(found) == ([3, 4] if anti else [0, 1, 2])


def test_lists_are_unnested_up_to_a_length(engine: Engine) -> None:
    d, write = engine.dialect, LISTS[engine.dialect.name]
    items = [d.constant(x, INTEGER) for x in (4, None, 6, 7)]
    rows = [f"{i}, {write(items[:n])}" for i, n in enumerate((4, 1, 3))]
    source = f"{d.values([*rows, '3, NULL'], ['i', 'x'], 't')}\n{d.unnest('t.x', 2, 'u')}"
    found = engine.fetch(f"SELECT t.i, u.element FROM {source}")
    got = sorted(zip(*found.columns, strict=True), key=repr)
    assert got == sorted([(0, 4), (0, None), (1, 4), (2, 4), (2, None)], key=repr)
    lengths = engine.fetch(f"SELECT {d.list_length('x')} AS n FROM {d.values(rows, ['i', 'x'], 't')} ORDER BY i")
    assert lengths.columns[0] == [4, 1, 3]


def test_rows_are_given_as_they_are_written(engine: Engine) -> None:
    d = engine.dialect
    for rows in ([["1", "2"]], [["1", "NULL"], ["NULL", d.constant(2, INTEGER)], ["1", "2"]]):
        found = engine.fetch(f"SELECT v.a, v.b FROM {d.values([', '.join(row) for row in rows], ['a', 'b'], 'v')}")
        wanted = [tuple(None if cell == "NULL" else int(cell) for cell in row) for row in rows]
        assert sorted(zip(*found.columns, strict=True), key=repr) == sorted(wanted, key=repr)


def test_windows_may_skip_nulls(engine: Engine) -> None:
    d = engine.dialect
    rows = table(d, [1, None, 3], INTEGER)
    for args, ignore_nulls, wanted in (
        ([("x", INTEGER)], False, [None, 1, None]),
        ([("x", INTEGER), ("2", INTEGER)], False, [None, None, 1]),
        ([("x", INTEGER)], True, [None, 1, 1]),
    ):
        try:
            called = f"{d.window('lag', args, ignore_nulls)} OVER (ORDER BY i)"
        except CannotSpell:
            assert ignore_nulls
            continue
        assert engine.fetch(f"SELECT {called} AS y FROM {rows} ORDER BY i").columns[0] == wanted
    called = f"{d.window('count', [], False)} OVER (ORDER BY i)"
    assert engine.fetch(f"SELECT {called} AS y FROM {rows} ORDER BY i").columns[0] == [1, 2, 3]


# --- functions --------------------------------------------------------------------------------------------------------


TRAPS: list[tuple[str, list[tuple[Any, SqlType]], Any]] = [
    ("intdiv", [(-7, INTEGER), (2, INTEGER)], -3),
    ("intdiv", [(2**62, BIGINT), (3, BIGINT)], 2**62 // 3),
    ("intdiv", [(1, INTEGER), (0, INTEGER)], None),
    ("div", [(1, INTEGER), (0, INTEGER)], None),
    ("mod", [(-7, INTEGER), (2, INTEGER)], -1),
    ("mul", [(1e300, DOUBLE), (1e300, DOUBLE)], INF),
    ("mul", [(1e-300, DOUBLE), (1e-300, DOUBLE)], 0.0),
    ("mul", [(Decimal("0.1"), decimal(38, 10)), (Decimal("0.1"), decimal(38, 10))], 0.010000000000000002),
    ("add", [(2**63 - 1, BIGINT), (1, BIGINT)], 2**63),
    ("eq", [("a ", VARCHAR), ("a", VARCHAR)], False),
    ("lt", [("é", VARCHAR), ("z", VARCHAR)], False),
    ("lt", [("Z", VARCHAR), ("a", VARCHAR)], True),
    ("eq", [(NAN, DOUBLE), (NAN, DOUBLE)], True),
    ("gt", [(NAN, DOUBLE), (INF, DOUBLE)], True),
    ("greatest", [(None, INTEGER), (3, INTEGER)], 3),
    ("round", [(2.5, DOUBLE)], 3.0),
    ("like", [("a\\b", VARCHAR), ("a\\%", VARCHAR)], True),
    ("like", [("a%", VARCHAR), ("a!%", VARCHAR), ("!", VARCHAR)], True),
    ("date_trunc", [("week", VARCHAR), (dt.date(2024, 1, 7), DATE)], dt.date(2024, 1, 1)),
    ("date_shift", [(dt.date(2024, 1, 31), DATE), (1, INTEGER), ("month", VARCHAR)], dt.datetime(2024, 2, 29)),
    ("time_bucket", [(dt.date(2024, 1, 31), DATE), (2, INTEGER), ("week", VARCHAR)], dt.date(2024, 1, 29)),
    ("last_day", [(dt.date.max, DATE)], dt.date.max),
    ("make_date", [(2023, INTEGER), (2, INTEGER), (29, INTEGER)], None),
    ("timezone", [("Europe/Berlin", VARCHAR), (MOMENT, TIMESTAMPTZ)], dt.datetime(2024, 7, 1, 14)),
    ("timezone", [("America/St_Johns", VARCHAR), (MOMENT, TIMESTAMPTZ)], dt.datetime(2024, 7, 1, 9, 30)),
    ("timezone", [("UTC", VARCHAR), (dt.datetime(2024, 7, 1, 12), TIMESTAMP)], MOMENT),
    ("timezone", [("UTC", VARCHAR), (dt.datetime.max, TIMESTAMP)], None),
    ("substring", [("日本語", VARCHAR), (2, INTEGER), (1, INTEGER)], "本"),
    ("length", [("日本語", VARCHAR)], 3),
    ("intdiv", [(2**100, HUGEINT), (3, INTEGER)], float(math.trunc(2.0**100 / 3))),
    ("intdiv", [(2**64 - 1, UBIGINT), (1, INTEGER)], 2**64 - 1),
    ("mul", [(Decimal("9" * 19), decimal(19, 0)), (Decimal("9" * 19), decimal(19, 0))], Decimal((10**19 - 1) ** 2)),
    ("mul", [(5e-324, DOUBLE), (0.5, DOUBLE)], 0.0),
    ("div", [(1e300, DOUBLE), (1e-300, DOUBLE)], INF),
    ("add", [(1.7976931348623157e308, DOUBLE), (1.7976931348623157e308, DOUBLE)], INF),
    ("exp", [(1000.0, DOUBLE)], INF),
    ("exp", [(-1000.0, DOUBLE)], 0.0),
    ("pow", [(1e200, DOUBLE), (2, INTEGER)], INF),
    ("clip", [(NAN, DOUBLE), (0, INTEGER), (9, INTEGER)], None),
    ("clip", [(-INF, DOUBLE), (0, INTEGER), (9, INTEGER)], None),
    ("clip", [(1e300, DOUBLE), (0, INTEGER), (9, INTEGER)], 9.0),
    ("round", [(-2.5, DOUBLE)], -3.0),
    ("round", [(0.49999999999999994, DOUBLE)], 0.0),
    ("round", [(Decimal("2.5"), decimal(2, 1))], Decimal("3")),
    ("like", [("a\\", VARCHAR), ("%\\", VARCHAR)], True),
    ("like", [("", VARCHAR), ("%", VARCHAR)], True),
    ("like", [("a\nb", VARCHAR), ("a_b", VARCHAR)], True),
    ("lower", [("ÉİA", VARCHAR)], "éia"),
    ("upper", [("straße", VARCHAR)], "STRAẞE"),
    ("substring", [("abc", VARCHAR), (0, INTEGER), (2, INTEGER)], "a"),
    ("reverse", [("ab", VARCHAR)], "ba"),
    ("unicode", [("", VARCHAR)], -1),
    ("week", [(dt.date(2024, 1, 1), DATE)], 1),
    ("week", [(dt.date(2021, 1, 3), DATE)], 53),
    ("isoyear", [(dt.date(2021, 1, 3), DATE)], 2020),
    ("date_trunc", [("day", VARCHAR), (dt.datetime(2024, 3, 31, 2, 30), TIMESTAMP)], dt.datetime(2024, 3, 31)),
    ("date_diff", [("month", VARCHAR), (dt.date(2024, 1, 31), DATE), (dt.date(2024, 2, 1), DATE)], 1),
    ("second", [(dt.datetime(2024, 1, 1, 0, 0, 59, 999999), TIMESTAMP)], 59),
]


@pytest.mark.parametrize(("name", "args", "wanted"), TRAPS, ids=lambda x: x if isinstance(x, str) else "")
def test_where_engines_differ_the_value_is_ours_or_refused(
    engine: Engine, name: str, args: list[tuple[Any, SqlType]], wanted: Any
) -> None:
    d, function = engine.dialect, REGISTRY[name]
    facts = [
        Value(t, range=type_range(t), finite=False, constant=v) if i in function.literal else
        Value(t, range=type_range(t), finite=False)
        for i, (v, t) in enumerate(args)
    ]  # fmt: skip
    try:
        sql = d.call(name, [f"({d.constant(v, t)})" for v, t in args], facts, apply(function, facts))
    except CannotSpell:
        return
    assert same(one(engine, sql), wanted)


NAMES = {f.name for family in FAMILIES.values() for f in family}


def test_every_function_has_its_spelling_and_no_spelling_lacks_its_function() -> None:
    assert set(FUNCTIONS) == NAMES
    assert all(DUCKDB.spells(name) for name in NAMES)


def test_what_is_not_spelled_is_no_call(engine: Engine) -> None:
    assert not engine.dialect.spells("no such function")
    with pytest.raises(CannotSpell):
        engine.dialect.call("no such function", [], [], Value(INTEGER))


class WithoutReverse(DuckDB):
    """A dialect that has no exact spelling of one function, nor of long powers."""

    def spells(self, function: str) -> bool:
        return function != "reverse" and super().spells(function)

    def call(self, function: str, sql: Any, args: Any, result: Value) -> str:
        if not self.spells(function):
            raise CannotSpell
        if function == "pow":
            raise CannotSpell("the result has no bounds")
        return super().call(function, sql, args, result)


@pytest.fixture
def clinic(policies: Path) -> dpsql.Policy:
    return load_policy(policies / "pages.yaml")


def planned(sql: str, policy: dpsql.Policy, dialect: Dialect) -> Any:
    return compile_query(Source(sql), policy, PublicFacts(), QuerySettings(Fraction(1)), dialect=dialect)


def test_a_function_that_cannot_be_spelled_is_refused_by_name(clinic: dpsql.Policy) -> None:
    sql = "SELECT COUNT(*) AS n FROM patients WHERE reverse(region) = 'x'"
    assert planned(sql, clinic, DUCKDB).releases
    with pytest.raises(Rejected) as refusal:
        planned(sql, clinic, WithoutReverse(FUNCTIONS))
    (found,) = refusal.value.diagnostics
    assert (found.code, found.message) == ("DP105", "reverse cannot be computed exactly on DuckDB")
    assert found.span is not None and sql[found.span.start : found.span.end].startswith("reverse")


def test_a_spelling_may_refuse_what_it_is_given_and_says_why(clinic: dpsql.Policy) -> None:
    sql = "SELECT SUM(CLIP(POW(age, 2), 0, 100)) AS s FROM patients"
    assert planned(sql, clinic, DUCKDB).releases
    with pytest.raises(Rejected, match=r"DP105.*pow cannot be computed exactly on DuckDB: the result has no bounds"):
        planned(sql, clinic, WithoutReverse(FUNCTIONS))


def test_the_check_says_it_without_data(clinic: dpsql.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT COUNT(*) AS n FROM patients WHERE reverse(region) = 'x'"
    assert dpsql.check(sql, clinic) == []
    kind = opening.kind_of(clinic)
    monkeypatch.setattr(opening, "kind_of", lambda policy: opening.EngineKind(WithoutReverse(FUNCTIONS), kind.open))
    assert [d.code for d in dpsql.check(sql, clinic)] == ["DP105"]


MANY_TEXTS = ("", "NULL", "a,b", "'", '"', "\\", "[x]", "{y}", "$1", "é", None)
MANY: tuple[tuple[SqlType, tuple[Any, ...]], ...] = (
    (BIGINT, (0, -1, 2**63 - 1, -(2**63), None)),
    (HUGEINT, (10**30, -(10**30), None)),
    (decimal(12, 2), (Decimal("1.50"), Decimal("-0.01"), Decimal(7), None)),
    (DOUBLE, (0.1, -1.5e-300, 1e300, 5e-324, None)),
    (DATE, (dt.date(1, 1, 1), dt.date(2026, 11, 30), dt.date(9999, 12, 31), None)),
    (BOOLEAN, (True, False, None)),
    (VARCHAR, MANY_TEXTS),
)


def test_many_rows_are_those_that_few_are(engine: Engine) -> None:
    """In their order, each value exactly; as texts or as literals."""
    d = engine.dialect
    names, types = ["i", *(f"c{at}" for at in range(len(MANY)))], [BIGINT, *(type_ for type_, _ in MANY)]
    rows = [(i, *(values[i % len(values)] for _, values in MANY)) for i in range(300)]
    as_written = d.values(
        [", ".join(d.cast(d.constant(v, t), t) for v, t in zip(row, types, strict=True)) for row in rows], names, "v"
    )
    found = d.many_values(names, types, rows, "v")
    shown = ", ".join(f"v.{name}" for name in names)
    told = [engine.fetch(f"SELECT {shown} FROM {sql} ORDER BY v.i") for sql in (as_written, found or as_written)]
    assert [list(column) for column in told[0].columns] == [list(column) for column in told[1].columns]
    assert d.many_values(names, types, rows[:10], "v") is None  # which literals say as quickly
    for value, type_ in ((math.inf, DOUBLE), (MOMENT, TIMESTAMPTZ), (b"x", BLOB)):
        assert d.many_values(["i"], [type_], [(value,)] * 300, "v") is None
