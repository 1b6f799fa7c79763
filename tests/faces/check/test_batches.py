"""`dpsql check` of a dashboard's file: a summary, and a batch whose queries are checked at their places."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Source
from dpsql.faces.check.examine.epsilon_limits import EpsilonLimits
from dpsql.faces.check.examine.examination import examine
from dpsql.faces.check.examine.examine_text import TextOptions, check_text
from dpsql.frontend.text.split import split_statements
from dpsql.policy.load import parse_policy
from tests.support.summary_board import CREATE, POLICY, TILES

BOARD = parse_policy(POLICY)
MONTHS, _, LATE, *_ = TILES
GOOD = f"/* dpsql: epsilon=0.25 */ DP BATCH (\n  -- a tile; in its words\n  {MONTHS};\n  {LATE};\n)"
BAD = f"dp batch ({MONTHS}; SELECT monthh, COUNT(*) FROM flights GROUP BY 1;\nSELECT MAX(hour) FROM flights)"
FILE = f"-- board\n{CREATE};\n{GOOD};\nDROP DP SUMMARY board;\nSELECT COUNT(*) AS n FROM flights;\n"


def found_in(text: str, options: TextOptions | None = None) -> list[tuple[str, str, str]]:
    return [
        (d.severity, d.code, "" if d.span is None else text[d.span.start : d.span.end])
        for d in (finding.diagnostic for finding in check_text(Source(text), BOARD, options))
    ]


def test_a_dashboard_is_read_as_what_it_is_and_has_its_price() -> None:
    assert found_in(FILE) == []
    made, batch, dropped, query = (each.price for each in examine(FILE, BOARD, "duckdb").statements)
    assert made is not None and batch is not None and dropped is not None and query is not None
    assert made.cost == (("flight", PrivacyLoss(Fraction(1, 2))),)
    assert batch.cost == (("flight", PrivacyLoss(Fraction(1, 4))),)
    assert (dropped.epsilon, dropped.cost) == (0, ()) and query.epsilon is None


def test_each_query_is_refused_at_its_place() -> None:
    text = f"{FILE}{BAD}"
    assert found_in(text) == [("error", "DP103", "monthh"), ("error", "DP101", "MAX(hour)")]
    skipped = text.replace("dp batch", "DP BATCH SKIP /* */ REFUSED")
    assert found_in(skipped) == [("warning", "DP103", "monthh"), ("warning", "DP101", "MAX(hour)")]


def test_a_limit_of_the_check_holds_for_both() -> None:
    assert found_in(FILE, TextOptions(limits=EpsilonLimits(Fraction(1, 10)))) == [
        ("error", "DP412", "epsilon = 0.5"),
        ("error", "DP412", "epsilon"),
    ]


@pytest.mark.parametrize(
    ("sql", "code", "at"),
    [
        ("DP BATCH (SELECT 1", "DP010", "DP BATCH ("),
        ("DP BATCH SELECT 1;", "DP010", "DP BATCH SELECT"),
        ("DP BATCH", "DP010", "DP BATCH"),
        ("DP BATCH ( ; )", "DP903", "DP BATCH ( ; )"),
        (GOOD.replace("a tile; in its words", "dpsql: epsilon=1"), "DP902", "epsilon"),
        ("DP BATCH (SELECT ward, COUNT(*) AS n FROM tours GROUP BY ward)", "DP101", ""),
        ("DP BATCH (SELECT COUNT(*) AS n FROM flights WHERE month = ?)", "DP013", "?"),
    ],
)
def test_what_is_no_batch_is_refused_by_name(sql: str, code: str, at: str) -> None:
    ((_, found, place),) = found_in(sql)
    assert found == code and place == (at or sql)


def test_its_text_stays_together_until_its_bracket_closes() -> None:
    (first, second, third) = split_statements(f"SELECT dp batch; {BAD} ; SELECT (1;")
    assert (first.text, second.text, third.text) == ("SELECT dp batch", BAD, "SELECT (1")
