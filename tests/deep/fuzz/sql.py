"""SQL: any text ends in a plan that can be shown, or in a refusal with a code and a place.

An input is a line `policy dialect` and a query. The seeds are the queries of the examples, of the documentation and
of the fixtures. A mutation deletes, doubles, moves or replaces a token, inserts a word, or puts a piece of another
query in its place. What is planned for the demo's clinic is run there, too: a query that is refused charges nothing,
and no query that was planned fails in the engine.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random

from dpsql.api.connection import Connection
from dpsql.core.engine import Engine
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import BudgetExceeded, Rejected, UtilityWarning
from dpsql.diagnostics.render import render_text
from dpsql.faces.cli.commands import demo
from dpsql.planner.explain.explain_text import as_text
from dpsql.policy.load import load_policy
from dpsql.policy.policy import Policy
from dpsql.service.checks.check import static_plan
from dpsql.service.open_data import open_data
from tests.deep.fuzz.target import Target, damaged
from tests.fixtures import cases

ROOT = Path(__file__).resolve().parents[3]

TOKEN = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\d+(?:\.\d+)?(?:e[+-]?\d+)?|\w+|<>|<=|>=|!=|\|\||::|\s+|.",
    re.DOTALL | re.IGNORECASE,
)
WORDS = (
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "ORDER", "LIMIT", "OFFSET", "UNION", "ALL", "INTERSECT",
    "EXCEPT", "DISTINCT", "ON", "USING", "NATURAL", "JOIN", "LEFT", "RIGHT", "FULL", "OUTER", "INNER", "CROSS",
    "SEMI", "ANTI", "LATERAL", "UNNEST", "VALUES", "WITH", "RECURSIVE", "AS", "NOT", "IN", "EXISTS", "ANY", "SOME",
    "NULL", "TRUE", "IS", "BETWEEN", "LIKE", "CASE", "WHEN", "THEN", "ELSE", "END", "OVER", "PARTITION", "ROWS",
    "RANGE", "QUALIFY", "WINDOW", "FILTER", "WITHIN", "ROLLUP", "CUBE", "GROUPING", "SETS", "GROUPING_ID", "COUNT",
    "SUM", "AVG", "MIN", "MAX", "MEDIAN", "FIRST", "STDDEV", "CLIP", "COALESCE", "CAST", "TRY_CAST", "INTERVAL",
    "DATE", "EXTRACT", "ASC", "DESC", "NULLS", "FETCH", "TABLESAMPLE", "PIVOT", "DIFFERENTIAL_PRIVACY", "OPTIONS",
    "ANON_COUNT", "DP_INTERVAL_LOW", "COLLATE", "ESCAPE", "POSITIONAL", "ASOF", "EXCLUDE", "REPLACE", "COLUMNS",
    "SUMMARIZE", "INSERT", "DROP", "SET", "ATTACH", "COPY",
)  # fmt: skip
SIGNS = (*"(),.;*+-/%=<>:?[]{}@#~^&|!'\"\\\x00é\uffff", "<>", "||", "::", "$1", "->", "--", "/*")
VALUES = ("NULL", "0", "-1", "1e400", "1e-400", "9" * 20, "9" * 60, "0.1", "''", "'NaN'::DOUBLE", "'a'",
          "DATE '2024-02-30'", "DATE 'infinity'", "INTERVAL 1 MONTH", "(SELECT 1)", "(SELECT COUNT(*) FROM t)", "()",
          "[1, 2]", "0x10", "CURRENT_DATE", "x'00'")  # fmt: skip
ALIKE = tuple(
    tuple(words.split("|"))
    for words in (
        "JOIN|LEFT JOIN|RIGHT JOIN|FULL JOIN|SEMI JOIN|ANTI JOIN|CROSS JOIN|NATURAL JOIN|INNER JOIN|POSITIONAL JOIN|,",
        "UNION|UNION ALL|INTERSECT|INTERSECT ALL|EXCEPT|EXCEPT ALL|UNION BY NAME|UNION ALL BY NAME",
        "COUNT|SUM|AVG|MIN|MAX|STDDEV|VARIANCE|MEDIAN|ANY_VALUE|COUNT_IF|LIST|GREATEST|COALESCE|ABS|LOWER|YEAR|ROUND",
        "AND|OR|AND NOT|IN|NOT IN|LIKE|IS NOT DISTINCT FROM|= ANY", "=|<>|<|>|<=|>=|+|-|*|/|%|//|AND|OR",
        "WHERE|HAVING|QUALIFY|ON|GROUP BY|ORDER BY", "SELECT|SELECT DISTINCT|SELECT ALL|SELECT 1 +|SELECT *,",
        "ROLLUP|CUBE|GROUPING SETS", "IN|NOT IN|EXISTS|NOT EXISTS", "ASC|DESC|NULLS FIRST|NULLS LAST",
    )
)  # fmt: skip
"""Words that may stand in each other's place without a syntax error."""
DIALECTS = ("duckdb", "postgres", "bigquery", "snowflake", "spark", "mysql", "tsql", "sqlite", "klingon", "")
PIECES = [sign.encode() for sign in SIGNS] + [word.encode() for word in WORDS] + [b"\xff", b"\xed\xa0\x80", b"\xf0\x9f"]


