"""Completion: what is offered where, and that no text makes it fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.printing.windows import AGGREGATES
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.editor import completion_words as words
from dpsql.faces.editor.completion import Candidate, complete
from dpsql.frontend.bind.expressions.function_names import INTERVAL_ENDS, PAIRS
from dpsql.frontend.parse import parse
from dpsql.frontend.text.lexer import RESERVED
from dpsql.frontend.text.quoted_names import quoted
from dpsql.policy.policy import Policy
from dpsql.service.checks.check import check

POLICY = Policy.model_validate(
    {
        "version": 1,
        "name": "clinic",
        "units": {"patient": {}},
        "tables": {
            "patients": {
                "unit": {"column": "patient_id"},
                "columns": {
                    "patient_id": {"type": "bigint", "nullable": False},
                    "age": {"type": "integer", "bounds": [0, 110]},
                    "region": {"type": "varchar", "domain": ["north", "south", "SECRET"]},
                    "größe in cm": {"type": "double"},
                },
            },
            "visits": {
                "unit": {"column": "patient_id"},
                "max_rows_per_unit": 20,
                "columns": {
                    "patient_id": {"type": "bigint", "nullable": False},
                    "cost": {"type": "double", "bounds": [0, 5000]},
                    "order": {"type": "varchar"},
                },
            },
            "ref.codes": {"public": True, "columns": {"code": {"type": "varchar"}}},
        },
        "budgets": {"total": {"epsilon": 10, "delta": 1e-6}},
    }
)


def at(text: str, dialect: str = "duckdb") -> list[Candidate]:
    """What is offered at the `|`."""
    offset = text.index("|")
    return complete(text[:offset] + text[offset + 1 :], offset, POLICY, dialect)


def texts(text: str, *kinds: str, dialect: str = "duckdb") -> list[str]:
    return [c.text for c in at(text, dialect) if not kinds or c.kind in kinds]


@pytest.mark.parametrize(
    "text, kinds, expected",
    [
        ("|", (), ["SELECT", "WITH", "CREATE DP SUMMARY", "DROP DP SUMMARY", "CREATE DP COUNTER", "DROP DP COUNTER"]),
        ("sel|", (), ["select"]),
        ("SELECT 1; se|", (), ["select"]),
        ("SELECT * FROM |", (), ["patients", "visits", "ref.codes"]),
        ("SELECT * FROM visits JOIN p|", (), ["patients"]),
        ("SELECT * FROM visits v, PA|", (), ["patients"]),
        ("SELECT * FROM ref.|", (), ["codes"]),
        ("SELECT v.| FROM visits v", (), ["patient_id", "cost", '"order"']),
        ("SELECT V.c| FROM visits v", (), ["cost"]),
        ("SELECT nobody.| FROM visits v", (), []),
        ("SELECT | FROM patients", ("column",), ["patient_id", "age", "region", '"größe in cm"']),
        ('SELECT "gr|', (), ['"größe in cm"']),
        ("SELECT co|", ("column",), ["cost", "code"]),
        ("SELECT visits.c|", (), ["cost"]),
        ("SELECT codes.|", (), ["code"]),
        ("SELECT ref.codes.c|", (), ["code"]),
        ("SELECT nobody.|", (), []),
        ("SELECT visits.| FROM patients", (), []),
        ("SELECT co| FROM", ("column",), []),
        ("SELECT sum(co|", ("column",), ["cost", "code"]),
        ("SELECT age FROM patients UNION ALL SELECT co|", ("column",), ["cost", "code"]),
        ("WITH w AS (SELECT age * 2 AS twice FROM patients) SELECT tw|", ("column",), ["twice"]),
        ('SELECT "gr| FROM patients', (), ['"größe in cm"']),
        ('SELECT "gr|" FROM patients', (), ['"größe in cm']),
        ("SELECT `| FROM visits", (), ["`patient_id`", "`cost`", "`order`", "`visits`"]),
        ("SELECT count(| FROM visits", ("column",), ["patient_id", "cost", '"order"']),
        ("SELECT count(| FROM visits", ("aggregate",), []),
        ("SELECT pat| FROM visits v JOIN patients p ON TRUE", ("column",), ["v.patient_id", "p.patient_id"]),
        ("SELECT pat| FROM visits v JOIN patients p USING (patient_id)", ("column",), ["patient_id"]),
        ("SELECT pat| FROM visits v NATURAL JOIN patients p", ("column",), ["patient_id"]),
        ("SELECT 1 FROM visits JOIN patients USING (|)", (), ["patient_id"]),
        (
            "SELECT 1 FROM visits v JOIN patients p ON v.patient_id = p.|",
            (),
            ["patient_id", "age", "region", '"größe in cm"'],
        ),
        ("SELECT 1 FROM visits GROUP |", (), ["BY"]),
        (
            "SELECT 1 FROM visits WHERE cost IS |",
            (),
            ["NULL", "NOT NULL", "TRUE", "FALSE", "DISTINCT FROM", "NOT DISTINCT FROM"],
        ),
        ("SELECT region AS r, age + 1 more FROM patients GROUP BY |", ("alias",), ["r", "more"]),
        ("SELECT region AS r FROM patients WHERE |", ("alias",), []),
        ("WITH w AS (SELECT region, age * 2 AS twice FROM patients) SELECT | FROM w", ("column",), ["region", "twice"]),
        ("WITH w (a, b) AS (SELECT region, age FROM patients) SELECT w.| FROM w", (), ["a", "b"]),
        ("WITH w AS (SELECT 1 AS one) SELECT * FROM w|", (), ["w"]),
        ("SELECT s.| FROM (SELECT * FROM visits) AS s", (), ["patient_id", "cost", '"order"']),
        ("SELECT s.| FROM (SELECT v.cost AS c FROM visits v) s", (), ["c"]),
        (
            "SELECT * FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE p.|)",
            (),
            ["patient_id", "age", "region", '"größe in cm"'],
        ),
        ("SELECT age FROM patients UNION ALL SELECT | FROM visits", ("column",), ["patient_id", "cost", '"order"']),
        ("SELECT CAST(age AS D|) FROM patients", (), ["DOUBLE", "DECIMAL(18, 2)", "DATE"]),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (eps|", (), ["epsilon = "]),
        ("SELECT CASE WHEN age > 3 | FROM patients", ("keyword",), None),
        ("SELECT sum(age) AS |", (), []),
        ("SELECT 'pat|'", (), []),
        ("SELECT 1 -- pat|", (), []),
        ("SELECT 1 /* pat| */", (), []),
        ("SELECT 12|", (), []),
        ("SELECT * FROM visits LIMIT |", (), []),
    ],
)
def test_what_is_offered(text: str, kinds: tuple[str, ...], expected: list[str] | None) -> None:
    dialect = "bigquery" if "`" in text else "duckdb"
    found = texts(text, *kinds, dialect=dialect)
    if expected is None:
        assert found[:4] == ["WHEN", "THEN", "ELSE", "END"]
    else:
        assert found == expected


def test_what_stands_beside_a_candidate() -> None:
    (cost,) = at("SELECT cos| FROM visits", "duckdb")[:1]
    assert (cost.label, cost.kind, cost.start, cost.detail) == ("cost", "column", 7, "double, bounds [0, 5000]")
    (visits,) = at("SELECT 1 FROM vi|")
    assert visits.detail == "unit patient: all rows of one patient_id, add_remove"
    assert visits.doc == "at most 20 rows per unit [enforced]"
    clip = next(c for c in at("SELECT SUM(cli| FROM visits") if c.kind == "function")
    assert clip.text == "cli" + "p(" and clip.detail.startswith("clip(") and clip.doc


def test_keywords_follow_the_letter_case_of_the_text() -> None:
    assert "from" in texts("select 1 |") and "FROM" in texts("SELECT 1 |")
    assert texts("SELECT 1 fro|") == ["from"]


def test_values_are_never_offered() -> None:
    for text in (
        "SELECT | FROM patients",
        "SELECT 1 FROM patients WHERE region = |",
        "SELECT 1 FROM patients WHERE S|",
    ):
        assert not [
            c for c in at(text) if "SECRET" in c.text + c.detail + c.doc or "north" in c.text + c.detail + c.doc
        ]


def test_the_words_are_those_of_the_grammar_and_the_registry() -> None:
    grammar = (Path(__file__).parents[3] / "grammar" / "dpsql.lark").read_text(encoding="utf-8")
    reserved = re.search(r"^NAME: /\(\?!\(\?:([a-z_|]+)\)", grammar, re.MULTILINE)
    assert reserved is not None and {w.upper() for w in reserved[1].split("|")} == RESERVED
    assert {*AGGREGATES, *INTERVAL_ENDS} <= words.AGGREGATES.keys()
    for name in words.AGGREGATES.keys() - {"min", "max", "arg_min", "arg_max"}:
        pairs = dict.fromkeys(PAIRS, "cost, cost + 1")
        argument = {"count_if": "cost > 3", "quantile_cont": "cost, 0.5", "quantile_disc": "cost, 0.5", **pairs}.get(
            name, "COUNT(*)" if name in INTERVAL_ENDS else "cost"
        )
        found = check(f"SELECT {name}({argument}) AS x FROM visits", POLICY)
        assert not [d for d in found if d.code[:3] == "DP1"], name
    values = {"epsilon": "0.1", "delta": "0.1", "group_selection_strategy": "PUBLIC_GROUPS"}
    for name in words.OPTIONS:
        sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({name} = {values.get(name, 1)}) COUNT(*) AS n FROM visits"
        assert not [d for d in check(sql, POLICY) if d.severity == "error"], name


def unread(name: str) -> list[str]:
    """The queries with this name that cannot be read."""
    queries = (f"SELECT AVG({name}), {name} FROM t WHERE {name} > 0 GROUP BY {name}", f"SELECT 1 AS x FROM {name}")
    found = []
    for sql in queries:
        try:
            parse(Source(sql))
        except Rejected:
            found.append(sql)
    return found


def test_names_that_are_keywords_are_quoted_where_they_have_to_be() -> None:
    keywords = {word.lower() for word in sqlglot.dialects.DuckDB.Tokenizer.KEYWORDS if word.isidentifier()}
    assert {"alter", "drop", "map", "union"} <= {word for word in keywords if unread(word)}
    assert [word for word in sorted(keywords) if unread(quoted(word))] == []
    assert quoted("age") == "age" and quoted("Alter") == '"Alter"'


WORDS = "SELECT FROM WITH visits v cost JOIN ON USING WHERE GROUP_BY ORDER_BY UNION_ALL CASE DISTINCT IS EXCEPT CAST AS"
SIGNS = [
    "w AS ",
    "(",
    ")",
    ",",
    ".",
    "'",
    '"',
    "-- x\n",
    "/*",
    "*/",
    "* ",
    "1 ",
    ";",
    "名",
    "\n",
    "[",
    "`",
    "$1 ",
    "OPTIONS ",
]
PIECES = st.lists(st.sampled_from([w.replace("_", " ") + " " for w in WORDS.split()] + SIGNS), max_size=14)


@given(PIECES.map("".join), st.integers(0, 60), st.sampled_from(["duckdb", "bigquery", "tsql", "mysql"]))
def test_no_text_makes_it_fail(text: str, offset: int, dialect: str) -> None:
    """Whatever stands there: each candidate replaces text before the cursor, and continues the word that was begun."""
    offset = min(offset, len(text))
    for candidate in complete(text, offset, POLICY, dialect):
        assert 0 <= candidate.start <= offset and candidate.text and candidate.label
        begun = text[candidate.start : offset].lstrip('"`[').casefold()
        assert begun in candidate.text.casefold()


def test_before_from_a_column_says_whose_it_is() -> None:
    found = {c.text: c.detail for c in at("SELECT |") if c.kind == "column"}
    assert found["cost"].startswith("visits: ") and found["patient_id"] == "patients, visits"
    assert found["code"].startswith("ref.codes: ")
