"""Bounded contributions of ids: partial sums per (id, group), then exact integer weights.

    p: one row per (id, group) with n rows and partial aggregates
    g: one row per id with K groups and N rows, only if a weight needs them
    result: Σ over p of weight · partial, by group

F: the weight grid. r: the rows of an id that count, C or M·G. B: the largest |integer| of a row.

Other ids' weights depend on their own rows alone, so adding an id moves only its own vector. `//` truncates towards
zero; all products stay below 2¹²⁰ because F·r·B ≤ 2⁴⁰ and a partial sum is at most n·B; while n and K are small they
stay below 2⁶³, and 64 bits are used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from dpsql.core.analysis.facts import Contribution, Facts
from dpsql.core.analysis.public_groups import released_groups
from dpsql.core.ir.by_identity import ByIdentity
from dpsql.core.ir.components import SATURATED, Component, Measure, UnitTotal
from dpsql.core.ir.nodes import BoundContributions, GroupKeys, Node, Release
from dpsql.core.ir.types import BIGINT, HUGEINT
from dpsql.core.ir.walk import Tagged
from dpsql.core.measures.quantile import histograms
from dpsql.core.measures.table import largest_contribution, rule
from dpsql.core.printing.block import Block
from dpsql.core.printing.dialect import Dialect, Typed
from dpsql.core.printing.expressions import Aliases, TableNames, condition, spell
from dpsql.core.printing.grid_integers import held_in, quantized
from dpsql.core.printing.kept_first import first
from dpsql.core.printing.relations import Emitter
from dpsql.core.printing.shapes.aggregate_before_join import Early, early
from dpsql.core.printing.shapes.cells import histogram
from dpsql.core.printing.shapes.direct import grouping, total
from dpsql.core.printing.shapes.statement import Statement

FAR = 2**80
SMALL = 2**22
"""Rows and groups of one id up to which its weights are computed in 64 bits."""
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
    unit: str
    keys: tuple[str, ...]
    early: Early | None = None

    @property
    def names(self) -> list[str]:
        """Printed names of the key columns after the first level."""
        return [f"k{i}" for i in range(len(self.keys))]

    @property
    def group(self) -> list[Typed]:
        """What a group of an id is after the first level: the id, then the keys."""
        return [("u", self.bounding.id.type), *zip(self.names, (k.type for k in self.node.keys), strict=True)]


def weighted(
    node: Release, below: Tagged[Facts], d: Dialect, tables: TableNames, released: ByIdentity[Node, str]
) -> tuple[Statement, ...]:
    """The statement for counts and sums, one for each COUNT(DISTINCT …), and one for each histogram."""
    bounding, limits = below.node, below.fact.contribution
    assert isinstance(bounding, BoundContributions) and limits is not None
    block = Emitter(d, tables, released, Aliases()).block(below)
    unit = block.names.sql[bounding.id.uid]
    block = block.filtered(f"{unit} IS NOT NULL")
    keys = tuple(block.names.sql[k.uid] for k in node.keys)
    parts = _Parts(d, node, bounding, limits, block, unit, keys, early(node, below, d, tables, released))
    added = [i for i, c in enumerate(node.components) if not rule(c).chosen]
    plain = tuple(i for i in added if rule(node.components[i]).counts != "values")
    found = [_sums(parts, plain)] if plain else []
    found += [_distinct(parts, i) for i in added if i not in plain]
    found += [_histogram(parts, at) for at in histograms(node.components)]
    return tuple(found)


def _partials(parts: _Parts, components: tuple[int, ...]) -> str:
    """p: per (id, group)."""
    if parts.early is not None:
        return _joined_later(parts, parts.early, components)
    listed = [f"{parts.unit} AS u", *(f"{sql} AS k{i}" for i, sql in enumerate(parts.keys)), "COUNT(*) AS n"]
    listed += _aggregates(parts, parts.block, components)
    by = ", ".join(str(i + 1) for i in range(1 + len(parts.keys)))
    return f"SELECT {', '.join(listed)}\n{parts.block.clause()}\nGROUP BY {by}"


def _joined_later(parts: _Parts, early: Early, components: tuple[int, ...]) -> str:
    """p: per id, then joined to the one row that holds its group."""
    listed = [f"{early.unit} AS u", "COUNT(*) AS n", *_aggregates(parts, early.many, components)]
    inner = f"SELECT {', '.join(listed)}\n{early.many.clause()}\nGROUP BY 1"
    keys = [f"{early.one.names.sql[k.uid]} AS k{i}" for i, k in enumerate(parts.node.keys)]
    later = replace(early.one, source=f"({inner}) AS s\nJOIN {early.one.source} ON s.u = {early.match}")
    return f"SELECT s.*, {', '.join(keys)}\n{later.clause()}"


def _aggregates(parts: _Parts, block: Block, components: tuple[int, ...]) -> list[str]:
    """The partial aggregates of a group of rows, as m<component>."""
    listed = []
    for i in components:
        c = parts.node.components[i]
        if _counts_rows(c):
            continue
        if rule(c).counts == "ids":
            where = "" if c.filter is None else f" FILTER (WHERE {condition(c.filter, block.names)})"
            listed.append(f"COUNT(*){where} AS m{i}")
        else:
            sql = total(c, block.names, parts.node.components, [])
            end = None if c.of_unit is None else _saturation(c, c.of_unit, parts)
            listed.append(f"{sql if end is None else _clipped(parts.dialect, sql, -end, end)} AS m{i}")
    return listed


def _kept(parts: _Parts, source: str) -> str:
    """Each id's first G groups, in an order of its own."""
    d = parts.dialect
    return d.first_rows("SELECT *", f" FROM {source} ", first(d, _int(parts.bounding.groups), "u", parts.group))


