"""From exact integers to noisy ones: the only function that holds both, and it returns only the noisy ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from uuid import UUID

from dpsql.answers.store import Answer
from dpsql.budget.ledger import Receipt
from dpsql.compiler.plan import PlannedRelease
from dpsql.engine.base import Engine, guarded
from dpsql.measure.backends import EXACT, Backend
from dpsql.measure.measured import MeasuredRelease
from dpsql.measure.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.plan.components import KeySource
from dpsql.plan.expr import LiteralValue
from dpsql.plan.nodes import key_sources

Key = tuple[LiteralValue, ...]
TOTAL_CAP = 2**100
"""Totals are saturated here; saturating moves no two neighbours further apart (it is 1-Lipschitz)."""


@dataclass(frozen=True, slots=True)
class NoisyRelease:
    """Released numbers: one row per key, one noisy integer per component, in the components' units.

    planned: with the mechanisms that made these very numbers; for stored ones that is not what the plan had.
    """

    planned: PlannedRelease
    keys: tuple[Key, ...]
    values: tuple[tuple[int, ...], ...]

    @property
    def width(self) -> int:
        """How many columns a key has."""
        return len(self.planned.measured.node.keys)


@dataclass(frozen=True, slots=True)
class Given:
    """Stored answers for some components of a release, by their place; with private keys, the keys they are for."""

    answers: Mapping[int, Answer] = field(default_factory=dict)
    keys: tuple[Key, ...] | None = None


def wanted(measured: MeasuredRelease, given: Given) -> tuple[int, ...]:
    """The components for which noise is drawn: neither known to everybody nor given."""
    return tuple(i for i, m in enumerate(measured.measurements) if m.known is None and i not in given.answers)


def measure_release(
    planned: PlannedRelease,
    engine: Engine,
    receipt: Receipt | None,
    salt: int,
    earlier: Mapping[str, str] = MappingProxyType({}),
    given: Given = Given(),
    backend: Backend = EXACT,
) -> NoisyRelease:
    """Fetch a release's exact integers and add the planned noise.

    receipt: proof that the plan's cost is durably charged; None only where every sensitivity is 0.
    salt: the ledger's secret number, which fixes the truncation order.
    earlier: label of a release that this one reads → its noisy rows as a query.
    given: stored answers; no noise is drawn for them, and if nothing else is wanted, nothing is fetched.
    backend: who draws the noise.
    Raises EngineError, whose text never depends on data.
    """
    # Without anything to draw no private row is read, not even for public keys or a sum that is always 0: that the
    # engine fails on some data, or takes its time, would be told for free.
    if not wanted(planned.measured, given):
        return assembled(planned, given)
    if receipt is None:
        raise AssertionError("noise without a receipt")
    # Whatever fails from here on holds exact numbers in its frames, and may have failed because of them.
    return guarded(lambda: assembled(planned, given, _fetch(planned, engine, salt, earlier), backend))


def assembled(
    planned: PlannedRelease,
    given: Given,
    exact: Mapping[Key, list[int]] | None = None,
    backend: Backend = EXACT,
) -> NoisyRelease:
    """The released numbers, of stored answers and of exact ones with noise. exact: not needed where none is wanted."""
    exact = exact or {}
    zeros = [0] * len(planned.measured.node.components)
    keys = _keys(planned, given, exact)
    return noised(planned, given, keys, [exact.get(key, zeros) for key in keys], backend)


def noised(
    planned: PlannedRelease, given: Given, keys: Sequence[Key], exact: Sequence[Sequence[int]], backend: Backend
) -> NoisyRelease:
    """Noise and threshold: the released rows for these keys.

    exact: the integers of all components, one row for each key. Private. The rows do not influence each other, so that
    an audit may draw many releases at once, as one of as many times the keys.
    """
    node, measurements = planned.measured.node, list(planned.measured.measurements)
    columns: list[Sequence[int]] = []
    for i, m in enumerate(measurements):
        if i in given.answers:
            answer = given.answers[i]
            columns.append(answer.values)
            measurements[i] = replace(m, mechanism=made_by(answer.mechanism, answer.parameter))
        elif m.known is not None:  # whatever the data hold: a size that is promised must not be corrected by them
            columns.append(m.mechanism.add_noise([m.known] * len(keys), backend))
        else:
            totals = [max(-TOTAL_CAP, min(TOTAL_CAP, row[i])) for row in exact]
            columns.append(m.mechanism.add_noise(totals, backend))
    threshold = planned.measured.threshold
    if threshold is not None:
        assert node.threshold is not None
        stored = given.answers.get(node.threshold)
        if stored is None:
            shown = threshold.release(columns[node.threshold])
            keys = [k for k, show in zip(keys, shown, strict=True) if show]
            columns = [[v for v, show in zip(column, shown, strict=True) if show] for column in columns]
        elif stored.shown is not None:
            noise = made_by(stored.mechanism, stored.parameter)
            threshold = replace(
                threshold, threshold=stored.shown.threshold, mechanism=noise, r=stored.shown.r, g=stored.shown.g
            )
    measured = replace(planned.measured, measurements=tuple(measurements), threshold=threshold)
    made = replace(planned, measured=measured) if given.answers else planned
    return NoisyRelease(made, tuple(keys), tuple(zip(*columns, strict=True)) if columns else ((),) * len(keys))


def exact_totals(
    planned: PlannedRelease, engine: Engine, salt: int, earlier: Mapping[str, str] = MappingProxyType({})
) -> dict[Key, list[int]]:
    """Every key that may be released → the exact integers of all components.

    Private: for audits of databases that they made up themselves. What is released comes from `measure_release` alone.
    """
    found = _fetch(planned, engine, salt, earlier)
    zeros = [0] * len(planned.measured.node.components)
    return {key: found.get(key, zeros) for key in _keys(planned, Given(), found)}


def _keys(planned: PlannedRelease, given: Given, exact: Mapping[Key, list[int]]) -> list[Key]:
    if given.keys is not None:
        return list(given.keys)
    sources = key_sources(planned.measured.node)
    # Private keys are sorted: the order in which the engine finds groups depends on the data.
    return (
        sorted(exact, key=_sort_key) if sources is None else list(public_keys(sources, len(planned.measured.node.keys)))
    )


def made_by(name: str, parameter: Fraction) -> DiscreteLaplace | DiscreteGaussian:
    """The mechanism of stored noise. Raises ValueError for one that this version does not know."""
    match name:
        case "laplace":
            return DiscreteLaplace(parameter)
        case "gaussian":
            return DiscreteGaussian(parameter)
        case _:
            raise ValueError(f"no noise is called {name!r}")


def _fetch(planned: PlannedRelease, engine: Engine, salt: int, earlier: Mapping[str, str]) -> dict[Key, list[int]]:
    """Key → exact integers of all components. Private."""
    node = planned.measured.node
    width = len(node.keys)
    found: dict[Key, list[int]] = {}
    for statement in planned.statements:
        for row in engine.fetch(statement.salted(salt, earlier)).rows():
            key = tuple(str(v) if isinstance(v, UUID) else v for v in row[:width])
            numbers = found.setdefault(key, [0] * len(node.components))
            for i, value in zip(statement.components, row[width:], strict=True):
                numbers[i] += int(value)  # should two keys ever be equal in Python, neither replaces the other
    deciding = node.threshold
    if deciding is not None:
        # A key without any unit is never a candidate: whether it is seen must not depend on the engine's zero groups.
        return {k: v for k, v in found.items() if v[deciding] > 0}
    return found


def public_keys(sources: Sequence[KeySource], width: int) -> list[Key]:
    """All combinations of the public key lists, in release order; one empty key without grouping."""
    keys = []
    for combination in product(*(list(s.keys) for s in sources)):
        key: list[LiteralValue] = [None] * width
        for source, values in zip(sources, combination, strict=True):
            for position, value in zip(source.positions, values, strict=True):
                key[position] = value
        keys.append(tuple(key))
    return keys


def _sort_key(key: Key) -> tuple[tuple[bool, object], ...]:
    return tuple((v is None, "" if v is None else v) for v in key)
