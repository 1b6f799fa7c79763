"""The contract of every scalar function: total, and as its rules claim, on extreme and ordinary rows of every type.

No call may raise an error; type, interval, range, nullability, finiteness, domain and the Python twin must agree with
the engine in every row. Each kind of claim has a mutated twin: a function with one wrong rule that must be caught.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dpsql.core.ir.types import DATE, INTEGER, TIMESTAMP, VARCHAR, SqlType, decimal, parse_type
from dpsql.core.ir.types import INTERVAL as INTERVAL_TYPE
from dpsql.core.printing.dialect import Dialect
from dpsql.core.values.constants import literal
from dpsql.core.values.value import Scalar, Value
from dpsql.engines.duckdb import DIALECT
from dpsql.functions.cast import cast
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.registry import FAMILIES, REGISTRY, apply
from tests.support.function_checker import Argument, check_call, check_sql, constant_sql
from tests.support.function_rows import COLUMNS, ROWS, build, constants

duckdb = pytest.importorskip("duckdb")

LABORATORIES: dict[str, tuple[Dialect, Callable[[], Any]]] = {
    "duckdb": (DIALECT, duckdb.connect),
}
"""Name of an engine → its dialect, and what opens an empty one."""
FUNCTIONS = [f for family in FAMILIES.values() for f in family]
CALLS = 10
"""Of each function; tests/deep/functions tries more."""
_PARTS: list[Scalar] = [
    "year",
    "month",
    "day",
    "quarter",
    "week",
    "isoyear",
    "dow",
    "isodow",
    "doy",
    "decade",
    "century",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "epoch",
    "Months",
    "days",
]
_UNITS: list[Scalar] = [
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "decade",
]
_PATTERNS: list[Scalar] = ["a%", "%", "", "_", "%b_c%", "A%", "日%", "\\", "no!%", "!!a", "nor__"]
_EXPRESSIONS: list[Scalar] = [
    "a",
    "^a.*b$",
    "[a-c]+",
    r"\d{2,4}",
    "",
    "(a|b)*c?",
    "日",
    r"\w+\s\w",
    "[^a]",
    "(?:x|y){3}",
    ".",
]
_GROUPED: list[Scalar] = ["(a)", "(.)", "()", "(a|b)*", r"(\d)\d?", "(?i)(B)", "([[:alpha:]]+)x?"]
_BOUNDS: list[Scalar] = [-(10**20), -5, 0, 1, 3, 100, 10**12, 10**30]
_DAYS: list[Scalar] = [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
_INSTANTS: list[Scalar] = [dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2024, 2, 29), dt.datetime(2100, 1, 1)]
LITERALS: dict[str, dict[int, list[Scalar]]] = {
    "date_part": {0: _PARTS},
    "date_trunc": {0: _UNITS},
    "date_diff": {0: _UNITS},
    "date_sub": {0: _UNITS},
    "time_bucket": {1: [1, 2, 15, 90, 1000], 2: _UNITS},
    "timezone": {0: ["UTC"]},
    "date_shift": {1: [0, 1, -1, 13, 1000, -1000], 2: _UNITS},
    "add": {1: [dt.timedelta(days=1), dt.timedelta(microseconds=-1), dt.timedelta(days=4_000_000), 1, 3]},
    "sub": {1: [dt.timedelta(days=40), dt.timedelta(hours=-1), 1, 3]},
    "date_add": {1: [dt.timedelta(days=1), dt.timedelta(hours=5)]},
    "like": {1: _PATTERNS, 2: ["!", "\\"]},
    "ilike": {1: _PATTERNS, 2: ["!", "N"]},
    "regexp_matches": {1: _EXPRESSIONS, 2: ["i", "", "s", "ci"]},
    "regexp_full_match": {1: _EXPRESSIONS, 2: ["i", ""]},
    "regexp_extract": {1: _GROUPED, 2: [0, 1], 3: ["i", ""]},
    "json_extract_string": {1: ["$.a", "$[0]", '$."a b".c[1]']},
    "regexp_replace": {1: _GROUPED, 2: ["", "x", r"<\1>", r"\0\0", r"\\", "é"], 3: ["g", "", "gi"]},
    "strftime": {1: ["%Y-%m", "%d.%m.%y", "%j %b %a %H:%M:%S %%", "", "%B", "%Y-%m-%d %I %p %f %A"]},
    "round": {1: [0, 1, 2, 15]},
    "clip": {at: [*_BOUNDS, *_DAYS, *_INSTANTS] for at in (1, 2)},
    "lpad": {1: [0, 1, 3, 1000], 2: ["x", "ab", "é"]},
    "rpad": {1: [0, 1, 3, 1000], 2: ["x", "ab", "é"]},
    "replace": {1: ["a", "", " ", "日"], 2: ["", "xyz", "é"]},
    "translate": {1: ["abc", "", "日"], 2: ["", "xyz", "é"]},
    "split_part": {1: [",", "b", "é"], 2: [1, 2, 1000]},
    "concat_ws": {0: [",", ""]},
    "trim": {1: [" ", "a", "ab"]},
    "ltrim": {1: [" ", "a", "ab"]},
    "rtrim": {1: [" ", "a", "ab"]},
    "pow": {1: [0, 1, 2, 3, -1, 64]},
    "log": {0: [2, 10, 1000]},
}
VARIADIC = {"and", "or", "case", "if", "coalesce", "greatest", "least", "concat", "concat_op", "concat_ws", "in"}


class Lab:
    """An engine, its dialect, the test table and generators of calls. Random, but the same in every run."""

    def __init__(self, seed: int, engine: str = "duckdb") -> None:
        self.rng = random.Random(seed)
        self.dialect, connect = LABORATORIES[engine]
        self.con = connect()
        self.values = build(self.con, self.rng)
        self.columns = [Argument(c.name, c.value, self.values[c.name]) for c in COLUMNS]
        self.constants = [self.constant(v, t) for v, t in constants()]

    def constant(self, value: Scalar, t: SqlType | None = None) -> Argument:
        t = t or _type_of(value)
        facts = literal(value, t)
        stored = facts.interval.lo if isinstance(value, dt.date) else value
        row = int(stored) if isinstance(value, dt.date) and stored is not None else value
        return Argument(constant_sql(value, t), facts, [row] * ROWS)  # type: ignore[list-item]

    def argument(self, function: Function, at: int) -> Argument:
        choices = LITERALS.get(function.name, {}).get(at)
        if choices is not None and (at in function.literal or self.rng.random() < 0.4):
            return self.constant(self.rng.choice(choices))
        if at in function.literal or self.rng.random() < 0.2:
            return self.rng.choice(self.constants)
        return self.rng.choice(self.columns)

    def calls(self, function: Function, wanted: int) -> Iterator[tuple[list[Argument], Value]]:
        """Well-typed calls of a function with arguments drawn at random, at least one of them a column."""
        found = 0
        for _ in range(6000):
            arity = self.rng.choice([1, 2, 3] + ([4, 5] if function.name in VARIADIC else []))
            args = [self.argument(function, i) for i in range(arity)]
            if function.name == "in":
                args[1:] = [self.rng.choice(self.constants) for _ in args[1:]]
            try:
                result = apply(function, [a.value for a in args])
            except SignatureError:
                continue
            yield args, result
            found += 1
            if found == wanted:
                return

    def complaints(self, function: Function, wanted: int = CALLS, dialect: Dialect | None = None) -> list[str]:
        return [
            c
            for args, result in self.calls(function, wanted)
            for c in check_call(self.con, dialect or self.dialect, function, args, result)
        ]


def _type_of(value: Scalar) -> SqlType:
    match value:
        case dt.timedelta():
            return INTERVAL_TYPE
        case str():
            return VARCHAR
        case dt.datetime():
            return TIMESTAMP
        case dt.date():
            return DATE
        case int() if abs(value) < 2**31:
            return INTEGER
        case _:
            return decimal(38, 0)


@pytest.fixture(scope="module", params=LABORATORIES)
def laboratory(request: pytest.FixtureRequest) -> Lab:
    return Lab(20, request.param)


@pytest.fixture
def lab(laboratory: Lab, request: pytest.FixtureRequest) -> Lab:
    """What a test draws depends on its name alone, not on the tests before it in the same process."""
    laboratory.rng.seed(os.environ.get("FUNCTIONS_SEED", "") + request.node.name)
    return laboratory


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_every_claim_holds_on_every_row(lab: Lab, function: Function) -> None:
    """Totality and all rules of one function."""
    if not lab.dialect.spells(function.name):
        pytest.skip("refused by name: tests/engines/test_dialect_contract.py")
    seen = 0
    complaints: list[str] = []
    for args, result in lab.calls(function, CALLS):
        seen += 1
        complaints += check_call(lab.con, lab.dialect, function, args, result)
    assert seen >= 5, "the generator finds no well-typed calls"
    assert not complaints, "\n".join(complaints[:8])


TARGETS = [
    "TINYINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UBIGINT",
    "DECIMAL(4,2)",
    "DECIMAL(18,0)",
    "DECIMAL(38,10)",
    "DECIMAL(38,38)",
    "DOUBLE",
    "FLOAT",
    "BOOLEAN",
    "VARCHAR",
    "DATE",
    "TIMESTAMP",
    "TIME",
    "UUID",
]


@pytest.mark.parametrize("target", TARGETS)
def test_casts_are_total_and_keep_their_claims(lab: Lab, target: str) -> None:
    t = parse_type(target)
    assert t is not None
    complaints: list[str] = []
    tried = 0
    for a in [*lab.columns[: len(lab.columns) // 2], *lab.constants]:
        try:
            result = cast(a.value, t)
        except SignatureError:
            continue
        tried += 1
        complaints += check_sql(lab.con, lab.dialect.convert(a.sql, a.value, t), result, [a.value])[0]
    assert tried >= 5
    assert not complaints, "\n".join(complaints[:8])


def test_the_registry_is_large_and_documented() -> None:
    assert len(REGISTRY) >= 120
    assert len(REGISTRY) == sum(len(f.names) for f in FUNCTIONS)
    for f in FUNCTIONS:
        assert f.signature and f.summary.endswith("."), f.name
        assert all(name == name.lower() for name in f.names)
