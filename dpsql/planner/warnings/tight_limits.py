"""DP502: limits that, by declared numbers alone, throw away most of what they are put on."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from dpsql.core.analysis.context import Context, Derivation
from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.policy_limits import policy_limits
from dpsql.core.ir.nodes import BoundContributions, Release, key_sources
from dpsql.core.ir.walk import Tagged
from dpsql.core.measures.all_measures import rule
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.planner.rewrites.rewrite_context import ContributionLimits


def discarded(
    release: MeasuredRelease, below: Tagged[Facts], source: Source, ctx: Context, limits: ContributionLimits
) -> Iterator[Diagnostic]:
    """The warnings of one release whose input is `below`. limits: those that the query sets itself."""
    yield from _rows(release, below, source, ctx, limits)


def _rows(
    release: MeasuredRelease, below: Tagged[Facts], source: Source, ctx: Context, limits: ContributionLimits
) -> Iterator[Diagnostic]:
    """Limits of the policy that count fewer than half the rows that a unit may have by a promise; or limits of the
    query, fewer than a quarter of those, or of what the policy's limits count."""
    node, unit = release.node, release.unit
    bounding = node.input
    if not isinstance(bounding, BoundContributions) or all(rule(c).counts == "ids" for c in node.components):
        return
    if bounding.rows is None and bounding.per_group is None:
        return  # each component has a limit of its own, found from noisy numbers
    counted = _counted(bounding)
    promised = below.inputs[0].fact.rows_of_an_id()
    asked = limits.rows is not None or limits.per_group is not None or limits.groups is not None
    if promised is not None and (4 if asked else 2) * counted < promised.value:
        most = int(promised.value)
        yield Diagnostic(
            "DP502", f"of the {most:,} rows that a {unit} may have, at most {counted:,} are counted",
            source, node.span, "most rows of such a unit are left out or scaled down",
            (
                f"custodian: raise max_rows_per_unit, or max_groups_per_unit times max_rows_per_group, to {most:,}",
                f"or promise fewer rows than {most:,} for each {unit}, if that is what the data hold",
            ),
            (f"from declared numbers alone: {most:,} rows are promised or made true below",),
            severity="warning",
        )  # fmt: skip
    elif asked:
        usual = _by_policy(bounding, node, ctx)
        if usual is not None and 4 * counted < usual:
            yield Diagnostic(
                "DP502", f"the limits of this query count at most {counted:,} of the {usual:,} rows per {unit} that "
                "the policy's limits count", source, node.span, "most rows of such a unit are left out or scaled down",
                (f"ask for at least {-(-usual // 4):,} rows per {unit}, or leave the query's limits out",),
                (f"from declared numbers alone: the policy lets {usual:,} rows per {unit} count",),
                severity="warning",
            )  # fmt: skip


def _counted(node: BoundContributions) -> int:
    if node.rows is not None:
        return node.rows
    assert node.per_group is not None and node.groups is not None
    return node.per_group * node.groups


def _by_policy(bounding: BoundContributions, node: Release, ctx: Context) -> int | None:
    """Rows of a unit that the policy's limits would count in the same groups."""
    known = Derivation.begin(ctx)
    derive_once(bounding.input, known)
    own = policy_limits(bounding.input, known)
    if not bounding.keys or (bounding.few_groups and bounding.groups == 1):
        return own.rows if own.rows is not None else own.per_group
    if own.per_group is None or own.groups is None:
        return own.rows
    possible = prod(len(source.keys) for source in key_sources(node) or ())
    return own.per_group * (min(own.groups, possible) if possible and node.threshold is None else own.groups)
