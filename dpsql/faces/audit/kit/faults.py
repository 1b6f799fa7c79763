"""Faults that are planted, each one line of the trusted core that would break the guarantee."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """old stands in the file once; harness: the one that is expected to find it."""

    name: str
    harness: str
    path: str
    old: str
    new: str
    breaks: str


FAULTS = (
    Fault(
        "laplace-scale-halved",
        "neighbours",
        "dpsql/core/noise/mechanisms/laplace.py",
        "return cls(Fraction(l1) / epsilon)",
        "return cls(Fraction(l1) / (2 * epsilon))",
        "half the noise that is paid for",
    ),
    Fault(
        "laplace-loss-halved",
        "neighbours",
        "dpsql/core/noise/mechanisms/laplace.py",
        "PrivacyLoss(epsilon=Fraction(l1) / self.scale)",
        "PrivacyLoss(epsilon=Fraction(l1) / (2 * self.scale))",
        "a price of half the loss",
    ),
    Fault(
        "weight-ignored",
        "neighbours",
        "dpsql/core/noise/sensitivity.py",
        "one, factor = largest_contribution(component, c), component.weight",
        "one, factor = largest_contribution(component, c), 1",
        "weighted integers move by F times as much",
    ),
    Fault(
        "union-not-adding",
        "neighbours",
        "dpsql/core/analysis/rules/set_operation.py",
        "stability=sums(left.stability, right.stability)",
        "stability={**left.stability, **right.stability}",
        "rows of both branches differ",
    ),
    Fault(
        "distinct-truncation-dropped",
        "neighbours",
        "dpsql/core/printing/shapes/weighted.py",
        "kept_values(d, limit, ",
        "kept_values(d, 10**6, ",
        "an id adds any number of distinct values",
    ),
    Fault(
        "zero-drawn-twice-as-often",
        "streams",
        "dpsql/core/noise/sampler/blocks.py",
        "accepted = self.accept(block, place, source) & ~(minus & (size == 0))",
        "accepted = self.accept(block, place, source)",
        "noise is 0 too often",
    ),
    Fault(
        "gaussian-blocks-too-flat",
        "streams",
        "dpsql/core/noise/sampler/blocks.py",
        "exp_bounds(2 * self.step, unit) if self.power == 2",
        "exp_bounds(self.step, unit) if self.power == 2",
        "another distribution than the one priced",
    ),
    Fault(
        "exact-numbers-shown",
        "replay",
        "dpsql/core/release/noisy.py",
        "else noise(i, own).integers)",
        "else (noise(i, own), own)[1])",
        "numbers are shown without their noise",
    ),
)
