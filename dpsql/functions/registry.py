"""All scalar functions by name, and `apply`, which turns a function and its arguments' facts into the result's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.numbers.doubles import rounded
from dpsql.core.numbers.interval import Interval, iv_meet
from dpsql.core.values.constants import LONG, literal
from dpsql.core.values.value import MISSING, TRUTH, TRUTH_OR_NULL, Args, Domain, Missing, Scalar, Value, type_range
from dpsql.diagnostics.diagnostic import Mark, Reason
from dpsql.functions import lists
from dpsql.functions.conditions import comparison, conditional, logic, membership
from dpsql.functions.dates import date_parts as dateparts
from dpsql.functions.dates import dates, time_buckets, zones
from dpsql.functions.domains import octaves
from dpsql.functions.domains.made_domains import map_domain, midnight
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.numbers import arithmetic, bits, clipping, rounding
from dpsql.functions.numbers import real_functions as numeric
from dpsql.functions.signature import as_double, in_doubles, on_ranges
from dpsql.functions.text import concatenation as joining
from dpsql.functions.text import json_texts, patterns, regular_expressions, strings

FAMILIES: Mapping[str, Sequence[Function]] = MappingProxyType(
    {
        "Operators": (*arithmetic.FUNCTIONS, *bits.FUNCTIONS),
        "Comparison": comparison.FUNCTIONS,
        "Logic": logic.FUNCTIONS,
        "Conditional": conditional.FUNCTIONS,
        "Membership": membership.FUNCTIONS,
        "Rounding and bounds": (*rounding.FUNCTIONS, *clipping.FUNCTIONS),
        "Numbers": numeric.FUNCTIONS,
        "Text": (*strings.FUNCTIONS, *joining.FUNCTIONS),
        "Patterns": (*patterns.FUNCTIONS, *regular_expressions.FUNCTIONS, *json_texts.FUNCTIONS),
        "Date parts": dateparts.FUNCTIONS,
        "Dates": (*dates.FUNCTIONS, time_buckets.BUCKET, zones.TIMEZONE),
        "Lists": lists.NAMED,
        "Lists of an answer": lists.FUNCTIONS,
        "Octaves": octaves.FUNCTIONS,
    }
)


def _by_name() -> Mapping[str, Function]:
    found: dict[str, Function] = {}
    for family in FAMILIES.values():
        for function in family:
            for name in function.names:
                if name in found:
                    raise ValueError(f"two functions are named {name}")
                found[name] = function
    return MappingProxyType(found)


REGISTRY: Mapping[str, Function] = _by_name()
"""Every function under every one of its names (lower case)."""


def lookup(name: str) -> Function | None:
    """The function of this name in any letter case, or None."""
    return REGISTRY.get(name.lower())


def check(function: Function, args: Args) -> SqlType:
    """The result type; raises SignatureError if a literal is missing or the types do not fit."""
    if function.literal:
        for at in sorted(function.literal):
            if at < len(args) and not args[at].is_constant:
                raise SignatureError(f"expects a literal as argument {at + 1}")
    return function.type(args)


_is_constant = attrgetter("is_constant")


def apply(function: Function, args: Args) -> Value:
    """All facts about `function(args)`: type, interval, range, nullability, finiteness, domain, constant.

    Raises SignatureError if the arguments do not fit.

    *Claim.* What is given again is what working it out again would give. *Why.* It is kept under the very objects: the
    function and its arguments are values that nobody changes, and are held with it, so that no other object can have
    their numbers; the rules of functions look at nothing else. *When it would be false.* A rule that reads anything but
    its arguments. *Tested by* tests/functions/test_applied_again.py.
    """
    asked = (id(function), *map(id, args))
    known = _APPLIED.get(asked)
    if known is not None:
        return known[0]
    found = _applied(function, args)
    if _may_be_kept(found, args):
        if len(_APPLIED) >= MOST_APPLIED:
            _APPLIED.clear()
        _APPLIED[asked] = found, function, tuple(args)
    return found


MOST_APPLIED = 4096
"""Most facts of calls that are kept: some hundred bytes each, of the columns and constants that were asked for last."""

_APPLIED: dict[tuple[int, ...], tuple[Value, Function, tuple[Value, ...]]] = {}


def _may_be_kept(found: Value, args: Args) -> bool:
    """Not what holds lists of keys or long texts; nor what took steps, which count: constants folded, keys mapped."""
    moving = [a.domain for a in args if a.constant is MISSING]
    ruled = _is_truth(found.domain) or (found.domain is None and not any(moving))
    return bool(moving) and ruled and all(map(_is_light, args))


def _is_light(a: Value) -> bool:
    constant = a.constant
    if constant is MISSING:
        return a.domain is None or _is_truth(a.domain)
    return not isinstance(constant, (str, bytes)) or len(constant) <= LONG


def _is_truth(domain: Domain | None) -> bool:
    return domain is TRUTH or domain is TRUTH_OR_NULL


def _applied(function: Function, args: Args) -> Value:
    result_type = check(function, args)
    if function.python is not None and all(map(_is_constant, args)):
        folded = _fold(function, args, result_type)
        if folded is not None:
            return folded
    held, finite, reach = type_range(result_type), True, None
    match result_type.kind:
        case Kind.DOUBLE:
            converted = [a if (i := in_doubles(a)) is a.interval else a.with_interval(i) for a in args]
            found, finite = _representable(function.interval(converted)), function.finite(args)
        case Kind.BOOLEAN:
            found = function.interval(args)  # its range is as narrow as values of a type can be
        case _:
            found, held = function.interval(args), iv_meet((function.range or function.interval)(on_ranges(args)), held)
            reach = None if function.reach is None else function.reach(args)
    if found.why and found.bounded:
        found = found.because(())  # what was open below was closed here, and must not be blamed above
    domain = function.domain(args) or _mapped(function, args, result_type)
    return Value(result_type, found, held, not finite or function.nullable(args), finite, domain, reach=reach)


_OVERFLOW: Final = Reason(
    "DP202",
    "the value may exceed every DOUBLE, so it has no bounds",
    help=("bound the arguments more tightly, or the result:  CLIP(x, lower, upper)",),
    mark=Mark.OVERFLOW,
)


def _representable(i: Interval) -> Interval:
    """Where the engine's DOUBLE lies. Real bounds near the largest DOUBLE are none: it may be infinite there."""
    found = rounded(i)
    lost = (found.lo is None and i.lo is not None) or (found.hi is None and i.hi is not None)
    return found.because((*i.why, _OVERFLOW)) if lost else found


