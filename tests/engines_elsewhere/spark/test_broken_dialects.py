"""The contract can fail: each of these dialects has one wrong line, and the test that is named notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import pytest
from pyspark.errors import PySparkException

from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, INTEGER, VARCHAR, Kind, SqlType
from dpsql.core.printing.dialect import Typed
from dpsql.core.printing.dialects.spark import Spark
from dpsql.functions.registry import REGISTRY
from dpsql.spelling.spark_functions import SPARK
from tests.engines import test_dialect_contract as contract
from tests.engines_elsewhere.spark import test_dialect_contract as own
from tests.engines_elsewhere.spark.bare import Bare
from tests.engines_elsewhere.spark.rows_of_functions import Both

pytestmark = pytest.mark.long_on_spark


class Backslashes(Spark):
    def text(self, value: str) -> str:
        return super().text(value).replace("\\\\", "\\")


class Variables(Spark):
    def text(self, value: str) -> str:
        return super().text(value).replace("\\u0024", "$")


class QuotientRoundedDown(Spark):
    def divide(self, a: str, b: str, type_: SqlType) -> str:
        return f"floor({self.wide(a)} / {self.wide(b)})"


class NarrowTotals(Spark):
    def total(self, sql: str, type_: SqlType, where: str = "", distinct: bool = False, most: int | None = None) -> str:
        return f"SUM({sql}){where}"


class SmallTotals(Spark):
    """As if there were few rows."""

    def total(self, sql: str, type_: SqlType, where: str = "", distinct: bool = False, most: int | None = None) -> str:
        return self.cast(super().total(sql, type_, where, distinct, most), BIGINT)


class Cut(Spark):
    def round_to_integer(self, sql: str, type_: SqlType) -> str:
        return f"try_cast({sql} AS {'BIGINT' if type_ == BIGINT else 'INT'})"


class BeyondTheLast(Spark):
    def round_to_integer(self, sql: str, type_: SqlType) -> str:
        return f"try_cast(rint({sql}) AS {'BIGINT' if type_ == BIGINT else 'INT'})"


class RootOfABigint(Spark):
    def near_root(self, sql: str) -> str:
        return self.wide(f"ceil(sqrt({self.cast(sql, DOUBLE)}))")


class NanIsFinite(Spark):
    def is_finite(self, sql: str) -> str:
        return f"(abs({sql}) <> {self.constant(float('inf'), DOUBLE)})"


class TwoZeros(Spark):
    def positive_zero(self, sql: str, type_: SqlType) -> str:
        return f"({sql})"


class HashWithoutSalt(Spark):
    def order_hash(self, keys: Sequence[Typed], salt: str) -> str:
        return super().order_hash(keys, "0")


class HashOfTexts(Spark):
    def order_hash(self, keys: Sequence[Typed], salt: str) -> str:
        return super().order_hash([(self.cast(sql, VARCHAR), VARCHAR) for sql, _ in keys], salt)


class MaybeMember(Spark):
    def member(self, sql: str, constants: Sequence[str]) -> str:
        return f"({sql} IN ({', '.join(constants)}))"


class MatchesCount(Spark):
    def half_join(self, left: str, right: str, on: str, anti: bool) -> tuple[str, tuple[str, ...]]:
        return super().half_join(left, right, on, anti) if anti else (f"{left}\nJOIN {right} ON {on}", ())


class NullsLast(Spark):
    def sorted(self, sql: str, descending: bool, nulls_first: bool) -> str:
        return super().sorted(sql, descending, False)


class WholeLists(Spark):
    def unnest(self, sql: str, most: int, alias: str) -> str:
        return super().unnest(sql, most + 1, alias)


BROKEN: list[tuple[Spark, Callable[..., None], tuple[Any, ...]]] = [
    (Backslashes(), contract.test_texts_are_literals_of_themselves, ()),
    (Variables(), own.test_no_text_is_replaced_by_a_variable_of_the_machine, ()),
    (QuotientRoundedDown(), contract.test_division_truncates_towards_zero, (INTEGER,)),
    (QuotientRoundedDown(), contract.test_division_truncates_towards_zero, (HUGEINT,)),
    (NarrowTotals(), contract.test_totals_are_exact_whatever_the_terms, ()),
    (SmallTotals(), contract.test_totals_are_exact_whatever_the_terms, ()),
    (Cut(), contract.test_rounding_to_integers_is_half_to_even_and_never_fails, ()),
    (BeyondTheLast(), contract.test_rounding_to_integers_is_half_to_even_and_never_fails, ()),
    (RootOfABigint(), contract.test_roots_keep_all_digits, ()),
    (NanIsFinite(), contract.test_what_is_finite_and_what_is_a_number, ()),
    (TwoZeros(), contract.test_zero_has_one_sign_where_it_is_asked_for, (DOUBLE,)),
    (HashWithoutSalt(), contract.test_the_hash_is_of_all_keys_and_of_the_salt, ()),
    (HashOfTexts(), contract.test_equal_values_have_one_hash_whatever_their_form, ()),
    (MaybeMember(), contract.test_membership_is_true_or_false, ()),
    (MatchesCount(), contract.test_half_joins_keep_each_left_row_once, (False,)),
    (NullsLast(), contract.test_order_is_nulls_where_they_are_said_to_be_and_nan_above_all, (False, True)),
    (WholeLists(), contract.test_lists_are_unnested_up_to_a_length, ()),
]


@pytest.fixture(scope="module")
def bare(server: str) -> Iterator[Bare]:
    opened = Bare(server, SPARK)
    yield opened
    opened.close()


@pytest.mark.parametrize(("dialect", "test", "args"), BROKEN, ids=lambda x: type(x).__name__)
def test_a_wrong_line_is_noticed(
    bare: Bare, dialect: Spark, test: Callable[..., None], args: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    test(bare, *args)
    monkeypatch.setattr(own, "SPARK", dialect)
    with mock.patch.object(bare, "dialect", dialect), pytest.raises((AssertionError, PySparkException)):
        test(bare, *args)


@pytest.fixture(scope="module")
def both(bare: Bare) -> Both:
    return Both(20, bare)


SPELLINGS: dict[str, tuple[str, str]] = {
    "neg": ("(- {})", "a DECIMAL is rounded to 34 digits"),
    "abs": ("abs({})", "so it is here"),
    "mul": ("({} * {})", "38 digits do not hold the product"),
    "floor": ("floor({})", "of a DOUBLE it is a BIGINT"),
    "round": ("round({})", "zero loses its sign"),
    "sign": ("CAST(sign({}) AS INT)", "of NaN"),
    "isnan": ("isnan({})", "of NULL"),
    "like": ("({} LIKE {})", "a backslash is no escape"),
    "ltrim": ("ltrim({}, {})", "the text comes first"),
    "unicode": ("ascii({})", "of no character"),
    "upper": ("upper({})", "letters beyond ASCII"),
    "concat": ("concat({}, {})", "NULL is left out"),
    "left": ("left({}, {})", "all but the last"),
    "dayofweek": ("CAST(dayofweek({}) AS BIGINT)", "Sunday is 0"),
    "week": ("CAST(weekofyear({}) AS BIGINT)", "outside of the calendar there is none"),
    "date_trunc": ("date_trunc({}, {})", "it has another type"),
    "make_date": ("make_date({}, {}, {})", "no such day"),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_wrong_spelling_is_noticed(both: Both, name: str) -> None:
    """As test_functions.py compares them."""
    template, _ = SPELLINGS[name]
    both.rng.seed(name)
    calls = []
    for args, result in both.calls(REGISTRY[name], 200):
        if template.count("{}") == len(args) and result.type.kind is not Kind.NULL:
            other = both.dialect.call(name, [a.sql for a in args], [a.value for a in args], result)
            calls.append((template.format(*map(both.printed, args)), other, result))
    assert both.differences(calls)
