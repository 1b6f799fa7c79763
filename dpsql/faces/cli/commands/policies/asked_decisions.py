"""The decisions of a draft, asked one by one at a terminal: what each choice means, the likeliest first."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from dpsql.core.noise.mechanisms import DiscreteLaplace
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.policy.catalogue import CatalogueTable
from dpsql.diagnostics.layout import printable
from dpsql.faces.report.odds import afterwards, in_hundred, steps
from dpsql.policy.tools.draft import Decided
from dpsql.policy.tools.likely_units import UnitProposal

_SHOWN: Final = 12
"""Columns of a table that are shown."""
_EPSILONS: Final = ("1", "0.5", "3", "10")


class _LeftOpen(Exception):
    """Whoever is asked leaves the rest open."""


def at_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(tables: Sequence[CatalogueTable], likely: Mapping[str, Sequence[UnitProposal]]) -> Decided:
    """What somebody decides; less than all where he leaves the rest open. Raises KeyboardInterrupt."""
    units: dict[str, UnitProposal] = {}
    total = len(tables) + 1
    _say(f"{total} decisions. Enter takes the first answer, ? shows all columns, q leaves the rest open.")
    try:
        # Tables that have an id of their own first: others lead to them.
        for table in sorted(tables, key=lambda t: bool(likely[t.name][0].to)):
            choices = [p for p in likely[table.name] if _leads_to_a_unit(p, units)]
            head = f"{len(units) + 1} of {total}. {table.name}: who is protected?"
            units[table.name] = choices[_chosen(head, _columns(table), [_told(p) for p in choices])]
        who = next((p.unit for p in units.values() if p.unit), "row")
        head = f"{total} of {total}. How much may all answers together ever tell about one {who}?"
        at = _chosen(head, (), [_odds(epsilon) for epsilon in _EPSILONS])
        return Decided(units, _EPSILONS[at])
    except _LeftOpen:
        return Decided(units)


def _leads_to_a_unit(proposal: UnitProposal, units: Mapping[str, UnitProposal]) -> bool:
    if not proposal.to:
        return True
    table = proposal.to.partition("(")[0].strip('"')
    return table in units and units[table].unit == proposal.unit


def _told(proposal: UnitProposal) -> str:
    promise = f"; promises that each {proposal.unique[1]} is in one row there" if proposal.unique else ""
    return proposal.means + promise


def _odds(epsilon: str) -> str:
    """What ε means to somebody who was in two minds."""
    sure = in_hundred(afterwards(0.5, Fraction(epsilon), steps("add_remove")))
    error = DiscreteLaplace.calibrate(Fraction(1), Fraction(epsilon) / 10).half_width(LEVEL)
    start = " (a good start)" if epsilon == _EPSILONS[0] else ""
    return (
        f"ε {epsilon}{start}: a guess about one of them that was 50 in 100 is {sure} afterwards, at most; enough for"
        f" 10 counts of them, each ± {error}"
    )


def _columns(table: CatalogueTable) -> tuple[str, ...]:
    return tuple(f"{c.name} {c.type.lower()}" for c in table.columns)


def _chosen(head: str, columns: Sequence[str], choices: Sequence[str]) -> int:
    """The number of a choice. Raises _LeftOpen."""
    _say("")
    _say(head)
    if columns:
        _say(f"   {', '.join(columns[:_SHOWN])}{f' and {len(columns) - _SHOWN} more' if columns[_SHOWN:] else ''}")
    for number, choice in enumerate(choices, 1):
        _say(f"   {number}  {choice}")
    while True:
        sys.stderr.write(f"Your choice [1-{len(choices)}, Enter is 1]: ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line.endswith("\n"):  # Ctrl-D, which ends no line
            _say("")
            raise _LeftOpen
        said = line.strip().lower()
        if said in ("q", "quit"):
            raise _LeftOpen
        if said in ("", *map(str, range(1, len(choices) + 1))):
            return int(said or 1) - 1
        _say(f"   {', '.join(columns)}" if said == "?" else f"   a number from 1 to {len(choices)}, or q")


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr)
