"""Several mistakes of one statement are told at once, each once, and nothing that only follows from another."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.policy.load import load_policy
from dpsql.service.checks.check import examine
from dpsql.service.checks.further_refusals import ROUNDS, further

POLICY = load_policy(Path(__file__).parents[1] / "fixtures" / "policies" / "clinic.yaml")


def found(sql: str) -> list[tuple[str, str]]:
    """Code and place of each finding."""
    diagnostics = examine(Source(sql), POLICY).diagnostics
    assert all(d.span is not None for d in diagnostics)
    return [(d.code, sql[d.span.start : d.span.end]) for d in diagnostics if d.span is not None]


@pytest.mark.parametrize(
    "sql, expected",
    [
        (
            "SELECT SUM(visit_id), AVG(costt), FOO(cost) FROM visits JOIN patientss USING (patient_id) WHERE agee > 3",
            [("DP201", "visit_id"), ("DP103", "costt"), ("DP105", "FOO(cost)"), ("DP102", "patientss"),
             ("DP103", "agee")],
        ),
        (
            "SELECT COUNT(*) FROM visitss JOIN patientss p USING (patient_id) WHERE visitss.cst > 1",
            [("DP102", "visitss"), ("DP102", "patientss"), ("DP103", "visitss.cst")],
        ),
        ("SELECT COUNT(*) FROM visits v JOIN patients p ON v.xx = p.yy AND v.zz = 1",
         [("DP103", "v.xx"), ("DP103", "p.yy"), ("DP103", "v.zz")]),
        (
            "WITH w AS (SELECT costt FROM visits), z AS (SELECT regionn FROM patients) SELECT FOO(1) FROM w, z",
            [("DP103", "costt"), ("DP103", "regionn"), ("DP105", "FOO(1)")],
        ),
        ("SELECT SUM(visit_id), SUM(patient_id * 2), AVG(dose) FROM visits",
         [("DP201", "visit_id"), ("DP201", "patient_id"), ("DP103", "dose")]),
        # What has no name in the text is not named after what stands behind it.
        ("SELECT {'a': 1}, COUNT(*) FROM visits", [("DP105", "{'a': 1}")]),
        ("SELECT {'a': NULL}, COUNT(*) FROM visits", [("DP105", "{'a': NULL}")]),
        ("SELECT MAP {'a': 1}, COUNT(*), AVG(costt) FROM visits", [("DP105", "MAP {'a': 1}"), ("DP103", "costt")]),
        ("SELECT COUNT(*), session_user, [], costt FROM visits",
         [("DP105", "session_user"), ("DP105", "["), ("DP103", "costt")]),
        # What a mistake leads to is no mistake of its own.
        ("SELECT SUM(w.costt) FROM (SELECT costt FROM visits) AS w", [("DP103", "costt")]),
        ("SELECT costt * 2 AS c, COUNT(*) FROM visits GROUP BY c", [("DP103", "costt")]),
        ("SELECT COUNT(*) FROM nowhere WHERE costt > 1", [("DP102", "nowhere")]),
        ("SELECT COUNT(* FROM visits WHERE costt > 1", [("DP010", "FROM")]),
        ("SELECT COUNT(*) FROM visits WHERE agee IN ('x', 'y') AND cost > 1", [("DP103", "agee")]),
    ],
)  # fmt: skip
def test_what_is_told(sql: str, expected: list[tuple[str, str]]) -> None:
    assert found(sql) == expected


def test_the_fixes_of_further_findings_are_counted_in_the_text_as_it_was_written() -> None:
    sql = "SELECT FOO(cost), AVG(costt) FROM visitss v WHERE v.codee = 'x'"
    text = sql
    for d in reversed(examine(Source(sql), POLICY).diagnostics):
        for edit in () if d.fix is None or d.code == "DP105" else d.fix.edits:
            text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    assert text == "SELECT FOO(cost), AVG(cost) FROM visits v WHERE v.code = 'x'"


def test_comments_before_a_refused_part_are_read_once() -> None:
    (found,) = examine(Source(f"SELECT SUM({'/**/' * 200} 1 + costt) FROM visits"), POLICY).diagnostics
    assert found.code == "DP103"


def test_it_ends_and_keeps_what_was_found() -> None:
    """Whatever looking again says: it is asked a bounded number of times, and nothing found before is lost."""
    source = Source("SELECT a, b, c, d, e, f, g, h, i, j FROM t")
    first = Diagnostic("DP103", "column a does not exist", source, Span(7, 8))
    asked: list[str] = []

    def look(text: Source) -> tuple[Diagnostic, ...]:
        asked.append(text.text)
        at = text.text.index("abcdefghij"[len(asked)])
        return (Diagnostic("DP103", f"no {len(asked)}", text, Span(at, at + 1)),)

    everything = further([first], source, look)
    assert everything[0] == first and len(asked) == ROUNDS and len(everything) == ROUNDS + 1
    assert [source.text[d.span.start] for d in everything if d.span] == list("abcdefg")
    assert further([Diagnostic("DP010", "syntax", source, Span(0, 1))], source, look) == (
        Diagnostic("DP010", "syntax", source, Span(0, 1)),
    )
