"""Id units: adding, removing or replacing all rows of one id moves no answer by more than a plan claims.

Random attacks as for row units, and exhaustive enumeration of tiny databases for every bounding form,
where the forms that the design calls tight must reach their claims.
"""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from typing import Any

import pytest

from dpsql.core.ir.nodes import BoundContributions
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.policy.policy import Policy
from dpsql.service.planning.public_facts import FactStore
from tests.support.attacked_worlds import assert_worthwhile, attack_worlds
from tests.support.neighbour_oracle import change, exact, plan_of, violations
from tests.support.random_databases import Column, Store, Table, World, id_world


@pytest.mark.parametrize("part", range(4))
def test_ids_of_neighbours_stay_within_the_claims(part: int) -> None:
    tally = attack_worlds(id_world, range(part * 12, part * 12 + 12))
    assert_worthwhile(tally)
    assert set(tally.components) >= {"count", "sum", "sum paired", "sum paired squared", "units"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(8))
def test_ids_of_neighbours_stay_within_the_claims_thoroughly(part: int) -> None:
    tally = attack_worlds(id_world, range(5_000 + part * 40, 5_040 + part * 40))
    assert_worthwhile(tally)
    assert {"direct", "two-level", "two-level, weights per id", "distinct, truncated per id"} <= set(tally.shapes)


# --- exhaustive ------------------------------------------------------------------------------------------------------

