"""Windows among the rows of one id: random ones over random plans, in neighbouring databases and other orders of rows.

Other ids' rows must stay what they are, whatever comes and goes; keys and frequencies must hold; and the integers of a
release must not depend on the order in which the engine finds the rows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

import dpsql.core.analysis.derive as derive
import dpsql.core.analysis.rules.window_of_unit as rule
import dpsql.core.printing.relational_nodes as relations
from dpsql.core.ir.expressions import Expr, Literal
from dpsql.core.ir.nodes import Filter, Frame, Node, SortKey, Window, WindowCall, output_columns
from dpsql.core.ir.types import BIGINT, HUGEINT, INTEGER, Kind
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from tests.deep.core.analysis.test_operators import PLANS_PER_WORLD, explained
from tests.support.operator_databases import operator_world
from tests.support.operator_oracle import Bench, Broken, Seen, random_root
from tests.support.random_databases import Store
from tests.support.random_plans import IDS, Plans, call

FUNCTIONS = (
    "row_number",
    "row_number",
    "rank",
    "dense_rank",
    "lag",
    "lead",
    "first_value",
    "count",
    "sum",
    "min",
    "max",
)
FRAMES = (None, None, Frame("ROWS", -1, 1), Frame("ROWS", None, 0), Frame("RANGE", None, 0), Frame("RANGE", None, None))


def windowed(plans: Plans, node: Node, by_id: bool = True) -> Node | None:
    """The rows with a window function or two beside them, often filtered by the first."""
    rng, columns = plans.rng, plans.plain(output_columns(node))
    ids = [c for c in columns if c.name in IDS]
    if not ids:
        return None
    calls: list[WindowCall] = []
    for _ in range(rng.choice((1, 1, 2))):
        function = rng.choice(FUNCTIONS)
        able = (
            [c for c in columns if c.type.kind is Kind.INTEGER and c.type != HUGEINT] if function == "sum" else columns
        )
        if function in ("row_number", "rank", "dense_rank", "count") or not able:
            function = function if function in ("row_number", "rank", "dense_rank") else "count"
            args: tuple[Expr, ...] = ()
            type_ = BIGINT
        else:
            args = (rng.choice(able),)
            type_ = HUGEINT if function == "sum" else args[0].type
        partition = [*([rng.choice(ids)] if by_id else []), *rng.sample(columns, rng.choice((0, 0, 1)))]
        order = [SortKey(c, rng.random() < 0.5, rng.random() < 0.5) for c in rng.sample(columns, min(len(columns), 1))]
        frame = rng.choice(FRAMES) if function in ("count", "sum", "min", "max") else None
        made = plans.new("x" if type_ == HUGEINT else function, type_)
        calls.append(WindowCall(function, args, made, tuple(partition), tuple(order[: rng.randint(0, 1)]), frame))
    found: Node = Window(node, tuple(calls))
    if calls[0].function == "row_number" and rng.random() < 0.7:
        most = Literal(rng.choice((1, 1, 2)), INTEGER)
        found = Filter(found, call(rng.choice(("eq", "le", "lt")), calls[0].column, most))
    return found


def attack(seeds: Iterable[int], by_id: bool = True, smallest: bool = False) -> Seen:
    """Windows over random plans. Raises AssertionError with the counter-example found, or the smallest like it."""
    store, seen = Store(), Seen()
    for seed in seeds:
        rng = random.Random(seed)
        databases = operator_world(rng)
        bench, other = Bench(store, databases), databases.shuffled(rng)
        plans, roots = Plans(rng, databases), []
        plans.focus = ("people", "orders", "jobs", "items")
        for _ in range(PLANS_PER_WORLD):
            node = windowed(plans, plans.tree(rng.randint(0, 2), bench.accepts), by_id)
            if node is None or not bench.accepts(node, seen):
                continue
            above = plans.aggregate(node) if rng.random() < 0.2 else node
            node = above if bench.accepts(above) else node
            root = random_root(rng, plans, node)
            seen.plans += 1
            try:
                tagged = bench.relation(node)
                bench.check_relation(tagged, seen)
                if bench.check_release(root, seen.releases):
                    made = bench.release(root)
                    assert made is not None
                    roots.append((root, tagged, bench.vectors(made[0]), Counter(map(repr, bench.rows(tagged, 0)))))
            except Broken as error:
                store.close()
                told = explained(databases, root, ContributionLimits(), error) if smallest else error
                raise AssertionError(f"seed {seed}: {told}") from None
        moved = Bench(store, other)
        for root, tagged, vectors, rows in roots:
            again = moved.release(root)
            assert again is not None and moved.vectors(again[0]) == vectors, "another order, other integers"
            assert Counter(map(repr, moved.rows(tagged, 0))) == rows, "another order, other rows"
    store.close()
    return seen


def test_windows_of_an_id_change_nothing_for_others() -> None:
    seen = attack(range(12), smallest=True)
    assert seen.plans > 30 and seen.changed > 0.3 * seen.pairs and seen.releases.planned > 20, seen


@pytest.mark.exhaustive
def test_windows_of_an_id_change_nothing_for_others_thoroughly() -> None:
    attack(range(1_000, 1_200), smallest=True)


def test_partitions_of_several_ids_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derive, "of_one_unit", lambda node, below: bool(below.ids))
    with pytest.raises(AssertionError, match=r"a row of|moved"):
        attack(range(20), by_id=False)


def test_an_order_that_is_not_total_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "private_order", lambda *_: ())
    with pytest.raises(AssertionError, match=r"a row of|another order|differ|moved"):
        attack(range(60))


def test_a_key_that_is_no_row_number_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """RANK, taken for a number of its own for each row, repeats."""
    known = rule.window_of_unit

    def ranks(node: Window, below):  # type: ignore[no-untyped-def]
        calls = tuple(replace(c, function="row_number") if c.function == "rank" else c for c in node.calls)
        return known(replace(node, calls=calls), below)

    monkeypatch.setattr(derive, "window_of_unit", ranks)
    with pytest.raises(AssertionError, match="key"):
        attack(range(40))


def test_refused_windows_are_refused() -> None:
    """What has no rule is not even tried."""
    rng = random.Random(5)
    databases = operator_world(rng)
    bench, plans = Bench(Store(), databases), Plans(rng, databases)
    scan = plans.scan("people")
    columns = {c.name: c for c in scan.columns}
    partition = (columns["pid"],)
    for function, frame in (
        ("last_value", None),
        ("first_value", Frame("RANGE", 0, None)),
        ("count", Frame("RANGE", -1, 0)),
    ):
        made = WindowCall(function, (columns["pid"],), plans.new("w", columns["pid"].type), partition, (), frame)
        assert not bench.accepts(Window(scan, (made,))), function
    with pytest.raises(Rejected) as caught:
        bench.relation(Window(scan, (WindowCall("last_value", partition, plans.new("w", BIGINT), partition),)))
    assert caught.value.diagnostics[0].code == "DP113"
