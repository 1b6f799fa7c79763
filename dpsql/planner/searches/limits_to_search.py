"""The limits that a query leaves to searches: collected while it is rewritten, each with the release that finds it.

A limit that is not known yet stands as 1: what a query costs does not depend on it, for noise is a multiple of it. Once
all are found, the same question is compiled again with the numbers, as an ordinary plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from itertools import count
from operator import is_
from typing import Final

from dpsql.core.ir.components import Component, ProductSum, QuantileChoice, UnitCount, ValueSum
from dpsql.core.ir.contributions import Norm
from dpsql.core.ir.expressions import Call, Expr
from dpsql.core.ir.expressions import walk as parts_of
from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.ir.nodes import BoundContributions, GroupKeys, Node, Release, Scan, inputs
from dpsql.core.ir.walk import walk, with_inputs
from dpsql.core.value_classes import replace as replace_node

SHARE: Final = Fraction(1, 4)
"""Of all searches of a query together."""
WORTH_SEARCHING: Final = 16
"""Of a declared limit below this a search that nobody asked for wins less than its share of ε costs."""
MOST_SHARE: Final = Fraction(3, 10)
"""The same where averages or quantiles need both a limit on rows and bounds."""


class Rule(Enum):
    """How a limit is read from octaves (`planner/postprocessing/searches/octaves.py`)."""

    SUM = "sum"
    AVERAGE = "average"
    GROUPS = "groups"
    RANGE = "range"
    QUANTILE = "quantile"

    @property
    def of_values(self) -> bool:
        """Whether it finds bounds of values, and not a limit on totals."""
        return self in (Rule.RANGE, Rule.QUANTILE)


@dataclass(frozen=True, slots=True)
class LimitToSearch:
    """One limit that a search finds.

    label: the same whenever the same question is compiled. octaves: the release that counts units by their totals. of:
    the rows of the release that is limited, with their group columns. what: whose totals, in SQL. at_most: a declared
    cap. grid: what one integer unit of the limit is worth. within: ends that bounds which are found do not leave.
    norm: whether totals of all groups are added up, or their squares. quantiles: whether a limit on the rows that are
    divided is one of quantiles alone. counts: what the totals are of. unasked: nobody asked for the search, so that the
    query is answered at the least limit where nothing is found and nothing declared.
    """

    label: str
    octaves: Release
    of: GroupKeys | None
    what: str
    rule: Rule
    at_most: int | None = None
    grid: Fraction = Fraction(1)
    within: tuple[int | None, int | None] = (None, None)
    norm: Norm = "l1"
    quantiles: bool = False
    counts: Component | None = None
    unasked: bool = False

    @property
    def words(self) -> str:
        """Whose totals, and what for: averages, quantiles and totals may each have a limit on the same."""
        if self.norm == "l2":
            return f"{self.what} (root of the sum of squares over groups)"
        if self.rule is Rule.QUANTILE or self.quantiles:
            return f"{self.what} (of quantiles)"
        return f"{self.what} (of averages)" if self.rule is Rule.AVERAGE else self.what


@dataclass(frozen=True, slots=True)
class SearchedLimit:
    """A limit, and what its rule reads beside the noisy numbers: all public, and fixed before any is drawn.

    release: the place of its octaves among the releases of the search. noise: of the query's numbers, in all groups
    together, for each unit of the limit. largest: the highest octave whose limit can be measured. follow: the (release,
    component) of the query whose noise is a multiple of the limit. threshold: of private keys that one group of a unit
    would have, where their number has to be guessed from the octaves; 0 for public ones. below: labels of the limits of
    what is at least as large for every unit. round: in which of those to come it is found.
    """

    limit: LimitToSearch
    release: int
    noise: Fraction
    largest: int
    follow: tuple[tuple[int, int], ...] = ()
    threshold: int = 0
    below: tuple[str, ...] = ()
    round: int = 0


@dataclass(slots=True)
class Searching:
    """What one compilation may leave to searches, what is found already, and what it wants.

    everywhere: whether limits are searched that no table asks for. undeclared: whether those are that nobody declares,
    and declared ones that are worth it. asked: sums of these arguments get one all the same.
    values_everywhere: and so do all values that have no bounds, as in GoogleSQL, where bounds may be left out.
    found: label → limit. numbers: of new columns, which no query reaches. clips: label → what is clipped to bounds that
    are found. in_rounds: whether rows that depend on another released number may be searched once it is drawn. waits:
    whether some are. withheld: whether some rows cannot be searched, because they depend on other released numbers.
    kept: whether therefore a declared limit holds that would have been a cap. gaussian: whether the noise of the query
    is Gaussian, which follows the root of a sum of squares. rooted: whether a limit is on such a root, or would be
    under such noise.
    """

    everywhere: bool
    undeclared: bool = False
    found: Mapping[str, int | tuple[int, int]] = field(default_factory=dict)
    asked: set[Expr] = field(default_factory=set)
    values_everywhere: bool = False
    wanted: dict[str, LimitToSearch] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(2**40))
    clips: dict[str, Call] = field(default_factory=dict)
    in_rounds: bool = True
    waits: bool = False
    withheld: bool = False
    kept: bool = False
    gaussian: bool = False
    rooted: bool = False

    def limit(
        self,
        octaves: Release,
        of: GroupKeys,
        what: str,
        rule: Rule,
        at_most: int | None = None,
        grid: Fraction = Fraction(1),
        norm: Norm = "l1",
        quantiles: bool = False,
        counts: Component | None = None,
    ) -> tuple[str, int]:
        """The label of a limit, and the limit as far as it is known."""
        label = _label((rule.value, at_most), octaves)
        wanted = LimitToSearch(
            label, octaves, of, what, rule, at_most, grid, norm=norm, quantiles=quantiles, counts=counts,
            unasked=self.undeclared,
        )  # fmt: skip
        self.wanted.setdefault(label, wanted)
        known = self.found.get(label, 1)
        assert isinstance(known, int)
        return label, known

    def bounds(
        self, octaves: Release, what: str, rule: Rule, grid: Fraction, within: tuple[int | None, int | None]
    ) -> tuple[str, tuple[int, int]]:
        """The label of bounds of values, and the bounds as far as they are known."""
        label = _label((rule.value, within), octaves)
        wanted = LimitToSearch(label, octaves, None, what, rule, None, grid, within, unasked=self.undeclared)
        self.wanted.setdefault(label, wanted)
        known = self.found.get(label, (0, 1))
        assert isinstance(known, tuple)
        return label, known

    def aside(self) -> Searching:
        """For what has no rows whatever the data hold: any limit will do, and nothing is to be found."""
        return replace(self, wanted={}, clips={})

    @property
    def share(self) -> Fraction:
        """Of all searches of a query together."""
        return share_of({limit.rule for limit in self.wanted.values()})

    @property
    def weights(self) -> dict[int, Fraction]:
        """Number of an output column of a search → its weight, where they differ: bounds have twice the share."""
        if self.share == SHARE:
            return {}
        ranges = (limit.octaves for limit in self.wanted.values() if limit.rule.of_values)
        return {octaves.outputs[0].column.uid: Fraction(2) for octaves in ranges}

    def finish(self, rewritten: Callable[[Node], Node]) -> None:
        """Rewrite to their end the releases that searched rows depend on: they were wanted before."""
        for label, limit in self.wanted.items():
            if releases_below(limit.octaves):
                rows, of = rewritten(limit.octaves.input), None if limit.of is None else rewritten(limit.of)
                assert of is None or isinstance(of, GroupKeys)
                self.wanted[label] = replace(limit, octaves=replace_node(limit.octaves, input=rows), of=of)

    @property
    def rounds(self) -> tuple[tuple[LimitToSearch, ...], ...]:
        """The limits in the order in which they can be found: each behind those of the releases that its rows read."""
        places: dict[str, int] = {}
        for label, limit in self.wanted.items():  # those of inner releases were wanted first
            inner = releases_below(limit.octaves)
            read = [at for other, at in places.items() if any(self.follows(self.wanted[other], r) for r in inner)]
            places[label] = 1 + max(read, default=-1)
        each = range(1 + max(places.values(), default=-1))
        return tuple(tuple(self.wanted[label] for label, at in places.items() if at == place) for place in each)

    def follows(self, limit: LimitToSearch, release: Release, component: Component | None = None) -> bool:
        """Whether the noise of a release, or of one of its components, is a multiple of a limit."""
        own = release.components if component is None else (component,)
        clip = self.clips.get(limit.label)
        return any(_follows(c, release, limit, clip) for c in own)

    @property
    def missing(self) -> tuple[LimitToSearch, ...]:
        """What is left to find."""
        return tuple(limit for label, limit in self.wanted.items() if label not in self.found)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to find."""
        return not self.missing


