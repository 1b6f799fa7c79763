"""Contribution bounding: choose how much of one id counts, and put the bounding node under the release.

The limits are C rows in all, M rows in each group, and G groups. Each is the smallest that the query or a private table
whose rows are counted gives. Which of them is used:

- without groups, or where the group is a function of the id: C, else M;
- otherwise M and G if both are given, else C; of all three those that need less noise (`_noise`);
- none, and no node, where the tree already proves that an id has few enough rows.

Where an id can be in no more public groups than a limit lets count, nothing is scaled down for their number. Where it
only seems so, because keys are computed from functions of the id, an id counts for less if it is in more; of private
groups it keeps that many.

Bounds of a single aggregate (`contribution_bounds_per_group`) take the place of M for its own component, never above
what M or C allow. What a query asks for is enforced or refused. Its C stands beside the policy's M and G if it is at
most both. Its G stands beside C: rows in any further groups are left out.

Example:
    >>> before_after(bound_contributions, "SELECT COUNT(*) FROM visits")
    scan visits  →  bound contributions of each patient: 12 rows
                    └─ scan visits
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import sqrt

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Columns, Facts
from dpsql.core.analysis.policy_limits import PolicyLimits, policy_limits
from dpsql.core.analysis.public_groups import groups_of_an_id
from dpsql.core.analysis.rules.release import no_limit, one_row_per_group, proven_rows
from dpsql.core.ir.components import Component, RowCount, ValueSum
from dpsql.core.ir.contributions import PerGroup
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import BoundContributions, GroupKeys, Node, Release, output_columns
from dpsql.core.ir.walk import Tagged, transform
from dpsql.core.measures.all_measures import rule
from dpsql.core.policy.units import Accountant
from dpsql.core.value_classes import replace
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.planner.distinct_values import functions_of_the_id, most_rows_of_an_id
from dpsql.planner.promised_rows import promised_rows
from dpsql.planner.rewrites.rewrite_context import ContributionLimits, RewriteContext
from dpsql.planner.searches.limits_to_search import WORTH_SEARCHING
from dpsql.planner.searches.searched_limits import Declared, SearchedLimits


def bound_contributions(root: Node, ctx: RewriteContext) -> Node:
    """Insert the bounding node under every release of an id unit that needs one."""

    def change(node: Release) -> Node:
        return bounded(node, ctx)

    return transform(root, Release, change)


def bounded(node: Release, ctx: RewriteContext) -> Release:
    """One release with its bounding node, if it needs one. Raises Rejected."""
    below = derive_once(node.input, ctx.analysis)
    facts = below.fact
    own = node.outputs[0] if node.outputs and any(c.per_group for c in node.components) else None
    if not facts.ids:
        if own is not None:
            raise reject(
                "DP014", "rows are the privacy unit here, so no unit has a total per group to bound", span=own.span,
                help=["use contribution_bounds_per_row"],
            )  # fmt: skip
        return node
    assert isinstance(node.input, GroupKeys)
    seem = functions_of_the_id(below)
    limits = _limits(node, node.input, below, seem, ctx)
    searched = _searched(node, facts, seem, limits, ctx)
    if searched is not None:
        all_open = limits.none_declared and len(searched.open_sums(node)) == len(node.components)
        if all_open or _are_searched(node, facts, limits, searched, ctx):
            return searched.bounded(node)
    bounding = _choose(node, node.input, facts, seem, limits, ctx)
    if searched is not None and searched.open_sums(node):
        return searched.sums_bounded(node, bounding, limits.proven)
    if bounding is None:
        return node
    most = bounding.rows if bounding.rows is not None else bounding.per_group if limits.for_all else None
    withheld = ctx.searching is not None and ctx.searching.withheld and searched is None
    if ctx.searching is not None and withheld and most is not None and most >= WORTH_SEARCHING:
        ctx.searching.kept = True
    bounding = _with_spare_limits(bounding, limits, seem)
    return replace(node, input=bounding, components=tuple(_within(c, most, facts) for c in node.components))


def _with_spare_limits(b: BoundContributions, limits: _Limits, seem: Columns) -> BoundContributions:
    """Marked where no id seems to be above a limit, so that nobody is told that something is missing."""
    assert isinstance(b.input, GroupKeys)
    most, limit = (limits.few_in_one, b.per_group) if b.rows is None else (limits.few, b.rows)
    groups = None if b.groups is None or b.few_groups else groups_of_an_id(b.input, seem)
    spare_groups = b.groups is not None and any(n is not None and n <= b.groups for n in (limits.few, groups))
    return replace(b, spare_rows=most is not None and limit is not None and most <= limit, spare_groups=spare_groups)


def _within(c: Component, most: int | None, facts: Facts) -> Component:
    """The component's own bounds per group, not above what `most` rows of an id can give."""
    if c.per_group is None or most is None:
        return c
    low, high = c.per_group
    if isinstance(c, RowCount):
        return replace(c, contribution=PerGroup((low, min(high, Fraction(most)))))
    assert isinstance(c, ValueSum)
    ends = facts.value(c.arg).interval
    assert ends.lo is not None and ends.hi is not None
    least, largest = Fraction(min(0, most * ends.lo)), Fraction(max(0, most * ends.hi))
    return replace(c, contribution=PerGroup((max(low, least), min(high, largest))))


