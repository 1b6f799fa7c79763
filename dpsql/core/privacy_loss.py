"""Privacy loss: what an answer costs, exactly.

One value type for the three accountants. `epsilon`/`delta` and `rho` are never mixed in one ledger: a ledger has one
accountant and its entries are in that accountant's terms. Everything that decides is a rational
number; floats are read through their shortest decimal text, so `0.1` means 1/10.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from dpsql.diagnostics.words import in_digits

GRID = math.lcm(10**60, *range(1, 51))
"""Charges are multiples of 1/GRID: every decimal of 60 places and every split into up to 50 parts is on the grid,
and sums of charges keep a bounded denominator however many queries a ledger holds."""

_LONGEST = 400
_LARGEST_EXPONENT = 1000
_MOST_BITS = 10_000
"""Longest numerator or denominator: longer ones could not even be printed."""
_NOTHING = Fraction(0)
_LEAST_SETTING = Fraction(1, 10**100)
_TEXT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,6}))?|[+-]?[0-9]+/[0-9]*[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class PrivacyLoss:
    """(ε, δ) or (ρ, δ), exact rationals ≥ 0.

    epsilon: pure or approximate DP; 0 for a loss in zCDP.
    delta: probability of the δ part (thresholds, conversions).
    rho: zCDP; 0 for a loss in ε.
    Raises ValueError for a negative part or one that is not a Fraction or int (a float, so NaN too).
    """

    epsilon: Fraction = _NOTHING
    delta: Fraction = _NOTHING
    rho: Fraction = _NOTHING

    def __post_init__(self) -> None:
        for part in (self.epsilon, self.delta, self.rho):
            if part is _NOTHING:
                continue
            if not isinstance(part, (int, Fraction)):
                raise ValueError(f"a privacy loss is an exact rational, got {part!r}")
            if part.numerator < 0:  # a comparison of Fractions takes five times as long
                raise ValueError("a privacy loss is never negative")

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        """Sequential, adaptive composition: Σε, Σδ, Σρ (Rogers et al. 2016; Feldman & Zrnic 2021)."""
        if self is NO_LOSS:
            return other
        return PrivacyLoss(self.epsilon + other.epsilon, self.delta + other.delta, self.rho + other.rho)

    def within(self, cap: PrivacyLoss) -> bool:
        """True if no part exceeds the cap's."""
        return self.epsilon <= cap.epsilon and self.delta <= cap.delta and self.rho <= cap.rho

    def on_grid(self) -> PrivacyLoss:
        """The least loss not below this one whose parts are multiples of 1/GRID."""
        return PrivacyLoss(_ceil(self.epsilon), _ceil(self.delta), _ceil(self.rho))

    def __str__(self) -> str:
        """For reading only; parts are rounded up, so that nothing looks cheaper than it is."""
        parts = [f"ε {show_spent(self.epsilon, plain=True)}"] if self.epsilon or not self.rho else []
        if self.rho:
            parts.append(f"ρ {show_spent(self.rho, plain=True)}")
        if self.delta:
            parts.append(f"δ {show_spent(self.delta)}")
        return " ".join(parts)

    def __repr__(self) -> str:
        """Exact: a decimal that means the part, else a quotient. Parts that are 0 are left out."""
        parts = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return f"PrivacyLoss({', '.join(f'{name}={exactly(x)}' for name, x in parts.items() if x)})"


def exactly(x: Fraction) -> str:
    """The number as Python text that means it: 3, 0.25, 1e-09, Fraction(1, 3)."""
    if x.denominator == 1:
        return str(x.numerator)
    short = repr(x.numerator / x.denominator) if max(x.numerator, x.denominator).bit_length() < 1000 else ""
    return short if short and Fraction(short) == x else f"Fraction({x.numerator}, {x.denominator})"


NO_LOSS = PrivacyLoss()


def compose(losses: Iterable[PrivacyLoss]) -> PrivacyLoss:
    """Sequential composition of any number of losses; NO_LOSS for none."""
    return sum(losses, NO_LOSS)


def largest(losses: Iterable[PrivacyLoss]) -> PrivacyLoss:
    """The largest ε, δ and ρ among several losses, each by itself."""
    found = list(losses) or [PrivacyLoss()]
    return PrivacyLoss(max(x.epsilon for x in found), max(x.delta for x in found), max(x.rho for x in found))


def remaining(cap: PrivacyLoss, spent: PrivacyLoss) -> PrivacyLoss:
    """What is left of a cap, part by part; never below zero."""
    zero = Fraction(0)
    return PrivacyLoss(
        max(zero, cap.epsilon - spent.epsilon), max(zero, cap.delta - spent.delta), max(zero, cap.rho - spent.rho)
    )


# Reading numbers ------------------------------------------------------------------------------------------------------


