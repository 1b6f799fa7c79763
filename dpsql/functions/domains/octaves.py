"""Octaves of integers: the public keys of a histogram by order of magnitude. No query can name them.

Octave 0 holds 1, octave b > 0 holds all n with 2^(b-1) < n ≤ 2^b. What is beyond 2^62 is in octave 62.
"""

from __future__ import annotations

from dpsql.core.ir.types import INTEGER
from dpsql.core.values.value import Args, Domain, Scalar
from dpsql.functions.function import Function
from dpsql.functions.signature import integer, interval_of, returns, strict

LAST = 62
"""The octave of 2^62, at which totals are saturated."""


def _octave(x: int) -> Scalar:
    return min((abs(x) - 1).bit_length(), LAST) if x else None


def _signed_octave(x: int) -> Scalar:
    octave = _octave(x)
    if octave is None:
        return 0
    assert isinstance(octave, int)
    return octave + 1 if x > 0 else -octave - 1


def _every_octave(args: Args) -> Domain:
    return Domain(range(LAST + 1), null=True)


def _every_signed_octave(args: Args) -> Domain:
    return Domain(range(-LAST - 1, LAST + 2), null=args[0].nullable)


FUNCTIONS = (
    Function(
        ("octave",),
        "octave(x: integer) → integer",
        "The least b ≥ 0 with |x| ≤ 2^b, at most 62; NULL for 0.",
        type=returns(INTEGER, integer),
        interval=interval_of(0, LAST),
        nullable=lambda args: True,
        domain=_every_octave,
        python=strict(_octave),
        operator=True,
    ),
    Function(
        ("signed_octave",),
        "signed_octave(x: integer) → integer",
        "The octave of x, plus 1, with the sign of x; 0 for 0.",
        type=returns(INTEGER, integer),
        interval=interval_of(-LAST - 1, LAST + 1),
        domain=_every_signed_octave,
        python=strict(_signed_octave),
        operator=True,
    ),
)
