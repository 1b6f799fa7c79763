"""MWEM and PMW-Bypass, as their papers have them: contestants of `dashboards.py`, in floating point, not for use.

Both keep a histogram of all cells that adds up to the number of rows, and correct it by multiplying the cells of one
query at a time. They are granted what they need and a custodian would have to pay for: the exact number of rows, as if
it were public, and the best of several settings, chosen after looking at the errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.dashboard_sets import Array, Question, Table

_FAILS = 0.05
"""PMW-Bypass: the probability at which an answer may be off by more than its target."""


@dataclass(frozen=True, slots=True)
class Price:
    """What all answers may cost together: an ε, or a ρ of zCDP."""

    amount: float
    gaussian: bool

    def part(self, share: float) -> float:
        """The ε of a pure step with this share of the price: in zCDP an ε costs ε²/2 (Bun and Steinke 2016)."""
        return math.sqrt(2 * self.amount * share) if self.gaussian else self.amount * share

    def choice(self, share: float) -> float:
        """The ε of an exponential mechanism: in zCDP it costs ε²/8 (Cesar and Rogers 2021)."""
        return math.sqrt(8 * self.amount * share) if self.gaussian else self.amount * share

    def deviation(self, share: float) -> float:
        """Of one noisy count with this share."""
        return math.sqrt(1 / (2 * self.amount * share)) if self.gaussian else math.sqrt(2) / (self.amount * share)

    def noise(self, share: float, rng: np.random.Generator) -> float:
        """Of one count."""
        wide = self.deviation(share)
        return float(rng.normal(0, wide) if self.gaussian else rng.laplace(0, wide / math.sqrt(2)))


@dataclass
class Histogram:
    """Cells that add up to `rows`. updates: how often each was corrected."""

    sizes: tuple[int, ...]
    rows: float
    cells: Array = field(init=False)
    total: float = field(init=False)

    def __post_init__(self) -> None:
        self.cells = np.full(self.sizes, self.rows / math.prod(self.sizes))
        self.total = self.rows

    def part(self, question: Question) -> tuple[Array, ...]:
        """Where the cells of a query are."""
        every = dict(zip(question.columns, question.chosen, strict=True))
        return np.ix_(*(every.get(i, range(n)) for i, n in enumerate(self.sizes)))  # type: ignore[arg-type, return-value]

    def count(self, part: tuple[Array, ...]) -> float:
        """What it says of a query."""
        return float(self.cells[part].sum()) * self.rows / self.total  # type: ignore[index]

    def correct(self, part: tuple[Array, ...], by: float) -> None:
        """Multiply the cells of a query by eᵇʸ; the sum stays."""
        before = float(self.cells[part].sum())  # type: ignore[index]
        self.cells[part] *= math.exp(by)  # type: ignore[index]
        self.total += before * math.expm1(by)


def mwem(
    table: Table, asked: Sequence[Question], truth: Array, price: Price, rounds: int, rng: np.random.Generator
) -> Array:
    """Answers of the last histogram (Hardt, Ligett and McSherry 2012), with ten passes over all that was measured.

    Each round has an equal part of the price, half to choose the query that is answered worst, half to measure it.
    """
    histogram, share = Histogram(table.sizes, table.cells.sum()), 1 / (2 * rounds)
    answers = Answers(table, asked)
    measured: list[tuple[tuple[Array, ...], float]] = []
    left = np.ones(len(asked), dtype=bool)
    for _ in range(min(rounds, len(asked))):
        score = np.abs(truth - answers(histogram.cells * histogram.rows / histogram.total))
        noisy = price.choice(share) * score / 2 + rng.gumbel(size=len(asked))
        worst = int(np.argmax(np.where(left, noisy, -np.inf)))
        left[worst] = False
        measured.append((histogram.part(asked[worst]), truth[worst] + price.noise(share, rng)))
        for _ in range(10):
            for part, seen in measured:
                histogram.correct(part, (seen - histogram.count(part)) / (2 * histogram.rows))
    return answers(histogram.cells * histogram.rows / histogram.total)


class Answers:
    """The exact answers of all queries from the cells of a table."""

    def __init__(self, table: Table, asked: Sequence[Question]) -> None:
        self._table, self._of = table, dict[tuple[int, ...], tuple[list[int], Array]]()
        places: dict[tuple[int, ...], list[int]] = {}
        for i, question in enumerate(asked):
            places.setdefault(question.columns, []).append(i)
        for columns, those in places.items():
            rows = [asked[i].number(table.sizes).weights.ravel() for i in those]
            self._of[columns] = those, np.array(rows)
        self._count = len(asked)

    def __call__(self, cells: Array) -> Array:
        found = np.zeros(self._count)
        for columns, (those, weights) in self._of.items():
            found[those] = weights @ self._table.marginal(columns, cells).ravel()
        return found


@dataclass(frozen=True, slots=True)
class Bypass:
    """Settings of PMW-Bypass.

    share: of the price that one noisy count costs, which is what the paper's target of accuracy stands for. rate: the
    exponent of a correction. ready: how often each cell of a query was corrected before the histogram is asked.
    """

    share: float
    rate: float
    ready: int
    margin: float = 0.05
    step: int = 5


def pmw_bypass(
    table: Table, asked: Sequence[Question], truth: Array, price: Price, how: Bypass, rng: np.random.Generator
) -> tuple[Array, Mapping[str, int]]:
    """Answers in turn (Kostopoulou et al. 2023, algorithm 1), and how many came from where.

    A query whose cells were not corrected often enough bypasses the histogram: a Laplace count, by which the histogram
    is corrected if it is off by a margin of the target. Else the histogram answers, where a sparse vector says that it
    is off by less than half of the target; where it says no, a Laplace count does, and the vector is to be paid anew:
    with that count three times the ε of a count. Repeated queries are free. When the price is spent the histogram
    answers all others.
    """
    histogram = Histogram(table.sizes, table.cells.sum())
    updates, needed = np.zeros(table.sizes, np.int32), np.full(table.sizes, how.ready, np.int32)
    scale = 1 / price.part(how.share)
    target = 4 * math.log(1 / _FAILS) * scale
    left, threshold = 1.0, None
    known: dict[Question, float] = {}
    came = {"bypass": 0, "histogram": 0, "corrected": 0, "unpaid": 0}
    vector = 5 * how.share if price.gaussian else 3 * how.share  # a step of 2ε and one of ε
    found = []
    for question, count in zip(asked, truth, strict=True):
        if question in known:
            found.append(known[question])
            continue
        part = histogram.part(question)
        guess = histogram.count(part)
        ready = bool((updates[part] >= needed[part]).all())
        cost = (vector if threshold is None else 0.0) if ready else how.share
        if cost > left + 1e-9:
            came["unpaid"] += 1
            found.append(guess)
            continue
        left -= cost
        if not ready:
            answer, off = count + rng.laplace(0, scale), how.margin * target
            came["bypass"] += 1
            if abs(answer - guess) > off:
                histogram.correct(part, math.copysign(how.rate, answer - guess))
                updates[part] += 1
        else:
            if threshold is None:
                threshold = target / 2 + rng.laplace(0, scale)
            if abs(count - guess) + rng.laplace(0, scale) < threshold:
                answer = guess
                came["histogram"] += 1
            else:
                answer, threshold = count + rng.laplace(0, scale), None
                came["corrected"] += 1
                histogram.correct(part, math.copysign(how.rate, answer - guess))
                updates[part] += 1
                needed[part] = int(updates[part].min()) + how.step
        known[question] = answer
        found.append(answer)
    return np.array(found), came
