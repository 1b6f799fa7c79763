"""What an account is charged, whatever was bought before and by whom: never more than was asked, and what was printed.

Exhaustive over small histories of three numbers, two of them parallel, against a model of fractions which shares
no code with it; random over queries of every kind, three analysts with limits of their own, and all accountants.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from dpsql.answers.results.answer import Release
from dpsql.answers.stored import resolve as resolving
from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.resolve import resolve
from dpsql.answers.stored.store.memory import MemoryAnswers
from dpsql.answers.stored.storing import to_store
from dpsql.api.connection import Connection, connect
from dpsql.core.ledger.accountant import cost
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.paid import draw_of
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.core.release.noisy import GivenAnswers, NoisyRelease, wanted
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.planner.plan import Plan
from dpsql.policy.policy import Policy

# Every small history --------------------------------------------------------------------------------------------------

NUMBERS = {
    "one": "COUNT(*) FILTER (WHERE a = 1)",
    "two": "COUNT(*) FILTER (WHERE a = 2)",
    "high": "COUNT(*) FILTER (WHERE x > 3)",
}
PARALLEL = (("one", "two"), ("high",))
ASKED = (("one",), ("one", "two"), ("one", "two", "high"), ("two", "high"), ("high",))
BOUGHT = (Fraction(1), Fraction(2, 3))
PRICED = (Fraction(1), Fraction(2, 3), Fraction(1, 2))
Question = tuple[tuple[str, ...], Fraction]
Stored = tuple[str, Fraction]
"""An answer's id and its loss."""


def small_policy(accountant: str, budgets: Mapping[str, Any]) -> Policy:
    domain = {"g": {"type": "varchar", "domain": ["u", "v"], "nullable": False}}
    numbers = {name: {"type": "bigint", "bounds": [0, 9], "nullable": False} for name in ("a", "x")}
    people = {
        "pid": {"type": "bigint", "nullable": False},
        "y": {"type": "bigint", "bounds": [0, 5], "nullable": False},
    }
    return Policy.from_dict(
        {
            "version": 1,
            "name": "small",
            "privacy": {"accountant": accountant},
            "tables": {
                "log": {"unit": {"rows": 1}, "columns": {**numbers, **domain, "h": {"type": "varchar"}}},
                "people": {"unit": {"column": "pid"}, "max_rows_per_unit": 1, "columns": people},
            },
            "budgets": budgets,
        }
    )


def small_database() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    database.execute(
        "CREATE TABLE log AS SELECT i % 4 AS a, i % 9 AS x, 'u' AS g, 'h' || i % 2 AS h FROM range(400) r(i);"
        "CREATE TABLE people AS SELECT i AS pid, i % 5 AS y FROM range(6) r(i)"
    )
    return database


class History:
    """What was bought on one ledger, as the model sees it: stored answers by number, and who holds them."""

    def __init__(self, policy: Policy, plans: Mapping[Question, Plan]) -> None:
        self.policy, self.plans = policy, plans
        self.ledger, self.store = MemoryLedger("small", "pure_dp"), MemoryAnswers()
        self.stored: dict[str, list[Stored]] = {name: [] for name in NUMBERS}
        self.held: dict[str, set[str]] = {"ana": set(), "ben": set()}

    def account(self, analyst: str) -> AnalystAccount:
        return AnalystAccount(self.policy, analyst, self.ledger, self.store, "engine 1")

    def buy(self, analyst: str, question: Question) -> None:
        """A run without data: zeros stand for the numbers, of which nothing may depend."""
        plan, account = self.plans[question], self.account(analyst)
        resolution = resolve(plan, account).to_run()
        planned, given = plan.releases[0], resolution.given[0]
        names = {i: name for (_, i), name in account.charge(plan, resolution.given).ids.items()}
        noisy = NoisyRelease(planned, ((),), tuple(Integers.zeros(1) for _ in planned.measured.measurements))
        added = to_store(noisy, given, account.addresses(plan).of(0), names, datetime.now(UTC))
        self.store.add(added)
        for i, answer in zip(wanted(planned.measured, given), added, strict=True):
            self.stored[question[0][i]].append((answer.id, answer.losses["log"].epsilon))
        self.held[analyst] |= {*names.values(), *(a.id for a in resolution.received)}


