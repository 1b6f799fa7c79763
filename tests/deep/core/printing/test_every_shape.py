"""Whatever statements compute a release's integers, they are the same integers: those of the definition, row by row.

Random rows and queries. Each release is computed by the chosen statements, by every other physical shape that fits it,
in 64 and in 128 bits, and by Python from the rows alone.
"""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from dpsql.core.analysis.rules.contribution_bounding import bound_contributions
from dpsql.core.ir.components import Component, DistinctCount, ProductSum, RowCount, UnitCount, ValueSum
from dpsql.core.ir.expressions import Column, Expr, walk
from dpsql.core.ir.nodes import BoundContributions, GroupKeys, Release, output_columns
from dpsql.core.ir.walk import Tagged
from dpsql.core.printing import grid_integers as quantize
from dpsql.core.printing.forms import weights
from dpsql.core.printing.shapes import choose, weighted
from dpsql.core.release.noisy import public_keys
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import parse_policy
from dpsql.service.checks.check import static_plan
from dpsql.service.privacy_settings import settled
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.deep.core.printing.test_shapes import _towards_zero

POLICY = """\
version: 1
name: shop
units:
  person: {table: people, key: id}
tables:
  people:
    unit: {column: id}
    primary_key: [id]
    columns:
      id:     {type: bigint, nullable: false}
      region: {type: varchar, domain: [n, s, w]}
      age:    {type: integer, bounds: [0, 100]}
  orders:
    unit: {column: person}
    columns:
      person: {type: bigint}
      kind:   {type: varchar, domain: [x, y]}
      town:   {type: varchar}
      amount: {type: double, bounds: [-5, 50]}
      price:  {type: "decimal(15,8)", bounds: [-3.10, 99.99]}
      qty:    {type: integer, bounds: [0, 9]}
budgets:
  total: {epsilon: 10, delta: 1e-6}
"""
ROWS = POLICY.replace("unit: {column: id}", "unit: {rows: 2}").replace("unit: {column: person}", "unit: {rows: 3}")
ROWS = ROWS.replace("units:\n  person: {table: people, key: id}\n", "")

Row = dict[str, Any]
Key = tuple[Any, ...]
Vector = dict[Key, list[int]]
Shape = Callable[[pytest.MonkeyPatch], None]
"""A change of the emitter."""

BOUNDS = {"age": (0, 100), "amount": (-5, 50), "price": (Fraction("-3.10"), Fraction("99.99")), "qty": (0, 9)}
ARGUMENTS: dict[frozenset[str], tuple[str, Callable[..., Fraction]]] = {
    frozenset({"age"}): ("age", lambda age: age),
    frozenset({"amount"}): ("amount", lambda amount: amount),
    frozenset({"price"}): ("price", lambda price: price),
    frozenset({"qty"}): ("qty", lambda qty: qty),
    frozenset({"price", "qty"}): ("price * (2 - qty)", lambda price, qty: price * (2 - qty)),
}
"""Columns that an argument reads → its text, and its value."""

KEYS: dict[str, Callable[[Row], Any]] = {
    "kind": lambda r: r["kind"],
    "region": lambda r: r["region"],
    "qty > 4": lambda r: None if r["qty"] is None else r["qty"] > 4,
    "town": lambda r: r["town"],
}
FILTER = "qty > 3"
SALT = 11