FORMS: dict[str, tuple[dict[str, Any], str, ContributionLimits, int]] = {
    # name: (table's limits, query, the query's own limits, most rows of the id that comes and goes)
    "C, no groups": ({"max_rows_per_unit": 2}, "SELECT COUNT(*), SUM(x), AVG(x) FROM t", ContributionLimits(), 4),
    "C, groups": ({"max_rows_per_unit": 2}, "SELECT g, COUNT(*), SUM(x), AVG(x) FROM t GROUP BY g",
    ContributionLimits(), 3),
    "M and G": (
        {"max_rows_per_group": 2, "max_groups_per_unit": 2},
        "SELECT g, COUNT(*), SUM(x), AVG(x), COUNT(DISTINCT pid) FROM t GROUP BY g",
        ContributionLimits(),
        4,
    ),
    "one group of M": (
        {"max_rows_per_group": 1, "max_groups_per_unit": 1},
        "SELECT g, COUNT(*), SUM(x), AVG(x), COUNT(DISTINCT pid) FROM t GROUP BY g",
        ContributionLimits(),
        4,
    ),
    "few groups": (
        {"max_rows_per_group": 1, "max_groups_per_unit": 3},
        "SELECT g, COUNT(*), SUM(x), AVG(x), COUNT(DISTINCT pid) FROM t GROUP BY g",
        ContributionLimits(),
        4,
    ),
    "truncated groups": (
        {"max_rows_per_group": 2, "max_groups_per_unit": 1},
        "SELECT h, COUNT(*), SUM(x), AVG(x), COUNT(DISTINCT pid) FROM t GROUP BY h",
        ContributionLimits(),
        4,
    ),
    "private keys, C rows": (
        {"max_rows_per_unit": 2},
        "SELECT h, COUNT(*), SUM(x), AVG(x), COUNT(DISTINCT pid) FROM t GROUP BY h",
        ContributionLimits(),
        3,
    ),
    "promised rows": (
        {"max_rows_per_unit": {"rows": 3, "enforce": "assume"}},
        "SELECT g, COUNT(*), SUM(x), AVG(x), COUNT(DISTINCT pid) FROM t GROUP BY g",
        ContributionLimits(),
        3,
    ),
    "promised rows, tightened": (
        {"max_rows_per_unit": {"rows": 3, "enforce": "assume"}},
        "SELECT g, COUNT(*), SUM(x), AVG(x) FROM t GROUP BY g",
        ContributionLimits(rows=2),
        3,
    ),
    "own bounds, no groups": (
        {},
        "SELECT COUNT(*, contribution_bounds_per_group => (0, 2)), SUM(x, contribution_bounds_per_group => (-3, 5)) "
        "FROM t",
        ContributionLimits(), 4,
    ),
    "own bounds, no groups, C": (
        {"max_rows_per_unit": 2},
        "SELECT COUNT(*), COUNT(*, contribution_bounds_per_group => (0, 1)), AVG(x), "
        "SUM(x, contribution_bounds_per_group => (-3, 4)), SUM(x, contribution_bounds_per_group => (-30, 50)) FROM t",
        ContributionLimits(), 3,
    ),
    "own bounds and G": (
        {"max_groups_per_unit": 2},
        "SELECT g, COUNT(*, contribution_bounds_per_group => (0, 2)), SUM(x, contribution_bounds_per_group => (-3, 5)) "
        "FROM t GROUP BY g",
        ContributionLimits(), 4,
    ),
    "own bounds, M and G": (
        {"max_rows_per_group": 2, "max_groups_per_unit": 2},
        "SELECT g, COUNT(*), COUNT(x, contribution_bounds_per_group => (0, 1)), AVG(x), "
        "SUM(x, contribution_bounds_per_group => (-1, 2)) FROM t GROUP BY g",
        ContributionLimits(), 4,
    ),
    "own bounds, C": (
        {"max_rows_per_unit": 2},
        "SELECT g, COUNT(*, contribution_bounds_per_group => (0, 1)), AVG(x), "
        "SUM(x, contribution_bounds_per_group => (-1, 2)), SUM(x, contribution_bounds_per_group => (-3, 4)) FROM t "
        "GROUP BY g",
        ContributionLimits(), 4,
    ),
    "own bounds, few groups": (
        {"max_rows_per_group": 2, "max_groups_per_unit": 3},
        "SELECT g, COUNT(*, contribution_bounds_per_group => (0, 1)), SUM(x, contribution_bounds_per_group => (-1, 2)) "
        "FROM t GROUP BY g",
        ContributionLimits(), 4,
    ),
    "own bounds, truncated groups": (
        {"max_groups_per_unit": 1},
        "SELECT h, COUNT(*, contribution_bounds_per_group => (0, 2)), SUM(x, contribution_bounds_per_group => (-3, 5)) "
        "FROM t GROUP BY h",
        ContributionLimits(), 4,
    ),
    "own bounds, private keys, C": (
        {"max_rows_per_unit": 2},
        "SELECT h, COUNT(*, contribution_bounds_per_group => (0, 1)), SUM(x, contribution_bounds_per_group => (-1, 2)) "
        "FROM t GROUP BY h",
        ContributionLimits(), 4,
    ),
    "own bounds, promised rows": (
        {"max_rows_per_unit": {"rows": 3, "enforce": "assume"}},
        "SELECT g, COUNT(*, contribution_bounds_per_group => (0, 2)), AVG(x), "
        "SUM(x, contribution_bounds_per_group => (-3, 4)) FROM t GROUP BY g",
        ContributionLimits(), 3,
    ),
    "C, the query's G": (
        {"max_rows_per_unit": 3},
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) g, COUNT(*), SUM(x), AVG(x), "
        "COUNT(DISTINCT pid) FROM t GROUP BY g",
        ContributionLimits(), 4,
    ),
    "the query's C below M and G": (
        {"max_rows_per_group": 2, "max_groups_per_unit": 2},
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 2) g, COUNT(*), SUM(x), AVG(x) "
        "FROM t GROUP BY g",
        ContributionLimits(), 3,
    ),
    "C below M and G": (
        {"max_rows_per_unit": 2, "max_rows_per_group": 2, "max_groups_per_unit": 2},
        "SELECT g, COUNT(*), SUM(x), AVG(x) FROM t GROUP BY g",
        ContributionLimits(), 4,
    ),
    "C below M and G, private keys": (
        {"max_rows_per_unit": 3, "max_rows_per_group": 2, "max_groups_per_unit": 2},
        "SELECT h, COUNT(*), SUM(x) FROM t GROUP BY h",
        ContributionLimits(), 4,
    ),
    "C below M and G, with ids": (
        {"max_rows_per_unit": 2, "max_rows_per_group": 2, "max_groups_per_unit": 2},
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) g, COUNT(*), COUNT(DISTINCT pid) FROM t "
        "GROUP BY g",
        ContributionLimits(), 4,
    ),
    "clamped": (
        {},
        "SELECT WITH ANONYMIZATION OPTIONS (kappa = 2) g, ANON_COUNT(* CLAMPED BETWEEN 0 AND 2), "
        "ANON_SUM(x CLAMPED BETWEEN -3 AND 5) FROM t GROUP BY g",
        ContributionLimits(), 4,
    ),
    "squares, C": ({"max_rows_per_unit": 2}, "SELECT VAR_POP(x), STDDEV(x) FROM t", ContributionLimits(), 4),
    "squares, C, groups": ({"max_rows_per_unit": 2}, "SELECT g, STDDEV_POP(x) FROM t GROUP BY g", ContributionLimits(),
    3),
    "squares, M and G": (
        {"max_rows_per_group": 2, "max_groups_per_unit": 2},
        "SELECT g, AVG(x), VARIANCE(x) FROM t GROUP BY g",
        ContributionLimits(),
        4,
    ),
    "squares, truncated groups": (
        {"max_rows_per_group": 2, "max_groups_per_unit": 1},
        "SELECT h, VAR_SAMP(x) FROM t GROUP BY h",
        ContributionLimits(),
        4,
    ),
    "squares, promised rows": (
        {"max_rows_per_unit": {"rows": 3, "enforce": "assume"}},
        "SELECT g, SUM(x), VAR_POP(x) FROM t GROUP BY g",
        ContributionLimits(),
        3,
    ),
    "distinct values": ({"max_rows_per_unit": 2}, "SELECT COUNT(DISTINCT x) FROM t", ContributionLimits(), 3),
    "distinct values, groups": ({"max_rows_per_unit": 2}, "SELECT g, COUNT(DISTINCT x) FROM t GROUP BY g",
    ContributionLimits(), 3),
}  # fmt: skip
GROUPS = ("'a'", "'b'", "NULL")
VALUES = ("-2", "9", "NULL")
DISTINCT_ROWS = tuple(product(GROUPS, VALUES))
OTHERS = (("'a'", "1"), ("'a'", "1"), ("'b'", "1"))
CHUNK = 50