DEMO = "demo"
"""The clinic of `dpsql demo`, whose data are there."""


@cache
def policies() -> dict[str, Policy]:
    """By the name that an input gives: those of the tests, those of the examples with data, and the demo's."""
    found = {path.stem: load_policy(path) for path in sorted(cases.POLICIES.glob("*.yaml"))}
    for folder in ("flights", "tpch"):
        for path in sorted((ROOT / "examples" / folder).glob("*.yaml")):
            found[f"{path.parent.name}/{path.stem}"] = load_policy(path)
    return found | {DEMO: _demo()[0]}


@cache
def _demo() -> tuple[Policy, Engine, tempfile.TemporaryDirectory[str]]:
    """The demo's policy and its data, opened once; the folder goes with the process."""
    folder = tempfile.TemporaryDirectory()
    place = Path(folder.name) / DEMO
    demo.prepare(place)
    policy, engine = open_data(place / "clinic.yaml", None, None, 1, None)
    return policy, engine, folder


@cache
def seeds() -> Sequence[bytes]:
    """Every query of the examples, the fixtures and the documentation, each once."""
    found: dict[bytes, None] = {}
    for folder in sorted((ROOT / "examples").iterdir()):
        for path in sorted(folder.glob("queries/*.sql")):
            for policy in sorted(folder.glob("*.yaml")):
                found[written(f"{folder.name}/{policy.stem}", path.read_text(encoding="utf-8"))] = None
    for file in cases.files():
        for case in file.cases:
            found[written(case.settings["policy"], case.sql)] = None
    documents = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "dpsql/diagnostics/pages").glob("*.md"))]
    for path in documents:
        for sql in re.findall(r"```sql[^\n]*\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
            names = ["flights"] if "flights" in sql else ["clinic", DEMO]
            found |= {written(name, sql): None for name in names}
    for step in demo.STEPS:
        found[written(DEMO, step.sql)] = None
    return tuple(found)


def written(policy: str, sql: str, dialect: str = "duckdb") -> bytes:
    """An input."""
    return f"{policy} {dialect}\n{sql}".encode("utf-8", "surrogateescape")


def read(data: bytes) -> tuple[str, str, str]:
    """Policy, dialect and query of an input. A line that names no policy is the demo's, whatever it says."""
    first, _, sql = data.decode("utf-8", "surrogateescape").partition("\n")
    name, _, dialect = first.partition(" ")
    return name if name in policies() else DEMO, dialect, sql


def names(policy: Policy) -> list[str]:
    """Identifiers that mean something under the policy."""
    return [n for t in policy.tables.values() for n in (t.name, *t.columns)]


def mutate(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """A query after one to four mutations; now and then another policy or dialect, or bytes that are no text."""
    policy, dialect, sql = read(data)
    if rng.random() < 0.1:
        policy = rng.choice(sorted(policies()))
    if rng.random() < 0.1:
        dialect = rng.choice(DIALECTS)
    text = _mutated(rng, sql, names(policies()[policy]), [read(rng.choice(others))[2]] if others else [sql])
    found = written(policy, text, dialect)
    return damaged(found, rng, others, PIECES) if rng.random() < 0.05 else found


def _mutated(rng: Random, sql: str, known: list[str], others: list[str]) -> str:
    tokens: list[str] = TOKEN.findall(sql)
    rough = rng.random() < 0.35
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
        if not rough:
            _gently(rng, tokens, known, others)
            continue
        solid = [i for i, t in enumerate(tokens) if not t.isspace()]
        if not solid:
            break
        at, other = rng.choice(solid), rng.choice(solid)
        match rng.randrange(11):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, tokens[at] + " ")
            case 2:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3 | 4:
                words = [i for i in solid if re.fullmatch(r"[a-z_]\w*", tokens[i])] or solid
                tokens[rng.choice(words)] = rng.choice(known)
            case 5:
                tokens.insert(at, f" {rng.choice(WORDS)} ")
            case 6:
                tokens[at] = rng.choice(WORDS)
            case 7:
                tokens.insert(at, rng.choice(SIGNS))
            case 8:
                literals = [i for i in solid if re.match(r"[\d']", tokens[i])] or solid
                tokens[rng.choice(literals)] = rng.choice(VALUES)
            case 9:  # a piece of another query
                donor = TOKEN.findall(rng.choice(others))
                start = rng.randrange(len(donor) + 1)
                tokens[at:at] = [" ", *donor[start : start + rng.randint(1, 12)], " "]
            case _:  # a piece of this one, in brackets
                low, high = sorted((at, other))
                tokens[low : high + 1] = ["(", *tokens[low : high + 1], ")"]
    return "".join(tokens)


def _gently(rng: Random, tokens: list[str], known: list[str], others: list[str]) -> None:
    """One change after which the text most often can still be parsed."""
    words = [i for i, t in enumerate(tokens) if re.fullmatch(r"[a-z_]\w*", t)]
    values = [i for i, t in enumerate(tokens) if re.match(r"[\d']", t)]
    likely = [i for i, t in enumerate(tokens) if any(t.upper() in group for group in ALIKE)]
    opened = [i for i, t in enumerate(tokens) if t == "(" and _closing(tokens, i)]
    match rng.randrange(6):
        case 0 if words:
            tokens[rng.choice(words)] = rng.choice(known)
        case 1 if words:
            tokens[rng.choice(words)] = tokens[rng.choice(words)]
        case 2 if values:
            tokens[rng.choice(values)] = rng.choice(VALUES)
        case 3 if opened:  # what stands in brackets somewhere else
            donor = TOKEN.findall(rng.choice(others)) if rng.random() < 0.5 else list(tokens)
            places = [i for i, t in enumerate(donor) if t == "(" and _closing(donor, i)]
            if places:
                start, at = rng.choice(places), rng.choice(opened)
                tokens[at : _closing(tokens, at) + 1] = donor[start : _closing(donor, start) + 1]
        case 4 if words:  # a value computed from it
            at = rng.choice(words)
            forms = ("CAST({} AS INTEGER)", "({} + 1)", "NOT {}", "SUM({})", "{}[1]", "({})", "-{}", "{} IS NULL")
            tokens[at] = rng.choice(forms).format(tokens[at])
        case _ if likely:
            at = rng.choice(likely)
            tokens[at] = rng.choice(rng.choice([group for group in ALIKE if tokens[at].upper() in group]))
        case _:
            pass


def _closing(tokens: list[str], opened: int) -> int:
    """Where the bracket opened here is closed; 0 if it is not."""
    depth = 0
    for i in range(opened, len(tokens)):
        depth += (tokens[i] == "(") - (tokens[i] == ")")
        if depth == 0:
            return i
    return 0


def problems(source: Source, diagnostics: list[Diagnostic]) -> Iterator[str]:
    """What is wrong with a refusal, apart from its being one."""
    for d in diagnostics:
        if d.code not in CODES:
            yield f"unknown code {d.code}"
        if d.span is None and d.code == "DP903":  # what is wrong is not in the text
            pass
        elif d.span is None:
            yield f"{d.code} without a place: {d.message}"
        elif not 0 <= d.span.start <= d.span.end <= max(len(source.text), 1):
            yield f"{d.code} at {d.span}, outside of the text"
        if not d.message.strip():
            yield f"{d.code} without a message"
    if not render_text(diagnostics).strip():
        yield "nothing to show"


def one(data: bytes) -> str:
    """Plan a query, and run it if there are data: `plan`, `answer`, or the code it is refused with."""
    name, dialect, sql = read(data)
    policy, source = policies()[name], Source(sql)
    try:
        plan = static_plan(source, policy, dialect=dialect)
        as_text(plan, engine_sql=True)
        if name != DEMO:
            return "plan"
    except Rejected as refusal:
        wrong = list(problems(source, list(refusal.diagnostics)))
        assert not wrong, wrong
        if name != DEMO:
            return refusal.diagnostics[0].code
    ledger = MemoryLedger(policy.name, policy.privacy.accountant)
    with session(ledger) as connection:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UtilityWarning)  # here all warnings are errors
                release = connection.sql(sql, dialect=dialect).run()
        except Rejected as refusal:
            assert ledger.history() == [], "a refused query was charged"
            wrong = list(problems(source, list(refusal.diagnostics)))
            assert not wrong or isinstance(refusal, BudgetExceeded), wrong
            return refusal.diagnostics[0].code
    assert len(ledger.history()) <= 1 and str(release)
    return "answer"


@contextmanager
def session(ledger: MemoryLedger) -> Iterator[Connection]:
    """A session on the demo's data with a ledger of its own."""
    policy, engine, _ = _demo()
    connection = Connection(policy, engine, "ana", ledger)
    try:
        yield connection
    finally:
        connection.service.scratch.close()


TARGET = Target("sql", one, mutate, seeds)
