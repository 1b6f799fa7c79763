"""From exact integers to noisy ones: the only function that holds both, and it returns only the noisy ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from uuid import UUID

from dpsql.budget.ledger import Receipt
from dpsql.compiler.plan import PlannedRelease
from dpsql.engine.base import Engine, guarded
from dpsql.plan.components import KeySource
from dpsql.plan.expr import LiteralValue
from dpsql.plan.nodes import key_sources

Key = tuple[LiteralValue, ...]
TOTAL_CAP = 2**100
"""Totals are saturated here; saturating moves no two neighbours further apart (it is 1-Lipschitz)."""


@dataclass(frozen=True, slots=True)
class NoisyRelease:
    """Released numbers: one row per key, one noisy integer per component, in the components' units."""

    planned: PlannedRelease
    keys: tuple[Key, ...]
    values: tuple[tuple[int, ...], ...]


def measure_release(
    planned: PlannedRelease,
    engine: Engine,
    receipt: Receipt | None,
    salt: int,
    earlier: Mapping[str, str] = MappingProxyType({}),
) -> NoisyRelease:
    """Fetch a release's exact integers and add the planned noise.

    receipt: proof that the plan's cost is durably charged; None only where every sensitivity is 0.
    salt: the ledger's secret number, which fixes the truncation order.
    earlier: label of a release that this one reads → its noisy rows as a query.
    Raises EngineError, whose text never depends on data.
    """
    if receipt is None and any(m.sensitivity.l1 for m in planned.measured.measurements):
        raise AssertionError("noise without a receipt")
    # Whatever fails from here on holds exact numbers in its frames, and may have failed because of them.
    return guarded(lambda: _measured(planned, engine, receipt, salt, earlier))


def _measured(
    planned: PlannedRelease, engine: Engine, receipt: Receipt | None, salt: int, earlier: Mapping[str, str]
) -> NoisyRelease:
    # Without a charge no private row is read, not even for public keys or a sum that is always 0: that the engine fails
    # on some data, or takes its time, would be told for free.
    exact = {} if receipt is None else _fetch(planned, engine, salt, earlier)
    node = planned.measured.node
    sources = key_sources(node)
    # Private keys are sorted: the order in which the engine finds groups depends on the data.
    keys = sorted(exact, key=_sort_key) if sources is None else list(public_keys(sources, len(node.keys)))
    zeros = [0] * len(node.components)
    columns = []
    for i, m in enumerate(planned.measured.measurements):
        totals = [max(-TOTAL_CAP, min(TOTAL_CAP, exact.get(key, zeros)[i])) for key in keys]
        if m.known is not None:  # whatever the data hold: a size that is promised must not be corrected by them
            totals = [m.known] * len(keys)
        columns.append(m.mechanism.add_noise(totals))
    if planned.measured.threshold is not None:
        assert node.threshold is not None
        shown = planned.measured.threshold.release(columns[node.threshold])
        keys = [k for k, show in zip(keys, shown, strict=True) if show]
        columns = [[v for v, show in zip(column, shown, strict=True) if show] for column in columns]
    return NoisyRelease(planned, tuple(keys), tuple(zip(*columns, strict=True)) if columns else ((),) * len(keys))


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
