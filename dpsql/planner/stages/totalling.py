"""Totals that are the sums of their parts: where that holds, and how ε is divided between the sets of groups.

*Claim.* Without noise, each number of a set is the sum of those of its parts in the finest set; of ids that are scaled
down up to 1/F of a row for each id and group (F ≥ 2⁸, mostly 2²⁰), by which an id's part of a group is rounded. *Why.*
All sets group the same rows (rewrites/releases/same_rows.py), every row is in a listed group of the finest one, and a
row adds the same integer in every set: to a COUNT or a SUM with one grid, of rows, or of ids whose rows are scaled by
how many rows the id has in all, which no grouping changes. *When it would be false.* With limits per group, or on the
number of groups: under M = 2 rows of G = 1 group, an id with a row in (a, x) and one in (a, y) counts ½ in each, and 2
in (a). For different values, ids, and totals clipped per group
or by a limit that was found. Least squares would then move numbers away from the truth: no privacy is lost, and they
are refused by name. *Tested by* tests/deep/planner/postprocessing/test_consistent_totals.py,
tests/planner/test_consistent_totals.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, prod
from typing import TYPE_CHECKING

from dpsql.core.analysis.releases_of_plan import Releases
from dpsql.core.engine import Engine
from dpsql.core.ir.components import Component, ProductSum, RowCount, ValueSum
from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.ir.nodes import Release, key_sources
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.note import Note, Rank
from dpsql.engines.scratch import Scratch
from dpsql.planner.costs.row_weights import WeighedByGroups, limit_on_rows
from dpsql.planner.rewrites.releases.same_rows import does_not_add_up, families, finest_of, keyed_by_lists, positions
from dpsql.planner.stages.finished_tree import FinishedTree
from dpsql.planner.stages.noise_of_stages import NoiseOfStages
from dpsql.planner.stages.query_to_plan import QueryToPlan
from dpsql.planner.stages.stage import HandedOn, Stage

if TYPE_CHECKING:
    from dpsql.planner.postprocessing.consistency.groupings import Groupings
    from dpsql.planner.postprocessing.consistency.totals import Totals  # which load numpy, as no check does

_LEAST = 1e-3
"""The smallest share of a set, and what shares are multiples of."""
_STEPS = 200


@dataclass(frozen=True, slots=True)
class Totalling(Stage):
    """Numbers that are made the sums of their parts, by public arithmetic; it asks nothing. totals: which ones."""

    totals: tuple[Totals, ...]

    @classmethod
    def of(cls, query: QueryToPlan, tree: FinishedTree) -> Totalling | None:
        """Where it was asked for, and there are totals. Raises Rejected DP120, and DP406 beside a largest error."""
        if not query.settings.consistent_totals:
            return None
        found = tuple(_totals(family, tree.releases) for family in families(tree.read.node))
        if found and query.settings.max_error:
            raise reject(
                "DP406", "consistent_totals were asked for beside max_error, which says how ε is split",
                help=["give an epsilon in its place, or leave consistent_totals off"],
            )  # fmt: skip
        return cls(found) if found else None

    def weighed(self, weights: Mapping[int, Fraction], query: QueryToPlan, tree: FinishedTree) -> dict[int, Fraction]:
        """Times the share that each set of groups has."""
        return _with_shares(weights, self.totals, tree.releases, query.policy.privacy.accountant == "zcdp")

    def priced(self, own: tuple[PlannedRelease, ...], noise: NoiseOfStages, query: QueryToPlan) -> Totalling:
        """Raises Rejected DP120 where another release reads numbers before they are consistent."""
        _require_last(self.totals, noise.releases)
        return self

    @property
    def makes(self) -> object:
        """What is added up."""
        return self.totals

    def told(self, noise: NoiseOfStages, query: QueryToPlan) -> Iterator[Note]:
        """What is said of them before the run."""
        yield Note("consistent totals: each is the sum of its parts, by least squares", Rank.SOURCE)
        yield from _left_out([noise.releases[t.places[t.finest]].measured.node for t in self.totals])

    def handed_on(self, before: HandedOn, engine: Engine, scratch: Scratch) -> HandedOn:
        """The numbers that add up."""
        from dpsql.planner.postprocessing.consistency.totals import reconciled

        return replace(before, consistent=reconciled(self.totals, before.noisy))


def _require_last(totals: Sequence[Totals], releases: Sequence[PlannedRelease]) -> None:
    for place in (place for each in totals for place in each.places):
        if any(s.reads(releases[place].label) for other in releases for s in other.statements):
            raise does_not_add_up(
                "another part of the query reads these numbers before they are consistent",
                releases[place].measured.node.span,
                "ask for that part by itself, or leave consistent_totals off",
            )


def _totals(family: Sequence[Release], releases: Releases) -> Totals:
    from dpsql.planner.postprocessing.consistency.groupings import NoTotals
    from dpsql.planner.postprocessing.consistency.totals import Totals

    finest = finest_of(family)
    distinct = {releases.index[release]: release for release in family}
    columns = [positions(release, finest) or () for release in distinct.values()]
    used = [_adding_up(release) for release in distinct.values()]
    for release in distinct.values():
        _require_one_scaling(release, finest)
    adding = [[_named(c, release) for c in release.components] for release in distinct.values()]
    components = []
    for place in used[list(distinct).index(releases.index[finest])]:
        name = _named(finest.components[place], finest)
        if any(name not in own for own in adding):
            raise does_not_add_up(
                "the sets of groups do not add up the same numbers", finest.span, "leave consistent_totals off"
            )
        components.append(tuple(own.index(name) for own in adding))
    totals = Totals(tuple(distinct), tuple(columns), columns.index(positions(finest, finest) or ()), tuple(components))
    try:
        groupings = groupings_of(totals, list(distinct.values()))
        if groupings.is_chain:
            assert groupings.group_of
        else:
            assert groupings.product
    except NoTotals as no:
        raise does_not_add_up(f"{no}", finest.span, "ask for a ROLLUP, or leave consistent_totals off") from None
    return totals


def _left_out(finest: Sequence[Release]) -> Iterator[Note]:
    """Which rows are in no total."""
    sources = [(keyed, s) for keyed in map(keyed_by_lists, finest) for s in keyed.sources or ()]
    open_ = [(keyed, s) for keyed, s in sources if not (s.covers or s.closed)]
    listed = [keyed.items[at].column.name for keyed, s in open_ for at in s.positions]
    if names := " or ".join(dict.fromkeys(listed)):
        yield Note(f"consistent totals: rows whose {names} is not listed are in no total", Rank.DANGER)


def groupings_of(totals: Totals, releases: Sequence[Release]) -> Groupings:
    """The groups of each set, which are public."""
    from dpsql.core.release.noisy import public_keys
    from dpsql.planner.postprocessing.consistency.groupings import Groupings

    keys = tuple(tuple(public_keys(key_sources(r) or (), len(r.keys))) for r in releases)
    return Groupings(totals.positions, keys, totals.finest)


def _named(component: Component, release: Release) -> str:
    """What a component is, whatever its columns are called."""
    return fingerprint(keyed_by_lists(release).input, component, numbered=True)


def _adding_up(release: Release) -> list[int]:
    """The components of all counts and sums of a release. Raises Rejected DP120 for those that do not add up."""
    found = []
    for output in release.outputs:
        for place, _ in output.recipe.terms(release.components) or ():
            component = release.components[place]
            if not isinstance(component, RowCount | ValueSum | ProductSum):
                raise does_not_add_up(
                    f"{output.column.name} counts what may be in several groups, so that the sum of its parts is more",
                    output.span,
                    "leave it out, or leave consistent_totals off",
                )
            if component.of_unit is not None:
                raise does_not_add_up(
                    f"how much of an id counts in {output.column.name} is searched in each set of groups by itself",
                    output.span,
                    "custodian: declare  max_rows_per_unit  and the columns' bounds;  and leave searches off",
                )
            if component.per_group is not None:
                raise does_not_add_up(
                    f"what an id adds to {output.column.name} is clipped in each set of groups by itself",
                    output.span,
                    "declare  max_rows_per_unit  in the policy, and leave out other bounds",
                )
            if place not in found:
                found.append(place)
    return found


def _require_one_scaling(release: Release, finest: Release) -> None:
    """Raises Rejected DP120 unless rows count alike in every set."""
    try:
        if limit_on_rows(release) == limit_on_rows(finest):
            return
        what, rows = "a limit per unit holds for some sets of groups and not for others", None
    except WeighedByGroups as why:
        what, rows = str(why), why.rows
    limit = "a number of rows" if rows is None else str(rows)
    raise does_not_add_up(
        f"{what}, and so an id counts more or less from set to set", release.span,
        f"custodian: declare  max_rows_per_unit: {limit}  alone for this table, or prepare it with that limit",
    )  # fmt: skip


def _with_shares(
    weights: Mapping[int, Fraction], totals: Sequence[Totals], releases: Releases, gaussian: bool
) -> dict[int, Fraction]:
    """The weights of columns, times the share that their set of groups has.

    Equal ones beside an average and the like, which are made of numbers as they were drawn; and where numbers are so
    many that each is told the ± that it had before.
    """
    from dpsql.planner.postprocessing.consistency.totals import MOST_NUMBERS

    found = dict(weights)
    for each in totals:
        nodes = [releases.node(p) for p in each.places]
        if any(o.recipe.terms(n.components) is None for n in nodes for o in n.outputs):
            continue
        if sum(len(keys) for keys in groupings_of(each, nodes).keys) > MOST_NUMBERS:
            continue
        for place, share in _shares(each, nodes, gaussian).items():
            for output in releases.node(place).outputs:
                found[output.column.uid] = weights.get(output.column.uid, Fraction(1)) * share
    return found


def _shares(totals: Totals, releases: Sequence[Release], gaussian: bool) -> Mapping[int, Fraction]:
    """Place of a release → its part of what all of them may lose, in proportion to equal ones; from public keys alone.

    Minimises the mean over sets of the variance of a number (least squares with noise 1/share or 1/share²), where no
    set's is above that of equal shares without least squares. Noise of ε errs least where few sets have it, so that it
    starts from the finest alone, too. By the formula of groups that are all combinations of lists: for others it is a
    guess, as good as lists are even.
    """
    groupings = groupings_of(totals, releases)
    sizes = _sizes(groupings, [len(keys) for keys in groupings.keys])
    every = range(len(releases))
    starts = [1.0 for _ in every], [1.0 if at == totals.finest else _LEAST for at in every]
    tried = [_descended(totals, sizes, start, gaussian) for start in starts]
    found = min(tried, key=lambda shares: _error(totals, sizes, shares, gaussian))
    return {
        place: max(Fraction(round(s * len(found) / _LEAST)), Fraction(1)) * Fraction(_LEAST).limit_denominator(1000)
        for place, s in zip(totals.places, found, strict=True)
    }


def _descended(
    totals: Totals, sizes: Mapping[tuple[int, ...], float], start: Sequence[float], gaussian: bool
) -> list[float]:
    """Shares whose sum is 1, that no small step makes better."""
    found = [s / sum(start) for s in start]
    best = _error(totals, sizes, found, gaussian)
    step = 2.0
    for _ in range(_STEPS):
        better = False
        for at in range(len(found)):
            for factor in (step, 1 / step):
                tried = [max(s * (factor if n == at else 1), _LEAST) for n, s in enumerate(found)]
                tried = [s / sum(tried) for s in tried]
                error = _error(totals, sizes, tried, gaussian)
                if error < best * (1 - 1e-9):
                    found, best, better = tried, error, True
        if not better:
            step = step**0.5
            if step < 1.01:
                break
    return found


def _sizes(groupings: Groupings, heights: Sequence[int]) -> dict[tuple[int, ...], float]:
    """How many values each part of the keys has, the columns that every set has together or not at all.

    Along a chain: how many groups are in one of the set before, on average.
    """
    known: dict[tuple[int, ...], float] = {}
    for at in groupings.by_size:
        own = [part for n, part in enumerate(groupings.parts) if groupings.has_part(at, n)]
        new = [part for part in own if part not in known]
        before = prod(known[part] for part in own if part in known)
        for part in new:
            known[part] = max(1.0, (heights[at] / before) ** (1 / len(new)))
    return known


def _error(totals: Totals, sizes: Mapping[tuple[int, ...], float], found: Sequence[float], gaussian: bool) -> float:
    """The mean over sets of the variance of a number; ∞ if one is larger than with equal shares and nothing else."""
    theta = [s if gaussian else s**2 for s in found]
    most = float(len(found) if gaussian else len(found) ** 2) * (1 + 1e-9)
    parts = list(sizes)
    sets = [[n for n, part in enumerate(parts) if part[0] in positions] for positions in totals.positions]
    n = [sizes[part] for part in parts]
    every = range(len(parts))
    variances = list[float]()
    precisions: dict[tuple[int, ...], float] = {}
    for own in sets:
        variance = 0.0
        for mask in range(1 << len(own)):
            onto = tuple(p for bit, p in enumerate(own) if mask >> bit & 1)
            if onto not in precisions:
                precisions[onto] = sum(
                    t * prod(n[p] for p in every if p not in other)
                    for t, other in zip(theta, sets, strict=True) if set(onto) <= set(other)
                )  # fmt: skip
            rest = prod(n[p] for p in every if p not in own) / prod(n[p] for p in own if p not in onto)
            variance += rest * prod(1 - 1 / n[p] for p in onto) / precisions[onto]
        variances.append(variance)
    return sum(variances) / len(sets) if max(variances) <= most else inf