def _needs_limits(components: Sequence[Component]) -> bool:
    """Whether a component needs the limits of the release: it has no bounds of its own, and counts more than ids."""
    return any(c.per_group is None and rule(c).counts != "ids" for c in components)


def _choose(
    node: Release, keyed: GroupKeys, facts: Facts, seem: Columns, limits: _Limits, ctx: RewriteContext
) -> BoundContributions | None:
    """seem: columns that seem to be functions of the id."""
    proven, total, per_group, groups = limits.proven, limits.rows, limits.per_group, limits.groups
    id_column = _id_column(facts, keyed)
    keys = tuple(i.column for i in keyed.items)
    private_keys = keyed.sources is None
    key_columns = frozenset(k.uid for k in keys)
    one_group = key_columns <= seem
    # A limit C of the query alone takes nothing away from the policy's M and G.
    only_asked = ctx.limits.rows is not None and _declared(keyed, replace(ctx, limits=ContributionLimits()))[0] is None
    possible, sure = groups_of_an_id(keyed, seem), groups_of_an_id(keyed, facts.by_id)
    proven_few = sure == possible
    if not one_group and per_group is not None and groups is not None:
        if total is not None and not only_asked and ctx.limits.per_group is None:
            few, most = min(groups, possible or groups), min(total, (groups if private_keys else possible) or total)
            noise = partial(_noise, node.components, ctx.analysis.policy.privacy.accountant)
            if noise(most, total, total**2) < noise(few, per_group * few, per_group**2 * few):
                per_group = None
        asked = ctx.limits.rows
        if per_group is not None and asked is not None and asked < per_group * groups:
            if asked > min(per_group, groups):
                raise _unreachable(node, asked, per_group, groups)
            per_group = groups = None
    if only_asked and total is not None and per_group is not None:
        if one_group:
            total = min(total, per_group)
        elif groups is None and total > per_group:
            raise _unreachable(node, total, per_group, None)
    if private_keys and not one_group:
        # An id must not decide how many keys it touches: keep G groups, or as many as it may have rows.
        if proven is not None and (groups is None or proven <= groups) and (total is None or proven <= total):
            return None
        if per_group is not None and groups is not None:
            return BoundContributions(keyed, id_column, keys, None, per_group, groups, truncate_groups=True)
        rows = total if total is not None else proven
        if rows is None:
            raise _unlimited(node, facts, ctx)
        return BoundContributions(keyed, id_column, keys, rows, None, min(rows, groups or rows), truncate_groups=True)
    if one_group:
        rows = total if total is not None else per_group
        if proven is not None and (rows is None or proven <= rows):
            if proven_few or proven == 1:
                return None
            rows = proven
        if rows is None and all(rule(c).counts == "ids" for c in node.components):
            rows = 1  # an id counts once, however many rows it has
        if rows is None:
            raise _unlimited(node, facts, ctx)
        cut = private_keys and not proven_few
        return BoundContributions(keyed, id_column, keys, None, rows, 1, truncate_groups=cut, few_groups=proven_few)
    asked = groups if only_asked else ctx.limits.groups
    few_enough = asked is None or any(n is not None and n <= asked for n in (proven, sure))
    alike = proven_few or possible is None or (proven is not None and possible >= proven)
    if per_group is not None and groups is not None:
        if proven is None or proven > per_group * groups or not few_enough:
            few = possible is not None and possible <= groups
            counted = possible if few else groups
            return BoundContributions(keyed, id_column, keys, None, per_group, counted, few_groups=few and proven_few)
        if alike:
            return None
        total = proven
    if proven is not None and (total is None or proven <= total):
        if few_enough and alike:
            return None
        total = proven
    if total is None:
        raise _unlimited(node, facts, ctx)
    if not few_enough and asked is not None and asked < total:
        return BoundContributions(keyed, id_column, keys, total, None, asked, truncate_groups=True)
    if possible is not None and possible <= total:
        return BoundContributions(
            keyed, id_column, keys, total, None, possible, truncate_groups=not proven_few, few_groups=proven_few
        )
    return BoundContributions(keyed, id_column, keys, total)


