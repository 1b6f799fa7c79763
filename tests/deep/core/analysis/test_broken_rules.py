"""The attacks can fail: each of these broken rules is caught by the same generator and the same oracle.

A mutant either replaces a function of the product, or changes the SQL of a finished plan. Where a rule matters only for
some queries, the mutant names them, so that few databases are enough.
"""

from __future__ import annotations

import contextlib
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

import dpsql.core.analysis.derive as derive
import dpsql.core.analysis.rules.contribution_bounding as bounding_rule
import dpsql.core.analysis.rules.join as join_rule
import dpsql.core.analysis.rules.join_multiplicity as matches
import dpsql.core.analysis.rules.release as release_rule
import dpsql.core.noise.calibration as allocate
import dpsql.core.printing.grid_integers as quantize
import dpsql.core.printing.relational_nodes as relations
import dpsql.core.printing.shapes.direct as direct
import dpsql.planner.rewrites.bounds.bound_contributions as bound_contributions
from dpsql.core.analysis.facts import Contribution, Facts
from dpsql.core.ir.components import Component, DistinctCount, ProductSum, ValueSum
from dpsql.core.ir.nodes import BoundContributions, GroupKeys
from dpsql.core.ir.types import FLOAT
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.sensitivity import Sensitivity, sensitivity
from dpsql.core.numbers.cap import ONE, Finite
from dpsql.core.release import noisy
from dpsql.core.release.drawing import EngineAsk
from dpsql.core.release.planned import PlannedRelease
from dpsql.planner.plan import Plan
from dpsql.service.planning import public_facts as session_facts
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import Tally, Violation, attack, random_limits
from tests.support.random_databases import Column, Store, Table, World, id_world, row_world, world_of
from tests.support.random_queries import random_query

Patch = Callable[[pytest.MonkeyPatch], None]
MOST_WORLDS = 150


@dataclass(frozen=True, slots=True)
class Mutant:
    """A broken rule: where it matters, and how it is broken."""

    make: Callable[[random.Random], World]
    queries: tuple[str, ...] = ()
    patch: Patch = lambda monkeypatch: None
    sql: Callable[[str], str] | None = None

    def surgery(self, plan: Plan) -> Plan:
        if self.sql is None:
            return plan
        changed = tuple(
            replace(r, statements=tuple(replace(s, sql=self.sql(s.sql)) for s in r.statements)) for r in plan.releases
        )
        return plan.with_releases(changed)


def _claim(change: Callable[[Component, Contribution, Sensitivity], Sensitivity]) -> Patch:
    """Change what `measure` claims."""

    def mutated(c: Component, limits: Contribution, grouped: bool) -> Sensitivity:
        return change(c, limits, sensitivity(c, limits, grouped))

    return lambda m: m.setattr(allocate, "sensitivity", mutated)


