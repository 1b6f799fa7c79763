"""Answers from stored answers: what is given again, to whom, at what price, and what is paid anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.answers.results.answer import Release
from dpsql.answers.stored.analyst_account import answers_beside
from dpsql.answers.stored.choosing import ChosenAnswers, choose
from dpsql.answers.stored.store.memory import MemoryAnswers
from dpsql.api.connection import Connection, connect
from dpsql.core.engine import RawTable
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.refusals import unusable
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen, EngineError
from dpsql.planner.plan import Plan
from tests.support.club import POLICY
from tests.support.opened_once import opened

COUNT = "SELECT COUNT(*) AS n FROM members"
BY_CITY = "SELECT city, COUNT(*) AS n, SUM(age) AS s, AVG(hours) AS h FROM members JOIN visits USING (id) GROUP BY city"
BY_NOTE = "SELECT note, COUNT(*) AS n, SUM(age) AS s FROM members GROUP BY note"
NESTED = "SELECT COUNT(*) AS n FROM members WHERE age > (SELECT AVG(age) FROM members)"
TODAY = re.compile(r"answered from \d{4}-\d\d-\d\d$")


def eps(value: object) -> PrivacyLoss:
    return PrivacyLoss(Fraction(str(value)))


def served(answer: Release) -> list[str]:
    return [n for n in answer.notes if "answered from" in n]


def policy_of(club_folder: Path, changes: dict[str, str]) -> str:
    """A policy's text over the club's data."""
    text = POLICY.replace("DEFAULTS\n", "").replace("club.duckdb", str(club_folder / "club.duckdb"))
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture
def clients(club_folder: Path, ledger: MemoryLedger) -> Iterator[dict[str, Connection]]:
    """Sessions of two analysts on one ledger."""
    budgets = (
        "  total: {epsilon: 3, delta: 1e-3}\n  analysts:\n    ana: {epsilon: 2, delta: 1e-3}\n"
        "    ben: {epsilon: 1, delta: 1e-3, per_query: {max_epsilon: 0.6}}\n    '*': {epsilon: 3, delta: 1e-3}\n"
    )
    policy = policy_of(club_folder, {"  total: {epsilon: 10000, delta: 1e-3}\n": budgets})
    found = {name: Connection(*opened(policy), name, ledger) for name in ("ana", "ben")}
    yield found
    for con in found.values():
        con.close()


class Reading:
    """Counts the fetches that read members."""

    def __init__(self, con: Connection) -> None:
        self.private = 0
        inner = con.service.engine.fetch

        def fetch(sql: str) -> RawTable:
            self.private += "members" in sql or "visits" in sql
            return inner(sql)

        con.service.engine.fetch = fetch  # type: ignore[method-assign]


# Given again ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", [COUNT, BY_CITY, BY_NOTE, NESTED])
def test_the_same_question_is_answered_with_the_same_numbers_for_nothing(
    con: Connection, ledger: MemoryLedger, sql: str
) -> None:
    first = con.execute(sql, epsilon=1, delta="1e-6")
    spent, entries = ledger.spent("member"), len(ledger.history())
    reading = Reading(con)
    again = con.execute(sql, epsilon=1, delta="1e-6")
    assert again.rows == first.rows and again.intervals() == first.intervals()
    assert again.spent == NO_LOSS and first.spent.epsilon == 1
    assert ledger.spent("member") == spent and len(ledger.history()) == entries
    assert reading.private == 0
    assert not served(first) and len(served(again)) == 1 and TODAY.search(served(again)[0])
    assert again.components == first.components


def test_less_accurate_questions_are_answered_with_the_better_number(con: Connection) -> None:
    first = con.execute(COUNT, epsilon=1)
    for epsilon in ("1", "0.999", "0.1", "1e-9"):
        again = con.execute(COUNT, epsilon=epsilon)
        assert again.rows == first.rows and again.spent == NO_LOSS
        # The noise that was drawn, not the noise that was asked for.
        assert again.intervals() == first.intervals() and again.components == first.components


def test_more_accurate_questions_are_paid_in_full(con: Connection, ledger: MemoryLedger) -> None:
    con.execute(COUNT, epsilon=1)
    answer = con.execute(COUNT, epsilon="1.001")
    assert answer.spent == eps("1.001") and not served(answer)
    assert ledger.spent("member") == eps("2.001")
    # From now on the better one is given, also to those who ask for less.
    for epsilon in (1, "1.001"):
        assert con.execute(COUNT, epsilon=epsilon).rows == answer.rows
    assert ledger.spent("member") == eps("2.001")


def test_new_noise_is_paid_for_and_the_newest_of_equal_ones_is_given(con: Connection, ledger: MemoryLedger) -> None:
    rows = [con.execute(COUNT, epsilon="0.01", fresh=True).rows for _ in range(5)]
    assert len(set(rows)) > 1
    assert ledger.spent("member") == eps("0.05")
    assert con.execute(COUNT, epsilon="0.01").rows == rows[-1]
    # A worse new one does not take the place of a better old one.
    con.execute(COUNT, epsilon="0.001", fresh=True)
    assert con.execute(COUNT, epsilon="0.001").rows == rows[-1]


# In part --------------------------------------------------------------------------------------------------------------


def test_an_average_after_its_count_pays_for_its_sum(con: Connection, ledger: MemoryLedger) -> None:
    count = con.execute(COUNT, epsilon="0.5")
    answer = con.execute("SELECT AVG(age) AS a FROM members", epsilon=1)
    assert answer.spent == eps("0.5") and ledger.spent("member") == eps(1)
    assert [n for n in served(answer) if n.startswith("COUNT(*) answered")]
    # The count in it is the very same.
    both = con.execute("SELECT AVG(age) a, COUNT(*) n FROM members", epsilon=1)
    assert both.rows == ((answer.rows[0][0], count.rows[0][0]),)
    assert ledger.spent("member") == eps(1)


def test_a_total_is_made_of_a_slice_and_the_rest(con: Connection, ledger: MemoryLedger) -> None:
    """Both are stored as what they count, whoever asks for them, and the total is their sum."""
    bonn = "COUNT(*) FILTER (WHERE city = 'Bonn')"
    rest = "COUNT(*) FILTER (WHERE (city = 'Bonn') IS NOT TRUE)"
    first = con.execute(f"SELECT COUNT(*) AS n, {bonn} AS b FROM members", epsilon=1)
    assert first.spent == eps(1)
    parts = con.execute(f"SELECT {bonn} AS b, {rest} AS r FROM members", epsilon=1)
    assert parts.spent == NO_LOSS and len(served(parts)) == 1
    (n, b), (same, r) = first.rows[0], parts.rows[0]
    assert b == same and n == b + r
    again = con.execute(f"SELECT {bonn} AS b, COUNT(*) AS n FROM members", epsilon=1)
    assert again.rows == ((b, n),) and again.spent == NO_LOSS
    assert again.intervals() == first.intervals()
    # The total by itself is another number, and so is the total beside another slice.
    assert con.execute(COUNT, epsilon=1).spent == eps(1)
    lyon = con.execute(f"SELECT COUNT(*) AS n, {bonn.replace('Bonn', 'Lyon')} AS b FROM members", epsilon=1)
    assert lyon.spent == eps(1)


def test_a_total_of_stored_and_new_parts(con: Connection) -> None:
    """One part was bought with less noise: the ± is that of both noises as they were drawn."""
    bonn = "COUNT(*) FILTER (WHERE city = 'Bonn')"
    con.execute(f"SELECT {bonn} AS b FROM members", epsilon=10)
    answer = con.execute(f"SELECT COUNT(*) AS n, {bonn} AS b FROM members", epsilon="0.1")
    assert answer.spent == eps("0.1")
    width = {name: (ends[1] - ends[0]) / 2 for name, ends in answer.intervals()[0].items() if ends is not None}
    assert width["b"] < 1 and width["n"] < 40  # noise of ε 0.1 has ± 29, and two of it ± 41


def test_parts_of_an_average_come_from_it(con: Connection, ledger: MemoryLedger) -> None:
    con.execute("SELECT AVG(age) AS a, SUM(fee) AS f FROM members", epsilon=3)
    spent = ledger.spent("member")
    answer = con.execute("SELECT SUM(fee), COUNT(*) FROM members", epsilon=2)
    assert answer.spent == NO_LOSS and ledger.spent("member") == spent
    # SUM alone is another question than the centred sum of an average.
    assert con.execute("SELECT SUM(age) FROM members", epsilon=1).spent == eps(1)


def test_only_the_missing_column_is_paid(con: Connection, ledger: MemoryLedger) -> None:
    con.execute("SELECT city, COUNT(*), SUM(age) FROM members GROUP BY city", epsilon=1)
    query = con.sql("SELECT COUNT(*) n, SUM(fee) f, city, SUM(age) a FROM members GROUP BY city")
    assert query.cost(epsilon="1.5") == eps("0.5") and query.plan(epsilon="1.5").loss == eps("1.5")
    answer = query.run(epsilon="1.5")
    assert answer.spent == eps("0.5") and ledger.spent("member") == eps("1.5")
    assert served(answer) and served(answer)[0].startswith("n, a answered from")
    assert query.cost(epsilon="1.5") == NO_LOSS


def test_a_column_whose_numbers_are_given_in_part_is_said_so(con: Connection) -> None:
    con.execute("SELECT city, COUNT(*) n FROM members GROUP BY city", epsilon=1)
    both = "SELECT city, COUNT(*) n FROM members GROUP BY ROLLUP (city)"
    first = con.execute(both, epsilon=1)
    assert first.spent == eps("0.5") and served(first)[0].startswith("part of n answered from")
    again = con.execute(both, epsilon=1)
    assert again.spent == NO_LOSS and served(again)[0].startswith("n answered from")


def test_a_filter_or_another_key_is_another_question(con: Connection) -> None:
    con.execute("SELECT city, COUNT(*) n FROM members GROUP BY city", epsilon=1)
    for sql in (
        "SELECT COUNT(*) n FROM members",
        "SELECT city, COUNT(*) n FROM members WHERE age > 3 GROUP BY city",
        "SELECT city, COUNT(*) FILTER (WHERE age > 3) n FROM members GROUP BY city",
        "SELECT city, COUNT(*) n FROM members WHERE city IN ('Bonn', 'Lyon') GROUP BY city",
        "SELECT city, COUNT(DISTINCT note) n FROM members GROUP BY city",
    ):
        assert con.execute(sql, epsilon=1).spent.epsilon == 1, sql


# Private keys ---------------------------------------------------------------------------------------------------------


def test_stored_keys_serve_as_public_ones(con: Connection, ledger: MemoryLedger) -> None:
    keys = con.execute("SELECT DISTINCT note FROM members", epsilon="0.5", delta="1e-6")
    delta = ledger.spent("member").delta
    assert keys.spent.epsilon == Fraction(1, 2) and 0 < delta <= Fraction(1, 10**6)
    answer = con.execute(BY_NOTE, epsilon=1, delta="1e-6")  # units and rows are one question here: nothing but the sum
    assert answer.spent == eps("0.5") and ledger.spent("member").delta == delta
    assert [r[0] for r in answer.rows] == [r[0] for r in keys.rows]
    assert con.execute(BY_NOTE, epsilon=1, delta="1e-6").rows == answer.rows
    assert any("reaches" in n for n in answer.notes)


def test_keys_are_found_anew_where_stored_ones_are_not_as_good(con: Connection, ledger: MemoryLedger) -> None:
    sql = "SELECT DISTINCT note FROM members"
    con.execute(sql, epsilon=1, delta="1e-6")
    # The same ε with a larger δ wants a lower threshold, with a smaller δ a safer one.
    for epsilon, delta in ((1, "1e-4"), (1, "1e-9"), (2, "1e-6")):
        assert con.execute(sql, epsilon=epsilon, delta=delta).spent.epsilon == epsilon
    assert ledger.spent("member").epsilon == 5
    for epsilon, delta in ((1, "1e-4"), (1, "1e-9"), (2, "1e-6"), (1, "1e-6"), (1, "1e-3"), (2, "1e-3")):
        paid = con.execute(sql, epsilon=epsilon, delta=delta).spent
        assert (paid == NO_LOSS) == ((epsilon, delta) != (2, "1e-3")), (epsilon, delta)


def test_a_least_number_of_units_is_part_of_the_question(con: Connection) -> None:
    con.execute(BY_NOTE, epsilon=1, delta="1e-6")
    least = BY_NOTE.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = 500)", 1)
    assert con.execute(least, epsilon=1, delta="1e-6").spent.epsilon == 1


def test_numbers_over_one_key_set_are_not_given_over_another(con: Connection, ledger: MemoryLedger) -> None:
    con.execute(BY_NOTE, epsilon=1, delta="1e-6")
    # A much better key set without any numbers: the old one has more to give.
    con.execute("SELECT DISTINCT note FROM members", epsilon=9, delta="1e-6", fresh=True)
    spent = ledger.spent("member")
    answer = con.execute(BY_NOTE, epsilon=1, delta="1e-6")
    assert answer.spent == NO_LOSS and ledger.spent("member") == spent
    # Asked for more, the better keys are taken, and the sum is measured over exactly those.
    more = con.execute(BY_NOTE, epsilon=2, delta="1e-6")
    assert more.spent == eps(1)


# Releases that read releases ------------------------------------------------------------------------------------------


def test_new_noise_below_makes_another_question(con: Connection, ledger: MemoryLedger) -> None:
    first = con.execute(NESTED, epsilon=1)
    assert con.execute(NESTED, epsilon=1).rows == first.rows
    con.execute("SELECT AVG(age) FROM members", epsilon=1)  # a better average
    spent = ledger.spent("member")
    again = con.execute(NESTED, epsilon=1)
    # Above the better average nothing is known; the old one is as good as was asked for, but not the best he has.
    assert again.spent.epsilon < 1 and ledger.spent("member").epsilon == spent.epsilon + again.spent.epsilon


def test_a_release_is_given_below_another_that_is_not(con: Connection) -> None:
    con.execute("SELECT AVG(age) AS a FROM members", epsilon=1)
    answer = con.execute(NESTED, epsilon="1.5")  # two parts of the average and a count: 0.5 each
    assert answer.spent == eps("0.5") and len(served(answer)) == 1


# Other analysts -------------------------------------------------------------------------------------------------------


def test_another_analyst_pays_from_his_own_account_only(clients: dict[str, Connection], ledger: MemoryLedger) -> None:
    first = clients["ana"].execute(COUNT, epsilon="0.5")
    query = clients["ben"].sql(COUNT)
    assert query.cost(epsilon="0.5") == eps("0.5")
    answer = query.run(epsilon="0.5")
    assert answer.rows == first.rows and answer.spent == eps("0.5")
    assert ledger.spent("member") == ledger.spent("member", "ana") == ledger.spent("member", "ben") == eps("0.5")
    assert any(n.startswith("n answered from") and n.endswith("new to this account") for n in answer.notes)
    assert "stored answers that are new to this account cost it ε 0.5, and the total budget nothing" in answer.notes
    again = query.run(epsilon="0.2")
    assert again.rows == first.rows and again.spent == NO_LOSS == query.cost(epsilon="0.2")
    assert ledger.spent("member", "ben") == eps("0.5")


def test_of_several_good_ones_he_gets_the_cheapest(clients: dict[str, Connection], ledger: MemoryLedger) -> None:
    cheap = clients["ana"].execute(COUNT, epsilon="0.2")
    clients["ana"].execute(COUNT, epsilon="0.5")
    answer = clients["ben"].execute(COUNT, epsilon="0.1", allow_dearer=True)
    assert answer.rows == cheap.rows and answer.spent == eps("0.2") and ledger.spent("member", "ben") == eps("0.2")


def test_what_he_may_not_receive_is_measured_anew(clients: dict[str, Connection], ledger: MemoryLedger) -> None:
    """Ana's answer is above what one query of Ben's may cost: he gets what he asked for."""
    clients["ana"].execute(COUNT, epsilon="0.7")
    answer = clients["ben"].execute(COUNT, epsilon="0.3", allow_dearer=True)
    assert answer.spent == eps("0.3") and ledger.spent("member") == eps(1) and not served(answer)
    with pytest.raises(BudgetExceeded) as refusal:
        clients["ben"].execute(COUNT, epsilon="0.65")
    assert {d.code for d in refusal.value.diagnostics} == {"DP405"}
    assert ledger.spent("member", "ben") == eps("0.3")


def test_received_in_part(clients: dict[str, Connection], ledger: MemoryLedger) -> None:
    clients["ana"].execute("SELECT COUNT(*), SUM(fee) FROM members", epsilon="0.4")
    answer = clients["ben"].execute("SELECT COUNT(*), SUM(fee + 1) FROM members", epsilon="0.4")
    assert answer.spent == eps("0.4")  # 0.2 for new noise, 0.2 for a stored answer
    assert ledger.spent("member") == eps("0.6") and ledger.spent("member", "ben") == eps("0.4")
    clients["ben"].execute("SELECT SUM(fee) FROM members", epsilon="0.2")
    assert ledger.spent("member") == eps("0.6") and ledger.spent("member", "ben") == eps("0.6")
    assert clients["ana"].execute("SELECT SUM(fee + 1) FROM members", epsilon="0.2").spent == eps("0.2")
    assert ledger.spent("member") == eps("0.6") and ledger.spent("member", "ana") == eps("0.6")


def test_an_answer_that_serves_two_releases_is_received_once(
    clients: dict[str, Connection], ledger: MemoryLedger
) -> None:
    """Both subqueries need the count; the other part of the average is new noise."""
    first = clients["ana"].execute(COUNT, epsilon="0.1")
    answer = clients["ben"].execute(f"SELECT ({COUNT}) AS n, (SELECT AVG(age) FROM members) AS m", epsilon="0.3")
    assert len(answer.plan.releases) == 2 and answer.rows[0][0] == first.rows[0][0]
    assert answer.spent == eps("0.2") == ledger.spent("member", "ben") and ledger.spent("member") == eps("0.2")


def test_a_price_does_not_tell_whether_a_number_was_guessed(
    clients: dict[str, Connection], ledger: MemoryLedger
) -> None:
    """Ben buys answers to a query over each number that Ana may have got: cheap, and stored under what it reads."""
    secret = clients["ana"].execute(COUNT, epsilon="0.5").rows[0][0]
    query = clients["ben"].sql(f"SELECT COUNT(*) AS n FROM members WHERE age > ({COUNT})")
    before = query.cost(epsilon="1e-9", allow_dearer=True)
    assert before == eps("0.5000000005")
    for guess in (secret + 1, secret):
        clients["ben"].execute(
            f"SELECT COUNT(*) AS n FROM members WHERE age > (SELECT c FROM (VALUES (CAST({guess} AS BIGINT))) v(c))",
            epsilon="1e-9",
        )
        assert query.cost(epsilon="1e-9", allow_dearer=True) == before
    # It is told to whoever has the number: the guess was the same question.
    assert clients["ana"].sql(query.sql).cost(epsilon="1e-9") == eps("1e-9")
    clients["ana"].execute(query.sql, epsilon="1e-9")
    assert ledger.spent("member") == eps("0.500000002")


@pytest.mark.parametrize("off", [0, 1])
def test_a_refusal_does_not_tell_whether_a_number_was_guessed(
    clients: dict[str, Connection], ledger: MemoryLedger, off: int
) -> None:
    """Ben could just receive Ana's number, and nothing new beside it."""
    secret = clients["ana"].execute(COUNT, epsilon="0.6").rows[0][0]
    clients["ben"].execute(
        f"SELECT COUNT(*) AS n FROM members WHERE age > (SELECT c FROM (VALUES (CAST({secret + off} AS BIGINT))) v(c))",
        epsilon="1e-9",
    )
    query = clients["ben"].sql(f"SELECT COUNT(*) AS n FROM members WHERE age > ({COUNT})")
    with pytest.raises(BudgetExceeded) as refusal:
        query.run(epsilon="0.6000000001", weights={"n": "1e-9"}, allow_dearer=True)
    assert {d.code for d in refusal.value.diagnostics} == {"DP405"}
    assert ledger.spent("member", "ben") == eps("1e-9")
    # With room for new noise beside it he is given all that is stored.
    answer = query.run(epsilon="0.599", weights={"n": "1e-10"}, allow_dearer=True)
    assert ledger.spent("member", "ben") == answer.spent + eps("1e-9") and answer.spent.epsilon <= Fraction("0.6")


