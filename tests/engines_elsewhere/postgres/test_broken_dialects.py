"""The contract can fail: each of these dialects has one wrong line, and the test that is named notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import psycopg
import pytest

from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, INTEGER, VARCHAR, Kind, SqlType
from dpsql.core.printing.dialect import Typed
from dpsql.core.printing.dialects.postgres import Postgres
from dpsql.core.printing.dialects.postgres_doubles import times
from dpsql.core.values.value import Value
from dpsql.functions.registry import REGISTRY
from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines import test_dialect_contract as contract
from tests.engines_elsewhere.postgres.bare import Bare
from tests.engines_elsewhere.postgres.rows_of_functions import Both, facts
from tests.engines_elsewhere.postgres.servers import Server


class QuotientOfNumerics(Postgres):
    def divide(self, a: str, b: str, type_: SqlType) -> str:
        return f"{a} / {b}"


class QuotientRoundedDown(Postgres):
    def divide(self, a: str, b: str, type_: SqlType) -> str:
        return f"floor({self.wide(a)} / {self.wide(b)})"


class NarrowTotals(Postgres):
    def total(self, sql: str, type_: SqlType, where: str = "", distinct: bool = False) -> str:
        found = super().total(sql, type_, where, distinct)
        return found if type_.kind is Kind.DECIMAL else self.cast(found, BIGINT)


class TextsOfTheDatabase(Postgres):
    def constant(self, value: Any, type_: SqlType) -> str:
        found = super().constant(value, type_)
        return found.replace('COLLATE "C"', 'COLLATE "und-x-icu"') if type_.kind is Kind.VARCHAR else found


class HalvesUp(Postgres):
    def round_to_integer(self, sql: str, type_: SqlType) -> str:
        return super().round_to_integer(f"floor({sql} + 0.5)", type_)


class Unguarded(Postgres):
    def round_to_integer(self, sql: str, type_: SqlType) -> str:
        return self.cast(sql, type_)


class NanIsFinite(Postgres):
    def is_finite(self, sql: str) -> str:
        return f"(abs({sql}) <> {self.constant(float('inf'), DOUBLE)})"


class TwoZeros(Postgres):
    def positive_zero(self, sql: str, type_: SqlType) -> str:
        return f"({sql})"


class HashWithoutSalt(Postgres):
    def order_hash(self, keys: Sequence[Typed], salt: str) -> str:
        return super().order_hash(keys, "0")


class HashOfForms(Postgres):
    def order_hash(self, keys: Sequence[Typed], salt: str) -> str:
        return super().order_hash([(sql, VARCHAR) for sql, _ in keys], salt)


class MaybeMember(Postgres):
    def member(self, sql: str, constants: Sequence[str]) -> str:
        return f"({sql} IN ({', '.join(constants)}))"


class RootOfFifteenDigits(Postgres):
    def near_root(self, sql: str) -> str:
        return self.wide(f"ceil(sqrt({self.cast(sql, DOUBLE)}))")


class Sliced(Postgres):
    def unnest(self, sql: str, most: int, alias: str) -> str:
        return f"CROSS JOIN UNNEST(({sql})[1:{most}]) AS {alias}(element)"


class MatchesCount(Postgres):
    def half_join(self, left: str, right: str, on: str, anti: bool) -> tuple[str, tuple[str, ...]]:
        return super().half_join(left, right, on, anti) if anti else (f"{left}\nJOIN {right} ON {on}", ())


class NullsLast(Postgres):
    def sorted(self, sql: str, descending: bool, nulls_first: bool) -> str:
        return super().sorted(sql, descending, False)


BROKEN: list[tuple[Postgres, Callable[..., None], tuple[Any, ...]]] = [
    (QuotientOfNumerics(), contract.test_division_truncates_towards_zero, (HUGEINT,)),
    (QuotientRoundedDown(), contract.test_division_truncates_towards_zero, (INTEGER,)),
    (QuotientRoundedDown(), contract.test_division_truncates_towards_zero, (HUGEINT,)),
    (NarrowTotals(), contract.test_totals_are_exact_whatever_the_terms, ()),
    (TextsOfTheDatabase(), contract.test_texts_are_ordered_by_their_bytes, ()),
    (HalvesUp(), contract.test_rounding_to_integers_is_half_to_even_and_never_fails, ()),
    (Unguarded(), contract.test_rounding_to_integers_is_half_to_even_and_never_fails, ()),
    (NanIsFinite(), contract.test_what_is_finite_and_what_is_a_number, ()),
    (TwoZeros(), contract.test_zero_has_one_sign_where_it_is_asked_for, (DOUBLE,)),
    (HashWithoutSalt(), contract.test_the_hash_is_of_all_keys_and_of_the_salt, ()),
    (HashOfForms(), contract.test_equal_values_have_one_hash_whatever_their_form, ()),
    (MaybeMember(), contract.test_membership_is_true_or_false, ()),
    (RootOfFifteenDigits(), contract.test_roots_keep_all_digits, ()),
    (MatchesCount(), contract.test_half_joins_keep_each_left_row_once, (False,)),
    (NullsLast(), contract.test_order_is_nulls_where_they_are_said_to_be_and_nan_above_all, (False, True)),
]


@pytest.fixture(scope="module")
def bare(server: Server) -> Iterator[Bare]:
    opened = Bare(server, POSTGRES)
    yield opened
    opened.close()


@pytest.mark.parametrize(("dialect", "test", "args"), BROKEN, ids=lambda x: type(x).__name__)
def test_a_wrong_line_is_noticed(
    bare: Bare, dialect: Postgres, test: Callable[..., None], args: tuple[Any, ...]
) -> None:
    test(bare, *args)
    with mock.patch.object(bare, "dialect", dialect), pytest.raises((AssertionError, psycopg.Error)):
        test(bare, *args)


def test_a_slice_would_read_what_lies_before_and_rows_of_two_dimensions(bare: Bare) -> None:
    """Arrays may begin at any index, and have more dimensions than one: never more than `most` elements are read."""

    def elements(d: Postgres, array: str) -> list[int]:
        source = f"(SELECT CAST('{array}' AS integer[]) AS x) AS t\n{d.unnest('t.x', 2, 'u')}"
        found: list[int] = list(bare.fetch(f"SELECT u.element FROM {source}").columns[0])
        return sorted(found)

    for array, first in (("[0:2]={7,8,9}", [7, 8]), ("{{1,2,3},{4,5,6}}", [1, 2]), ("{5}", [5])):
        assert elements(POSTGRES, array) == first
    assert elements(Sliced(), "[0:2]={7,8,9}") == [8, 9]
    assert len(elements(Sliced(), "{{1,2,3},{4,5,6}}")) == 6


def test_a_column_of_another_collation_is_ordered_by_its_bytes(bare: Bare) -> None:
    if not bare.fetch("SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'").columns[0]:
        # A server that was built without ICU, as pip's: nothing there is ordered otherwise.
        assert bare.fetch("SELECT 1 FROM pg_collation WHERE collname LIKE '%-x-icu'").columns == ([],)
        return
    rows = "(VALUES (1, 'é'), (2, 'z'), (3, 'A'), (4, 'a')) AS t(i, raw)"
    column = '(SELECT i, raw COLLATE "und-x-icu" AS x FROM ' + rows + ") AS t"

    def ordered(sql: str) -> list[int]:
        return list(bare.fetch(f"SELECT i FROM {column} ORDER BY {POSTGRES.sorted(sql, False, False)}").columns[0])

    assert ordered(POSTGRES.column("t.x", VARCHAR)) == [3, 4, 2, 1]
    assert ordered("t.x") == [4, 3, 1, 2]
    least = f"MIN({POSTGRES.column('t.x', VARCHAR)}), BOOL_AND({POSTGRES.column('t.x', VARCHAR)} < 'z' OR i <= 2)"
    assert [c[0] for c in bare.fetch(f"SELECT {least} FROM {column}").columns] == ["A", True]


@pytest.fixture(scope="module")
def both(bare: Bare) -> Both:
    return Both(20, bare)


SPELLINGS: dict[str, tuple[str, str]] = {
    "intdiv": ("({} / {})", "numeric quotients keep their fraction"),
    "mul": ("(CAST({} AS double precision) * {})", "overflow is an error"),
    "like": ("({} LIKE {})", "a backslash is no escape"),
    "round": ("round(CAST({} AS double precision))", "halves go to the even one"),
    "unicode": ("ascii({})", "of no character"),
    "lower": ("lower({})", "letters beyond ASCII"),
    "year": ("CAST(extract(year FROM {}) AS bigint)", "infinity has no year"),
    "ends_with": ("starts_with({}, {})", "ends are no starts"),
    "make_date": ("make_date(CAST({} AS integer), CAST({} AS integer), CAST({} AS integer))", "no such day"),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_wrong_spelling_is_noticed(both: Both, name: str) -> None:
    """As test_functions.py compares them."""
    template, _ = SPELLINGS[name]
    both.rng.seed(name)
    for args, result in both.calls(REGISTRY[name], 100):
        if template.count("{}") != len(args):
            continue
        sql = template.format(*map(both.printed, args))
        other = both.dialect.call(name, [a.sql for a in args], facts(args), result)
        if both.differences(sql, other, result):
            return
    raise AssertionError("nobody noticed")


def test_products_without_their_guards_are_noticed(both: Both) -> None:
    known = Value(DOUBLE, finite=False)
    assert both.differences("f64 * f64_2", "f64 * f64_2", known)
    assert not both.differences(times(POSTGRES, "f64", "f64_2"), "f64 * f64_2", known)