def _sums(parts: _Parts, components: tuple[int, ...]) -> Statement:
    b, shape = parts.bounding, "two-level" if parts.early is None else "aggregated before the join"
    steps = [f"p AS ({_partials(parts, components)})"]
    source = "p"
    if b.truncate_groups and parts.keys:
        steps.append(f"f AS ({_kept(parts, 'p')})")
        source, shape = "f", "two-level, truncated groups"
    terms = [(i, _weighted(parts.node.components[i], i, parts)) for i in components]
    needed: dict[str, str] = {}
    for _, term in terms:
        needed.update(term.per_id)
    relation = source
    if needed:
        per_id = ", ".join(f"{sql} AS {name}" for name, sql in sorted(needed.items()))
        steps.append(f"g AS (SELECT u, {per_id} FROM {source} GROUP BY u)")
        relation, shape = f"{source} JOIN g USING (u)", shape + ", weights per id"
    shared = dict.fromkeys(sql for _, term in terms for sql in term.shared)
    if shared:
        relation = f"(SELECT *, {', '.join(shared)} FROM {relation}) AS w"
    listed = [*parts.names, *(f"COALESCE({parts.dialect.total(term.sql, BIGINT)}, 0) AS m{i}" for i, term in terms)]
    sql = _statement(steps, listed, relation, parts)
    return Statement(sql, components, shape)


def _statement(steps: list[str], listed: list[str], relation: str, parts: _Parts) -> str:
    head = ",\n".join(steps)
    return f"WITH {head}\nSELECT {', '.join(listed)}\nFROM {relation}{grouping(parts.keys)}"


@dataclass(frozen=True, slots=True)
class _Term:
    """A weighted partial, the per-id aggregates of p that it reads (name → SQL), and columns to list beside those."""

    sql: str
    per_id: dict[str, str]
    shared: tuple[str, ...] = ()


def _weighted(c: Component, i: int, parts: _Parts) -> _Term:
    """The weighted contribution of one (id, group), by its form of bounding: a BIGINT of at most F·r·B."""
    d, b, F, B = parts.dialect, parts.bounding, c.weight, c.magnitude
    grouped = bool(parts.keys)
    k_factor = grouped and not b.few_groups and not b.truncate_groups
    groups = {"kk": "COUNT(*)"} if k_factor else {}
    partial = "n" if _counts_rows(c) else f"m{i}"
    if rule(c).counts == "ids":
        present = f"CASE WHEN m{i} > 0 THEN 1 ELSE 0 END"
        if not k_factor:
            return _Term(present, {})
        most = largest_contribution(c, parts.limits).in_all
        return _Term(d.divide(f"({F * most} * {present})", d.greatest("kk", str(most)), BIGINT), groups)
    if c.of_unit is not None:
        return _of_unit(d, c, c.of_unit, i, parts)
    if b.rows is not None:
        if rule(c).alone(c):
            if not grouped:
                return _Term(_clipped_sum(d, c, i, b.rows), {})
            held = _saturated(d, i) if c.per_group is None else d.wide(_clipped_sum(d, c, i, b.rows))
            total_abs = {f"a{i}": d.total(f"ABS({held})", HUGEINT)}
            return _Term(_shared(d, held, f"a{i}", F, largest_contribution(c, parts.limits).in_all), total_abs)
        rows = {"nn": d.cast(d.total("n", BIGINT), BIGINT)} if grouped else {}
        floors = {"nn" if grouped else "n": b.rows}
        term = scaled(d, partial, F * b.rows, B, floors)
        term = term if c.per_group is None else d.least(term, str(F * c.most_per_group))
        return _Term(term, rows, divisors(floors))
    G = _int(b.groups)
    M = _int(b.per_group) if c.per_group is None or rule(c).adds_values else c.most_per_group
    if rule(c).alone(c):
        clipped = _clipped_sum(d, c, i, M)
        if not k_factor:
            return _Term(clipped if F == 1 else f"{F} * {clipped}", {})
        return _Term(d.divide(f"({F * G} * {clipped})", d.greatest("kk", str(G)), BIGINT), groups)
    floors = {"n": M, "kk": G} if k_factor else {"n": M}
    return _Term(scaled(d, partial, F * prod(floors.values()), B, floors), groups, divisors(floors))


