"""Integers of stored answers are read back as they were written, few or many, and nothing else is read."""

from __future__ import annotations

import base64
import random

import pytest

from dpsql.answers.stored.store.stored_text import IN_64_BITS, MANY, read_integers, write_integers

EDGES = [0, 1, -1, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("beyond", [[], [2**63], [-(2**63) - 1], [10**40]])
@pytest.mark.parametrize("height", [0, 1, MANY - 1, MANY, MANY + 7])
def test_they_are_the_same(height: int, beyond: list[int]) -> None:
    dice = random.Random(height)
    values = ([dice.choice(EDGES) for _ in range(height)] + beyond)[-height:] if height else []
    text = write_integers(values)
    assert text.startswith(IN_64_BITS) is (height >= MANY and not beyond)
    assert read_integers(text) == tuple(values)


def test_many_were_once_written_as_few_are() -> None:
    values = list(range(-5, MANY))
    assert read_integers(str(values)) == tuple(values)


@pytest.mark.parametrize("broken", ["int64:AAA", "int64:AAAAAAAAAA==", "int64:é", "int64", "[1.0]", "[true]", "{}"])
def test_anything_else_is_refused(broken: str) -> None:
    with pytest.raises(ValueError):
        read_integers(broken)
    assert read_integers(IN_64_BITS + base64.b64encode(bytes([1] + [0] * 7)).decode()) == (1,)
