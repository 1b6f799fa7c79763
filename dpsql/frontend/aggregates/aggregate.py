"""What an aggregate is, before it is bound to an argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component
from dpsql.core.ir.nodes import AggregateCall
from dpsql.core.ir.types import SqlType
from dpsql.frontend.aggregates.formula import Formula

Shared = Callable[[Component], int]
"""The place of a component among those of the release, which it adds if it is new."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One line of the table.

    name: as in `AggregateCall.function`. signature, summary: for people. result: the type of the column by that of the
    argument. bind: what a call over private rows measures, and how the answer is made of it; it raises Rejected, with a
    repair. numeric: whether the argument has to be a number. distinct: whether DISTINCT means something.
    """

    name: str
    signature: str
    summary: str
    result: Callable[[SqlType], SqlType]
    bind: Callable[[AggregateCall, Facts, Shared], Formula]
    numeric: bool = True
    distinct: bool = False