def exact(value: object, name: str = "value") -> Fraction:
    """Any finite number as an exact rational.

    Text is a decimal (`0.1`, `1e-6`) or a quotient (`1/3`); a float is read through its shortest decimal text. Raises
    ValueError, naming `name`, for anything else: NaN, infinity, booleans, and exponents beyond 1000 (which would
    only serve to exhaust memory).
    """
    match value:
        case bool():
            pass
        case Fraction() | int() if max(value.numerator.bit_length(), value.denominator.bit_length()) <= _MOST_BITS:
            return Fraction(value)
        case float() if math.isfinite(value):
            return Fraction(float.__repr__(value))
        case Decimal() if value.is_finite() and abs(value.adjusted()) <= _LARGEST_EXPONENT:
            return Fraction(value)
        case str():
            text = value.strip()
            found = _TEXT.fullmatch(text) if len(text) <= _LONGEST else None
            if found and abs(int(found.group(1) or 0)) <= _LARGEST_EXPONENT:
                return Fraction(text)
        case _:
            pass
    raise ValueError(f"{name} must be a finite number such as 0.1, got {_quote(value)}")


def exact_epsilon(value: object, name: str = "epsilon") -> Fraction:
    """An ε (or ρ, a weight, an error) as an exact rational; ValueError unless it is above 0 and of a usable size.

    That is from 1e-100 to 1e100: searches and messages use floats, which must hold its square and its inverse.
    """
    number = exact(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be above 0, got {_quote(value)}")
    if not _LEAST_SETTING <= number <= 1 / _LEAST_SETTING:
        raise ValueError(f"{name} must be from 1e-100 to 1e100, got {_quote(value)}")
    return number


def exact_delta(value: object, name: str = "delta") -> Fraction:
    """A δ as an exact rational; ValueError unless 0 ≤ δ < 1."""
    number = exact(value, name)
    if not 0 <= number < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {_quote(value)}")
    return number


def _quote(value: object) -> str:
    # A text may be long or hold control characters.
    text = value if isinstance(value, str) else in_digits(value)
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _ceil(x: Fraction) -> Fraction:
    return Fraction(math.ceil(x * GRID), GRID) if x else NO_LOSS.epsilon


# Showing numbers ------------------------------------------------------------------------------------------------------


def show_spent(x: Fraction, digits: int = 6, *, plain: bool = False) -> str:
    """A non-negative number in at most `digits` significant digits, rounded up: never less than was spent.

    plain: an ε or ρ, which has no exponent; a δ, which is written as 1e-8, has.
    """
    return _show(x, digits, ROUND_CEILING, plain)


def show_left(x: Fraction, digits: int = 6, *, plain: bool = False) -> str:
    """A non-negative number in at most `digits` significant digits, rounded down: never more than is left."""
    return _show(x, digits, ROUND_FLOOR, plain)


def left_text(left: PrivacyLoss | None, *, in_rho: bool | None = None) -> str:
    """What is left, rounded down, in ε or (zCDP) in ρ; δ only if there is any. left: None for no limit. in_rho: None
    for what there is.
    """
    if left is None:
        return "no limit"
    in_rho = bool(left.rho) and not left.epsilon if in_rho is None else in_rho
    main = f"ρ {show_left(left.rho, plain=True)}" if in_rho else f"ε {show_left(left.epsilon, plain=True)}"
    return f"{main} δ {show_left(left.delta)}" if left.delta else main


def _show(x: Fraction, digits: int, rounding: str, plain: bool) -> str:
    context = Context(prec=digits, rounding=rounding)
    shown = context.normalize(context.divide(Decimal(x.numerator), Decimal(x.denominator)))
    exponent = shown.adjusted()
    if not shown or (-16 if plain else -5) < exponent < 16:
        return f"{shown:f}"
    return f"{context.scaleb(shown, -exponent):f}e{exponent}"


# Conversions ----------------------------------------------------------------------------------------------------------


def pure_to_rho(epsilon: Fraction) -> Fraction:
    """ε-DP implies (ε²/2)-zCDP (Bun & Steinke 2016, Proposition 1.4)."""
    return epsilon * epsilon / 2


def rho_to_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """An ε such that ρ-zCDP implies (ε, δ)-DP, close to the least that Corollary 13 gives; 0 for ρ = 0.

    Canonne, Kamath & Steinke 2020, Corollary 13, solved for ε: for every α > 1,
    ε = αρ + (ln(1/δ) + (α−1)·ln(1−1/α) − ln α) / (α−1). *Why it is an upper bound:* the formula holds for every α, so
    the float search for the best one cannot make it false; the value at that α is computed in 80 digits, where
    `ln` is correctly rounded, enlarged by far more than its rounding error, and rounded up.
    Raises ValueError unless 0 ≤ ρ ≤ 1e9 (more protects nothing) and 0 < δ < 1.
    """
    if not 0 <= rho <= _LARGEST_RHO or not 0 < delta < 1:
        raise ValueError("rho must be between 0 and 1e9, and delta above 0 and below 1")
    if rho == 0:
        return Fraction(0)
    log_delta = _log(delta)

    def estimate(gap: float) -> float:
        alpha = 1 + gap
        return alpha * float(rho) + (-float(log_delta) - math.log(alpha)) / gap + math.log(gap / alpha)

    gap = _best_gap(estimate)
    alpha = 1 + gap
    terms = (
        _decimal(alpha * rho),
        _PRECISE.divide(-log_delta, _decimal(gap)),
        _log(gap / alpha),
        _PRECISE.divide(-_log(alpha), _decimal(gap)),
    )
    return max(Fraction(0), _round_up(_upper(terms), 18))


@lru_cache(maxsize=256)
def epsilon_to_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ρ with `rho_to_epsilon(ρ, delta)` ≤ `epsilon`, rounded down: by one part in 10⁸ or less for ε ≥ 10⁻³.

    The formula there, ε = αρ + C(α), solved for ρ at the best α: ρ = max over α of (ε − C(α))/α. *Why it is sound:*
    whatever the search finds is made smaller until the conversion itself, which is what will be charged, confirms it.
    Raises ValueError unless 0 < ε ≤ 1e9 and 0 < δ < 1, and for an ε so small that no ρ above 1e-40 was found.
    """
    if not 0 < epsilon <= _LARGEST_RHO or not 0 < delta < 1:
        raise ValueError("epsilon must be above 0 and at most 1e9, and delta above 0 and below 1")
    log_delta = float(_log(delta))

    def lost(gap: float) -> float:
        alpha = 1 + gap
        constant = (-log_delta - math.log(alpha)) / gap + math.log(gap / alpha)
        return (constant - float(epsilon)) / alpha

    rho, step = max(_LEAST_RHO, Fraction(-lost(float(_best_gap(lost))))), Fraction(1, 1 << 34)
    while rho_to_epsilon(rho, delta) > epsilon:
        if rho < _LEAST_RHO:
            raise ValueError("epsilon is too small for any rho at this delta")
        rho, step = rho * (1 - step), min(2 * step, Fraction(1, 2))
    return rho


def rho_to_delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    """A δ ≤ 1 such that ρ-zCDP implies (ε, δ)-DP: the infimum of Corollary 13, rounded up; 0 for ρ = 0.

    inf over α > 1 of exp((α−1)(αρ−ε))/(α−1)·(1−1/α)^α; rounded towards safety as in `rho_to_epsilon`.
    """
    if rho < 0 or epsilon < 0:
        raise ValueError("rho and epsilon must be at least 0")
    if rho == 0:
        return Fraction(0)
    if rho > _LARGEST_RHO:
        return Fraction(1)
    epsilon = min(epsilon, 4 * _LARGEST_RHO)

    def estimate(gap: float) -> float:
        alpha = 1 + gap
        exponent = gap * (alpha * float(rho) - float(epsilon))
        return exponent - math.log(gap) + alpha * math.log(gap / alpha)

    gap = _best_gap(estimate)
    alpha = 1 + gap
    power = _PRECISE.multiply(_decimal(alpha), _log(gap / alpha))
    exponent = _upper((_decimal(gap * (alpha * rho - epsilon)), -_log(gap), power))
    if exponent >= 0:
        return Fraction(1)
    # exp is correctly rounded to 80 digits; a thirty-digit ceiling of a slightly larger number is above the truth
    # because `exponent` was enlarged. e^-10000 stands for anything smaller.
    return Fraction(Context(prec=30, rounding=ROUND_CEILING).plus(_PRECISE.exp(max(exponent, Decimal(-10_000)))))


_LARGEST_RHO = Fraction(10**9)
_LEAST_RHO = Fraction(1, 10**40)
"""Where the float search finds nothing above 0."""
_PRECISE = Context(prec=80)
_SLACK = Decimal("1e-30")


def _best_gap(estimate: Callable[[float], float]) -> Fraction:
    """α − 1 that (nearly) minimises `estimate`, by ternary search over its logarithm; any answer is sound."""
    low, high = -40.0, 55.0
    for _ in range(200):
        third = (high - low) / 3
        if estimate(math.exp(low + third)) <= estimate(math.exp(high - third)):
            high -= third
        else:
            low += third
    return Fraction(math.exp((low + high) / 2)).limit_denominator(10**30)


def _decimal(x: Fraction) -> Decimal:
    return _PRECISE.divide(Decimal(x.numerator), Decimal(x.denominator))


def _log(x: Fraction) -> Decimal:
    return _PRECISE.ln(_decimal(x))


def _upper(terms: Iterable[Decimal]) -> Decimal:
    """Above the exact sum: each term is within 1e-50 of it, absolutely and relatively (α < 1e24, 80 digits)."""
    total, size = Decimal(0), Decimal(1)
    for term in terms:
        total, size = _PRECISE.add(total, term), _PRECISE.add(size, abs(term))
    return _PRECISE.add(total, _PRECISE.multiply(size, _SLACK))


def _round_up(x: Decimal, places: int) -> Fraction:
    return Fraction(math.ceil(Fraction(x) * 10**places), 10**places)
