"""What a scalar function is: one object that holds its types and its rules, and no SQL.

To add a function, add one `Function` to the module of its family and to that module's `FUNCTIONS` tuple, and its
spelling to the table of each dialect that can compute it exactly (`dpsql/spelling`); parsing, planning,
bounds, documentation and the contract test pick it up. Every rule is a claim about every possible input row and is
tested against the engines by `tests/functions/test_function_contract.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from dpsql.core.ir.types import SqlType
from dpsql.core.numbers.interval import Exact, Interval, everything
from dpsql.core.values.value import Args, Domain, Scalar


class SignatureError(Exception):
    """The arguments do not fit. message: the expectation, "expects a number, got VARCHAR". repair: if one is known."""

    def __init__(self, message: str, repair: str = "") -> None:
        super().__init__(f"{message}; {repair}" if repair else message)
        self.message, self.repair = message, repair


_nullable = attrgetter("nullable")


def null_if_any_is_null(args: Args) -> bool:
    """The usual rule: NULL in, NULL out, and nothing else gives NULL."""
    return any(map(_nullable, args))


def no_interval(args: Args) -> Interval:
    """The result is no number, or nothing is known about it."""
    return everything()


def no_domain(args: Args) -> Domain | None:
    """The result is no finite public set of keys."""
    return None


@dataclass(frozen=True, slots=True)
class Function:
    """One scalar function.

    names: SQL names in lower case; the first is canonical and is what plan nodes carry.
    signature, summary: for the documentation, e.g. `abs(x: number) → number`, "Absolute value."
    type: checks the arguments and gives the result type; raises SignatureError.
    interval: from the arguments' `interval`s to the result's. Of a DOUBLE result it says what real arithmetic gives:
        `apply` rounds the ends outwards.
    range: from the arguments' `interval`s, which then are their `range`s, to the result's; None: as `interval`. Not
        asked for DOUBLE and BOOLEAN.
    reach: of exact numbers, the largest sum or product of some of the parts that a chain of these operators has.
    nullable: can the result be NULL? Of a DOUBLE that is not `finite` the answer is yes.
    finite: is a DOUBLE result never NaN nor ±∞? Only where the printed SQL makes it so (CLIP), or it is an argument.
    domain: the finite public set of keys, if the arguments have one.
    python: the same function on Python values, where that is simple and exact: folds constants and maps domains.
    literal: positions of arguments that must be literals (patterns, date parts); checked before `type` is called.
    operator: True for operators and syntax (`+`, CASE, IN), which bind creates from syntax and never by name.
    """

    names: tuple[str, ...]
    signature: str
    summary: str
    type: Callable[[Args], SqlType]
    interval: Callable[[Args], Interval] = no_interval
    range: Callable[[Args], Interval] | None = None
    reach: Callable[[Args], Exact | None] | None = None
    nullable: Callable[[Args], bool] = null_if_any_is_null
    finite: Callable[[Args], bool] = lambda args: False
    domain: Callable[[Args], Domain | None] = no_domain
    python: Callable[..., Scalar] | None = None
    literal: frozenset[int] = frozenset()
    operator: bool = False

    @property
    def name(self) -> str:
        """The canonical name."""
        return self.names[0]