def test_no_run_costs_more_than_was_told(clients: dict[str, Connection], ledger: MemoryLedger) -> None:
    """Ana's count above her average was dear: Ben, who has neither, is not given it in place of a cheap new one."""
    clients["ana"].execute(COUNT, epsilon="0.1")
    query = f"SELECT COUNT(*) AS n FROM members WHERE age > ({COUNT})"
    dear = clients["ana"].execute(query, epsilon="0.6", weights={"n": 5})
    assert dear.spent == eps("0.5")
    told = clients["ben"].sql(query).cost(epsilon="0.2")
    answer = clients["ben"].execute(query, epsilon="0.2")
    assert answer.spent == told == eps("0.2") and ledger.spent("member") == eps("0.7")
    # Where it costs no more, it is given.
    clients["ana"].execute("SELECT SUM(fee) FROM members", epsilon="0.1")
    query = "SELECT COUNT(*) AS n FROM members WHERE fee > (SELECT SUM(fee) FROM members)"
    dear = clients["ana"].execute(query, epsilon="0.2")
    answer = clients["ben"].execute(query, epsilon="0.2")
    assert answer.rows == dear.rows and answer.spent == eps("0.2") and ledger.spent("member") == eps("0.9")


def test_an_exhausted_total_still_gives_what_is_stored(clients: dict[str, Connection], ledger: MemoryLedger) -> None:
    clients["ana"].execute(COUNT, epsilon="0.5")
    clients["ana"].execute("SELECT SUM(age) FROM members", epsilon="1.5")
    clients["ben"].execute("SELECT COUNT(*) FROM members WHERE age > 5", epsilon="0.5")
    clients["ben"].execute("SELECT COUNT(*) FROM members WHERE age > 6", epsilon="0.5")
    for con in clients.values():
        with pytest.raises(BudgetExceeded):
            con.execute("SELECT COUNT(*) FROM members WHERE age > 7", epsilon="0.1")
    assert clients["ana"].execute(COUNT, epsilon="0.5").spent == NO_LOSS
    with pytest.raises(BudgetExceeded):  # Ben has nothing left for it
        clients["ben"].execute(COUNT, epsilon="0.5")