def database(rng: random.Random) -> tuple[duckdb.DuckDBPyConnection, list[Row], list[Row]]:
    """Tables with and without rows, ids with none to many of them, values of every sort."""
    people = [
        {"id": i, "region": rng.choice(["n", "s", "w", "q", None]), "age": rng.choice([None, -4, 0, 7, 70, 100, 3000])}
        for i in range(rng.choice((0, 5, 8, 8)))
    ]
    numbers = {
        "amount": [None, math.nan, math.inf, -math.inf, -7.0, -5.0, -0.125, 0.0, 1.25, 49.5, 50.0, 1e300],
        "price": [None, *(Fraction(i, 10**8) for i in (-(10**15) + 1, -310000000, -1, 0, 37, 1234567891, 9999000001))],
        "qty": [None, -1, 0, 1, 4, 5, 9, 12],
    }
    orders = [
        {
            "person": rng.choice([None, 0, 1, 1, 2, *range(9)]),
            "kind": rng.choice(["x", "y", "z", None]),
            "town": rng.choice(["a", "b", "c", "", None]),
            **{name: rng.choice(values) for name, values in numbers.items()},
        }
        for _ in range(rng.choice((0, 5, 30, 60)))
    ]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (id BIGINT, region VARCHAR, age INTEGER)")
    connection.execute(
        "CREATE TABLE orders "
        "(person BIGINT, kind VARCHAR, town VARCHAR, amount DOUBLE, price DECIMAL(15,8), qty INTEGER)"
    )
    for table, rows in (("people", people), ("orders", orders)):
        if rows:
            listed = ", ".join("(" + ", ".join(map(_literal, row.values())) + ")" for row in rows)
            connection.execute(f"INSERT INTO {table} VALUES {listed}")
    return connection, people, orders


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return f"'{value}'"
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case Fraction():
            return f"CAST('{Decimal(value.numerator) / value.denominator:f}' AS DECIMAL(15,8))"
    return str(value)


# --- what the integers are ------------------------------------------------------------------------------------------


def argument(c: Component, row: Row) -> int | None:
    """What the row adds to a sum, or None."""
    assert c.arg is not None
    names = columns(c.arg)
    given = {}
    for name in names:
        value = row[name]
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return None
        low, high = BOUNDS[name]
        given[name] = min(Fraction(high), max(Fraction(low), Fraction(value)))
    units = Fraction(ARGUMENTS[names][1](**given)) / c.grid
    whole = math.floor(abs(units) + Fraction(1, 2)) * (1 if units >= 0 else -1)
    y = max(c.lo, min(c.hi, whole - c.center))
    return math.floor(Fraction(y**2, c.step) + Fraction(1, 2)) - c.shift if isinstance(c, ProductSum) else y


def columns(e: Expr) -> frozenset[str]:
    return frozenset(x.name for x in walk(e) if isinstance(x, Column))


def chosen(c: Component, rows: Sequence[Row]) -> list[Row]:
    return [r for r in rows if c.filter is None or (r["qty"] is not None and r["qty"] > 3)]


def partial(c: Component, rows: Sequence[Row]) -> int:
    """The sum or count of some rows."""
    rows = chosen(c, rows)
    match c:
        case RowCount():
            return sum(c.arg is None or argument(ValueSum(c.arg), r) is not None for r in rows)
        case ValueSum() | ProductSum():
            return sum(v for r in rows if (v := argument(c, r)) is not None)
        case UnitCount():
            return len({r["id"] for r in rows})
        case DistinctCount():
            assert c.arg is not None
            (name,) = columns(c.arg)
            return len({r[name] for r in rows} - {None})