def _of_unit(d: Dialect, c: Component, limit: UnitTotal, i: int, parts: _Parts) -> _Term:
    """The total of one (id, group), scaled down where the id adds more than its limit in all groups together.

    |total| ≤ 2⁶² and F·τ ≤ 2⁶², so that no product reaches 2¹²⁵; Σ|total| is below 2¹⁰³ for 2⁴⁰ groups of an id.
    """
    held = "n" if _counts_rows(c) else f"m{i}"
    if parts.bounding.one_group:
        return _Term(d.cast(_clipped(d, d.wide(held), -limit.most, limit.most), BIGINT), {})
    of_id = {f"a{i}": d.total(f"ABS({held})", HUGEINT)}
    if limit.norm == "l1":
        return _Term(_shared(d, held, f"a{i}", c.weight, limit.most), of_id)
    of_id[f"q{i}"] = d.total(f"{d.wide(held)} * {d.wide(held)}", HUGEINT)
    root = f"{_root(d, f'q{i}', f'a{i}')} AS r{i}"
    return _Term(_shared(d, held, f"r{i}", c.weight, limit.most), of_id, (root,))


def _histogram(parts: _Parts, at: tuple[int, ...]) -> Statement:
    """Cells of values: each row counts with its id's weight."""
    d, b, c = parts.dialect, parts.bounding, parts.node.components[at[0]]
    if rule(c).counts == "ids":
        return histogram(parts.block, parts.keys, c, at, parts.unit)
    steps, source = [f"p AS ({_partials(parts, ())})"], "p"
    if b.truncate_groups and parts.keys:
        steps.append(f"f AS ({_kept(parts, 'p')})")
        source = "f"
    floors, needed = {"n": _int(b.rows if b.per_group is None else b.per_group)}, ""
    if b.rows is not None and parts.keys:
        floors, needed = {"nn": b.rows}, f"{d.cast(d.total('n', BIGINT), BIGINT)} AS nn"
    elif b.rows is None and parts.keys and not b.few_groups and not b.truncate_groups:
        floors["kk"], needed = _int(b.groups), "COUNT(*) AS kk"
    relation = source
    if needed:
        steps.append(f"g AS (SELECT u, {needed} FROM {source} GROUP BY u)")
        relation = f"{source} JOIN g USING (u)"
    full = 0
    if source == "p":
        # Few ids are above a limit: the weight of all others is F, and only those few are joined back.
        full, above = c.weight, " OR ".join(f"{counter} > {floor}" for counter, floor in floors.items())
        relation += f" WHERE {above}"
    shared = f"(SELECT *, {', '.join(divisors(floors))} FROM {relation}) AS s"
    weight = scaled(d, "1", c.weight * prod(floors.values()), 1, floors)
    listed = ", ".join(["u", *parts.names, f"{weight} AS ww"])
    steps.append(f"w AS (SELECT {listed} FROM {shared})")
    return histogram(parts.block, parts.keys, c, at, parts.unit, steps, full)


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


def _root(d: Dialect, squares: str, absolute: str) -> str:
    """An integer r ≥ √squares, close to it: the DOUBLE's root, one that is larger by its rounding, or Σ|total|."""
    near = d.near_root(squares)
    above = f"({near} + {d.divide(near, d.wide(str(2**48)), HUGEINT)} + 1)"
    arms = (f"WHEN {r} * {r} >= {squares} THEN {r}" for r in (near, above))
    return f"CASE {' '.join(arms)} ELSE {absolute} END"