def shares(question: Question) -> dict[str, Fraction]:
    """What each number may lose: a parallel group weighs as much as its members, and each of them gets all of that."""
    asked, epsilon = question
    return {
        name: epsilon * sum(name in b for name in asked) / len(asked) for b in PARALLEL for name in b if name in asked
    }


def price(share: Mapping[str, Fraction], held: set[str], choice: Mapping[str, Stored | None]) -> Fraction:
    """Of new numbers of a parallel group the largest loss, and so of each draw of those that are received."""
    whole = Fraction(0)
    for parallel in PARALLEL:
        groups: dict[str, list[Fraction]] = {}
        for name in (n for n in parallel if n in choice):
            answer = choice[name]
            if answer is None:
                groups.setdefault("", []).append(share[name])
            elif answer[0] not in held:
                groups.setdefault(draw_of(answer[0]), []).append(answer[1])
        whole += sum(map(max, groups.values()), Fraction(0))
    return whole


def wrong(history: History, question: Question) -> str:
    """What is wrong with what ben would be given and charged; nothing if it is as it should be."""
    asked, epsilon = question
    account, plan, held = history.account("ben"), history.plans[question], history.held["ben"]
    resolution = resolve(plan, account).to_run()
    charged = resolution.price.in_account.get("log", NO_LOSS).epsilon
    share = shares(question)
    known = {answer[0]: answer for answers in history.stored.values() for answer in answers}
    given = {asked[i]: known[answer.id] for i, answer in resolution.given[0].answers.items()}
    fit = {name: [a for a in history.stored[name] if a[1] >= share[name]] for name in asked}
    own = {name: [a for a in fit[name] if a[0] in held] for name in asked}
    if any(own[name] and given.get(name) not in own[name] for name in asked):
        return "something held is not given"
    if charged != price(share, held, {name: given.get(name) for name in asked}):
        return f"a price of {charged}"
    if charged > epsilon:
        return f"{charged} charged"
    choice: dict[str, Stored | None] = {name: given[name] if own[name] else None for name in asked}
    for parallel in PARALLEL:
        rest = [name for name in parallel if name in asked and not own[name]]
        received = [name for name in rest if name in given]
        if received and len(received) < len(rest):
            return "a parallel group is broken"
        ways = [dict(zip(rest, way, strict=True)) for way in itertools.product(*(fit[name] for name in rest))]
        fitting = [way for way in ways if rest and price(share, held, {**choice, **way}) <= epsilon]
        if bool(fitting) != bool(received):
            return f"{parallel} is {'drawn' if fitting else 'received'}"
        choice |= {name: given[name] for name in received}
    return ""


@pytest.fixture(scope="module")
def plans() -> Iterator[tuple[Policy, dict[Question, Plan]]]:
    policy = small_policy("pure_dp", {"total": {"epsilon": 1000}})
    with connect(small_database(), policy=policy, ledger=MemoryLedger("small", "pure_dp"), optimizers="ours") as con:
        yield (
            con.policy,
            {
                (asked, epsilon): con.plan(
                    f"SELECT {', '.join(f'{NUMBERS[name]} AS {name}' for name in asked)} FROM log", epsilon=epsilon
                )
                for asked in ASKED
                for epsilon in PRICED
            },
        )


def histories(policy: Policy, plans: Mapping[Question, Plan]) -> Iterator[tuple[History, Sequence[Any]]]:
    """After every purchase, and every two, of either analyst."""
    steps = list(itertools.product(("ana", "ben"), itertools.product(ASKED, BOUGHT)))
    for length in (0, 1, 2):
        for bought in itertools.product(steps, repeat=length):
            history = History(policy, plans)
            for analyst, question in bought:
                history.buy(analyst, question)
            yield history, bought


def test_every_choice_after_every_small_history(plans: tuple[Policy, dict[Question, Plan]]) -> None:
    looks = 0
    for history, bought in histories(*plans):
        for question in plans[1]:
            assert not wrong(history, question), (bought, question, wrong(history, question))
            looks += 1
    assert looks == (1 + 20 + 400) * 15


def everything(*_: Any, **__: Any) -> Callable[[object], bool]:
    return lambda choice: True


