"""PostgreSQL asked a second time: what a row can make fail is asked of a function, which gives NULL.

PostgreSQL has no TRY. Its spellings look before they compute, but where they believe what is known of values, a row
that is otherwise makes the statement fail. Then it is asked again in this dialect (engines/postgres/asking_again.py).

*Claim.* No row makes a statement in this dialect fail, and wherever the first text gives a value, this one gives the
same. *Why.* A call or a cast is the body of a function of its arguments, with the text that it has in the first
asking; the function gives its value, or NULL after an error of `CAUGHT`. Bare stands only what is in `TOTAL` for
arguments that keep their types: no fact about values takes part, but the intervals of types, constants and exact
operators. *When it would be false.* A type that the server does not hold a value to (it does those of `HELD`); an
entry that fails for some value; a failure outside of `CAUGHT`: memory, disk, a time limit, damaged data are no
function of the row, and stay failures. *Tested by* tests/core/printing/test_asked_again.py,
tests/engines_elsewhere/postgres/test_hostile_failures.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from dpsql.core.gate.grammar import admitted
from dpsql.core.ir.types import BIGINT, BOOLEAN, DATE, DOUBLE, HUGEINT, INTEGER, SMALLINT, TIMESTAMP, Kind, SqlType
from dpsql.core.numbers.interval import Interval
from dpsql.core.printing.dialects.duckdb_total import TIMED, Total
from dpsql.core.printing.dialects.duckdb_total import TOTAL as OF_DUCKDB
from dpsql.core.printing.dialects.postgres import Postgres
from dpsql.core.printing.dialects.postgres_casts import type_name
from dpsql.core.values.meaning import meaning
from dpsql.core.values.value import Args, Value

CAUGHT: Final = ("data_exception", "feature_not_supported", "program_limit_exceeded")
"""Conditions of PL/pgSQL that a row's value brings about: `engines/postgres/asking_again.py` has their codes."""

HELD: Final = (SMALLINT, INTEGER, BIGINT)
"""Integers of which the server holds no value beyond the type, from narrow to wide."""


def _keeps(a: Value, target: SqlType) -> bool:
    """Whether an argument becomes the target for every value of its type."""
    if a.is_constant or a.type == target or a.type.kind is Kind.NULL:
        return True
    if a.type not in HELD:
        return False
    return target in (DOUBLE, HUGEINT, *HELD[HELD.index(a.type) :])


def _compared(args: Args, held: Sequence[Interval], result: Value) -> bool:
    target = meaning().compared_as(args)
    return target is None or all(_keeps(a, target) for a in args)


def _all(args: Args, held: Sequence[Interval], result: Value) -> bool:
    return all(_keeps(a, result.type) for a in args)


def _branches(args: Args, held: Sequence[Interval], result: Value) -> bool:
    return all(_keeps(a, result.type) for a in (*args[1::2], args[-1]))


def _clipped(args: Args, held: Sequence[Interval], result: Value) -> bool:
    return args[0].type == result.type


def _computed(of_duckdb: Total) -> Total:
    """In integers that the server holds to their types, or in DOUBLE, whose spellings look at the values."""
    return lambda args, held, result: (
        result.type in (INTEGER, BIGINT, DOUBLE) and _all(args, held, result) and of_duckdb(args, held, result)
    )


def _summed(of_duckdb: Total) -> Total:
    """The same, and of numerics, of which a sum has a digit more: they may have 131,072."""
    computed = _computed(of_duckdb)

    def rule(args: Args, held: Sequence[Interval], result: Value) -> bool:
        if result.type.kind is Kind.DECIMAL:  # without places it is cast to its digits
            return bool(result.type.scale) and all(a.type.kind in (Kind.INTEGER, Kind.DECIMAL) for a in args)
        return (result.type == HUGEINT and _all(args, held, result)) or computed(args, held, result)

    return rule


def _part(name: str) -> Total:
    timed = name in TIMED
    return lambda args, held, result: args[0].type == TIMESTAMP or (args[0].type == DATE and not timed)


