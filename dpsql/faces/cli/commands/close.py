"""`dpsql close`: say which periods of a growing table are complete, and tick its counters; or open some again.

0 done, 2 not.
"""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import dataclass
from os import PathLike

from dpsql.api.connection import connect
from dpsql.diagnostics.errors import Error, reject
from dpsql.faces.cli import exits
from dpsql.frontend.text.period_statements import ClosePeriods, PeriodStatement, ReopenPeriods
from dpsql.planner.computed import understood
from dpsql.policy.load import load_policy
from dpsql.service.accounts.ledgers import open_ledger, place_of
from dpsql.service.counters.closing import change_periods, growing_table


@dataclass(frozen=True, slots=True)
class Closing:
    """What is asked, as it was typed. table: None for the only one that grows. reopen: first and last day."""

    table: str | None
    through: str | None
    reopen: tuple[str, str] | None


def run(file: str, asked: Closing, ledger: str | PathLike[str] | None) -> int:
    """Raises dpsql.Error if policy or ledger cannot be opened, or the days are no periods."""
    policy = understood(load_policy(file))
    if (asked.through is None) is (asked.reopen is None):
        raise reject(
            "DP903", "say what is closed, or what is opened again", help=["--through DATE  or  --reopen FROM TO"]
        )
    statement: PeriodStatement
    if asked.through is not None:
        statement = ClosePeriods(asked.table, _day(asked.through))
    else:
        assert asked.reopen is not None
        statement = ReopenPeriods(asked.table, _day(asked.reopen[0]), _day(asked.reopen[1]))
    growing_table(policy, asked.table)
    place = place_of(policy, ledger)
    if place is None:
        raise reject("DP903", "a ledger in memory keeps no periods", help=["name a file or a database: --ledger"])
    opened = open_ledger(policy, place)
    try:
        found = change_periods(opened, policy, statement)
        opened.finish()
        waiting = [c.frozen.name for c in opened.counters() if not c.over and c.frozen.table == found.table.name]
    finally:
        opened.close()
    print(f"{found.table.name}: queries read {found.read}", file=sys.stderr)
    if found.reopened is not None:
        print(found.remark, file=sys.stderr)
    elif waiting:
        _tick(file, ledger, waiting)
    return exits.OK


def _tick(file: str, ledger: str | PathLike[str] | None, names: list[str]) -> None:
    """Count what is closed now; what cannot be counted here is counted later, at no other price."""
    try:
        with connect(file, ledger=ledger) as connection:
            found = connection.service.counters.tick()
    except Error as refusal:
        why = refusal.diagnostics[0].message if refusal.diagnostics else "the data cannot be opened"
        print(
            f"counters {', '.join(names)} are not counted: {why}; later:  TICK DP COUNTER {names[0]}", file=sys.stderr
        )
        return
    for each in found:
        lost = "" if each.lost is None else f"; {each.lost} is not: {each.why}:  TICK DP COUNTER {each.name}"
        print(f"counter {each.name}: counted through {each.through}{lost}", file=sys.stderr)


def _day(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise reject("DP903", f"{text!r} is no day", help=["2026-01-31"]) from None
