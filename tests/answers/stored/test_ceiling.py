"""What is asked is a ceiling: what others have bought is received only where all of a query costs no more than that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.answers.results.answer import Release
from dpsql.api.connection import Connection, connect
from dpsql.core.ledger.losses.regions import ALWAYS, Days
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded, Rejected
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.privacy_settings import settled
from dpsql.service.query import Query
from tests.support.club import POLICY
from tests.support.opened_once import opened

COUNT = "SELECT COUNT(*) AS n FROM members"
TILLS = "SELECT COUNT(*) FILTER (WHERE amount = 1) AS one FROM tills"
BOTH = "SELECT COUNT(*) FILTER (WHERE amount = 1) AS one, COUNT(*) FILTER (WHERE amount = 2) AS two FROM tills"
BY_NOTE = "SELECT note, COUNT(*) AS n, SUM(age) AS s FROM members GROUP BY note"
ABOVE = f"SELECT COUNT(*) AS n FROM members WHERE age > ({COUNT})"


def eps(value: object) -> PrivacyLoss:
    return PrivacyLoss(Fraction(str(value)))


def policy_text(club_folder: Path, budgets: str = "total: {epsilon: 100, delta: 1e-3}", defaults: str = "") -> str:
    text = POLICY.replace("DEFAULTS\n", defaults).replace("club.duckdb", str(club_folder / "club.duckdb"))
    return text.replace("total: {epsilon: 10000, delta: 1e-3}", budgets)


class Club:
    """Sessions of several analysts on one ledger."""

    def __init__(self, folder: Path, ledger: MemoryLedger) -> None:
        self.folder, self.ledger = folder, ledger
        self.opened: list[Connection] = []
        self.text = policy_text(folder)

    def __call__(self, analyst: str, **more: Any) -> Connection:
        settings = settled({"allow_dearer": None, **more}, QuerySettings())
        con = Connection(*opened(self.text), analyst, self.ledger, settings)
        self.opened.append(con)
        return con

    def total(self, unit: str = "member") -> PrivacyLoss:
        return self.ledger.spent(unit)


@pytest.fixture
def club(club_folder: Path, ledger: MemoryLedger) -> Iterator[Club]:
    found = Club(club_folder, ledger)
    yield found
    for con in found.opened:
        con.close()


def as_printed(query: Query, **asked: Any) -> Release:
    """Run it, and see that EXPLAIN and `cost` said before what it charges."""
    cost, shown = query.cost(**asked), query.explain(**asked)
    told = json.loads(query.explain(**asked, format="json"))
    answer = query.run(**asked)
    assert answer.spent == cost
    line = next(line for line in shown.splitlines() if line.startswith("cost: "))
    assert line.startswith(f"cost: {cost} of each" if cost != NO_LOSS else "cost: nothing"), line
    assert max(x["epsilon"] for x in told["cost"].values()) == float(cost.epsilon)
    assert max(x["epsilon"] for x in told["asked"].values()) == float(answer.plan.loss.epsilon)
    said = [note["text"] for note in told["notes"]]
    assert [n for n in answer.notes if "answered from" in n] == [n for n in said if "answered from" in n]
    return answer


# The default ----------------------------------------------------------------------------------------------------------


def test_a_dearer_answer_of_another_is_not_received(club: Club) -> None:
    ana = club("ana").execute(COUNT, epsilon="0.75")
    answer = as_printed(club("ben").sql(COUNT), epsilon="0.5")
    assert answer.spent == eps("0.5") == club.ledger.spent("member", "ben") and club.total() == eps("1.25")
    assert not any("answered from" in note for note in answer.notes)
    assert as_printed(club("ben").sql(COUNT), epsilon="0.5").rows == answer.rows
    # At its price it is, and then it is held.
    assert as_printed(club("cat").sql(COUNT), epsilon="0.75").rows == ana.rows
    assert as_printed(club("cat").sql(COUNT), epsilon="0.1").spent == NO_LOSS
    assert club.total() == eps("1.25")


def test_a_stored_part_does_not_break_a_parallel_group(club: Club) -> None:
    """Two slices cost ε 1 together. One of them is stored at ε 1; received beside a new one it would make that 2."""
    club("ana").execute(TILLS, epsilon=1)
    answer = as_printed(club("ben").sql(BOTH), epsilon=1)
    assert answer.spent == eps(1) == club.ledger.spent("tills", "ben") and club.total("tills") == eps(2)
    with_dearer = as_printed(club("cat").sql(BOTH), epsilon=1)  # drawn together by ben: ε 1
    assert with_dearer.rows == answer.rows and with_dearer.spent == eps(1) and club.total("tills") == eps(2)


def test_a_parallel_group_is_not_broken_for_what_is_left_of_the_ceiling_either(club: Club) -> None:
    """Beside a number that is held there would be room for it; drawing both anew costs less, and the total the same."""
    club("ana").execute(TILLS, epsilon="0.4")
    club("ben").execute("SELECT COUNT(DISTINCT amount) AS n FROM tills", epsilon="0.8")
    query = club("ben").sql(BOTH.replace(" FROM", ", COUNT(DISTINCT amount) AS n FROM"))
    answer = as_printed(query, epsilon=1, weights={"n": 6})  # 0.25 for both slices
    assert answer.spent == eps("0.25") and club.total("tills") == eps("1.45")


def test_of_several_draws_of_a_parallel_group_one_is_taken(club: Club) -> None:
    """The newest of the first slice was drawn alone; both together cost half as much from the draw before."""
    together = club("ana").execute(BOTH, epsilon="0.5")
    club("cat").execute(TILLS, epsilon="0.5", fresh=True)
    answer = as_printed(club("ben").sql(BOTH), epsilon="0.5")
    assert answer.rows == together.rows and answer.spent == eps("0.5") and club.total("tills") == eps(1)


def test_what_is_held_leaves_room_for_a_dearer_one(club: Club) -> None:
    """All that is charged counts: the sum for 0.9, where the query asks 1 and its count is held."""
    club("ana").execute("SELECT SUM(fee) AS s FROM members", epsilon="0.9")
    club("ben").execute(COUNT, epsilon="0.5")
    answer = as_printed(club("ben").sql("SELECT COUNT(*) AS n, SUM(fee) AS s FROM members"), epsilon=1)
    assert answer.spent == eps("0.9") and club.total() == eps("1.4")


def test_answers_are_received_in_the_order_of_components(club: Club) -> None:
    """The count at 0.5 leaves no room for the sum at 0.6, which alone would have fitted."""
    club("ana").execute("SELECT SUM(fee) AS s FROM members", epsilon="0.6")
    club("ana").execute(COUNT, epsilon="0.5")
    answer = as_printed(club("ben").sql("SELECT COUNT(*) AS n, SUM(fee) AS s FROM members"), epsilon=1)
    assert answer.spent == eps(1) and club.total() == eps("1.6")
    (note, _) = [n for n in answer.notes if "new to this account" in n]
    assert note.startswith("n answered from")


def test_a_largest_error_asks_the_least_that_meets_it(club: Club) -> None:
    ben = club("ben").sql(COUNT)
    least = ben.plan(max_error={"n": 20}).loss
    assert least.epsilon < Fraction("0.2")
    club("ana").execute(COUNT, epsilon="0.2")
    assert as_printed(ben, max_error={"n": 20}).spent == least
    assert as_printed(club("cat").sql(COUNT), max_error={"n": 20}).spent == least  # ben's serves
    assert as_printed(club("dan").sql(COUNT), max_error={"n": 20}, confidence=0.5, allow_dearer=True).spent == least
    assert club.total() == eps("0.2") + least


def test_a_number_of_rows_of_two_units_stays_within_both(club: Club) -> None:
    """Each unit has its own price; one that is too dear for one of them is not received."""
    club("ana").execute("SELECT COUNT(*) AS n FROM tills", epsilon="0.7")
    club("ana").execute(COUNT, epsilon="0.3")
    two = f"SELECT ({COUNT}) AS n, (SELECT COUNT(*) FROM tills) AS t"
    ben = club("ben")
    told = ben.charge(ben.sql(two).plan(epsilon="0.6")).by_unit
    assert told == {"member": eps("0.3"), "tills": eps("0.3")}
    as_printed(ben.sql(two), epsilon="0.6")
    assert club.total() == eps("0.3") and club.total("tills") == eps(1)


# Private keys ---------------------------------------------------------------------------------------------------------


def test_dearer_keys_are_not_received(club: Club) -> None:
    club("ana").execute("SELECT DISTINCT note FROM members", epsilon=1, delta="1e-6")
    answer = as_printed(club("ben").sql(BY_NOTE), epsilon=1, delta="1e-6")
    assert (
        answer.spent.epsilon == 1 and club.total().epsilon == 2 and club.ledger.spent("member", "ben") == answer.spent
    )
    # At their price they are, with all that is known over them.
    whole = as_printed(club("cat").sql(BY_NOTE), epsilon=1, delta="1e-6")
    assert whole.rows == answer.rows and whole.spent == answer.spent and club.total().epsilon == 2


def test_keys_that_are_held_come_before_keys_of_which_more_is_known(club: Club) -> None:
    club("ben").execute("SELECT DISTINCT note FROM members", epsilon="0.5", delta="1e-6")
    club("ana").execute(BY_NOTE, epsilon=1, delta="1e-6", fresh=True)
    answer = as_printed(club("ben").sql(BY_NOTE), epsilon=1, delta="1e-6")
    assert answer.spent == eps("0.5")  # the sum over his own keys; the others' would cost him both again, and a δ


# Gaussian noise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", ["approx_dp", "zcdp"])
def test_new_and_received_gaussian_noise_is_converted_once(club: Club, accountant: str) -> None:
    """Fifteen sums, of which fourteen are stored: as dear as fifteen new ones, at one δ."""
    club.ledger = MemoryLedger("club", accountant)
    caps = "total: {rho: 10, delta: 1e-3}" if accountant == "zcdp" else "total: {epsilon: 100, delta: 1e-3}"
    club.text = policy_text(club.folder, caps).replace(
        "units:\n", f"privacy: {{accountant: {accountant}}}\nunits:\n", 1
    )
    sums = [f"SUM(fee + {i}) AS s{i}" for i in range(16)]
    first = club("ana").execute(f"SELECT {', '.join(sums[:15])} FROM members", epsilon=1, delta="1e-6")
    assert {c["mechanism"] for c in first.components} == {"gaussian"}
    query = club("ben").sql(f"SELECT {', '.join(sums[1:])} FROM members")
    asked = query.plan(epsilon=1, delta="1e-6").loss
    assert query.cost(epsilon=1, delta="1e-6") == asked
    answer = query.run(epsilon=1, delta="1e-6")
    assert answer.spent == asked and answer.rows[0][:14] == first.rows[0][1:]
    assert club.ledger.spent("member", "ben") == asked
    drawn = club.ledger.history()[-1].entry.charges["member"]
    assert (drawn.rho or drawn.epsilon) * 3 < (asked.rho or asked.epsilon) and drawn.delta == asked.delta


# Whoever allows it ----------------------------------------------------------------------------------------------------


def allowing(club: Club, way: str) -> tuple[Query, dict[str, Any]]:
    """The count of an analyst who allows dearer answers in this way, and what he says with the query."""
    if way == "policy":
        plain, club.text = club.text, policy_text(club.folder, defaults="defaults: {allow_dearer: true}\n")
        con = club(way)
        club.text = plain
    else:
        con = club(way, allow_dearer=True) if way == "session" else club(way)
    if way == "set":
        assert con.execute("SET allow_dearer = on").fetchall() == [("allow_dearer", "on")]
    if way == "method":
        assert con.set("allow_dearer", True) is True
    asked = {"call": {"allow_dearer": True}, "word": {"allow_dearer": "on"}}
    return con.sql(COUNT), asked.get(way, {})


@pytest.mark.parametrize("way", ["call", "word", "session", "set", "method", "policy"])
def test_dearer_answers_can_be_allowed(club: Club, way: str) -> None:
    query, asked = allowing(club, way)
    ana = club("ana").execute(COUNT, epsilon="0.75")
    assert query.cost(epsilon="0.5", allow_dearer=False) == eps("0.5")  # and a call can take it back
    answer = as_printed(query, epsilon="0.5", **asked)
    assert answer.rows == ana.rows and answer.spent == eps("0.75") and club.total() == eps("0.75")
    assert "cost: ε 0.75 of each member (asked: ε 0.5 of each member)" in club("eve").sql(COUNT).explain(
        epsilon="0.5", allow_dearer=True
    )


def test_with_dearer_ones_allowed_each_is_received(club: Club) -> None:
    ana = club("ana").execute(TILLS, epsilon=1)
    answer = as_printed(club("ben").sql(BOTH), epsilon=1, allow_dearer=True)
    assert answer.spent == eps(2) and answer.rows[0][0] == ana.rows[0][0] and club.total("tills") == eps(2)


def test_what_was_set_is_shown_and_reset(club: Club) -> None:
    con = club("ben")
    assert con.execute("SHOW allow_dearer").fetchall() == [("allow_dearer", None)]
    for word, now in (("on", "on"), ("'off'", "off"), ("TRUE", "on"), ("DEFAULT", None)):
        assert con.execute(f"SET allow_dearer = {word}").fetchall() == [("allow_dearer", now)]
        assert con.execute("SHOW allow_dearer").fetchall() == [("allow_dearer", now)]
    opened = club("cat", allow_dearer=True)
    opened.set("allow_dearer", False)
    assert opened.execute("RESET allow_dearer").fetchall() == [("allow_dearer", "on")]
    for wrong in ("perhaps", 2, 0.5):
        with pytest.raises(Rejected) as refusal:
            con.set("allow_dearer", wrong)
        assert [d.code for d in refusal.value.diagnostics] == ["DP406"]
        with pytest.raises(Rejected):
            con.sql(COUNT).run(epsilon=1, allow_dearer=wrong)  # type: ignore[arg-type]
    assert not club.ledger.history()


def test_the_policys_word_makes_no_other_policy_of_it(club: Club) -> None:
    """Nothing of the budget comes back, and nothing stored is lost, whatever it says; other defaults are another."""
    plain = dpsql.Policy.from_yaml(club.text)
    first = club("ana").execute(COUNT, epsilon="0.5")
    for word in ("true", "false"):
        club.text = policy_text(club.folder, defaults=f"defaults: {{allow_dearer: {word}}}\n")
        policy = dpsql.Policy.from_yaml(club.text)
        assert policy.hash == plain.hash and policy.defaults.allow_dearer == (word == "true")
        con = club("ana")
        assert con.execute(COUNT, epsilon="0.5").rows == first.rows
        assert con.budget["member"].spent == eps("0.5") == con.budget["member"].total_spent
    other = dpsql.Policy.from_yaml(policy_text(club.folder, defaults="defaults: {epsilon: 1}\n"))
    assert other.hash != plain.hash


# Limits of the account, and the total ---------------------------------------------------------------------------------


def limited(club: Club, total: str = "100") -> None:
    club.text = policy_text(
        club.folder,
        f"total: {{epsilon: {total}, delta: 1e-3}}\n  analysts: {{ana: {{epsilon: 9}}, '*': {{epsilon: 9}}, "
        "ben: {epsilon: 1, per_query: {max_epsilon: 0.6}}, cat: {epsilon: 0.4}}",
    )


def test_the_accounts_own_limits_are_a_ceiling_too(club: Club) -> None:
    """Ben may spend 0.6 in a query, cat 0.4 in all: `cost` knows that they are given new noise."""
    limited(club)
    club("ana").execute(COUNT, epsilon="0.7")
    for name in ("ben", "cat"):
        club("ana").execute(COUNT, epsilon="0.7", fresh=True)
        assert as_printed(club(name).sql(COUNT), epsilon="0.2", allow_dearer=True).spent == eps("0.2")
    sums = "SELECT SUM(fee) AS s, COUNT(*) AS n FROM members"
    club("ana").execute("SELECT SUM(fee) AS s FROM members", epsilon="0.5")
    # Ben holds the count: 0.5 for the sum would be within 0.8 and 0.6; cat has 0.2 left, and pays 0.2 for a new one.
    assert as_printed(club("ben").sql(sums), epsilon="0.4").spent == eps("0.2")
    assert as_printed(club("cat").sql(sums), epsilon="0.4", allow_dearer=True).spent == eps("0.2")


def test_what_another_process_spent_meanwhile_is_no_refusal(club: Club, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is chosen while 0.7 are left to ben; when it is charged, only what he asked for fits."""
    limited(club)
    club("ana").execute(COUNT, epsilon="0.6")
    ben = club("ben")
    ben.execute("SELECT COUNT(*) AS n FROM members WHERE age < 7", epsilon="0.6")
    before, real = [eps("0.3")], club.ledger.spent

    def spent(unit: str, analyst: str | None = None, days: Days = ALWAYS) -> PrivacyLoss:
        return before.pop() if analyst == "ben" and before else real(unit, analyst)

    monkeypatch.setattr(club.ledger, "spent", spent)
    answer = ben.execute(COUNT, epsilon="0.3", allow_dearer=True)
    assert not before and answer.spent == eps("0.3") and real("member", "ben") == eps("0.9")


