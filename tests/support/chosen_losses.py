"""What is chosen on two databases, by the scores that statements give: how far apart the chances of any outcome are.

Sums are decimals of 50 digits; exact rationals where e^-η is taken for ½.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from dpsql.core.ir.nodes import key_sources
from dpsql.core.measures.all_measures import rule
from dpsql.core.release import noisy
from dpsql.core.release.drawing import EngineAsk
from dpsql.core.release.histograms import Histograms
from dpsql.core.release.planned import PlannedRelease
from tests.support.neighbour_oracle import SALT
from tests.support.random_databases import Store

cached = lru_cache(maxsize=2**17)
DIGITS = Context(prec=50)
Runs = tuple[tuple[int, int, int], ...]
"""Of one group: first cell, number of cells, score."""
Database = dict[noisy.Key, list[Runs]]


def decimal(x: Fraction) -> Decimal:
    return DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))


def histograms_of(planned: PlannedRelease, store: Store) -> dict[noisy.Key, list[Runs]]:
    """Key → of each quantile or mode the runs of its cells, for exactly the keys that may be released."""
    found = noisy._fetch(planned, EngineAsk(store, SALT))
    sources = key_sources(planned.measured.node)
    keys = found.keys if sources is None else noisy.public_keys(sources, len(planned.measured.node.keys))
    shown: dict[noisy.Key, list[Runs]] = {key: [] for key in keys}
    for m, column in zip(planned.measured.measurements, found.of(keys), strict=True):
        if not rule(m.component).chosen:
            continue
        assert isinstance(column, Histograms)
        for i, key in enumerate(keys):
            shown[key].append(tuple(zip(*column.scored(i, m.component), strict=True)))
    return shown


@cached
def cut(a: Runs, b: Runs) -> tuple[tuple[int, int, int], ...]:
    """How many cells have this score in a and this one in b, for the common cuts of both."""
    found: dict[tuple[int, int], int] = {}
    i = j = at = 0
    while i < len(a) and j < len(b):
        ends = a[i][0] + a[i][1], b[j][0] + b[j][1]
        scores = a[i][2], b[j][2]
        found[scores] = found.get(scores, 0) + min(ends) - at
        at = min(ends)
        i, j = i + (ends[0] == at), j + (ends[1] == at)
    assert (i, j) == (len(a), len(b)), "all cells of both"
    return tuple((count, s, t) for (s, t), count in found.items())


@cached
def log_sum(runs: Runs, eta: Fraction) -> Decimal:
    """ln Σ e^(-η·score)."""
    e = DIGITS.divide(Decimal(-eta.numerator), Decimal(eta.denominator))
    total = Decimal(0)
    for _, count, score in runs:
        total = DIGITS.add(total, DIGITS.multiply(Decimal(count), DIGITS.exp(DIGITS.multiply(e, Decimal(score)))))
    return DIGITS.ln(total)


@cached
def loss_of_group(a: Runs, b: Runs, eta: Fraction) -> Decimal:
    """The largest ln P_a(cell)/P_b(cell)."""
    furthest = max(t - s for _, s, t in cut(a, b))
    own = DIGITS.divide(Decimal(eta.numerator * furthest), Decimal(eta.denominator))
    return DIGITS.add(own, DIGITS.subtract(log_sum(b, eta), log_sum(a, eta)))


@cached
def renyi_of_group(a: Runs, b: Runs, eta: Fraction, order: float) -> float:
    """The Rényi divergence of a from b."""
    e, of_a, of_b = float(eta), float(log_sum(a, eta)), float(log_sum(b, eta))
    terms = (count * math.exp(order * (-e * s - of_a) + (1 - order) * (-e * t - of_b)) for count, s, t in cut(a, b))
    return math.log(math.fsum(terms)) / (order - 1)


def changed(a: Database, b: Database, i: int) -> list[tuple[Runs, Runs]]:
    """Runs of the groups that changed. A group that only one of both has is shown with probability δ at most."""
    return [(a[key][i], b[key][i]) for key in a if key in b and a[key][i] != b[key][i]]
