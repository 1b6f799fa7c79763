"""Lists of keys: what is kept with a measured list is what the list itself gives."""

from __future__ import annotations

import datetime as dt
import gc
import weakref

import pytest

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.public_facts import Keys
from dpsql.core.values.key_lists import LazyKeys, ListedKeys, lazy_keys, run_of
from dpsql.core.values.value import Domain

DAY = dt.date(2024, 2, 27)


def test_all_plans_over_a_measured_list_share_what_was_worked_out() -> None:
    keys = Keys(((3,), (5,), (None,)))
    first, again = (lazy_keys(Domain(ListedKeys.of(keys))) for _ in range(2))
    assert first is again
    assert tuple(first) == ((3,), (5,))
    assert first.digest == LazyKeys(Domain((3, 5))).digest


def test_with_null_it_is_another_list() -> None:
    listed = ListedKeys.of(Keys(((3,), (5,))))
    without, with_null = (lazy_keys(Domain(listed, null)) for null in (False, True))
    assert (tuple(without), tuple(with_null)) == (((3,), (5,)), ((3,), (5,), (None,)))
    assert without.digest != with_null.digest


def test_equal_lists_of_other_types_share_nothing() -> None:
    numbers, truths = (lazy_keys(Domain(ListedKeys.of(Keys(keys)))) for keys in (((0,), (1,)), ((False,), (True,))))
    assert numbers == truths and numbers.digest != truths.digest
    assert repr(numbers) != repr(truths)


def test_keys_that_nobody_measured_are_as_good() -> None:
    plain = ((3,), (None,), (5,))
    assert ListedKeys.of(plain) == (3, 5)
    assert ListedKeys.of(plain) is not ListedKeys.of(plain)


def test_what_is_kept_goes_with_the_list() -> None:
    keys = Keys(((3,), (5,)))
    kept = weakref.ref(lazy_keys(Domain(ListedKeys.of(keys))))
    del keys
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize(
    "values",
    [(1, 2, 3, 4), (-2, -1, 0, 1, 2), range(7), tuple(DAY + dt.timedelta(days=i) for i in range(5))],
)
def test_consecutive_values_are_a_run(values: tuple[LiteralValue, ...]) -> None:
    assert run_of(values) == LazyKeys(Domain(values)).run == (values[0], values[-1])


@pytest.mark.parametrize(
    "values",
    [
        (), (1, 2, 3), (1, 3, 2, 4), (1, 2, 2, 4), (1, 1, 3, 4), (4, 3, 2, 1), (0, True, 2, 3), (0, 1.0, 2, 3),
        (False, True, 2, 3), range(0, 8, 2), ("a", "b", "c", "d"), (DAY, DAY, DAY, DAY + dt.timedelta(days=3)),
        tuple(dt.datetime(2024, 1, day) for day in (1, 2, 3, 4)), (1, 2, 3, DAY), (DAY, 1, 2, 3),
    ],
)  # fmt: skip
def test_other_values_are_none(values: tuple[LiteralValue, ...]) -> None:
    assert run_of(values) is None
