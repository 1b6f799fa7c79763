"""Certified bounds from counts: how often an event happened on each of two neighbouring databases.

*Claim.* If the mechanism keeps P ≤ e^ε·Q + δ for all events, a test here refutes it with probability at most its level.
*Why.* The event is chosen on other runs than it is tested on; both probabilities are then replaced by one-sided
Clopper-Pearson bounds, which are exact for any n, each at half the level. *When it would be false.* If runs were not
independent, or if a test were repeated until it refutes. *Tested by* tests/faces/audit/test_statistics.py (against
scipy and by enumeration), tests/deep/faces/audit/test_audit.py (the twins).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpsql.core.privacy_loss import exact, rho_to_delta
from dpsql.faces.audit.choices import Chosen
from dpsql.faces.audit.curves import Moved, gaussian_rho, own_delta

Samples = NDArray[np.float64]

FALSE_ALARM = 1e-6
"""Probability that an audit of a correct mechanism refutes it, over all its tests together."""

_STEPS = 60
_CANDIDATES = 400
_EPSILONS = tuple(k / 4 for k in range(33))
"""Where curves of Gaussian noise are compared: ε from 0 to 8."""
_NEAR = (0.0, 0.25, 0.5, 1.0)
"""The same for the width of noise, which shows best at small ε."""
_HALVINGS = 14


@dataclass(frozen=True, slots=True)
class Claim:
    """What the compared outputs may lose, and how wide their noise is said to be.

    epsilon: P ≤ e^ε·Q + δ for all events. rho: above 0, the noise is Gaussian, and what is claimed is the curve δ(ε)
    that ρ stands for. moved: the noisy integers and how far apart they are, which say how the noise itself behaves.
    """

    epsilon: float
    rho: float = 0.0
    delta: float = 0.0
    moved: tuple[Moved, ...] = ()

    def charged(self, epsilon: float) -> float:
        """The δ that ρ stands for at this ε."""
        return float(rho_to_delta(exact(self.rho), exact(epsilon))) + self.delta

    def stated(self, epsilon: float, narrower: float = 1.0) -> float:
        """The δ of the stated noise at this ε, were it so many times narrower."""
        return own_delta(self.moved, epsilon, narrower) + self.delta


@dataclass(frozen=True, slots=True)
class AuditedEvent:
    """{statistic ≥ at}, or ≤ if not `above`; `epsilon`: where the curve of Gaussian noise is tested."""

    at: float
    above: bool
    epsilon: float

    def count(self, samples: Samples) -> int:
        """How often it happened."""
        return int((samples >= self.at).sum() if self.above else (samples <= self.at).sum())


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """An event tested: `often` of `runs` on the database where it is likelier, `rarely` on the other.

    bound: the certified lower bound, of ε (Laplace noise), of ρ (Gaussian noise), of δ (keys), or of how many times
    narrower the noise is than stated; None if nothing is certified. claimed: what the plan says of the same.
    """

    event: AuditedEvent
    often: int
    rarely: int
    runs: int
    bound: float | None
    claimed: float
    refuted: bool


# --- binomial tails --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _log_factorials(n: int) -> Samples:
    return np.array([math.lgamma(k + 1) for k in range(n + 1)])


def _log_tail(hits: int, n: int, p: float) -> float:
    """ln P(Binomial(n, p) ≥ hits), for 0 < p < 1 and 0 < hits ≤ n."""
    k = np.arange(hits, n + 1)
    logs = _log_factorials(n)
    terms = logs[n] - logs[k] - logs[n - k] + k * math.log(p) + (n - k) * math.log1p(-p)
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum()))


def lower_bound(hits: int, n: int, level: float) -> float:
    """Clopper-Pearson: the p at which `hits` or more of n have probability `level`; never above the true p but with
    probability `level`.

    By bisection on the exact tail, the lower end taken, less one part in 10⁹ for what floating-point sums lose.
    """
    if hits == 0:
        return 0.0
    low, high, goal = 0.0, hits / n, math.log(level)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle >= 1.0 or middle <= 0.0:
            break
        low, high = (low, middle) if _log_tail(hits, n, middle) > goal else (middle, high)
    return low * (1 - 1e-9)


def upper_bound(hits: int, n: int, level: float) -> float:
    """The same from above."""
    return 1 - lower_bound(n - hits, n, level)


# --- choosing and testing --------------------------------------------------------------------------------------------


def choose(a: Samples, b: Samples, claim: Claim, level: float) -> AuditedEvent:
    """The event whose test is likely to say most about ε or ρ, from runs that are not used for testing.

    a, b: the statistic on either database.
    """
    if claim.rho:
        return _choose_by_excess(a, b, claim, level, _EPSILONS, gaussian_rho)
    best, best_value = AuditedEvent(0.0, True, claim.epsilon), -math.inf
    for above, both, low, high in _ends(a, b, claim, level):
        value = np.log(np.maximum(low, 1e-300) / np.maximum(high, 1e-300))
        at = int(np.argmax(value))
        if value[at] > best_value:
            best, best_value = AuditedEvent(float(both[at]), above, claim.epsilon), float(value[at])
    return best


def choose_for_noise(a: Samples, b: Samples, claim: Claim, level: float) -> AuditedEvent:
    """The event whose test is likely to say most about the width of the noise."""
    return _choose_by_excess(a, b, claim, level, _NEAR, lambda excess, epsilon: excess / claim.stated(epsilon))


def _choose_by_excess(
    a: Samples,
    b: Samples,
    claim: Claim,
    level: float,
    epsilons: Sequence[float],
    value_of: Callable[[float, float], float],
) -> AuditedEvent:
    """At each ε the event with the largest P − e^ε·Q; of these the one of the largest value."""
    best, best_value = AuditedEvent(0.0, True, 0.0), -math.inf
    for above, both, low, high in _ends(a, b, claim, level):
        for epsilon in epsilons:
            excess = low - math.exp(epsilon) * high
            at = int(np.argmax(excess))
            value = value_of(float(excess[at]), epsilon) if excess[at] > 0 else float(excess[at])
            if value > best_value:
                best, best_value = AuditedEvent(float(both[at]), above, epsilon), value
    return best


def _ends(a: Samples, b: Samples, claim: Claim, level: float) -> Iterator[tuple[bool, Samples, Samples, Samples]]:
    """For events from above and from below: where they end, and bounds of both probabilities, the lower one less δ."""
    both = np.unique(np.concatenate([a, b]))
    if len(both) > _CANDIDATES:
        both = both[np.linspace(0, len(both) - 1, _CANDIDATES).astype(int)]
    sorted_a, sorted_b = np.sort(a), np.sort(b)
    for above in (True, False):
        if above:
            often, rarely = (len(s) - np.searchsorted(s, both, side="left") for s in (sorted_a, sorted_b))
        else:
            rarely, often = (np.searchsorted(s, both, side="right") for s in (sorted_a, sorted_b))
        yield above, both, _wilson(often, len(a), level)[0] - claim.delta, _wilson(rarely, len(b), level)[1]


def certify(event: AuditedEvent, a: Samples, b: Samples, claim: Claim, level: float) -> EventOutcome:
    """Test what is charged: one event, at this level, on fresh runs of both databases."""
    often, rarely, low, high = _counted(event, a, b, level)
    if claim.rho:
        excess = low - math.exp(event.epsilon) * high
        refuted = excess > claim.charged(event.epsilon)
        bound = _rho_of(claim, excess - claim.delta, event.epsilon) if excess > claim.delta else None
        return EventOutcome(event, often, rarely, len(a), bound, claim.rho, refuted)
    certified = math.log((low - claim.delta) / high) if low > claim.delta else None
    refuted = certified is not None and certified > claim.epsilon + 1e-9
    return EventOutcome(event, often, rarely, len(a), certified, claim.epsilon, refuted)


def _rho_of(claim: Claim, delta: float, epsilon: float) -> float:
    """The least ρ that allows δ at ε: of Gaussian noise, or, where cells are chosen, of any mechanism."""
    if not any(isinstance(one, Chosen) for one in claim.moved):
        return gaussian_rho(delta, epsilon)
    low, high = 0.0, 100.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if Claim(0.0, middle).charged(epsilon) > delta else (middle, high)
    return low


def certify_noise(event: AuditedEvent, a: Samples, b: Samples, claim: Claim, level: float) -> EventOutcome:
    """Test the width of the noise: by how much it is at least narrower than stated; 1 is as stated."""
    often, rarely, low, high = _counted(event, a, b, level)
    excess = low - math.exp(event.epsilon) * high
    refuted = excess > claim.stated(event.epsilon)
    least, most = 0.0, 16.0
    for _ in range(_HALVINGS if excess > 0 else 0):
        middle = (least + most) / 2
        least, most = (least, middle) if claim.stated(event.epsilon, middle) > excess else (middle, most)
    return EventOutcome(event, often, rarely, len(a), least, 1.0, refuted)


def certify_impossible(happened: int, n: int, delta: float, level: float) -> EventOutcome:
    """Test an event that cannot happen on the other database: its probability may be δ at most."""
    low = lower_bound(happened, n, level)
    return EventOutcome(AuditedEvent(1.0, True, 0.0), happened, 0, n, low, delta, low > delta)


def _counted(event: AuditedEvent, a: Samples, b: Samples, level: float) -> tuple[int, int, float, float]:
    """How often the event happened on either database, and bounds of both probabilities, each at half the level."""
    likely, unlikely = (a, b) if event.above else (b, a)
    often, rarely, n = event.count(likely), event.count(unlikely), len(a)
    return often, rarely, lower_bound(often, n, level / 2), upper_bound(rarely, n, level / 2)


def _wilson(hits: NDArray[np.int64], n: int, level: float) -> tuple[Samples, Samples]:
    """Approximate ends of both intervals (Wilson 1927): good enough to choose by."""
    z = NormalDist().inv_cdf(1 - level / 2)
    p, z2 = hits / n, z * z
    middle, half = p + z2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return (middle - half) / (1 + z2 / n), (middle + half) / (1 + z2 / n)
