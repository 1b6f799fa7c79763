"""Budgets, defaults and the limits that hold for one analyst: exact rationals, no ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import Literal

from dpsql.core.privacy_loss import PrivacyLoss

SHARED_ACCOUNT = "*"
"""The account of whoever gives no name, and of everyone whom `budgets.analysts` does not name."""

DEFAULT_MAX_KEYS = 100_000
DEFAULT_MIN_UNITS = 1


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds when a query says nothing: ε and δ (None: the query must say), the most public key combinations of
    one release, the least units per private key, whether stored answers of others may cost an analyst more than what is
    asked, and which keys are private: those without a public list (`unlisted`), or those whose list is too long as well
    (`auto`)."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    max_keys: int = DEFAULT_MAX_KEYS
    min_units: int = DEFAULT_MIN_UNITS
    allow_dearer: bool = False
    private_keys: Literal["unlisted", "auto"] = "unlisted"


DEFAULT_FAILURES, DEFAULT_SPAN, ALL_TOGETHER = 10, timedelta(days=30), 3
"""Failures of one account and within which time; how many accounts have to reach that before all are stopped."""


@dataclass(frozen=True, slots=True)
class Failures:
    """How many statements may fail in the engine within a time before private queries are refused (DP416).

    most: of one account, whose own queries are refused then. in_total: of all accounts, and all are; by default more
    than one account or two can reach, so that nobody alone stops others.
    """

    most: int = DEFAULT_FAILURES
    per: timedelta = DEFAULT_SPAN
    in_total: int = DEFAULT_FAILURES * ALL_TOGETHER


@dataclass(frozen=True, slots=True)
class AnalystBudget:
    """What one analyst may spend of each unit, and at most in one query (None: no such limit).

    In `per_query` a part that the policy leaves out is not limited (δ: 1).
    """

    cap: PrivacyLoss
    per_query: PrivacyLoss | None = None


@dataclass(frozen=True, slots=True)
class Budgets:
    """`total`: of each privacy unit, over all analysts; None only if no table is private, or all of them have accounts
    by period, each of which may spend `each_period` (`Policy.by_period`). `units` overrides one unit.

    A part that the policy leaves out is 0: a cap without `delta` admits no query that needs δ.
    """

    total: PrivacyLoss | None = None
    units: Mapping[str, PrivacyLoss] = field(default_factory=dict, hash=False)
    analysts: Mapping[str, AnalystBudget] = field(default_factory=dict, hash=False)
    each_period: PrivacyLoss | None = None


@dataclass(frozen=True, slots=True)
class BudgetCaps:
    """The limits in force for one account: unit → cap in total, unit → cap of this analyst, and per query.

    `analyst` is empty if the policy has no `analysts` section (only the totals hold); it holds zero for every unit if
    there is one that names neither this analyst nor `*`. by_period: units of which each period has these caps.
    """

    total: Mapping[str, PrivacyLoss] = field(default_factory=dict, hash=False)
    analyst: Mapping[str, PrivacyLoss] = field(default_factory=dict, hash=False)
    per_query: PrivacyLoss | None = None
    by_period: frozenset[str] = frozenset()
