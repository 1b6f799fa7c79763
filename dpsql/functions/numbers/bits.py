"""The bits of whole numbers: & | and exclusive or. What else there is of bits is arithmetic: ~x is -1 - x."""

from __future__ import annotations

import operator
from collections.abc import Callable

from dpsql.core.ir.types import BIGINT, INTEGER, SqlType, integer_type_for
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Interval
from dpsql.core.values.value import Args, Domain, stored
from dpsql.functions.function import Function, SignatureError, no_domain
from dpsql.functions.signature import count, if_null, integer, strict

MOST_KEYS_BITS = 10
"""Most bits of a mask whose combinations are listed as group keys."""


def _type(args: Args) -> SqlType:
    count(args, 2)
    for a in args:
        integer(a)
    found = integer_type_for(iv.hull(stored(args[0]), stored(args[1])), INTEGER, BIGINT)
    if found is None:
        raise SignatureError("expects integers of at most 64 bits", "convert them first: CAST(… AS BIGINT)")
    return found


def _all_bits(args: Args) -> Interval:
    """As many bits, and a sign, as the larger of the two needs: in two's complement no operation needs more."""
    ends = [end for a in args for end in (a.interval.lo, a.interval.hi)]
    if any(end is None for end in ends):
        return Interval(None, None, tuple(w for a in args for w in a.interval.why))
    bits = max(_bits(int(end)) for end in ends if end is not None)
    low = 0 if all(end is not None and end >= 0 for end in ends) else -(2**bits)
    return iv.interval(low, 2**bits - 1)


def _bits(n: int) -> int:
    return (n if n >= 0 else -n - 1).bit_length()


def _and(args: Args) -> Interval:
    """Of numbers that are not negative, no larger than either; with one of them, not negative either."""
    tops = [a.interval.hi for a in args if a.interval.lo is not None and a.interval.lo >= 0]
    known = [top for top in tops if top is not None]
    if known:
        return iv.interval(0, min(known))
    found = _all_bits(args)
    return iv.interval(0, None, found.why) if tops and found.lo is None else found


def _masked(args: Args) -> Domain | None:
    """The combinations of the bits of a mask, for `flags & 12` as a group key."""
    for mask, other in (args, args[::-1]):
        n = mask.constant
        if isinstance(n, int) and not isinstance(n, bool) and n >= 0 and n.bit_count() <= MOST_KEYS_BITS:
            listed = [0]
            for bit in range(n.bit_length()):
                listed += [key | 1 << bit for key in listed] if n >> bit & 1 else []
            return Domain(tuple(listed), null=if_null(other))
    return None


def _operator(
    name: str,
    written: str,
    summary: str,
    python: Callable[[int, int], int],
    interval: Callable[[Args], Interval] = _all_bits,
    domain: Callable[[Args], Domain | None] = no_domain,
) -> Function:
    return Function(
        (name,),
        f"{written}: integer, integer → integer",
        summary,
        type=_type,
        interval=interval,
        domain=domain,
        python=strict(python),
        operator=True,
    )


FUNCTIONS = (
    _operator("bits_and", "x & y", "The bits that both have.", operator.and_, _and, _masked),
    _operator("bits_or", "x | y", "The bits that either has.", operator.or_),
    _operator("bits_xor", "xor(x, y)", "The bits that one of them has.", operator.xor),
)
