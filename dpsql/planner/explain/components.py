"""A release and its components in words: what is measured, for which groups, and what costs something together."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

from dpsql.core.ir.components import Comoment, Component, LargestChoice, ListChoice, ProductSum, QuantileChoice
from dpsql.core.ir.nodes import BoundContributions, Release, key_sources, keyed_by
from dpsql.core.ir.short_text import expression
from dpsql.core.ir.types import Kind
from dpsql.core.measures.all_measures import rule
from dpsql.core.measures.quantile import cells_of
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.diagnostics.words import number
from dpsql.frontend.aggregates.quantile import ordered
from dpsql.planner.explain.nodes import short
from dpsql.planner.rewrites.rewrite_context import SHOWN_FIRST


def component_name(c: Component, measured: MeasuredRelease, limit_found: bool = True) -> str:
    """What is measured, as a person would write it. limit_found: whether its own limit is more than a stand-in."""
    name = rule(c).name.format(argument=_argument(c), unit=measured.unit)
    if isinstance(c, LargestChoice) and c.pick.of > 1:
        name = f"{name}, pick {c.pick.place + 1} of {c.pick.of}"
    name = name if c.filter is None else f"{name} FILTER ({short(expression(c.filter))})"
    if c.of_unit is not None and limit_found:
        norm = "" if c.of_unit.norm == "l1" or not measured.node.keys else " (root of squares)"
        return f"{name} ≤ {amount(c.of_unit.most * c.worth)} per id{norm}"
    return name if c.per_group is None else f"{name} in [{', '.join(map(amount, c.per_group))}] per id and group"


def chosen_from(c: Component, any_bounds: bool = False) -> str:
    """What one is chosen from, e.g. `the middle of one of 10,001 cells 0.01 wide`.

    any_bounds: the bounds of the values are not found yet.
    """
    if isinstance(c, ListChoice) and c.choices is not None:
        return f"one of {len(c.choices.keys):,} values, {c.choices.origin}"
    assert isinstance(c, QuantileChoice)
    if any_bounds:
        return f"the middle of one of at most {c.cells:,} cells of the bounds that are found"
    return f"the middle of one of {_cells(c)}"


def _cells(c: QuantileChoice) -> str:
    found, kind = cells_of(c), ordered(c)[1]
    if kind is not None:
        width = dt.timedelta(**{"days" if kind is Kind.DATE else "microseconds": float(found.width * c.grid)})
        return f"{len(found):,} cells {width} wide"
    if found.digits:
        return f"{len(found):,} cells, at most {amount(found.width * c.grid)} wide and narrower near 0"
    return f"{len(found):,} cells {amount(found.width * c.grid)} wide"


def _argument(c: Component) -> str:
    """Of a sum what is added up: the argument less the middle of its bounds, or a product less the middle of these."""
    if isinstance(c, QuantileChoice):
        return f"{expression(ordered(c)[0])}, {number(c.p)}"
    arg = "*" if c.arg is None else expression(c.arg)
    if isinstance(c, Comoment):
        return f"COVAR_POP({arg}, {expression(c.times.arg)}) * {c.rows}^2"
    base = _less(arg, c.center * c.grid)
    if not isinstance(c, ProductSum):
        return base
    base = f"({base})" if c.center else base
    product = f"{base}^2"
    if c.times is not None:
        other = _less(expression(c.times.arg), c.times.center * c.times.grid)
        product = f"{base} * ({other})" if c.times.center else f"{base} * {other}"
    return _less(product, c.shift * c.worth)


def _less(what: str, by: Fraction) -> str:
    return f"{what} - {amount(by)}" if by else what


def key_source(node: Release) -> str:
    """Where the group keys of a release come from."""
    sources = key_sources(node)
    if not node.keys:
        return "none, one row"
    if sources is None:
        return "private, above a threshold" + (" (too many are listed)" if keyed_by(node).within else "")
    # Keys that were shown first stand for others.
    sizes = [f" ({len(s.keys)})" if len(s.keys) and s.origin != SHOWN_FIRST else "" for s in sources]
    return " × ".join(f"{s.origin}{size}" for s, size in zip(sources, sizes, strict=True))


def groups_of_a_unit(measured: MeasuredRelease) -> int | None:
    """Most of the shown groups that one unit can be in, by their keys; None where these are private, or rows units."""
    bounding, c = measured.node.input, measured.contribution
    cut = isinstance(bounding, BoundContributions) and not bounding.few_groups
    return None if cut or not measured.node.keys or c.released_groups is None else c.groups


def together(measured: MeasuredRelease) -> list[list[int]]:
    """Numbers of the noisy components that cost the largest of their losses together, where they are several."""
    noisy = ([i for i in parallel if measured.measurements[i].sensitivity.l1] for parallel in measured.parallel_groups)
    return [parallel for parallel in noisy if len(parallel) > 1]


def amount(x: Fraction | int) -> str:
    """A number for reading."""
    return f"{float(x):.6g}"
