"""`dpsql close`: say which periods of a growing table are complete, and tick its counters; or open some again.

0 done, 2 not.
"""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import dataclass
from os import PathLike

from dpsql.api.connection import connect
from dpsql.core.ir.periods import words
from dpsql.core.ledger import closings
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table
from dpsql.diagnostics.errors import Error, reject
from dpsql.faces.cli import exits
from dpsql.planner.computed import understood
from dpsql.policy.load import load_policy
from dpsql.service.accounts.ledgers import open_ledger, place_of


@dataclass(frozen=True, slots=True)
class Closing:
    """What is asked, as it was typed. table: None for the only one that grows. reopen: first and last day."""

    table: str | None
    through: str | None
    reopen: tuple[str, str] | None


def run(file: str, asked: Closing, ledger: str | PathLike[str] | None) -> int:
    """Raises dpsql.Error if policy or ledger cannot be opened, or the days are no periods."""
    policy = understood(load_policy(file))
    table = _table(policy, asked.table)
    through = None if asked.through is None else _day(asked.through)
    days = None if asked.reopen is None else (_day(asked.reopen[0]), _day(asked.reopen[1]))
    if (through is None) is (days is None):
        raise reject(
            "DP903", "say what is closed, or what is opened again", help=["--through DATE  or  --reopen FROM TO"]
        )
    place = place_of(policy, ledger)
    if place is None:
        raise reject("DP903", "a ledger in memory keeps no periods", help=["name a file or a database: --ledger"])
    opened = open_ledger(policy, place)
    try:
        if through is not None:
            found = closings.close(opened, policy, table, through)
        else:
            assert days is not None
            found = closings.reopen(opened, policy, table, days)
        opened.finish()
        waiting = [c.frozen.name for c in opened.counters() if not c.over and c.frozen.table == table.name]
    finally:
        opened.close()
    assert table.grows is not None
    print(f"{table.name}: read are  {words(table.grows.readable(found)) or 'no periods'}", file=sys.stderr)
    if through is not None and waiting:
        _tick(file, ledger, waiting)
    if days is not None:
        print(f"what was stored of {words((days,))} is served no longer; what was spent stays spent", file=sys.stderr)
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


def _table(policy: Policy, name: str | None) -> Table:
    growing = closings.tables_that_grow(policy)
    if name is None:
        if len(growing) == 1:
            return growing[0]
        named = ", ".join(t.name for t in growing)
        raise reject(
            "DP903", f"several tables grow: {named}" if growing else "no table of the policy grows",
            help=["--table NAME" if growing else "tables.NAME:  grows: {by: day, every: day, from: 2026-01-01}"],
        )  # fmt: skip
    found = policy.table(name)
    if found is None:
        raise reject("DP903", f"the policy has no table {name!r}", help=[f"--table {t.name}" for t in growing])
    return found


def _day(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise reject("DP903", f"{text!r} is no day", help=["2026-01-31"]) from None
