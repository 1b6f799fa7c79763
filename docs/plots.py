"""The curves of the guides, from the mechanisms that draw the noise and the formulas that tell its price and error.

Each picture is a function that returns an SVG; `make generate` writes them to docs/images/. None of them draws noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np

from docs.chart import Axis, Chart, Points
from dpsql.accuracy.tails import TermNoise
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.core.privacy_loss import PrivacyLoss, compose, epsilon_to_rho, pure_to_rho, rho_to_epsilon
from dpsql.faces.report import odds as guesses
from dpsql.frontend.aggregates.intervals.mean_intervals import MeanHull

LEVEL = Fraction(95, 100)


def steps(lo: float, hi: float, n: int) -> list[Fraction]:
    """n + 1 numbers from lo to hi in equal ratios, rounded to four digits."""
    return [Fraction(f"{lo * (hi / lo) ** (i / n):.4g}") for i in range(n + 1)]


def share(part: float) -> str:
    """As percent."""
    return f"{100 * part:g} %"


def whole(value: float) -> str:
    """With commas."""
    return f"{value:,.0f}"


def error_of_counts() -> str:
    """The ± of a count as a part of it, over ε: a row for each unit."""
    chart = Chart(
        "How wrong is a count?",
        "Curves over epsilon from 0.01 to 1, for counts of 100, 1,000 and 10,000. The plus-minus in percent of the "
        "count falls as 3 over epsilon: at epsilon 0.3 it is 10, 1 and 0.1 percent.",
        Axis(0.01, 1, (0.01, 0.03, 0.1, 0.3, 1), "ε of the count", log=True),
        Axis(0.0002, 1, (0.001, 0.01, 0.1, 1), "± at 95 %, as a part of the count", log=True, label=share),
    )
    chart.rule([(0.01, 0.1), (1, 0.1)])
    for kind, n, at in (("a", 100, 0.09), ("b", 1_000, 0.09), ("c", 10_000, 0.09)):
        widths = [(e, DiscreteLaplace.calibrate(Fraction(1), e).half_width(LEVEL)) for e in steps(0.01, 1, 100)]
        chart.curve(kind, [(float(e), w / n) for e, w in widths])
        chart.say(at, 3 / at / n, f"of {n:,}", f"t{kind}", (10, -4))
    return chart.svg()


def rows_of_people() -> list[int]:
    """Rows of 1,000 made-up people: most have few, some have hundreds (Pareto, exponent 1.5, from 3 rows on)."""
    return [math.ceil(3 * (1 - (i + 0.5) / 1000) ** (-1 / 1.5)) for i in range(1000)]


LIMIT_EPSILON = Fraction(1, 2)


def missing(limit: int) -> int:
    """What scaling down to `limit` rows takes from a count of their rows: the sum of n - min(n, limit)."""
    return sum(n - min(n, limit) for n in rows_of_people())


def limit_noise(limit: int) -> int:
    """The ± of this count."""
    return DiscreteLaplace.calibrate(Fraction(limit), LIMIT_EPSILON).half_width(LEVEL)


def bias_against_limit() -> str:
    """What a limit cuts, what its noise adds, and both."""
    total = sum(rows_of_people())
    both = {c: missing(c) + limit_noise(c) for c in range(3, 301)}
    best = min(both, key=lambda c: both[c])
    chart = Chart(
        "Which limit for one person?",
        f"Over limits from 3 to 300 rows a person: what the limit cuts falls, the noise grows, their sum is least at "
        f"a limit of {best}, of {total:,} rows of 1,000 people at epsilon 0.5.",
        Axis(3, 300, (3, 10, 30, 100, 300), "max_rows_per_unit", log=True, label=whole),
        Axis(0, 4000, (0, 1000, 2000, 3000, 4000), f"rows, of {total:,} (1,000 people, ε 0.5)", label=whole),
    )
    chart.curve("a", [(c, missing(c)) for c in both])
    chart.curve("b", [(c, limit_noise(c)) for c in both])
    chart.curve("c", list(both.items()))
    chart.dot(best, both[best])
    chart.say(best, both[best], f"least at {best}", "mid", (0, -14))
    chart.say(3, missing(3), "cut: bias", "ta", (5, 40))
    chart.say(40, limit_noise(40), "noise: ±", "tb end", (0, -8))
    chart.say(230, both[230], "both", "tc", (-44, -6))
    return chart.svg()


GAUSS_DELTA = Fraction(1, 10**9)


def spreads(groups: int) -> tuple[float, float]:
    """The standard deviations of Laplace and Gaussian noise at ε = 1, if a unit counts once in so many groups."""
    laplace = DiscreteLaplace.calibrate(Fraction(groups), Fraction(1))
    gaussian = DiscreteGaussian.calibrate(Fraction(groups), epsilon_to_rho(Fraction(1), GAUSS_DELTA))
    return math.sqrt(laplace.variance()), math.sqrt(gaussian.variance())


def laplace_beside_gaussian() -> str:
    """The noise of each of k numbers that one unit moves by one."""
    found = {k: spreads(k) for k in range(1, 61)}
    first = next(k for k, (laplace, gaussian) in found.items() if gaussian < laplace)
    chart = Chart(
        "Laplace or Gaussian?",
        f"Over the number of groups that one unit is in, from 1 to 60, at epsilon 1: the spread of Laplace noise grows "
        f"as the number, that of Gaussian noise as its root; Gaussian is smaller from {first} on.",
        Axis(1, 60, (1, 10, 20, 30, 40, 50, 60), "numbers that one unit moves (groups it is in)"),
        Axis(0, 80, (0, 20, 40, 60, 80), "standard deviation of each number (ε 1; δ 10⁻⁹ for Gaussian)"),
    )
    chart.curve("a", [(k, pair[0]) for k, pair in found.items()])
    chart.curve("b", [(k, pair[1]) for k, pair in found.items()])
    chart.dot(first, found[first][1])
    chart.say(first, found[first][1], f"from {first} on: Gaussian", "", (10, 18))
    chart.say(44, found[44][0], "Laplace", "ta end", (-10, 0))
    chart.say(48, found[48][1], "Gaussian", "tb", (0, 26))
    return chart.svg()


def shapes_of_noise() -> str:
    """The two laws with one standard deviation."""
    sigma = 10
    gaussian = DiscreteGaussian(Fraction(sigma**2))
    laplace = DiscreteLaplace(Fraction(1 / math.acosh(1 + 1 / sigma**2)))  # its variance is 1/(cosh(1/scale) - 1)
    bits = 64

    def law(noise: DiscreteLaplace | DiscreteGaussian) -> Points:
        tails = [float(noise.upper_tail(m, bits)) for m in range(42)]
        half = [a - b for a, b in pairwise(tails)]
        return [(float(z), half[abs(z)]) for z in range(-40, 41)]

    within = [float(1 - 2 * noise.upper_tail(31, bits)) for noise in (laplace, gaussian)]
    chart = Chart(
        "Two kinds of noise, equally large",
        f"Laplace noise has a sharp peak at 0 and long tails, Gaussian noise is a bell; both with standard deviation "
        f"{sigma}. Within three deviations lie {within[0]:.1%} and {within[1]:.1%}.",
        Axis(-40, 40, (-40, -20, 0, 20, 40), "noise that is added"),
        Axis(0, 0.08, (0, 0.02, 0.04, 0.06, 0.08), f"how often (both: standard deviation {sigma})", label=share),
    )
    chart.curve("a", law(laplace))
    chart.curve("b", law(gaussian))
    chart.say(3, 0.06, "Laplace: often nearer,", "ta", (4, -6))
    chart.say(3, 0.06, "sometimes far away", "ta", (4, 14))
    chart.say(8, 0.036, "Gaussian: seldom far", "tb")
    return chart.svg()


def average_half_width(rows: int, epsilon: Fraction) -> float:
    """The usual ± of an average of values in [0, 100], true mean 40, one row for each unit: half of ε for its sum, half
    for its count, whose noise is left out of where the interval stands."""
    center, mean = 50, 40
    parts = (
        DiscreteLaplace.calibrate(Fraction(center), epsilon / 2),
        DiscreteLaplace.calibrate(Fraction(1), epsilon / 2),
    )
    noises = (TermNoise(float(parts[0].scale), 0.0, 1.0), TermNoise(float(parts[1].scale), 0.0, 1.0))
    hull = MeanHull(noises, (-50.0, 50.0), float(1 - LEVEL))
    lower, upper = hull(np.array([float((mean - center) * rows)]), np.array([float(rows)]))
    return max(center + float(upper[0]) - mean, mean - center - float(lower[0]))


def average_against_group() -> str:
    """The ± of an average over the size of its group."""
    chart = Chart(
        "How wrong is an average?",
        "Curves over group sizes from 10 to 100,000 rows for epsilon 0.1, 0.5 and 2: the plus-minus of an average of "
        "values in [0, 100] spans nearly the whole range in small groups, and falls as one over the rows beyond.",
        Axis(10, 100_000, (10, 100, 1_000, 10_000, 100_000), "rows in the group", log=True, label=whole),
        Axis(0.01, 100, (0.01, 0.1, 1, 10, 100), "± of an AVG of values in [0, 100], at 95 %", log=True),
    )
    for kind, epsilon, at in (("a", "0.1", 9_000), ("b", "0.5", 1_800), ("c", "2", 130)):
        sizes = [round(float(n)) for n in steps(10, 100_000, 60)]
        points = [(n, average_half_width(n, Fraction(epsilon))) for n in sizes]
        chart.curve(kind, points)
        chart.say(
            at,
            average_half_width(at, Fraction(epsilon)),
            f"ε {epsilon}",
            f"t{kind}",
            (8, -6) if kind != "c" else (-12, 24),
        )
    return chart.svg()


WEEKS = 13
QUARTER_DELTA = Fraction(1, 10**6)
WEEK = [Fraction("0.05")] * 4 + [Fraction("0.02")] * 5
"""The ε of a week's questions: a report of four counts, and five of an analyst's own."""
READERS = 5
"""How many people open the report."""


def spent_by(week: int) -> tuple[float, float, float]:
    """(each reader pays anew, stored answers are given again, the same under zCDP), as ε after so many weeks."""
    once = [PrivacyLoss(epsilon=e) for e in WEEK]
    anew = compose([*once, *(once[:4] * (READERS - 1))] * week)
    rho = compose([PrivacyLoss(rho=pure_to_rho(e)) for e in WEEK] * week).rho
    return float(anew.epsilon), float(compose(once * week).epsilon), float(rho_to_epsilon(rho, QUARTER_DELTA))


def budget_over_a_quarter() -> str:
    """What a weekly report and some questions use up."""
    cap = 4
    chart = Chart(
        "Where does a quarter's budget go?",
        f"Over {WEEKS} weeks: if each of {READERS} readers paid for the weekly report, epsilon {cap} would be "
        "used up in the fourth week; with answers given again it lasts the quarter; under zCDP half of it is left.",
        Axis(0, WEEKS, (0, 2, 4, 6, 8, 10, 12), "weeks"),
        Axis(0, 5, (0, 1, 2, 3, 4, 5), "ε spent (zcdp: at δ 10⁻⁶)"),
    )
    chart.rule([(0, cap), (WEEKS, cap)])
    chart.say(WEEKS, cap, f"budget: ε {cap}", "dim end", (-6, -8))
    for number, kind in enumerate("bac"):
        chart.curve(kind, [(0.0, 0.0)] + [(float(w), spent_by(w)[number]) for w in range(1, WEEKS + 1)])
    chart.say(4, spent_by(4)[0], f"each of {READERS} readers pays anew", "tb", (8, -2))
    chart.say(10, spent_by(10)[1], "answers given again", "ta end", (-14, -4))
    chart.say(WEEKS, spent_by(WEEKS)[2], "given again, accountant: zcdp", "tc end", (-6, 60))
    return chart.svg()


def odds() -> str:
    """A table: how likely a guess can become by answers of ε in all, as `dpsql policy report` counts it."""
    apart = guesses.steps("add_remove")
    cases = [(p, apart) for p in (0.001, 0.01, 0.1, 0.5)] + [(p, 1) for p in (0.01, 0.5)]
    names = [f"{'a property' if step == apart else 'in the data'}: before {share(p)}" for p, step in cases]
    lines = ["| total ε | " + " | ".join(names) + " |", "|---|" + "--:|" * len(cases)]
    for epsilon in ("0.1", "0.5", "1", "2", "5", "10"):
        after = (guesses.afterwards(p, Fraction(epsilon), step) for p, step in cases)
        lines.append(f"| {epsilon} | " + " | ".join(f"{math.ceil(p * 1000) / 10:g} %" for p in after) + " |")
    return "\n".join(lines)


PICTURES: dict[str, Callable[[], str]] = {
    "docs/images/error-of-counts.svg": error_of_counts,
    "docs/images/bias-against-limit.svg": bias_against_limit,
    "docs/images/laplace-beside-gaussian.svg": laplace_beside_gaussian,
    "docs/images/shapes-of-noise.svg": shapes_of_noise,
    "docs/images/average-against-group.svg": average_against_group,
    "docs/images/budget-over-a-quarter.svg": budget_over_a_quarter,
}
