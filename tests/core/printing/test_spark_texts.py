"""What is printed for Spark, without a server: no word of another engine, and the guards against its silent errors.

That the statements give DuckDB's rows is tests/engines_elsewhere/spark' to show.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from fractions import Fraction

import pytest

from dpsql.core.ir.nodes import Frame
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.types import (
    BIGINT,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    INTERVAL,
    TIME,
    TIMESTAMP,
    UBIGINT,
    UUID,
    VARCHAR,
    Kind,
    SqlType,
    decimal,
)
from dpsql.core.numbers.interval import interval
from dpsql.core.printing.dialect import CannotSpell
from dpsql.core.values.value import Value, type_range
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.functions.registry import REGISTRY, apply
from dpsql.planner.compile import compile_query
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.spelling.spark_functions import SPARK
from tests.fixtures.cases import FOLDER, Case, policy, read

CASES = [case for name in ("answers", "shapes") for case in read(FOLDER / "sql" / f"{name}.test").cases]
FOREIGN = re.compile(
    r"//|\bTRY_CAST\b|\bHUGEINT\b|\bnumeric\b|\btext\b|::|(?<!LEFT )\b(SEMI|ANTI) JOIN\b|\blist_\w+\(|\bhash\("
    r"|\bto_(months|microseconds)\(|\bisfinite\(|\bAS (VARCHAR|INTEGER|TIMESTAMP|UBIGINT)\b|\blen\(|\bepoch\(|\""
)


def printed(case: Case) -> list[str]:
    """The statements of a case. Raises Rejected."""
    loaded = policy(case.settings["policy"])
    settings = QuerySettings(Fraction(1), Fraction(1, 10**6), dialect=case.settings.get("dialect", "duckdb"))
    parameters = json.loads(case.settings.get("parameters", "[]"))
    plan = compile_query(Source(case.sql), loaded, PublicFacts(), settings, parameters, dialect=SPARK)
    return [s.sql.replace("\0salt\0", "5") for r in plan.releases for s in r.statements]


def test_no_statement_has_a_word_of_another_engine() -> None:
    found = 0
    for case in CASES:
        try:
            texts = printed(case)
        except Rejected as refusal:
            assert all("cannot be computed exactly on Apache Spark" in d.message for d in refusal.diagnostics), case.id
            continue
        for text in texts:
            found += 1
            outside = re.sub(r"'(?:[^'\\]|\\.)*'|`[^`]*`", "''", text)
            assert not FOREIGN.search(outside), (case.id, FOREIGN.search(outside), text)
    assert found >= 20


def test_every_text_of_a_table_is_one() -> None:
    """A STRING may hold any bytes."""
    compared = 0
    for case in CASES:
        names = {
            c.name
            for table in policy(case.settings["policy"]).tables.values()
            for c in table.columns.values()
            if c.sql_type is not None and c.sql_type.kind is Kind.VARCHAR
        }
        try:
            statements = printed(case)
        except Rejected:
            continue
        for text in statements:
            for before, name in re.findall(r"(\S{,18})t\d+\.`(\w+)`", text):
                if name in names:
                    compared += 1
                    assert before.endswith("try_validate_utf8("), (case.id, text)
    assert compared >= 20


def test_weights_of_ids_read_every_relation_once() -> None:
    """One that is read twice would be computed twice, its tables read twice and its rows moved twice."""
    found = 0
    for case in CASES:
        try:
            texts = [text for text in printed(case) if "q AS (SELECT" in text]
        except Rejected:
            continue
        for text in texts:
            found += 1
            assert len(re.findall(r"FROM q\b", text)) == 1 and "JOIN g" not in text, (case.id, text)
    assert found >= 2


@pytest.mark.parametrize("words", ["a'b", "\\", "\\'", "'; DROP TABLE t; --", "${env:HOME}", "x\ny", "\\u0027"])
def test_a_text_is_one_literal(words: str) -> None:
    """Read as Spark reads it: ${…} is replaced first, then escapes are undone."""
    for text in (SPARK.text(words), SPARK.text_with_nuls(words + "\0")):
        assert "$" not in text and "\0" not in text
        inside = re.fullmatch(r"\(?'((?:[^'\\]|\\.)*)'\)?", text, re.DOTALL)
        assert inside is not None
        undone = re.sub(r"\\(u[0-9a-f]{4}|.)", lambda m: _unescaped(m[1]), inside[1], flags=re.DOTALL)
        assert undone in (words, words + "\0")


def _unescaped(letters: str) -> str:
    return chr(int(letters[1:], 16)) if len(letters) == 5 else letters


def test_a_name_is_one_identifier() -> None:
    assert SPARK.identifier("a`b.c") == "`a``b.c`"
    for name in ("a\0", "${x}"):
        with pytest.raises(Rejected, match="DP106"):
            SPARK.identifier(name)


@pytest.mark.parametrize(
    ("most", "parts"), [(1, 1), (2**23 - 1, 1), (2**23, 2), (2**44, 2), (2**44 + 1, 3), (2**63, 3), (2**63 + 1, 0)]
)
def test_no_sum_of_64_bits_can_pass_them(most: int, parts: int) -> None:
    """One that did would be an error which tells that there are such rows."""
    total = SPARK.total("x", BIGINT, most=most)
    assert total.count("AS BIGINT") == parts
    assert parts or total == "SUM(CAST(x AS DECIMAL(38, 0)))"
    for shift in (0, 22, 44)[:parts]:
        rest = (most >> shift) if parts == 1 or shift == 22 * (parts - 1) else 2**22
        assert rest * 2**40 <= 2**63
    assert "DECIMAL(38, 2)" in SPARK.total("x", decimal(9, 2))
    assert SPARK.total("x", INTEGER, distinct=True, most=1) == "SUM(DISTINCT CAST(x AS DECIMAL(38, 0)))"


def test_a_double_becomes_whole_by_rounding_and_not_beyond_the_last() -> None:
    assert SPARK.round_to_integer("x", INTEGER) == "try_cast(rint(x) AS INT)"
    assert SPARK.round_to_integer("x", BIGINT) == (
        "CASE WHEN x < CAST('9.223372036854776e+18' AS DOUBLE) THEN try_cast(rint(x) AS BIGINT) END"
    )


def known(t: SqlType, low: int | None = None, high: int | None = None) -> Value:
    held = type_range(t) if low is None else interval(low, high)
    return Value(t, interval=held, range=held, finite=False)


def call(name: str, *args: Value) -> str:
    return SPARK.call(name, [f"x{i}" for i in range(len(args))], args, apply(REGISTRY[name], args))


def test_what_is_kept_is_chosen_by_all_keys_and_the_salt() -> None:
    texts = {
        SPARK.order_hash(keys, salt)
        for keys in ([("x", VARCHAR), ("y", DOUBLE)], [("z", VARCHAR), ("y", DOUBLE)], [("x", VARCHAR)])
        for salt in ("7", "8")
    }
    assert len(texts) == 6


def test_conditions_are_true_or_false_of_what_is_missing_or_no_number() -> None:
    assert SPARK.member("x", ["1", "2"]) == "(x IN (1, 2)) IS TRUE"
    assert SPARK.is_finite("x") == "(abs(x) < CAST('inf' AS DOUBLE))"  # NaN is above every number
    assert SPARK.half_join("a", "b", "c", anti=True)[0].split()[1:4] == ["LEFT", "ANTI", "JOIN"]
    assert "slice(x, 1, 2)" in SPARK.unnest("x", 2, "u")


def test_dates_outside_the_calendar_are_asked_for_nothing_that_may_fail() -> None:
    for t, last in ((DATE, "DATE '9999-12-31'"), (TIMESTAMP, "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'")):
        for name, *more in (
            ("week",),
            ("last_day",),
            ("epoch",),
            ("dayname",),
            ("strftime", "%Y"),
            ("date_diff", "day"),
        ):
            texts = [Value(VARCHAR, constant=word) for word in more]
            args = [known(t), *texts] if name != "date_diff" else [*texts, known(t), known(t)]
            assert call(name, *args).count(f"AND {last} THEN") == (2 if name == "date_diff" else 1), name


def test_decimals_are_negated_and_compared_without_a_loss() -> None:
    """Spark's own minus rounds them to 34 digits, and a comparison with a 0 of another type drops a place."""
    long = known(decimal(20, 10))
    for name in ("neg", "abs", "sign", "trunc", "mod"):
        text = call(name, *([long] * (2 if name == "mod" else 1)))
        assert "(- x0" not in text and "abs(" not in text, text
        assert not re.search(r"[<>=] 0\b|x\d, 0\)", text), text


