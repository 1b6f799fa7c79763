"""DOUBLE arithmetic in PostgreSQL, which raises an error where a result is too large or too small; ours does neither.

Where another engine says ±∞ or ±0.0, PostgreSQL fails. So an operation is done where both sides are of ordinary size,
and near the ends it is first decided what the rounded result is: by the same operation on sides multiplied by powers of
two, which is exact. (A result between 2⁻¹⁰⁷⁵ and the next DOUBLE may be taken for 2⁻¹⁰⁷⁵, and so for 0.) Of a constant
side the last number with an ordinary result is found beforehand.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from fractions import Fraction

from dpsql.core.ir.types import DOUBLE
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.dialects.postgres_casts import bound, once

_LARGEST = math.ldexp(1 - 2.0**-53, 1024)
_TINIEST = Fraction(1, 2**1075)
"""What is no larger is rounded to 0."""
_FAR = Fraction(_LARGEST) + Fraction(2**970)
"""What is no smaller is rounded to ±∞."""


def _case(d: Dialect, sql: list[str], arms: str, shorthands: Mapping[str, str]) -> str:
    """A CASE over two values. In `arms` words that are no SQL stand for parts of it, and 2^n for a constant."""

    def body(x: list[str]) -> str:
        words = {"a": x[0], "b": x[1], "p": f"abs({x[0]})", "q": f"abs({x[1]})"}
        for name, text in shorthands.items():
            words[name] = " ".join(words.get(w, w) for w in text.split())
        return " ".join(_word(d, w, words) for w in arms.split())

    return bound(sql, body)


def _word(d: Dialect, word: str, words: Mapping[str, str]) -> str:
    if word == "largest":
        return d.constant(_LARGEST, DOUBLE)
    if word == "inf":
        return d.constant(math.inf, DOUBLE)
    if word.startswith("2^"):
        return d.constant(math.ldexp(1.0, int(word[2:])), DOUBLE)
    return words.get(word, word)


def plus(d: Dialect, a: str, b: str, operator: str = "+") -> str:
    """a + b or a - b. Where one is beyond 2¹⁰²² and both are at least 1, the sum of their halves has no end to pass."""
    arms = (
        "CASE WHEN p <= 2^1022 AND q <= 2^1022 THEN result "
        "WHEN LEAST( p , q ) < 1 OR GREATEST( p , q ) > largest THEN result "
        "WHEN abs( halves ) >= 2^1023 THEN sign( halves ) * inf ELSE result END"
    )
    names = {"result": f"a {operator} b"}
    half = d.constant(0.5, DOUBLE)
    return _case(d, [a, b], arms, {**names, "halves": f"a * {half} {operator} b * {half}"})


def times(d: Dialect, a: str, b: str) -> str:
    """a · b. Only of two sides above 1 it can be too large, only of two below 1 too small."""
    arms = (
        "CASE WHEN less >= 2^-510 AND more <= 2^510 THEN result "
        "WHEN less = 0 OR more > largest THEN result "
        "WHEN less >= 1 THEN CASE WHEN ( less * 2^-512 ) * ( more * 2^-512 ) >= 1 THEN signs * inf ELSE result END "
        "WHEN more >= 1 THEN result "
        "WHEN more < 2^-600 THEN signs * 0 "
        "WHEN ( less * 2^510 ) * ( more * 2^510 ) <= 2^-55 THEN signs * 0 ELSE result END"
    )
    names = {"result": "a * b", "signs": "sign( a ) * sign( b )"}
    return _case(d, [a, b], arms, {**names, "less": "LEAST( p , q )", "more": "GREATEST( p , q )"})


def over(d: Dialect, a: str, b: str) -> str:
    """a / b, b ≠ 0. It can be too large for b below 1, and too small above."""
    arms = (
        "CASE WHEN p BETWEEN 2^-500 AND 2^500 AND q BETWEEN 2^-500 AND 2^500 THEN result "
        "WHEN p = 0 OR p > largest OR q > largest THEN result "
        "WHEN q < 2^-500 THEN CASE WHEN p > 2^525 THEN signs * inf WHEN p < 2^-60 THEN result "
        "WHEN ( p * 2^-400 ) / ( q * 2^524 ) >= 2^100 THEN signs * inf ELSE result END "
        "WHEN q < 1 THEN CASE WHEN p < 1 THEN result "
        "WHEN ( p * 2^-512 ) / q >= 2^512 THEN signs * inf ELSE result END "
        "WHEN p >= 1 THEN result "
        "WHEN q <= 2^500 THEN CASE WHEN ( p * 2^512 ) / q <= 2^-563 THEN signs * 0 ELSE result END "
        "WHEN p < 2^-600 THEN signs * 0 "
        "WHEN ( p * 2^500 ) / ( q * 2^-524 ) <= 2^-51 THEN signs * 0 ELSE result END"
    )
    return _case(d, [a, b], arms, {"result": "a / b", "signs": "sign( a ) * sign( b )"})


def times_constant(d: Dialect, sql: str, factor: float) -> str:
    """x · c of a constant."""
    return _with_constant(d, sql, factor, "*", lambda x: x * Fraction(factor))


def over_constant(d: Dialect, sql: str, divisor: float) -> str:
    """x / c of a constant other than 0."""
    return _with_constant(d, sql, divisor, "/", lambda x: x / Fraction(divisor))


def _with_constant(d: Dialect, sql: str, c: float, operator: str, exact: Callable[[Fraction], Fraction]) -> str:
    constant = d.constant(c, DOUBLE)
    if not math.isfinite(c) or c == 0 or abs(c) == 1:
        return f"{sql} {operator} {constant}"
    grows = abs(exact(Fraction(1))) > 1
    if grows:
        end = last(lambda x: abs(exact(Fraction(x))) < _FAR)
        limit = math.copysign(math.inf, c)
        if end == _LARGEST:
            return f"{sql} {operator} {constant}"
        ends = f"BETWEEN {d.constant(-end, DOUBLE)} AND {d.constant(end, DOUBLE)}"
        return once(sql, lambda x: f"CASE WHEN {x} {ends} THEN {x} {operator} {constant} "
                                   f"ELSE {x} * {d.constant(limit, DOUBLE)} END")  # fmt: skip
    end = last(lambda x: abs(exact(Fraction(x))) <= _TINIEST)
    if end == 0:
        return f"{sql} {operator} {constant}"
    ends = f"BETWEEN {d.constant(-end, DOUBLE)} AND {d.constant(end, DOUBLE)}"
    zero = d.constant(math.copysign(0.0, c), DOUBLE)
    return once(sql, lambda x: f"CASE WHEN {x} {ends} THEN {x} * {zero} ELSE {x} {operator} {constant} END")


def last(holds: Callable[[float], bool]) -> float:
    """The largest DOUBLE from 0 on for which a condition holds that fails from some number on; 0 if for none above."""
    low, high = 0, _FIRST_INFINITE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(_double(middle)) else (low, middle)
    return _double(low)


_FIRST_INFINITE = 0x7FF << 52


def _double(bits: int) -> float:
    """The DOUBLE with this number, counted from 0 on."""
    found: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return found
