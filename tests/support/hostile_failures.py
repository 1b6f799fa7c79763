"""Expressions printed from false beliefs: no row makes one fail, and each call that fails is NULL by itself.

What is known of values chooses types and spares guards. Here it is a lie, of columns and of every call in turn, so that
types are too narrow and guards are missing; what is printed must be total all the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from dpsql.core.ir.expressions import Call, Expr, Literal
from dpsql.core.ir.types import BOOLEAN, INTEGER, Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.printing import expressions as printing
from dpsql.core.printing.expressions import Names, spell
from dpsql.core.value_classes import replace
from dpsql.core.values.value import Value
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected
from tests.support.hostile import Hostile, Made
from tests.support.hostile_checks import BATCH, Found

Printed = tuple[str, SqlType]
Rows = Callable[[Sequence[Printed], Sequence[int] | None], list[tuple[Any, ...] | str]]
"""The values of each text in these rows, or in all of them; of one that fails, what the engine says."""
ALONE = 4
"""Rows in which each batch is computed once more, each of them alone."""


def lied(value: Value, rng: random.Random) -> Value:
    """The same with a narrow interval that few values keep to, and neither NULL nor NaN."""
    if value.is_constant or rng.random() < 0.3:
        return value
    low = rng.choice((0, 1, 19_000, -5))
    narrow = iv.interval(low, low + rng.choice((0, 3, 100)))
    if value.type.kind in (Kind.VARCHAR, Kind.LIST, Kind.UUID, Kind.BOOLEAN):
        return replace(value, nullable=False)
    held = narrow if value.type.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP) else value.range
    return replace(value, interval=narrow, range=held, nullable=False, finite=True, domain=None, reach=None)


@contextmanager
def lies(names: Names, seed: int) -> Iterator[Names]:
    """Names of which, and of calls over which, something false is known: of equal ones the same, for each seed."""
    true = printing.call

    def lying(name: str, values: tuple[Value, ...], span: Span | None) -> Value:
        return lied(true(name, values, span), random.Random(f"{seed} {name} {values}"))

    env = {uid: lied(v, random.Random(f"{seed} {uid}")) for uid, v in names.env.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(printing, "call", lying)
        yield Names(names.sql, env, names.dialect)


def printed(expr: Expr, names: Names, seed: int) -> Printed | None:
    """An expression as it is printed from the lies of a seed; None if it is refused."""
    with lies(names, seed) as lying:
        try:
            sql, known = spell(expr, lying)
        except Rejected:
            return None
    return (sql, known.type) if len(sql) < 20_000 else None


def failures(hostile: Hostile, names: Names, rows: Rows, seed: int, number: int, until: str | None = None) -> Found:
    """Random expressions: none fails in any row, and a row alone has the value that it has among the others."""
    rng, found = random.Random(seed), Found()
    while found.tried < number and not found.told(until):
        made = [hostile.any() for _ in range(BATCH)]
        texts = [p for m in made if (p := printed(m.expr, names, rng.randrange(2**32))) is not None]
        some = [rng.randrange(60) for _ in range(ALONE)]
        alone = [rows(texts, (n,)) for n in some]
        for at, ((sql, _), values) in enumerate(zip(texts, rows(texts, None), strict=True)):
            found.tried += 1
            if isinstance(values, str):
                found.problems.append(f"fails: {values}: {sql}")
                continue
            for n, one in zip(some, alone, strict=True):
                found.compared += 1
                if repr(one[at]) != repr((values[n],)):
                    found.problems.append(f"row {n} alone: {one[at]!r}, not {values[n]!r}: {sql}")
    return found


def logic(hostile: Hostile, names: Names, rows: Rows, seed: int, number: int, until: str | None = None) -> Found:
    """AND, OR, CASE and COALESCE of conditions are what SQL's logic makes of the conditions' own values."""
    rng, found = random.Random(seed), Found()
    while found.tried < number and not found.told(until):
        wanted: list[tuple[Made, Made]] = []
        texts: list[Printed] = []
        for _ in range(BATCH // 4):
            one, other = (hostile.expression(Kind.BOOLEAN, 2) for _ in range(2))
            chosen = rng.randrange(2**32)
            each = [printed(e, names, chosen) for e in _joined(one, other)]
            if None not in each:
                wanted.append((one, other))
                texts += [p for p in each if p is not None]
        values = rows(texts, None)
        for at in range(len(wanted)):
            own = values[at * 6 : at * 6 + 6]
            found.tried += 1
            bad = next((v for v in own if isinstance(v, str)), None)
            if bad is not None:
                found.problems.append(f"fails: {bad}: {texts[at * 6]}")
                continue
            for n, (a, b, *got) in enumerate(zip(*own, strict=True)):
                found.compared += 1
                right = [_and(a, b), _or(a, b), 1 if a else 2 if b else 3, b if a is None else a]
                if got != right:
                    found.problems.append(f"row {n}: {a}, {b} give {got}, not {right}: {texts[at * 6 + 2][0]}")
                    break
    return found


def _joined(one: Made, other: Made) -> list[Expr]:
    a, b = one.expr, other.expr
    both = Call("case", (a, _whole(1), b, _whole(2), _whole(3)), INTEGER)
    return [a, b, *(Call(name, (a, b), BOOLEAN) for name in ("and", "or")), both, Call("coalesce", (a, b), BOOLEAN)]


def _whole(n: int) -> Expr:
    return Literal(n, INTEGER)


def _and(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def _or(a: bool | None, b: bool | None) -> bool | None:
    return True if a or b else None if a is None or b is None else False
