"""The grammar in grammar/ and the binder agree.

Every sentence of the grammar is read, and planned or refused with a code. Whatever the binder admits, printed in its
canonical form, can be derived. Every near miss of grammar/outside.lark is refused with the code of its label.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lark.exceptions import LarkError
from sqlglot import exp

import dpsql
from dpsql.core.ir.expressions import Call, walk
from dpsql.core.ir.nodes import Node, Project
from dpsql.core.printing.windows import WINDOW_FUNCTIONS
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.google.privacy_clause import CallBounds, Clause, bounds_of
from dpsql.frontend.parse import Parsed, parse
from dpsql.functions import lists
from dpsql.functions.registry import REGISTRY
from dpsql.policy.load import load_policy
from dpsql.policy.policy import Policy
from grammar.read import ACCEPTED, lark, parser
from tests.support.grammar_sentences import Text, expressions, near_misses, queries

POLICIES = Path(__file__).resolve().parents[2] / "fixtures" / "policies"
TABLES = {"flights": ("flights", "airlines", "planes"), "pages": (), "shop": ()}
SYNTAX = {"DP010", "DP011", "DP012"}


def policy(name: str) -> Policy:
    return load_policy(POLICIES / f"{name}.yaml")


def relations(name: str) -> tuple[str, ...]:
    """The tables to read, the private ones first."""
    tables = policy(name).tables.values()
    return TABLES[name] or tuple(t.name for t in sorted(tables, key=lambda t: t.public) if t.columns)


def derivable(sql: str) -> bool:
    try:
        parser().parse(sql)
    except LarkError:
        return False
    return True


def canonical(parsed: Parsed) -> str:
    """The query in one spelling: clauses in their order, names in quotes, one form of each operator."""
    tree = parsed.tree.transform(_own)
    text = tree.sql("duckdb", identify=True, comments=False)
    return text if parsed.clause is None else text.replace("SELECT", f"SELECT {clause(parsed.clause)}", 1)


def _own(node: exp.Expr) -> exp.Expr:
    """What sqlglot prints otherwise than anyone may write it, and bounds that were lifted out of an aggregate."""
    match node:
        case exp.DateAdd() if not isinstance(node.expression, exp.Interval):  # printed as INTERVAL of a computed length
            return exp.Add(this=node.this, expression=node.expression)
        case exp.Group() if node.args.get("rollup") or node.args.get("cube"):  # `a, b WITH ROLLUP`
            kind = exp.Rollup if node.args.get("rollup") else exp.Cube
            return exp.Group(expressions=[kind(expressions=node.expressions)])
        case exp.SetOperation():  # WITH behind UNION, without brackets
            for side in ("this", "expression"):
                if node.args[side].args.get("with_"):
                    node.set(side, exp.Subquery(this=node.args[side]))
        case exp.WithinGroup():  # printed within the brackets of the call
            call, order = (part.transform(_own).sql("duckdb", identify=True) for part in (node.this, node.expression))
            return exp.Var(this=f"{call} WITHIN GROUP ({order})")
        case exp.PercentileCont() | exp.PercentileDisc() | exp.ApproxQuantiles():
            given = [node.this] if node.expression is None else [node.this, node.expression]
            return exp.Anonymous(this=node.sql_name(), expressions=[*given, *bounds_written(node)])
        case exp.Func() if written := bounds_written(node):
            given = [] if node.this is None else [node.this]
            return exp.Anonymous(this=node.sql("duckdb").partition("(")[0], expressions=[*given, *written])
    return node


def bounds_written(node: exp.Expr) -> list[exp.Expr]:
    """The bounds that were lifted out of an aggregate, as its last argument."""
    bounds = bounds_of(node)
    if bounds is None:
        return []
    name, pair = next((n, p) for n, p in named_bounds(bounds) if p is not None)
    low, high = (exp.Var(this=str(float(end))) for end in pair)
    return [exp.Kwarg(this=exp.Var(this=name), expression=exp.Tuple(expressions=[low, high]))]


def named_bounds(bounds: CallBounds) -> list[tuple[str, tuple[Fraction, Fraction] | None]]:
    """All bounds that a call may have, by the names that they are printed with."""
    row = "contribution_bounds_per_row"
    return [("contribution_bounds_per_group", bounds.per_group), (row, bounds.per_row), (row, bounds.clamped)]


def clause(found: Clause) -> str:
    """A privacy clause in one spelling."""
    options = {
        "epsilon": found.epsilon, "delta": found.delta, "max_groups_contributed": found.max_groups,
        "max_rows_contributed": found.max_rows, "min_privacy_units_per_group": found.min_units,
    }  # fmt: skip
    written = [f"{name} = {float(value)}" for name, value in options.items() if value is not None]
    if found.search:
        written.append("max_rows_contributed = AUTO")
    if found.public_groups is not None:
        written += [f"group_selection_strategy = {'PUBLIC_GROUPS' if found.public_groups else 'LAPLACE_THRESHOLD'}"]
    return "WITH DIFFERENTIAL_PRIVACY" + (f" OPTIONS ({', '.join(written)})" if written else "")


def parameters(sql: str) -> list[int] | dict[str, int]:
    """Values for the placeholders of a sentence."""
    named = re.findall(r"\$(\w+)", sql)
    return dict.fromkeys(named, 1) if named else [1] * sql.count("?")


def outcome(sql: str, held: Policy) -> str:
    """`planned`, or the code of the refusal. Anything but a coded refusal fails the test by itself."""
    found = [d for d in dpsql.check(sql, held, parameters(sql)) if d.severity == "error"]
    for d in found:
        assert d.code in CODES and d.message, sql
        assert d.span is not None and d.span.start < d.span.end <= len(sql), f"{d.code} points nowhere: {sql}"
    return next((d.code for d in found if d.code in SYNTAX), found[0].code) if found else "planned"


def beyond(sql: str, held: Policy) -> bool:
    """Whether the parser refused what the grammar cannot tell: how many arguments a function takes, and `* EXCEPT`,
    which leaves columns out and is no set operation."""
    if re.search(r"\* EXCEPT\b", sql):
        return True
    found = [d for d in dpsql.check(sql, held, parameters(sql)) if d.code in SYNTAX]
    if all(ARGUMENTS.search(d.message) for d in found):
        return True
    # In a bracket of FROM, sqlglot tries to read a query, then a join, and complains of the bracket itself.
    known = with_the_right_arguments(sql)
    return known != sql and outcome(known, held) not in SYNTAX


ARGUMENTS = re.compile(r"incomplete|number of provided arguments")


def with_the_right_arguments(sql: str) -> str:
    """Calls that alone would be refused for their number of arguments, as those of a function that nobody knows."""
    tokens = [str(t) for t in parser().lex(sql)]
    functions = {*WINDOW_FUNCTIONS, *(name for name, f in REGISTRY.items() if not f.operator)}
    for at, name in enumerate(tokens[:-1]):
        if name.lower() in functions and tokens[at + 1] == "(":
            depth, commas, end = 1, 0, at + 2
            while depth:
                depth += (tokens[end] == "(") - (tokens[end] == ")")
                commas += depth == 1 and tokens[end] == ","
                end += 1
            if wrong_number(name, commas + (end > at + 3)):
                tokens[at] = "some_function"
    return " ".join(tokens)


@cache
def wrong_number(function: str, arguments: int) -> bool:
    """Whether the parser refuses a call of this function with so many arguments for that reason."""
    try:
        parse(Source(f"SELECT {function}({', '.join(['1'] * arguments)})"))
    except Rejected as refusal:
        return all(ARGUMENTS.search(d.message) for d in refusal.diagnostics)
    return False


def admitted(sql: str, held: Policy) -> Parsed | None:
    """The parsed query if the binder admits it; None if it refuses."""
    try:
        parsed = parse(Source(sql))
        bind(parsed, held, parameters(sql))
    except Rejected:
        return None
    return parsed


# --- sentences -----------------------------------------------------------------------------------------------------


def run(sentences: Text, check: Callable[[str], str], examples: int) -> Counter[str]:
    """How often each outcome of `check` occurred over drawn sentences."""
    seen: Counter[str] = Counter()

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(sentences)
    def each(sql: str) -> None:
        seen[check(sql)] += 1

    each()
    return seen


def agree(held: Policy) -> Callable[[str], str]:
    """The check of one sentence: derivable, read by the parser, planned or refused; if admitted, derivable again."""

    def check(sql: str) -> str:
        assert derivable(sql), f"drawn from the grammar but not derivable: {sql}"
        found = outcome(sql, held)
        assert found not in SYNTAX or beyond(sql, held), f"the grammar derives what cannot be parsed: {sql}"
        parsed = admitted(sql, held)
        assert parsed is None or derivable(canonical(parsed)), canonical(parsed)
        return found

    return check


def in_every_place(held: Policy, table: str) -> Callable[[str], str]:
    """The same for an expression, where a value, a condition and a group key may stand."""
    one = agree(held)

    def check(text: str) -> str:
        one(f"SELECT COUNT(*) AS n FROM {table} WHERE {text}")
        one(f"SELECT {text}, COUNT(*) AS n FROM {table} GROUP BY 1")
        return one(f"SELECT SUM({text}) AS s FROM {table}")

    return check


@pytest.mark.parametrize("name", TABLES)
def test_sentences_are_planned_or_refused(name: str) -> None:
    held, tables = policy(name), relations(name)
    seen = run(queries(held, tables, tame=True), agree(held), 40) + run(queries(held, tables, False), agree(held), 12)
    assert seen["planned"] >= 10 and len(seen) >= 3, seen


def test_expressions_are_planned_or_refused() -> None:
    held = policy("flights")
    seen = run(expressions(held, ("flights",), 1), in_every_place(held, "flights"), 60)
    assert seen["planned"] >= 3 and len(seen) >= 3, seen


def test_the_check_notices_a_grammar_that_knows_too_little_or_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    check = agree(policy("flights"))
    sql = "SELECT COUNT(*) FILTER (WHERE day = 1) AS n FROM flights"
    assert check(sql) == "planned"
    text = ACCEPTED.read_text(encoding="utf-8")
    too_little = text.replace('("FILTER"i "(" "WHERE"i condition ")")?', "")
    too_much = text.replace("order_by? limit?", 'order_by? limit? ("FOR"i "DAY"i)?')
    for changed, sentence in ((too_little, sql), (too_much, "SELECT COUNT(*) FROM flights FOR DAY")):
        assert changed != text
        monkeypatch.setitem(globals(), "parser", lambda text=changed: lark(text))
        with pytest.raises(AssertionError):
            check(sentence)


@pytest.mark.parametrize(
    "place", ["SELECT COUNT(*) FROM prices WHERE {}", "SELECT 1 FROM visits, (prices JOIN items ON {})"]
)
def test_the_number_of_arguments_is_no_matter_of_the_grammar_wherever_the_call_stands(place: str) -> None:
    """In brackets of FROM the parser says something else. What is wrong for another reason is not excused."""
    held = policy("pages")
    few, many = (place.format(f"NTILE({args}) OVER ()") for args in ("1", "1, 2, 3"))
    assert outcome(few, held) not in SYNTAX
    assert outcome(many, held) in SYNTAX and beyond(many, held)
    agree(held)(many)
    more = place.format("NTILE(1) OVER () FOR DAY"), place.format("NTILE(1, 2) OVER ()") + " FOR DAY"
    assert not beyond(more[0], held) and not derivable(more[1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TABLES)
def test_many_sentences_are_planned_or_refused(name: str) -> None:
    held, tables = policy(name), relations(name)
    seen = run(queries(held, tables, True), agree(held), 900) + run(queries(held, tables, False), agree(held), 350)
    seen += run(expressions(held, tables[:1]), in_every_place(held, tables[0]), 200)  # each in three sentences
    assert seen["planned"] >= 200, seen


# --- what is admitted can be derived -------------------------------------------------------------------------------


def mutated(sql: str, seed: int) -> str:
    """The sentence with one token left out, doubled, swapped with its neighbour or replaced by another one."""
    chance = random.Random(seed)
    tokens = [str(t) for t in parser().lex(sql)] if derivable(sql) else sql.split()
    at = chance.randrange(len(tokens))
    words = ["ALL", "DISTINCT", "NOT", "(", ")", ",", "*", "FROM", "AS", "LEFT", "ON", "1", "'a'", "FILTER", "."]
    match chance.randrange(4):
        case 0:
            del tokens[at]
        case 1:
            tokens.insert(at, tokens[at])
        case 2:
            tokens[at : at + 2] = tokens[at : at + 2][::-1]
        case _:
            tokens[at] = chance.choice(words)
    return " ".join(tokens)


def holds_when_mutated(held: Policy) -> Callable[[tuple[str, int]], str]:
    def check(case: tuple[str, int]) -> str:
        sql = mutated(*case)
        parsed = admitted(sql, held)
        if parsed is not None and parsed.describing is None:  # else the policy answers it: it is no query
            assert derivable(canonical(parsed)), f"admitted but not derivable: {canonical(parsed)}"
        return "refused" if parsed is None else "admitted"

    return check


def test_what_is_admitted_can_be_derived() -> None:
    """Also for sentences that are slightly off, which the grammar does not know and the parser may let pass."""
    held = policy("flights")
    drawn = st.tuples(queries(held, relations("flights"), True), st.integers(0, 2**32))
    seen = run(drawn, holds_when_mutated(held), 300)  # type: ignore[arg-type]
    assert seen["admitted"] >= 10 and seen["refused"] >= 10, seen


@pytest.mark.exhaustive
def test_what_is_admitted_can_be_derived_of_many() -> None:
    held = policy("flights")
    for tame, examples in ((True, 800), (False, 300)):
        drawn = st.tuples(queries(held, relations("flights"), tame), st.integers(0, 2**32))
        run(drawn, holds_when_mutated(held), examples)  # type: ignore[arg-type]


def real_queries() -> list[tuple[str, Policy, Sequence[Any] | Mapping[str, Any]]]:
    """All queries of the fixtures, with their policies and parameters."""
    from tests.fixtures import cases

    return [
        (case.sql, cases.policy(case.settings["policy"]), case.parameters) for f in cases.files() for case in f.cases
    ]


ALIKE = (
    ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", "CROSS JOIN", "NATURAL JOIN"),
    ("UNION", "UNION ALL", "INTERSECT", "EXCEPT ALL"), ("COUNT", "SUM", "AVG", "MIN", "MAX", "ANON_SUM", "ABS", "RANK"),
    ("AND", "OR"), ("=", "<", "<>", ">=", "+", "||", "LIKE"), ("IN", "NOT IN", "= ANY"), ("WHERE", "HAVING", "QUALIFY"),
    ("ROLLUP", "CUBE", "GROUPING SETS"), ("ROWS", "RANGE", "GROUPS"), ("EXISTS", "NOT EXISTS"), ("DISTINCT", ""),
)  # fmt: skip
"""Words and signs that stand where the others of their line may stand."""


def varied(sql: str, seed: int) -> str:
    """The query with one word, sign or constant exchanged for a similar one, or for another name of the query."""
    chance = random.Random(seed)
    tokens = re.findall(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*\n|\w+|<>|[<>!=|]=|\|\||=>|[^\w\s]|\s+", sql)
    groups = [next((line for line in ALIKE if t.upper() in line), None) for t in tokens]
    names = [t for t, group in zip(tokens, groups, strict=True) if t.isidentifier() and not t.isupper() and not group]
    places = [at for at, t in enumerate(tokens) if groups[at] or t in names or t.isdigit() or t[0] == "'"]
    if not places:
        return sql
    at = chance.choice(places)
    tokens[at] = chance.choice(groups[at] or (names if tokens[at] in names else ["0", "7", "NULL", "'a'", "?"]))
    return "".join(tokens)


def mutated_real_queries(start: int, number: int) -> Counter[str]:
    """Outcomes of real queries with one to three changes; whatever is admitted must be derivable."""
    known, seen = real_queries(), Counter[str]()
    for seed in range(start, start + number):
        sql, held, _ = known[seed % len(known)]
        for step in range(1 + seed % 3):
            sql = varied(sql, seed + step)
        if seed % 5 == 0:
            sql = mutated(sql, seed)
        seen[outcome(sql, held)] += 1
        parsed = admitted(sql, held)
        if parsed is not None and parsed.describing is None:  # else the policy answers it: it is no query
            assert derivable(canonical(parsed)), f"admitted but not derivable: {canonical(parsed)}"
    return seen


def test_mutated_real_queries_are_planned_or_refused() -> None:
    seen = mutated_real_queries(0, 150)
    assert len(seen) >= 8 and seen["planned"] >= 5, seen


@pytest.mark.exhaustive
def test_many_mutated_real_queries_are_planned_or_refused() -> None:
    seen = mutated_real_queries(150, 2000)
    assert len(seen) >= 15 and seen["planned"] >= 50, seen


def test_every_query_of_the_fixtures_that_is_admitted_can_be_derived() -> None:
    found = 0
    for sql, held, given_ in real_queries():
        try:
            parsed = parse(Source(sql))
            bind(parsed, held, given_)
        except Rejected:
            continue
        if parsed.describing is not None:  # the policy answers it: it is no query
            continue
        found += 1
        assert derivable(canonical(parsed)), canonical(parsed)
    assert found >= 20


def test_every_query_of_the_documents_can_be_derived_as_it_is_written(root: Path) -> None:
    """Those in blocks that are not executed are other systems' SQL."""
    documents = [root / "README.md", *(root / "docs").rglob("*.md")]
    blocks = [
        b
        for d in documents
        for b in re.findall(r"^```sql(?! skip)[^\n]*\n(.*?)^```$", d.read_text(encoding="utf-8"), re.S | re.M)
    ]
    assert len(blocks) >= 10 and [b for b in blocks if not derivable(b)] == []