def test_what_may_need_more_digits_than_there_are_is_refused() -> None:
    with pytest.raises(CannotSpell, match="64 bits"):
        call("intdiv", known(HUGEINT, -(2**100), 2**100), known(BIGINT))
    top = known(HUGEINT, 0, 10**38)
    with pytest.raises(CannotSpell, match="38 digits"):
        call("add", top, known(INTEGER, 0, 10))
    for value in (10**38, -(10**38)):
        with pytest.raises(Rejected, match="DP106"):
            SPARK.constant(value, HUGEINT)


def test_types_that_spark_lacks_are_refused_by_name() -> None:
    for t in (TIME, UUID):
        with pytest.raises(Rejected, match=f"DP105.*{t} cannot be computed exactly on Apache Spark"):
            SPARK.cast("x", t)
    with pytest.raises(Rejected, match="DP106"):
        SPARK.constant(dt.time(1), TIME)
    with pytest.raises(Rejected, match="DP106"):
        SPARK.constant(dt.timedelta(days=999_999_999), INTERVAL)
    for source, target in ((VARCHAR, INTEGER), (DOUBLE, VARCHAR), (INTEGER, UBIGINT), (DOUBLE, HUGEINT)):
        with pytest.raises(CannotSpell):
            SPARK.convert("x", known(source), target)


