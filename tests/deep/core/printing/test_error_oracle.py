"""No row makes a query fail: every function and operator in whole queries over the oddest rows of every type.

The rows hold NULL, NaN, ±infinity, −0.0, the ends of all integers, empty, odd and huge texts, far dates. Below the
noise the exact integers of the very statements that run are compared: with those of single rows (a row's value is its
own), of the rows in another order on a connection with other settings, and of a database with one row less (as far
away as the noise covers). tests/functions/test_function_contract.py checks the values themselves, call by call.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.api.connection import Connection
from dpsql.core.ir.nodes import key_sources
from dpsql.core.ir.types import INTERVAL, VARCHAR, Kind
from dpsql.core.release.drawing import EngineAsk
from dpsql.core.release.noisy import Key, _fetch, public_keys
from dpsql.core.values.constants import literal
from dpsql.core.values.value import Scalar, Value
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.functions import lists
from dpsql.functions.domains import octaves
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.registry import apply
from dpsql.planner.plan import Plan
from tests.functions.test_function_contract import FUNCTIONS, LITERALS, VARIADIC, _type_of
from tests.support.function_rows import COLUMNS, typed

RAW = tuple(c for c in COLUMNS if c.value.interval.lo is None is c.value.interval.hi and c.value.domain is None)
ROWS = 36
GONE = (0, 5, 17)
"""Rows that are missing in the neighbours."""

UNNAMED = (*octaves.FUNCTIONS, *lists.FUNCTIONS)
"""Functions that no query can name."""

SPELLED = {
    "add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})", "div": "({} / {})", "intdiv": "({} // {})",
    "mod": "({} % {})", "neg": "(-{})", "eq": "({} = {})", "ne": "({} <> {})", "lt": "({} < {})", "le": "({} <= {})",
    "gt": "({} > {})", "ge": "({} >= {})", "is_distinct_from": "({} IS DISTINCT FROM {})",
    "is_not_distinct_from": "({} IS NOT DISTINCT FROM {})", "and": "({} AND {})", "or": "({} OR {})",
    "not": "(NOT {})", "is_null": "({} IS NULL)", "is_not_null": "({} IS NOT NULL)", "is_true": "({} IS TRUE)",
    "is_not_true": "({} IS NOT TRUE)", "is_false": "({} IS FALSE)", "is_not_false": "({} IS NOT FALSE)",
    "concat_op": "({} || {})", "bits_and": "({} & {})", "bits_or": "({} | {})", "bits_xor": "xor({}, {})",
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """An argument: its SQL and its facts."""

    sql: str
    value: Value


def plain(value: Scalar) -> str:
    """A literal as a user writes it."""
    match value:
        case None | bool():
            return str(value).replace("None", "NULL")
        case str():
            return "'" + value.replace("'", "''") + "'"
        case int() | float():
            return str(value)
        case _:
            return f"INTERVAL '{value.days}' DAY" if hasattr(value, "days") else f"{type(value).__name__} '{value}'"


def spelled(function: Function, args: Sequence[str]) -> str:
    """A call as a user writes it."""
    match function.name:
        case "case":
            pairs = [f"WHEN {a} THEN {b}" for a, b in zip(args[:-1:2], args[1::2], strict=False)]
            return f"(CASE {' '.join(pairs)} ELSE {args[-1]} END)"
        case "in":
            return f"({args[0]} IN ({', '.join(args[1:])}))"
        case "like" | "ilike":
            escape = f" ESCAPE {args[2]}" if len(args) > 2 else ""
            return f"({args[0]} {function.name.upper()} {args[1]}{escape})"
        case "date_shift":
            return f"({args[0]} + INTERVAL '{args[1]}' {args[2].strip(chr(39))})"
        case "time_bucket":
            return f"time_bucket(INTERVAL {args[1]} {args[2].strip(chr(39))}, {args[0]})"
        case name if name in SPELLED:
            return SPELLED[name].format(*args)
        case name:
            return f"{name}({', '.join(args)})"


def calls(function: Function, rng: random.Random, wanted: int) -> Iterator[str]:
    """Well-typed calls, at least one argument a column."""
    pool = [Part(c.name, c.value) for c in RAW]
    few = [Part(plain(v), literal(v, _type_of(v))) for v in (None, 0, 1, -1, 2, 7, 100, "", "a", "2024-02-29")]
    found = 0
    for _ in range(4000):
        arity = rng.choice((1, 2, 3, 5)) if function.name in VARIADIC else rng.choice((1, 2, 3))
        args = []
        for at in range(arity):
            choices = LITERALS.get(function.name, {}).get(at)
            if choices and (at in function.literal or rng.random() < 0.4):
                value = rng.choice(choices)
                facts = literal(value, INTERVAL if hasattr(value, "days") else _type_of(value))
                args.append(Part(plain(value), facts))
            elif at in function.literal or rng.random() < 0.2 or (function.name == "in" and at):
                args.append(rng.choice(few))
            else:
                alike = [p for p in pool if args and p.value.type.kind is args[-1].value.type.kind]
                args.append(rng.choice(alike if alike and rng.random() < 0.6 else pool))
        if not any(a in pool for a in args) or (
            function.name in SPELLED and SPELLED[function.name].count("{}") != arity
        ):
            continue
        try:
            apply(function, [a.value for a in args])
        except SignatureError:
            continue
        yield spelled(function, [a.sql for a in args])
        found += 1
        if found == wanted:
            return


@dataclass(frozen=True)
class Odd:
    """Sessions over the rows, over the same rows stored otherwise and over none; engines over the rows but one."""

    con: Connection
    other: Connection
    engines: dict[str, DuckDBEngine]
    empty: Connection

    def plan(self, sql: str) -> Plan | None:
        """None where the whole query is refused; then in the same words where there are no rows."""
        try:
            return self.con.sql(sql).plan(epsilon=1, delta="1e-6")
        except dpsql.Rejected as refusal:
            with pytest.raises(dpsql.Rejected) as caught:
                self.empty.sql(sql).plan(epsilon=1, delta="1e-6")
            assert str(caught.value) == str(refusal)
            return None

    def exact(self, plan: Plan, engine: str) -> list[dict[Key, list[int]]]:
        """The integers of each release."""
        return [_fetch(r, EngineAsk(self.engines[engine], 12345)).rows() for r in plan.releases]

    def otherwise(self, plan: Plan) -> list[dict[Key, list[int]]]:
        """The same from the connection with other settings, on which the tables have other names."""
        again = self.other.sql(plan.source.text).plan(epsilon=1, delta="1e-6")
        return [_fetch(r, EngineAsk(self.other.service.engine, 12345)).rows() for r in again.releases]


def rows_of(rng: random.Random) -> list[str]:
    """One row for each number, with every value of every column in some row where there are rows enough."""
    starts = {c.name: rng.randrange(len(c.pool)) for c in RAW}
    rows = []
    for i in range(ROWS):
        picks = (c.pool[(starts[c.name] + i) % len(c.pool)] for c in RAW)
        rows.append(f"({i}, {', '.join(typed(p, c.value.type) for p, c in zip(picks, RAW, strict=True))})")
    return rows


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odd]:
    folder = tmp_path_factory.mktemp("odd")
    columns = ", ".join(f"{c.name} {c.value.type}" for c in RAW)
    rows = rows_of(random.Random(5))
    databases = {
        "here": rows,
        "reversed": rows[::-1],
        "empty": [],
        **{f"without {i}": rows[:i] + rows[i + 1 :] for i in GONE},
    }
    for name, held in databases.items():
        with duckdb.connect(str(folder / f"{name}.duckdb")) as con:
            for table in ("odd", "two"):
                con.execute(f"CREATE TABLE {table} (rid INTEGER, {columns})")
                if held:
                    con.execute(f"INSERT INTO {table} VALUES {', '.join(held)}")
                    con.execute(f"UPDATE {table} SET txt_2 = repeat('huge ', 200000) WHERE rid = 5")
        listed = "\n".join(f"      {c.name}: {{type: '{c.value.type}'}}" for c in RAW)
        limits = (
            "unit: {column: rid}\n    max_rows_per_unit: 1\n    columns:\n      rid: {type: integer, nullable: false}"
        )
        (folder / f"{name}.yaml").write_text(
            f"version: 1\nname: odd\ndatabase: {name}.duckdb\nledger: {name}.sqlite\n"
            "budgets: {total: {epsilon: 1000000, delta: 0.9}}\ntables:\n"
            "  odd:\n    unit: {rows: 1}\n    columns:\n"
            f"      rid: {{type: integer, bounds: [0, {ROWS - 1}], domain: {list(range(ROWS))}}}\n{listed}\n"
            f"  two:\n    {limits}\n{listed}\n"
        )
    other = duckdb.connect(str(folder / "reversed.duckdb"))
    for setting in ("threads = 4", "ieee_floating_point_ops = false", "integer_division = true",
                    "default_null_order = 'nulls_first'", "default_order = 'desc'", "TimeZone = 'Asia/Tokyo'",
                    "preserve_insertion_order = false", "default_collation = 'nocase'"):  # fmt: skip
        other.execute(f"SET {setting}")
    with (
        dpsql.connect(folder / "here.yaml") as con,
        dpsql.connect(other, policy=folder / "reversed.yaml", optimizers="ours") as mine,
        dpsql.connect(folder / "empty.yaml") as empty,
    ):
        engines = {n: DuckDBEngine.open(Path(f"{n}.duckdb"), {}, folder) for n in databases if n != "reversed"}
        yield Odd(con, mine, engines, empty)
        for engine in engines.values():
            engine.close()
    other.close()


def nothing_differs(odd: Odd, plan: Plan) -> list[dict[Key, list[int]]]:
    """Order, settings and one row more or less: as the plan claims. Gives the exact integers."""
    ours = odd.exact(plan, "here")
    assert odd.otherwise(plan) == ours
    for gone in GONE:
        for release, a, b in zip(plan.releases, ours, odd.exact(plan, f"without {gone}"), strict=True):
            node = release.measured.node
            sources = key_sources(node)
            keys = set(a) | set(b) if sources is None else set(public_keys(sources, len(node.keys)))
            zeros = [0] * len(node.components)
            for i, m in enumerate(release.measured.measurements):
                moved = [abs(a.get(k, zeros)[i] - b.get(k, zeros)[i]) for k in keys]
                assert sum(moved) <= m.sensitivity.l1, (i, gone)
    for release in odd.exact(plan, "empty"):
        assert all(not any(values) for values in release.values())
    return ours


@pytest.mark.sampled(4)
@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f not in UNNAMED], ids=lambda f: f.name)
def test_item_17_and_18_no_row_makes_a_function_fail(odd: Odd, function: Function) -> None:
    """In SELECT, FILTER and below an aggregate: the sum over rows is the sum of the rows' own, and it is answered.

    Those that no query can name have tests of their own: tests/functions/test_octaves.py.
    """
    rng = random.Random(function.name)
    planned, tried = [], 0
    for call in calls(function, rng, 12):
        tried += 1
        if odd.plan(f"SELECT COUNT({call}) FROM odd") is not None:
            planned.append(call)
        if len(planned) == 4:
            break
    assert len(planned) >= min(tried, 2) >= 1, f"no call of {function.name} was planned"
    inner = ", ".join(f"{call} AS c{i}" for i, call in enumerate(planned))
    shown = ", ".join(f"COUNT(c{i}), COUNT(*) FILTER (WHERE c{i} IS NULL)" for i in range(len(planned)))
    whole = f"SELECT {shown} FROM (SELECT rid, {inner} FROM odd)"
    plan, each = odd.plan(whole), odd.plan(whole.replace("SELECT ", "SELECT rid, ", 1) + " GROUP BY rid")
    assert plan is not None and each is not None, whole
    (total,), (rows,) = nothing_differs(odd, plan), odd.exact(each, "here")
    assert [sum(column) for column in zip(*rows.values(), strict=True)] == total[()]
    ids = [f"SELECT COUNT(*), COUNT(DISTINCT CAST({c} AS VARCHAR)) FROM two WHERE {c} IS NOT NULL" for c in planned[:1]]
    for sql in ids:
        again = odd.plan(sql)
        if again is not None:
            nothing_differs(odd, again)
    answer = odd.con.sql(whole).run(epsilon=1, fresh=True)
    assert answer.spent.epsilon == 1 and len(answer.rows) == 1 and None not in answer.rows[0]


def test_item_17_the_generator_reaches_every_function() -> None:
    without = [f.name for f in FUNCTIONS if not list(calls(f, random.Random(f.name), 1))]
    assert without == []


TYPES = ("TINYINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "DECIMAL(4,2)", "DECIMAL(38,10)", "DOUBLE", "FLOAT",
         "BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP", "TIME", "UUID")  # fmt: skip


@pytest.mark.parametrize("target", TYPES)
def test_item_15_no_row_makes_a_cast_fail(odd: Odd, target: str) -> None:
    planned = [c.name for c in RAW[: len(RAW) // 2] if odd.plan(f"SELECT COUNT(CAST({c.name} AS {target})) FROM odd")]
    assert len(planned) >= 2
    shown = ", ".join(f"COUNT(CAST({c} AS {target}))" for c in planned)
    plan = odd.plan(f"SELECT {shown} FROM odd")
    assert plan is not None
    ((counts,),) = [list(r.values()) for r in nothing_differs(odd, plan)]
    assert all(0 <= n <= ROWS for n in counts) and any(counts)


RELATIONS = (
    "SELECT DISTINCT rid, {c} AS x FROM two",
    "SELECT rid, {c} AS x FROM two UNION SELECT rid, {c}_2 FROM two",
    "SELECT rid, {c} AS x FROM two EXCEPT ALL SELECT rid, {c}_2 FROM two",
    "SELECT rid, {c} AS x FROM two INTERSECT SELECT rid, {c} FROM two",
    "SELECT a.rid, a.{c} AS x FROM two a JOIN two b ON a.rid = b.rid AND a.{c} = b.{c}",
    "SELECT a.rid, b.{c} AS x FROM two a LEFT JOIN two b ON a.rid = b.rid AND b.{c} < b.{c}_2",
    "SELECT rid, MIN({c}) AS x FROM two GROUP BY rid",
    "SELECT rid, MAX({c}) AS x FROM two GROUP BY rid",
    "SELECT rid, {c} AS x FROM two WHERE {c} BETWEEN {c}_2 AND {c}",
    "SELECT rid, {c} AS x FROM two WHERE {c} IN (SELECT {c}_2 FROM two t WHERE t.rid = two.rid)",
    "SELECT rid, CASE {c} WHEN {c}_2 THEN {c} END AS x FROM two",
    "SELECT rid, COALESCE(NULLIF({c}, {c}_2), {c}_2) AS x FROM two",
)


COMPARED = [c for c in RAW if not c.name.endswith("_2") and c.value.type.kind is not Kind.LIST]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("column", COMPARED, ids=lambda c: c.name)
def test_item_09_and_53_no_row_makes_a_relation_fail(odd: Odd, column: object) -> None:
    """Merged, joined, compared and grouped by every type; what cannot be bounded is refused without a look at rows."""
    name = column.name  # type: ignore[attr-defined]
    kind = column.value.type.kind  # type: ignore[attr-defined]
    tried = 0
    for relation in RELATIONS:
        sql = f"SELECT COUNT(*), COUNT(x), COUNT(DISTINCT x) FROM ({relation.replace('{c}', name)})"
        plan = odd.plan(sql)
        if plan is not None:
            tried += 1
            nothing_differs(odd, plan)
            odd.con.run(plan, fresh=True)
    assert tried >= 5, name
    plan = odd.plan(f"SELECT {name}, COUNT(*) FROM two GROUP BY {name}")
    assert (plan is None) == (kind in (Kind.DOUBLE, Kind.FLOAT) if hasattr(Kind, "FLOAT") else kind is Kind.DOUBLE)
    if plan is not None:
        nothing_differs(odd, plan)
        odd.con.run(plan, fresh=True)


NUMBERS = tuple(
    c.name for c in RAW if c.value.type.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE) and not c.name.endswith("_2")
)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", NUMBERS)
def test_item_03_and_05_no_row_makes_an_aggregate_fail(odd: Odd, name: str) -> None:
    """Every aggregate over every numeric column, clipped low, high, to two values and as widely as is accepted."""
    for low, high in ((-5, 5), (0, 10**12), (3, 4), (-(10**18), 10**18)):
        clip = f"CLIP({name}, {low}, {high})"
        for aggregates in (
            f"SUM({clip}), COUNT({name}), AVG({clip})",
            f"VAR_POP(CLIP({name}, -5, 5)), STDDEV_SAMP(CLIP({name}, 0, 9))",
            f"COUNT_IF({name} > {low}), COUNT(DISTINCT {name}), SUM({clip}) FILTER (WHERE {name} <= {high})",
        ):
            plan = odd.plan(f"SELECT {aggregates} FROM odd")
            if plan is None:
                assert high >= 10**12 or name.startswith("dec38_38"), aggregates  # too wide for so fine a type
                continue
            nothing_differs(odd, plan)
            ((*values,),) = odd.con.run(plan, fresh=True).rows
            assert None not in values


WRONG = ("{}()", "{}(txt, day, flag, f64, ts, id, txt)", "{}(clock)", "{}('a', 'b', 'c')", "{}(*)", "{}(DISTINCT txt)")


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_item_70_refusals_of_a_function_are_the_same_bytes_for_every_database(odd: Odd, function: Function) -> None:
    """Wrong numbers and types of arguments: a refusal with a code, in the same words over all rows and over none."""
    refused = 0
    for name in function.names:
        for template in WRONG:
            refused += odd.plan(f"SELECT COUNT({template.format(name)}) FROM odd") is None
    assert refused >= 3


def test_item_18_the_huge_texts_are_there(odd: Odd) -> None:
    found = odd.engines["here"].fetch(f"SELECT MAX(strlen(txt_2)) FROM {odd.engines['here'].table_sql('odd')}").columns
    assert found == ([1_000_000],) and VARCHAR in {c.value.type for c in RAW} and len(RAW) > 30
