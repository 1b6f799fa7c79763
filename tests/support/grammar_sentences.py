"""Sentences of the accepted SQL, drawn from grammar/dpsql.lark over the names of a real policy.

The grammar is recursive, and drawn as it stands it gives endless sentences. So each layer of it is drawn alone: a rule
is replaced by a token that stands for shorter sentences of that rule, drawn in the same way, down to plain columns.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise, product

from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from lark import Lark
from lark.grammar import Rule, Symbol, Terminal
from lark.lexer import PatternStr

from dpsql.core.printing.windows import WINDOW_FUNCTIONS
from dpsql.functions.registry import REGISTRY
from dpsql.policy.policy import Policy
from grammar.read import ACCEPTED, OUTSIDE

LEVELS = ("primary", "postfix", "unary", "additive", "comparison", "disjunction")
"""Rules of expressions, tightest first; each is drawn down to the one before it."""

Text = st.SearchStrategy[str]


def _layer(
    start: str,
    tokens: Mapping[str, Text],
    words: Mapping[str, Text],
    text: str = ACCEPTED.read_text(encoding="utf-8"),
) -> Text:
    """Sentences of rule `start`. tokens: rule → what it is replaced by. words: terminal → its spellings."""
    text = re.sub(r"^%ignore .*$", "", text, flags=re.MULTILINE)
    for rule in tokens:
        text, found = re.subn(rf"^\??{rule}:.*(?:\n[ \t]+\S.*)*$", f"{rule}: {rule.upper()}_", text, flags=re.MULTILINE)
        text += f"\n%declare {rule.upper()}_"
        assert found == 1, f"{rule} is not a rule of the grammar"
    grammar = _grammar(text, start)
    explicit: dict[str, Text] = {}
    for terminal in grammar.terminals:
        if isinstance(terminal.pattern, PatternStr):
            explicit[terminal.name] = st.just(terminal.pattern.value)
        else:
            explicit[terminal.name] = words[terminal.name]
    used = {symbol.name for rule in grammar.rules for symbol in rule.expansion if isinstance(symbol, Terminal)}
    explicit = {name: spelling for name, spelling in explicit.items() if name in used}
    explicit |= {f"{rule.upper()}_": drawn for rule, drawn in tokens.items() if f"{rule.upper()}_" in used}
    return from_lark(grammar, start=start, explicit={name: _opaque(drawn) for name, drawn in explicit.items()})


@cache
def _grammar(text: str, start: str) -> Lark:
    """Read once for the columns of all policies. Nothing is parsed with it."""
    found = Lark(text, parser=None, lexer="basic", start=start, maybe_placeholders=False)
    compiled = found.grammar.compile([start], ())
    setattr(found.grammar, "compile", lambda start, terminals_to_keep: compiled)  # noqa: B010 — what hypothesis asks for
    return found


def _opaque(drawn: Text) -> Text:
    """The same strategy with spaces around it and a short repr: hypothesis writes out the reprs of all layers, and they
    would double with each."""

    @st.composite
    def sentence(draw: st.DrawFn) -> str:
        return f" {draw(drawn)} "

    return sentence()


def _words(columns: list[str]) -> dict[str, Text]:
    """Spellings of the terminals that have many. Not `.5`: sqlglot reads DISTINCT .5 as a qualified name."""
    parts = ["year", "month", "day", "hour", "week"]
    return {
        "NAME": st.sampled_from([*columns[:6], *parts, "integer", "varchar"]),
        "QUOTED": st.sampled_from([f'"{name}"' for name in columns[:3]] + ['"no such column"']),
        "STRING": st.sampled_from(["'a'", "'it''s'", "''", "'2013-07-04'", "'%a_'", "'3 days'", "'ö'"]),
        "INTEGER": st.sampled_from(["0", "1", "2", "10", "1_000", "9223372036854775808"]),
        "NUMBER": st.sampled_from(["0.5", "2.", "1e3", "1.5e-3", "1e400"]),
        "PARAMETER": st.sampled_from(["$1", "$2", "$low"]),
        "WORD_NAME": st.just("NAME"),
    }


@cache
def _functions() -> tuple[str, ...]:
    own_syntax = {"extract", "if", "substring", "trim"}  # rules of their own in the grammar
    return tuple(sorted(n for n, f in REGISTRY.items() if not f.operator and n not in own_syntax))


def expressions(policy: Policy, relations: tuple[str, ...], depth: int = 2) -> Text:
    """Expressions over the columns of these tables, of any type and mostly ill-typed."""
    columns = [c.name for r in relations for c in policy.tables[r].columns.values()]
    words = _words(columns)
    tokens = {
        "column_name": st.sampled_from(columns),
        "relation_name": st.sampled_from(list(relations)),
        "function_name": st.sampled_from(_functions()),
        "type": st.sampled_from(["INTEGER", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP", "DECIMAL(10, 2)", "BOOLEAN"]),
        "interval": st.sampled_from(["INTERVAL 3 DAY", "INTERVAL '3' HOUR", "INTERVAL '3 days'", "INTERVAL -1 MONTH"]),
        "date_part": st.sampled_from(["YEAR", "MONTH", "DAY", "HOUR"]),
        "subquery": st.sampled_from(_subqueries(policy, relations)),
        "number": st.sampled_from(["0", "4", "- 1", "+ 2.5", "1e3"]),
        "new_name": st.sampled_from(["w", "a"]),
    }
    leaf = st.one_of(st.sampled_from(columns), _layer("constant", tokens, words), _layer("column", tokens, words))
    tokens["over"] = _layer("over", {**tokens, "expression": leaf}, words)
    over_rows = {"function_name": st.sampled_from(_WINDOWED), "inner": leaf}
    tokens["window"] = _layer("window", {**tokens, **over_rows}, words)
    found = leaf
    for _ in range(depth):
        within = {"inner": found, "operand": leaf, "condition": found}
        lower: Text = _layer("primary", {**tokens, **within}, words)
        levels = [leaf, lower]
        for below, level in pairwise(LEVELS):
            lower = st.one_of(
                leaf, lower, _layer(level, {**tokens, "inner": found, "operand": leaf, below: lower}, words)
            )
            levels.append(lower)
        found = st.one_of(levels)
    return found


_WINDOWED = tuple(name for name in WINDOW_FUNCTIONS if " " not in name)


def _subqueries(policy: Policy, relations: tuple[str, ...]) -> list[str]:
    """Queries in brackets: values, lists, one column and two, with and without a reference to the query around."""
    found = [
        "(SELECT 1)",
        "((SELECT 1 UNION SELECT 2))",
        "(VALUES (1), (2))",
        "(SELECT 'a' AS x, 2 ORDER BY x LIMIT 1)",
    ]
    for number, relation in enumerate(relations):
        columns = [c.name for c in policy.tables[relation].columns.values()]
        first, last = columns[0], columns[-1]
        found += [
            f"(SELECT {last} FROM {relation})",
            f"(SELECT COUNT(*), MAX({first}) FROM {relation})",
            f"(SELECT MAX(x.{last}) FROM {relation} AS x WHERE x.{first} = {relations[0]}.{columns[0]})",
            f"(SELECT SUM({number}) FROM {relation} GROUP BY {first} HAVING COUNT(*) > 1)",
        ]
    return found


def _sources(policy: Policy, relations: tuple[str, ...]) -> list[str]:
    """FROM clauses: the first relation alone, and in every kind of join with the last one."""
    first, last = relations[0], relations[-1]
    shared = [c for c in policy.tables[first].columns if c in policy.tables[last].columns] or ["missing"]
    kinds = ["", "LEFT", "RIGHT OUTER", "FULL", "SEMI", "LEFT ANTI"]
    joined = [f"FROM {first} {kind} JOIN {last} USING ({shared[0]})" for kind in kinds]
    joined += [f"FROM {first}, {last} AS other", f"FROM ({first} NATURAL JOIN (VALUES (1), (2)) AS v({shared[0]}))"]
    return [f"FROM {first}"] * len(joined) + joined


def queries(policy: Policy, relations: tuple[str, ...], tame: bool) -> Text:
    """Whole queries, the first relation being read most. tame: no nesting, and mostly well typed, so that many are
    answered; otherwise with joins, nested queries, WITH and expressions of every kind."""
    first = policy.tables[relations[0]].columns.values()
    columns = [c.name for r in relations for c in policy.tables[r].columns.values()]
    numbers = [c.name for c in first if c.bounds is not None] or [c.name for c in first][:1]
    calls = ["COUNT(*)", *(f"{function}({column})" for function in ("SUM", "AVG", "COUNT") for column in numbers[:4])]
    keys = [c.name for c in first]
    plain = st.one_of(st.sampled_from(calls), st.sampled_from(keys), st.sampled_from(["1", "2"]))
    true = st.sampled_from(["TRUE", "1 = 1", f"{columns[0]} IS NOT NULL", *(f"{c} > 1" for c in numbers[:4])])
    tokens = {
        "column_name": st.sampled_from(columns),
        "relation_name": st.sampled_from(list(relations)),
        "table_name": st.sampled_from([relations[0], *relations]),
    }
    if tame:
        rank = "RANK() OVER (ORDER BY COUNT(*))"
        released = [
            *calls,
            "DP_INTERVAL_LOW(COUNT(*))",
            rank,
            "SUM(COUNT(*)) OVER w",
            "ANON_COUNT(* CLAMPED BETWEEN 0 AND 2)",
        ]
        tokens |= {
            "expression": plain, "condition": true, "star": st.sampled_from(released), "count": st.just("9"),
            "new_name": st.sampled_from(["a", "b", "n"]), "from": st.sampled_from(_sources(policy, relations)),
            "with": st.just(""), "subquery": st.sampled_from(["(SELECT 1)", f"(SELECT COUNT(*) FROM {relations[0]})"]),
            "set_key": st.sampled_from([*keys, "1", "()", f"({keys[0]}, {keys[-1]})"]),
            "windows": st.just("WINDOW w AS ()"), "qualify": st.sampled_from(["", "", f"QUALIFY {rank} >= 1"]),
            "privacy": st.sampled_from(["", "WITH DIFFERENTIAL_PRIVACY", "WITH ANONYMIZATION OPTIONS (KAPPA = 2)"]),
        }  # fmt: skip
        text = ACCEPTED.read_text(encoding="utf-8").replace("select_item)* from?", "select_item)* from")
        whole = [_layer(start, tokens, _words(columns), text) for start in ("start", "select")]
        return st.one_of(*whole).map(_tidy)
    anything = expressions(policy, relations, 1)
    inner = queries(policy, relations, True).map(lambda sentence: sentence.rstrip(";"))
    inner = inner.filter(lambda sentence: not sentence.startswith(("PIVOT", "UNPIVOT")))  # which stand in FROM alone
    tokens |= {
        "expression": st.one_of(plain, anything),
        "condition": st.one_of(true, anything),
        "inner": st.sampled_from(["1", "2", "NULL", "'a'", "DATE '2024-01-01'", columns[0]]),
        "count": st.sampled_from(["1", "?", "x", "- 1", "(2)"]),
        "number": st.sampled_from(["1", "0.5", "1e-7", "2", "3"]),
        "new_name": st.sampled_from(["a", columns[0], "count", '"x y"', relations[0]]),
        # Not `varchar`: INTERVAL 3 varchar is no SQL, which a grammar whose words are names or none cannot tell.
        "date_part": st.sampled_from(["YEAR", "month", "day", "hours", "week", "a"]),
        "subquery": st.one_of(inner.map("({})".format), st.sampled_from(_subqueries(policy, relations))),
    }
    return _layer("start", tokens, _words(columns)).map(_tidy)


def _tidy(sentence: str) -> str:
    return " ".join(sentence.split())


def near_misses(start: str) -> Iterator[tuple[str, str]]:
    """(label, sentence) for every sentence of rule `start` in grammar/outside.lark, which is finite."""
    grammar = Lark(OUTSIDE.read_text(encoding="utf-8"), start=start, maybe_placeholders=False)
    spelled = {t.name: t.pattern.value for t in grammar.terminals}
    rules = defaultdict(list)
    for rule in grammar.rules:
        rules[rule.origin.name].append(rule)

    def derived(symbol: Symbol) -> list[str]:
        if isinstance(symbol, Terminal):
            return [spelled[symbol.name]]
        return [sentence for rule in rules[symbol.name] for sentence in expanded(rule)]

    def expanded(rule: Rule) -> list[str]:
        return [" ".join(parts) for parts in product(*map(derived, rule.expansion))]

    for rule in rules[start]:
        for sentence in expanded(rule):
            yield str(rule.alias), sentence