def refused(query: Query, **asked: Any) -> str:
    with pytest.raises(BudgetExceeded) as refusal:
        query.run(**asked)
    return str(refusal.value)


def test_an_exhausted_total_names_what_would_do(club: Club) -> None:
    limited(club, "1")
    ana = club("ana").execute(COUNT, epsilon="0.4")
    club("ana").execute("SELECT COUNT(*) FROM members WHERE age > 5", epsilon="0.6")
    eve = club("eve")
    shown = refused(eve.sql(COUNT), epsilon="0.3")
    assert "DP403" in shown and "stored answers would do, for ε 0.4 of this account" in shown
    assert "run(allow_dearer=True)  or  --allow-dearer" in shown and str(ana.rows[0][0]) not in shown
    assert eve.budget["member"].spent == NO_LOSS
    answer = as_printed(eve.sql(COUNT), epsilon="0.3", allow_dearer=True)
    assert answer.rows == ana.rows and answer.spent == eps("0.4") and club.total() == eps(1)


def test_it_is_named_only_where_it_would_do(club: Club) -> None:
    limited(club, "1")
    club("ana").execute(COUNT, epsilon="0.5")
    club("ana").execute("SELECT COUNT(*) FROM members WHERE age > 5", epsilon="0.5")
    for analyst, sql, epsilon in (
        ("cat", COUNT, "0.3"),  # more than cat may spend
        ("eve", "SELECT COUNT(*) FROM members WHERE age > 6", "0.3"),  # nobody has asked
        ("eve", "SELECT SUM(fee), COUNT(*) FROM members", "0.3"),  # a part is missing
        ("eve", COUNT, "0.6"),  # not as accurate
    ):
        shown = refused(club(analyst).sql(sql), epsilon=epsilon)
        assert "DP403" in shown and "allow" not in shown, sql
    shown = refused(club("eve").sql("SELECT SUM(fee), COUNT(*) FROM members"), epsilon="0.3", allow_dearer=True)
    assert "DP403" in shown and "allow" not in shown


