"""The oracle for plans of all operators: what facts claim of a relation, against its rows in neighbouring databases.

A relation is emitted and run as it stands, so that its rows can be compared with the stability of its facts; the same
plan below an aggregate goes through the whole rewrite, and its integers are compared with the claimed sensitivities.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dpsql.core.analysis.context import Context, Derivation
from dpsql.core.analysis.derive import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import Aggregate, AggregateCall, Item, Node, Release, output_columns
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.types import BIGINT
from dpsql.core.ir.walk import Tagged, transform
from dpsql.core.noise.calibration import LossRequest, measure
from dpsql.core.numbers.cap import Finite
from dpsql.core.printing.expressions import Aliases
from dpsql.core.printing.forms.kept_first import SALT as SALTED
from dpsql.core.printing.relational_nodes import Emitter
from dpsql.core.printing.shapes.choose import statements
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.costs.expected_error import total_error
from dpsql.planner.rewrites.bounds.choose_grids import choose_grids, sum_integers
from dpsql.planner.rewrites.bounds.clip_columns import clip_columns
from dpsql.planner.rewrites.joins.follow_paths import follow_paths
from dpsql.planner.rewrites.joins.limit_frequencies import limit_frequencies
from dpsql.planner.rewrites.rewrite_context import ContributionLimits, RewriteContext
from dpsql.planner.rewrites.rules import rewrite
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import SALT, Tally, Vector, Violation, exact, violations
from tests.support.operator_databases import Databases
from tests.support.random_databases import Store
from tests.support.random_plans import IDS, Plans

NONE = ContributionLimits()
PREPARE = (follow_paths, limit_frequencies, clip_columns, sum_integers, choose_grids)
Rows = Counter[tuple[Any, ...]]


class Broken(Violation):
    """A claim that the data contradict; the text of the claim is the first line."""


@dataclass(slots=True)
class Seen:
    """What a run saw, so that a generator that tests nothing is noticed."""

    plans: int = 0
    refused: int = 0
    pairs: int = 0
    changed: int = 0
    counted: int = 0
    reached: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    releases: Tally = field(default_factory=Tally)
    codes: Counter[str] = field(default_factory=Counter)
    messages: dict[str, Counter[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Bench:
    """One policy with its databases, loaded."""

    store: Store
    databases: Databases
    facts: FactStore = field(init=False)

    def __post_init__(self) -> None:
        self.store.load(self.databases.world)
        self.facts = FactStore(self.store)

    # --- plans -------------------------------------------------------------------------------------------------------

    def compiled(self, make: Callable[[Context], Any]) -> Any:
        """What `make` returns once every public fact it asks for is measured. Raises Rejected."""

        def once(public: PublicFacts) -> Any:
            return (make(Context(self.databases.world.policy, public)),)

        return self.facts.compile(once)[0]  # type: ignore[index]

    def relation(self, node: Node) -> Tagged[Facts]:
        """The plan as a relation: paths followed, frequencies limited, aggregates kept private. Raises Rejected."""

        def make(ctx: Context) -> Tagged[Facts]:
            rewriting = RewriteContext(Derivation.begin(ctx))

            def kept(n: Aggregate) -> Node:
                return replace(n, inner=True) if rewriting.private(n.input) else n

            found = transform(node, Aggregate, kept)
            for rule in PREPARE:
                found = rule(found, rewriting)
            return derive(found, ctx)

        return self.compiled(make)  # type: ignore[no-any-return]

    def accepts(self, node: Node, seen: Seen | None = None) -> bool:
        try:
            self.relation(node)
        except Rejected as refusal:
            if seen is not None:
                d = refusal.diagnostics[0]
                seen.codes[d.code] += 1
                seen.messages.setdefault(d.code, Counter())[d.message[:60]] += 1
            return False
        return True

    def release(self, node: Node, limits: ContributionLimits = NONE) -> tuple[PlannedRelease, Tagged[Facts]] | None:
        """The plan whose root aggregate is released; None if another release is below. Raises Rejected."""

        def make(ctx: Context) -> tuple[PlannedRelease, Tagged[Facts]] | None:
            tree = derive(rewrite(node, RewriteContext(Derivation.begin(ctx), limits, total_error)), ctx)
            found = [t for t in tree.walk() if isinstance(t.node, Release)]
            if len(found) != 1 or found[0].inputs[0].fact.empty:  # of no rows nothing is measured
                return None
            (measured,) = measure(found, LossRequest(Fraction(1), Fraction(1, 10**6)))
            printed = statements(found[0], self.store.dialect, self.store.table_sql, {})
            return PlannedRelease(measured, printed, "r0"), tree

        return self.compiled(make)  # type: ignore[no-any-return]

    # --- rows --------------------------------------------------------------------------------------------------------

    def rows(self, tagged: Tagged[Facts], db: int) -> list[tuple[Any, ...]]:
        """The rows of a relation in one database. Raises Broken if the engine fails."""
        sql = self.sql(tagged)
        self.store.show(db)
        try:
            return list(self.store.fetch(sql).rows())
        except Exception as error:
            raise Broken(f"the statement fails in database {db}: {error}\n{sql}") from error
        finally:
            self.store.show(0)

    def sql(self, tagged: Tagged[Facts]) -> str:
        columns = output_columns(tagged.node)
        return (
            Emitter(self.store.dialect, self.store.table_sql, {}, Aliases())
            .query(tagged, columns)
            .replace(SALTED, str(SALT))
        )

    # --- relations ---------------------------------------------------------------------------------------------------

    def check_relation(self, tagged: Tagged[Facts], seen: Seen | None = None) -> None:
        """Everything the facts claim, on every database and every pair. Raises Broken."""
        columns = output_columns(tagged.node)
        found = [self.rows(tagged, db) for db in range(len(self.databases.changes) + 1)]
        for db, rows in enumerate(found):
            for problem in single(tagged.fact, [c.uid for c in columns], rows):
                raise Broken(f"{problem}\nin database {db}: {rows}\n{self.sql(tagged)}")
        uids = [c.uid for c in columns]
        for db, rows in enumerate(found[1:], 1):
            changed = self.databases.changes[db - 1]
            for problem in pair(tagged.fact, uids, changed.unit, changed.ids, found[0], rows, seen):
                detail = f"database 0: {found[0]}\ndatabase {db} ({changed}): {rows}"
                raise Broken(f"{problem}\n{detail}\n{self.sql(tagged)}")

    # --- releases ----------------------------------------------------------------------------------------------------

    def vectors(self, planned: PlannedRelease) -> list[Vector]:
        """The exact integers of a release in every database. Raises Broken if the engine fails."""
        found = []
        for db in range(len(self.databases.changes) + 1):
            self.store.show(db)
            try:
                found.append(exact(planned, self.store))
            except Exception as error:
                sql = "\n".join(s.salted(SALT) for s in planned.statements)
                raise Broken(f"the release fails in database {db}: {error}\n{sql}") from error
            finally:
                self.store.show(0)
        return found

    def check_release(self, node: Node, tally: Tally, limits: ContributionLimits = NONE) -> bool:
        """Compare a release's integers with its claims; False if it is refused. Raises Broken."""
        tally.queries += 1
        try:
            made = self.release(node, limits)
        except Rejected as refusal:
            code = refusal.diagnostics[0].code
            tally.refused[code] = tally.refused.get(code, 0) + 1
            return False
        if made is None:
            tally.refused["several"] = tally.refused.get("several", 0) + 1
            return False
        planned, _ = made
        for statement in planned.statements:
            tally.shapes[statement.shape] = tally.shapes.get(statement.shape, 0) + 1
        vectors = self.vectors(planned)
        units = planned.measured.contributions
        for db, vector in enumerate(vectors[1:], 1):
            unit = self.databases.changes[db - 1].unit
            # Only what a unit of the release does tells how near the claims are; others must change nothing (below).
            problems = [*violations(planned, vectors[0], vector, tally if unit in units else None)]
            problems += [*_of_unit(planned, unit, vectors[0], vector)]
            if unit not in units and vectors[0] != vector:
                problems.append(f"rows of {unit} count, which the release does not know")
            for problem in problems:
                sql = "\n".join(s.salted(SALT) for s in planned.statements)
                raise Broken(f"{problem}\n{units}\ndatabase 0: {vectors[0]}\ndatabase {db} ({unit}): {vector}\n{sql}")
        return True