def _worlds(limits: dict[str, Any], most: int, **unit: str) -> list[tuple[World, int]]:
    """Every multiset of at most `most` rows for one id, beside another id's rows; many per world, as databases."""
    sets = [s for n in range(1, most + 1) for s in combinations_with_replacement(DISTINCT_ROWS, n)]
    columns = (
        Column("pid", "BIGINT", ("1",)),
        Column("g", "VARCHAR", GROUPS, {"domain": {"values": ["a", "b"], "null": True}}),
        Column("h", "VARCHAR", GROUPS),
        Column("x", "INTEGER", VALUES, {"bounds": [-2, 3]}),
    )
    found = []
    for start in range(0, len(sets), CHUNK):
        chunk = sets[start : start + CHUNK]
        rows = [(("2", g, g, x), (1 << (len(chunk) + 1)) - 1) for g, x in OTHERS]
        rows += [(("1", g, g, x), 1 << (i + 1)) for i, one in enumerate(chunk) for g, x in one]
        table = Table("t", columns, {"unit": {"column": "pid", **unit}, **limits}, tuple(rows))
        policy = Policy.model_validate(
            {
                "version": 1,
                "name": "tiny",
                "tables": {"t": table.entry},
                "budgets": {"total": {"epsilon": 10, "delta": 1e-6}},
            }
        )
        found.append((World(policy, (table,), len(chunk), f"{limits}"), len(chunk)))
    return found


