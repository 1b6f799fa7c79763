"""max_epsilon in one query and in one file: exact sums, places, and what has no ε of its own."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.faces.check.examine.epsilon_limits import EpsilonLimits
from dpsql.faces.check.examine.examine_text import TextOptions, check_text
from dpsql.policy.load import parse_policy
from tests.support.checked_files import CHEAP, DEAR, GOOD, NO_BOUNDS, POLICY, shown


def limited(query: str | None = None, file: str | None = None) -> TextOptions:
    return TextOptions(limits=EpsilonLimits(*(None if x is None else Fraction(x) for x in (query, file))))


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (DEAR, limited("5"), []),
        (DEAR, limited("4.999999999"), ["1:DP412 epsilon = 5"]),
        (f"{CHEAP};\n{DEAR}", limited("0.25"), ["2:DP412 epsilon = 5"]),
        (";\n".join([CHEAP] * 4), limited(file="1"), []),
        (";\n".join([CHEAP] * 5), limited(file="1"), ["5:DP412 epsilon = 0.25"]),
        (";\n".join([CHEAP] * 7), limited(file="1"), ["5:DP412 epsilon = 0.25"]),  # once
        (";\n".join([CHEAP] * 5), limited("0.2", "1"), [*(f"{n}:DP412 epsilon = 0.25" for n in (1, 2, 3, 4, 5, 5))]),
        (GOOD, limited("0.000001", "0.000001"), []),  # no ε yet: whoever runs it says it
        (f"{NO_BOUNDS};\n{CHEAP}", limited(file="0.25"), ["1:DP201 fee"]),  # refused: it is never run
    ],
)
def test_limits(text: str, options: TextOptions, expected: list[str]) -> None:
    assert shown(text, options) == expected


def test_the_policys_default_is_what_a_query_asks_for() -> None:
    text = POLICY.read_text(encoding="utf-8")
    changed = text.replace("defaults: {", "defaults: {epsilon: 0.5, ")
    assert changed != text
    given = parse_policy(changed)
    (found,) = [f.diagnostic for f in check_text(Source(GOOD, "q.sql"), given, limited("0.4"))]
    assert (found.code, found.label) == ("DP412", "the policy's default")
    repaired = f"{found.help[0].partition(':  ')[2]} {GOOD}"
    assert check_text(Source(repaired, "q.sql"), given, limited("0.4")) == []
    (found,) = [f.diagnostic for f in check_text(Source(repaired, "q.sql"), given, limited("0.3"))]
    assert found.source is not None and found.span is not None and found.label == ""
    assert found.source.text[found.span.start : found.span.end] == "epsilon"
    for free in (CHEAP, "SELECT COUNT(*) AS n FROM items"):  # a clause of its own; public data only
        assert check_text(Source(free, "q.sql"), given, limited("0.4")) == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT /* epsilon = 1 */ WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 5) COUNT(*) AS n FROM visits",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (-- epsilon = 1\n epsilon = 5) COUNT(*) AS n FROM visits",
        "WITH e AS (SELECT 'epsilon = 1' AS x FROM visits)\n"
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1e-9, epsilon = 5) COUNT(*) AS n FROM e WHERE x <> 'a'",
        "-- epsilon = 1\nSELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 5) COUNT(*) AS n FROM visits",
    ],
)
def test_the_place_is_in_the_privacy_clause(text: str) -> None:
    """What comments, strings and columns say of an epsilon is no place of it."""
    assert [place.split(":", 1)[1] for place in shown(text, limited("1"))] == ["DP412 epsilon = 5"]


def test_a_column_of_that_name_is_no_privacy_clause() -> None:
    changed = parse_policy(
        POLICY.read_text(encoding="utf-8")
        .replace("defaults: {", "defaults: {epsilon: 2, ")
        .replace("fee:", "epsilon: {type: double}\n      fee:")
    )
    text = "SELECT COUNT(*) AS n\nFROM visits WHERE epsilon = 1"
    (found,) = [f.diagnostic for f in check_text(Source(text, "q.sql"), changed, limited("1"))]
    assert found.label == "the policy's default" and found.span == Span(0, len("SELECT COUNT(*) AS n"))
