"""Where syntax stands in the text: `«…»` marks what the caret has to be under."""

from __future__ import annotations

import re

import pytest
import sqlglot
from sqlglot import exp

from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.text.spans import span_of
from tests.support.planning import planned, policy

TABLES = """
t:
  unit: {rows: 1}
  columns:
    x: {type: integer, bounds: [0, 10]}
    y: {type: double}
    d: {type: date}
    s: {type: varchar}
"""
POLICY = policy(TABLES, "")


@pytest.mark.parametrize(
    ("marked", "kind"),
    [
        ("SELECT «MAX(x)» FROM t", exp.Max),
        ("SELECT 1, «SUM( DISTINCT x )» FROM t", exp.Sum),
        ("SELECT «COUNT(*)» FROM t", exp.Count),
        ("SELECT abs(«MIN(x)») FROM t", exp.Min),
        ("SELECT «abs(MIN(x))» FROM t", exp.Abs),
        ("SELECT «CAST(x AS DECIMAL(10, 2))» FROM t", exp.Cast),
        ("SELECT a + «CAST(')' || x AS INTEGER)» FROM t", exp.Cast),
        ("SELECT «TRY_CAST(x AS DATE)», 1 FROM t", exp.TryCast),
        ("SELECT «x - LAG(x) OVER (ORDER BY d)» AS g FROM t", exp.Sub),
        ("SELECT * FROM t WHERE x = «?»", exp.Placeholder),
        ("SELECT * FROM t WHERE x = 1 AND y = «$name»", exp.Parameter),
        ("SELECT * FROM t WHERE d < «CURRENT_DATE»", exp.CurrentDate),
        ("SELECT * FROM t WHERE d\n  < «current_date»", exp.CurrentDate),
        ("SELECT * FROM t WHERE x IS «NULL»", exp.Null),
        ("SELECT * FROM t WHERE x = «TRUE»", exp.Boolean),
        ("SELECT «x» FROM t", exp.Column),
        ("SELECT «t.x» FROM t", exp.Column),
        ("SELECT x FROM t WHERE «x + 1» > 2", exp.Add),
        ("SELECT SUM(«CURRENT_DATE» - d) FROM t", exp.CurrentDate),
        ("SELECT SUM(«x / (y + 60)») FROM t", exp.Div),
        ("SELECT SUM(«( ( x + 1 ) ) / y») FROM t", exp.Div),
        ("SELECT abs(«(MAX(x))») FROM t", exp.Paren),
        ("SELECT SUM((«(x) + (y)»)) FROM t", exp.Add),
    ],
)
def test_nodes(marked: str, kind: type[exp.Expr]) -> None:
    start, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    # sqlglot's releases differ in whether `$name` is a Parameter or a Placeholder
    wanted = (exp.Parameter, exp.Placeholder) if kind is exp.Parameter else (kind,)
    node = next(n for n in sqlglot.parse_one(text, read="duckdb").walk() if type(n) in wanted)
    span = span_of(node, text)
    assert text[span.start : span.end] == text[start:end] and (span.start, span.end) == (start, end)


def test_two_placeholders() -> None:
    text = "SELECT x FROM t WHERE x BETWEEN ? AND ?"
    found = {span_of(n, text).start for n in sqlglot.parse_one(text, read="duckdb").find_all(exp.Placeholder)}
    assert found == {i for i, c in enumerate(text) if c == "?"}


@pytest.mark.parametrize(
    "text",
    ["SELECT", "SELECT 1", "SELECT *", "SELECT NULL", "SELECT ()", "SELECT ?, ?, ?", "SELECT (SELECT (SELECT NULL))"],
)
def test_every_node_has_a_place(text: str) -> None:
    try:
        tree = sqlglot.parse_one(text, read="duckdb")
    except sqlglot.errors.ParseError:
        return
    for node in tree.walk():
        span = span_of(node, text)
        assert 0 <= span.start < span.end <= len(text)


@pytest.mark.parametrize(
    ("marked", "code"),
    [
        ("SELECT COUNT(*) FROM t\nWHERE\n d < «CURRENT_TIME»\nAND x > 2", "DP114"),
        ("SELECT\n  COUNT(*),\n  SUM(«y»)\nFROM t", "DP201"),
        ("SELECT\n  SUM(x +\n  «y»\n) FROM t", "DP201"),
        ("SELECT SUM(x)\nFROM t\nWHERE «zz» = 1", "DP103"),
        ("SELECT SUM(x)\nFROM «tt»", "DP102"),
        ("SELECT x,\n SUM(x) FROM t\nGROUP BY x ORDER BY «s»", "DP109"),
        ("SELECT AVG(«\ts»)\nFROM t", "DP203"),
        ("SELECT COUNT(*) FROM t WHERE x > «?»", "DP013"),
        ("SELECT «ENTROPY(x)» FROM t", "DP105"),
        ("SELECT MODE(«y») FROM t", "DP304"),
        ("SELECT PERCENTILE_CONT(«0») WITHIN GROUP (ORDER BY x) FROM t", "DP101"),
        ("SELECT «APPROX_QUANTILES(x, 4)[ORDINAL(1)]» FROM t", "DP101"),
        ("SELECT «PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x, x DESC)» FROM t", "DP106"),
        ("SELECT «MAX(x)» FROM t", "DP101"),
        ("/* ü → */ SELECT SUM(«y») FROM t", "DP201"),
    ],
)
def test_diagnostics(marked: str, code: str) -> None:
    start, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    with pytest.raises(Rejected) as refusal:
        planned(text, POLICY)
    (found,) = refusal.value.diagnostics
    assert found.code == code and found.span is not None
    assert text[found.span.start : found.span.end].strip() == text[start:end].strip()
    assert f"^{'^' * (len(text[start:end].strip()) - 1)}" in str(refusal.value)


@pytest.mark.parametrize(
    "condition, said",
    [
        ("s #> '{a}' = 'x'", "operator #> is not supported"),
        ("s #> '{a}' = 'x'", "operator #> is not supported"),
        ("s @> 'x'", "operator @> is not supported"),
        ("s <@ 'x'", "operator <@ is not supported"),
        ("s SIMILAR TO 'x'", "SIMILAR TO is outside"),
        ("(d, d) OVERLAPS (d, d)", "OVERLAPS is outside"),
        ("array_length(s, 1) = 1", "another argument of ARRAY_LENGTH is outside"),
        ("date_bin('15 minutes', d, d) = d", "another argument of DATE_BIN is outside"),
        ("|/ x = 1", "syntax error: something is missing"),
    ],
)
def test_a_refusal_names_what_is_written(condition: str, said: str) -> None:
    """And no class or argument of the parser's."""
    with pytest.raises(Rejected, match=re.escape(said)) as refusal:
        planned(f"SELECT COUNT(*) FROM t WHERE {condition}", POLICY)
    assert not re.search(r"jsonb_extract|array_contain|EXPRESSION|UNIT|DIV\b", str(refusal.value))