def _noise(components: Sequence[Component], accountant: Accountant, groups: int, l1: int, l2_squared: int) -> float:
    """How much noise an id needs that is in at most so many groups, and moves what counts rows by l1, and √l2_squared.

    Standard deviations of all components together, at ε = 1: Laplace's, and the Gaussian one's at δ = 10⁻⁶. Any choice
    by it is private, since it is made of declared numbers alone.
    """
    ids = sum(rule(c).counts == "ids" for c in components)
    others = len(components) - ids
    laplace, gaussian = sqrt(2) * (ids * groups + others * l1), 4.2 * sqrt(ids * groups + others * l2_squared)
    return {"pure_dp": laplace, "zcdp": gaussian, "approx_dp": min(laplace, gaussian)}[accountant]


def _unreachable(node: Release, asked: int, per_group: int, groups: int | None) -> Rejected:
    beside = f"{per_group} rows in each {'group' if groups is None else f'of {groups} groups'}"
    return reject(
        "DP014", f"at most {asked} rows in all cannot be enforced beside {beside}",
        span=node.span, help=[f"use at most {min(per_group, groups or per_group)}, or max_groups_contributed"],
    )  # fmt: skip


def _searched(
    node: Release, facts: Facts, seem: Columns, limits: _Limits, ctx: RewriteContext
) -> SearchedLimits | None:
    """Who finds limits of a release; None where nobody asks for that, or where single aggregates bring their own."""
    keyed = node.input
    assert isinstance(keyed, GroupKeys)
    searching = ctx.searching_in(keyed, of_rows=True)
    if searching is None or any(c.per_group is not None for c in node.components):
        return None
    searching = searching.aside() if facts.empty else searching
    one_group = frozenset(item.column.uid for item in keyed.items) <= seem
    rows = limits.per_group if one_group and limits.rows is None else limits.rows
    m, g = limits.per_group, limits.groups
    # Keys that were shown before bear no noise of what follows, however many of them an id has.
    declared = Declared(rows, g if ctx.shown is None or m == 1 else None)
    if (
        searching.undeclared
        and keyed.sources is not None
        and not one_group
        and m is not None
        and m > 1
        and g is not None
    ):
        declared = Declared.of_groups(rows, m, g)
    return SearchedLimits(
        searching, keyed, _id_column(facts, keyed), facts, seem, one_group, declared, ctx.analysis.table
    )


def _are_searched(node: Release, facts: Facts, limits: _Limits, searched: SearchedLimits, ctx: RewriteContext) -> bool:
    """Whether limits on rows are searched: not where they are proven, or where M and G are declared; nor, unless
    somebody asks for it, where few rows are.
    """
    cap = searched.declared.rows
    if not ctx.searches_rows(node.input) or (limits.proven is not None and (cap is None or limits.proven <= cap)):
        return False
    if cap is not None and cap < WORTH_SEARCHING and not ctx.asks_to_search_rows(node.input):
        return False
    if searched.one_group:
        return any(rule(c).counts != "ids" for c in node.components)  # an id counts once
    return limits.per_group is None or limits.groups is None or searched.declared.is_of_groups