def test_a_choice_without_the_ceiling_is_noticed(
    plans: tuple[Policy, dict[Question, Plan]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "_ceiling", everything)
    found = {
        wrong(history, question).split(" ", 1)[-1]
        for history, _ in itertools.islice(histories(*plans), 120)
        for question in plans[1]
    }
    assert "charged" in found


# Random histories -----------------------------------------------------------------------------------------------------

CALLS = (*NUMBERS.values(), "COUNT(*)", "COUNT(*) FILTER (WHERE a = 3)", "SUM(x)", "AVG(x)")
ANALYSTS = ("ana", "ben", "cat")
CAPS = {"ana": 6, "ben": 4, "cat": 3}


def random_question(rng: random.Random, accountant: str) -> tuple[str, dict[str, Any]]:
    calls = [f"{call} AS c{i}" for i, call in enumerate(rng.sample(CALLS, rng.choice((1, 1, 2, 3))))]
    key = rng.choice(("", "", "g", "g", "h" if accountant != "pure_dp" else ""))
    sql = rng.choice(
        (
            f"SELECT {', '.join([*([key] if key else []), *calls])} FROM log" + (f" GROUP BY {key}" if key else ""),
            f"SELECT {', '.join([*([key] if key else []), *calls])} FROM log" + (f" GROUP BY {key}" if key else ""),
            f"SELECT {', '.join(f'SUM(x + {i}) AS c{i}' for i in rng.sample(range(20), 15))} FROM log",
            f"SELECT (SELECT {rng.choice(CALLS)} FROM log) AS c0, (SELECT SUM(y) FROM people) AS p",
            f"SELECT {', '.join(calls)} FROM log WHERE x > (SELECT COUNT(*) FROM people)",
        )
    )
    asked: dict[str, Any] = {"epsilon": rng.choice(("0.25", "0.5", "0.75", 1))}
    if accountant != "pure_dp":
        asked["delta"] = "1e-4"
    if accountant == "zcdp" and rng.random() < 0.3:
        asked = {"rho": rng.choice(("0.125", "0.3")), "delta": "1e-4"}
    elif " AS c0" in sql and not sql.startswith("SELECT (") and rng.random() < 0.15:
        asked["weights"] = {"c0": rng.choice((2, 5))}
    return sql, asked


def more_accurate(scales: Sequence[float], others: Sequence[float]) -> bool:
    """Whether no noise is larger and one is less."""
    return all(a <= b for a, b in zip(scales, others, strict=True)) and sum(scales) < sum(others)


class Market:
    """Three analysts on one ledger and one small database. drawn: the mechanisms that drew noise since the last run."""

    def __init__(self, seed: int, accountant: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rng, self.accountant = random.Random(seed), accountant
        main = "rho" if accountant == "zcdp" else "epsilon"
        delta = {} if accountant == "pure_dp" else {"delta": "0.01"}
        caps: dict[str, Any] = {name: {main: cap, **_numbers(delta)} for name, cap in CAPS.items()}
        caps["ben"]["per_query"] = {f"max_{main}": Fraction(3, 4)}
        policy = small_policy(accountant, {"total": {main: 8, **_numbers(delta)}, "analysts": caps})
        self.ledger, database = MemoryLedger("small", accountant), small_database()
        self.sessions = {
            name: connect(database.cursor(), policy=policy, analyst=name, ledger=self.ledger, optimizers="ours")
            for name in ANALYSTS
        }
        self.counts = {"drawn": 0, "received": 0, "free": 0, "refused": 0, "above": 0}
        self.drawn: list[object] = []
        for kind in (DiscreteLaplace, DiscreteGaussian):
            inner = kind.add_noise

            def add_noise(self_: Any, values: Any, *rest: Any, inner: Any = inner) -> Any:
                self.drawn.append(self_)
                return inner(self_, values, *rest)

            monkeypatch.setattr(kind, "add_noise", add_noise)

    def close(self) -> None:
        for con in self.sessions.values():
            con.close()

    def accounts(self) -> list[object]:
        return [(a.unit, a.analyst, a.spent) for a in self.ledger.accounts()]

    def step(self) -> None:
        """One question of one analyst: what is printed, what is charged, what is drawn."""
        name = self.rng.choice(ANALYSTS)
        con, (sql, asked) = self.sessions[name], random_question(self.rng, self.accountant)
        asked["allow_dearer"] = self.rng.random() < 0.15
        query = con.sql(sql)
        plan = query.plan(**asked)
        told, before, entries = con.charge(plan), self.accounts(), len(self.ledger.history())
        if self.rng.random() < 0.2:
            shown = json.loads(query.explain(**asked, format="json"))["cost"]
            assert {u: x for u, x in shown.items() if any(x.values())} == {
                u: {"epsilon": float(x.epsilon), "delta": float(x.delta), "rho": float(x.rho)}
                for u, x in told.by_unit.items()
            }
        self.drawn.clear()
        try:
            answer = con.run(plan)
        except BudgetExceeded:
            self.counts["refused"] += 1
            assert not self.drawn and self.accounts() == before
            return
        new = self.ledger.history()[entries:]
        entry = new[0].entry if new else None
        assert len(new) <= 1
        charged = {} if entry is None else {unit: entry.in_account(unit) for unit in entry.units}
        assert charged == told.by_unit, (sql, asked)
        assert answer.spent == told.loss
        if not asked["allow_dearer"]:
            assert all(loss.within(plan.cost[unit]) for unit, loss in charged.items()), (sql, asked)
        elif not all(loss.within(plan.cost[unit]) for unit, loss in charged.items()):
            self.counts["above"] += 1
        assert ({} if entry is None else dict(entry.charges)) == self.of_drawn(answer)
        self.counts["drawn"] += bool(self.drawn)
        self.counts["received"] += entry is not None and bool(entry.received)
        self.counts["free"] += entry is None
        self.again(con, sql, asked, answer)

    def of_drawn(self, answer: Release) -> dict[str, PrivacyLoss]:
        """What the noise that was drawn costs, found from the mechanisms that drew it."""
        parts: dict[str, list[PrivacyLoss]] = {}
        waiting = list(self.drawn)
        for release in answer.plan.releases:
            measured = release.measured
            new = [i for i in wanted(measured, GivenAnswers()) if _taken(waiting, measured.measurements[i].mechanism)]
            for unit in measured.contributions:
                parts.setdefault(unit, []).extend(measured.losses(unit, new))
        assert not waiting
        convert = max((r.measured.conversion_delta for r in answer.plan.releases), default=Fraction(0))
        found = {unit: cost(self.accountant, p, convert).on_grid() for unit, p in parts.items()}  # type: ignore[arg-type]
        return {unit: loss for unit, loss in found.items() if loss != NO_LOSS}

    def again(self, con: Connection, sql: str, asked: Mapping[str, Any], answer: Release) -> None:
        """Whoever holds everything pays nothing."""
        before = self.accounts()
        self.drawn.clear()
        query = con.sql(sql)
        assert query.cost(**asked) == NO_LOSS
        free = query.run(**{**asked, "allow_dearer": self.rng.random() < 0.5})
        # A number that was drawn anew may be one that was read before: then what is held of it may be more accurate.
        scales = [[c["scale"] for c in given.components] for given in (free, answer)]
        assert free.spent == NO_LOSS and (free.rows == answer.rows or more_accurate(*scales))
        assert not self.drawn and self.accounts() == before


def _numbers(delta: Mapping[str, str]) -> dict[str, float]:
    return {name: float(text) for name, text in delta.items()}


def _taken(waiting: list[object], mechanism: object) -> bool:
    for at, found in enumerate(waiting):
        if found is mechanism:
            del waiting[at]
            return True
    return False


@pytest.mark.parametrize("accountant", ["pure_dp", "approx_dp", "zcdp"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(1, 10))])
def test_no_history_makes_a_query_dearer_than_asked_or_printed(
    seed: int, accountant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    market = Market(seed, accountant, monkeypatch)
    for step in range(120):
        if step >= 40 and market.counts["drawn"] >= 5 and market.counts["received"] >= 2:
            break
        market.step()
    market.close()
    assert market.counts["drawn"] >= 5 and market.counts["received"] >= 2, market.counts


def test_a_history_that_a_missing_ceiling_makes_dearer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: whatever is stored is received."""
    monkeypatch.setattr(resolving, "_ceiling", everything)
    market = Market(0, "approx_dp", monkeypatch)
    with pytest.raises(AssertionError):
        for _ in range(40):
            market.step()
    market.close()