def _divided(found: Sensitivity, by: int) -> Sensitivity:
    return replace(found, l1=-(-found.l1 // by), l2_squared=found.l2_squared / by**2, linf=-(-found.linf // by))


def _m_instead_of_m_times_g(c: Component, limits: Contribution, found: Sensitivity) -> Sensitivity:
    if limits.by_rows is not None or limits.groups is None:
        return found
    return replace(found, l1=-(-found.l1 // limits.groups))


def _root_of_d(c: Component, limits: Contribution, found: Sensitivity) -> Sensitivity:
    return replace(found, l1=max(1, math.isqrt(found.l1))) if isinstance(c, DistinctCount) else found


def _upper_end_only(c: Component, limits: Contribution, found: Sensitivity) -> Sensitivity:
    if not isinstance(c, ValueSum | ProductSum) or abs(c.hi) >= abs(c.lo):
        return found
    return replace(found, l1=found.l1 * abs(c.hi) // abs(c.lo))


def _square_of_the_sum_only(c: Component, limits: Contribution, found: Sensitivity) -> Sensitivity:
    """The magnitude of y in place of that of y²."""
    return (
        _divided(found, max(1, c.magnitude // c.hi))
        if isinstance(c, ProductSum) and c.times is None and c.hi
        else found
    )


def _one_row_at_a_time(m: pytest.MonkeyPatch) -> None:
    original = release_rule.contributions

    def mutated(node: Any, below: Facts) -> dict[str, Contribution]:
        return original(node, below) if below.ids else {unit: Contribution(1) for unit in below.units}

    m.setattr(allocate, "contributions", mutated)


def _one_match_per_row(m: pytest.MonkeyPatch) -> None:
    m.setattr(session_facts.public, "frequency", lambda engine, table, columns: 1)


def _cross_join_of_one(m: pytest.MonkeyPatch) -> None:
    m.setattr(session_facts.public, "row_count", lambda engine, table: 1)


def _fan_out_ignored(m: pytest.MonkeyPatch) -> None:
    original = matches.times
    m.setattr(matches, "times", lambda a, b: a if isinstance(a, Finite) and a != ONE else original(a, b))


def _one_id_replaced(m: pytest.MonkeyPatch) -> None:
    m.setattr(release_rule, "_replaced", lambda found, below: found)


def _few_groups_always(m: pytest.MonkeyPatch) -> None:
    original = bound_contributions._choose

    def mutated(node: Any, keyed: GroupKeys, *rest: Any) -> BoundContributions | None:
        found = original(node, keyed, *rest)
        if found is None or found.per_group is None or keyed.sources is None or not found.keys:
            return found
        return replace(found, few_groups=True)

    m.setattr(bound_contributions, "_choose", mutated)
    m.setattr(bounding_rule, "_few", lambda node, below: True)


def _no_clip(m: pytest.MonkeyPatch) -> None:
    """Of a column, of the rows that a FILTER leaves, and of what is rounded below them: all are at wider ends."""
    for form in (quantize.addend, quantize.quantized):

        def mutated(c: Any, names: Any, form: Any = form) -> Any:
            return form(replace(c, lo=4 * c.lo - 4, hi=4 * c.hi + 4), names)

        m.setattr(direct, form.__name__, mutated)


def _float_arithmetic(m: pytest.MonkeyPatch) -> None:
    """Of FLOATs, whose units may then lie beyond the ends; what asks for that above is left out."""
    near, from_double = quantize._near, quantize._from_double

    def of_floats(d: Any, sql: str, c: Any) -> str:
        return from_double(d, d.cast(sql, FLOAT), c).replace(" AS DOUBLE)", " AS FLOAT)")

    def mutated(c: Any, sql: str, value: Any, names: Any) -> Any:
        with pytest.MonkeyPatch.context() as own:
            if value.type == FLOAT:
                own.setattr(quantize, "_from_double", of_floats)
            return near(c, sql, value, names)

    m.setattr(quantize, "_near", mutated)
    m.setattr(quantize, "within", lambda y, low, high: "TRUE")


def _infinite_keys(m: pytest.MonkeyPatch) -> None:
    """Infinity arrives as 9999-12-31, and the later of two equal keys replaces the earlier one."""

    def fetched(planned: PlannedRelease, ask: EngineAsk) -> Any:
        width = len(planned.measured.node.keys)
        (statement,) = planned.statements
        rows = ask(statement).rows()
        found = {tuple(row[:width]): list(row[width:]) for row in rows}
        return noisy.PrivateIntegers(list(found), [Integers.of(column) for column in zip(*found.values(), strict=True)])

    m.setattr(relations, "calendar_ends", lambda d, type_: None)
    m.setattr(noisy, "_fetch", fetched)


def _any_join(m: pytest.MonkeyPatch) -> None:
    """Two private tables may be joined on anything, and only one id's rows change."""
    m.setattr(join_rule, "joins_same_unit", lambda node, left, right: True)


def _promise_of_a_limit(m: pytest.MonkeyPatch) -> None:
    """An enforced limit taken for a fact of the scan: nothing enforces it then."""
    original = derive.scan

    def mutated(node: Any, ctx: Any) -> Facts:
        found = original(node, ctx)
        limit = ctx.table(node.table).max_rows_per_unit
        if limit is None or not found.ids:
            return found
        return replace(found, frequency={**found.frequency, found.ids: Finite(Fraction(limit.rows))})

    m.setattr(derive, "scan", mutated)


GROUPED = (
    "SELECT age, COUNT(*), AVG(x) FROM visits GROUP BY age",
    "SELECT flag, city, COUNT(*), SUM(w) FROM visits WHERE city IN ('a', 'b', '') GROUP BY ALL",
    "SELECT CASE WHEN age > 1 THEN 'o' WHEN age > 0 THEN 'm' END, SUM(w), COUNT(DISTINCT pid) FROM visits GROUP BY 1",
)
PRIVATE_KEYS = (
    "SELECT code, COUNT(*), SUM(w) FROM visits GROUP BY code",
    "SELECT at, COUNT(DISTINCT x) FROM visits GROUP BY at",
)
DISTINCT = ("SELECT COUNT(DISTINCT age) FROM visits", "SELECT flag, COUNT(DISTINCT at) FROM visits GROUP BY flag")
VARIANCES = (
    "SELECT VAR_POP(x) FROM log",
    "SELECT STDDEV(y) FROM log",
    "SELECT flag, VARIANCE(x) FROM log GROUP BY flag",
)
AVERAGES = (
    "SELECT AVG(w) FROM visits",
    "SELECT flag, AVG(x) FROM visits GROUP BY flag",
    "SELECT AVG(y - 4) FROM visits",
)
QUALIFY = re.compile(r"QUALIFY ROW_NUMBER\(\) OVER \(.*?\) <= \d+")
WITHIN = re.compile(r" FILTER \(WHERE i\.a\d+ BETWEEN -?\d+ AND -?\d+\)")
"""What a SUM leaves out of a column that was clipped below."""

MUTANTS: dict[str, Mutant] = {
    "sensitivity M instead of M·G": Mutant(id_world, GROUPED, _claim(_m_instead_of_m_times_g)),
    "√D instead of D": Mutant(id_world, DISTINCT, _claim(_root_of_d)),
    "B from the upper end": Mutant(row_world, ("SELECT SUM(x), SUM(y) FROM log",), _claim(_upper_end_only)),
    "y claimed for y²": Mutant(row_world, VARIANCES, _claim(_square_of_the_sum_only)),
    "squares not shifted": Mutant(
        row_world, VARIANCES, sql=lambda s: re.sub(r" - \d+ AS INTEGER\)\), 0\)", " AS INTEGER)), 0)", s)
    ),
    "half of every claim": Mutant(row_world, (), _claim(lambda c, limits, found: _divided(found, 2))),
    "k rows counted as one": Mutant(row_world, ("SELECT COUNT(*) FROM log",), _one_row_at_a_time),
    "m = 1 in a public join": Mutant(
        row_world, ("SELECT COUNT(*) FROM log JOIN codes USING (code)",), _one_match_per_row
    ),
    "m = 1 in a cross join": Mutant(row_world, ("SELECT COUNT(*) FROM log CROSS JOIN towns",), _cross_join_of_one),
    "fan-out after a promise ignored": Mutant(
        id_world,
        (
            "SELECT COUNT(*) FROM visits JOIN codes USING (code)",
            "SELECT COUNT(*) FROM visits a JOIN visits b USING (pid)",
        ),
        _fan_out_ignored,
    ),
    "a replaced id counted once": Mutant(
        lambda rng: id_world(rng, replace_one=True),
        ("SELECT SUM(x) FROM visits", "SELECT SUM(w) FROM visits"),
        _one_id_replaced,
    ),
    "few groups, always": Mutant(id_world, GROUPED, _few_groups_always),
    "no clip": Mutant(row_world, ("SELECT SUM(x), AVG(y) FROM log",), _no_clip),
    "FLOAT arithmetic": Mutant(row_world, ("SELECT AVG(x) FROM log", "SELECT AVG(y) FROM log"), _float_arithmetic),
    "a join on something other than the id": Mutant(
        id_world, ("SELECT COUNT(*) FROM people a JOIN people b ON a.code = b.code",), _any_join
    ),
    "an enforced limit taken for a promise": Mutant(id_world, ("SELECT COUNT(*) FROM visits",), _promise_of_a_limit),
    # the SQL of a finished plan
    "groups not truncated": Mutant(id_world, PRIVATE_KEYS, sql=lambda s: QUALIFY.sub("", s)),
    "distinct values not truncated": Mutant(id_world, DISTINCT, sql=lambda s: QUALIFY.sub("", s)),
    "K without the NULL key": Mutant(id_world, GROUPED, sql=lambda s: s.replace("COUNT(*) AS kk", "COUNT(k0) AS kk")),
    "n of other rows": Mutant(
        id_world, AVERAGES, sql=lambda s: s.replace("COUNT(*) AS n", "COUNT(*) FILTER (WHERE age > 0) AS n")
    ),
    "no weights": Mutant(
        id_world,
        AVERAGES,
        sql=lambda s: re.sub(r"(WHEN n BETWEEN (\d+) AND 4194304) THEN n ELSE", r"\1 THEN \2 ELSE", s),
    ),
    "net sums in place of absolute ones": Mutant(
        id_world,
        (
            "SELECT flag, SUM(CLIP(w, -5, 5)) FROM visits GROUP BY 1",
            "SELECT age, SUM(CLIP(w, -2, 2)) FROM visits GROUP BY 1",
        ),
        sql=lambda s: re.sub(r"SUM\(ABS\((.*?)\)\) AS a", r"ABS(SUM(\1)) AS a", s),
    ),
    "the centre added": Mutant(
        row_world,
        ("SELECT AVG(x) FROM log", "SELECT AVG(y) FROM log"),
        sql=lambda s: re.sub(r" - (-?\d+)", r" + (\1)", WITHIN.sub("", s)),
    ),
    "the centre of a total added": Mutant(
        row_world,
        ("SELECT AVG(x) FROM log", "SELECT AVG(y) FROM log"),
        sql=lambda s: re.sub(r" - (CAST\(-?\d+ AS HUGEINT\) \* COUNT)", r" + \1", s),
    ),
    "rows without an id kept": Mutant(
        id_world, ("SELECT COUNT(*) FROM visits", *GROUPED), sql=lambda s: s.replace('t1."pid" IS NOT NULL', "TRUE")
    ),
    "ids counted by rows": Mutant(
        id_world,
        ("SELECT flag, COUNT(DISTINCT pid) FROM visits GROUP BY flag",),
        sql=lambda s: s.replace('DISTINCT t1."pid"', "*").replace("CASE WHEN m0 > 0 THEN 1 ELSE 0 END", "m0"),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    with monkeypatch.context() as m:
        mutant.patch(m)
        found, tally = _first_violation(mutant)
    assert found, f"{name} was not caught: {tally}"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", [n for n, m in MUTANTS.items() if m.queries])
def test_its_twin_is_not(name: str) -> None:
    """The same databases and queries under the real rules: none is refuted."""
    mutant = MUTANTS[name]
    found, tally = _first_violation(Mutant(mutant.make, mutant.queries), worlds=12)
    assert not found, found
    assert tally.changed or set(tally.refused) == {"DP230"}


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize(("kind", "last"), [("DATE", "9999-12-31"), ("TIMESTAMP", "9999-12-31 23:59:59.999999")])
def test_infinity_is_no_other_key(kind: str, last: str, broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row more, with a key that Python would take for another group's, may not change that group."""
    if broken:
        _infinite_keys(monkeypatch)
    found = []
    for mine_first in (True, False):
        rows = [((f"{kind} 'infinity'",), 0b01), *[((f"{kind} '{last}'",), 0b11)] * 5]
        if not mine_first:
            rows.reverse()
        table = Table("log", (Column("key", kind, ()),), {"unit": {"rows": 1}}, tuple(rows))
        world = world_of([table], 1, "infinity")
        store = Store()
        store.load(world)
        with contextlib.suppress(Violation):
            attack(store, FactStore(store), world, "SELECT key, COUNT(*) FROM log GROUP BY key", Tally())
            found.append(mine_first)
        store.close()
    assert (len(found) == 2) is not broken


def _first_violation(mutant: Mutant, worlds: int = MOST_WORLDS) -> tuple[str, Tally]:
    store, tally = Store(), Tally()
    try:
        for seed in range(worlds):
            rng = random.Random(seed)
            world = mutant.make(rng)
            store.load(world)
            facts = FactStore(store)
            for sql in mutant.queries or [random_query(rng, world) for _ in range(5)]:
                try:
                    attack(store, facts, world, sql, tally, random_limits(rng), mutant.surgery)
                except Violation as violation:
                    return str(violation), tally
    finally:
        store.close()
    return "", tally
