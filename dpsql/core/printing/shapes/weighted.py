"""Bounded contributions of ids: partial sums per (id, group), then exact integer weights.

    p: one row per (id, group) with n rows and partial aggregates, those of slices by their numbers (sliced.py)
    q: what weights need of p, and g: of each id above a limit its K groups or N rows; only if a weight needs them
    result: Σ over p of weight · partial, by group. With g: Σ over q as if every id were within its limits, and Σ over q
        and g of the difference, of the ids that are not (weights.py)

In windows g is q with what its id has in all beside each row, and the result Σ over g of what an id adds, above its
limits or within.

Other ids' weights depend on their own rows alone, so adding an id moves only its own vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dpsql.core.analysis.facts import Contribution, Facts
from dpsql.core.analysis.public_groups import released_groups
from dpsql.core.ir.components import Component, DistinctCount, DistinctSum, RowCount, SharedUnits, ValueSum
from dpsql.core.ir.contributions import SATURATED, UnitTotal
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import BoundContributions, GroupKeys, Node, Release
from dpsql.core.ir.types import BIGINT, DOUBLE, INTEGER, VARCHAR
from dpsql.core.ir.walk import Tagged
from dpsql.core.measures.all_measures import largest_contribution, rule
from dpsql.core.measures.shared_units import steps as weights_by_groups
from dpsql.core.printing.dialect import Dialect, Typed
from dpsql.core.printing.expressions import Aliases, Block, Names, TableNames, spell
from dpsql.core.printing.forms import sliced
from dpsql.core.printing.forms.clip import only, only_if
from dpsql.core.printing.forms.few_values import kept_values
from dpsql.core.printing.forms.kept_groups import kept_groups, rows_of_kept_groups
from dpsql.core.printing.forms.sliced import Sets, grouped, in_slice, places, rows_of_slices, sliced_sets, unfiltered
from dpsql.core.printing.forms.weights import (
    WeightedTerm,
    of_unit,
    over_all_rows,
    over_groups,
    over_rows,
    over_shares,
    over_total,
)
from dpsql.core.printing.grid_integers import clipped_column, held_in
from dpsql.core.printing.relational_nodes import Emitter
from dpsql.core.printing.shapes.aggregate_before_join import Early, early
from dpsql.core.printing.shapes.cells import histogram
from dpsql.core.printing.shapes.coded_keys import coded_keys
from dpsql.core.printing.shapes.direct import grouping, total
from dpsql.core.printing.shapes.release_statement import Statement
from dpsql.core.printing.shapes.weighed_rows import weighed, with_steps
from dpsql.core.printing.waist import conditions, text, waist

FAR = 2**80
FAR_OF_DOUBLES = 2**52
"""Ends that a total which no DOUBLE holds is beyond. As F·r·B ≤ 2⁴⁰, all are within."""
MOST_GROUPS = 2**40
"""Of one id, where nothing else limits them: as many as a table has rows."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """The pieces every statement of one release is built from."""

    dialect: Dialect
    node: Release
    bounding: BoundContributions
    limits: Contribution
    block: Block
    early: Early | None = None

    @property
    def keys(self) -> tuple[Column, ...]:
        """The key columns."""
        return self.node.keys

    @property
    def unit(self) -> int:
        """The column of the id."""
        return self.bounding.id.uid

    @property
    def names(self) -> list[str]:
        """Printed names of the key columns after the first level."""
        return [f"k{i}" for i in range(len(self.keys))]

    @property
    def truncates(self) -> bool:
        """Whether each id keeps some of its groups only."""
        return self.bounding.truncate_groups and bool(self.keys)

    @property
    def group(self) -> list[Typed]:
        """What a group of an id is after the first level: the id, then the keys."""
        return [("u", self.bounding.id.type), *zip(self.names, (k.type for k in self.node.keys), strict=True)]


def weighted(
    node: Release, below: Tagged[Facts], d: Dialect, tables: TableNames, released: Mapping[Node, str]
) -> tuple[Statement, ...]:
    """The statement for counts and sums, one for each COUNT(DISTINCT …), and one for each histogram."""
    bounding, limits = below.node, below.fact.contribution
    assert isinstance(bounding, BoundContributions) and limits is not None
    block = Emitter(d, tables, released, Aliases()).block(below)
    block = block.filtered(f"{block.names.sql[bounding.id.uid]} IS NOT NULL")
    parts = _Parts(d, node, bounding, limits, block, early(node, below, d, tables, released))
    added = [i for i, c in enumerate(node.components) if not rule(c).chosen]
    plain = tuple(i for i in added if rule(node.components[i]).counts != "values")
    found = [_sums(parts, plain)] if plain else []
    found += [_distinct(parts, i) for i in added if i not in plain]
    found += [_histogram(parts, at, sets) for sets, at in sliced.choices(node)]
    return tuple(found)


def _partials(parts: _Parts, components: tuple[int, ...], coded: Sequence[Sequence[str]] = ()) -> str:
    """p: per (id, group). coded: of each key the texts of a list by whose places it is written, if it is."""
    if parts.early is not None:
        return _joined_later(parts, parts.early, components)
    sets = sliced_sets(parts.node, components)

    def listed(names: Names) -> list[str]:
        given = zip((names.sql[k.uid] for k in parts.keys), coded or [()] * len(parts.keys), strict=True)
        keys = [f"{parts.dialect.listed(sql, texts) or sql} AS k{i}" for i, (sql, texts) in enumerate(given)]
        return [f"{names.sql[parts.unit]} AS u", *keys, *_aggregates(parts, names, components, sets)]

    return grouped(parts.block, sets, parts.node.components, listed, 1 + len(parts.keys))


def _joined_later(parts: _Parts, early: Early, components: tuple[int, ...]) -> str:
    """p: per id, then joined to the one row that holds its group."""
    sets = sliced_sets(parts.node, components)

    def listed(names: Names) -> list[str]:
        return [f"{names.sql[early.unit]} AS u", *_aggregates(parts, names, components, sets)]

    inner = grouped(early.many, sets, parts.node.components, listed, 1)
    keys = [f"{early.one.names.sql[k.uid]} AS k{i}" for i, k in enumerate(parts.node.keys)]
    later = replace(early.one, source=f"({inner}) AS s\nJOIN {early.one.source} ON s.u = {early.match}")
    return f"SELECT s.*, {', '.join(keys)}\n{later.clause()}"


def _aggregates(parts: _Parts, names: Names, components: tuple[int, ...], sets: Sets) -> list[str]:
    """The number n of rows of a group, and its partial aggregates, as m<component>."""
    listed = ["COUNT(*) AS n"]
    for place, rows in enumerate(rows_of_slices(sets, parts.node.components)):
        more = [(slice_, name) for slice_, name in enumerate(rows) if name.startswith("n")]
        listed += [f"COUNT(*){only([in_slice(place, slice_, names)])} AS {name}" for slice_, name in more]
    at, plain = places(sets), unfiltered(parts.node.components, sets)
    for i in components:
        c, slice_ = plain[i], in_slice(*at[i], names) if i in at else ""
        if _counts_rows(c) and not slice_:
            continue
        if rule(c).counts == "ids":
            listed.append(f"COUNT(*){only([slice_] if slice_ else conditions(c, names))} AS m{i}")
            continue
        sql = total(c, names, plain, [], rising=_rises(c, parts), slice_=slice_)
        end = None if c.of_unit is None else _saturation(c, c.of_unit, parts)
        listed.append(f"{sql if end is None else _clipped(parts.dialect, sql, -end, end)} AS m{i}")
    return listed


def _sums(parts: _Parts, components: tuple[int, ...]) -> Statement:
    d, shape = parts.dialect, "two-level" if parts.early is None else "aggregated before the join"
    coded = () if parts.truncates or parts.early is not None else coded_keys(parts.node, d)
    steps = [f"p AS ({_partials(parts, components, coded)})"]
    if parts.truncates:
        steps.append(f"f AS ({kept_groups(d, parts.bounding, parts.group, 'p')})")
        shape = "two-level, truncated groups"
    sets = sliced_sets(parts.node, components)
    terms = {i: _weighted(parts.node.components[i], i, parts, sets) for i in components}
    source = "f" if parts.truncates else "p"
    if any(term.per_id for term in terms.values()):
        source, shape = _compared(terms, steps, parts), shape + ", weights per id"
        terms = {i: WeightedTerm(f"m{i}") for i in terms}
    sums = [f"COALESCE({d.total(term.within, BIGINT)}, 0) AS m{i}" for i, term in terms.items()]
    return Statement(_statement(steps, [*parts.names, *sums], source, parts, coded), components, shape)


def _compared(terms: Mapping[int, WeightedTerm], steps: list[str], parts: _Parts) -> str:
    """Rows m… that add up to what each (id, group) adds, once its id has been compared with its limits.

    steps: p alone becomes a part of q, of which the engine keeps the rows, and so computes them once.
    """
    terms = {i: t if t.per_id else WeightedTerm(f"m{i}", columns={f"m{i}": t.within}) for i, t in terms.items()}
    held: dict[str, str] = {}
    per_id: dict[str, str] = {}
    for term in terms.values():
        held |= term.columns
        per_id |= term.per_id
    kept = ["u", *parts.names, *(name if sql == name else f"{sql} AS {name}" for name, sql in held.items())]
    counted = [f"{sql} AS {name}" for name, sql in sorted(per_id.items())]
    above = " OR ".join(dict.fromkeys(term.above for term in terms.values() if term.above))
    source = "f" if parts.truncates else f"{steps.pop().removeprefix('p AS ')} AS p"
    read_twice = "" if parts.dialect.weighs_in_windows else "MATERIALIZED "
    steps.append(f"q AS {read_twice}(SELECT {', '.join(kept)}\nFROM {source})")
    shared = list(dict.fromkeys(sql for term in terms.values() for sql in term.shared))

    def sharing(source: str) -> str:
        return f"(SELECT *, {', '.join(shared)} FROM {source}) AS w" if shared else source

    def row(texts: Iterable[str]) -> str:
        return ", ".join([*parts.names, *(f"{sql} AS m{i}" for i, sql in zip(terms, texts, strict=True))])

    if parts.dialect.weighs_in_windows:
        steps.append(f"g AS (SELECT *, {', '.join(counted)}, {above} AS is_above FROM q)")
        return f"(SELECT {row(t.chosen for t in terms.values())}\nFROM {sharing('g')}) AS s"
    # A row for each (id, group), and one more for those of ids above their limits: few, so that few are joined.
    steps.append(f"g AS (SELECT u, {', '.join(counted)} FROM q GROUP BY u HAVING {above})")
    within, more = row(t.within for t in terms.values()), row(t.correction for t in terms.values())
    both = sharing("q JOIN g USING (u)")
    return f"(SELECT {within} FROM q\nUNION ALL\nSELECT {more}\nFROM {both}) AS s"


def _statement(
    steps: list[str], listed: list[str], relation: str, parts: _Parts, coded: Sequence[Sequence[str]] = ()
) -> str:
    found = f"SELECT {', '.join(listed)}\nFROM {relation}{grouping(parts.keys)}"
    if any(coded):
        d = parts.dialect
        cast = [f"{d.cast(name, VARCHAR)} AS {name}" for name in parts.names]
        texts = [text if code else name for text, name, code in zip(cast, parts.names, coded, strict=True)]
        shown = [*texts, *(sql.rpartition(" AS ")[2] for sql in listed[len(texts) :])]
        found = f"SELECT {', '.join(shown)}\nFROM ({found}) AS c"
    return with_steps(steps) + found


def _weighted(c: Component, i: int, parts: _Parts, sets: Sets) -> WeightedTerm:
    """The weighted contribution of one (id, group), by its form of bounding: a BIGINT of at most F·r·B."""
    d, b, F, B = parts.dialect, parts.bounding, c.weight, c.magnitude
    grouped = bool(parts.keys)
    k_factor = grouped and not b.few_groups and not b.truncate_groups
    held = "n" if _counts_rows(c) else f"m{i}"
    if rule(c).counts == "ids":
        present = sliced.is_present(i, sets, parts.node.components)
        if isinstance(c, SharedUnits):
            return over_shares(d, i, present, weights_by_groups(F, parts.limits.most_groups))
        if not k_factor:
            return WeightedTerm(present)
        most = largest_contribution(c, parts.limits).in_all
        return over_groups(d, i, f"{F * most} * {present}", most)
    if c.of_unit is not None:
        if b.one_group:
            return WeightedTerm(d.cast(_clipped(d, d.wide(held), -c.of_unit.most, c.of_unit.most), BIGINT))
        return of_unit(d, i, held, F, c.of_unit)
    if b.rows is not None:
        if rule(c).alone(c):
            if not grouped:
                return WeightedTerm(_clipped_sum(parts, i, b.rows))
            held = _saturated(d, i) if c.per_group is None else d.wide(_clipped_sum(parts, i, b.rows))
            return over_total(d, i, held, F, largest_contribution(c, parts.limits).in_all)
        if not grouped:
            return WeightedTerm(over_rows(d, held, F, B, b.rows))
        term = over_all_rows(d, held, F, B, b.rows)
        if c.per_group is None:
            return term
        end = str(F * c.most_per_group)
        return replace(term, within=d.least(term.within, end), over=d.least(term.over, end))
    G = _int(b.groups) if k_factor else 1
    M = _int(b.per_group) if c.per_group is None or rule(c).adds_values else c.most_per_group
    if rule(c).alone(c):
        sql = _clipped_sum(parts, i, M)
        sql = sql if F * G == 1 else f"{F * G} * {sql}"
    else:
        sql = over_rows(d, held, F * G, B, M)
    return over_groups(d, i, sql, G) if k_factor else WeightedTerm(sql)


def _histogram(parts: _Parts, at: tuple[int, ...], sets: Sets) -> Statement:
    """Cells of values: each row counts with its id's weight."""
    c = parts.node.components[at[0]]
    weights = None if rule(c).counts == "ids" else partial(weighed, c, parts.dialect, parts.bounding, parts.group)
    return histogram(parts.block, parts.node, at, (parts.unit,), weights, sets)