def releases_below(octaves: Release) -> list[Release]:
    """The releases that the rows of a search depend on."""
    return [node for node in walk(octaves.input) if isinstance(node, Release)]


def _follows(c: Component, node: Release, limit: LimitToSearch, clip: Call | None) -> bool:
    """Whether the noise of a component is a multiple of the limit, or its cells are. clip: of bounds that are found."""
    if limit.rule is Rule.QUANTILE:
        return isinstance(c, QuantileChoice) and any(e == clip for e in parts_of(c.arg))
    if limit.rule is Rule.RANGE:
        return c.arg == clip and isinstance(c, ValueSum | ProductSum)
    if limit.rule is Rule.SUM:
        return c.of_unit is not None and c.of_unit.label == limit.label
    if c.of_unit is not None or not isinstance(node.input, BoundContributions) or node.input.input != limit.of:
        return False
    if isinstance(c, UnitCount) and node.input.rows is None:
        return limit.rule is Rule.GROUPS
    return limit.rule is Rule.AVERAGE and not (isinstance(c, UnitCount) and node.input.few_groups)


def share_of(rules: Collection[Rule]) -> Fraction:
    """Of all searches of a query together; more where averages and quantiles need a limit on rows and bounds, too."""
    both = Rule.AVERAGE in rules and any(rule.of_values for rule in rules)
    return MOST_SHARE if both else SHARE


def _label(how: object, octaves: Release) -> str:
    """Of some days of a growing table the limit is the same as of others: what is missing is asked under it."""
    return fingerprint(how, _of_any_days(octaves), numbered=True)[:16]


def _of_any_days(node: Node) -> Node:
    if isinstance(node, Scan) and node.periods is not None:
        return replace_node(node, periods=replace(node.periods, days=(), reopened=0))
    below = inputs(node)
    found = tuple(map(_of_any_days, below))
    return node if all(map(is_, below, found)) else with_inputs(node, found)
