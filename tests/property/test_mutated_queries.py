"""Real queries with a few tokens changed end in a plan or in a refusal with a code and a place, never in a crash.

The queries are those of the examples, of the documentation and of the fixtures. A mutation deletes, doubles, moves or
replaces a token, inserts a word, or puts a piece of another query in its place. Nothing is said about what the changed
query means: only that the compiler ends, with an answer that can be shown.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from dpsql.compiler import Plan
from dpsql.compiler.explain import as_text
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Rejected
from dpsql.diagnostics.render import render_text
from dpsql.policy.load import load_policy
from dpsql.policy.models import Policy
from dpsql.session.check import static_plan
from tests.fixtures import cases

ROOT = Path(__file__).resolve().parent.parent.parent

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


@dataclass(frozen=True, slots=True)
class Real:
    """A query that somebody wrote, and the policy it was written for."""

    sql: str
    policy: Policy


@cache
def corpus() -> tuple[Real, ...]:
    """Every query of the examples, the fixtures and the documentation, each once."""
    found: dict[tuple[str, str], Real] = {}
    for folder in sorted((ROOT / "examples").iterdir()):
        policies = [load_policy(path) for path in sorted(folder.glob("*.yaml"))] if folder.is_dir() else []
        for path in sorted(folder.glob("queries/*.sql")):
            for at, policy in enumerate(policies):
                sql = path.read_text(encoding="utf-8")
                found[sql, f"{folder.name}/{at}"] = Real(sql, policy)
    for file in cases.files():
        for case in file.cases:
            found[case.sql, case.settings["policy"]] = Real(case.sql, cases.policy(case.settings["policy"]))
    documents = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "dpsql/diagnostics/pages").glob("*.md"))]
    for path in documents:
        for sql in re.findall(r"```sql[^\n]*\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
            name = "flights" if "flights" in sql else "clinic"
            found[sql, name] = Real(sql, cases.policy(name))
    return tuple(found.values())


def names(policy: Policy) -> list[str]:
    """Identifiers that mean something under the policy."""
    return [n for t in policy.tables.values() for n in (t.name, *t.columns)]


def mutated(rng: random.Random, real: Real, others: tuple[Real, ...]) -> str:
    """The query after one to four mutations."""
    tokens: list[str] = TOKEN.findall(real.sql)
    known = names(real.policy)
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
                donor = TOKEN.findall(rng.choice(others).sql)
                start = rng.randrange(len(donor))
                tokens[at:at] = [" ", *donor[start : start + rng.randint(1, 12)], " "]
            case _:  # a piece of this one, in brackets
                low, high = sorted((at, other))
                tokens[low : high + 1] = ["(", *tokens[low : high + 1], ")"]
    return "".join(tokens)


def _gently(rng: random.Random, tokens: list[str], known: list[str], others: tuple[Real, ...]) -> None:
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
            donor = TOKEN.findall(rng.choice(others).sql) if rng.random() < 0.5 else list(tokens)
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
        if d.span is None:
            yield f"{d.code} without a place: {d.message}"
        elif not 0 <= d.span.start <= d.span.end <= max(len(source.text), 1):
            yield f"{d.code} at {d.span}, outside of the text"
        if not d.message.strip():
            yield f"{d.code} without a message"
    if not render_text(diagnostics).strip():
        yield "nothing to show"


def outcome(
    sql: str, policy: Policy, compile_: Callable[[Source, Policy], object] = static_plan
) -> tuple[str, list[str]]:
    """`plan`, the code of the refusal, or `crash`; and what is wrong with it."""
    source = Source(sql)
    try:
        plan = compile_(source, policy)
        if isinstance(plan, Plan):
            as_text(plan, engine_sql=True)
    except Rejected as refusal:
        return refusal.diagnostics[0].code, list(problems(source, list(refusal.diagnostics)))
    except Exception as error:
        return "crash", [f"{type(error).__name__}: {error}"]
    return "plan", []


def campaign(seed: int, number: int, compile_: Callable[[Source, Policy], object] = static_plan) -> Counter[str]:
    """Outcomes of this many mutated queries. Fails on the first that ends badly."""
    rng, everything = random.Random(seed), corpus()
    seen: Counter[str] = Counter()
    for _ in range(number):
        real = rng.choice(everything)
        sql = mutated(rng, real, everything)
        kind, wrong = outcome(sql, real.policy, compile_)
        assert not wrong, f"{wrong}\npolicy {real.policy.name}, query:\n{sql}"
        seen[kind] += 1
    return seen


@pytest.mark.parametrize("seed", range(5))
def test_mutated_queries_end_in_a_plan_or_a_refusal(seed: int) -> None:
    seen = campaign(seed, 100)
    assert seen["plan"] > 1, seen
    assert len(seen) > 8, seen


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_mutated_queries_end_in_a_plan_or_a_refusal(seed: int) -> None:
    seen = campaign(seed, 250)
    assert seen["plan"] > 15, seen
    assert len(seen) > 15, seen


def test_a_crash_is_noticed() -> None:
    def broken(source: Source, policy: Policy) -> object:
        if "HAVING" in source.text:
            raise KeyError("HAVING")
        return static_plan(source, policy)

    with pytest.raises(AssertionError, match="KeyError"):
        campaign(0, 400, broken)


def test_a_refusal_without_a_place_is_noticed() -> None:
    source = Source("SELECT 1")
    assert list(problems(source, [Diagnostic("DP101", "no", None)])) == ["DP101 without a place: no"]
    assert next(problems(source, [Diagnostic("DP999", "no", None)])) == "unknown code DP999"
