"""What a released number answers, as a hash: equal addresses, equal exact integers, whatever query asked for them.

*Claim.* Two components with one address have the same exact integer for every group key, over the same data and under
the same ledger's salt, and noise that was enough for one is enough for the other. *Why.* The address is taken of all
that the integers are computed from: the version of the rules that make statements of plans; the finished plan below the
release with its columns numbered by occurrence (what else the query selects, and what it calls it, has no part in it),
its group keys with their public lists, the bounding of contributions, the component with its clip, grid, center, weight
and filter, and of a slice those before it in its set, in order, that a row may satisfy, too; the octaves that its
limits were found in, by id: whether others found the same limit is told to nobody who has not got theirs; the rows of
the releases that it reads, as values; of a growing table's rows, the days that are read, and nothing that says them
again (without_days.py); and where the engine's order decides what is kept, whose order it is. Parameters
are constants of the plan. Of the policy it is what declares the rows: the database with its `data_version`, the tables
that are scanned, and by name the columns that occur, each with the scan that it is of (rests_on.py). A column that
occurs nowhere in what is hashed is read by no statement; those nodes whose statements order rows by all of their
columns, named nowhere, are
hashed with all of them. Noise and price take no part: an answer
carries its own. So a value more in a domain, a budget or an analyst loses no answer, and one whose key list grows is
another question. *When it would be false.* If a statement computed anything that plan, declarations and `RULES` do not
say, or read a column that its plan does not name; or the custodian changed the data, public rows among them, and not
`data_version` (then a stored answer is true of older data, and as private as it was). *Tested by*
tests/answers/stored/test_address.py, tests/answers/stored/test_policy_changes.py,
tests/deep/answers/stored/test_equal_addresses.py, tests/answers/stored/test_version_0_1.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256

from dpsql.answers.stored.rests_on import of_column, of_data, of_table
from dpsql.answers.stored.without_days import Held, held_conditions, said, without_days
from dpsql.core.analysis.facts import Columns
from dpsql.core.analysis.period_parts import PeriodPart, row_scan
from dpsql.core.analysis.releases_of_plan import Releases, releases_of
from dpsql.core.analysis.stored_columns import stored_columns
from dpsql.core.ir.by_identity import ByIdentity
from dpsql.core.ir.components import Component, KeySource, ListChoice
from dpsql.core.ir.expressions import Call, Column, Expr, Literal, LiteralValue
from dpsql.core.ir.expressions import walk as parts_of
from dpsql.core.ir.fingerprint import Numbered
from dpsql.core.ir.nodes import (
    GroupKeys,
    Item,
    Node,
    Project,
    Release,
    Scan,
    Truncate,
    Values,
    Window,
    inputs,
    keyed_by,
    output_columns,
)
from dpsql.core.ir.periods import Span
from dpsql.core.ir.slice_sets import before
from dpsql.core.ir.walk import walk, with_inputs
from dpsql.core.policy.policy import Policy
from dpsql.core.values.key_lists import LazyKeys
from dpsql.planner.exclusive_conditions import are_disjoint, cases_of
from dpsql.planner.plan import Plan

RULES = 3
"""Version of the rules that measure, part of every address: no answer of an older one is served.

Raise it, once for each published version, when an equal plan comes to be measured by other integers: another weight,
clip or grid, other kept groups, values or rows. 1: dpsql 0.1. 2: each id keeps groups and values in its own order, and
is scaled down to no more groups than the public keys let it be in. 3: with a public number of rows, a row without a
value counts as the lower end; elsewhere it counts nowhere, whatever was believed of it.
"""

Rows = Sequence[tuple[LiteralValue, ...]]


Scanned = tuple[int, str, str]
"""A column of a table: the place of its scan among those of a release, the table's name and its own."""


