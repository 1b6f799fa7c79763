"""The attacks on operators can fail: each of these broken rules is caught by the same databases and the same oracle.

A mutant is hunted either in all states of an entry of the stability table, or with one plan in random databases.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import dpsql.core.analysis.derive as derive
import dpsql.core.analysis.rules.join as join_rule
import dpsql.core.analysis.rules.join_by_frequency as rows_rule
import dpsql.core.analysis.rules.join_multiplicity as matches_rule
import dpsql.core.analysis.rules.join_same_unit as owner_rule
import dpsql.core.analysis.rules.join_with_public as public_rule
import dpsql.core.analysis.rules.private_aggregate as aggregate_rule
import dpsql.core.analysis.rules.set_operation as set_rule
import dpsql.core.analysis.rules.truncate as truncate_rule
import dpsql.core.analysis.rules.unnest as unnest_rule
import dpsql.core.printing.forms.inner_sums as inner_sums
import dpsql.core.printing.relational_nodes as relations
import dpsql.planner.rewrites.joins.limit_frequencies as limiting
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column, Literal, columns_of
from dpsql.core.ir.nodes import (
    Aggregate,
    AggregateCall,
    Equality,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    SetColumn,
    SetKind,
    SetOperation,
    Truncate,
    Unnest,
    Values,
    output_columns,
)
from dpsql.core.ir.types import BIGINT, DOUBLE, INTEGER
from dpsql.core.numbers.cap import ONE, finite
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from tests.deep.core.analysis.test_operator_tightness import (
    CASES,
    Case,
    cut_one,
    joined,
    limited,
    plain,
    worst,
)
from tests.support.operator_databases import operator_world
from tests.support.operator_oracle import Bench, Broken, Seen
from tests.support.random_databases import Store
from tests.support.random_plans import Plans, call, number

Patch = Callable[[pytest.MonkeyPatch], None]
MOST_WORLDS = 80


def once_for_two(module: Any) -> Patch:
    """The factor 2 of a rule forgotten."""
    return lambda m: m.setattr(module, "finite", lambda n: finite(1 if n == 2 else n))


def untouched(m: pytest.MonkeyPatch) -> None:
    """Truncation that the engine never sees."""
    original = relations.Emitter._truncated
    m.setattr(relations.Emitter, "_truncated", lambda self, n, t: original(self, n, t).split("\nQUALIFY")[0])


def by_storage(m: pytest.MonkeyPatch) -> None:
    """Truncation by the order in which rows are found."""
    original = relations.Emitter._truncated

    def mutated(self: Any, node: Any, tagged: Any) -> str:
        before, _, after = original(self, node, tagged).partition(" ORDER BY ")
        return before + ")" + after[after.index(") <= ") + 1 :]

    m.setattr(relations.Emitter, "_truncated", mutated)


def first_only(a: Any, b: Any) -> Any:
    return dict(a)


def left_of_nothing(plans: Plans) -> Node:
    """A LEFT join that no row has a partner in."""
    a, k = plans.scan("a"), plans.new("k", INTEGER)
    return Join(JoinKind.LEFT, a, Values((k,), ((None,), (None,))), (Equality(a.columns[0], k),))


def any_columns(m: pytest.MonkeyPatch) -> None:
    m.setattr(rows_rule, "self_join_frequency", lambda node, ctx: ctx.fact(node.left).most_rows(
        frozenset(e.left.uid for e in node.equalities)
    ))  # fmt: skip


def any_group(m: pytest.MonkeyPatch) -> None:
    m.setattr(rows_rule, "_padding", lambda node, right: next(iter(right.padding.values())))


TABLE: dict[str, tuple[Patch, Case]] = {
    "a table and another column of itself, SEMI": (
        any_columns,
        CASES["semi join with another column of itself, f = 2"],
    ),
    "a table and another column of itself, ANTI": (
        any_columns,
        CASES["anti join with another column of itself, f = 3"],
    ),
    "groups looked up by their number": (any_group, CASES["left join of groups by their number"]),
    "2k → k in GROUP BY": (once_for_two(aggregate_rule), CASES["group by"]),
    "one row of all without keys": (once_for_two(aggregate_rule), CASES["no keys"]),
    "2k → k in truncation": (once_for_two(truncate_rule), CASES["truncate to 1"]),
    "τ·k → k where keys are dropped": (
        lambda m: m.setattr(truncate_rule, "times", lambda a, b: a),
        CASES["drop above 3"],
    ),
    "truncation never emitted": (
        untouched,
        Case(joined(JoinKind.INNER, "a", "b"), cut_one, {"a": 2, "b": 2}, limited(1, "truncate", most=3)),
    ),
    "dropping never emitted": (untouched, CASES["inner join, dropped above 1"]),
    "max(1, m) → m in LEFT": (
        lambda m: m.setattr(public_rule, "larger", lambda a, b: b),
        Case(left_of_nothing, plain, {"a": 1}),
    ),
    "2m → m in FULL": (once_for_two(public_rule), CASES["full join public, m = 2"]),
    "2m → m where the public side is kept": (once_for_two(public_rule), CASES["public left join"]),
    "2f → f in LEFT": (once_for_two(rows_rule), CASES["left join, f = 2, 2"]),
    "2f → f in FULL": (once_for_two(rows_rule), CASES["full join, f = 2, 2"]),
    "partners of the right side forgotten": (
        lambda m: m.setattr(rows_rule, "sums", first_only),
        CASES["inner join, f = 1, 3"],
    ),
    "frequencies ignored": (lambda m: m.setattr(rows_rule, "_times", first_only), CASES["semi join, f = 2"]),
    "rows of ids counted as ids": (
        lambda m: m.setattr(
            rows_rule, "counted_by_rows", lambda s, node=None: replace(s, ids=frozenset(), by_id=frozenset())
        ),
        CASES["rows of ids"],
    ),
    "padding of dropped keys forgotten": (
        lambda m: m.setattr(rows_rule, "_padding", lambda node, right: dict(right.stability)),
        CASES["left join, dropped above 2"],
    ),
    "INTERSECT follows its left side": (lambda m: m.setattr(set_rule, "sums", first_only), CASES["intersect"]),
    "EXCEPT follows its left side": (lambda m: m.setattr(set_rule, "sums", first_only), CASES["except all"]),
    "a list counted once": (lambda m: m.setattr(unnest_rule, "times", lambda a, b: a), CASES["unnest the first 2"]),
    "a list never cut": (
        lambda m: m.setattr(
            relations.Emitter,
            "_unnest",
            lambda self, n, t, o=relations.Emitter._unnest: o(self, replace(n, most=9), t),
        ),
        CASES["unnest the first 2"],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_broken_entry_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, case = TABLE[name]
    patch(monkeypatch)
    claimed, most = worst(case)
    assert any(most[unit] > getattr(claimed.get(unit), "value", 0) for unit in most), (claimed, most)


# --- rules of ids, keys and frequencies, in random databases ----------------------------------------------------------


def _named(node: Node, name: str) -> Column:
    return next(c for c in output_columns(node) if c.name == name)


def _join(kind: JoinKind, left: str, right: str, *pairs: tuple[str, str], change: Any = None, above: Any = None) -> Any:
    """above: a column of the left side that must be positive."""

    def make(plans: Plans) -> Node:
        a, b = plans.scan(left), plans.scan(right)
        on = [Equality(_named(a, x), _named(b, y)) for x, y in pairs]
        if change is not None:
            on = [Equality(change(e.left), e.right) for e in on]
        return Join(kind, a, b, tuple(on), None if above is None else call("gt", _named(a, above), number(0)))

    return make


def _union(kind: SetKind, every: bool, left: str, right: str, *pairs: tuple[str, str]) -> Any:
    def make(plans: Plans) -> Node:
        a, b = plans.scan(left), plans.scan(right)
        columns = tuple(SetColumn(plans.new(x, INTEGER), _named(a, x), _named(b, y)) for x, y in pairs)
        return SetOperation(kind, every, a, b, columns)

    return make


def _beside_public_rows(plans: Plans) -> Node:
    """One more row, public, of every id."""
    orders = plans.scan("orders")
    pid, x = plans.new("pid", INTEGER), plans.new("x", INTEGER)
    written = Values((pid, x), ((1, 0), (2, 0), (3, 0)))
    columns = tuple(SetColumn(plans.new(c.name, INTEGER), _named(orders, c.name), c) for c in (pid, x))
    return SetOperation(SetKind.UNION, True, orders, written, columns)


def _distinct(plans: Plans) -> Node:
    notes = plans.scan("notes")
    return Aggregate(notes, tuple(Item(plans.new(n, INTEGER), _named(notes, n)) for n in ("code", "x")), ())


def _unnested(plans: Plans) -> Node:
    log = plans.scan("log")
    return Unnest(log, _named(log, "tags"), 2, plans.new("element", INTEGER))


def _without_id(plans: Plans) -> Node:
    orders = plans.scan("orders")
    return Project(orders, (Item(plans.new("code", INTEGER), _named(orders, "code")),))


def _one_row_padded(plans: Plans) -> Node:
    kinds, k = plans.scan("kinds"), plans.new("k", INTEGER)
    return Join(JoinKind.LEFT, kinds, Values((k,), ((1,),)), (Equality(_named(kinds, "code"), k),))


def _totals(plans: Plans) -> Node:
    log = plans.scan("log")
    keys = (Item(plans.new("code", INTEGER), _named(log, "code")),)
    clipped = call("clip", _named(log, "d"), Literal(-1.0, DOUBLE), Literal(1.0, DOUBLE))
    return Aggregate(log, keys, (AggregateCall("sum", clipped, plans.new("s", DOUBLE)),))


def _counted(make: Callable[[Plans], Node]) -> Callable[[Plans], Node]:
    """A release above: rows per x."""

    def root(plans: Plans) -> Node:
        node = make(plans)
        key = Item(plans.new("x", INTEGER), _named(node, "x"))
        return Aggregate(node, (key,), (AggregateCall("count", None, plans.new("n", BIGINT)),))

    return root


def owners_meet(m: pytest.MonkeyPatch, found: Callable[[Any, Facts, Facts], bool]) -> None:
    m.setattr(join_rule, "joins_same_unit", found)
    m.setattr(limiting, "joins_same_unit", found)


def any_owner(m: pytest.MonkeyPatch) -> None:
    owners_meet(m, lambda node, left, right: bool(left.ids and right.ids))


def expressions_of_ids(m: pytest.MonkeyPatch) -> None:
    def mutated(node: Any, left: Facts, right: Facts) -> bool:
        return any(columns_of(e.left) & left.ids and columns_of(e.right) & right.ids for e in node.equalities)

    owners_meet(m, mutated)


def part_of_a_key(m: pytest.MonkeyPatch) -> None:
    def mutated(many: Facts, one: Facts, pairs: Any) -> bool:
        return any(
            pair in pairs for hop in many.hops for key in one.promised_keys if key.table == hop.table
            for pair in zip(hop.columns, key.columns, strict=True)
        )  # fmt: skip

    m.setattr(owner_rule, "_on_hop", mutated)


def both_ids(m: pytest.MonkeyPatch) -> None:
    original = owner_rule.join_same_unit

    def mutated(node: Any, left: Facts, right: Facts, a: Any, b: Any) -> Facts:
        return replace(original(node, left, right, a, b), ids=left.ids | right.ids)

    m.setattr(join_rule, "join_same_unit", mutated)


def anywhere(m: pytest.MonkeyPatch) -> None:
    """Ids at different positions of the two sides."""

    def mutated(node: Any, left: Facts, right: Facts) -> Any:
        return frozenset(c.column.uid for c in node.columns if isinstance(c.left, Column) and c.left.uid in left.ids)

    m.setattr(set_rule, "_ids", mutated)


def any_union(m: pytest.MonkeyPatch) -> None:
    """Public rows beside those of ids."""
    anywhere(m)


def residual_ignored(m: pytest.MonkeyPatch) -> None:
    original = public_rule.determined_columns
    m.setattr(public_rule, "determined_columns", lambda node, *rest: original(replace(node, residual=None), *rest))


def owner_residual_ignored(m: pytest.MonkeyPatch) -> None:
    original = owner_rule.join_same_unit

    def mutated(node: Any, left: Facts, right: Facts, a: Any, b: Any) -> Facts:
        return original(replace(node, residual=None), left, right, a, b)

    m.setattr(join_rule, "join_same_unit", mutated)


def keys_kept(name: str, keys: Callable[..., Any]) -> Patch:
    def patch(m: pytest.MonkeyPatch) -> None:
        original = getattr(derive, name)

        def mutated(node: Any, *below: Any) -> Facts:
            found = original(node, *below)
            return replace(found, keys=found.keys | keys(node, found, *below))

        m.setattr(derive, name, mutated)

    return patch


def _left_keys(node: Any, found: Facts, left: Facts, *_: Any) -> Any:
    if not isinstance(node, SetOperation):
        return left.keys
    names = {c.left.uid: c.column.uid for c in node.columns if isinstance(c.left, Column)}
    return {frozenset(names[u] for u in key) for key in left.keys if key <= names.keys()}


def full_like_left(m: pytest.MonkeyPatch) -> None:
    original = matches_rule.keys_and_frequencies

    def mutated(node: Any, *rest: Any) -> Any:
        return original(replace(node, kind=JoinKind.LEFT) if node.kind is JoinKind.FULL else node, *rest)

    m.setattr(public_rule, "keys_and_frequencies", mutated)


def ids_counted(m: pytest.MonkeyPatch) -> None:
    """A projection that loses the id keeps the number of ids as its number of rows."""
    original = derive.project
    m.setattr(derive, "project", lambda node, below: replace(original(node, below), stability=below.stability))


def padded_agree(m: pytest.MonkeyPatch) -> None:
    original = matches_rule.keys_and_frequencies

    def mutated(node: Any, left: Facts, right: Facts, a: Any, b: Any) -> Any:
        keys, frequency = original(node, left, right, a, b)
        return keys, {**frequency, frozenset(): ONE}

    m.setattr(join_rule, "keys_and_frequencies", mutated)


PEOPLE_ORDERS = ("people", "orders")
HUNTED: dict[str, tuple[Patch, Callable[[Plans], Node]]] = {
    "two ids joined on something else": (any_owner, _join(JoinKind.INNER, *PEOPLE_ORDERS, ("code", "code"))),
    "two ids joined on an expression of the id": (
        expressions_of_ids,
        _join(JoinKind.INNER, *PEOPLE_ORDERS, ("pid", "pid"), change=lambda e: call("clip", e, number(0), number(2))),
    ),
    "a part of a composite key": (part_of_a_key, _join(JoinKind.INNER, "items", "orders", ("oid", "oid"))),
    "the padded side's id": (both_ids, _join(JoinKind.LEFT, *PEOPLE_ORDERS, ("pid", "pid"))),
    "ids at different positions": (
        anywhere,
        _union(SetKind.EXCEPT, False, *PEOPLE_ORDERS, ("pid", "code"), ("code", "pid")),
    ),
    "public rows among those of ids": (
        any_union,
        _counted(_beside_public_rows),
    ),
    "a function of the id after a LEFT join with a condition": (
        residual_ignored,
        _join(JoinKind.LEFT, "orders", "kinds", ("pid", "code"), above="x"),
    ),
    "the same with another table of the id": (
        owner_residual_ignored,
        _join(JoinKind.LEFT, *reversed(PEOPLE_ORDERS), ("pid", "pid"), above="x"),
    ),
    "a part of the keys of DISTINCT": (
        keys_kept("aggregate", lambda node, found, *_: {frozenset({node.keys[0].column.uid})}),
        _distinct,
    ),
    "a key after UNION ALL": (
        keys_kept("set_operation", _left_keys),
        _union(SetKind.UNION, True, "people", "people", ("pid", "pid")),
    ),
    "a key after UNNEST": (keys_kept("unnest", _left_keys), _unnested),
    "a key after FULL": (full_like_left, _join(JoinKind.FULL, "log", "kinds", ("code", "code"))),
    "ids counted as rows once the id is gone": (ids_counted, _without_id),
    "padded rows that agree on nothing": (padded_agree, _one_row_padded),
}  # fmt: skip


def hunt(make: Callable[[Plans], Node], worlds: int) -> Broken | None:
    """The first contradiction between a plan's claims and random databases."""
    store = Store()
    try:
        for seed in range(worlds):
            rng = random.Random(seed)
            databases = operator_world(rng)
            bench, plans = Bench(store, databases), Plans(rng, databases)
            node = make(plans)
            try:
                if isinstance(node, Aggregate) and node.calls:
                    bench.check_release(node, Seen().releases, ContributionLimits(rows=1))
                else:
                    bench.check_relation(bench.relation(node))
            except Broken as found:
                return found
            except Rejected:
                continue
        return None
    finally:
        store.close()