TOTAL: Mapping[str, Total] = {
    **{
        name: OF_DUCKDB[name]
        for name in (
            "and", "or", "not", "is_null", "is_not_null", "is_true", "is_not_true", "is_false", "is_not_false",
            "lower", "upper", "trim", "ltrim", "rtrim", "starts_with", "contains", "length", "strlen", "strpos",
            "concat_op", "left", "right", "like", "ilike",
        )
    },
    **dict.fromkeys(
        ("eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from", "in", "nullif"), _compared
    ),
    **dict.fromkeys(("coalesce", "ifnull", "greatest", "least"), _all),
    **dict.fromkeys(("case", "if"), _branches),
    "clip": _clipped,
    **{name: _summed(OF_DUCKDB[name]) for name in ("add", "sub", "neg", "abs")},
    **{
        name: _computed(OF_DUCKDB[name])
        for name in ("mul", "div", "intdiv", "mod", "floor", "ceil", "trunc", "sqrt", "ln")
    },
    **{
        name: _part(name)
        for name in ("year", "month", "day", "quarter", "dayofweek", "isodow", "dayofyear", "hour", "minute", "second")
    },
}  # fmt: skip
"""By the first name of the function. What is not here can fail."""


class PostgresAgain(Postgres):
    """Prints as `Postgres` does, with functions around what can fail.

    first: the dialect of the first asking. functions: name → the statement that makes it, of all that was printed.
    """

    def __init__(self, first: Postgres) -> None:
        super().__init__(first.spellings)
        self.first = first
        self.functions: dict[str, str] = {}

    def attempt(
        self, sql: str, function: str, parts: Sequence[str], args: Args, held: Sequence[Interval], result: Value
    ) -> str:
        total = TOTAL.get(function)
        if result.type.kind is Kind.NULL or (total is not None and total(args, held, result)):
            return sql
        given, asked = self._parameters(parts, args)
        return self._called(self.first.call(function, given, args, result), given, asked, result.type)

    def convert(self, sql: str, known: Value, target: SqlType) -> str:
        if known.is_constant or known.type == target or (known.type == BOOLEAN and target.kind is not Kind.VARCHAR):
            return self.first.convert(sql, known, target)
        if target.kind is Kind.INTEGER and target in HELD and _keeps(known, target):
            return self.first.convert(sql, known, target)
        given, asked = self._parameters([sql], [known])
        return self._called(self.first.convert(given[0], known, target), given, asked, target)

    def _parameters(self, parts: Sequence[str], args: Args) -> tuple[list[str], list[tuple[str, SqlType]]]:
        """How the body reads its arguments, constants as they are; and what the others are, with their types."""
        given, asked = list[str](), list[tuple[str, SqlType]]()
        for part, a in zip(parts, args, strict=True):
            if a.is_constant or a.type.kind is Kind.NULL:
                given.append(part)
                continue
            asked.append((part, a.type))
            given.append(f"({self.column(f'${len(asked)}', a.type)})")
        return given, asked

    def _called(self, body: str, given: Sequence[str], asked: Sequence[tuple[str, SqlType]], type_: SqlType) -> str:
        admitted(f"({body})", tuple(given), self.name)
        caught = " OR ".join(CAUGHT)
        text = self.text(f"BEGIN RETURN {body}; EXCEPTION WHEN {caught} THEN RETURN NULL; END")
        head = f"({', '.join(type_name(t) for _, t in asked)}) RETURNS {type_name(type_)}"
        made = f"{head} LANGUAGE plpgsql STABLE AS {text}"
        name = f"dpsql_{hashlib.sha256(made.encode()).hexdigest()[:32]}"
        self.functions[name] = f"CREATE FUNCTION pg_temp.{name}{made}"
        call = self.column(f"pg_temp.{name}({', '.join(sql for sql, _ in asked)})", type_)
        # A function's result has no precision; without one, whole numbers would be read as integers.
        return f"({self.cast(call, type_) if type_.kind is Kind.DECIMAL and not type_.scale else call})"