# Gaussian noise -------------------------------------------------------------------------------------------------------

SUMS = ", ".join(f"SUM(fee + {i}) AS s{i}" for i in range(14))


@pytest.mark.parametrize("accountant", ["approx_dp", "zcdp"])
def test_gaussian_numbers_are_given_and_priced_in_the_ledgers_terms(club_folder: Path, accountant: str) -> None:
    ledger = MemoryLedger("club", accountant)
    caps = "rho: 10" if accountant == "zcdp" else "epsilon: 10"
    policy = policy_of(
        club_folder,
        {"epsilon: 10000": caps, "name: club\n": f"name: club\nprivacy: {{accountant: {accountant}}}\n"},
    )  # fmt: skip
    query = f"SELECT COUNT(*) AS n, {SUMS} FROM members"
    with Connection(*opened(policy), ledger=ledger) as ana, Connection(*opened(policy), ledger=ledger) as ben:
        ben.analyst = "ben"
        first = ana.execute(query, epsilon=1, delta="1e-6")
        assert {c["mechanism"] for c in first.components} == {"gaussian"}
        total = ledger.spent("member")
        assert total == first.spent == (PrivacyLoss(rho=Fraction(1, 2)) if accountant == "zcdp" else first.plan.loss)
        # All that it cost is counted for Ben: the ρ of all parts together, converted once, at the same δ.
        again = ben.execute(query, epsilon=1, delta="1e-6")
        assert again.rows == first.rows and again.intervals() == first.intervals()
        assert again.spent == total == ledger.spent("member") == ledger.spent("member", "ben")
        # One more sum: its ρ alone is new.
        more = ana.execute(
            f"SELECT SUM(fee + 99) AS x, COUNT(*) AS n, {SUMS} FROM members", epsilon="0.9", delta="1e-6"
        )
        assert more.rows[0][1:] == first.rows[0]
        if accountant == "zcdp":
            assert more.spent == PrivacyLoss(rho=Fraction(81, 200) / 16)
        else:
            assert 0 < more.spent.epsilon < Fraction(9, 10) and more.spent.delta == Fraction(1, 10**6)
        assert ledger.spent("member") == total + more.spent