@pytest.mark.parametrize("name", HUNTED)
def test_a_broken_rule_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, make = HUNTED[name]
    assert hunt(make, 15) is None  # the rule as it is
    patch(monkeypatch)
    assert hunt(make, MOST_WORLDS) is not None


def _order_matters(make: Callable[[Plans], Node], worlds: int) -> bool:
    """Whether the same rows, stored in another order, give another relation."""
    store = Store()
    try:
        for seed in range(worlds):
            rng = random.Random(seed)
            databases = operator_world(rng, replaced=False)
            bench, plans = Bench(store, databases), Plans(rng, databases)
            tagged = bench.relation(make(plans))
            once = sorted(map(repr, bench.rows(tagged, 0)))
            for _ in range(3):
                if sorted(map(repr, Bench(store, databases.shuffled(rng)).rows(tagged, 0))) != once:
                    return True
        return False
    finally:
        store.close()


def plain_sums(m: pytest.MonkeyPatch) -> None:
    m.setattr(inner_sums, "clipped_column", lambda c, names: inner_sums.text(c.arg, names)[0])


def _cut(plans: Plans) -> Node:
    log = plans.scan("log")
    return Truncate(log, (_named(log, "code"),), 1)


@pytest.mark.parametrize(("patch", "make"), [(plain_sums, _totals), (by_storage, _cut)], ids=["sums", "truncation"])
def test_what_depends_on_the_order_of_rows_is_caught(
    patch: Patch, make: Callable[[Plans], Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not _order_matters(make, 40)
    patch(monkeypatch)
    assert _order_matters(make, 300)
