"""Closing periods: entries that charge nobody, and that fix how the period of a row is told."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from dpsql.core.ir.periods import Closed
from dpsql.core.ledger.closings import close, closed_periods, reopen, statement_words
from dpsql.core.ledger.ledger import EntryKind
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.policy.load import parse_policy

TABLE = (
    "{name}: {{unit: {{rows: 1{of}}}, grows: {{by: {by}, every: {every}, from: 2026-01-01}}, columns: {{{columns}}}}}"
)
HEAD = "version: 1\nname: p\nbudgets: {total: {epsilon: 1}}\n"
COLUMNS = "day: {type: date, nullable: false}, other: {type: date, nullable: false}"


def of(
    name: str = "trips", by: str = "day", every: str = "day", columns: str = COLUMNS, of: str = "", more: str = ""
) -> Policy:
    table = TABLE.format(name=name, by=by, every=every, columns=columns, of=of)
    return parse_policy(f"{HEAD}{more}tables:\n  {table}\n", "p.yaml")


def day(n: int) -> dt.date:
    return dt.date(2026, 1, n)


def trips(policy: Policy) -> Closed:
    return closed_periods(LEDGER.closings(), policy, next(iter(policy.tables.values())))


LEDGER = MemoryLedger()


@pytest.fixture(autouse=True)
def _new() -> None:
    global LEDGER
    LEDGER = MemoryLedger()


def test_what_is_closed_is_the_last_day_that_was_said() -> None:
    policy = of()
    table = policy.tables["trips"]
    assert trips(policy) == Closed()
    assert close(LEDGER, policy, table, day(5)) == Closed(day(5)) == trips(policy)
    close(LEDGER, policy, table, day(3))  # closed already: nothing is added
    close(LEDGER, policy, table, day(5))
    assert len(LEDGER.history()) == 1
    assert close(LEDGER, policy, table, day(9)) == Closed(day(9))
    entries = [r.entry for r in LEDGER.history()]
    assert {e.kind for e in entries} == {EntryKind.CLOSE} and not any(e.charges or e.received for e in entries)
    assert statement_words(entries[-1]) == "CLOSE DP PERIODS OF trips THROUGH 2026-01-09"
    assert all(a.spent for a in LEDGER.accounts()) or not LEDGER.accounts()


def test_reopened_days_stay_closed_and_are_counted() -> None:
    policy = of()
    table = policy.tables["trips"]
    close(LEDGER, policy, table, day(9))
    reopen(LEDGER, policy, table, (day(2), day(3)))
    found = reopen(LEDGER, policy, table, (day(3), day(3)))
    assert found.through == day(9) and found.times(((day(3), day(4)),)) == 2 and found.times(((day(4), day(9)),)) == 0
    assert (
        statement_words(LEDGER.history()[-1].entry) == "REOPEN DP PERIODS OF trips FROM 2026-01-03 THROUGH 2026-01-03"
    )
    for wrong in ((day(9), day(10)), (day(5), day(4)), (dt.date(2025, 12, 31), day(2))):
        with pytest.raises(Rejected, match="not closed days"):
            reopen(LEDGER, policy, table, wrong)


@pytest.mark.parametrize(
    ("every", "through", "help"),
    [
        ("month", day(15), "--through 2026-01-31"),
        ("month", dt.date(2026, 2, 5), "--through 2026-01-31  or  --through 2026-02-28"),
        ("day", dt.date(2025, 12, 31), "--through "),
    ],
)
def test_a_day_that_ends_no_period_closes_none(every: str, through: dt.date, help: str) -> None:
    policy = of(every=every)
    with pytest.raises(Rejected) as refused:
        close(LEDGER, policy, policy.tables["trips"], through)
    (found,) = refused.value.diagnostics
    assert found.code == "DP903" and found.help[0].startswith(help) and not LEDGER.history()


def test_a_table_that_does_not_grow_has_no_periods() -> None:
    policy = parse_policy(
        "version: 1\nname: p\nbudgets: {total: {epsilon: 1}}\ntables: {t: {unit: {rows: 1}}}\n", "p.yaml"
    )
    with pytest.raises(Rejected, match="does not grow"):
        close(LEDGER, policy, policy.tables["t"], day(1))


@pytest.mark.parametrize(
    "later",
    [
        of(by="other"),
        of(every="month"),
        of(columns="day: {type: date, from: 'other + 1'}, other: {type: date}"),
        of(columns="day: {type: date, from: 'cast(at AS date)'}, at: {type: timestamp, from: moment}"),
        # under another name of the table, and of the unit: the same rows, so the same periods
        of(name="rides", by="other", of=", of: trips"),
        of(name="rides", by="other", more="former_units: {trips: rides}\n"),
    ],
)
def test_a_row_keeps_its_period_whatever_the_policy_comes_to_say(later: Policy) -> None:
    policy = of()
    close(LEDGER, policy, policy.tables["trips"], day(9))
    with pytest.raises(CannotOpen, match="a row would have a second period") as refused:
        trips(later)
    assert [d.code for d in refused.value.diagnostics] == ["DP407"]


def test_a_table_that_is_renamed_keeps_what_is_closed() -> None:
    policy = of()
    close(LEDGER, policy, policy.tables["trips"], day(9))
    assert trips(of(name="rides", of=", of: trips")) == Closed(day(9))
    assert trips(of(name="rides", more="former_units: {trips: rides}\n")) == Closed(day(9))
    assert trips(of(name="walks")) == Closed()  # another unit


def test_a_ledger_in_a_file_remembers(tmp_path: Path) -> None:
    policy = of()
    with SqliteLedger.open(tmp_path / "l", tmp_path / "h", "p", "approx_dp", units=policy.unit_names) as ledger:
        close(ledger, policy, policy.tables["trips"], day(9))
    with SqliteLedger.open(tmp_path / "l", tmp_path / "h", "p", "approx_dp", units=policy.unit_names) as ledger:
        assert closed_periods(ledger.closings(), policy, policy.tables["trips"]) == Closed(day(9))
        assert ledger.verify() == 1


MADE = "day: {{type: date, from: 'cast({name} AS date)'}}, {name}: {{type: timestamp, from: \"{made}\"}}"


def test_what_the_day_is_computed_of_is_a_part_of_how_it_is_told() -> None:
    policy = of(columns=MADE.format(name="at", made="seen AT TIME ZONE 'UTC'"))
    close(LEDGER, policy, policy.tables["trips"], day(9))
    assert trips(of(columns=MADE.format(name="at", made="seen AT TIME ZONE 'UTC'") + ", n: {type: bigint}"))
    with pytest.raises(CannotOpen, match="a row would have a second period"):
        trips(of(columns=MADE.format(name="at", made="moment")))


@pytest.mark.parametrize(
    "columns",
    [
        MADE.format(name="at", made="seen AT TIME ZONE 'Europe/Berlin'"),
        MADE.format(name='"at it"', made="seen AT TIME ZONE 'Europe/Berlin'").replace('"at it": ', "at it: "),
    ],
)
def test_a_day_is_not_told_by_the_clock_of_a_zone(columns: str) -> None:
    """Its rules change, and with them the period of a row; also where the day is computed of such a time."""
    with pytest.raises(CannotOpen, match="clock of Europe/Berlin"):
        of(columns=columns)


def test_what_was_reopened_under_an_older_name_is_still_known() -> None:
    policy = of()
    close(LEDGER, policy, policy.tables["trips"], day(9))
    reopen(LEDGER, policy, policy.tables["trips"], (day(2), day(3)))
    later = of(name="rides", of=", of: trips")
    found = close(LEDGER, later, later.tables["rides"], day(10))
    assert found == Closed(day(10), ((day(2), day(3)),)) == trips(later)
