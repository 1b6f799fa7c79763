"""Weights (F4): what one (id, group) adds to a component, its partial times a weight, an integer that fits 64 bits.

*Claim.* A term adds `within` for each (id, group), and `over - within` besides for those of ids above a limit over
their groups: in all `over`, which is the weight of the definition times the partial. In windows the one or the other
is chosen for each. *Why.* `over` equals `within` for
an id that is within its limits, so the ids that `above` does not name need no correction, and one that it names
without need is corrected by 0. *When it would be false.* An `above` that misses an id for which they differ; a `within`
of two texts.
*Proved by* Bounds.rows_l1, Bounds.groups_l1, Bounds.groups_linf, Bounds.groups_sq. *Not proved:* windows, 64 bits.
*Tested by* tests/core/printing/test_weights.py, tests/deep/core/printing/test_every_shape.py.

F: the weight grid. r: the rows of an id that count, C or M·G. B: the largest |integer| of a row; F·r·B ≤ 2⁴⁰. `//`
truncates towards zero, so that a // (b·c) = (a // b) // c. A partial sum is at most n·B: while n and K are small,
products stay below 2⁶³, and 64 bits are used; otherwise below 2¹²⁰. No expression relies on its guard being looked at
first: what is too large for 64 bits counts as 0 in the arm that is not chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dpsql.core.ir.contributions import UnitTotal
from dpsql.core.ir.types import BIGINT, HUGEINT
from dpsql.core.printing.dialect import Dialect

SMALL = 2**22
"""Rows and groups of one id up to which its weights are computed in 64 bits."""


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """One component's weighted partials. Texts read the columns of a row per (id, group), `over` those per id as well.

    columns: what such a row holds for them, of the partials: name → SQL. per_id: aggregates of these rows for each id,
    name → SQL. above: a condition on those aggregates (not their names). shared: columns to list beside both.
    """

    within: str
    over: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    per_id: Mapping[str, str] = field(default_factory=dict)
    above: str = ""
    shared: tuple[str, ...] = ()

    @property
    def correction(self) -> str:
        """What ids above their limits add besides."""
        return f"({self.over}) - ({self.within})" if self.over else "0"

    @property
    def chosen(self) -> str:
        """What an id adds, by whether `is_above` holds for it."""
        return f"CASE WHEN is_above THEN {self.over} ELSE {self.within} END" if self.over else self.within


def over_groups(d: Dialect, i: int, sql: str, most: int) -> WeightedTerm:
    """sql // most of an id in up to `most` groups, else sql // K. sql: reads the partials; fits 64 bits."""
    q, groups = f"q{i}", f"CASE WHEN kk > {most} THEN kk ELSE {most} END"
    groups_of_id = f"COUNT(*){_over(d)}"
    return WeightedTerm(
        q if most == 1 else d.divide(q, str(most), BIGINT), d.divide(q, f"({groups})", BIGINT), {q: sql},
        {"kk": groups_of_id}, f"{groups_of_id} > {most}",
    )  # fmt: skip


def over_shares(d: Dialect, i: int, present: str, steps: Sequence[tuple[int, int]]) -> WeightedTerm:
    """A weight for each group of an id that is present, by how many there are: integers, and 0 beyond the last step.

    steps: (K, w) in order: w in each of up to K groups; the first is of one group.
    """
    q, groups, of_id = f"q{i}", "kk", f"COUNT(*){_over(d)}"
    arms = " ".join(f"WHEN {groups} <= {most} THEN {w}" for most, w in steps)
    _, alone = steps[0]
    return WeightedTerm(
        f"{alone} * {q}", f"CASE {arms} ELSE 0 END * {q}", {q: present}, {groups: of_id},
        f"{of_id} > 1",
    )  # fmt: skip


def over_rows(d: Dialect, partial: str, factor: int, magnitude: int, most: int) -> str:
    """(factor · most · partial) // max(n, most): factor · partial for all who have no more than `most` rows."""
    if partial == "n":
        return f"{factor} * CASE WHEN n <= {most} THEN n ELSE {most} END"
    few = f"{factor} * {_held(d, partial, most, magnitude)}"
    divisor = f"CASE WHEN n BETWEEN {most} AND {SMALL} THEN n ELSE {most} END"
    more = d.divide(f"({factor * most} * {_held(d, partial, SMALL, magnitude)})", f"({divisor})", BIGINT)
    many = _wide(d, factor * most, partial, {"n": most})
    return f"CASE WHEN n <= {most} THEN {few} WHEN n <= {SMALL} THEN {more} ELSE {many} END"


def over_all_rows(d: Dialect, partial: str, factor: int, magnitude: int, most: int) -> WeightedTerm:
    """(factor · most · partial) // max(rows of the id, most)."""
    floors = {"nn": most}
    rows_of_id = d.total("n", BIGINT, _over(d))
    per_id = {"nn": d.cast(rows_of_id, BIGINT)}
    over = scaled(d, partial, factor * most, magnitude, floors)
    within = f"{factor} * {_held(d, partial, most, magnitude)}"
    columns = {"n": "n", partial: partial}
    return WeightedTerm(within, over, columns, per_id, f"{rows_of_id} > {most}", divisors(floors))


def over_total(d: Dialect, i: int, sql: str, factor: int, most: int) -> WeightedTerm:
    """factor · total while Σ|total| over the groups of the id is at most `most`, else scaled down. sql: in 128 bits."""
    of_id, above = _absolute(d, i)
    return WeightedTerm(
        _inside(d, f"h{i}", factor, most), _share(d, f"h{i}", f"a{i}", factor, most), {f"h{i}": sql}, of_id,
        f"{above} > {d.wide(str(most))}",
    )  # fmt: skip