def scaled(d: Dialect, partial: str, factor: int, magnitude: int, floors: dict[str, int]) -> str:
    """(factor · partial) // Π max(counter, floor), in 64 bits wherever the counters are small enough.

    factor · B ≤ 2⁴⁰ and |partial| ≤ n · B: with all counters up to 2²² no product reaches 2⁶³. HUGEINT division costs
    twice the rest of the query. The quotient is at most factor · B, so it always fits. The narrow branch is total by
    itself: what is too large for it counts as 0 there, and is never chosen. Reads the columns of `divisors`.
    """
    cap = SMALL * magnitude
    ends = [str(end) if magnitude == 1 else d.wide(str(end)) for end in (-cap, cap)]
    held = f"CASE WHEN {partial} BETWEEN {ends[0]} AND {ends[1]} THEN {partial} ELSE 0 END"
    small, divisor = _names(floors)
    narrow = d.divide(f"({factor} * {d.cast(held, BIGINT)})", divisor, BIGINT)
    product = " * ".join(d.greatest(d.wide(name), d.wide(str(floor))) for name, floor in floors.items())
    wide = d.divide(f"({d.wide(str(factor))} * {d.wide(partial)})", f"({product})", HUGEINT)
    return f"CASE WHEN {small} THEN {narrow} ELSE {d.cast(wide, BIGINT)} END"


def divisors(floors: dict[str, int]) -> tuple[str, str]:
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


def _names(floors: dict[str, int]) -> tuple[str, str]:
    """Names of the two columns of `divisors`."""
    own = "_".join(f"{name}{floor}" for name, floor in floors.items())
    return f"s_{own}", f"d_{own}"


def _shared(d: Dialect, held: str, absolute: str, F: int, most: int) -> str:
    """(F · most · held) // max(absolute, most): F · held, in 64 bits, for all ids that are within their limit."""
    ends = d.wide(str(-most)), d.wide(str(most))
    inside = f"CASE WHEN {held} BETWEEN {ends[0]} AND {ends[1]} THEN {held} ELSE 0 END"
    share = d.divide(f"({d.wide(str(F * most))} * {held})", d.greatest(absolute, d.wide(str(max(1, most)))), HUGEINT)
    whole = f"{F} * {d.cast(inside, BIGINT)}"
    return f"CASE WHEN {absolute} <= {d.wide(str(most))} THEN {whole} ELSE {d.cast(share, BIGINT)} END"


def _clipped_sum(d: Dialect, c: Component, i: int, rows: int) -> str:
    """clip(S, min(0, r·lo), max(0, r·hi)), or to the ends per group; fits BIGINT; S is never NULL here."""
    low, high = (min(0, rows * c.lo), max(0, rows * c.hi)) if c.per_group is None else c.ends_per_group
    return d.cast(_clipped(d, f"m{i}", low, high), BIGINT)


def _saturated(d: Dialect, i: int) -> str:
    return _clipped(d, f"m{i}", -FAR, FAR)


def _clipped(d: Dialect, sql: str, low: int, high: int) -> str:
    return d.least(d.greatest(sql, d.wide(str(low))), d.wide(str(high)))


def _int(value: int | None) -> int:
    assert value is not None
    return value


def _counts_rows(c: Component) -> bool:
    """COUNT(*) of every row: the number of rows that the partials hold anyway."""
    return c.measure is Measure.COUNT and c.arg is None and c.filter is None


def _distinct(parts: _Parts, at: int) -> Statement:
    """COUNT and SUM(DISTINCT x): each id keeps its first D distinct (group, x), in an order of its own."""
    c, b = parts.node.components[at], parts.bounding
    assert c.arg is not None
    limit = rule(c).kept(c, parts.limits)
    added = rule(c).adds_values
    value, known = spell(c.arg, parts.block.names)
    type_ = held_in(c) if added else known.type
    value = quantized(c, parts.block.names) if added else value
    block = parts.block.filtered(f"{value} IS NOT NULL")
    if c.filter is not None:
        block = block.filtered(condition(c.filter, block.names))
    listed = [f"{parts.unit} AS u", *(f"{sql} AS k{i}" for i, sql in enumerate(parts.keys)), f"{value} AS x"]
    steps = [f"b AS (SELECT DISTINCT {', '.join(listed)}\n{block.clause()})"]
    source = "b"
    if b.truncate_groups and parts.keys:
        steps += [f"p AS ({_partials(parts, ())})", f"f AS ({_kept(parts, 'p')})"]
        same = " AND ".join(["f.u = b.u", *(f"f.{k} IS NOT DISTINCT FROM b.{k}" for k in parts.names)])
        steps.append(f"kept AS (SELECT b.* FROM b JOIN f ON {same})")
        source = "kept"
    kept = first(parts.dialect, limit, "u", [*parts.group, ("x", type_)])
    steps.append(f"t AS ({parts.dialect.first_rows('SELECT *', f' FROM {source} ', kept)})")
    counted = f"COALESCE({parts.dialect.total('x', type_, distinct=True)}, 0)" if added else "COUNT(DISTINCT x)"
    listed = [*parts.names, f"{counted} AS m{at}"]
    sql = _statement(steps, listed, "t", parts)
    return Statement(sql, (at,), "distinct, truncated per id")