@pytest.mark.sampled(2)
@pytest.mark.one_in(2)
@pytest.mark.parametrize("form", FORMS)
def test_every_row_set_of_one_id(form: str) -> None:
    """No row set moves an answer by more than is claimed, and for each component some row set reaches the claim."""
    limits, sql, own, most = FORMS[form]
    store, best, claims = Store(), {}, {}
    for world, count in _worlds(limits, most):
        store.load(world)
        (planned,) = plan_of(store, FactStore(store), world, sql, own).releases
        vectors = []
        for db in range(count + 1):
            store.show(db)
            vectors.append(exact(planned, store))
        for vector in vectors[1:]:
            assert not list(violations(planned, vectors[0], vector)), (form, vectors[0], vector)
            for i, m in enumerate(planned.measured.measurements):
                claims[i] = m.sensitivity
                seen = change(vectors[0], vector, i)
                best[i] = tuple(map(max, best.get(i, (0, 0, 0)), (seen.l1, seen.l2_squared, seen.linf)))
    store.close()
    for i, claim in claims.items():
        assert best[i][0] == claim.l1, (form, i, best[i], claim)
        assert best[i][2] == claim.linf, (form, i, best[i], claim)


def test_forms_are_the_ones_meant() -> None:
    """The enumeration above covers each bounding form of the plan."""
    seen = set()
    store = Store()
    for limits, sql, own, _ in FORMS.values():
        world, _ = _worlds(limits, 1)[0]
        store.load(world)
        (planned,) = plan_of(store, FactStore(store), world, sql, own).releases
        bounding = planned.measured.node.input
        if not isinstance(bounding, BoundContributions):
            seen.add("direct")
        else:
            kind = "C" if bounding.rows is not None else "M, G"
            seen.add((kind, bounding.truncate_groups, bounding.few_groups))
    store.close()
    assert seen >= {
        "direct", ("C", False, False), ("C", True, False), ("M, G", False, False), ("M, G", True, False),
        ("M, G", False, True),
    }  # fmt: skip


@pytest.mark.parametrize("form", ["own bounds, no groups", "own bounds, M and G", "own bounds, C"])
def test_a_forgotten_clip_of_totals_is_noticed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the totals per id and group not clipped as claimed, the enumeration above would fail."""
    from dpsql.core.printing.shapes import weighted

    monkeypatch.setattr(weighted, "_clipped_sum", lambda parts, i, rows: f"CAST(m{i} AS BIGINT)")
    limits, sql, own, most = FORMS[form]
    store, seen = Store(), []
    for world, count in _worlds(limits, most)[-4:]:
        store.load(world)
        (planned,) = plan_of(store, FactStore(store), world, sql, own).releases
        vectors = []
        for db in range(count + 1):
            store.show(db)
            vectors.append(exact(planned, store))
        seen += [v for vector in vectors[1:] for v in violations(planned, vectors[0], vector)]
    store.close()
    assert seen


REPLACED = (
    "own bounds, no groups",
    "own bounds and G",
    "own bounds, M and G",
    "own bounds, C",
    "own bounds, few groups",
)


@pytest.mark.parametrize("form", REPLACED)
def test_totals_of_a_replaced_id_stay_within_the_claims(form: str) -> None:
    """Where one id's rows are replaced by another's, any two row sets of the enumeration are neighbours."""
    limits, sql, own, _ = FORMS[form]
    store, moved = Store(), 0
    for world, count in _worlds(limits, 2, neighbours="replace_one"):
        store.load(world)
        (planned,) = plan_of(store, FactStore(store), world, sql, own).releases
        assert planned.measured.contribution.ids == 2
        vectors = []
        for db in range(1, count + 1):
            store.show(db)
            vectors.append(exact(planned, store))
        for one, other in combinations(vectors, 2):
            assert not list(violations(planned, one, other)), (form, one, other)
            moved += one != other
    store.close()
    assert moved