def test_a_number_of_one_family_serves_a_plan_of_the_other(con: Connection) -> None:
    """By variance; and the intervals are those of the noise that was drawn."""
    laplace = con.execute("SELECT COUNT(*) AS n FROM members", epsilon=1)
    many = con.sql(f"SELECT COUNT(*) AS n, {SUMS} FROM members")
    plan = many.plan(epsilon=2, delta="1e-6")
    assert {m.mechanism.name for m in plan.releases[0].measured.measurements} == {"gaussian"}
    answer = con.run(plan)
    assert answer.rows[0][0] == laplace.rows[0][0] and answer.intervals()[0]["n"] == laplace.intervals()[0]["n"]
    assert {c["mechanism"] for c in answer.components} == {"gaussian", "laplace"}
    better = con.sql(f"SELECT COUNT(*) AS n, {SUMS} FROM members").plan(epsilon=30, delta="1e-6")
    assert better.releases[0].measured.measurements[0].mechanism.variance() < 1.8  # Laplace noise of ε = 1 has 1.84
    assert con.run(better).components[0]["mechanism"] == better.releases[0].measured.measurements[0].mechanism.name
    assert con.run(better).spent == NO_LOSS


# When nothing is given ------------------------------------------------------------------------------------------------


def test_another_data_version_is_another_question_and_another_budget_is_not(
    club_folder: Path, ledger: MemoryLedger
) -> None:
    """Each part of a policy has its case in test_policy_changes.py."""
    newer = {"version: 1\n": 'version: 1\ndata_version: "2"\n'}
    for changes, spent in ({}, 1), (newer, 1), ({"[0, 100]": "[0, 101]"}, 0), ({"epsilon: 10000": "epsilon: 9999"}, 0):
        with Connection(*opened(policy_of(club_folder, changes)), ledger=ledger) as con:
            assert con.execute(COUNT, epsilon=1).spent == eps(spent), changes
            assert con.execute(COUNT, epsilon=1).spent == NO_LOSS
    assert ledger.spent("member") == eps(2)


