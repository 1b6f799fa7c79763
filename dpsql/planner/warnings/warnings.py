"""Utility warnings (DP5xx): answers that would be noise, as far as declared numbers and the plan can tell.

Nothing private is read: a warning is the same whatever the database holds. Each names the numbers it follows from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.short_text import identifier
from dpsql.core.ir.walk import Tagged
from dpsql.core.measures.all_measures import rule
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Rejected
from dpsql.diagnostics.words import about
from dpsql.frontend.aggregates.formula import formula
from dpsql.frontend.aggregates.quantile import QuantileFormula
from dpsql.functions.expression_values import evaluate
from dpsql.planner.costs.expected_error import expected_error, output_error
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.planner.warnings.declared_sizes import DeclaredSizes, Most, declared_sizes
from dpsql.planner.warnings.durations import durations
from dpsql.planner.warnings.tight_limits import discarded

MOST_EPSILON: Final = 20.0
"""A repair never names a larger ε: it would protect nobody."""

Remeasure = Callable[[Fraction], MeasuredRelease]
"""The same release at another ε of the whole query. Raises Rejected."""


@dataclass(frozen=True, slots=True)
class _Largest:
    """The largest that a released number can be, in its own unit, and the declared numbers that say so."""

    amount: Fraction
    why: str


@dataclass(frozen=True, slots=True)
class _Release:
    """One release with what its warnings are made from."""

    measured: MeasuredRelease
    sizes: DeclaredSizes
    source: Source
    epsilon: Fraction
    at: Remeasure
    most: float
    """The largest ε that any account of the policy may spend; `inf` if nothing is capped."""


def warnings_of(
    release: MeasuredRelease,
    below: Tagged[Facts],
    source: Source,
    ctx: Context,
    limits: ContributionLimits,
    epsilon: Fraction,
    at: Remeasure,
) -> tuple[Diagnostic, ...]:
    """The warnings of one release.

    below: its input, with facts. limits: those that the query sets itself. epsilon: what the whole query may lose; at:
    the release at another one, for repairs that name a number.
    """
    own = _Release(release, declared_sizes(below, release.node), source, epsilon, at, _affordable(ctx.policy))
    try:
        found = (*_drowned(own, below.fact), *_hidden(own), *_thin(own), *_averages(own), *_ranks(own))
    except OverflowError:  # numbers beyond what a float can hold: errors are not comparable, and nothing is said
        found = ()
    return (*found, *discarded(release, below, source, ctx, limits), *durations(release.node, source))


# --- DP501: a number that is smaller than its error ----------------------------------------------------------------


def _drowned(own: _Release, facts: Facts) -> Iterator[Diagnostic]:
    """Columns whose expected error is larger than any value they can have."""
    for output in own.measured.node.outputs:
        most = _greatest(own, output, facts)
        error = None if most is None else _error(own.measured, output)
        if most is not None and error is not None and error > most.amount:
            yield _warning(
                own, "DP501", output,
                f"{_named(output)} is at most {_amount(most.amount)}, and its expected error is ± {_amount(error)}",
                "the answer would be noise",
                _or(_enough(own, output, most.amount), "count in fewer and larger groups, or with smaller limits"),
                most.why,
            )  # fmt: skip


def _greatest(own: _Release, output: Output, facts: Facts) -> _Largest | None:
    """The largest number that a count or a sum can be."""
    found, components = own.sizes, own.measured.node.components
    each, component = formula(output).largest_of_row(components), components[output.recipe.components[0]]
    rows = found.per_group
    if rule(component).counts == "ids":
        rows = _smaller(rows, found.units)
    elif rule(component).counts == "values":
        rows = _smaller(rows, _values(component, facts))
    return None if rows is None or each is None else _times(rows, each, component)


def _values(component: Component, facts: Facts) -> Most | None:
    if component.arg is None:
        return None
    domain = evaluate(component.arg, facts.key_env).domain
    return None if domain is None else Most(domain.size, f"{domain.size:,} possible values")


def _times(rows: Most, each: Fraction, component: Component) -> _Largest:
    """What so many rows can add up to."""
    values = f", values up to {_amount(each)}" if rule(component).adds_values else ""
    return _Largest(rows.count * each, f"{rows.why}{values}")


# --- DP503, DP305: too many groups for ε -----------------------------------------------------------------------------

HARDLY: Final = Fraction(1, 20)
"""Where a group of all units that there can be is shown no more often than that, the query is refused."""
LARGE_GROUP: Final = 100
"""Units of a group that nobody has declared to be so large: a threshold above it is told before it is paid for."""


def _hidden(own: _Release) -> Iterator[Diagnostic]:
    """A threshold that private groups cannot reach by declared numbers (DP305, unless chance may well help them), or
    that they may well not reach.
    """
    threshold, node = own.measured.threshold, own.measured.node
    if threshold is None or node.threshold is None:
        return
    found, deciding = own.sizes, node.components[node.threshold]
    most = found.per_group if rule(deciding).counts == "rows" else _smaller(found.units, found.per_group)
    least = own.measured.shown_from
    if most is None or least <= most.count:
        yield from _doubtful(own, least, most)
        return
    names = ", ".join(identifier(k.name) for k in node.keys)
    hopeless = threshold.mechanism.upper_tail(threshold.threshold - most.count * deciding.weight, 64) <= HARDLY
    yield Diagnostic(
        "DP305" if hopeless else "DP503",
        f"groups of {names} are shown from {least:,} units on, and none can have over {most.count:,}",
        own.source, node.keys[0].span or node.span, "no group would be shown" if hopeless else "only chance shows one",
        (*_enough_for(own, least / max(1, most.count), partial(_shows, most=most.count)),
         "or use a larger delta, or group by something that more people share"),
        (f"from declared numbers alone: {most.why}; ε is {float(own.epsilon):g}",),
        severity="error" if hopeless else "warning",
    )  # fmt: skip


def _doubtful(own: _Release, least: int, most: Most | None) -> Iterator[Diagnostic]:
    """A threshold above half of what there can be, or a large one where nobody declares how much that is."""
    node = own.measured.node
    asked = node.min_units - 1  # units that somebody wants a group to have, whatever the noise
    if least <= LARGE_GROUP + asked if most is None else 2 * least <= most.count + asked:
        return
    names = ", ".join(identifier(k.name) for k in node.keys)
    wanted = LARGE_GROUP + asked if most is None else max(1, (most.count + asked) // 2)
    why = "nothing declares how many units there are" if most is None else f"{most.why}: one group at most is shown"
    yield Diagnostic(
        "DP503",
        f"groups of {names} are shown from {least:,} units on: smaller ones, perhaps all, are paid for and hidden",
        own.source, node.keys[0].span or node.span, "there may be no group so large",
        (*_enough_for(own, least / wanted, partial(_shows, most=wanted)),
         "or use a larger delta, group by something that more people share, or ask for a public list (domain)"),
        (f"from declared numbers alone: {why}; ε is {float(own.epsilon):g}",), severity="warning",
    )  # fmt: skip


def _shows(measured: MeasuredRelease, most: int) -> bool:
    return measured.threshold is not None and measured.shown_from <= most


def _thin(own: _Release) -> Iterator[Diagnostic]:
    """The first count or sum whose expected error is larger than what an average group can hold."""
    found, groups = own.sizes, own.sizes.groups
    average = found.average
    if average is None or found.total is None or found.per_group is None or groups < 2:
        return
    for output in own.measured.node.outputs:
        components = own.measured.node.components
        each = formula(output).largest_of_row(components)
        if each is None or rule(components[output.recipe.components[0]]).counts != "rows":
            continue
        typical, largest, total = (m.count * each for m in (average, found.per_group, found.total))
        error = _error(own.measured, output)
        if error is None or not typical or not typical < error <= largest:
            continue
        fewer = math.floor(total / Fraction(error))
        coarser = f"group into at most {fewer:,} groups" if 1 <= fewer < groups else "use coarser groups"
        yield _warning(
            own, "DP503", output,
            f"{_named(output)} is at most {_amount(typical)} on average over {groups:,} groups, and its expected error "
            f"is ± {_amount(error)}",
            "ε is too small for so many groups",
            _or(_enough(own, output, typical), coarser),
            average.why,
        )  # fmt: skip
        return


# --- DP504: averages of a few rows -----------------------------------------------------------------------------------


def _averages(own: _Release) -> Iterator[Diagnostic]:
    """The first AVG, VAR or STDDEV whose noise, in a group of the declared size, is as wide as all possible answers."""
    rows = _rows_of_a_mean(own)
    if rows is None or rows.count < 1:
        return
    for output in own.measured.node.outputs:
        noise = _noise_of_mean(own.measured, output, rows.count)
        if noise is None:
            continue
        error, half = noise
        if error < half or not half:
            continue
        group = "a group" if own.measured.node.keys else "the table"
        yield _warning(
            own, "DP504", output,
            f"{_named(output)} is an average of about {_rows(rows.count)}, and noise moves it by ± {_amount(error)} "
            f"in a range of ± {_amount(half)}",
            f"{group} of so few rows says nothing about its average",
            _or(
                _enough_for(own, error / half, partial(_is_met, output=output, rows=rows.count)),
                "average over fewer and larger groups, or tighten the bounds of the column and the limits",
            ),
            rows.why,
        )  # fmt: skip
        return


# --- DP507: quantiles and modes of a few rows ------------------------------------------------------------------------


def _ranks(own: _Release) -> Iterator[Diagnostic]:
    """The first quantile or mode that may be as many rows off as half of a group of the declared size has."""
    rows = _rows_of_a_mean(own)
    if rows is None or rows.count < 1:
        return
    for output in own.measured.node.outputs:
        doubt = formula(output).doubt
        off = expected_error(own.measured, _place(output)) if doubt else None
        if off is None or 2 * off < rows.count:
            continue
        yield _warning(
            own, "DP507", output,
            f"{_named(output)} is of about {_rows(rows.count)}, and {doubt.format(rows=f'{_amount(off)} rows')}",
            "mostly the public cells decide the answer" if isinstance(formula(output), QuantileFormula)
            else "mostly chance decides the answer",
            _or(
                _enough_for(own, 2 * off / rows.count, partial(_near, output=output, rows=rows.count)),
                "take it over fewer and larger groups, or with smaller limits",
            ),
            rows.why,
        )  # fmt: skip
        return


def _place(output: Output) -> int:
    return output.recipe.components[0]


def _near(measured: MeasuredRelease, output: Output, rows: int) -> bool:
    return 2 * (expected_error(measured, _place(output)) or 0) < rows


def _rows_of_a_mean(own: _Release) -> Most | None:
    """Rows of an average group; where keys are private, the most in a group that is only just shown."""
    threshold = own.measured.threshold
    if threshold is None:
        return own.sizes.average
    if not own.measured.contribution.limits_rows:
        return own.sizes.per_group
    rows = own.measured.contribution.rows_in_one_group
    most = Most(threshold.threshold * rows, f"groups are shown from {threshold.threshold:,} units on")
    return _smaller(own.sizes.per_group, most)


def _noise_of_mean(measured: MeasuredRelease, output: Output, rows: int) -> tuple[float, float] | None:
    """By how much the noise of its sum moves an average over so many rows, and half the range it can have."""
    mean = formula(output).as_mean
    if mean is None:
        return None
    i, half = mean
    return (expected_error(measured, i) or 0.0) / rows, float(half)


def _is_met(measured: MeasuredRelease, output: Output, rows: int) -> bool:
    noise = _noise_of_mean(measured, output, rows)
    return noise is not None and noise[0] < noise[1]


# --- repairs ---------------------------------------------------------------------------------------------------------


def _enough(own: _Release, output: Output, most: Fraction) -> list[str]:
    """The ε at which the expected error of a column would be no larger than `most`."""
    error = _error(own.measured, output)
    if not most or error is None:
        return []

    def met(measured: MeasuredRelease) -> bool:
        then = _error(measured, output)
        return then is not None and then <= most

    return _enough_for(own, float(Fraction(error) / most), met)


def _enough_for(own: _Release, factor: float, met: Callable[[MeasuredRelease], bool]) -> list[str]:
    """Noise shrinks about as ε grows: the first ε of two digits from there on at which the plan itself says so."""
    guess = float(own.epsilon) * factor
    while guess <= MOST_EPSILON:
        epsilon = _two_digits(guess)
        if epsilon > own.most:
            return ["no ε within the policy's budgets is enough for this query"]
        try:
            if met(own.at(epsilon)):
                return [f"use an ε of {float(epsilon):g} or more for this query"]
        except Rejected:
            return []
        guess = float(epsilon) * 1.1
    return []


def _affordable(policy: Policy) -> float:
    """The largest ε that the account which may spend most can give one query."""

    def epsilon(cap: PrivacyLoss) -> float:
        return math.sqrt(2 * cap.rho) if policy.privacy.accountant == "zcdp" else float(cap.epsilon)

    found = []
    for account in policy.budgets.analysts or (None,):
        caps = policy.caps_for(account)
        each = [*caps.total.values(), *caps.analyst.values(), *([caps.per_query] if caps.per_query else [])]
        found.append(min(map(epsilon, each), default=math.inf))
    return max(found)


def _or(first: list[str], second: str) -> list[str]:
    return [*first, f"or {second}" if first else second]


def _two_digits(x: float) -> Fraction:
    """x, rounded up to two significant digits."""
    step = Fraction(10) ** (math.floor(math.log10(x)) - 1)
    return math.ceil(Fraction(x) / step) * step


# --- words -----------------------------------------------------------------------------------------------------------


def _error(measured: MeasuredRelease, output: Output) -> float | None:
    return output_error(measured, output.recipe)


def _warning(
    own: _Release, code: str, output: Output, message: str, label: str, help: list[str], why: str
) -> Diagnostic:
    level = f"{float(LEVEL * 100):g} %"
    notes = (f"from declared numbers alone: {why}; errors are at {level} and ε {float(own.epsilon):g}",)
    return Diagnostic(code, message, own.source, output.span, label, tuple(help), notes, severity="warning")


def _named(output: Output) -> str:
    return output.label or output.column.name


def _smaller(a: Most | None, b: Most | None) -> Most | None:
    if a is None or b is None:
        return a or b
    return a if a.count <= b.count else b


def _rows(count: int) -> str:
    return "one row" if count == 1 else f"{count:,} rows"


def _amount(x: float | Fraction) -> str:
    shown = float(x)
    if 1e6 <= abs(shown) < 1e15:
        return about(shown)
    whole = 100 <= abs(shown) < 1e6 or (abs(shown) < 100 and shown.is_integer())
    return f"{shown:,.0f}" if whole else f"{shown:.3g}"
