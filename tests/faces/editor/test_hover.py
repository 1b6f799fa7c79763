"""Hover: what is said of what is under the cursor, and that no text makes it fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.faces.editor.completion import complete
from dpsql.faces.editor.hover import hover
from dpsql.policy.load import load_policy
from dpsql.policy.policy import Policy
from tests.support.growing_town import town_policy

POLICIES = Path(__file__).parents[2] / "fixtures" / "policies"
CLINIC, FLIGHTS = load_policy(POLICIES / "clinic.yaml"), load_policy(POLICIES / "flights.yaml")


def said(text: str, flights: bool = False) -> str:
    """What is said of the word behind the `|`."""
    offset = text.index("|")
    text = text[:offset] + text[offset + 1 :]
    found = hover(text, offset, FLIGHTS if flights else CLINIC)
    if found is None:
        return ""
    assert found.span.start <= offset <= found.span.end <= len(text)
    return found.text


@pytest.mark.parametrize(
    "text, expected",
    [
        ("SELECT COUNT(*) FROM |visits", "table **visits** — unit patient: all rows of one patient_id"),
        ("SELECT COUNT(*) FROM |visits", "at most 20 rows per unit [enforced]"),
        ("SELECT COUNT(*) FROM |visits", "stability patient=1 id"),
        ("SELECT COUNT(*) FROM visits |v", "table **visits**"),
        ("SELECT COUNT(*) FROM |nowhere", ""),
        ("SELECT COUNT(*) FROM |icd10", "table **icd10** — public"),
        ("SELECT SUM(|v.cost) FROM visits v", "table **visits**"),
        ("SELECT SUM(v.|cost) FROM visits v", "column **visits.cost** — double, bounds [0, 5000]"),
        ("SELECT SUM(|cost), foo(1) FROM visits v", "column **visits.cost** — double, bounds [0, 5000]"),
        ('SELECT SUM("|COST") FROM visits v', "column **visits.cost**"),
        ("SELECT SUM(|visit_id) FROM visits", "bigint not null, no bounds"),
        ("SELECT SUM(|visit_id) FROM visits", "no two rows have the same one"),
        ("SELECT COUNT(|patient_id) FROM visits", "the privacy unit"),
        ("SELECT |region, COUNT(*) FROM patients GROUP BY 1", "varchar, 5 public groups"),
        ("SELECT |code, COUNT(*) FROM visits GROUP BY 1", "groups of icd10.code"),
        ("SELECT COUNT(*) FROM visits WHERE |day > '2024-02-03'", "bounds [2024-01-01, 2024-12-31]"),
        ("SELECT w.|twice FROM (SELECT cost * 2 AS twice FROM visits) w", "computed by the query"),
        ("WITH w AS (SELECT cost FROM visits) SELECT SUM(cost) FROM |w", "query **w**: cost"),
        ("SELECT |SUM(cost) FROM visits", "sensitivity 100000 (l1), laplace noise of scale"),
        ("SELECT |sum ( cost ) FROM visits", "± 1.498e+06 at 95 %"),
        ("SELECT |median(cost) FROM visits", " rows at 95 %"),
        ("SELECT |PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY cost DESC) AS c FROM visits", " rows at 95 %"),
        ("SELECT |percentile_disc(cost, 0.9) FROM visits", "WITHIN GROUP (ORDER BY x)"),
        ("SELECT |QUANTILE(cost, 0.9) FROM visits", " rows at 95 %"),
        ("SELECT |APPROX_QUANTILE(cost, 0.9) FROM visits", " rows at 95 %"),
        ("SELECT |MEDIAN(CLIP(cost, AUTO)) FROM visits", ", at most ± "),
        ("SELECT AVG(cost), |COUNT(*) FROM visits", "`COUNT(*)`: sensitivity 20 (l1)"),
        ("SELECT |AVG(cost) FROM visits", "`COUNT(cost)`: sensitivity 20 (l1)"),
        ("SELECT |SUM(costt) FROM visits", "Sum; x needs bounds"),
        ("SELECT SUM(|ABS(cost)) FROM visits", "abs(x: number) → number"),
        ("SELECT |ROW_NUMBER() OVER (ORDER BY region) FROM patients", "The row's number in its partition"),
        ("SELECT COUNT(*) FROM visits |JOIN patients USING (patient_id)", "rule join on the privacy unit"),
        ("SELECT COUNT(*) FROM visits JOIN patients |USING (patient_id)", "rule join on the privacy unit"),
        ("|SELECT COUNT(*) FROM visits", "one row"),
        ("SELECT code, COUNT(*) FROM visits |GROUP BY code", "cost: ε 0.2 of each patient"),
        ("SELECT COUNT(*) FROM visits WHERE code = '|code'", ""),
        ("SELECT COUNT(*) FROM visits -- |code", ""),
        ("SELECT COUNT(*) FROM visits WHERE cost |> 3", ""),
    ],
)
def test_what_is_said(text: str, expected: str) -> None:
    found = said(text)
    assert expected in found if expected else found == ""


def test_a_column_says_what_it_is_made_of() -> None:
    made = {"type": "double", "from": "cost / 100"}
    document = {**CLINIC.document, "tables": {n: {**t} for n, t in CLINIC.document["tables"].items()}}
    document["tables"]["visits"]["columns"] = {**document["tables"]["visits"]["columns"], "euros": made}
    found = hover("SELECT SUM(euros) FROM visits", 12, Policy.from_dict(document))
    assert found is not None and "column **visits.euros** — double, from cost / 100" in found.text


def test_every_join_says_its_own_rule() -> None:
    text = "SELECT COUNT(*) FROM flights {0}JOIN planes USING (tailnum) {1}LEFT JOIN airlines a USING (carrier)"
    first, second = said(text.format("|", ""), flights=True), said(text.format("", "|"), flights=True)
    assert "stability aircraft=" in first and "stability aircraft=" in second
    assert "rule" in first and "rule" in second


def test_statements_before_and_behind_do_not_matter() -> None:
    one = "SELECT region, |SUM(age) AS s FROM patients GROUP BY region"
    assert "sensitivity" in said(one)
    assert said(f"SELECT (;\n/* ; */ {one}; SELECT 'x") == said(one)


WORDS = "SELECT FROM WITH visits v. cost SUM( COUNT(*) , ( ) ' . JOIN ON GROUP BY ORDER w AS ; -- 名 *"
PIECES = st.lists(st.sampled_from([*WORDS.split(), '"']), max_size=12)


@settings(max_examples=60)
@given(PIECES.map(" ".join), st.integers(-3, 60))
def test_no_text_makes_it_fail(text: str, offset: int) -> None:
    found = hover(text, offset, CLINIC)
    assert found is None or (found.text and 0 <= found.span.start < found.span.end <= len(text))


@pytest.mark.parametrize(
    "name", ["![x](http://evil.example/p.png)", "<img src=//x>", "a`b", "[a](b)", "www.evil.example"]
)
def test_names_are_no_markdown(name: str) -> None:
    """Whoever hovers over a name in a repository of others must not load a picture from their server."""
    columns = {"patient_id": {"type": "bigint", "nullable": False}, name: {"type": "double"}}
    table = {"unit": {"column": "patient_id"}, "primary_key": [name], "columns": columns}
    policy = Policy.model_validate(
        {"version": 1, "name": "c", "units": {"p": {}}, "tables": {name: table}, "budgets": {"total": {"epsilon": 1}}}
    )
    for text in (
        f'SELECT |"{name}" FROM "{name}"',
        f'SELECT 1 FROM |"{name}"',
        f'WITH |"{name}" AS (SELECT patient_id AS "{name}" FROM "{name}") SELECT 1',
        f'WITH "{name}" AS (SELECT patient_id AS "{name}" FROM "{name}") SELECT 1 FROM |"{name}"',
    ):
        offset = text.index("|")
        found = hover(text.replace("|", ""), offset + 1, policy)
        assert found is not None
        bare = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", found.text)
        assert name in found.text and name not in bare and "`" not in bare


TOWN = town_policy("budgets: {each_period: {epsilon: 1, delta: 1e-3}}")


def test_what_the_ledger_alone_knows_is_said_to_be_unknown() -> None:
    """An editor opens no ledger: which days are closed, and so which are charged."""
    text = "SELECT day, COUNT(*) FROM trips WHERE day > last_closed('trips') - 7 GROUP BY day"
    for word in ("SELECT", "GROUP BY"):
        found = hover(text, text.index(word), TOWN)
        assert found is not None
        assert "cost: ε 1 of each trips of the periods that are read\n" in found.text
        assert found.text.endswith("- which periods of trips are closed is not known here")
    found = hover(text, text.index("last_closed"), TOWN)
    assert found is not None and "as the ledger has it: not known here" in found.text
    text = "SELECT COUNT(*) FROM trips WHERE day > last_"
    for policy, offered in ((TOWN, True), (CLINIC, False)):
        assert ("last_closed(" in [candidate.text for candidate in complete(text, len(text), policy)]) == offered
