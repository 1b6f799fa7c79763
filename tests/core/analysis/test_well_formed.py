"""Plans that no text stands for are refused, and no rewrite makes one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Literal

import pytest

from dpsql.core.analysis import derive as deriving
from dpsql.core.analysis.context import Context, Derivation
from dpsql.core.analysis.derive import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import (
    Component,
    DistinctCount,
    KeySource,
    LargestChoice,
    Pick,
    RowCount,
    UnitCount,
    ValueSum,
)
from dpsql.core.ir.contributions import UnitTotal
from dpsql.core.ir.nodes import (
    Aggregate,
    AggregateCall,
    BoundContributions,
    Equality,
    Filter,
    GroupKeys,
    Item,
    Join,
    JoinKind,
    Limit,
    Node,
    Project,
    Release,
    SetColumn,
    SetKind,
    SetOperation,
    Truncate,
    Unnest,
    Values,
)
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.types import BIGINT, HUGEINT, INTEGER, VARCHAR
from dpsql.core.ir.walk import kinds
from dpsql.core.ir.well_formed import require_well_formed
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.aggregates.count import Count
from dpsql.planner.rewrites import rules
from dpsql.planner.rewrites.rewrite_context import RewriteContext
from tests.fixtures.cases import File, files, plan_of
from tests.support.plan_nodes import POLICY, at, column, filled, join, scan

VISITS, LOG = scan("visits"), scan("log")
K, OTHER = at(VISITS, "k"), at(LOG, "k")
KEYED = GroupKeys(VISITS, (Item(column("g", K.type), K),), None)
GROUP = KEYED.items[0].column
ROWS = (RowCount(),)
N = (Output(column("n", BIGINT), Count(0)),)
LIST = KeySource((0,), ((1,), (2,)), "two")
SOUND = Release(KEYED, (GROUP,), ROWS, N)
UNLIMITED = BoundContributions(KEYED, at(VISITS, "id"), (GROUP,))


def limited(most: int, norm: Literal["l1", "l2"] = "l1") -> Component:
    return RowCount(contribution=UnitTotal(most, norm))


OWN = limited(5)
NO_GROUPS = GroupKeys(VISITS, (), ())


def picking(*picks: tuple[int, int]) -> Release:
    """Ungrouped, with these picks from one list."""
    components = tuple(LargestChoice(K, choices=LIST, pick=Pick(*pick)) for pick in picks)
    return Release(NO_GROUPS, (), components, ())


EMPTY = Values((column("e", INTEGER),), ())

MALFORMED: dict[str, Node] = {
    "a column that is nowhere": Filter(VISITS, filled(LOG, "k")),
    "a column of another type": Project(VISITS, (Item(column("x", VARCHAR), replace(K, type=VARCHAR)),)),
    "one number twice": Project(VISITS, (Item(K, K), Item(K, K))),
    "one number on both sides": join(JoinKind.INNER, VISITS, VISITS, "k"),
    "another type than it is computed from": Project(VISITS, (Item(column("x", VARCHAR), K),)),
    "sides exchanged": Join(JoinKind.INNER, VISITS, LOG, (Equality(OTHER, K),)),
    "a condition on neither side": Join(JoinKind.CROSS, VISITS, LOG, residual=filled(scan("log"), "k")),
    "a side of a union exchanged": SetOperation(
        SetKind.UNION, True, VISITS, LOG, (SetColumn(column("k", INTEGER), OTHER, K),)
    ),
    "a short row": Values((column("a", INTEGER), column("b", INTEGER)), ((1,),)),
    "fewer than no rows": Limit(EMPTY, -1),
    "a limit that keeps nothing": Truncate(VISITS, (K,), 0),
    "no element": Unnest(VISITS, K, 0, column("x", INTEGER)),
    "lists of one column twice": replace(KEYED, sources=(LIST, LIST)),
    "a list of a column that is not there": replace(KEYED, sources=(replace(LIST, positions=(1,)),)),
    "an id that is not there": BoundContributions(KEYED, OTHER, (GROUP,), rows=1),
    "no limit": replace(SOUND, input=UNLIMITED),
    "one of two limited": replace(SOUND, input=UNLIMITED, components=(OWN, RowCount())),
    "ids in any number of groups": replace(SOUND, input=UNLIMITED, components=(UnitCount(),)),
    "groups kept, no matter how many": BoundContributions(KEYED, K, (GROUP,), truncate_groups=True),
    "an own limit of no rows": replace(SOUND, input=UNLIMITED, components=(limited(0),)),
    "an own limit that does not fit": replace(SOUND, input=UNLIMITED, components=(limited(2**62 + 1),)),
    "an own limit that nothing enforces": replace(SOUND, components=(OWN,)),
    "an own limit about a center": replace(
        SOUND, input=UNLIMITED, components=(ValueSum(K, center=1, contribution=UnitTotal(5)),)
    ),
    "an own limit of values by squares": replace(
        SOUND, input=UNLIMITED, components=(DistinctCount(K, contribution=UnitTotal(2, "l2")),)
    ),
    "integers of another argument": Aggregate(
        VISITS,
        (),
        (AggregateCall("sum", K, column("s", HUGEINT), summed=ValueSum(at(VISITS, "id"))),),
        inner=True,
    ),
    "two kinds of limit": BoundContributions(KEYED, K, (GROUP,), rows=1, per_group=1, groups=1),
    "no number of groups": BoundContributions(KEYED, K, (GROUP,), per_group=1),
    "no row of an id": BoundContributions(KEYED, K, (GROUP,), rows=0),
    "keys that the rows do not have": replace(SOUND, keys=()),
    "a release of bare rows": replace(SOUND, input=VISITS, keys=()),
    "a component that is not there": replace(SOUND, outputs=(Output(column("n", BIGINT), Count(1)),)),
    "a threshold that is not there": replace(SOUND, threshold=1),
    "a pick of groups": replace(SOUND, components=picking((0, 1)).components),
    "a pick that is missing": picking((0, 2)),
    "a pick that comes twice": picking((0, 1), (0, 1)),
    "picks in another order": picking((1, 2), (0, 2)),
    "a component over other rows": replace(SOUND, components=(RowCount(OTHER),)),
}


@pytest.mark.parametrize("plan", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_plan_is_refused(plan: Node) -> None:
    for attempt in (require_well_formed, lambda node: derive(node, Context(POLICY, PublicFacts()))):
        with pytest.raises(Rejected) as refusal:
            attempt(plan)
        assert refusal.value.diagnostics[0].code == "DP904"


@pytest.mark.parametrize(
    "plan",
    [
        SOUND,
        replace(KEYED, sources=(LIST,)),
        picking((0, 2), (1, 2)),
        BoundContributions(KEYED, at(VISITS, "id"), (GROUP,), rows=1),
        replace(SOUND, input=UNLIMITED, components=(OWN,)),
        replace(SOUND, input=replace(UNLIMITED, groups=3), components=(limited(2**62, "l2"), UnitCount())),
        replace(SOUND, input=replace(UNLIMITED, rows=2), components=(OWN, RowCount())),
    ],
)
def test_what_is_a_plan_is_not(plan: Node) -> None:
    require_well_formed(plan)


class Marked(Facts):
    """Facts that hold something more, which no rule may hand on."""

    __slots__ = ()


def marked(facts: Facts) -> Facts:
    return Marked(**{f.name: getattr(facts, f.name) for f in fields(facts) if f.init})


def _from_nothing(rule: Callable[..., Facts]) -> Callable[..., Facts]:
    def run(node: Node, below: tuple[Facts, ...], ctx: Derivation) -> Facts:
        found = rule(node, tuple(map(marked, below)), ctx)
        assert type(found) is Facts, f"the rule of {type(node).__name__} changes facts that it was given"
        return found

    return run


def _looked_at(rewrite: rules.Rewrite, kind: type[Node]) -> rules.Rewrite:
    """Asked of every tree here: it neither changes nor refuses one that has no node of its kind."""

    def run(root: Node, ctx: RewriteContext) -> Node:
        require_well_formed(root)
        found: Node | None = None
        try:
            found = rewrite(root, ctx)
            return found
        finally:
            assert kind in kinds(root) or found == root, f"{rewrite.__name__}: a tree without any {kind.__name__}"

    return run


class _Everything(frozenset[type]):
    """The kinds of a tree that has all."""

    def __contains__(self, kind: object) -> bool:
        return True


@pytest.mark.parametrize("name", ["joins", "subqueries", "windows"])
def test_plans_stay_plans(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = (file for file in files() if file.path.stem == name)
    plans_stay_plans(file, monkeypatch)


def plans_stay_plans(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rewrite makes a plan of one, and every rule makes its facts from nothing.

    What a rule does not write is forgotten: a fact that `Facts` is given later cannot survive a join by itself.
    """
    monkeypatch.setattr(rules, "RULES", tuple((_looked_at(*pair), pair[1]) for pair in rules.RULES))
    monkeypatch.setattr(rules, "kinds", lambda root: _Everything())
    monkeypatch.setattr(deriving, "_rule", _from_nothing(deriving._rule))
    for case in file.cases:
        with contextlib.suppress(Rejected):
            plan_of(case)


def test_a_rule_that_changes_what_it_was_given_is_noticed() -> None:
    with pytest.raises(AssertionError, match="the rule of Filter"):
        _from_nothing(lambda node, below, ctx: replace(below[0], rule="filter"))(
            Filter(VISITS, filled(VISITS, "k")), (Facts({}),), Derivation.begin(Context(POLICY, PublicFacts()))
        )