_COMPARES = frozenset({"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "in", "is_null", "is_not_null"})


def _is_plain(condition: Expr, stored: Columns) -> bool:
    """Whether it compares stored columns with literals, and computes nothing: it means the same wherever it stands."""

    def plain(part: Expr) -> bool:
        match part:
            case Column(uid=uid):
                return uid in stored
            case Call(function=name):
                return name in _COMPARES
        return isinstance(part, Literal)

    return all(map(plain, parts_of(condition)))


@dataclass(frozen=True)
class ReleaseAddress:
    """What the addresses of all components of one release have in common.

    columns: what each number of a column of a table stands for. ordered: the components for which an `order` decides
    what is kept. octaves: label of a search → id of its noise. days: of a growing table, what is read of it.
    """

    below: Node
    node: Release
    setting: tuple[str, ...]
    policy: Policy
    columns: Mapping[int, Scanned]
    ordered: tuple[Component, ...] = ()
    order: str = ""
    octaves: Mapping[str, str] = field(default_factory=dict)
    days: str = ""
    _made: dict[str, ByIdentity[Component, str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def address(self, component: Component, keys: str = "") -> str:
        """The address of one component; `keys`: the id of the answer that holds the private keys it is for."""
        return self.on(self.days, component, keys)

    def on(self, days: str, component: Component, keys: str = "") -> str:
        """As `address`, of other days than its own."""
        made = self._made.setdefault(keys, ByIdentity())
        if component not in made:
            made[component] = self._address(component, keys)
        return sha256(f"{made[component]} {days}".encode()).hexdigest() if days else made[component]

    def _address(self, component: Component, keys: str) -> str:
        order = f"kept in the order of {self.order}" if component in self.ordered else ""
        own = "" if component.of_unit is None else self.octaves.get(component.of_unit.label, "")
        earlier = self._earlier(component)
        if isinstance(component, ListChoice) and component.choices is not None:
            component = replace(component, choices=hashed(component.choices))
        return self._begun.ended(order, keys, own, component, *earlier, column=self._declared)

    def _earlier(self, component: Component) -> tuple[Expr, ...]:
        """The conditions before a component's own in its slice set, in order, but for those that exclude it by stored
        columns: each other one may take rows from it. Those behind take none.
        """
        if component not in self.node.components:
            return ()
        others = before(self.node.slices, self.node.components, self.node.components.index(component))
        stored = stored_columns(self.node.input) if others else frozenset()
        if component.filter is None or not _is_plain(component.filter, stored):
            return others
        cases = cases_of(component.filter)
        return tuple(c for c in others if not (_is_plain(c, stored) and are_disjoint(cases, cases_of(c))))

    @cached_property
    def _begun(self) -> Numbered:
        return Numbered(self.setting, self.below, self.node.keys)

    def _declared(self, number: int) -> tuple[int, str] | None:
        """Of which scan a column that occurs is, and what the policy says of it; None: it is made by the query."""
        if number not in self.columns:
            return None
        place, table, name = self.columns[number]
        return place, of_column(self.policy, table, name)

    def address_of_keys(self) -> str:
        """The address of a set of private keys with their noisy counts, found with the declared least number."""
        assert self.node.threshold is not None
        least = f"keys of at least {self.node.min_units}"
        return self.address(self.node.components[self.node.threshold], least)

    @cached_property
    def name(self) -> str:
        """One name for all questions about the same groups of the same rows, for whoever wants to ask them alone: of a
        growing table of whichever days.
        """
        return self._begun.ended(column=self._declared)


class Addresses:
    """The addresses of all releases of one plan."""

    def __init__(self, plan: Plan, policy: Policy, order: str = "") -> None:
        """policy: that of the plan. order: whose order decides what is kept where not all is: engine and version
        (core/printing/forms/kept_first.py)."""
        assert plan.basis.policy_hash == policy.hash, "a plan of another policy"
        self.plan = plan
        self._policy = policy
        self._order = order
        self._found: Releases = releases_of(plan.tree)
        self._octaves = {f.octaves.label: f.drawn + ("" if f.by is None else f" {f.by.drawn}") for f in plan.found}
        self._lists = ByIdentity[KeySource, KeySource]()
        self._made: dict[int, ReleaseAddress] = {}
        self._of_days: dict[tuple[int, Held, bool], ReleaseAddress] = {}

    def of_part(self, place: int, days: Sequence[Span], part: PeriodPart | None = None) -> tuple[ReleaseAddress, str]:
        """Of some of the days that a release of rows of one growing table reads, and how these are called there.

        part: whose they are, of a release in parts. For all days of one period this is the address of any query that
        asks the same of that period alone.
        """
        node = self.plan.releases[place].measured.node
        held = held_conditions(node, days)
        dropped = part is not None and part.constant
        known = self._of_days.get((place, held, dropped))
        if known is None:
            split = None if part is None else self.plan.releases[place].measured.parts
            key = None if split is None else split.place
            apart = without_days(node, held, key, dropped=dropped)
            known = self._of_days[place, held, dropped] = self._of(place, None, apart)
        scan = row_scan(keyed_by(node).input)
        assert scan is not None
        return known, said(days, self.plan.basis.periods.get(scan.table), part)

    def reads(self, place: int) -> frozenset[int]:
        """The releases whose rows a release reads."""
        return frozenset(self._places(self.plan.releases[place].measured.node.input))

    def _places(self, node: Node) -> list[int]:
        if isinstance(node, Release):
            return [self._found.index[node]]
        return [place for below in inputs(node) for place in self._places(below)]

    @property
    def nested(self) -> bool:
        """Whether any release reads the rows of another."""
        return any(self.reads(place) for place in range(len(self.plan.releases)))

    def of(self, place: int, rows: Mapping[int, Rows] | None = None) -> ReleaseAddress:
        """rows: of each release that this one reads, its released rows; None: the releases themselves take their place.

        With rows, releases of other queries that gave the very same rows lead to the same address.
        """
        if rows:
            return self._of(place, rows)
        if place not in self._made:
            self._made[place] = self._of_growing(place) or self._of(place, rows)
        return self._made[place]

    def _of_growing(self, place: int) -> ReleaseAddress | None:
        """Of a release of rows of one growing table; what one in parts is found at, its parts say (`of_part`)."""
        measured = self.plan.releases[place].measured
        scan, split = row_scan(keyed_by(measured.node).input), measured.parts
        if scan is None or scan.periods is None:
            return None
        found, days = self.of_part(place, scan.periods.days, None if split is None else split.parts[0])
        if self.plan.written.finds:
            return replace(found, days="any days: what was found is kept")
        return replace(found, days=days if split is None else f"in {len(split.parts)} parts")

    def _of(self, place: int, rows: Mapping[int, Rows] | None, apart: Release | None = None) -> ReleaseAddress:
        """apart: the release in place of the plan's."""
        measured = self.plan.releases[place].measured
        node = measured.node if apart is None else apart
        below = node.input if rows is None else self._with(node.input, rows)
        units = sorted(measured.contributions)
        # What has no limit of its own may stand above any limit that was found.
        totals = {r.of_unit.label for p in self.plan.releases for r in p.measured.node.components if r.of_unit}
        others = sorted(drawn for label, drawn in self._octaves.items() if label not in totals)
        setting = (f"rules {RULES}", of_data(self._policy), *units, *others)
        found = {i for s in self.plan.releases[place].statements if s.ordered for i in s.components}
        ordered = tuple(node.components[i] for i in sorted(found))
        scans = [node for node in walk(below) if isinstance(node, Scan)]
        columns = {c.uid: (at, scan.table, c.name) for at, scan in enumerate(scans) for c in scan.columns}
        assert len(columns) == sum(len(scan.columns) for scan in scans), "two scans share a column"
        return ReleaseAddress(
            self._plain(below), node, setting, self._policy, columns, ordered, self._order, self._octaves
        )

    def _with(self, node: Node, rows: Mapping[int, Rows]) -> Node:
        if isinstance(node, Release):
            columns = (*node.keys, *(o.column for o in node.outputs))
            return Values(columns, tuple(rows[self._found.index[node]]))
        return with_inputs(node, tuple(self._with(below, rows) for below in inputs(node)))

    def _plain(self, node: Node) -> Node:
        """The node with each table as the hash of its declaration, and each key list as one of its keys: they count,
        however they are written or were found.
        """
        if isinstance(node, Scan):
            return replace(node, table=of_table(self._policy, node.table), columns=())
        plain = with_inputs(node, tuple(self._plain(child) for child in inputs(node)))
        match plain:
            case Truncate(input=child) | Window(input=child):  # rows are ordered by all that they have
                (rows,) = inputs(node)
                all_of_them = tuple(Item(c, c) for c in output_columns(rows))
                return replace(plain, input=Project(child, all_of_them))
            case GroupKeys(sources=sources, within=within):
                shown = None if sources is None else tuple(self._hashed(s) for s in sources)
                return replace(plain, sources=shown, within=tuple(self._hashed(s) for s in within))
        return plain

    def _hashed(self, source: KeySource) -> KeySource:
        if source not in self._lists:
            self._lists[source] = hashed(source)
        return self._lists[source]


def hashed(source: KeySource) -> KeySource:
    """A list of keys as its hash: what they are counts, however they were found."""
    return KeySource(source.positions, ((digest(source.keys),),), "")


def digest(keys: Sequence[tuple[LiteralValue, ...]]) -> str:
    """A SHA-256 of the keys, however they are held. A lazy list keeps it: those of a kept plan are read once."""
    return keys.digest if isinstance(keys, LazyKeys) else sha256(repr(tuple(keys)).encode()).hexdigest()
