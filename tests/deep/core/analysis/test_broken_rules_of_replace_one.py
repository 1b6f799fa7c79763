"""The enumeration of replaced rows and ids can fail: each of these broken rules is seen in the databases themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

import dpsql.core.analysis.derive as derive
import dpsql.core.analysis.rules.join_with_public as join_public
import dpsql.core.analysis.rules.release as release_rule
import dpsql.core.analysis.rules.set_operation as set_operation
import dpsql.core.noise.calibration as allocate
from dpsql.core.analysis.facts import Contribution, Facts
from dpsql.core.ir.components import Component, ProductSum, ValueSum
from dpsql.core.noise.sensitivity import Sensitivity, sensitivity
from tests.deep.core.analysis.test_replace_one import CASES, FORMS, POSITIVE, TWO_SIGNS, Claim, observed, observed_ids

Patch = Callable[[pytest.MonkeyPatch], None]


def _claim(change: Callable[[Component, Contribution, bool, Sensitivity], Sensitivity]) -> Patch:
    """Change what `measure` claims."""

    def mutated(c: Component, limits: Contribution, grouped: bool) -> Sensitivity:
        return change(c, limits, grouped, sensitivity(c, limits, grouped))

    return lambda m: m.setattr(allocate, "sensitivity", mutated)


def _halved(found: Sensitivity) -> Sensitivity:
    return replace(found, l1=-(-found.l1 // 2), l2_squared=found.l2_squared / 4, linf=-(-found.linf // 2))


def _b_in_place_of_2b(c: Component, limits: Contribution, grouped: bool, found: Sensitivity) -> Sensitivity:
    if not grouped or not limits.replaces_rows or not isinstance(c, ValueSum | ProductSum):
        return found
    return replace(found, l1=found.l1 // 2)


def _every_row_counts(c: Component, limits: Contribution, grouped: bool, found: Sensitivity) -> Sensitivity:
    return sensitivity(replace(c, every_row=True, filter=None), limits, grouped)


def _b_in_place_of_the_larger(c: Component, limits: Contribution, grouped: bool, found: Sensitivity) -> Sensitivity:
    if grouped or not isinstance(c, ValueSum | ProductSum):
        return found
    moved = limits.rows * c.magnitude
    return Sensitivity(1, moved, Fraction(moved**2), moved)


def _one_row_at_a_time(c: Component, limits: Contribution, grouped: bool, found: Sensitivity) -> Sensitivity:
    return sensitivity(c, replace(limits, by_rows=1), grouped)


def _root_two_forgotten(c: Component, limits: Contribution, grouped: bool, found: Sensitivity) -> Sensitivity:
    return replace(found, l2_squared=found.l2_squared / 2) if grouped else found


def _hull_for_shares(c: Component, limits: Contribution, grouped: bool, found: Sensitivity) -> Sensitivity:
    return replace(found, linf=limits.rows_in_one_group * c.weight * c.span)


def _keeps_size(operator: str) -> Patch:
    """The operator keeps a public size that it does not have."""

    def patch(m: pytest.MonkeyPatch) -> None:
        original = getattr(derive, operator)

        def mutated(node: Any, *below: Any) -> Facts:
            sizes = [f.size for f in below if isinstance(f, Facts) and f.size is not None]
            return replace(original(node, *below), size=sizes[0] if sizes else None)

        m.setattr(derive, operator, mutated)

    return patch


def _branches_once(m: pytest.MonkeyPatch) -> None:
    m.setattr(set_operation, "sums", lambda a, b: {**b, **a})


def _one_match(m: pytest.MonkeyPatch) -> None:
    m.setattr(join_public, "times", lambda a, b: a)


def _one_id(m: pytest.MonkeyPatch) -> None:
    m.setattr(release_rule, "_replaced", lambda found, below: found)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A broken rule, and the databases and query that show it."""

    patch: Patch
    case: str
    bounds: tuple[int, int] = TWO_SIGNS

    def look(self) -> None:
        if self.case in FORMS:
            observed_ids(FORMS[self.case], self.bounds)
        else:
            observed(CASES[f"{self.case}, {self.bounds}"])


MUTANTS = {
    "2B is B": Mutant(_claim(_b_in_place_of_2b), "sums per group, k=1, n=2"),
    "R is R/2": Mutant(_claim(lambda c, limits, grouped, found: _halved(found)), "sum, k=1, n=2"),
    "max(B, R) is B": Mutant(_claim(_b_in_place_of_the_larger), "sum of what may be NULL, k=1, n=2"),
    "NULLs are values": Mutant(_claim(_every_row_counts), "sum of what may be NULL, k=1, n=2", POSITIVE),
    "NULLs are counted": Mutant(_claim(_every_row_counts), "count of what may be NULL, k=1, n=2"),
    "FILTER counts every row": Mutant(_claim(_every_row_counts), "count of some, k=1, n=2"),
    "k is 1": Mutant(_claim(_one_row_at_a_time), "counts per group, k=2, n=2"),
    "l2 without the root of two": Mutant(_claim(_root_two_forgotten), "counts per group, k=1, n=2"),
    "l2 without the root of two, sums": Mutant(_claim(_root_two_forgotten), "sums per group, k=1, n=2", POSITIVE),
    "a filter keeps the size": Mutant(_keeps_size("filter_"), "count of a filter, k=1, n=2"),
    "a filter keeps the size, sums": Mutant(_keeps_size("filter_"), "sum of a filter, k=1, n=2", POSITIVE),
    "an inner join keeps the size": Mutant(_keeps_size("join"), "inner join, m = 2, k=1, n=2"),
    "a left join of two matches keeps the size": Mutant(_keeps_size("join"), "left join, m = 2, k=1, n=2"),
    "a semi join keeps the size": Mutant(_keeps_size("join"), "semi join, k=1, n=2"),
    "a union keeps the size of one branch": Mutant(
        _keeps_size("set_operation"), "union all with a public table, k=1, n=2"
    ),
    "m is 1": Mutant(_one_match, "inner join, m = 2, k=1, n=2"),
    "two branches are one": Mutant(_branches_once, "union all with itself, k=1, n=2"),
    "two ids are one": Mutant(_one_id, "C, groups"),
    "two ids are one, M and G": Mutant(_one_id, "M and G"),
    "two ids are one, sums": Mutant(_one_id, "C"),
    "two ids, l2 of one": Mutant(_claim(_root_two_forgotten), "M and G", POSITIVE),
    "the hull under a limit C over groups": Mutant(_claim(_hull_for_shares), "C, groups"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    mutant.look()
    mutant.patch(monkeypatch)
    with pytest.raises(AssertionError):
        mutant.look()


def test_new_keys_counted_wrongly_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what changes is new: a quarter would be too few."""
    from tests.deep.core.analysis.test_replace_one import test_new_keys_of_replaced_rows as look

    original = allocate.KeyThreshold.calibrate
    monkeypatch.setattr(
        allocate.KeyThreshold, "calibrate", lambda mechanism, r, g, *rest: original(mechanism, r, max(1, g // 2), *rest)
    )
    look(1, 2)
    with pytest.raises(AssertionError):
        look(2, 3)


def test_claims_scale_with_the_slots() -> None:
    assert Claim(2, 2, 1).of(3).l2_squared == 18