def _of_unit(planned: PlannedRelease, unit: str, a: Vector, b: Vector) -> Iterator[str]:
    """The claims for the unit that differs, which may be smaller than those for the worst one."""
    measured = planned.measured
    for i, m in enumerate(measured.measurements):
        claim = m.by_unit.get(unit)
        if claim is None or m.known is not None:
            continue
        moved = sum(abs((a[k][i] if k in a else 0) - (b[k][i] if k in b else 0)) for k in {**a, **b})
        if moved > claim.l1:
            yield f"component {i} moved by {moved} for {unit}, claimed {claim}"


# --- what facts say about rows ---------------------------------------------------------------------------------------


def single(facts: Facts, uids: Sequence[int], rows: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    """Claims about one database that its rows contradict."""
    place = {uid: i for i, uid in enumerate(uids)}
    for uid in uids:
        yield from _values(facts, uid, [row[place[uid]] for row in rows])
    for key in facts.keys:
        if all(uid in place for uid in key):
            counted = Counter(tuple(_settled(row[place[uid]]) for uid in sorted(key)) for row in rows)
            if max(counted.values(), default=0) > 1:
                yield f"key {sorted(key)} repeats: {counted.most_common(1)}"
    for known, cap in facts.frequency.items():
        if isinstance(cap, Finite) and all(uid in place for uid in known):
            tuples = [tuple(_settled(row[place[uid]]) for uid in sorted(known)) for row in rows]
            counted = Counter(t for t in tuples if None not in t)
            if max(counted.values(), default=0) > cap.value:
                yield f"frequency of {sorted(known)} is above {cap}: {counted.most_common(1)}"
    for uid in facts.ids & place.keys():
        for other in facts.by_id & place.keys():
            held: dict[Any, set[Any]] = {}
            for row in rows:
                if row[place[uid]] is not None:
                    held.setdefault(row[place[uid]], set()).add(_settled(row[place[other]]))
            if any(len(values) > 1 for values in held.values()):
                yield f"column {other} is no function of the id {uid}: {held}"
    owners = [place[uid] for uid in facts.ids if uid in place]
    if any(len({row[i] for i in owners}) > 1 for row in rows):
        yield f"the id columns {sorted(facts.ids)} differ"
    if facts.size is not None and len(rows) != facts.size:
        yield f"there are {len(rows)} rows, not {facts.size}"


def _values(facts: Facts, uid: int, held: Sequence[Any]) -> Iterator[str]:
    value = facts.columns[uid].value
    if not value.nullable and None in held:
        yield f"column {uid} is NULL"
    for v in held:
        if isinstance(v, float) and not math.isfinite(v):
            if value.finite:
                yield f"column {uid} is {v}"
            continue
        if isinstance(v, int | float) and value.type.numeric:
            if v not in value.interval if isinstance(v, int) else Fraction(v) not in value.interval:
                yield f"column {uid} is {v}, outside {value.interval}"
            if isinstance(v, int) and v not in value.range:
                yield f"column {uid} is {v}, outside its range {value.range}"
        if value.is_constant and _settled(v) != _settled(value.constant):
            yield f"column {uid} is {v}, not {value.constant}"


def _settled(v: Any) -> Any:
    """Equal exactly where SQL's GROUP BY takes two values for equal."""
    if isinstance(v, float):
        return "nan" if math.isnan(v) else v + 0.0
    if isinstance(v, dt.date):  # of rows they are read as texts
        return str(v)
    return tuple(map(_settled, v)) if isinstance(v, list) else v


def _exactly(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Equal exactly where nothing can tell two rows apart: zeros of either sign differ."""
    return tuple(repr(v) if isinstance(v, float | list) else v for v in row)


def pair(
    facts: Facts, uids: Sequence[int], unit: str, ids: frozenset[Any], a: Sequence[Any], b: Sequence[Any],
    seen: Seen | None,
) -> Iterator[str]:  # fmt: skip
    """Claims about two neighbouring databases that their rows contradict."""
    left, right = Counter(map(_exactly, a)), Counter(map(_exactly, b))
    gone, come = left - right, right - left
    if seen is not None and unit in facts.stability:
        seen.pairs += 1
        seen.changed += bool(gone or come)
    if facts.public:
        if gone or come:
            yield f"public rows differ: {gone} {come}"
        return
    places = [i for i, uid in enumerate(uids) if uid in facts.ids]
    if facts.ids:
        if not places:
            return
        for row in (*gone, *come):
            owner = row[places[0]]
            if owner is not None and not (unit in facts.units and owner in ids):
                yield f"a row of {owner} differs: {row}"
        return
    if facts.hops or not all(isinstance(cap, Finite) for cap in facts.stability.values()):
        return  # whose rows these are is not known (yet): nothing is claimed, not even of rows that are nobody's
    claim = facts.stability.get(unit)
    moved = gone.total() + come.total()
    if claim is None:
        if moved:
            yield f"{moved} rows differ with {unit}, which the facts do not know"
        return
    assert isinstance(claim, Finite)
    if moved > claim.value:
        yield f"{moved} rows differ, claimed {claim}"
    if seen is not None:
        seen.counted += 1
        seen.reached += moved == claim.value
    cap = None if facts.replaced_rows is None else facts.replaced_rows.get(unit)
    if isinstance(cap, Finite) and max(gone.total(), come.total()) > cap.value:
        yield f"{gone.total()} rows go and {come.total()} come, claimed {cap} replaced ones"


def shown(tagged: Tagged[Facts], depth: int = 0) -> str:
    """The plan as text, with column numbers and what is claimed."""
    from dpsql.planner.explain.nodes import operator

    node, facts = tagged.node, tagged.fact
    columns = ", ".join(f"{c.name}#{c.uid}" for c in output_columns(node))
    claims = f"{ {u: str(s) for u, s in facts.stability.items()} } ids={sorted(facts.ids)} {facts.rule}"
    lines = [f"{'  ' * depth}{operator(node)}  [{columns}]  {claims}"]
    return "\n".join([*lines, *(shown(t, depth + 1) for t in tagged.inputs)])


def described(databases: Databases) -> str:
    """Policy and rows, with the databases that hold them (number 0 is the last bit)."""
    lines = [databases.world.description]
    for t in databases.world.tables:
        lines.append(f"table {t.name}: {t.entry}")
        lines += [f"  {bin(mask & 0xFFFF)[2:]:>16} {row}" for row, mask in t.rows]
    return "\n".join(lines)


def random_root(rng: random.Random, plans: Plans, node: Node) -> Aggregate:
    """An aggregate to be released above a plan."""
    columns = output_columns(node)
    groups = [c for c in plans.plain(columns) if c.name not in IDS and c.type.name not in ("DOUBLE", "HUGEINT")]
    keys = rng.sample(groups, min(len(groups), rng.choice((0, 0, 0, 1, 1, 2))))
    calls = [c for c in (plans.aggregate_call(columns) for _ in range(4)) if c.function not in ("min", "max")]
    if not calls or rng.random() < 0.5:
        calls.insert(0, AggregateCall("count", None, plans.new("n", BIGINT)))
    if any(c.name in IDS for c in columns) and rng.random() < 0.2:  # each number with bounds of its own
        calls = [replace(c, per_group=_per_group(rng, c)) if not c.distinct else c for c in calls]
    return Aggregate(node, tuple(Item(plans.new(c.name, c.type), c) for c in keys), tuple(calls[:3]))


def _per_group(rng: random.Random, call: AggregateCall) -> tuple[Fraction, Fraction] | None:
    match call.function:
        case "count":
            return Fraction(0), Fraction(rng.randint(1, 3))
        case "sum":
            return rng.choice(
                ((Fraction(-2), Fraction(3)), (Fraction(0), Fraction(5, 2)), (Fraction(-1), Fraction(-1)))
            )
        case _:
            return None
