"""What a statement takes and gives, without values: the types of its parameters, and its columns. From the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsql.core.ir.expressions import Column
from dpsql.core.ir.types import VARCHAR, SqlType
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.expressions.unknown_values import Unknowns, sample
from dpsql.frontend.bind.parameters import GivenRelation
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse

_MOST_ROUNDS = 3
"""A parameter that stands in several places may be a text in the first and something else in a later one."""


@dataclass(frozen=True, slots=True)
class Signature:
    """columns: of the result. parameters: the types of `$1`, `$2`, … in order; text where nothing says more.

    named: those of `$name`.
    """

    columns: tuple[Column, ...]
    parameters: tuple[SqlType, ...]
    named: Mapping[str, SqlType]

    @property
    def samples(self) -> tuple[Any, ...]:
        """Values that the parameters might have, to see the shape of the answer by."""
        return tuple(sample(type_, at) for at, type_ in enumerate(self.parameters))


def signature(
    source: Source, policy: Policy, *, dialect: str = "duckdb", relations: Sequence[GivenRelation] = ()
) -> Signature:
    """Of a query. It may be one that would be refused: only names and types are looked at.

    relations: that it reads besides tables.
    A comparison gives a parameter the type of what it is compared with, a CAST its own, LIMIT BIGINT.
    Raises Rejected with every diagnostic pointing into `source`.
    """
    unknowns = Unknowns()
    try:
        parsed = parse(source, dialect)
        for _ in range(_MOST_ROUNDS):
            known = dict(unknowns.types)
            columns = bind(parsed, policy, unknowns, relations=relations).columns
            if known == unknowns.types:
                break
    except Rejected as refusal:
        refusal.diagnostics = tuple(d.at(source) for d in refusal.diagnostics)
        raise
    except RecursionError:
        raise reject("DP010", "the statement is nested too deeply", source=source) from None
    types = {name: unknowns.types.get(name, VARCHAR) for name in unknowns.used}
    last = max((int(name) for name in types if name.isdecimal()), default=0)
    return Signature(
        columns,
        tuple(types.get(str(i), VARCHAR) for i in range(1, last + 1)),
        {name: type_ for name, type_ in types.items() if not name.isdecimal()},
    )