def test_another_ledger_has_other_answers(club_folder: Path) -> None:
    for _ in range(2):
        with connect(club_folder / "club.yaml", ledger=MemoryLedger("club")) as con:
            assert con.execute(COUNT, epsilon=1).spent == eps(1)


def test_answers_that_the_ledger_does_not_name_are_left_alone(club_folder: Path, ledger: MemoryLedger) -> None:
    """A store that belongs to another ledger, or that somebody wrote into, gives nothing away."""
    other = MemoryLedger("club")
    with connect(club_folder / "club.yaml", ledger=other) as con:
        stolen = con.execute(COUNT, epsilon=1)
    with connect(club_folder / "club.yaml", ledger=ledger) as con:
        con.service._store = answers_beside(other)
        assert con.sql(COUNT).cost(epsilon=1) == eps(1)
        answer = con.execute(COUNT, epsilon=1)
        assert answer.spent == eps(1) and not served(answer)
        assert con.execute(COUNT, epsilon=1).rows == answer.rows
    assert stolen.spent == eps(1)


def test_public_numbers_are_neither_stored_nor_charged(con: Connection, ledger: MemoryLedger) -> None:
    for _ in range(2):
        answer = con.execute("SELECT COUNT(*) FROM cities", epsilon=1)
        assert answer.rows == ((3,),) and answer.spent == NO_LOSS and not served(answer)
    assert not ledger.history()


