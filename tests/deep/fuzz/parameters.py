"""The Python interface: whatever values a caller passes, a plan, or an error of dpsql with a code.

Each byte of an input chooses one value of VALUES for one place of a call, in the order of PLACES; missing bytes leave
their places at the default.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

from dpsql.core.ledger.memory import MemoryLedger
from dpsql.diagnostics.errors import Error
from dpsql.planner.plan import Plan
from tests.deep.fuzz.sql import session
from tests.deep.fuzz.target import Target, damaged


class Number(float):
    """A float that is not one."""

    def __repr__(self) -> str:
        return "a number"


@cache
def values() -> tuple[Any, ...]:
    """Values that somebody may pass, on purpose or not."""
    import numpy as np

    loop: list[Any] = []
    loop.append(loop)
    found: list[Any] = [
        None, True, False, 0, 1, -1, 2, 5, 10**30, 10**400, -(2**63), 0.0, -0.0, 0.1, 0.5, 1.0, 1e-9, 1e300, 5e-324,
        math.inf, -math.inf, math.nan, 1j, "", " ", "0.1", "1/3", "1/0", "1e999999999", "nan", "inf", "-1", "+1", "0x1",
        "١", "1" * 5000, "north", "o'brien", "a\0b", "\ud800", "2025-01-01", "x" * 100_000, b"", b"\xff",
        bytearray(b"a"),
        Decimal("0.1"), Decimal("NaN"), Decimal("sNaN"), Decimal("1e999999"), Decimal("-0"), Fraction(1, 3),
        Fraction(10**400, 3), dt.date(2025, 1, 1), dt.date.max, dt.datetime(2025, 1, 1), dt.datetime.max,
        dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14))), dt.timedelta.max,
        dt.time(1, 2, tzinfo=dt.UTC),
        (), [], {}, [None], [1], ["north"], [1, 2], [[1]], ["a\0b"], ["\ud800"], [math.nan],
        [Decimal("sNaN")],
        [10**400],
        {"n": 5}, {"n": 0}, {"n": "5"}, {"n": None}, {"": 1}, {1: 1}, {"n": {}}, {"region": 1}, {"a": 1}, {"low": 1},
        {"low": "\ud800"}, {"n": 10**400}, {"\ud800": 1}, {None: 1}, {"n": 5, "m": 5}, {"low": []}, [{}], loop, {1, 2},
        range(3), range(10**9), iter([1]), object(), object, len, Number(1),
        np.float64(0.1), np.int64(1), np.float32("nan"), np.array([1]), np.array([[1.0]]), np.bool_(True),
        np.datetime64("2025-01-01"), np.str_("north"), [np.int64(65)], [np.datetime64("NaT")], NotImplemented, Ellipsis,
        "SELECT COUNT(*) AS n FROM patients", "SELECT COUNT(*) AS n FROM patients WHERE age >= ?",
        "SELECT region, COUNT(*) AS n, AVG(age) AS a FROM patients WHERE region = $low GROUP BY region", "bigquery",
        "json",
        "SELECT town, COUNT(*) AS n FROM patients GROUP BY town", "duckdb", "postgres", "text", [65], {"low": "north"},
        "SELECT SUM(age) AS n FROM patients WHERE smoker = $1 OR town IN ($2, ?)", [True, "x"], 0.95, "95%", "search",
        dt.date.min,
    ]  # fmt: skip
    assert len(found) <= 256
    return tuple(found)


PLACES = (
    "sql",
    "parameters",
    "epsilon",
    "delta",
    "rho",
    "max_error",
    "confidence",
    "weights",
    "dialect",
    "fresh",
    "format",
    "allow_dearer",
    "limits",
)
DEFAULTS = 255
"""The byte that leaves a place alone."""


def one(data: bytes) -> str:
    """Make the call that the bytes choose: `answer`, or the code it is refused with."""
    known = values()
    chosen = {place: known[byte] for place, byte in zip(PLACES, data, strict=False) if byte < len(known)}
    query = {"sql": "SELECT region, COUNT(*) AS n, AVG(age) AS a FROM patients GROUP BY region"} | {
        name: chosen.pop(name) for name in ("sql", "parameters", "dialect") if name in chosen
    }
    fresh, format = chosen.pop("fresh", None), chosen.pop("format", None)
    ledger = MemoryLedger("clinic")
    with session(ledger) as connection:
        try:
            asked = connection.sql(**query)
            assert repr(asked)
            assert isinstance(asked.plan(**chosen), Plan)
            assert asked.explain(**chosen, **({} if format is None else {"format": format}))
            asked.cost(**chosen), asked.accuracy(**{k: v for k, v in chosen.items() if k != "allow_dearer"})
            assert ledger.history() == [], "a look was charged"
            release = asked.run(**chosen, **({} if fresh is None else {"fresh": fresh}))
        except Error as error:
            assert ledger.history() == [], "a refusal was charged"
            assert error.diagnostics and all(d.message for d in error.diagnostics) and str(error)
            return error.diagnostics[0].code
    assert len(ledger.history()) <= 1 and str(release)
    return "answer"


def mutate(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """One to four places given another value."""
    found = bytearray(data.ljust(len(PLACES), bytes([DEFAULTS]))[: len(PLACES)])
    for _ in range(rng.choice((1, 1, 2, 4))):
        found[rng.randrange(len(PLACES))] = rng.choice((DEFAULTS, rng.randrange(len(values()))))
    return damaged(bytes(found), rng, others, [b"\xff"]) if rng.random() < 0.1 else bytes(found)


TARGET = Target("parameters", one, mutate)