def over_root(d: Dialect, i: int, sql: str, factor: int, most: int) -> WeightedTerm:
    """factor · total while √Σ total² over the groups of the id is at most `most`, else scaled down."""
    of_id, above = _absolute(d, i)
    held = f"h{i}"
    of_id[f"q{i}"] = d.total(f"{d.wide(held)} * {d.wide(held)}", HUGEINT, _over(d))
    root = f"{_root(d, f'q{i}', f'a{i}')} AS r{i}"
    # The integer root may be above Σ|total|, by little: half of the limit is below all whose root exceeds it.
    return WeightedTerm(
        _inside(d, held, factor, most), _share(d, held, f"r{i}", factor, most), {held: sql}, of_id,
        f"2 * {above} > {d.wide(str(most))}", (root,),
    )  # fmt: skip


def of_unit(d: Dialect, i: int, sql: str, factor: int, limit: UnitTotal) -> WeightedTerm:
    """The total of one (id, group), scaled down where the id adds more than its limit in all groups together.

    |total| ≤ 2⁶² and F·τ ≤ 2⁶², so that no product reaches 2¹²⁵; Σ|total| is below 2¹⁰³ for 2⁴⁰ groups of an id.
    """
    return (over_total if limit.norm == "l1" else over_root)(d, i, sql, factor, limit.most)


def _absolute(d: Dialect, i: int) -> tuple[dict[str, str], str]:
    """Σ|total| of an id, as an aggregate to list and to compare."""
    of_id = {f"a{i}": d.total(f"ABS(h{i})", HUGEINT, _over(d))}
    return of_id, of_id[f"a{i}"]


def _over(d: Dialect) -> str:
    """Behind an aggregate of all groups of an id."""
    return " OVER (PARTITION BY u)" if d.weighs_in_windows else ""


def _inside(d: Dialect, held: str, factor: int, most: int) -> str:
    """factor · held, in 64 bits, of what lies within the limit."""
    inside = f"CASE WHEN {held} BETWEEN {d.end(-most)} AND {d.end(most)} THEN {held} ELSE 0 END"
    return f"{factor} * {d.cast(inside, BIGINT)}"


def _share(d: Dialect, held: str, size: str, factor: int, most: int) -> str:
    """(factor · most · held) // max(size, most); |held| ≤ size."""
    share = d.divide(f"({d.wide(str(factor * most))} * {held})", d.greatest(size, d.wide(str(max(1, most)))), HUGEINT)
    return d.cast(share, BIGINT)


def _root(d: Dialect, squares: str, absolute: str) -> str:
    """An integer r ≥ √squares, close to it: the DOUBLE's root, one that is larger by its rounding, or Σ|total|."""
    near = d.near_root(squares)
    above = f"({near} + {d.divide(near, d.wide(str(2**48)), HUGEINT)} + 1)"
    arms = (f"WHEN {r} * {r} >= {squares} THEN {r}" for r in (near, above))
    return f"CASE {' '.join(arms)} ELSE {absolute} END"


def scaled(d: Dialect, partial: str, factor: int, magnitude: int, floors: Mapping[str, int]) -> str:
    """(factor · partial) // Π max(counter, floor), in 64 bits wherever the counters are small enough.

    factor · B ≤ 2⁴⁰ and |partial| ≤ n · B: with all counters up to 2²² no product reaches 2⁶³. HUGEINT division costs
    twice the rest of the query. The quotient is at most factor · B, so it always fits. Reads the columns of `divisors`.
    """
    small, divisor = _names(floors)
    narrow = d.divide(f"({factor} * {_held(d, partial, SMALL, magnitude)})", divisor, BIGINT)
    return f"CASE WHEN {small} THEN {narrow} ELSE {_wide(d, factor, partial, floors)} END"


def _held(d: Dialect, partial: str, rows: int, magnitude: int) -> str:
    """A partial of at most so many rows in 64 bits; 0 in place of one that is too large for them."""
    cap = rows * magnitude
    low, high = (str(end) if magnitude == 1 else d.end(end) for end in (-cap, cap))
    return d.cast(f"CASE WHEN {partial} BETWEEN {low} AND {high} THEN {partial} ELSE 0 END", BIGINT)


def _wide(d: Dialect, factor: int, partial: str, floors: Mapping[str, int]) -> str:
    product = " * ".join(d.greatest(d.wide(name), d.wide(str(floor))) for name, floor in floors.items())
    return d.cast(d.divide(f"({d.wide(str(factor))} * {d.wide(partial)})", f"({product})", HUGEINT), BIGINT)


def divisors(floors: Mapping[str, int]) -> tuple[str, str]:
    """Whether all counters are small, and then Π max(counter, floor): columns that all terms with these floors share.

    CASE, because GREATEST and LEAST of every row cost as much as the division. At least 1, and below 2⁶³, whatever the
    counters: the floors' product is at most 2³².
    """
    small, divisor = _names(floors)
    checked = " AND ".join(f"{name} <= {SMALL}" for name in floors)
    product = " * ".join(
        f"CASE WHEN {name} BETWEEN {floor} AND {SMALL} THEN {name} ELSE {floor} END" for name, floor in floors.items()
    )
    return f"{checked} AS {small}", f"{product} AS {divisor}"


def _names(floors: Mapping[str, int]) -> tuple[str, str]:
    """Names of the two columns of `divisors`."""
    own = "_".join(f"{name}{floor}" for name, floor in floors.items())
    return f"s_{own}", f"d_{own}"