# Faults ---------------------------------------------------------------------------------------------------------------


class Broken(MemoryAnswers):
    """A store whose disk is full, or that cannot be read."""

    def __init__(self, error: Exception, where: str) -> None:
        super().__init__()
        self.error, self.where = error, where

    def add(self, answers: Any) -> None:
        if self.where == "add":
            raise self.error
        super().add(answers)

    def find(self, addresses: Any) -> Any:
        if self.where == "find":
            raise self.error
        return super().find(addresses)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), MemoryError(), CannotOpen([])])
def test_an_answer_that_cannot_be_stored_is_shown_with_a_note(
    con: Connection, ledger: MemoryLedger, error: Exception
) -> None:
    con.service._store = Broken(error, "add")
    for times in (1, 2):
        answer = con.execute(NESTED, epsilon=1)
        assert len(answer.rows) == 1 and answer.spent == eps(1) == ledger.history()[-1].entry.charges["member"]
        assert [n for n in answer.notes if "could not be stored: asking again costs again" in n] and times
    assert ledger.spent("member") == eps(2)


def test_a_store_that_cannot_be_read_is_a_refusal_before_anything_is_charged(
    con: Connection, ledger: MemoryLedger
) -> None:
    con.service._store = Broken(CannotOpen([]), "find")
    with pytest.raises(CannotOpen):
        con.execute(COUNT, epsilon=1)
    assert not ledger.history()
    assert con.execute(COUNT, epsilon=1, fresh=True).spent == eps(1)


