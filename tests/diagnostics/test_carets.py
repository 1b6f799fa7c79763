"""Carets point at the same tokens whatever comments, line ends, tabs and characters stand between and before them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.render import render_text
from dpsql.policy.load import load_policy
from dpsql.service.checks.check import examine

POLICY = load_policy(Path(__file__).parents[1] / "fixtures" / "policies" / "clinic.yaml")

QUERIES = (
    "SELECT SUM ( visit_id ) , AVG ( costt ) FROM visits AS v JOIN patients USING ( patient_idd ) WHERE v . agee > 3",
    "SELECT COUNT ( * ) FROM visitss AS v JOIN patientss USING ( patient_id )",
    "SELECT MODE ( cost ) , foo ( code ) , region FROM visits GROUP BY code",
    "SELECT PERCENTILE_CONT ( 2 ) WITHIN GROUP ( ORDER BY cost DESC ) , QUANTILE ( code , 0.5 ) FROM visits",
    "SELECT APPROX_QUANTILES ( cost , 4 ) [ ORDINAL ( 1 ) ] , QUANTILE_CONT ( cost , [ 0.5 ] ) FROM visits",
    "SELECT QUANTILE_DISC ( cost , 0.5 , 1 ) FROM visits",
    "SELECT COUNT ( * ) FROM visits WHERE cost > 'a' AND day > 3 AND code LIKE 3",
    "WITH w AS ( SELECT costt FROM visits ) SELECT COUNT ( * ) , MAX ( cost ) FROM w WHERE w . x = 'é😀'",
    "SELECT SUM ( cost ) FROM ( SELECT cost FROM visits ORDER BY cost )",
    "SELECT COUNT ( * ) FROM visits UNION ALL SELECT SUM ( age + nobody ) FROM patients",
    "SELECT code , COUNT ( * ) FROM visits WHERE EXTRACT ( yearr FROM day ) = 1 AND code = 名 GROUP BY code",
    "SELECT COUNT ( * ) FROM visits AS a JOIN visits AS b ON a . code = b . code",
    "SELECT COUNT ( * ) FROM visits WHERE code = ANY ( 'a,b' ) AND day > nowhere ( )",
    "SELECT CASE WHEN cst > 1 THEN 2 END , ABS ( nobody ) FROM visits",
    "SELECT COUNT ( * FROM visits",
    "SELECT a b c FROM visits",
    "SELECT 1 FROM visits ORDER BY code LIMIT 3 LIMIT 4",
    "SELECT COUNT ( * ) FRM visits",
    "SELECT TOP 3 code FROM visits",
    "SELECT COUNT ( * ) FROM visits GROUPBY code",
    "SELCT COUNT ( * ) FROM visits",
    "SELECT COUNT ( * ) FROM visits WHERE",
    "SELECT `cost` FROM visits",
    "SELECT CASE WHEN 1 = 1 THEN 2 FROM visits",
    "SELECT COUNT ( * ) FROM visits FETCH FIRST 3 ROWS WITH TIES",
    "SELECT COUNT ( * ) FROM visits WHERE EXISTS ( SELECT 1 FROM nobody ) OR cost = 3",
    "SELECT SUM ( cost * visit_id ) , SUM ( ( cost + visit_id ) * 2 ) FROM visits",
    "SELECT COUNT ( * ) FROM visits AS v JOIN patients AS p ON v . cost = p . age",
    "SELECT code , SUM ( cost ) OVER ( ORDER BY day ) FROM visits",
    "SELECT COUNT ( * ) FROM visits WHERE day = CURRENT_TIME",
    "SELECT COUNT ( DISTINCT cost , code ) FROM visits",
    "SELECT COUNT ( * ) FROM visits WHERE cost IN ( SELECT cost , code FROM visits )",
    'SELECT "größe" , SUM ( "e\u0301" ) FROM visits',
)  # fmt: skip
"""Every token stands apart, so that anything can be put between any two."""


def _found(text: str) -> list[tuple[str, str, int, int]]:
    """Each finding, with what its span covers, comments and spaces left out, and the first place it has in the text."""
    found = []
    for d in examine(Source(text), POLICY).diagnostics:
        assert d.span is not None and d.source is not None and d.source.text == text
        found.append((d.code, d.message, d.span.start, d.span.end))
    return found


PLAIN = {query: _found(query) for query in QUERIES}


def test_the_queries_have_findings() -> None:
    assert all(PLAIN.values())
    assert sum(len(found) for found in PLAIN.values()) >= 20


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_and_columns_of_files_with_any_line_ends(end: str) -> None:
    text = end.join(["-- 名前", "SELECT", "\t/* é */ SUM(costt)", "FROM visits"])
    (found,) = examine(Source(text, "q.sql"), POLICY).diagnostics
    assert found.source is not None and found.span is not None
    assert found.source.position(found.span.start) == (3, 14)
    assert render_text([found]).split("\n")[1:4] == [
        "  --> q.sql:3:14",
        "   |     /* é */ SUM(costt)",
        "   |                 ^^^^^ " + found.label if found.label else "   |                 ^^^^^",
    ]