def test_frames_are_those_that_spark_has() -> None:
    rows = Frame("ROWS", -2, 0)
    assert SPARK.over("sum", ["x"], rows) == (["x"], rows)
    assert SPARK.over("sum", [], None) == ([], None)
    assert SPARK.over("row_number", [], None) == (["NULL"], None)
    for function, frame in (
        ("lag", rows), ("rank", rows), ("sum", Frame("GROUPS", -1, 0)), ("sum", Frame("RANGE", -1, 0)),
    ):  # fmt: skip
        with pytest.raises(CannotSpell):
            SPARK.over(function, ["x"], frame)
    assert SPARK.over("sum", ["x"], Frame("RANGE", None, 0))[1] is not None


def test_intervals_and_dates_are_literals() -> None:
    step = dt.timedelta(days=-1, seconds=3, microseconds=5)
    assert SPARK.constant(step, INTERVAL) == "INTERVAL '-0 23:59:56.999995' DAY TO SECOND"
    assert SPARK.constant(dt.date(1, 2, 3), DATE) == "DATE '0001-02-03'"
    assert SPARK.constant(dt.datetime(1, 2, 3), TIMESTAMP) == "TIMESTAMP_NTZ '0001-02-03 00:00:00'"
    assert SPARK.constant(Decimal("0.10"), decimal(5, 2)) == "CAST('0.10' AS DECIMAL(5, 2))"


def test_patterns_have_one_escape_character() -> None:
    def like(pattern: str, escape: str = "") -> str:
        args = [known(VARCHAR), Value(VARCHAR, constant=pattern), *([Value(VARCHAR, constant=escape)] * bool(escape))]
        return SPARK.call("like", ["x", "p", "e"][: len(args)], args, apply(REGISTRY["like"], args))

    assert like("a\\%") == r"(x LIKE 'a\\\\%')"
    assert like("a!%_!!", "!") == r"(x LIKE 'a\\%_!')"
    assert like("\\%\\\\", "\\") == r"(x LIKE '\\%\\\\')"