def expected(node: Release, b: BoundContributions | None, rows: Sequence[Row], order: Callable[[Key], Any]) -> Vector:
    """Key → integers, from rows that carry their key; rows of nobody and of no released key are left out already."""
    totals: Vector = defaultdict(lambda: [0] * len(node.components))
    if b is None:
        by_key: dict[Key, list[Row]] = defaultdict(list)
        for row in rows:
            by_key[row["key"]].append(row)
        return {key: [partial(c, own) for c in node.components] for key, own in by_key.items()}
    by_id: dict[Any, dict[Key, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_id[row["id"]][row["key"]].append(row)
    for owner, groups in by_id.items():
        if b.truncate_groups and b.keys:
            groups = {key: groups[key] for key in in_order(owner, groups, order)[: b.groups]}
        for i, c in enumerate(node.components):
            if isinstance(c, DistinctCount):
                continue
            for key, own in groups.items():
                totals[key][i] += share(b, c, own, groups)
    for i, c in enumerate(node.components):
        if isinstance(c, DistinctCount):
            for key, x in distinct(b, c, by_id, order):
                totals[key][i] += bool(x)
    return dict(totals)


def distinct(
    b: BoundContributions, c: Component, by_id: dict[Any, dict[Key, list[Row]]], order: Callable[[Key], Any]
) -> Iterator[tuple[Key, bool]]:
    """Each key once for each of its distinct values that some id keeps."""
    assert c.arg is not None
    (name,) = columns(c.arg)
    limit = b.rows if b.rows is not None else (b.per_group or 0) * (b.groups or 0)
    kept: set[Key] = set()
    for owner, groups in by_id.items():
        held = in_order(owner, groups, order)[: b.groups] if b.truncate_groups and b.keys else list(groups)
        found = {(*key, r[name]) for key in held for r in chosen(c, groups[key]) if r[name] is not None}
        kept |= set(in_order(owner, found, order)[:limit])
    for found_key in kept:
        yield found_key[:-1], True


def in_order(owner: Any, found: Iterable[Key], order: Callable[[Key], Any]) -> list[Key]:
    """The groups or values of one id, in its order."""
    return sorted(found, key=lambda what: order((owner, *what)))


def share(b: BoundContributions, c: Component, own: list[Row], groups: dict[Key, list[Row]]) -> int:
    """The definition for one id in one group."""
    F, B, n, K, S = c.weight, c.magnitude, len(own), len(groups), partial(c, own)
    spread = bool(b.keys) and not b.few_groups and not b.truncate_groups
    alone = isinstance(c, ValueSum) and not c.paired
    G = b.groups or b.rows
    assert G is not None
    if isinstance(c, UnitCount):
        return (F * G * S) // max(K, G) if spread else S
    if b.rows is not None:
        C = b.rows
        if not alone:
            return _towards_zero(F * S * C, max(sum(map(len, groups.values())), C))
        if not b.keys:
            return max(min(0, C * c.lo), min(max(0, C * c.hi), S))
        return _towards_zero(F * S * C * B, max(C * B, sum(abs(partial(c, rows)) for rows in groups.values()), 1))
    M = b.per_group
    assert M is not None
    if alone:
        S = max(min(0, M * c.lo), min(max(0, M * c.hi), S))
        return _towards_zero(F * S * G, max(K, G)) if spread else F * S
    return _towards_zero(F * S * M * G, max(n, M) * max(K, G)) if spread else _towards_zero(F * S * M, max(n, M))


# --- the shapes -----------------------------------------------------------------------------------------------------


def as_chosen(m: pytest.MonkeyPatch) -> None:
    """What the planner takes."""


def joined_first(m: pytest.MonkeyPatch) -> None:
    m.setattr(weighted, "early", lambda *_: None)


def weights_in_128_bits(m: pytest.MonkeyPatch) -> None:
    m.setattr(weights, "SMALL", 0)


def texts_as_they_are(m: pytest.MonkeyPatch) -> None:
    """Groups are keyed by the texts of public lists."""
    m.setattr(weighted, "coded_keys", lambda node, dialect: [()] * len(node.keys))


def all_ids_corrected(m: pytest.MonkeyPatch) -> None:
    """Also those that are within their limits, by 0."""
    original = weighted._weighted

    def above(*given: Any) -> Any:
        term = original(*given)
        return replace(term, above="TRUE") if term.above else term

    m.setattr(weighted, "_weighted", above)


def in_windows(m: pytest.MonkeyPatch) -> None:
    """Limits are compared in windows over the partial sums, which are read once."""
    m.setattr(type(DUCKDB), "weighs_in_windows", True)


def in_windows_in_128_bits(m: pytest.MonkeyPatch) -> None:
    in_windows(m)
    weights_in_128_bits(m)


def in_windows_all_above(m: pytest.MonkeyPatch) -> None:
    """Also ids that are within their limits, which must add the same."""
    in_windows(m)
    all_ids_corrected(m)


def decimals_in_128_bits(m: pytest.MonkeyPatch) -> None:
    m.setattr(quantize, "MOST_DIGITS", 0)


def groups_counted(m: pytest.MonkeyPatch) -> None:
    """Weights by groups per id where few groups make them needless."""
    original = choose.weighted

    def spread(node: Release, below: Tagged[Any], *rest: Any) -> Any:
        bounding = below.node
        assert isinstance(bounding, BoundContributions)
        return original(node, replace(below, node=replace(bounding, few_groups=False)), *rest)

    m.setattr(choose, "weighted", spread)


def two_levels(m: pytest.MonkeyPatch) -> None:
    """Per id, with limits that nobody reaches, where ids need no level of their own."""
    original = choose.direct

    def bounded(node: Release, below: Tagged[Any], *rest: Any) -> Any:
        if not below.fact.ids:
            return original(node, below, *rest)
        uid = min(below.fact.ids)
        id_column = next(c for c in output_columns(below.node) if c.uid == uid)
        bounding = BoundContributions(below.node, id_column, node.keys, None, 1000, 1000)
        return weighted.weighted(node, Tagged(bounding, bound_contributions(bounding, below.fact), (below,)), *rest)

    m.setattr(choose, "direct", bounded)


SHAPES = [
    as_chosen,
    joined_first,
    weights_in_128_bits,
    texts_as_they_are,
    all_ids_corrected,
    in_windows,
    in_windows_in_128_bits,
    in_windows_all_above,
    decimals_in_128_bits,
    groups_counted,
    two_levels,
]


# --- queries --------------------------------------------------------------------------------------------------------

FROM = {
    "orders": "FROM orders",
    "people": "FROM people",
    "both": "FROM people JOIN orders ON id = person",
}


def query(rng: random.Random, rows: bool) -> tuple[str, str, list[str], ContributionLimits]:
    """Text, source, keys, and the limits of the query."""
    source = rng.choice(["orders", "people"] if rows else ["orders", "both", "both", "people"])
    has_orders, has_people = source != "people", source != "orders"
    keys = [["region"], []] if has_people else [[]]
    keys += [["kind"], ["qty > 4"], ["kind", "qty > 4"], ["town"]] if has_orders else []
    by = rng.choice(keys)
    aggregated_early = source == "both" and rng.random() < 0.4
    by = ["region"] if aggregated_early else by
    ages = has_people and not aggregated_early
    arguments = [text for names, (text, _) in ARGUMENTS.items() if (ages if "age" in names else has_orders)]
    found = ["COUNT(*)"]
    for _ in range(rng.randint(1, 3)):
        text = f"{rng.choice(['SUM', 'SUM', 'AVG', 'COUNT', 'VAR_POP'])}({rng.choice(arguments)})"
        found.append(text + (f" FILTER (WHERE {FILTER})" if has_orders and rng.random() < 0.3 else ""))
    if not rows and rng.random() < 0.4:
        found.append(f"COUNT(DISTINCT {'person' if has_orders else 'id'})")
    if rng.random() < 0.4 and not aggregated_early:
        found.append(f"COUNT(DISTINCT {'kind' if has_orders else 'region'})")
    where = f" WHERE {rng.choice(['qty > 0', 'amount < 60'])}" if has_orders and rng.random() < 0.4 else ""
    grouped = f" GROUP BY {', '.join(by)}" if by else ""
    text = f"SELECT {', '.join([*by, *found])} {FROM[source]}{where}{grouped}"
    limits = ContributionLimits()
    if not rows and has_orders:
        limits = (
            ContributionLimits(rng.choice([1, 3, 50]))
            if rng.random() < 0.5
            else ContributionLimits(None, rng.choice([1, 2, 50]), 2)
        )
    return text, source, by, limits


def relation(source: str, text: str, people: list[Row], orders: list[Row], with_ids: bool) -> list[Row]:
    """The rows of FROM and WHERE, each with its `id`; rows of nobody are left out."""
    match source:
        case "people":
            rows = [dict(p) for p in people]
        case "orders":
            rows = [{**o, "id": o["person"]} for o in orders]
        case _:
            rows = [{**o, **p} for p in people for o in orders if o["person"] == p["id"]]
    if "WHERE qty > 0" in text:
        rows = [r for r in rows if r["qty"] is not None and r["qty"] > 0]
    if "WHERE amount < 60" in text:  # NaN is the greatest number
        rows = [r for r in rows if r["amount"] is not None and r["amount"] < 60]
    return [r for r in rows if r["id"] is not None] if with_ids else rows


def check(seed: int, shapes: Sequence[Shape], seen: set[str]) -> int:
    """Compare shapes for one random query with Python; the number of integers that are not 0."""
    rng = random.Random(seed)
    by_rows = rng.random() < 0.2
    connection, people, orders = database(rng)
    text, source, by, limits = query(rng, by_rows)
    settings = settled({"epsilon": 1, "delta": "1e-6"}, replace(QuerySettings(), limits=limits))
    plan = static_plan(Source(text), parse_policy(ROWS if by_rows else POLICY), settings=settings)
    (tagged,) = (t for t in plan.tree.walk() if isinstance(t.node, Release))
    node = tagged.node
    assert isinstance(node, Release)
    bounding = node.input if isinstance(node.input, BoundContributions) else None
    keyed = node.input if bounding is None else bounding.input
    assert isinstance(keyed, GroupKeys)
    allowed = None if keyed.sources is None else set(public_keys(keyed.sources, len(node.keys)))
    rows = relation(source, text, people, orders, not by_rows)
    for row in rows:
        row["key"] = tuple(KEYS[k](row) for k in by)
    rows = [r for r in rows if allowed is None or r["key"] in allowed]

    def order(values: Key) -> Any:
        kinds = {bool: "BOOLEAN", int: "BIGINT"}
        typed = [f"CAST({_literal(v)} AS {kinds.get(type(v), 'VARCHAR')})" for v in values]
        return connection.execute(f"SELECT hash({', '.join([*typed, str(SALT)])})").fetchall()[0][0]

    reference = expected(node, bounding, rows, order)
    zeros = [0] * len(node.components)
    for shape in shapes:
        with pytest.MonkeyPatch.context() as m:
            shape(m)
            statements = choose.statements(tagged, DUCKDB, lambda name: f'"{name}"', {})
        seen |= {s.shape for s in statements}
        vector: Vector = {}
        for s in statements:
            for line in connection.execute(s.salted(SALT)).fetchall():
                for i, value in zip(s.components, line[len(by) :], strict=True):
                    vector.setdefault(tuple(line[: len(by)]), list(zeros))[i] = value
        for key in {**reference, **vector}:
            if allowed is None or key in allowed:
                assert vector.get(key, zeros) == reference.get(key, zeros), (seed, shape.__name__, text, key, limits)
    connection.close()
    return sum(v != 0 for values in reference.values() for v in values)


SEEDS = 70


def test_every_shape_gives_the_integers_of_the_rows() -> None:
    seen: set[str] = set()
    found = sum(check(seed, SHAPES, seen) for seed in range(SEEDS))
    assert found > 5 * SEEDS
    assert {"direct", "two-level", "two-level, weights per id", "two-level, truncated groups"} <= seen
    assert {"aggregated before the join", "distinct, truncated per id"} <= seen


# --- shapes that are wrong ------------------------------------------------------------------------------------------


def one_row_more(m: pytest.MonkeyPatch) -> None:
    original = weighted.over_rows
    m.setattr(weighted, "over_rows", lambda d, partial, F, B, most: original(d, partial, F, B, most + 1))


def one_row_more_in_all(m: pytest.MonkeyPatch) -> None:
    original = weights.divisors

    def more(floors: Any) -> tuple[str, str]:
        small, divisor = original(floors)
        return small, re.sub(r" AS (\w+)$", r" + 1 AS \1", divisor)

    m.setattr(weights, "divisors", more)


def shares_of_a_larger_limit(m: pytest.MonkeyPatch) -> None:
    original = weights._share
    m.setattr(weights, "_share", lambda d, held, size, F, most: original(d, held, f"({size} // 2)", F, most))


def corrected_too_late(m: pytest.MonkeyPatch) -> None:
    """An id just above its limit counts as if it were within."""
    original = weighted._weighted

    def late(*given: Any) -> Any:
        term = original(*given)
        return replace(term, above=re.sub(r"> (\d+|CAST\(\d+ AS HUGEINT\))$", r"> \1 + 1", term.above))

    m.setattr(weighted, "_weighted", late)


def texts_of_another_list(m: pytest.MonkeyPatch) -> None:
    """A text of the list is taken for NULL."""
    original = type(DUCKDB).listed
    m.setattr(type(DUCKDB), "listed", lambda d, sql, texts: original(d, sql, texts[1:] or ["?"]))


def early_without_its_conditions(m: pytest.MonkeyPatch) -> None:
    original = weighted.early

    def loose(*given: Any) -> Any:
        found = original(*given)
        return None if found is None else replace(found, many=replace(found.many, where=()))

    m.setattr(weighted, "early", loose)


def one_more_kept(m: pytest.MonkeyPatch) -> None:
    """One group, or one distinct value, more for each id."""
    original = choose.weighted

    def more(*given: Any) -> Any:
        return tuple(
            replace(s, sql=re.sub(r"(\) <= )(\d+)\)", lambda x: f"{x[1]}{int(x[2]) + 1})", s.sql))
            for s in original(*given)
        )

    m.setattr(choose, "weighted", more)


def rounded_down(m: pytest.MonkeyPatch) -> None:
    m.setattr(quantize, "_rounded", lambda d, sql, step, ends, type_: f"({sql}) // CAST({step} AS {type_})")


def groups_never_counted(m: pytest.MonkeyPatch) -> None:
    original = choose.weighted

    def few(node: Release, below: Tagged[Any], *rest: Any) -> Any:
        bounding = below.node
        assert isinstance(bounding, BoundContributions)
        return original(node, replace(below, node=replace(bounding, few_groups=bounding.rows is None)), *rest)

    m.setattr(choose, "weighted", few)


def windows_of_everybody(m: pytest.MonkeyPatch) -> None:
    in_windows(m)
    m.setattr(weights, "_over", lambda d: " OVER ()")


def windows_of_groups_with_keys(m: pytest.MonkeyPatch) -> None:
    """A group whose key is NULL is not counted."""
    in_windows(m)
    original = weighted.over_groups

    def without_null(*given: Any) -> Any:
        term = original(*given)
        counted = {name: sql.replace("COUNT(*)", "COUNT(k0)") for name, sql in term.per_id.items()}
        return replace(term, per_id=counted)

    m.setattr(weighted, "over_groups", without_null)


def windows_that_correct_nobody(m: pytest.MonkeyPatch) -> None:
    in_windows(m)
    m.setattr(weights.WeightedTerm, "chosen", property(lambda term: term.within))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "shape",
    [
        one_row_more,
        one_row_more_in_all,
        corrected_too_late,
        texts_of_another_list,
        shares_of_a_larger_limit,
        early_without_its_conditions,
        one_more_kept,
        rounded_down,
        groups_never_counted,
        windows_of_everybody,
        windows_of_groups_with_keys,
        windows_that_correct_nobody,
    ],
    ids=lambda shape: shape.__name__,
)
def test_a_wrong_shape_is_seen(shape: Shape) -> None:
    with pytest.raises(AssertionError, match=shape.__name__):
        for seed in range(SEEDS):
            check(seed, [shape], set())