@pytest.mark.parametrize("off", [0, 1])
def test_a_refusal_does_not_name_what_only_a_number_tells(club: Club, off: int) -> None:
    """Above a count that eve has not got, the rest is stored if its value is what somebody guessed: not a word."""
    limited(club, "1")
    number = club("ana").execute(COUNT, epsilon="0.5").rows[0][0]
    club("ana").execute(
        f"SELECT COUNT(*) AS n FROM members WHERE age > (SELECT c FROM (VALUES (CAST({number + off} AS BIGINT))) v(c))",
        epsilon="0.4",
    )
    club("ana").execute("SELECT COUNT(*) FROM members WHERE age > 5", epsilon="0.1")
    eve = club("eve")
    assert eve.sql(ABOVE).cost(epsilon="0.2") == eve.sql(ABOVE).cost(epsilon="0.2", allow_dearer=False) == eps("0.2")
    assert eve.sql(ABOVE).cost(epsilon="0.2", allow_dearer=True) == eps("0.6")
    for dearer in (False, True):
        shown = refused(eve.sql(ABOVE), epsilon="0.2", allow_dearer=dearer)
        assert "DP403" in shown and "stored answers would do" not in shown
    assert eve.budget["member"].spent == NO_LOSS


@pytest.mark.parametrize("off", [0, 1])
def test_the_charge_is_what_was_printed_whatever_was_guessed(club: Club, off: int) -> None:
    """Eve bought cheap noise above every number that ana may have: the one who is right pays the same."""
    number = club("ana").execute(COUNT, epsilon="0.1").rows[0][0]
    eve = club("eve")
    eve.execute(
        f"SELECT COUNT(*) AS n FROM members WHERE age > (SELECT c FROM (VALUES (CAST({number + off} AS BIGINT))) v(c))",
        epsilon="0.1",
    )
    assert as_printed(eve.sql(ABOVE), epsilon="0.2").spent == eps("0.2")
    assert club.total() == eps("0.3") and club.ledger.spent("member", "eve") == eps("0.3")