def _saturation(c: Component, limit: UnitTotal, parts: _Parts) -> int | None:
    """Where a total of an id is saturated, before it is taken together with its others; a count is never that large.

    Such that Σ total² ≤ 2¹²⁶, where it is needed.
    """
    if not rule(c).adds_values:
        return None
    return SATURATED if limit.norm == "l1" else 2 ** min(62, (126 - (_groups_of_an_id(parts) - 1).bit_length()) // 2)


def _groups_of_an_id(parts: _Parts) -> int:
    """In how many groups the rows of an id are at most, after the first level."""
    b = parts.bounding
    assert isinstance(b.input, GroupKeys)
    known = [released_groups(b.input), b.groups if b.truncate_groups or b.few_groups else None]
    return min([MOST_GROUPS, *(n for n in known if n is not None)])


def _clipped_sum(parts: _Parts, i: int, rows: int) -> str:
    """clip(S, min(0, r·lo), max(0, r·hi)), or to the ends per group; fits BIGINT; S is never NULL here."""
    d, c = parts.dialect, parts.node.components[i]
    low, high = (min(0, rows * c.ends[0]), max(0, rows * c.ends[1])) if c.per_group is None else c.ends_per_group
    m, ends = f"m{i}", (d.end(low), d.end(high))
    if _rises(c, parts):
        ends = d.constant(float(low), DOUBLE), d.constant(float(high), DOUBLE)
    inside = f"WHEN {m} BETWEEN {ends[0]} AND {ends[1]} THEN {m}"
    return d.cast(f"CASE {inside} WHEN {m} < {ends[0]} THEN {ends[0]} ELSE {ends[1]} END", BIGINT)


def _rises(c: Component, parts: _Parts) -> bool:
    """Whether the total of an id and group may be a DOUBLE.

    *Claim.* Clipped to ends within ±2⁵², it is the clipped exact total, in any order of rows. *Why.* No term is below
    0: a total below 2⁵³ is exact, and one from there on is the upper end either way. *When it would be false.* Terms of
    both signs, of which parts may be larger than the whole; a total that is read unclipped, to be scaled down (of
    averages, and over all groups of an id). *Tested by* tests/core/printing/test_rising_totals.py,
    tests/deep/core/printing/test_every_shape.py.
    """
    b = parts.bounding
    if not isinstance(c, ValueSum) or not rule(c).alone(c) or c.of_unit is not None or (b.rows and parts.keys):
        return False
    if c.lo < 0 or c.center or held_in(c) != INTEGER:
        return False
    ends = c.ends_per_group if c.per_group is not None else (0, (b.rows or _int(b.per_group)) * c.hi)
    return max(map(abs, ends)) <= FAR_OF_DOUBLES and parts.dialect.rising_total("") is not None


def _saturated(d: Dialect, i: int) -> str:
    return _clipped(d, f"m{i}", -FAR, FAR)


def _clipped(d: Dialect, sql: str, low: int, high: int) -> str:
    return d.least(d.greatest(sql, d.wide(str(low))), d.wide(str(high)))


def _int(value: int | None) -> int:
    assert value is not None
    return value


def _counts_rows(c: Component) -> bool:
    """COUNT(*) of every row: the number of rows that the partials hold anyway."""
    return isinstance(c, RowCount) and c.arg is None and c.filter is None


def _distinct(parts: _Parts, at: int) -> Statement:
    """COUNT and SUM(DISTINCT x): each id keeps its first D distinct (group, x), in an order of its own."""
    c = parts.node.components[at]
    assert isinstance(c, DistinctCount | DistinctSum)
    limit = rule(c).kept(c, parts.limits)
    added = isinstance(c, DistinctSum)
    type_ = held_in(c) if isinstance(c, DistinctSum) else spell(c.arg, parts.block.names)[1].type

    def listed(names: Names) -> list[str]:
        value = clipped_column(c, names) if isinstance(c, DistinctSum) else text(c.arg, names)[0]
        return [names.sql[parts.unit], *(names.sql[k.uid] for k in parts.keys), only_if(conditions(c, names), value)]

    items, block = waist(parts.block, listed)
    named, d = ["u", *parts.names, "x"], parts.dialect
    if not parts.truncates:
        block = block.filtered(f"{items[-1]} IS NOT NULL")
    shown = ", ".join(f"{sql} AS {name}" for sql, name in zip(items, named, strict=True))
    steps, source = [f"b AS (SELECT DISTINCT {shown}\n{block.clause()})"], " FROM b "
    if parts.truncates:  # what does not count is in groups, too
        steps.append(f"f AS ({rows_of_kept_groups(d, parts.bounding, parts.group, 'b', 'x')})")
        source = " FROM f WHERE x IS NOT NULL "
    kept = d.first_rows(f"SELECT {', '.join(named)}", source, kept_values(d, limit, c, parts.group, ("x", type_)))
    counted = f"COALESCE({d.total('x', type_, distinct=True)}, 0)" if added else "COUNT(DISTINCT x)"
    sql = _statement([*steps, f"t AS ({kept})"], [*parts.names, f"{counted} AS m{at}"], "t", parts)
    return Statement(sql, (at,), "distinct, truncated per id")