def evaluate(function: Function, values: Sequence[Scalar], result_type: SqlType) -> Scalar:
    """The function on Python values, exactly as the engine computes it for this result type.

    Raises ValueError, TypeError or ArithmeticError where that is not known.
    """
    with localcontext(prec=200):
        return _evaluate(function, values, result_type)


def _evaluate(function: Function, values: Sequence[Scalar], result_type: SqlType) -> Scalar:
    """`evaluate` in a decimal context that the caller has made wide enough to be exact."""
    assert function.python is not None
    take(1 + len(values) // 4 + sum([len(v) for v in values if isinstance(v, str)]) // 64)
    if result_type.kind is Kind.DOUBLE:
        values = [v if i in function.literal else as_double(v) for i, v in enumerate(values)]
    return _as_stored(function.python(*values), result_type)


def _fold(function: Function, args: Args, result_type: SqlType) -> Value | None:
    values = [a.constant for a in args if not isinstance(a.constant, Missing)]
    try:
        return literal(evaluate(function, values, result_type), result_type)
    except (ArithmeticError, ValueError, TypeError):
        return None


def _mapped(function: Function, args: Args, result_type: SqlType) -> Domain | None:
    """The image of the one finite domain among the arguments, all others being constants."""
    if function.python is None or result_type.kind is Kind.DOUBLE:
        return None
    moving = [i for i, a in enumerate(args) if isinstance(a.constant, Missing)]
    domain = args[moving[0]].domain if len(moving) == 1 else None
    if domain is None:
        return None
    fixed = [None if isinstance(a.constant, Missing) else a.constant for a in args]

    def image(key: Scalar) -> Scalar:
        fixed[moving[0]] = key
        return _evaluate(function, fixed, result_type)

    with localcontext(prec=200):
        return map_domain(domain, image)


@cache
def _ends(t: SqlType) -> tuple[int, int]:
    """The least and the greatest value of an INTEGER type, as plain integers."""
    held = type_range(t)
    assert held.lo is not None and held.hi is not None
    return int(held.lo), int(held.hi)


def _as_stored(value: Scalar, t: SqlType) -> Scalar:
    """A folded value in the Python class of its SQL type."""
    if value is None or isinstance(value, (str, bool)):
        return value
    match t.kind:
        case Kind.DOUBLE:
            return as_double(value)
        case Kind.DECIMAL if isinstance(value, (int, Decimal)):
            return Decimal(value).quantize(Decimal(1).scaleb(-t.scale))
        case Kind.INTEGER if isinstance(value, (int, Decimal)):
            whole = int(value)
            low, high = _ends(t)
            if whole != value or not low <= whole <= high:
                raise OverflowError
            return whole
        case Kind.TIMESTAMP if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            return midnight(value)
        case _:
            return value


def describe_registry() -> dict[str, list[dict[str, object]]]:
    """What the documentation prints: family → functions with `names`, `signature`, `summary` and `operator`.

    Without the lists of an answer and octaves, which no query can name.
    """
    return {
        family: [
            {"names": list(f.names), "signature": f.signature, "summary": f.summary, "operator": f.operator}
            for f in functions
        ]
        for family, functions in FAMILIES.items()
        if functions not in (lists.FUNCTIONS, octaves.FUNCTIONS)
    }