@pytest.mark.parametrize("off", [0, 1])
def test_a_run_is_refused_as_its_price_would_be(club: Club, off: int) -> None:
    """All of it is stored if a number that eve has not got is the one that somebody guessed: refused either way."""
    limited(club, "1")
    number = club("ana").execute(COUNT, epsilon="0.1").rows[0][0]
    club("ana").execute(
        f"SELECT COUNT(*) AS n FROM members WHERE age > (SELECT c FROM (VALUES (CAST({number + off} AS BIGINT))) v(c))",
        epsilon="0.1",
    )
    club("ana").execute("SELECT COUNT(*) FROM members WHERE age > 5", epsilon="0.8")
    eve = club("eve")
    assert eve.sql(ABOVE).cost(epsilon="0.2") == eps("0.2")
    shown = refused(eve.sql(ABOVE), epsilon="0.2")
    assert "DP403" in shown and "ε 0.1 asked, 0 left" in shown and "stored answers would do" not in shown
    assert eve.budget["member"].spent == NO_LOSS


def test_a_nested_query_of_another_is_given_whole_at_its_price(club: Club) -> None:
    """What stands above a number that ben receives in the same run: no new noise, and he pays what was printed."""
    ana = club("ana").execute(ABOVE, epsilon="0.4")
    answer = as_printed_but_notes(club("ben").sql(ABOVE), epsilon="0.4")
    assert answer.rows == ana.rows and answer.spent == eps("0.4") and club.total() == eps("0.4")


def as_printed_but_notes(query: Query, **asked: Any) -> Release:
    """EXPLAIN does not tell of what only a number that the account has not got leads to."""
    cost = query.cost(**asked)
    answer = query.run(**asked)
    assert answer.spent == cost
    return answer


# EXPLAIN without a ledger ---------------------------------------------------------------------------------------------


def test_explain_needs_no_ledger(club_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with connect(club_folder / "club.yaml", ledger=path) as con:
        assert "cost: ε 1 of each member\n" in con.sql(COUNT).explain(epsilon=1) + "\n"
        assert list(tmp_path.iterdir()) == []
    path.write_text("this is no ledger")
    with connect(club_folder / "club.yaml", ledger=path) as con:
        shown = con.sql(COUNT).explain(epsilon=1)
        assert "cost: ε 1 of each member\nnote: stored answers were not looked at: ledger " in shown
        with pytest.raises(dpsql.CannotOpen):
            con.sql(COUNT).cost(epsilon=1)
