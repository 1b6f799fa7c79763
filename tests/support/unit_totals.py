"""Plans whose components limit by themselves what one id adds, and what their integers must be.

The planner makes no such plan of a text without a search, so the release of an ordinary plan is rebuilt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isqrt

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, ValueSum
from dpsql.core.ir.contributions import SATURATED, UnitTotal
from dpsql.core.ir.expressions import Call
from dpsql.core.ir.nodes import BoundContributions, Release, keyed_by
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.walk import Tagged
from dpsql.core.noise.calibration import LossRequest, measure
from dpsql.core.policy.tables import DEFAULT_RESOLUTION
from dpsql.core.printing.expressions import TableNames
from dpsql.core.printing.shapes.choose import statements
from dpsql.core.release.planned import PlannedRelease
from dpsql.planner.plan import Plan
from dpsql.planner.rewrites.bounds.choose_grids import gridded, in_units
from dpsql.policy.policy import Policy
from dpsql.spelling.duckdb_functions import DUCKDB

Totals = Mapping[str | None, int]
"""Group → the total of one id in it, in integer units; every group in which the id has a row."""


def limited(
    plan: Plan,
    policy: Policy,
    tables: TableNames,
    limits: Callable[[Component], UnitTotal | None],
    *,
    bare: bool = False,
    groups: int | None = None,
    few: bool = False,
) -> PlannedRelease:
    """The first release of a plan with limits of its components' own.

    bare: sums are of unclipped arguments. groups: only so many groups of an id are kept, or `few`: possible.
    """
    ctx = Context(policy, PublicFacts())
    release = next(t.node for t in plan.tree.walk() if isinstance(t.node, Release))
    assert isinstance(release.input, BoundContributions)
    keyed = keyed_by(release)
    bounding = BoundContributions(
        keyed, release.input.id, release.keys, groups=groups, truncate_groups=groups is not None and not few,
        few_groups=few,
    )  # fmt: skip
    rows = derive(bounding, ctx)
    facts = rows.fact
    plain = (_plain(c, bare, limits(c)) for c in release.components)
    own = tuple(in_units(c, facts.value(c.arg), DEFAULT_RESOLUTION) if isinstance(c, ValueSum) else c for c in plain)
    node = gridded(replace(release, input=bounding, components=own), rows)
    return planned(derive(node, ctx), tables)


def planned(tagged: Tagged[Facts], tables: TableNames) -> PlannedRelease:
    """A release of a finished tree with its statements, measured at an ε at which every limit has a price."""
    (measured,) = measure([tagged], LossRequest(Fraction(2**20)))
    return PlannedRelease(measured, statements(tagged, DUCKDB, tables, {}), "r0")


def _plain(c: Component, bare: bool, limit: UnitTotal | None) -> Component:
    arg = c.arg.args[0] if bare and isinstance(c.arg, Call) and c.arg.function == "clip" else c.arg
    plain = type(c)(arg, c.filter)
    return plain if limit is None else replace(plain, contribution=limit)  # type: ignore[call-arg]


def toward_zero(a: int, b: int) -> int:
    """The quotient of an integer and a positive one."""
    return a // b if a >= 0 else -(-a // b)


def parts(c: Component, totals: Totals, groups: int, one_group: bool = False) -> dict[str | None, int]:
    """What one id adds to each group, by the definition: exact integers, of which Python has any number of digits.

    groups: in which an id can be.
    """
    assert c.of_unit is not None
    most, F = c.of_unit.most, c.weight
    if one_group:
        return {g: max(-most, min(most, S)) for g, S in totals.items()}
    end = SATURATED if c.of_unit.norm == "l1" else 2 ** min(62, (126 - (groups - 1).bit_length()) // 2)
    held = {g: max(-end, min(end, S)) for g, S in totals.items()}
    if c.of_unit.norm == "l1":
        size = sum(map(abs, held.values()))
    else:
        squares = sum(S * S for S in held.values())
        size = isqrt(squares - 1) + 1 if squares else 0
    return {g: toward_zero(F * S * most, max(size, most)) for g, S in held.items()}


def grid_integer(c: Component, value: Fraction | None) -> int:
    """What a row adds to a sum: its value in grid units, halves away from zero, clipped; 0 for NULL."""
    if value is None:
        return 0
    units = abs(value / c.grid) + Fraction(1, 2)
    return max(c.ends[0], min(c.ends[1], int(units) * (1 if value > 0 else -1)))


def added_up(each: Sequence[Mapping[str | None, int]]) -> dict[str | None, int]:
    """The released integers of several ids."""
    found: dict[str | None, int] = defaultdict(int)
    for one in each:
        for group, part in one.items():
            found[group] += part
    return dict(found)


__all__ = ["added_up", "grid_integer", "limited", "parts", "planned", "toward_zero"]
