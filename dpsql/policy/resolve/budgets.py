"""Budgets and defaults from the file, in the terms of its accountant."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction

from dpsql.core.policy.budgets import (
    ALL_TOGETHER,
    DEFAULT_FAILURES,
    DEFAULT_SPAN,
    AnalystBudget,
    Budgets,
    Defaults,
    Failures,
)
from dpsql.core.policy.growing_units import why_not_by_period
from dpsql.core.policy.positions import Loc
from dpsql.core.policy.tables import Table
from dpsql.core.policy.units import Unit
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.policy.file.file_format import LossFile, PerQueryFile, PolicyFile
from dpsql.policy.file.scalars import usable_name
from dpsql.policy.issues import Issues, did_you_mean, listed


def resolve_defaults(file: PolicyFile, issues: Issues) -> Defaults:
    """`defaults:`, with what it leaves out filled in."""
    spec = file.defaults
    if spec.delta and file.privacy.accountant == "pure_dp":
        issues.add(("defaults", "delta"), "must be 0 under pure_dp, which knows no δ")
    if spec.private_keys == "auto" and file.privacy.accountant == "pure_dp":
        issues.add(("defaults", "private_keys"), "must be unlisted under pure_dp: private keys need a δ")
    keys = spec.private_keys or "unlisted"
    return Defaults(spec.epsilon, spec.delta, spec.max_keys, spec.min_units, spec.allow_dearer, keys)


def resolve_budgets(
    file: PolicyFile, units: Mapping[str, Unit], tables: Mapping[str, Table], issues: Issues
) -> Budgets:
    """`budgets:`; a total is required as soon as a unit has no accounts by period."""
    spec = file.budgets
    private = any(not t.public for t in file.tables.values())
    by_period = spec is not None and spec.each_period is not None
    if spec is not None and by_period:
        private = not _by_period(spec.total is not None, units, tables, issues)
    if spec is None or spec.total is None:
        if private and not by_period:
            unit = "{rho: 0.5, delta: 1e-6}" if file.privacy.accountant == "zcdp" else "{epsilon: 10, delta: 1e-6}"
            issues.add(
                ("budgets", "total"), "is missing: without it queries could go on until nothing is private",
                f"budgets: {{total: {unit}}}",
            )  # fmt: skip
        if spec is None:
            return Budgets()
    reader = _Reader(str(file.privacy.accountant), issues)
    total = None if spec.total is None else reader.loss(("budgets", "total"), spec.total, zero=False)
    per_unit = {}
    for name, loss in spec.units.items():
        loc: Loc = ("budgets", "units", name)
        if name not in units:
            hint = did_you_mean(name, units) or (f"; it has {listed(units)}" if units else "")
            issues.add(loc, f"is no unit of this policy{hint}", key=True)
        per_unit[name] = reader.loss(loc, loss)
    analysts = {}
    for name, analyst in spec.analysts.items():
        loc = ("budgets", "analysts", name)
        if not usable_name(name):
            issues.add(loc, "is no name", key=True)
        limits = None if analyst.per_query is None else reader.per_query((*loc, "per_query"), analyst.per_query)
        analysts[name] = AnalystBudget(reader.loss(loc, analyst), limits)
    each = None if spec.each_period is None else reader.loss(("budgets", "each_period"), spec.each_period, zero=False)
    return Budgets(total, per_unit, analysts, each)


def _by_period(has_total: bool, units: Mapping[str, Unit], tables: Mapping[str, Table], issues: Issues) -> bool:
    """Notes what `each_period` and `total` do not fit; whether every unit has an account for each period."""
    held = [unit for unit in units.values() if unit.tables]
    others = {unit.name: why for unit in held if (why := why_not_by_period(unit, tables)) is not None}
    if len(others) == len(held):
        why = "; ".join(f"unit `{name}`: {why}" for name, why in others.items()) or "no table is private"
        issues.add(
            ("budgets", "each_period"), f"is of no unit of this policy ({why})",
            "unit: {rows: 1}  and  grows: {by: day, every: day, from: 2026-01-01}, in one table; else  total",
        )  # fmt: skip
    elif others and not has_total:
        why = "; ".join(f"`{name}`: {why}" for name, why in others.items())
        issues.add(
            ("budgets", "total"), f"is missing for units that have one account for ever ({why})",
            "budgets: {each_period: {epsilon: 1}, total: {epsilon: 10}}",
        )  # fmt: skip
    elif not others and has_total:
        issues.add(
            ("budgets", "total"), "limits no unit: every unit has an account for each period, which may spend "
            "`each_period`", "leave  total  out, or  each_period",
        )  # fmt: skip
    return not others


def resolve_failures(file: PolicyFile, issues: Issues) -> Failures:
    """`failures:`, with what it leaves out filled in."""
    if (spec := file.failures) is None:
        return Failures()
    most = spec.most or DEFAULT_FAILURES
    in_total = spec.in_total or most * ALL_TOGETHER
    if in_total < most:
        issues.add(("failures", "in_total"), f"must be at least {most}, which one account may reach")
    return Failures(most, DEFAULT_SPAN if spec.per is None else timedelta(seconds=spec.per), in_total)


class _Reader:
    def __init__(self, accountant: str, issues: Issues) -> None:
        self.accountant, self.issues = accountant, issues
        self.main, self.other = ("rho", "epsilon") if accountant == "zcdp" else ("epsilon", "rho")

    def loss(self, loc: Loc, spec: LossFile, *, zero: bool = True) -> PrivacyLoss:
        """A cap; parts left out are 0."""
        self._parts(loc, spec.epsilon, spec.rho, spec.delta, "")
        main = spec.rho if self.main == "rho" else spec.epsilon
        if main is None:
            self.issues.add((*loc, self.main), f"is missing (the accountant is {self.accountant})")
        elif main == 0 and not zero:
            self.issues.add((*loc, self.main), "must be above 0, else no query can ever run")
        delta = spec.delta or Fraction(0)
        value = main or Fraction(0)
        return PrivacyLoss(rho=value, delta=delta) if self.main == "rho" else PrivacyLoss(epsilon=value, delta=delta)

    def per_query(self, loc: Loc, spec: PerQueryFile) -> PrivacyLoss | None:
        """A limit; parts left out are not limited, which only δ can say (1); the main part has to be given."""
        self._parts(loc, spec.max_epsilon, spec.max_rho, spec.max_delta, "max_")
        main = spec.max_rho if self.main == "rho" else spec.max_epsilon
        if main is None:
            self.issues.add((*loc, f"max_{self.main}"), "is missing")
            return None
        delta = Fraction(1) if spec.max_delta is None else spec.max_delta
        return PrivacyLoss(rho=main, delta=delta) if self.main == "rho" else PrivacyLoss(epsilon=main, delta=delta)

    def _parts(
        self, loc: Loc, epsilon: Fraction | None, rho: Fraction | None, delta: Fraction | None, prefix: str
    ) -> None:
        given = {"epsilon": epsilon, "rho": rho}
        if given[self.other] is not None:
            where = (*loc, f"{prefix}{self.other}")
            self.issues.add(where, f"is not counted under {self.accountant}; give {prefix}{self.main}")
        if delta and self.accountant == "pure_dp":
            self.issues.add((*loc, f"{prefix}delta"), "must be 0 under pure_dp, which knows no δ")