@dataclass(frozen=True, slots=True)
class _Limits:
    """What bounds a release: rows per id that the tree proves, and C, M, G as given by policy and query.

    for_all: whether M limits every component, and is not only a stand-in where each component brings its own bounds.
    few, few_in_one: the most rows that an id seems to have, or is promised to have, in all, and in one group.
    """

    proven: int | None
    rows: int | None
    per_group: int | None
    groups: int | None
    few: int | None
    few_in_one: int | None
    for_all: bool = True

    @property
    def none_declared(self) -> bool:
        """Whether nothing says how many rows of an id count."""
        return self.proven is None and self.rows is None and self.per_group is None


def _limits(node: Release, keyed: GroupKeys, below: Tagged[Facts], by_id: Columns, ctx: RewriteContext) -> _Limits:
    """The limits of a release, the bounds of its own components taken into account.

    Of rows that an id seems to have few of, no more count: what seems so is enforced like a limit. So is what only
    declared domains say, where nothing else makes rows few: rows may have other values, so that it is told.
    """
    facts = below.fact
    proven = proven_rows(keyed, facts)
    rows, per_group, groups = _declared(keyed, ctx)
    one_group = rows is None and frozenset(item.column.uid for item in keyed.items) <= by_id
    known = (proven, rows, per_group if one_group else _times(per_group, groups))
    seem = most_rows_of_an_id(below)
    promised = promised_rows(below, ctx.analysis.table)
    few = min((n for n in (proven, seem, promised) if n is not None), default=None)
    limited = few is None and any(n is not None for n in known)
    guessed = most_rows_of_an_id(below, domains=True) if limited else seem
    if guessed is not None and all(n is None or guessed < n for n in known):
        rows = guessed
    few_in_one = few
    if one_row_per_group(keyed, facts):
        per_group = few_in_one = 1
    own = [c for c in node.components if c.per_group is not None]
    if not own:
        return _Limits(proven, rows, per_group, groups, few, few_in_one)
    if proven is not None:
        # Totals per id are computed anyway, so what is proven is one more limit.
        rows = proven if rows is None else min(rows, proven)
        if per_group is None or groups is None or per_group * groups > rows:
            per_group = groups = None
    if rows is not None or per_group is not None or _needs_limits(node.components):
        return _Limits(None, rows, per_group, groups, few, few_in_one)
    most = max((int(c.per_group[1]) for c in own if c.per_group and not rule(c).adds_values), default=1)
    return _Limits(None, None, most, groups, few, few_in_one, for_all=False)


def _declared(node: GroupKeys, ctx: RewriteContext) -> tuple[int | None, int | None, int | None]:
    """(C, M, G): the smallest of each over the private tables whose rows are counted below, and the query."""
    found, own = policy_limits(node.input, ctx.analysis), ctx.limits
    found = found.smaller(PolicyLimits(own.rows, own.per_group, own.groups))
    return found.rows, found.per_group, found.groups


def _times(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b


def _id_column(facts: Facts, keyed: GroupKeys) -> Column:
    return next(c for c in output_columns(keyed) if c.uid in facts.ids)


def _unlimited(node: Release, facts: Facts, ctx: RewriteContext) -> Rejected:
    """Nothing limits the rows of an id; in the table that `units` names as theirs, each may have one."""
    reason = no_limit(node, facts)
    names = {c.hint.table for c in facts.columns.values() if c.hint is not None and not c.hint.public}
    (table,) = map(ctx.analysis.table, names) if len(names) == 1 and all(names) else (None,)
    if table is None or table.id_column is None:
        return Rejected([Diagnostic.from_reason(reason)])
    unit, column = str(table.unit), table.id_column.name
    home = ctx.analysis.policy.document.get("units", {}).get(unit, {}).get("table") or ""
    if home.casefold() == table.name.casefold() and not table.keys:
        column = column if re.fullmatch(r"[A-Za-z_]\w*", column) else f"'{column}'"
        first = f"where each {unit} has one row, custodian: add to tables.{table.name}:  primary_key: [{column}]"
        reason = replace(reason, help=(first, *reason.help))
    return Rejected([Diagnostic.from_reason(reason)])
