"""DOUBLE arithmetic is that of IEEE 754 near the ends of its range, where PostgreSQL's own operators raise an error."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest

from dpsql.core.ir.types import DOUBLE
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.dialects import postgres_doubles as doubles
from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines_elsewhere.postgres.bare import Bare
from tests.engines_elsewhere.postgres.rows_of_functions import same
from tests.engines_elsewhere.postgres.servers import Server

LARGEST, LEAST = 1.7976931348623157e308, 5e-324
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, LARGEST, -LARGEST, LEAST, -LEAST, math.inf, -math.inf, math.nan]
SPECIAL += [
    2.0**n for n in (-1074, -1073, -1022, -600, -538, -537, -512, -510, -500, 500, 510, 512, 525, 970, 1022, 1023)
]
SPECIAL += [math.nextafter(x, y) for x in list(SPECIAL) for y in (math.inf, -math.inf)]


def _odd(rng: random.Random) -> float:
    if rng.random() < 0.4:
        return rng.choice(SPECIAL)
    exponent = rng.choice([0, 1, 2, 30, 480, 510, 512, 520, 540, 1000, 1022, 1023, 1024, 1500, 1540, 2040, 2046])
    bits = rng.getrandbits(1) << 63 | min(exponent + rng.randrange(3), 2046) << 52 | rng.getrandbits(52)
    found: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return found


def _pairs(seed: int) -> list[tuple[float, float]]:
    """Pairs at random, and pairs whose product, quotient or sum is about as large or small as can be."""
    rng = random.Random(seed)
    pairs = [(_odd(rng), _odd(rng)) for _ in range(4000)]
    for _ in range(3000):
        a = _odd(rng)
        if a != 0 and math.isfinite(a):
            for end in (LARGEST, LEAST, LEAST / 2 if LEAST / 2 else LEAST, 2.0**-1022):
                for made in (Fraction(end) / Fraction(a), Fraction(a) / Fraction(end), Fraction(end) - Fraction(a)):
                    try:
                        b = float(made) * (1 + rng.randrange(-3, 4) * 2.0**-52)
                    except OverflowError:
                        continue
                    pairs.append((a, b))
    return pairs


@pytest.fixture(scope="module")
def engine(server: Server) -> Iterator[Bare]:
    opened = Bare(server, POSTGRES)
    opened.connection.execute("CREATE TEMP TABLE pairs (i integer, a double precision, b double precision)")
    with opened.connection.cursor() as cursor, cursor.copy("COPY pairs FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["int4", "float8", "float8"])
        for i, (a, b) in enumerate(PAIRS):
            copy.write_row((i, a, b))
    yield opened
    opened.close()


PAIRS = _pairs(20)


def _divided(a: float, b: float) -> float | None:
    return None if b == 0 else a / b


OPERATIONS: dict[str, tuple[Callable[[Dialect, str, str], str], Callable[[float, float], float | None]]] = {
    "plus": (doubles.plus, lambda a, b: a + b),
    "minus": (lambda d, a, b: doubles.plus(d, a, b, "-"), lambda a, b: a - b),
    "times": (doubles.times, lambda a, b: a * b),
    "over": (lambda d, a, b: doubles.over(d, a, f"NULLIF({b}, 0)"), _divided),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_those_of_ieee_754(engine: Bare, name: str) -> None:
    spell, wanted = OPERATIONS[name]
    found = engine.fetch(f"SELECT {spell(POSTGRES, 'a', 'b')} FROM pairs ORDER BY i").columns[0]
    wrong, ends = [], 0
    for (a, b), got in zip(PAIRS, found, strict=True):
        right = wanted(a, b)
        ends += right is not None and (math.isinf(right) or right == 0 or abs(right) < 1e-307)
        if right is None:
            assert got is None
        elif not same(got, right) and not (abs(right) == LEAST and abs(got) == 0 and name in ("times", "over")):
            wrong.append((a, b, got, right))
    assert ends > 500
    assert not wrong, wrong[:5]


@pytest.mark.parametrize(
    "factor", [3.0, -3.0, 0.1, -1e-300, 1e300, LARGEST, LEAST, 0.5, 2.0**-60, 7e-310, 0.0, math.inf]
)
def test_constant_sides_are_no_exception(engine: Bare, factor: float) -> None:
    listed = [doubles.times_constant(POSTGRES, "a", factor)]
    listed += [doubles.over_constant(POSTGRES, "a", factor)] * (factor != 0)
    found = engine.fetch(f"SELECT {', '.join(listed)} FROM pairs ORDER BY i").columns
    for (a, _), *got in zip(PAIRS, *found, strict=True):
        wanted = [a * factor, *([a / factor] if factor else [])]
        assert all(same(x, y) for x, y in zip(got, wanted, strict=True)), (a, got, wanted)


def test_without_the_guards_postgres_raises(engine: Bare) -> None:
    """The twin that must fail: the operators alone."""
    for operator in ("*", "/", "+"):
        with pytest.raises(Exception, match=r"out of range: (over|under)flow"):
            engine.fetch(f"SELECT a {operator} NULLIF(b, 0) FROM pairs")


def test_the_last_number_of_which_a_condition_holds() -> None:
    assert doubles.last(lambda x: x < 1.5) == math.nextafter(1.5, 0)
    assert doubles.last(lambda x: x <= LEAST) == LEAST and doubles.last(lambda x: x <= 0) == 0
    assert doubles.last(lambda x: True) == LARGEST


def test_constants_are_those_that_are_meant() -> None:
    assert POSTGRES.constant(LARGEST, DOUBLE) == "CAST('1.7976931348623157e+308' AS double precision)"
