"""Facts that `apply`, `literal` and `cast` derive, one line each; the contract test holds them against the engine."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest

from dpsql.core.ir.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    NULL,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    decimal,
)
from dpsql.core.numbers.doubles import loosened, rounded
from dpsql.core.numbers.interval import Interval, everything, interval, point
from dpsql.core.values.constants import literal
from dpsql.core.values.domains import DateRange, TimestampRange
from dpsql.core.values.value import Domain, Scalar, Value, type_range
from dpsql.functions.cast import cast
from dpsql.functions.domains.made_domains import Midnights
from dpsql.functions.function import SignatureError
from dpsql.functions.registry import REGISTRY, apply, describe_registry, lookup
from dpsql.spelling.duckdb_functions import DUCKDB


def raw(t: SqlType, *, nullable: bool = False) -> Value:
    return Value(t, range=type_range(t), nullable=nullable, finite=t is not DOUBLE)


def known(t: SqlType, lo: int, hi: int, domain: Domain | None = None) -> Value:
    held = interval(lo, hi) if t is not DOUBLE else everything()
    return Value(t, interval(lo, hi), held, nullable=False, domain=domain)


def const(value: Scalar) -> Value:
    types: dict[type, SqlType] = {bool: BOOLEAN, int: INTEGER, float: DOUBLE, str: VARCHAR, dt.date: DATE}
    if isinstance(value, Decimal):
        digits = value.as_tuple()
        assert isinstance(digits.exponent, int)
        return literal(value, decimal(max(len(digits.digits), -digits.exponent), -digits.exponent))
    return literal(value, NULL if value is None else types[type(value)])


def call(name: str, *args: Value) -> Value:
    return apply(REGISTRY[name], args)


def spelled(name: str, *args: Value) -> str:
    function = REGISTRY[name]
    sql = [chr(ord("a") + i) for i in range(len(args))]
    return DUCKDB.call(function.name, sql, args, apply(function, args))


AGE = known(INTEGER, 0, 110, Domain(range(111)))
PRICE = known(DOUBLE, 0, 500)
DAYS = DateRange(dt.date(2023, 11, 20), dt.date(2024, 2, 10))
MONTHS: list[Scalar] = [dt.date(2023, 11, 1), dt.date(2023, 12, 1), dt.date(2024, 1, 1), dt.date(2024, 2, 1)]
DAY = Value(DATE, interval(19681, 19763), interval(19681, 19763), False, True, Domain(DAYS))


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("add", (AGE, const(5)), interval(5, 115)),
        ("sub", (const(1), AGE), interval(-109, 1)),
        ("mul", (PRICE, known(DOUBLE, -1, 2)), interval(-500, 1000)),
        ("div", (PRICE, const(4)), interval(0, 125)),
        ("intdiv", (known(INTEGER, -7, 9), const(2)), interval(-3, 4)),
        ("intdiv", (known(INTEGER, -7, 9), raw(INTEGER)), interval(-9, 9)),
        ("mod", (known(INTEGER, -7, 9), known(INTEGER, -3, 3)), interval(-2, 2)),
        ("mod", (raw(INTEGER), const(10)), interval(-9, 9)),
        ("mod", (known(INTEGER, 0, 50), const(3)), interval(0, 2)),
        ("mod", (known(INTEGER, -50, 0), const(3)), interval(-2, 0)),
        ("mod", (known(INTEGER, -50, 50), const(0)), interval(0, 0)),
        ("mod", (known(INTEGER, -50, 50), const(-1)), interval(0, 0)),
        ("mod", (raw(DOUBLE), const(3)), interval(-3, 3)),
        ("neg", (AGE,), interval(-110, 0)),
        ("abs", (known(INTEGER, -7, 3),), interval(0, 7)),
        ("sign", (raw(DOUBLE),), interval(-1, 1)),
        ("sign", (known(INTEGER, 1, 3),), point(1)),
        ("floor", (Value(DOUBLE, Interval(Fraction(-1, 2), Fraction(7, 2))),), interval(-1, 3)),
        ("ceil", (Value(DOUBLE, Interval(Fraction(-1, 2), Fraction(7, 2))),), interval(0, 4)),
        ("trunc", (Value(DOUBLE, Interval(Fraction(-3, 2), Fraction(7, 2))),), interval(-1, 3)),
        ("clip", (raw(DOUBLE), const(0), const(100)), interval(0, 100)),
        ("clip", (PRICE, const(-5), const(10)), interval(0, 10)),
        ("greatest", (AGE, const(18)), interval(18, 110)),
        ("greatest", (raw(INTEGER, nullable=True), const(18)), interval(18, None)),
        ("greatest", (known(INTEGER, 20, 30), Value(INTEGER, interval(40, 50))), interval(20, 50)),
        ("least", (AGE, const(18)), interval(0, 18)),
        ("least", (raw(DOUBLE), const(1.0)), interval(None, 1)),
        ("coalesce", (Value(INTEGER, interval(1, 5)), const(0)), interval(0, 5)),
        ("coalesce", (AGE, const(10**6)), interval(0, 10**6)),
        ("coalesce", (const(7), const(10**6)), point(7)),
        ("case", (raw(BOOLEAN), const(3), const(None)), point(3)),
        ("if", (raw(BOOLEAN), AGE, const(200)), interval(0, 200)),
        ("month", (raw(DATE),), interval(1, 12)),
        ("year", (DAY,), interval(2023, 2024)),
        ("year", (raw(DATE),), everything()),
        ("length", (raw(VARCHAR),), interval(0, None)),
        ("pow", (known(INTEGER, -3, 2), const(2)), rounded(loosened(interval(0, 9), 50))),
        ("eq", (AGE, const(3)), interval(0, 1)),
        ("sub", (DAY, const(dt.date(2023, 11, 20))), interval(0, 82)),
        ("date_diff", (const("month"), const(dt.date(2023, 1, 1)), DAY), interval(10, 13)),
        ("date_diff", (const("month"), DAY, Value(DATE, interval(3_000_000, None))), interval(95_710, None)),
        ("date_diff", (const("day"), raw(DATE), raw(DATE)), everything()),
        ("sin", (raw(DOUBLE),), interval(-1, 1)),
    ],
)
def test_interval(name: str, args: tuple[Value, ...], expected: Interval) -> None:
    assert call(name, *args).interval == expected


def test_real_functions_enclose_their_ends() -> None:
    root = call("sqrt", known(DOUBLE, 2, 9)).interval
    assert root.lo is not None and root.hi is not None
    assert root.lo**2 < 2 and 9 < root.hi**2 < 9 + Fraction(1, 10**6)
    assert call("exp", known(DOUBLE, 0, 10_000)).interval.hi is None


@pytest.mark.parametrize(
    ("name", "args", "word"),
    [
        ("div", (PRICE, known(DOUBLE, 0, 10)), "divisor"),
        ("ln", (PRICE,), "logarithm"),
        ("tan", (PRICE,), "tangent"),
        ("pow", (PRICE, PRICE), "power"),
        ("exp", (known(DOUBLE, 0, 1000),), "power"),
        ("mul", (known(DOUBLE, 0, 10**200), known(DOUBLE, 0, 10**200)), "exceed"),
    ],
)
def test_a_lost_interval_has_a_reason_and_a_repair(name: str, args: tuple[Value, ...], word: str) -> None:
    lost = call(name, *args).interval
    assert not lost.bounded
    assert lost.why[0].code == "DP202" and word in lost.why[0].message and "CLIP(" in "".join(lost.why[0].help)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("add", (raw(INTEGER), raw(INTEGER)), BIGINT),
        ("add", (AGE, const(1)), INTEGER),
        ("add", (raw(BIGINT), const(1)), HUGEINT),
        ("add", (raw(HUGEINT), const(1)), DOUBLE),
        ("sub", (known(BIGINT, 2**40, 2**40), known(BIGINT, 2**40, 2**40)), BIGINT),
        ("mul", (raw(decimal(12, 2)), raw(decimal(12, 2))), decimal(24, 4)),
        ("mul", (raw(decimal(38, 2)), raw(decimal(12, 2))), DOUBLE),
        ("mul", (raw(decimal(12, 2)), raw(DOUBLE)), DOUBLE),
        ("add", (raw(decimal(12, 2)), const(1)), decimal(13, 2)),
        ("div", (AGE, const(2)), DOUBLE),
        ("neg", (raw(INTEGER),), BIGINT),
        ("mod", (raw(BIGINT), const(7)), HUGEINT),
        ("clip", (raw(BIGINT), const(0), const(9)), BIGINT),
        ("clip", (raw(INTEGER), const(0), const(2**40)), INTEGER),
        ("clip", (raw(INTEGER), const(Decimal("0.5")), const(9)), decimal(11, 1)),
        ("round", (raw(decimal(4, 2)), const(1)), decimal(4, 1)),
        ("coalesce", (raw(INTEGER, nullable=True), const(0)), INTEGER),
        ("coalesce", (raw(INTEGER, nullable=True), const(Decimal("0.5"))), decimal(11, 1)),
        ("case", (raw(BOOLEAN), const(None), raw(VARCHAR)), VARCHAR),
        ("date_trunc", (const("month"), raw(DATE)), DATE),
        ("date_trunc", (const("hour"), raw(TIMESTAMP)), TIMESTAMP),
        ("add", (raw(DATE), const(3)), DATE),
        ("sub", (raw(DATE), raw(DATE)), BIGINT),
    ],
)
def test_type(name: str, args: tuple[Value, ...], expected: SqlType) -> None:
    assert call(name, *args).type == expected


@pytest.mark.parametrize(
    ("name", "args", "nullable"),
    [
        ("div", (AGE, AGE), True),
        ("div", (AGE, const(2)), True),
        ("div", (PRICE, known(DOUBLE, 1, 9)), True),
        ("clip", (raw(DOUBLE), const(0), const(1)), True),
        ("clip", (PRICE, const(0), const(1)), False),
        ("clip", (raw(INTEGER), const(0), const(1)), False),
        ("coalesce", (raw(INTEGER, nullable=True), const(0)), False),
        ("coalesce", (raw(INTEGER, nullable=True), raw(INTEGER, nullable=True)), True),
        ("greatest", (raw(INTEGER, nullable=True), const(0)), False),
        ("year", (raw(DATE),), True),
        ("year", (DAY,), False),
        ("is_null", (raw(INTEGER, nullable=True),), False),
        ("concat", (raw(VARCHAR, nullable=True), const("x")), False),
        ("concat_op", (raw(VARCHAR, nullable=True), const("x")), True),
        ("eq", (raw(DATE), raw(TIMESTAMP)), True),
        ("sqrt", (raw(DOUBLE),), True),
    ],
)
def test_nullable(name: str, args: tuple[Value, ...], nullable: bool) -> None:
    assert call(name, *args).nullable is nullable


@pytest.mark.parametrize(
    ("name", "args", "keys"),
    [
        ("eq", (AGE, const(3)), [False, True]),
        ("eq", (raw(INTEGER, nullable=True), const(3)), [False, True, None]),
        ("month", (raw(DATE, nullable=True),), [*range(1, 13), None]),
        ("month", (DAY,), [1, 2, 11, 12]),
        ("year", (DAY,), [2023, 2024]),
        ("date_trunc", (const("month"), DAY), MONTHS),
        ("strftime", (DAY, const("%Y-%m")), ["2023-11", "2023-12", "2024-01", "2024-02"]),
        ("case", (raw(BOOLEAN), const("a"), raw(BOOLEAN), const("b"), const("a")), ["a", "b"]),
        ("case", (raw(BOOLEAN), const("a"), const(None)), ["a", None]),
        ("intdiv", (AGE, const(50)), [0, 1, 2]),
        ("upper", (Value(VARCHAR, domain=Domain(("a", "B"), null=True)),), ["A", "B", None]),
        ("coalesce", (Value(VARCHAR, domain=Domain(("a",), null=True)), const("z")), ["a", "z"]),
        ("in", (AGE, const(1), const(2)), [False, True]),
    ],
)  # fmt: skip
def test_domain(name: str, args: tuple[Value, ...], keys: list[Scalar]) -> None:
    domain = call(name, *args).domain
    assert domain is not None and list(domain.keys()) == keys


def test_long_domains_stay_lazy() -> None:
    instants = TimestampRange(dt.datetime(1900, 1, 1), dt.datetime(2099, 12, 31, 23, 59, 59, 999999))
    moment = Value(TIMESTAMP, nullable=False, domain=Domain(instants))
    months = call("date_trunc", const("month"), moment).domain
    assert months is not None and isinstance(months.values, Midnights) and months.size == 2400
    hours = call("date_trunc", const("hour"), moment).domain
    assert hours is not None and hours.size == 73_049 * 24
    days = cast(moment, DATE).domain
    assert days is not None and days.size == 73_049
    assert call("add", Value(BIGINT, domain=Domain(range(10**9))), const(1)).domain is None


def test_date_range_counts_and_contains() -> None:
    weeks = DateRange(dt.date(2024, 1, 3), dt.date(2024, 1, 15), "week")
    assert list(weeks) == [dt.date(2024, 1, 1), dt.date(2024, 1, 8), dt.date(2024, 1, 15)]
    assert weeks[-1] == dt.date(2024, 1, 15) and weeks[0:2] == [dt.date(2024, 1, 1), dt.date(2024, 1, 8)]
    assert dt.date(2024, 1, 8) in weeks and dt.date(2024, 1, 9) not in weeks
    with pytest.raises(IndexError):
        weeks[3]
    with pytest.raises(ValueError):
        DateRange(dt.date(2024, 1, 2), dt.date(2024, 1, 1))


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("eq", (raw(VARCHAR), const(1)), r"cannot mix VARCHAR and INTEGER; .*CAST\(… AS INTEGER\)"),
        ("eq", (raw(BOOLEAN), const(1)), r"CAST\(… AS INTEGER\)"),
        ("eq", (raw(TIMESTAMPTZ), raw(DATE)), "custodian: .*AT TIME ZONE .*type: timestamp"),
        ("add", (raw(BOOLEAN), const(1)), "expects a number, got BOOLEAN"),
        ("add", (raw(VARCHAR), const(1)), r"CAST\(… AS DOUBLE\)"),
        ("add", (raw(TIMESTAMP), const(1)), "name the unit"),
        ("sub", (raw(TIMESTAMP), raw(TIMESTAMP)), "date_diff"),
        ("and", (raw(INTEGER), raw(BOOLEAN)), "expects a condition"),
        ("abs", (), "expects 1 argument, got 0"),
        ("round", (PRICE, AGE), "literal as argument 2"),
        ("round", (PRICE, const(-1)), "from 0 to 15"),
        ("clip", (PRICE, const(5), const(1)), "lower bound first"),
        ("clip", (PRICE, const("a"), const(1)), "numbers as bounds"),
        ("clip", (PRICE, const(float("nan")), const(1)), "numbers as bounds"),
        ("like", (raw(VARCHAR), raw(VARCHAR)), "literal as argument 2"),
        ("like", (raw(VARCHAR), const("a!"), const("!")), "does not end"),
        ("date_part", (const("moon"), DAY), "does not know the part 'moon'"),
        ("date_trunc", (const("hour"), DAY), "a DATE has no hours"),
        ("strftime", (DAY, const("%Q")), "directives"),
        ("strftime", (DAY, const("50%")), "directives"),
        ("lpad", (raw(VARCHAR), const(10**9), const("x")), "from 0 to 1000"),
        ("lpad", (raw(VARCHAR), const(3), const("")), "not empty"),
        ("in", (AGE, AGE), "list of literals"),
        ("in", (AGE, const("x")), "cannot mix"),
        ("case", (raw(BOOLEAN), const("x"), const(1)), "cannot mix"),
        ("month", (raw(VARCHAR),), r"CAST\(… AS DATE\)"),
        ("month", (raw(TIMESTAMPTZ),), "custodian: .*AT TIME ZONE .*type: timestamp"),
    ],
)
def test_wrong_arguments_name_the_repair(name: str, args: tuple[Value, ...], message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        call(name, *args)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("add", (const(2), const(3)), 5),
        ("mul", (const(Decimal("1.5")), const(Decimal("0.25"))), Decimal("0.375")),
        ("div", (const(1), const(0)), None),
        ("intdiv", (const(-7), const(2)), -3),
        ("mod", (const(-7), const(2)), -1),
        ("and", (const(False), literal(None, BOOLEAN)), False),
        ("or", (const(False), literal(None, BOOLEAN)), None),
        ("like", (const("a%b"), const("a!%b"), const("!")), True),
        ("make_date", (const(2024), const(2), const(30)), None),
        ("last_day", (const(dt.date(2024, 2, 3)),), dt.date(2024, 2, 29)),
        ("date_shift", (const(dt.date(2024, 1, 31)), const(1), const("month")), dt.datetime(2024, 2, 29)),
        ("time_bucket", (const(dt.date(2024, 1, 31)), const(2), const("week")), dt.date(2024, 1, 29)),
        ("lower", (const("É"),), "not folded"),
    ],
)
def test_constants_fold(name: str, args: tuple[Value, ...], expected: Scalar) -> None:
    result = call(name, *args)
    if expected == "not folded":
        assert not result.is_constant
    else:
        assert result.is_constant and result.constant == expected


@pytest.mark.parametrize(
    ("name", "args", "sql"),
    [
        ("add", (AGE, const(1)), "(a + b)"),
        ("add", (raw(INTEGER), const(1)), "(CAST(a AS BIGINT) + CAST(b AS BIGINT))"),
        ("div", (PRICE, PRICE), "(a / NULLIF(b, 0))"),
        ("div", (PRICE, const(2.0)), "(a / b)"),
        ("intdiv", (AGE, AGE), "(a // NULLIF(b, 0))"),
        ("gt", (raw(INTEGER), const(40)), "(a > b)"),
        ("clip", (raw(INTEGER), const(0), const(9)),
         "CASE WHEN a <= CAST('0' AS INTEGER) THEN CAST('0' AS INTEGER) "
         "WHEN a >= CAST('9' AS INTEGER) THEN CAST('9' AS INTEGER) ELSE a END"),
        ("clip", (AGE, const(-1), const(200)), "a"),
        ("month", (raw(DATE),), "CAST(month(a) AS BIGINT)"),
        ("week", (DAY,), "CAST(week(a) AS BIGINT)"),
        ("in", (AGE, const(1), const(2)), "(a IN (b, c))"),
    ],
)  # fmt: skip
def test_spelling_is_lean_where_the_facts_allow(name: str, args: tuple[Value, ...], sql: str) -> None:
    assert spelled(name, *args) == sql


def test_literals() -> None:
    assert literal(dt.date(1970, 1, 3), DATE).interval == point(2)
    assert literal(dt.datetime(1970, 1, 1, 0, 0, 1), TIMESTAMP).interval == point(1_000_000)
    assert literal(True, BOOLEAN).interval == point(1)
    assert literal(0.5, DOUBLE).interval == point(Fraction(1, 2))
    assert not literal(float("nan"), DOUBLE).finite and not literal(float("inf"), DOUBLE).interval.bounded
    null = literal(None, INTEGER)
    assert null.is_constant and null.nullable and null.domain == Domain((), null=True)


def test_cast_facts() -> None:
    text = cast(raw(VARCHAR), DOUBLE)
    assert text.nullable and not text.finite and not text.interval.bounded
    assert cast(Value(DOUBLE, Interval(Fraction(1, 4), Fraction(7, 2)), nullable=False), INTEGER).interval == interval(
        0, 4
    )
    assert cast(AGE, decimal(2, 0)).nullable and not cast(AGE, decimal(3, 0)).nullable
    assert cast(AGE, VARCHAR).domain == Domain(tuple(str(n) for n in range(111)))
    assert cast(literal("2024-02-29", VARCHAR), DATE).constant == dt.date(2024, 2, 29)
    assert cast(literal("2024-02-30", VARCHAR), DATE).nullable
    assert cast(DAY, TIMESTAMP).interval == interval(19681 * 86_400_000_000, 19763 * 86_400_000_000)
    assert cast(known(BOOLEAN, 0, 1), INTEGER).interval == interval(0, 1)
    assert cast(known(TIMESTAMP, -1, 86_400_000_000), DATE).interval == interval(-1, 1)  # the day before, not 1970
    wide = cast(known(DOUBLE, 0, 10**12), decimal(30, 6)).interval.hi
    assert (
        wide is not None and 10**12 < wide < 10**12 + 1
    )  # ·10⁶ is rounded in DOUBLE, to the next millionth or further
    assert cast(literal(2.5, DOUBLE), decimal(3, 1)).constant == Decimal("2.5")
    for beyond in (1e9, -10.0, float("inf")):  # NULL on every engine: what folds must be a value of the type
        found = cast(literal(beyond, DOUBLE), decimal(3, 2))
        assert not found.is_constant and found.nullable
    assert cast(AGE, INTEGER) is AGE
    assert DUCKDB.convert("a", AGE, INTEGER) == "a" and DUCKDB.convert("a", AGE, DOUBLE) == "TRY_CAST(a AS DOUBLE)"
    with pytest.raises(SignatureError, match="cannot convert DATE to INTEGER"):
        cast(DAY, INTEGER)


def test_a_double_beyond_its_interval_is_converted_as_its_end() -> None:
    """2⁶² + 700, the end, is no DOUBLE; the next one is. What is claimed of the integers leaves room for it."""
    end = 2**62 + 700
    arg = Value(DOUBLE, interval(-end, end), finite=False)
    given = "(CAST('nan' AS DOUBLE)), ('inf'), (1e300), (-1e300), (-0.75), (NULL)"
    found = duckdb.sql(f"SELECT {DUCKDB.convert('x', arg, BIGINT)} FROM (VALUES {given}) t(x)").fetchall()
    assert [value for (value,) in found] == [None, None, 2**62 + 1024, -(2**62) - 1024, -1, None]
    claimed = cast(arg, BIGINT)
    assert claimed.nullable and all(value in claimed.interval for (value,) in found if value is not None)


def test_lookup_ignores_case_and_the_description_is_complete() -> None:
    assert lookup("UPPER") is REGISTRY["upper"] and lookup("random") is None
    described = [name for entries in describe_registry().values() for entry in entries for name in entry["names"]]  # type: ignore[attr-defined]
    assert sorted([*described, "list_of", "octave", "signed_octave"]) == sorted(REGISTRY)


@pytest.mark.parametrize("name", ["random", "now", "current_date", "uuid", "error", "getvariable", "read_csv", "hash"])
def test_no_volatile_or_dangerous_function(name: str) -> None:
    assert lookup(name) is None


SYNTAX = (
    "add sub mul div intdiv mod neg eq ne lt le gt ge is_distinct_from is_not_distinct_from and or not "
    "is_null is_not_null case in concat_op like ilike"
)


@pytest.mark.parametrize("name", SYNTAX.split())
def test_the_names_that_syntax_stands_for_are_canonical(name: str) -> None:
    assert REGISTRY[name].name == name
