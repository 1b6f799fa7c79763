"""What the noisy marginals say of a number: their least-squares estimate, its variance, and how far it may be off.

The estimate of w over columns Q is Σ_{B ⊆ Q} ⟨W_B, u_B⟩/n(Q), with W_B = w summed over Q∖B and centered, and u_B the
weighted mean over the measured A ⊇ B of marginal A, summed over A∖B and centered (shares.py has the notation). It is
arithmetic over noisy numbers: no privacy rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsql.planner.batch.shares import precision, residual, volume
from dpsql.planner.batch.workload import Marginal, Number, subsets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEAST = 1e-12
"""A smaller variance counts as this."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of each cell of a marginal, in rows. variance: of it. scale: of a discrete Laplace on multiples of
    `grain`, else None: then it is Gaussian, or no wider."""

    variance: float
    scale: float | None = None
    grain: float = 1.0

    def log_mgf(self, s: NDArray[np.float64]) -> NDArray[np.float64]:
        """ln E e^(s·noise) or a bound above it; ∞ where there is none."""
        import numpy as np

        if self.scale is None:
            return np.asarray(s**2 * self.variance / 2)
        decay, steps = math.exp(-self.grain / self.scale), np.abs(s) * self.grain
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = 2 * math.log1p(-decay) - np.log1p(-decay * np.exp(steps)) - np.log1p(-decay * np.exp(-steps))
        return np.where(steps < self.grain / self.scale, found, np.inf)


@dataclass(frozen=True, slots=True)
class Measured:
    """The marginals that are measured, and the noise of each. sizes: of every column, its number of classes."""

    noise: Mapping[Marginal, Noise]
    sizes: Mapping[int, int]

    @property
    def theta(self) -> dict[Marginal, float]:
        """1/variance of each."""
        return {m: 1 / max(n.variance, _LEAST) for m, n in self.noise.items()}

    def coefficients(self, number: Number) -> dict[Marginal, NDArray[np.float64]]:
        """What each cell of each marginal counts for in the estimate."""
        import numpy as np

        theta, found = self.theta, dict[Marginal, "NDArray[np.float64]"]()
        parts = {onto: residual(number.weights, number.columns, onto) for onto in subsets(number.columns)}
        precisions = {onto: precision(onto, theta, self.sizes) for onto in parts}
        own = volume(number.columns, self.sizes)
        for marginal, t in theta.items():
            whole = np.zeros(tuple(self.sizes[uid] for uid in marginal))
            for onto, part in parts.items():
                if set(onto) <= set(marginal):
                    rest = volume(tuple(uid for uid in marginal if uid not in onto), self.sizes)
                    shape = tuple(self.sizes[uid] if uid in onto else 1 for uid in marginal)
                    whole = whole + part.reshape(shape) * (t / precisions[onto] / rest / own)
            found[marginal] = whole
        return found

    def variance(self, number: Number) -> float:
        """Of the estimate."""
        found = self.coefficients(number)
        return sum(float((c**2).sum()) * self.noise[m].variance for m, c in found.items())

    def width(self, number: Number, level: float) -> float:
        """t with P(|error| ≤ t) ≥ level, by Chernoff's bound over all cells: min_s (ln E e^(s·error) + ln(2/β))/s."""
        import numpy as np

        parts = [(c[c != 0], self.noise[m]) for m, c in self.coefficients(number).items()]
        parts = [(c, n) for c, n in parts if c.size and n.variance > _LEAST]
        if not parts:
            return 0.0
        most = min(math.inf if n.scale is None else 1 / (float(np.abs(c).max()) * n.scale) for c, n in parts)
        spread = sum(float((c**2).sum()) * max(n.variance, _LEAST) for c, n in parts)
        tail = math.log(2 / (1 - level))
        start = math.sqrt(2 * tail / spread)

        def bound(s: float) -> float:
            return (sum(float(n.log_mgf(s * c).sum()) for c, n in parts) + tail) / s

        # convex in s: the best of a fine grid below the pole is near enough, and any s gives a valid bound
        tried = [start * 2 ** (k / 8) for k in range(-24, 17)]
        below = [s for s in tried if s < most] + (
            [] if math.isinf(most) else [most * f for f in (0.5, 0.75, 0.9, 0.97)]
        )
        return min(map(bound, below))

    def estimate(self, number: Number, marginals: Mapping[Marginal, NDArray[np.float64]]) -> float:
        """The number. marginals: the noisy cells of each that was measured."""
        return sum(float((c * marginals[m]).sum()) for m, c in self.coefficients(number).items())