def test_an_engine_failure_keeps_what_was_measured_before(con: Connection, ledger: MemoryLedger) -> None:
    """The first release is paid for and stored; asking again pays only for the second."""
    inner, calls = con.service.engine.fetch, [0]

    def fetch(sql: str) -> RawTable:
        calls[0] += 1
        if calls[0] == 2:
            raise MemoryError
        return inner(sql)

    con.service.engine.fetch = fetch  # type: ignore[method-assign]
    with pytest.raises(EngineError):
        con.execute(NESTED, epsilon="1.5")
    assert ledger.spent("member") == eps("1.5")
    con.service.engine.fetch = inner  # type: ignore[method-assign]
    answer = con.execute(NESTED, epsilon="1.5")
    assert answer.spent == eps("0.5") and ledger.spent("member") == eps(2)


def finishing(ledger: MemoryLedger, con: Connection) -> list[str]:
    """What is done, in order: "reserve", "read" and "finish"."""
    done: list[str] = []
    reserve, fetch = ledger.reserve, con.service.engine.fetch
    ledger.reserve = lambda *given: (reserve(*given), done.append("reserve"))[0]  # type: ignore[method-assign]
    ledger.finish = lambda: done.append("finish")  # type: ignore[method-assign]
    con.service.engine.fetch = lambda sql: (done.append("read"), fetch(sql))[1]  # type: ignore[method-assign]
    return done


@pytest.mark.parametrize("sql", [COUNT, NESTED, "SELECT SUM(age) AS s FROM members"])
def test_a_charge_is_made_before_the_data_is_read_and_finished_before_the_answer_is_shown(
    con: Connection, ledger: MemoryLedger, sql: str
) -> None:
    done = finishing(ledger, con)
    con.execute(sql, epsilon=1)
    assert (done[0], done[-1], done.count("finish")) == ("reserve", "finish", 1) and "read" in done
    done.clear()
    con.execute(sql, epsilon=1)  # it has it already: nothing is charged, and nothing to wait for
    assert done == []


def test_what_a_search_reserves_is_finished_with_what_it_finds(con: Connection, ledger: MemoryLedger) -> None:
    done = finishing(ledger, con)
    con.execute("SELECT SUM(hours) AS s FROM visits", epsilon=1, limits="search")
    assert done.count("reserve") == 2 and (done[-1], done.count("finish")) == ("finish", 1)


def test_an_answer_whose_charge_cannot_be_finished_is_kept_back_and_given_for_nothing(
    con: Connection, ledger: MemoryLedger
) -> None:
    def failing() -> None:
        raise unusable("head", "it cannot be written")

    ledger.finish = failing  # type: ignore[method-assign]
    with pytest.raises(CannotOpen):
        con.execute(COUNT, epsilon=1)
    assert ledger.spent("member") == eps(1)
    del ledger.finish  # type: ignore[method-assign]
    assert con.execute(COUNT, epsilon=1).spent == NO_LOSS and ledger.spent("member") == eps(1)


def test_looking_makes_no_files(club_folder: Path, tmp_path: Path) -> None:
    with connect(club_folder / "club.yaml", ledger=tmp_path / "l.sqlite") as con:
        assert con.sql(COUNT).cost(epsilon=1) == eps(1)
        assert list(tmp_path.iterdir()) == []