def test_every_query_of_the_examples_that_is_admitted_can_be_derived_as_it_is_written(root: Path) -> None:
    found = 0
    for path in sorted((root / "examples").glob("*/queries/*.sql")):
        sql = path.read_text(encoding="utf-8")
        held = [load_policy(p) for p in path.parent.parent.glob("[!.]*.yaml")]
        if any(admitted(sql, each) is not None for each in held):
            found += 1
            assert derivable(sql), path.name
    assert found >= 15


@pytest.mark.parametrize("query", ["((SELECT 1)) ORDER BY ALL", "(((SELECT 1))) LIMIT 1", "(VALUES (1)) OFFSET 1"])
def test_brackets_behind_with_that_are_ordered_or_cut(query: str) -> None:
    sql = f"WITH a AS (SELECT 2) {query}"
    assert derivable(sql) and agree(policy("shop"))(sql) == "planned"


@pytest.mark.parametrize(
    "call",
    [
        "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY day DESC NULLS LAST) FILTER (WHERE day > 1)",
        "PERCENTILE_CONT(0.5, contribution_bounds_per_row => (0, 9)) WITHIN GROUP (ORDER BY day)",
        "PERCENTILE_DISC(day, 0.5, contribution_bounds_per_row => (0, 9))",
        "APPROX_QUANTILES(day, 4, contribution_bounds_per_row => (0, 9))[ORDINAL(2)]",
        "QUANTILE(day, 0.1) - QUANTILE_CONT(day, $p) + QUANTILE_DISC(day, 0.3) * APPROX_QUANTILE(day, 0.4)",
        "MEDIAN(day) FILTER (WHERE day > 1)",
        "QUANTILE_CONT(day, [0.25, 0.5])",
        "((PERCENTILE_DISC(ARRAY[0.25, 0.5]) WITHIN GROUP (ORDER BY day) FILTER (WHERE day > 1)))[2] + 1",
        "QUANTILE_DISC(day, [0.25])[1] - QUANTILE(day, [$p, 0.2])[ORDINAL(1)]",
    ],
)
def test_spellings_of_quantiles_can_be_derived(call: str) -> None:
    sql = f"SELECT {call} AS q FROM flights"
    parsed = parse(Source(sql))
    bind(parsed, policy("flights"), {"p": 0.2} if "$p" in call else ())
    assert derivable(sql) and derivable(canonical(parsed)), canonical(parsed)


