"""The table of how large ε has to be: so many people, this ± → this ε, so many questions. Computed by the planner."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import duckdb

import dpsql
from docs.shell import table
from dpsql.core.privacy_loss import PrivacyLoss, epsilon_to_rho
from dpsql.faces.report import odds as guesses
from dpsql.policy.load import parse_policy

PEOPLE = (300, 1_000, 10_000, 100_000)
PERCENT = (10, 5, 1)
TOTALS = (1, 3)
DELTA = Fraction(1, 10**6)
QUERY = "SELECT COUNT(DISTINCT id) AS n FROM people"
POLICY = """version: 1
name: people
privacy: {{accountant: {accountant}}}
tables: {{people: {{unit: {{column: id}}, columns: {{id: {{type: bigint}}}}}}}}
budgets: {{total: {budget}}}
"""


def sizes() -> str:
    """How many counts of all of so many people, each with this ±, a total ε pays for."""
    rows = []
    for people in PEOPLE:
        for percent in PERCENT:
            error = people * percent // 100
            epsilon = _price(error, "approx_dp", "{epsilon: 100}").epsilon
            rho = _price(error, "zcdp", "{rho: 100}").rho
            counts = [f"{math.floor(total / epsilon):,}" for total in TOTALS]
            most = math.floor(epsilon_to_rho(Fraction(3), DELTA) / rho)
            name = f"{people:,}" if percent == PERCENT[0] else ""
            rows.append((name, f"± {error:,} ({percent} %)", f"{float(epsilon):.2g}", *counts, f"{most:,}"))
    return table(
        ("people", "± of a count of them", "ε of a question", "questions in ε 1", "in ε 3", "in ε 3 by `zcdp`"), rows
    )


def odds() -> str:
    """What somebody who was in two minds may be sure of, at most, after all answers."""
    rows = []
    for epsilon, words in (
        ("0.5", "very careful"),
        ("1", "**the start that is recommended**"),
        ("3", "usual in practice"),
        ("10", "much: it hides little of whoever is watched closely"),
    ):
        held, there = (guesses.afterwards(0.5, Fraction(epsilon), step) for step in (guesses.steps("add_remove"), 1))
        rows.append((epsilon, *(guesses.in_hundred(p) for p in (held, there)), words))
    return table(("ε in all", "sure of a property, at most", "sure of being in the data, at most", ""), rows)


@cache
def _price(error: int, accountant: str, budget: str) -> PrivacyLoss:
    """The least that a count with this ± costs."""
    with duckdb.connect() as data:
        data.execute("CREATE TABLE people (id BIGINT)")
        policy = parse_policy(POLICY.format(accountant=accountant, budget=budget))
        with dpsql.connect(data, policy=policy, ledger=":memory:", optimizers="ours") as con:
            return con.sql(QUERY).cost(max_error={"n": error})