def test_a_file_beside_the_ledger_lasts(club_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rows = set()
    for _ in range(3):
        with connect(club_folder / "club.yaml", ledger=tmp_path / "l.sqlite") as con:
            rows.add(con.execute(BY_NOTE, epsilon=1, delta="1e-6").rows)
            assert con.sql(BY_NOTE).cost(epsilon=1, delta="1e-6") == NO_LOSS
            assert con.budget["member"].total_spent.epsilon == 1
    assert len(rows) == 1
    assert (tmp_path / "l.sqlite.answers").stat().st_mode & 0o777 == 0o600
    # Without the file everything is paid for again, and nothing else happens.
    (tmp_path / "l.sqlite.answers").unlink()
    with connect(club_folder / "club.yaml", ledger=tmp_path / "l.sqlite") as con:
        assert con.execute(BY_NOTE, epsilon=1, delta="1e-6").spent.epsilon == 1
        assert con.budget["member"].total_spent.epsilon == 2


def test_what_the_same_analyst_buys_elsewhere_meanwhile_is_not_received(con: Connection, ledger: MemoryLedger) -> None:
    """Between the look at his account and the look into the store another process of his pays for the same."""
    first = con.execute(COUNT, epsilon="0.3")
    store, hidden = con.service.account(con.analyst).store, [True]
    assert isinstance(store, MemoryAnswers)
    real = ledger.received

    def received(analyst: str | None = None) -> frozenset[str]:
        # The first look at the account is from before the purchase.
        return frozenset() if analyst is not None and hidden and hidden.pop() else real(analyst)

    ledger.received = received  # type: ignore[method-assign]
    assert con.sql(COUNT).cost(epsilon="0.1") == NO_LOSS
    assert con.execute(COUNT, epsilon="0.1").rows == first.rows
    assert ledger.spent("member", "*") == eps("0.3")


@pytest.mark.parametrize("sql", [COUNT, BY_CITY, BY_NOTE, NESTED])
def test_what_was_bought_while_a_run_waited_for_its_turn_is_given(con: Connection, sql: str) -> None:
    """He looks at an empty store, waits for the names, and meanwhile somebody asks the same and stores it."""
    store, bought = con.service.account(con.analyst).store, list[Release]()
    real = store.alone

    def alone(names: Collection[str], action: Callable[[], Any]) -> Any:
        store.alone = real  # type: ignore[method-assign]
        bought.append(con.sql(sql).run(epsilon="0.3", delta="1e-6"))
        return real(names, action)

    store.alone = alone  # type: ignore[method-assign]
    answer = con.sql(sql).run(epsilon="0.3", delta="1e-6")
    assert (answer.rows, answer.spent) == (bought[0].rows, NO_LOSS)
    assert bought[0].spent.epsilon == Fraction("0.3")


@pytest.mark.parametrize("sql", [COUNT, BY_CITY])
def test_a_new_question_is_resolved_once(con: Connection, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    looked = list[object]()

    def choosing(plan: Plan, *arguments: Any, **named: Any) -> ChosenAnswers:
        looked.append(plan)
        return choose(plan, *arguments, **named)

    monkeypatch.setattr("dpsql.answers.stored.resolve.choose", choosing)
    con.sql(sql).run(epsilon="0.3")
    assert len(looked) == 1


# --- slices of which a row is in one at most --------------------------------------------------------------------------

SLICES = {name: f"COUNT(*) FILTER (WHERE city = '{name}') AS {name}" for name in ("Bonn", "Lyon", "Oslo")}
PIVOT = f"SELECT {', '.join(SLICES.values())} FROM members"
ONE = f"SELECT {SLICES['Bonn']} FROM members"


def test_a_pivot_is_charged_once_and_its_slices_are_given_again(con: Connection, ledger: MemoryLedger) -> None:
    pivot = con.execute(PIVOT, epsilon=0.5)
    assert pivot.spent == eps("0.5") == ledger.spent("member")
    again = con.execute(ONE, epsilon=0.5)
    assert again.spent == NO_LOSS and again.rows[0][0] == pivot.rows[0][0]


def test_missing_slices_cost_the_largest_of_their_losses(con: Connection, ledger: MemoryLedger) -> None:
    """What was drawn before was drawn alone, and is not paid again; the two that are missing cost as one."""
    one = con.execute(ONE, epsilon=0.3)
    rest = con.execute(PIVOT, epsilon=0.3)
    assert rest.spent == eps("0.3") and rest.rows[0][0] == one.rows[0][0]
    assert ledger.spent("member") == eps("0.6")
    assert con.execute(PIVOT, epsilon=0.3).spent == NO_LOSS


def test_slices_that_were_drawn_together_are_received_together(
    clients: dict[str, Connection], ledger: MemoryLedger
) -> None:
    """Ben's account pays what it would for new ones: the largest, not the sum; his limit of 0.6 for a query holds."""
    clients["ana"].execute(PIVOT, epsilon=0.5)
    assert clients["ben"].execute(PIVOT, epsilon=0.5).spent == eps("0.5")
    assert ledger.spent("member") == eps("0.5") and ledger.spent("member", "ben") == eps("0.5")


def test_slices_that_were_drawn_one_after_the_other_are_received_one_by_one(
    clients: dict[str, Connection], ledger: MemoryLedger
) -> None:
    """Between two draws the data may have changed: a row may then be in two slices."""
    clients["ana"].execute(ONE, epsilon=0.3)
    clients["ana"].execute(PIVOT, epsilon=0.3)
    assert clients["ben"].execute(PIVOT, epsilon=0.3, allow_dearer=True).spent == eps("0.6")
    assert ledger.spent("member") == eps("0.6") and ledger.spent("member", "ben") == eps("0.6")