# --- what is outside -----------------------------------------------------------------------------------------------


def labelled(start: str) -> list[tuple[str, str]]:
    return [pytest.param(label, sql, id=f"{label}: {sql}") for label, sql in near_misses(start)]  # type: ignore[misc]


def codes_of(label: str) -> set[str]:
    return {part.upper() for part in label.split("_") if re.fullmatch(r"dp\d{3}", part)}


@pytest.mark.parametrize(("label", "sql"), labelled("outside"))
def test_near_misses_outside_the_grammar(label: str, sql: str) -> None:
    assert not derivable(sql)
    assert outcome(sql, policy("flights")) in codes_of(label)


@pytest.mark.parametrize(("label", "sql"), labelled("refused"))
def test_near_misses_within_the_grammar(label: str, sql: str) -> None:
    assert derivable(sql)
    assert outcome(sql, policy("flights")) in codes_of(label)


# --- functions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(n for n, f in REGISTRY.items() if not f.operator))
def test_every_listed_function_can_be_called_by_its_name(name: str) -> None:
    """sqlglot reads many names as classes of their own; each must lead to the function that the list shows."""
    values = ["day", "dep_delay", "dest", "day = 1", "DATE '2024-01-01'", "TIMESTAMP '2024-01-01 10:00:00'"]
    literals = ["'day'", "1", "'a'"]
    calls = [[a] for a in values] + [[a, b] for a in values for b in [*literals, a, "2"]]
    calls += [[a, b] for a in literals for b in values] + [
        [a, b, c] for a in values for b in literals for c in [*literals, a]
    ]
    calls += [["'day'", a, a] for a in values] + [["day = 1", "1", "2"], ["2024", "1", "day"]]
    calls += [["'UTC'", "CAST(make_date(2024, 1, day) AS TIMESTAMP)"]]
    table = "flights"
    if REGISTRY[name] in lists.NAMED:
        table, calls = "orders", [["tags"], ["tags", "'a'"]]
    held, reached = policy("store" if table == "orders" else table), set()
    for args in calls:
        try:
            reached |= called(bind(parse(Source(f"SELECT {name}({', '.join(args)}) AS x FROM {table}")), held).root)
        except Rejected:
            continue
    wanted = {"if": "case", "ifnull": "coalesce", "log": "log10", "date_add": "add"}
    canonical_name = REGISTRY[name].name
    assert {canonical_name, wanted.get(canonical_name, canonical_name)} & reached, reached


def called(node: Node) -> set[str]:
    """Names of the functions in the SELECT list."""
    assert isinstance(node, Project)
    return {e.function for item in node.items for e in walk(item.expr) if isinstance(e, Call)}
